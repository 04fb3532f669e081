"""How far a migration is: a file beside what it takes over, so that it can be gone on with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ringleader.coordinator.topics.disk import write_whole

FILE = "migration.json"
FORMAT = 1
NOT_YET = ""
"""The id of a topic that is being made."""


class StateError(Exception):
    """The file cannot be read; the text says what to do."""


@dataclass(slots=True)
class TopicState:
    """A topic that this migration writes to. `id`: that of the cluster, in hex, or `NOT_YET`; `bases`: where
    its partitions ended before; `made`: by us, with settings for the time of copying."""

    id: str
    bases: list[int]
    made: bool
    done: bool = False


@dataclass(slots=True)
class State:
    """The progress of a migration. `groups`: "" not yet, "begun", or "done"."""

    path: Path
    topics: dict[str, TopicState] = field(default_factory=dict)
    groups: str = ""

    @classmethod
    def load(cls, directory: Path) -> State:
        """As of the last `save`; empty if there was none. Raises StateError."""
        path = directory / FILE
        try:
            document = json.loads(path.read_bytes())
            if document["format"] != FORMAT:
                raise StateError(f"{path} has format {document['format']}, this version knows {FORMAT}")
            topics = {name: TopicState(**row) for name, row in document["topics"].items()}
            return cls(path, topics, document["groups"])
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StateError(
                f"{path} cannot be read: to begin again, delete it, and the topics that are on the cluster"
            ) from None

    def save(self) -> None:
        """Durable on return. Raises OSError."""
        rows = {name: asdict(one) for name, one in self.topics.items()}
        document = {"format": FORMAT, "topics": rows, "groups": self.groups}
        write_whole(self.path, json.dumps(document, indent=1).encode())
