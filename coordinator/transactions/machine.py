"""One partition of __transaction_state as a machine: the transaction coordinator without sockets, files and
clocks.

Its state changes as soon as a record is emitted; its answers leave when the records that it depends on are
durable (see `ringleader.coordinator.machine`). All answers are `Result`s. Source: KIP-98, KIP-360, KIP-890;
Kafka's TransactionCoordinator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from ringleader.coordinator.deadlines import Deadline, DeadlineHeap
from ringleader.coordinator.long_work import LongWork
from ringleader.coordinator.machine import NOTHING, Drained, Notice, Outbox, Phase
from ringleader.coordinator.transactions.records import decode_key, decode_value, encode_key, encode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import (
    COMPLETE,
    IDLE,
    MAX_EPOCH,
    NEXT,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    V1,
    V2,
    Partition,
    State,
    Transaction,
)
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode

NONE = int(ErrorCode.NONE)

LOOKED_AT_A_TIME = 200
"""Transactional ids that one step of the look for unused ones sees: a millisecond or two, if all go."""

_PHASE_ERRORS = {
    Phase.LOADING: int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    Phase.SERVING: NONE,
    Phase.UNLOADED: int(ErrorCode.NOT_COORDINATOR),
}


class Result(NamedTuple):
    """An answer: error code, and for InitProducerId and an end of V2 the producer id and epoch."""

    error: int
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH


class Producer(NamedTuple):
    """The producer id and epoch that a client sends."""

    producer_id: int
    epoch: int


class Finish(NamedTuple):
    """An event: a transaction's end is decided, all its partitions get a marker. Then call `finished`."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    partitions: frozenset[Partition]


@dataclass(slots=True, eq=False)
class _Entry(Deadline):
    """One transactional id; as a `Deadline` the end of its open transaction's time."""

    transactional_id: str
    latest: Transaction | None = None
    """With what is on its way to the log; None: forgotten."""
    durable: Transaction | None = None
    position: int = NOTHING
    """Of the last record."""
    last_epoch: int = NO_EPOCH
    """The epoch whose owner may have the present one: it asked for it before, or its transaction was aborted
    and nobody has begun since. Not kept over a restart, as in Kafka."""
    last_producer_id: int = NO_ID
    """The producer id before, likewise."""


class TransactionShard:
    """The transactional ids of one partition; a `Machine`."""

    def __init__(
        self,
        settings: TransactionSettings,
        count_ids: Callable[[], int] | None = None,
        unix_time: UnixTime | None = None,
    ) -> None:
        """`count_ids`: how many transactional ids there are in all partitions. `unix_time`: what is known of
        it already, if anything."""
        self.settings = settings
        self.phase = Phase.LOADING
        self._count_ids = count_ids or self.__len__
        self._entries: dict[str, _Entry] = {}
        self._out = Outbox()
        self._unsettled: deque[tuple[int, _Entry, Transaction | None]] = deque()
        """Changes on their way: position, entry, the transaction from there on. Writes to partitions are
        verified at once, by the durable state, so an entry keeps that besides its latest one."""
        self._deadlines: DeadlineHeap[Deadline] = DeadlineHeap()
        self._cleanup = Deadline()
        self._unix_time = unix_time or UnixTime(
            settings.transaction_remove_expired_transaction_cleanup_interval_ms
        )
        self._work = LongWork(self._out)
        self._work_deadline = Deadline()
        self._full = False
        self._marked: list[tuple[str, Producer]] = []
        """Transactions that could not be completed as the store is full."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def dirty(self) -> bool:
        """See `Machine.dirty`."""
        return self._out.dirty

    @property
    def changes(self) -> int:
        """See `Machine.changes`. A record is encoded before it is emitted, and emitted before it counts."""
        return self._out.changes + self._deadlines.changes

    # ---- life ----

    def replay(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """See `Machine.replay`."""
        for key, value in rows:
            transactional_id = decode_key(key)
            if transactional_id is not None:
                self._apply(transactional_id, None if value is None else decode_value(value))

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """See `Machine.loaded`. Open transactions go on: their time counts from the first partition, and
        decided ones are reported again to be finished."""
        self.set_wall_clock(now_ms, wall_ms)
        self.phase = Phase.SERVING
        self._entries = {name: entry for name, entry in self._entries.items() if entry.latest is not None}
        for entry in self._entries.values():
            entry.durable = transaction = entry.latest
            assert transaction is not None
            if transaction.state == State.ONGOING:
                left = transaction.started_ms + transaction.timeout_ms - self._unix_time.age_to_ms(now_ms)
                self._deadlines.arm(entry, now_ms + min(max(left, 0), transaction.timeout_ms))
            elif transaction.state in PREPARED:
                self._finish(entry, transaction, now_ms)
        self._arm_cleanup(now_ms)

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        """See `Machine.set_wall_clock`."""
        self._unix_time.tell(now_ms, wall_ms)

    def set_full(self, full: bool, now_ms: int) -> None:
        """See `Machine.set_full`. Deadlines, and transactions that could be completed, wait."""
        self._full = full
        if not full:
            marked, self._marked = self._marked, []
            for transactional_id, producer in marked:
                self.finished(transactional_id, *producer, now_ms)

    def abandon(self) -> list[Any]:
        """See `Machine.abandon`."""
        return self._out.abandon()

    def unload(self) -> None:
        """See `Machine.unload`."""
        self.phase = Phase.UNLOADED
        self._entries.clear()
        self._unsettled.clear()
        self._work.clear()
        self._deadlines = DeadlineHeap()

    # ---- InitProducerId ----

    def check_init(self, transactional_id: str, timeout_ms: int) -> int:
        """The error of a request that no state of its transaction allows."""
        if not 0 < len(transactional_id.encode()) <= self.settings.transactional_id_max_bytes:
            return ErrorCode.INVALID_REQUEST
        if not 0 < timeout_ms <= self.settings.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        error = _PHASE_ERRORS[self.phase]
        known = error or transactional_id in self._entries
        if not known and self._count_ids() >= self.settings.transaction_max_ids:
            return ErrorCode.POLICY_VIOLATION
        return error

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether `init_producer_id` would give out a new producer id."""
        latest = self._latest(transactional_id)
        return latest is None or (latest.state in IDLE and latest.epoch >= MAX_EPOCH)

    def runs_out(self, transactional_id: str) -> bool:
        """Whether an end of V2 would need a new producer id."""
        latest = self._latest(transactional_id)
        return latest is not None and latest.state not in PREPARED and latest.epoch >= MAX_EPOCH

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        fresh_id: int,
        ticket: Any,
        now_ms: int,
    ) -> None:
        """A producer begins: the one that had the id before is fenced. `expected`: what the client holds, if
        it goes on after an error (KIP-360). `fresh_id`: used if `needs_producer_id` said so.

        CONCURRENT_TRANSACTIONS while an earlier transaction ends, which this begins if need be;
        PRODUCER_FENCED if somebody else has begun since `expected`.
        """
        error = self.check_init(transactional_id, timeout_ms)
        if error:
            self._out.answer(ticket, Result(error))
            return
        entry = self._entries.get(transactional_id) or _Entry(transactional_id)
        latest = entry.latest
        if latest is None:
            begun: _Begun | None = _Begun(Producer(fresh_id, 0), Producer(NO_ID, NO_EPOCH))
        elif latest.state in PREPARED:
            self._refuse(ticket, entry, ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        elif expected is not None and not _may_be(expected, entry, latest):
            self._refuse(ticket, entry, ErrorCode.PRODUCER_FENCED)
            return
        elif latest.state == State.ONGOING:
            if not self._refused_as_full(ticket):
                self._abort(entry, latest, now_ms)
                self._refuse(ticket, entry, ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        else:
            begun = _begin(entry, latest, expected, fresh_id)
        if begun is None:
            self._refuse(ticket, entry, ErrorCode.PRODUCER_FENCED)
        elif not self._refused_as_full(ticket):
            producer_id, epoch = begun.producer
            after = Transaction(
                producer_id,
                epoch,
                timeout_ms,
                updated_ms=self._unix_time.stamp_ms(now_ms),
                previous_id=NO_ID if latest is None else latest.producer_id,
            )
            position = self._write(transactional_id, after, now_ms)
            entry = self._entries[transactional_id]
            entry.last_producer_id, entry.last_epoch = begun.last
            self._out.answer(ticket, Result(NONE, producer_id, epoch), position)

    # ---- AddPartitionsToTxn, AddOffsetsToTxn ----

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[Partition],
        ticket: Any,
        now_ms: int,
        version: int = V1,
    ) -> None:
        """Take partitions into the transaction, which begins with the first ones. `version`: V2 where the
        client did not ask for it, but produced to them or committed offsets. INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, POLICY_VIOLATION."""
        entry, latest, error = self._find(transactional_id)
        if latest is None:
            self._refuse(ticket, entry, error)
            return
        if latest.state in PREPARED:
            self._refuse(ticket, entry, ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        error = _check_producer(producer, latest)
        added = latest.partitions.union(partitions)
        if not error and len(added) > self.settings.transaction_max_partitions:
            error = ErrorCode.POLICY_VIOLATION
        if error or (latest.state == State.ONGOING and len(added) == len(latest.partitions)):
            self._refuse(ticket, entry, error)
            return
        if self._refused_as_full(ticket):
            return
        current = _going_on(latest, self._unix_time.stamp_ms(now_ms))
        after = replace(current, state=State.ONGOING, partitions=added, version=version)
        self._out.answer(ticket, Result(NONE), self._write(transactional_id, after, now_ms))

    # ---- EndTxn ----

    def end(
        self, transactional_id: str, producer: Producer, committed: bool, ticket: Any, now_ms: int
    ) -> None:
        """Commit or abort. Answered when it is decided; the markers follow. INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE."""
        entry, latest, error = self._find(transactional_id)
        if latest is None:
            self._refuse(ticket, entry, error)
            return
        error = _check_producer(producer, latest)
        if error:
            self._refuse(ticket, entry, error)
        elif latest.state in PREPARED:
            self._refuse(ticket, entry, ErrorCode.CONCURRENT_TRANSACTIONS)
        elif latest.state != State.ONGOING:
            repeated = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
            same = latest.state == repeated
            self._refuse(ticket, entry, NONE if same else ErrorCode.INVALID_TXN_STATE)
        elif not self._refused_as_full(ticket):
            state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
            after = replace(latest, state=state, updated_ms=self._unix_time.stamp_ms(now_ms), version=V1)
            self._out.answer(ticket, Result(NONE), self._write(transactional_id, after, now_ms))

    def end_raising(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        fresh_id: int,
        ticket: Any,
        now_ms: int,
    ) -> None:
        """`end` of a transaction of V2: the next one has another epoch, or with `fresh_id` (used if
        `runs_out` said so) another producer id; both are in the answer. A repeated request has the epoch
        before, and gets the same answer; an abort needs no transaction. Source: KIP-890; EndTxn v5 of Kafka
        4.3."""
        entry, latest, error = self._find(transactional_id)
        if entry is None or latest is None:
            self._refuse(ticket, entry, error)
            return
        if latest.state in PREPARED:
            epoch = latest.epoch - 1 if latest.version == V2 else latest.epoch
            error = _check_producer(producer, replace(latest, epoch=epoch))
            self._refuse(ticket, entry, error or ErrorCode.CONCURRENT_TRANSACTIONS)
            return
        error = _check_producer(producer, latest)
        repeats = latest.state in COMPLETE.values() and _repeats(producer, latest)
        if error and not repeats:
            self._refuse(ticket, entry, error)
        elif repeats and latest.state == (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT):
            self._out.answer(ticket, Result(NONE, latest.producer_id, latest.epoch), entry.position)
        elif repeats or (committed and latest.state != State.ONGOING):
            self._refuse(ticket, entry, ErrorCode.INVALID_TXN_STATE)
        elif not self._refused_as_full(ticket):
            state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
            after = self._raised(entry, latest, state, V2, fresh_id, now_ms)
            begun = Producer(after.producer_id, after.epoch) if fresh_id == NO_ID else Producer(fresh_id, 0)
            self._out.answer(ticket, Result(NONE, *begun), self._write(transactional_id, after, now_ms))

    def _raised(
        self, entry: _Entry, latest: Transaction, state: State, version: int, next_id: int, now_ms: int
    ) -> Transaction:
        """The transaction when its end is decided, with the epoch after its own."""
        entry.last_producer_id, entry.last_epoch = latest.producer_id, latest.epoch
        current = _going_on(latest, self._unix_time.stamp_ms(now_ms))
        return replace(current, epoch=latest.epoch + 1, state=state, version=version, next_id=next_id)

    def finished(self, transactional_id: str, producer_id: int, epoch: int, now_ms: int) -> None:
        """All partitions of a `Finish` have their marker, on the disk. Of a transaction that is not being
        finished (any more) it means nothing: after a load the same may be reported twice."""
        latest = self._latest(transactional_id)
        if (
            self.phase is not Phase.SERVING
            or latest is None
            or latest.state not in PREPARED
            or (latest.producer_id, latest.epoch) != (producer_id, epoch)
        ):
            return
        if self._full:
            self._marked.append((transactional_id, Producer(producer_id, epoch)))
            return
        raised = latest.version == V2
        runs_out = latest.next_id != NO_ID
        after = replace(
            latest,
            producer_id=latest.next_id if runs_out else latest.producer_id,
            epoch=0 if runs_out else latest.epoch,
            previous_id=latest.producer_id if raised else latest.previous_id,
            next_id=NO_ID,
            state=COMPLETE[latest.state],
            partitions=frozenset(),
            updated_ms=self._unix_time.stamp_ms(now_ms),
            aborted=latest.aborted or latest.state == State.PREPARE_ABORT,
        )
        self._write(transactional_id, after, now_ms)

    # ---- what partitions and groups ask ----

    def verify(self, transactional_id: str, producer: Producer, partition: Partition) -> int:
        """Whether this producer may write to this partition in its transaction: an error code, of what is
        durable at this moment.

        INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
        TRANSACTION_ABORTABLE (KIP-890).
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        error = _PHASE_ERRORS[self.phase]
        if error:
            return error
        durable = self.find(transactional_id)
        if durable is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        error = _check_producer(producer, durable)
        if error:
            return error
        if durable.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if durable.state != State.ONGOING or partition not in durable.partitions:
            return ErrorCode.TRANSACTION_ABORTABLE
        return NONE

    def open(self) -> Iterator[tuple[int, Partition]]:
        """Producer id and partition of everything that waits for a marker."""
        for entry in self._entries.values():
            if entry.latest is not None and entry.latest.state not in IDLE:
                for partition in entry.latest.partitions:
                    yield entry.latest.producer_id, partition

    def committed(self) -> Iterator[Producer]:
        """Producers all of whose transactions of their epoch were committed, and none is begun."""
        for entry in self._entries.values():
            latest = entry.latest
            if latest is not None and latest.state == State.COMPLETE_COMMIT and not latest.aborted:
                yield Producer(*latest.ended)

    def find(self, transactional_id: str) -> Transaction | None:
        """The durable state of a transactional id."""
        entry = self._entries.get(transactional_id)
        return None if entry is None else entry.durable

    # ---- time ----

    def next_deadline(self) -> int | None:
        """See `Machine.next_deadline`."""
        return None if self._full else self._deadlines.next_ms()

    def tick(self, now_ms: int) -> None:
        """See `Machine.tick`. Aborts transactions whose time is over (their producers are fenced), forgets
        ids that were not used for long."""
        if self._full:
            return
        for due in self._deadlines.due(now_ms):
            if due is self._cleanup:
                before_ms = self._unix_time.age_to_ms(now_ms) - self.settings.transactional_id_expiration_ms
                self._work.add(self._clean_up(before_ms))
            if due is self._cleanup or due is self._work_deadline:
                next_ms = self._work.step(now_ms)
                if next_ms is not None:
                    self._deadlines.arm(self._work_deadline, next_ms)
                return
            if isinstance(due, _Entry) and due.latest is not None:
                self._abort(due, due.latest, now_ms)
                self._out.report(_timed_out(due.transactional_id), due.position, now_ms)
                return

    def _arm_cleanup(self, now_ms: int) -> None:
        interval_ms = self.settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self._deadlines.arm(self._cleanup, now_ms + interval_ms)

    def _clean_up(self, before_ms: int) -> Iterator[None]:
        """Forget the transactional ids that are idle since then, in steps; the next look comes after the
        interval."""
        entries = iter(list(self._entries.values()))
        while some := list(islice(entries, LOOKED_AT_A_TIME)):
            idle = [
                entry
                for entry in some
                if (latest := entry.latest) is not None
                and latest.state in IDLE
                and latest.updated_ms <= before_ms
            ]
            if idle:
                self._forget(idle)
            if len(some) == LOOKED_AT_A_TIME:
                yield
        self._arm_cleanup(self._work.now_ms)

    # ---- the log ----

    def drain(self) -> Drained:
        """See `Machine.drain`."""
        return self._out.take()

    def durable(self, position: int, now_ms: int) -> None:
        """See `Machine.durable`."""
        while self._unsettled and self._unsettled[0][0] <= position:
            own, entry, transaction = self._unsettled.popleft()
            entry.durable = transaction
            if transaction is None and entry.position == own:
                del self._entries[entry.transactional_id]
        self._out.advance(position, now_ms)

    def _apply(self, transactional_id: str, transaction: Transaction | None) -> _Entry:
        """Apply a record: the only way in which durable state changes."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            entry = self._entries[transactional_id] = _Entry(transactional_id)
        entry.latest = transaction
        return entry

    def _write(self, transactional_id: str, after: Transaction, now_ms: int) -> int:
        """Emit and apply a record; its position."""
        before = self._latest(transactional_id)
        assert before is None or after.state in NEXT[before.state], f"{before} -> {after}"
        position = self._out.emit([(encode_key(transactional_id), encode_value(after))])
        entry = self._emitted(transactional_id, after, position)
        if after.state != State.ONGOING:
            self._deadlines.cancel(entry)
            if after.state in PREPARED:
                self._finish(entry, after, now_ms)
        elif before is None or before.state != State.ONGOING:
            self._deadlines.arm(entry, now_ms + after.timeout_ms)
        return position

    def _forget(self, entries: list[_Entry]) -> None:
        """Emit and apply what deletes these transactional ids."""
        position = self._out.emit([(encode_key(entry.transactional_id), None) for entry in entries])
        for entry in entries:
            self._emitted(entry.transactional_id, None, position)
            self._deadlines.cancel(entry)

    def _emitted(self, transactional_id: str, after: Transaction | None, position: int) -> _Entry:
        entry = self._apply(transactional_id, after)
        entry.position = position
        self._unsettled.append((position, entry, after))
        return entry

    def _finish(self, entry: _Entry, prepared: Transaction, now_ms: int) -> None:
        finish = Finish(
            entry.transactional_id,
            prepared.producer_id,
            prepared.epoch,
            prepared.state == State.PREPARE_COMMIT,
            prepared.partitions,
        )
        self._out.report(lambda now_ms: finish, entry.position, now_ms)

    def _abort(self, entry: _Entry, latest: Transaction, now_ms: int) -> None:
        """Abort without being asked by the producer, whose epoch is over. If nobody begins before it asks
        again, it may go on with the new one (KIP-588)."""
        after = self._raised(entry, latest, State.PREPARE_ABORT, latest.version, NO_ID, now_ms)
        self._write(entry.transactional_id, after, now_ms)

    # ---- what all requests need ----

    def _latest(self, transactional_id: str) -> Transaction | None:
        entry = self._entries.get(transactional_id)
        return None if entry is None else entry.latest

    def _find(self, transactional_id: str) -> tuple[_Entry | None, Transaction | None, int]:
        """The transaction of a request; the error code if there is none."""
        if not transactional_id:
            return None, None, ErrorCode.INVALID_REQUEST
        error = _PHASE_ERRORS[self.phase]
        if error:
            return None, None, error
        entry = self._entries.get(transactional_id)
        return entry, None if entry is None else entry.latest, ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def _refuse(self, ticket: Any, entry: _Entry | None, error: int) -> None:
        """An answer that changes nothing, when what it was drawn from is durable."""
        self._out.answer(ticket, Result(error), NOTHING if entry is None else entry.position)

    def _refused_as_full(self, ticket: Any) -> bool:
        if self._full:
            self._out.answer(ticket, Result(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return self._full


class _Begun(NamedTuple):
    """The producer id and epoch for a producer that begins, and those before."""

    producer: Producer
    last: Producer


def _timed_out(transactional_id: str) -> Callable[[int], Notice]:
    return lambda now_ms: Notice(transactional_id, "", "transaction timed out, aborted", expected=True)


def _going_on(latest: Transaction, wall_ms: int) -> Transaction:
    """The open transaction at this time, or the beginning of the next one."""
    if latest.state == State.ONGOING:
        return replace(latest, updated_ms=wall_ms)
    # An end of V2 has raised the epoch: nothing of this one was aborted.
    aborted = latest.aborted and latest.version != V2
    return replace(latest, started_ms=wall_ms, updated_ms=wall_ms, aborted=aborted)


def _check_producer(producer: Producer, latest: Transaction) -> int:
    if producer.producer_id != latest.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # The epoch after the last one is nobody's.
    if producer.epoch != latest.epoch or producer.epoch > MAX_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    return NONE


def _repeats(producer: Producer, latest: Transaction) -> bool:
    """Whether a client with this id and epoch may ask again for the end of V2 that is complete."""
    if latest.version != V2:
        return False
    if producer == (latest.producer_id, latest.epoch - 1):
        return latest.epoch <= MAX_EPOCH
    return producer == (latest.previous_id, MAX_EPOCH) and latest.epoch == 0


def _may_be(expected: Producer, entry: _Entry, latest: Transaction) -> bool:
    """Whether a client with this id and epoch may be the present producer, or one whose epochs ran out."""
    return expected.producer_id == latest.producer_id or (
        expected.producer_id == entry.last_producer_id and expected.epoch >= MAX_EPOCH
    )


def _begin(entry: _Entry, latest: Transaction, expected: Producer | None, fresh_id: int) -> _Begun | None:
    """The ids for a producer that begins; None if it is fenced."""
    if expected is None or expected.epoch == latest.epoch:
        last = Producer(latest.producer_id, NO_EPOCH if expected is None else latest.epoch)
        if latest.epoch >= MAX_EPOCH:
            return _Begun(Producer(fresh_id, 0), last)
        return _Begun(Producer(latest.producer_id, latest.epoch + 1), last)
    # It asked before, and did not get the answer.
    if expected.epoch == entry.last_epoch and latest.epoch <= MAX_EPOCH:
        return _Begun(
            Producer(latest.producer_id, latest.epoch), Producer(entry.last_producer_id, entry.last_epoch)
        )
    return None
