"""Where a recording of a group is asked for on a node: one at a time, bounded in time and size.

All of it happens on the node's loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from ringleader.coordinator.logs import Log
from ringleader.coordinator.recording import state
from ringleader.coordinator.recording.file import FORMAT, MARK, as_line
from ringleader.coordinator.recording.tap import Line, Tap
from ringleader.coordinator.runtime.groups import GroupRuntime

FOR_MAX_MS = 3_600_000
MAX_BYTES = 1 << 30
"""The most that may be asked for."""
WAITING_MAX_BYTES = 16 * 1024 * 1024
"""Lines that are kept for the reader; a recording whose reader does not keep up ends."""
STATE_MAX = 10_000
"""Offsets of a shard, of which a member counts as many as it costs: reading them is one turn of the loop."""
QUIET_TIMEOUT_S = 10.0
"""How long it is waited for a moment in which nothing is on its way to the log."""
LOOK_S = 0.002


class CannotRecordError(Exception):
    """The text is one sentence."""


class RecordingRequest(NamedTuple):
    """The request for a recording."""

    group_id: str
    for_ms: int
    max_bytes: int
    principals: bool = False
    host: str = ""
    """The caller's address, for the log."""


class Recording:
    """Lines for one reader, from `Desk.begin` on."""

    def __init__(self, request: RecordingRequest, log: Log, number: int = 0) -> None:
        self.number = number
        """By which its reader ends it."""
        self._request = request
        self._log = log
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._bytes = 0
        self._calls = 0
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.tap: Tap | None = None
        self.on_end: Callable[[], None] | None = None
        self.ended = False

    def start(self, first: bytes) -> None:
        """The state is known. The calls since then stand behind it."""
        self._bytes += len(first)
        self._lines.appendleft(first)
        self._waiting_bytes += len(first)
        self._news.set()
        if self.ended:
            return
        seconds = self._request.for_ms / 1000
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self.end, f"after {seconds:g} s")

    def put(self, line: Line) -> None:
        """The next line."""
        if self.ended:
            return
        raw = as_line(line)
        self._bytes += len(raw)
        if self._bytes > self._request.max_bytes:
            self.end(f"after {self._request.max_bytes:,} bytes")
            return
        self._keep(raw)
        self._calls += 1
        if self._waiting_bytes > WAITING_MAX_BYTES:
            self.end("it was read too slowly")

    def _keep(self, raw: bytes) -> None:
        self._lines.append(raw)
        self._waiting_bytes += len(raw)
        self._news.set()

    def end(self, why: str) -> None:
        """Record no more. May be called twice."""
        if self.ended:
            return
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self.tap is not None:
            self.tap.end()
        if self.on_end is not None:
            self.on_end()
        self._keep(as_line({"end": why, "calls": self._calls}))
        self._log.warning("recording ended", group_id=self._request.group_id, reason=why, calls=self._calls)

    async def take(self) -> bytes:
        """The lines that have come meanwhile; nothing: that was all."""
        await self._news.wait()
        taken = b"".join(self._lines)
        self._lines.clear()
        self._waiting_bytes = 0
        if not self.ended:
            self._news.clear()
        return taken


class Desk:
    """Begins recordings of a node."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._current: Recording | None = None
        self._count = 0

    async def begin(self, runtime: GroupRuntime, request: RecordingRequest) -> Recording:
        """Record from the next quiet moment on. Raises CannotRecordError."""
        if self._current is not None and not self._current.ended:
            raise CannotRecordError("Another recording runs on this node: one at a time.")
        self._count += 1
        recording = self._current = Recording(request, self._log, self._count)
        try:
            await self._begin(runtime, request, recording)
        except BaseException:
            recording.ended = True
            raise
        return recording

    async def end(self, number: int, why: str) -> bool:
        """End the recording of that number: what was asked until now is in it. False: it does not run."""
        recording = self._current
        if recording is None or recording.ended or recording.number != number:
            return False
        recording.end(why)
        return True

    async def _begin(self, runtime: GroupRuntime, request: RecordingRequest, recording: Recording) -> None:
        partition = runtime.partition_of(request.group_id)
        until_s = time.monotonic() + QUIET_TIMEOUT_S
        while True:
            shard = runtime.shards[partition]
            if shard.refusal:
                raise CannotRecordError(
                    f"This node does not serve group {request.group_id} (shard {partition})."
                )
            if state.size_of(shard) > STATE_MAX:
                raise CannotRecordError(
                    f"Shard {partition} has more than {STATE_MAX // state.MEMBER_COSTS:,} members or "
                    f"{STATE_MAX:,} offsets: too many to be written down while clients wait."
                )
            if state.is_quiet(shard):
                break
            if time.monotonic() > until_s:
                raise CannotRecordError(
                    f"Shard {partition} was busy all the time: there was no moment to begin within "
                    f"{QUIET_TIMEOUT_S:g} s."
                )
            await asyncio.sleep(LOOK_S)

        tap = Tap(shard, recording.put, recording.end, principals=request.principals)
        first = {
            MARK: FORMAT,
            "version": version("ringleader"),
            "group": request.group_id,
            "anonymous": False,
            "began_ms": time.time_ns() // 1_000_000,
            **tap.begin(),
        }
        recording.tap, recording.on_end = tap, partial(runtime.rewire, partition)
        runtime.rewire(partition)
        # On a thread: of a large shard it takes long, and clients go on meanwhile.
        recording.start(await asyncio.to_thread(as_line, first))
        self._log.warning(
            "recording begins",
            group_id=request.group_id,
            host=request.host,
            seconds=request.for_ms // 1000,
            principals=request.principals,
        )
