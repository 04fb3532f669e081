"""The identity of this node and its stores: so that a store that is gone is missed, not made again.

`node.json` is written last of all when a node starts for the first time, when the stores are made and synced.
A crash before that leaves what the next start takes for its own beginning.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringleader.coordinator.topics.disk import sync_path, write_whole
from ringleader.protocol import json_text

IDENTITY_FILE = "node.json"
FORMAT = 2
"""2 lists the stores; 1 had only the cluster id, and was written first."""


class IdentityError(OSError):
    """The data directory is not whole; the text is one sentence that says what to do."""


@dataclass(slots=True)
class Identity:
    """The content of `node.json`. `cluster_id`: the one that clients see, 22 characters, as Kafka's."""

    path: Path
    cluster_id: str
    stores: frozenset[str]
    """Names below the data directory."""

    @classmethod
    def find(cls, data_dir: Path, stores: Sequence[str]) -> Identity:
        """The identity of a directory; a new one if there is none yet, which lasts from `keep` on.

        `stores`: what a first start makes, in that order. Raises IdentityError when a store is gone: it is
        listed, or a later one is there.
        """
        path = data_dir / IDENTITY_FILE
        cluster_id, listed = _read(path)
        there = [number for number, name in enumerate(stores, 1) if _is_there(data_dir / name)]
        for name in listed or stores[: max(there, default=0)]:
            if not _is_there(data_dir / name):
                raise IdentityError(
                    f"{data_dir / name} is gone or empty, but belongs to this node: put the last copy of it "
                    "back, or, to begin with nothing, start with an empty data directory"
                )
        return cls(path, cluster_id, frozenset(listed))

    def keep(self, stores: Collection[str]) -> None:
        """These stores are made, and their content is synced: those of them that are files or directories
        here belong to this node from now on. Raises OSError."""
        data_dir = self.path.parent
        stores = {name for name in stores if _is_there(data_dir / name)}
        if self.path.exists() and stores <= self.stores:
            return
        self.stores |= stores
        for directory in {(data_dir / name).parent for name in stores}:
            sync_path(directory)
        document = {"format": FORMAT, "cluster_id": self.cluster_id, "stores": sorted(self.stores)}
        write_whole(self.path, json.dumps(document).encode())


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Make a directory, of this mode, and those above it, so that they outlive a crash of the machine. Raises
    OSError."""
    if not path.is_dir():
        make_directory(path.absolute().parent)
        path.mkdir(mode, exist_ok=True)
        sync_path(path.absolute().parent)


def _read(path: Path) -> tuple[str, list[str]]:
    try:
        document = json_text.loads(path.read_bytes())
        if document["format"] not in (1, FORMAT):
            raise IdentityError(f"{path} has format {document['format']!r}, this ringleader knows {FORMAT}")
        return str(document["cluster_id"]), [str(name) for name in document.get("stores", ())]
    except FileNotFoundError:
        return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="), []
    except (ValueError, KeyError, TypeError, AttributeError):
        raise IdentityError(f"{path} cannot be read: put the last copy of it back") from None


def _is_there(path: Path) -> bool:
    return path.is_dir() or (path.exists() and path.stat().st_size > 0)
