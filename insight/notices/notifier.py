"""`Notifier`: looks for incidents while a watcher runs, and sends each to all targets."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from ringleader.clients.connection.aside import aside
from ringleader.insight.advice import Thresholds
from ringleader.insight.advice.words import length
from ringleader.insight.history import HistoryError
from ringleader.insight.model import Event
from ringleader.insight.notices.forms import Notice, link_of
from ringleader.insight.notices.incidents import Incidents
from ringleader.insight.notices.lookout import Lookout
from ringleader.insight.notices.settings import NoticeSettings
from ringleader.insight.notices.targets import THREAD, NotSentError, RefusedError, Target, targets_of

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
IDLE_PART = 4
"""After a look it rests this multiple of what the look took, at least."""

T = TypeVar("T")
Say = Callable[[str], None]


class Notifier:
    """`async with Notifier(...)`: looks and sends until the block ends. Belongs to one event loop; it reads
    the history through a connection of its own, and waits for targets on threads of their own."""

    def __init__(
        self,
        settings: NoticeSettings,
        history: Path,
        *,
        thresholds: Thresholds,
        cluster: tuple[str, str, str],
        page: str | None,
        groups: frozenset[str] = frozenset(),
        note: Callable[[Iterable[Event]], None],
        on_notice: Say,
    ) -> None:
        """`cluster`: its id and address, and the name of one of several. `page`: the address of the page,
        unless the settings name another. `groups`: only of these; empty: of all. `note` puts incidents into
        the history. `on_notice` gets a sentence for each notice that is given up."""
        self._settings = settings
        self._cluster = cluster
        self._page = settings.page_url or page
        self._groups = groups
        self._note = note
        self._say = on_notice
        self._lookout = Lookout(history, thresholds, settings.window_ms, settings.interval_ms)
        self._incidents = Incidents(settings.quiet_ms, settings.again_ms)
        self._queues = [Queue(one, settings, on_notice) for one in targets_of(settings)]
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = ThreadPoolExecutor(1, "insight-notices")

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._run(), name="look for incidents"),
            *(asyncio.create_task(one.run(), name=f"notices to {one.target.name}") for one in self._queues),
        ]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._lookout.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
        self._lookout.close()
        for queue in self._queues:
            queue.give_up("the watcher ends")

    async def _run(self) -> None:
        restored = troubled = False
        while True:
            began_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
            try:
                if not restored:
                    await self._restore(now_ms)
                    restored = True
                again = self._incidents.waiting()
                found = await self._ask(partial(self._lookout.look, now_ms, again))
            except HistoryError as error:
                if not troubled:
                    self._say(f"incidents cannot be looked for: {str(error).rstrip('.')}")
                troubled = True
            else:
                troubled = False
                self._tell(self._incidents.look(found, now_ms))
            took_s = time.monotonic() - began_s
            await asyncio.sleep(max(self._settings.interval_ms / 1000, IDLE_PART * took_s))

    async def _restore(self, now_ms: int) -> None:
        since_ms = now_ms - self._settings.again_ms - self._settings.window_ms
        self._incidents.restore(await self._ask(partial(self._lookout.told, since_ms)))

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    def _tell(self, incidents: list[Event]) -> None:
        wanted = [one for one in incidents if not self._groups or not one.group or one.group in self._groups]
        if wanted:
            self._note(wanted)
        for one in wanted:
            notice = Notice(one, *self._cluster, link_of(self._page, one.group, self._cluster[2]))
            for queue in self._queues:
                queue.put(notice)


class Queue:
    """The notices that wait for one target."""

    def __init__(self, target: Target, settings: NoticeSettings, say: Say) -> None:
        self.target = target
        self._max = settings.queue_max
        self._timeout_s = settings.timeout_ms / 1000
        self._deadline_s = settings.deadline_ms / 1000
        self._say = say
        self._waiting: deque[tuple[Notice, float]] = deque()
        """Each with when it came, by the monotonic clock."""
        self._came = asyncio.Event()

    def put(self, notice: Notice) -> None:
        """Send it when its turn comes; where too many wait, give it up."""
        if len(self._waiting) >= self._max:
            self._given_up(notice, f"{self._max} others wait")
            return
        self._waiting.append((notice, time.monotonic()))
        self._came.set()

    def give_up(self, why: str) -> None:
        """All that wait."""
        while self._waiting:
            self._given_up(self._waiting.popleft()[0], why)

    async def run(self) -> None:
        """Send them, one after the other, until cancelled."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._waiting:
                why = await self._send(*self._waiting[0])
                notice, _ = self._waiting.popleft()
                if why:
                    self._given_up(notice, why)

    async def _send(self, notice: Notice, came_s: float) -> str:
        """ "" once it is sent, else why it is given up."""
        pause_s = FIRST_PAUSE_S
        while True:
            after_s = 0.0
            try:
                async with asyncio.timeout(self._timeout_s):
                    await aside(lambda: self.target.send(notice), THREAD)
            except TimeoutError:
                why = f"no answer within {length(self._timeout_s * 1000)}"
            except RefusedError as error:
                return str(error)
            except NotSentError as error:
                why, after_s = str(error), error.after_s
            else:
                return ""
            wait_s = max(pause_s, after_s)
            if time.monotonic() + wait_s - came_s > self._deadline_s:
                return f"tried for {length(self._deadline_s * 1000)}, {why}"
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _given_up(self, notice: Notice, why: str) -> None:
        self._say(
            f"a notice of {notice.about} to {self.target.name} is given up ({why}): {notice.incident.text}"
        )
