"""Writes the journal's records to their topic: after the groups' own records, beside all answers, and synced.

Nothing waits for it. Records that come while a write is under way go with the next one. A change of a group
by an operator is a line in the log, too."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from ringleader.coordinator.clock import WallClock
from ringleader.coordinator.journal import record
from ringleader.coordinator.journal.entries import (
    ChangeKind,
    ChangeRecord,
    ClientReport,
    EpochEntry,
    Incident,
    IncidentKind,
    JournalEntry,
    ReportEntry,
    printable,
)
from ringleader.coordinator.journal.record import TOPIC, JournalRecords, Message, Row
from ringleader.coordinator.logs import Log
from ringleader.protocol.errors import KafkaError, error_name
from ringleader.protocol.records import Record, build_batch

GATHER_S = 0.02
"""Records of this time are one write, and one sync."""

RETRY_S = 1.0
"""A write that failed is tried again after this time."""

STOP_TIMEOUT_S = 5.0
"""How long a clean stop waits for the last write."""

WAITING_MAX = 10_000
"""More than this many that wait for a disk are not written, and counted."""

FOLD_S = 10.0
"""The same incident of the same client is one record in this time."""

FOLDED_MAX = 10_000
"""Different incidents of that kind in that time; more are left out."""

HOUR_MS = 3_600_000
CHANGES_PER_HOUR = 1_000
"""Records of refusals, as many of changes, and as many of reports of clients: none of these must push out
what is kept."""

BATCH_BYTES = 900_000
"""A batch is closed above it."""

FOLDED = (IncidentKind.JOIN_REFUSED, IncidentKind.INSTANCE_FENCED, IncidentKind.EPOCH_REFUSED)
"""Incidents that a client may cause as often as it likes."""
LOGGED = (
    IncidentKind.JOIN_REFUSED,
    IncidentKind.OFFSETS_RESET,
    IncidentKind.OFFSETS_DELETED,
    IncidentKind.GROUP_DELETED,
)
LINES_PER_SECOND = 20
ENDS = (IncidentKind.GROUP_DELETED, IncidentKind.GROUP_EXPIRED)


class JournalTopic(Protocol):
    """The part of the topic log (`Topics`) that is used here."""

    async def append_durably(self, topic: str, partition: int, batch: bytes) -> object:
        """Written and synced on return. Raises KafkaError."""


class Reports(Protocol):
    """The reports of clients about themselves (`coordinator.telemetry`)."""

    def departed(self, group_id: str, member_ids: Iterable[str]) -> Mapping[str, ClientReport]:
        """The last reports of the clients of these members, which are in the group no more, by member id."""


class JournalWriter:
    """The way of what the groups tell to the topic. For one loop's thread."""

    def __init__(
        self, wall_ms: WallClock, log: Log, *, has_topic: bool = True, reports: Reports | None = None
    ) -> None:
        """Without a topic there are log lines only; `start` is not called. `reports`: None where clients are
        not asked."""
        self._reports = reports
        self._has_topic = has_topic
        self._wall_ms = wall_ms
        self._log = log
        self._records = JournalRecords()
        self._waiting: deque[tuple[Message, int] | Row] = deque()
        self._queued = asyncio.Event()
        self._folded: dict[tuple[object, ...], int] = {}
        """Incident -> how often since its last record."""
        self._last: dict[tuple[object, ...], Message] = {}
        self._changes: Counter[str] = Counter()
        """Records of this hour."""
        self._hour = 0
        self._second = 0
        self._lines = 0
        """Of this second."""
        self._left_out = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = False
        self.written = 0
        """Records, since the start."""
        self.lost = 0
        """Likewise, that nobody will read: the disk took none for too long."""

    def start(self, topics: JournalTopic) -> None:
        """Begin to write, records that were added before included."""
        self._put(record.started(self._wall_ms()))
        self._task = asyncio.get_running_loop().create_task(self._write_all(topics))

    async def stop(self, *, cleanly: bool) -> None:
        """Write the rest. `cleanly`: no record is missing. May be called without `start`."""
        self._ended = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweep()
        task, self._task = self._task, None
        if task is None:
            return
        if cleanly:
            self._put(record.stopped(self._wall_ms()))
        self._queued.set()
        await asyncio.wait([task], timeout=STOP_TIMEOUT_S)
        if not task.done():
            self._log.error("journal not written", records=len(self._waiting))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def add(self, message: Message) -> None:
        """Something to be written."""
        if self._reports is not None and isinstance(message, JournalEntry | EpochEntry) and message.gone:
            message = replace(message, told=self._reports.departed(message.group_id, message.gone))
        key = _fold_key(message)
        if key is not None:
            if key in self._folded:
                self._folded[key] += 1
                self._last[key] = message
                return
            if len(self._folded) >= FOLDED_MAX:
                return
            self._folded[key] = 0
            if self._sweeper is None and not self._ended:
                self._sweeper = asyncio.get_running_loop().call_later(FOLD_S, self._sweep)
        self._tell(message, 1)

    def _tell(self, message: Message, count: int) -> None:
        if isinstance(message, Incident) and message.kind in LOGGED:
            self._say(message, count)
        kind = _limited(message)
        if kind is None or self._has_room(kind, message.at_ms):
            self._put((message, count))

    def _say(self, message: Incident, count: int) -> None:
        second = message.at_ms // 1_000
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines > LINES_PER_SECOND:
            self._left_out += 1
            return
        more: dict[str, object] = {"error": error_name(message.error)} if message.error else {}
        if self._left_out:
            more["left_out_before"], self._left_out = self._left_out, 0
        self._log.info(
            message.kind.value,
            group_id=printable(message.group_id),
            principal=printable(message.principal),
            host=message.client_host[1:],
            client_id=printable(message.client_id),
            count=count,
            **more,
        )

    def _has_room(self, kind: str, at_ms: int) -> bool:
        hour = at_ms // HOUR_MS
        if hour != self._hour:
            self._hour = hour
            self._changes.clear()
        self._changes[kind] += 1
        if self._changes[kind] == CHANGES_PER_HOUR + 1:
            self._log.warning(
                "journal takes no more of a kind in this hour", kind=kind, most=CHANGES_PER_HOUR
            )
        return self._changes[kind] <= CHANGES_PER_HOUR

    def _put(self, one: tuple[Message, int] | Row) -> None:
        if not self._has_topic:
            return
        if len(self._waiting) >= WAITING_MAX:
            self.lost += 1
            return
        self._waiting.append(one)
        self._queued.set()

    def _sweep(self) -> None:
        """Tell of what happened again, and forget what did not."""
        self._sweeper = None
        again = {key: count for key, count in self._folded.items() if count}
        for key, count in again.items():
            self._tell(self._last[key], count)
        self._folded = dict.fromkeys(again, 0)
        self._last.clear()
        if again and not self._ended:
            self._sweeper = asyncio.get_running_loop().call_later(FOLD_S, self._sweep)

    # ---- writing ----

    async def _write_all(self, topics: JournalTopic) -> None:
        while True:
            await self._queued.wait()
            self._queued.clear()
            if self._task is not None:
                await asyncio.sleep(GATHER_S)
            taken, self._waiting = self._waiting, deque()
            # On a thread: an entry of a large group takes milliseconds.
            for batch, count in await asyncio.to_thread(self._batches, taken):
                await self._write(topics, batch)
                self.written += count
            if self._task is None and not self._waiting:
                return

    async def _write(self, topics: JournalTopic, batch: bytes) -> None:
        failed = ""
        while True:
            try:
                await topics.append_durably(TOPIC, 0, batch)
                return
            except KafkaError as error:
                if str(error) != failed:
                    failed = str(error)
                    self._log.error("journal not written, tried again", reason=failed)
            await asyncio.sleep(RETRY_S)

    def _batches(self, taken: deque[tuple[Message, int] | Row]) -> list[tuple[bytes, int]]:
        batches: list[tuple[bytes, int]] = []
        some: list[Record] = []
        size = 0
        for one in taken:
            try:
                at_ms, key, value = self._row(one)
            except Exception:
                self._log.exception("journal entry lost")
                continue
            if some and size + len(value) > BATCH_BYTES:
                batches.append((build_batch(some), len(some)))
                some, size = [], 0
            some.append(Record(len(some), at_ms, key, value))
            size += len(key) + len(value)
        if some:
            batches.append((build_batch(some), len(some)))
        return batches

    def _row(self, one: tuple[Message, int] | Row) -> Row:
        if len(one) == 3:
            return one
        message, count = one
        if isinstance(message, Incident) and message.kind in ENDS:
            self._records.forget(message.group_id)
        return self._records.row(message, count)


def _limited(message: Message) -> str | None:
    """The kind of which an hour has a limit. The reports about members that went have none: as few come for
    each departure."""
    if isinstance(message, ChangeRecord):
        return message.kind.value
    return "client told" if isinstance(message, ReportEntry) and not message.old_member_id else None


def _fold_key(message: Message) -> tuple[object, ...] | None:
    """The key of equal incidents; None: each has a record."""
    if isinstance(message, ChangeRecord) and message.kind is ChangeKind.REFUSED:
        return (
            message.event,
            message.subject,
            message.detail,
            message.principal,
            message.client_id,
            message.client_host,
        )
    if isinstance(message, Incident) and message.kind in FOLDED:
        client = message.client_id, message.client_host, message.member_id, message.principal
        return message.group_id, message.kind, message.error, *client
    return None
