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
from ringleader.host.clock import wall_ms
from ringleader.insight.advice import Thresholds
from ringleader.insight.advice.words import length
from ringleader.insight.history import HistoryError
from ringleader.insight.model import Event
from ringleader.insight.notices.forms import Notice, link_of
from ringleader.insight.notices.incidents import Incidents
from ringleader.insight.notices.kept import Kept, KeptNotice
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
    the history through a connection of its own, and waits for targets on threads of their own.

    A notice is in the file of the history before it is sent, and until its target has it: what waits when the
    process ends, however it does, is sent by the next one.
    """

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
        """`history`: the file of the watcher in this process. `cluster`: its id and address, and the name of
        one of several. `page`: the address of the page, unless the settings name another. `groups`: only of
        these; empty: of all. `note` puts incidents into the history. `on_notice` gets a sentence for each
        notice that is given up."""
        self._settings = settings
        self._cluster = cluster
        self._page = settings.page_url or page
        self._groups = groups
        self._note = note
        self._say = on_notice
        self._lookout = Lookout(history, thresholds, settings.window_ms, settings.interval_ms)
        self._incidents = Incidents(settings.quiet_ms, settings.again_ms)
        self._kept = Kept(history, on_notice)
        self._queues = [Queue(one, settings, on_notice, self._over) for one in targets_of(settings)]
        self._over_now: list[KeptNotice] = []
        """In the file, as their incidents may not be in the history yet."""
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
        await asyncio.to_thread(self._kept.close)
        for queue in self._queues:
            queue.leave()

    async def _run(self) -> None:
        restored = troubled = False
        while True:
            began_s, at_ms = time.monotonic(), wall_ms()
            try:
                if not restored:
                    await self._restore(at_ms)
                    restored = True
                again = self._incidents.waiting()
                found = await self._ask(partial(self._lookout.look, at_ms, again))
                await self._forget()
            except HistoryError as error:
                if not troubled:
                    self._say(f"incidents cannot be looked for: {str(error).rstrip('.')}")
                troubled = True
            else:
                troubled = False
                await self._tell(self._incidents.look(found, at_ms))
            took_s = time.monotonic() - began_s
            await asyncio.sleep(max(self._settings.interval_ms / 1000, IDLE_PART * took_s))

    async def _restore(self, at_ms: int) -> None:
        kept = await asyncio.wrap_future(self._kept.all())
        since_ms = at_ms - self._settings.again_ms - self._settings.window_ms
        since_ms = min((since_ms, *(one.incident.at_ms for one in kept)))
        notified = await self._ask(partial(self._lookout.incidents, since_ms))
        known = {one.id for one in notified}
        lost = {one.incident.id: one.incident for one in kept if one.incident.id not in known}
        self._incidents.restore([*notified, *lost.values()])
        if lost:
            self._note(lost.values())
        self._over_now += [one for one in kept if one.over]
        queues = {one.target.name: one for one in self._queues}
        for one in kept:
            if one.over:
                continue
            if one.target not in queues:
                self._over(one.target, one.incident)
            elif at_ms - one.incident.at_ms > self._settings.again_ms:
                queues[one.target].give_up(self._notice(one.incident), "nobody watched for long")
            else:
                queues[one.target].put(self._notice(one.incident), (at_ms - one.incident.at_ms) / 1000)

    def _over(self, target: str, incident: Event) -> None:
        self._kept.over(target, incident)
        self._over_now.append(KeptNotice(target, incident, over=True))

    async def _forget(self) -> None:
        """Drop notices that are over, and whose incident the history has."""
        if not self._over_now:
            return
        since_ms = min(one.incident.at_ms for one in self._over_now)
        known = {one.id for one in await self._ask(partial(self._lookout.incidents, since_ms))}
        stored = [one for one in self._over_now if one.incident.id in known]
        if stored:
            await asyncio.wrap_future(self._kept.forget(stored))
            self._over_now = [one for one in self._over_now if one not in stored]

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)

    async def _tell(self, incidents: list[Event]) -> None:
        wanted = [one for one in incidents if not self._groups or not one.group or one.group in self._groups]
        if not wanted:
            return
        kept = [KeptNotice(queue.target.name, one, over=False) for one in wanted for queue in self._queues]
        try:
            await asyncio.wrap_future(self._kept.put(kept))
        except HistoryError as error:
            self._say(f"notices are sent, but lost where the watcher is killed: {str(error).rstrip('.')}")
        self._note(wanted)
        for one in wanted:
            for queue in self._queues:
                queue.put(self._notice(one))

    def _notice(self, incident: Event) -> Notice:
        return Notice(incident, *self._cluster, link_of(self._page, incident.group, self._cluster[2]))


class Queue:
    """The notices that wait for one target."""

    def __init__(
        self,
        target: Target,
        settings: NoticeSettings,
        say: Say,
        over: Callable[[str, Event], object] = lambda _target, _incident: None,
    ) -> None:
        """`over` is called with the name of the target for each notice that was sent or given up."""
        self.target = target
        self._over = over
        self._max = settings.queue_max
        self._timeout_s = settings.timeout_ms / 1000
        self._deadline_s = settings.deadline_ms / 1000
        self._say = say
        self._waiting: deque[tuple[Notice, float]] = deque()
        """Each with when it came, by the monotonic clock."""
        self._arrived = asyncio.Event()

    def put(self, notice: Notice, age_s: float = 0) -> None:
        """Send it when its turn comes; where too many wait, give it up. `age_s`: how long it has waited, of a
        process before this one; it is tried once, however long that is."""
        if len(self._waiting) >= self._max:
            self.give_up(notice, f"{self._max} others wait")
            return
        self._waiting.append((notice, time.monotonic() - age_s))
        self._arrived.set()

    def leave(self) -> None:
        """All that wait, to the next watcher."""
        while self._waiting:
            notice, _ = self._waiting.popleft()
            self._say(
                f"a notice of {notice.about} to {self.target.name} waits for the next watcher: "
                f"{notice.incident.text}"
            )

    async def run(self) -> None:
        """Send them, one after the other, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                why = await self._send(*self._waiting[0])
                notice, _ = self._waiting.popleft()
                if why:
                    self.give_up(notice, why)
                else:
                    self._over(self.target.name, notice.incident)

    async def _send(self, notice: Notice, queued_s: float) -> str:
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
            if time.monotonic() + wait_s - queued_s > self._deadline_s:
                return f"tried for {length(self._deadline_s * 1000)}, {why}"
            await asyncio.sleep(wait_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def give_up(self, notice: Notice, why: str) -> None:
        """Do not send it, and say so."""
        self._over(self.target.name, notice.incident)
        self._say(
            f"a notice of {notice.about} to {self.target.name} is given up ({why}): {notice.incident.text}"
        )
