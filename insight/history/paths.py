"""The default place of histories."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")


def default_path(cluster_id: str, *, of_nodes: bool = False) -> Path:
    """The file of that cluster in the user's data directory: `$XDG_DATA_HOME/ringleader/insight/`, where
    `$XDG_DATA_HOME` is `~/.local/share` if it is not set. `of_nodes`: that of the groups on Ringleader's
    nodes, which have the id of the cluster behind them. Raises ValueError without a cluster id."""
    name = _UNFIT.sub("_", cluster_id).lstrip(".")
    if not name:
        raise ValueError("a cluster that does not say its id has no history of its own: name a file")
    return _directory() / f"{name}{'-nodes' if of_nodes else ''}.sqlite"


def remember_watched(clusters: Mapping[str, str]) -> None:
    """These clusters were watched last, with histories in their default places: servers by name, which is ""
    for one without. Raises OSError."""
    _last().write_text("".join(f"{name}={servers}\n" for name, servers in clusters.items()), encoding="utf-8")


def last_watched() -> dict[str, str]:
    """The servers of these clusters by name; empty: there were none."""
    try:
        lines = _last().read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    # A file of before has servers alone.
    found = [line.strip().rpartition("=") for line in lines if line.strip()]
    return {name: servers for name, _, servers in found}


def _last() -> Path:
    return _directory() / "last-watched"


def _directory() -> Path:
    data = os.environ.get("XDG_DATA_HOME", "")
    # The specification: a relative path in it is to be ignored.
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "ringleader" / "insight"
