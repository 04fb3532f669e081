"""The default place of histories."""

from __future__ import annotations

import os
import re
from pathlib import Path

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")


def default_path(cluster_id: str) -> Path:
    """The file of that cluster in the user's data directory: `$XDG_DATA_HOME/ringleader/insight/`, where
    `$XDG_DATA_HOME` is `~/.local/share` if it is not set. Raises ValueError without a cluster id."""
    name = _UNFIT.sub("_", cluster_id).lstrip(".")
    if not name:
        raise ValueError("a cluster that does not say its id has no history of its own: name a file")
    return _directory() / f"{name}.sqlite"


def remember_watched(servers: str) -> None:
    """These servers' cluster is the one that was watched last, with a history in its default place. Raises
    OSError."""
    _last().write_text(servers, encoding="utf-8")


def last_watched() -> str | None:
    """The servers of that cluster; None: there was none."""
    try:
        return _last().read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _last() -> Path:
    return _directory() / "last-watched"


def _directory() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification: a relative path in it is to be ignored.
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "ringleader" / "insight"
