"""Changes as server-sent events, with one look at the history for all viewers."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

from ringleader.host.clock import wall_ms
from ringleader.insight.history import Away, History, HistoryError
from ringleader.insight.model import Event, EventKind, GroupState, Rebalance
from ringleader.insight.plain import Json
from ringleader.insight.web.board import HOUR_MS, HOURS, Board, pages
from ringleader.insight.web.desk import BusyError, Desk
from ringleader.insight.web.values import event_line, line

if TYPE_CHECKING:
    from ringleader.insight.web.sources import Source

logger = logging.getLogger("ringleader.insight.web")

POLL_S = 0.5
LAG_S = 10.0
KEEP_ALIVE_S = 15.0
VIEWERS_MAX = 64
KEPT_MAX = 2_000
"""Messages of a cluster that a viewer who lost the connection can still get."""

Change = Rebalance | Event | GroupState


class _Message(NamedTuple):
    number: int
    text: str


class Live:
    """Follows the history: keeps the board, and tells the viewers."""

    def __init__(self, desk: Desk, source: Source) -> None:
        self.board = Board()
        self.ready = False
        """Whether the history has been read once."""
        self.trouble: str | None = None
        """The reason why the history cannot be read now."""
        self.cluster = ""
        """HOST:PORT and id of the cluster, as far as they are known."""
        self.away: Away | None = None
        """The cluster does not answer its watcher."""
        self.oldest_ms: int | None = None
        """The first moment that something is known of."""
        self.viewers = 0
        self._desk = desk
        self._source = source
        self._kept: deque[_Message] = deque(maxlen=KEPT_MAX)
        self._news = asyncio.Event()
        """Replaced with every message."""
        self._ended = False
        # Numbers of another process' messages are not ours: they begin with the time.
        self._number = wall_ms()

    async def run(self) -> None:
        """Until it is cancelled."""
        cursor = None
        looked = 0.0
        while True:
            try:
                if cursor is None:
                    cursor = await self._desk.ask(self._begin)
                    self.ready = True
                cursor = await self._follow(cursor)
                if time.monotonic() - looked >= LAG_S:
                    await self._desk.ask(self._measure)
                    looked = time.monotonic()
                self._say_trouble(None)
            except HistoryError as error:
                self._say_trouble(str(error))
                self._say_away(self._source.away)
            except BusyError:
                pass
            await asyncio.sleep(POLL_S)

    def end(self) -> None:
        """Send all viewers away."""
        self._ended = True
        self._news.set()

    async def messages(self, after: int | None) -> AsyncIterator[str]:
        """Server-sent events from now on, or after the one of that number."""
        self.viewers += 1
        try:
            number = self._number if after is None else after
            if after is not None and not self._kept_since(after):
                number = self._number
                yield _sse(number, "reload", {})
            else:
                yield _sse(number, "hello", {})
            yield _sse(number, "cluster", self.status())
            while not self._ended:
                news = self._news
                for message in [one for one in self._kept if one.number > number]:
                    number = message.number
                    yield message.text
                try:
                    await asyncio.wait_for(news.wait(), KEEP_ALIVE_S)
                except TimeoutError:
                    yield ": still here\n\n"
        finally:
            self.viewers -= 1

    def status(self) -> Json:
        """Whether the cluster answers its watcher, and since when it does not."""
        return {
            "cluster": self.cluster or self._source.name,
            "away": None if self.away is None else self.away._asdict(),
        }

    # ---- inside ----

    def _kept_since(self, number: int) -> bool:
        return number == self._number or bool(
            self._kept and self._kept[0].number <= number + 1 <= self._number
        )

    def _begin(self, history: History) -> int:
        cursor = history.cursor
        self.cluster = " ".join(filter(None, (history.address, history.cluster_id)))
        self.away = self._source.away or history.away
        now_ms = wall_ms()
        since_ms = now_ms - HOURS * HOUR_MS

        def read(**bounds: int) -> list[Rebalance]:
            return history.rebalances(None, **bounds)  # type: ignore[arg-type]

        self.board.begin(history.groups(), pages(read, since_ms, now_ms + HOUR_MS))
        self._measure(history)
        return cursor

    async def _follow(self, cursor: int) -> int:
        while True:
            (cursor, changes), away = await self._desk.ask(
                lambda history, after=cursor: (history.changes(after), history.away)  # type: ignore[misc]
            )
            self._say_away(self._source.away or away)
            if not changes:
                return cursor
            for change in changes:
                self.board.tell(change)
                self._tell(change)
            self._wake()
            await asyncio.sleep(0)

    def _say_away(self, away: Away | None) -> None:
        if away != self.away:
            self.away = away
            self._keep("cluster", self.status())
            self._wake()

    def _tell(self, change: Change) -> None:
        if isinstance(change, Rebalance):
            self._keep("rebalance", line(change))
        elif isinstance(change, GroupState):
            self._keep("group", self.board.row(change.group, wall_ms()))
        elif change.kind is not EventKind.CLIENT_REPORTED:
            self._keep("event", event_line(change))

    def _keep(self, kind: str, data: Json | None) -> None:
        self._number += 1
        self._kept.append(_Message(self._number, _sse(self._number, kind, data)))

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _measure(self, history: History) -> None:
        self.oldest_ms = history.oldest_ms
        for state in self.board.groups():
            newest_ms = self.board.lags.newest_ms(state.group)
            since_ms = wall_ms() - HOUR_MS if newest_ms is None else newest_ms + 1
            self.board.measure(state.group, history.lag(state.group, since_ms=since_ms))

    def _say_trouble(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self.trouble and self._source.path is not None:
            logger.warning("the page cannot read the history: %s", trouble)
        self.trouble = trouble


def _sse(number: int, kind: str, data: object) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
