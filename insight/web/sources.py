"""The clusters of a page: each with its own history, board and messages, so that none waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringleader.clients.admin import Admin
from ringleader.insight.history import Away
from ringleader.insight.model import Event
from ringleader.insight.web.desk import Desk
from ringleader.insight.web.live import Live
from ringleader.insight.web.params import BadRequestError

CLUSTER = "cluster"
"""The parameter, and the label of metrics, that names one of several."""
SLOW_MAX = 4
"""Questions for advice about one cluster at one time."""

Note = Callable[[Iterable[Event]], None]


@dataclass(slots=True)
class Source:
    """One cluster, as its watcher knows it; the watcher changes the fields, and the page reads them."""

    name: str = ""
    """"" for the only one: nothing names it."""
    path: Path | None = None
    """The history's file; None: the cluster has not been reached, so its file is not known."""
    note: Note | None = None
    """Puts marks into the history; None: nothing can be written."""
    away: Away | None = None
    """The cluster has no watcher now: since when, and why."""
    admin: Callable[[], Admin] | None = None
    """Makes a connection that can change the cluster, with the rights of its watcher; None: nothing can."""


class Place:
    """A source with its part of the page."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.desk, self.slow = Desk(source), Desk(source, SLOW_MAX)
        self.live = Live(self.desk, source)

    async def close(self) -> None:
        """Close the files."""
        await asyncio.gather(self.desk.close(), self.slow.close())


class Places:
    """All of them, in the order in which they were given."""

    def __init__(self, sources: Iterable[Source]) -> None:
        """Raises ValueError for two of one name."""
        self.all = [Place(one) for one in sources]
        self._by_name = {one.source.name: one for one in self.all}
        if len(self._by_name) < len(self.all):
            raise ValueError("two clusters have one name")
        self.named = "" not in self._by_name
        """Whether questions name a cluster."""

    def pick(self, query: Mapping[str, str]) -> tuple[Place, dict[str, str]]:
        """The cluster that is asked for, and the other parameters. Raises AskedWronglyError."""
        rest = dict(query)
        if not self.named:
            return self.all[0], rest
        name = rest.pop(CLUSTER, None)
        if name is None and len(self.all) == 1:
            return self.all[0], rest
        found = self._by_name.get(name or "")
        if found is None:
            known = ", ".join(self._by_name)
            raise BadRequestError(f"Say which cluster: ?{CLUSTER}=...; there are: {known}.")
        return found, rest
