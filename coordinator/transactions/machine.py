"""The transaction coordinator without sockets, files and clocks.

Every change is a record first: it takes effect, and is answered, when `stored` says that the record is
durable. Until then the transactional id is busy, and asking it for more gives CONCURRENT_TRANSACTIONS, as it
does while a transaction is being finished. Source: KIP-98, KIP-360; Kafka's TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ringleader.coordinator.transactions.records import decode_key, decode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import (
    COMPLETE,
    IDLE,
    MAX_EPOCH,
    NEXT,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    Partition,
    State,
    Transaction,
)
from ringleader.protocol.errors import ErrorCode

NEVER = 1 << 62
_COMPACT_ABOVE = 1_024

NONE = int(ErrorCode.NONE)


class Result(NamedTuple):
    """An answer: error code, and for InitProducerId the producer id and epoch."""

    error: int
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH


Reply = Callable[[Result], None]
"""Gets the answer, once; at once or when a record is durable."""


class Producer(NamedTuple):
    """Who a client says it is."""

    producer_id: int
    epoch: int


class Write(NamedTuple):
    """A record to store; None forgets the transactional id. Then `stored` or `failed` must be called."""

    transactional_id: str
    transaction: Transaction | None


class Finish(NamedTuple):
    """A transaction whose end is decided: all its partitions get a marker. Then call `finished`."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    partitions: frozenset[Partition]


@dataclass(slots=True)
class Outbox:
    """What the machine wants done."""

    writes: list[Write]
    finishes: list[Finish]


@dataclass(slots=True, eq=False)
class _Entry:
    transactional_id: str
    current: Transaction | None = None
    """None until the first record is durable."""
    pending: Write | None = None
    then: Callable[[int], None] | None = None
    """Gets the error code when `pending` is stored or has failed."""
    marked: bool = False
    """All partitions have the marker."""
    armed: int = 0
    """Number of the deadline that holds, 0 for none."""

    @property
    def busy(self) -> bool:
        """Something is being changed; a transaction that is being finished is, too."""
        return self.pending is not None or self.current is None or self.current.state in PREPARED


class Machine:
    """All transactional ids. `now_ms` is a monotonic clock, `wall_ms` Unix time."""

    def __init__(self, settings: TransactionSettings) -> None:
        self.settings = settings
        self._entries: dict[str, _Entry] = {}
        self._outbox = Outbox([], [])
        self._deadlines: list[tuple[int, int, _Entry]] = []
        self._sequence = 0
        self._cleanup_ms = NEVER

    def __len__(self) -> int:
        return len(self._entries)

    # ---- loading ----

    def replay(self, key: bytes, value: bytes) -> None:
        """A record from the store. Raises MalformedError."""
        transactional_id = decode_key(key)
        if transactional_id is not None:
            self._entries[transactional_id] = _Entry(transactional_id, decode_value(value))

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """After the last record: what was begun goes on."""
        for entry in self._entries.values():
            transaction = entry.current
            assert transaction is not None
            if transaction.state == State.ONGOING:
                left = transaction.started_ms + transaction.timeout_ms - wall_ms
                self._arm(entry, now_ms + min(max(left, 0), transaction.timeout_ms))
            elif transaction.state in PREPARED:
                self._finish(entry, transaction)
        self._cleanup_ms = now_ms + self.settings.transaction_remove_expired_transaction_cleanup_interval_ms

    # ---- InitProducerId ----

    def check_init(self, transactional_id: str, timeout_ms: int) -> int:
        """What is wrong with a request whatever the state."""
        if not 0 < len(transactional_id.encode()) <= self.settings.transactional_id_max_bytes:
            return ErrorCode.INVALID_REQUEST
        if not 0 < timeout_ms <= self.settings.transaction_max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if transactional_id not in self._entries and len(self) >= self.settings.transaction_max_ids:
            return ErrorCode.POLICY_VIOLATION
        return NONE

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether `init_producer_id` would give out a new producer id."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            return True
        found = entry.current
        return not entry.busy and found is not None and found.state in IDLE and found.epoch >= MAX_EPOCH

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        fresh_id: int,
        reply: Reply,
        wall_ms: int,
    ) -> None:
        """A producer begins: whoever had the id before is fenced. `expected`: what the client holds, if it
        goes on after an error (KIP-360). `fresh_id`: used if `needs_producer_id` said so.

        CONCURRENT_TRANSACTIONS while an earlier transaction ends, which this begins if need be;
        PRODUCER_FENCED if somebody else has begun since `expected`.
        """
        error = self.check_init(transactional_id, timeout_ms)
        if error:
            reply(Result(error))
            return
        entry = self._entries.get(transactional_id)
        if entry is None:
            entry = self._entries[transactional_id] = _Entry(transactional_id)
            self._begin(entry, Transaction(fresh_id, 0, timeout_ms, updated_ms=wall_ms), reply)
            return
        current = entry.current
        if entry.busy or current is None:
            reply(Result(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif expected is not None and not _may_be(expected, current):
            reply(Result(ErrorCode.PRODUCER_FENCED))
        elif current.state == State.ONGOING:
            self._abort(
                entry, wall_ms, lambda error: reply(Result(error or ErrorCode.CONCURRENT_TRANSACTIONS))
            )
        else:
            after = _next_epoch(current, expected, fresh_id)
            if after is None:
                reply(Result(ErrorCode.PRODUCER_FENCED))
            else:
                self._begin(entry, replace(after, timeout_ms=timeout_ms, updated_ms=wall_ms), reply)

    def _begin(self, entry: _Entry, after: Transaction, reply: Reply) -> None:
        def stored(error: int) -> None:
            reply(Result(error) if error else Result(NONE, after.producer_id, after.epoch))

        self._write(entry, after, stored)

    # ---- AddPartitionsToTxn, AddOffsetsToTxn ----

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[Partition],
        reply: Reply,
        wall_ms: int,
    ) -> None:
        """Take partitions into the transaction, which begins with the first ones. INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, POLICY_VIOLATION."""
        entry = self._entries.get(transactional_id)
        if not transactional_id:
            reply(Result(ErrorCode.INVALID_REQUEST))
            return
        if entry is None:
            reply(Result(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            return
        current = entry.current
        if entry.busy or current is None:
            reply(Result(ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        error = _check_producer(producer, current)
        added = current.partitions.union(partitions)
        if not error and len(added) > self.settings.transaction_max_partitions:
            error = ErrorCode.POLICY_VIOLATION
        if error or (current.state == State.ONGOING and len(added) == len(current.partitions)):
            reply(Result(error))
            return
        started_ms = current.started_ms if current.state == State.ONGOING else wall_ms
        after = replace(
            current, state=State.ONGOING, partitions=added, started_ms=started_ms, updated_ms=wall_ms
        )
        self._write(entry, after, lambda error: reply(Result(error)))

    # ---- EndTxn ----

    def end(
        self, transactional_id: str, producer: Producer, committed: bool, reply: Reply, wall_ms: int
    ) -> None:
        """Commit or abort. Answered when it is decided; the markers follow. INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE."""
        entry = self._entries.get(transactional_id)
        if not transactional_id:
            reply(Result(ErrorCode.INVALID_REQUEST))
            return
        if entry is None or entry.current is None:
            reply(Result(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            return
        current = entry.current
        error = _check_producer(producer, current)
        if error:
            reply(Result(error))
        elif entry.busy:
            reply(Result(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif current.state == State.ONGOING:
            state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
            after = replace(current, state=state, updated_ms=wall_ms)
            self._write(entry, after, lambda error: reply(Result(error)))
        else:
            repeated = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
            reply(Result(NONE if current.state == repeated else ErrorCode.INVALID_TXN_STATE))

    def finished(self, transactional_id: str, wall_ms: int) -> None:
        """All partitions of a `Finish` have their marker, on the disk."""
        entry = self._entries[transactional_id]
        entry.marked = True
        self._complete(entry, wall_ms)

    # ---- what partitions and groups ask ----

    def verify(self, transactional_id: str, producer: Producer, partition: Partition) -> int:
        """Whether this producer may write to this partition in its transaction: an error code.

        INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
        INVALID_TXN_STATE (KIP-890).
        """
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        entry = self._entries.get(transactional_id)
        if entry is None or entry.current is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        current = entry.current
        error = _check_producer(producer, current)
        if error:
            return error
        if current.state in PREPARED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if current.state != State.ONGOING or partition not in current.partitions:
            return ErrorCode.INVALID_TXN_STATE
        return NONE

    def open(self) -> Iterator[tuple[int, Partition]]:
        """Producer id and partition of everything that waits for a marker."""
        for entry in self._entries.values():
            if entry.current is not None and entry.current.state not in IDLE:
                for partition in entry.current.partitions:
                    yield entry.current.producer_id, partition

    def find(self, transactional_id: str) -> Transaction | None:
        """What is durable of a transactional id."""
        entry = self._entries.get(transactional_id)
        return None if entry is None else entry.current

    # ---- time ----

    def next_deadline(self) -> int | None:
        """When `tick` should be called; never too late."""
        while self._deadlines and self._stale(self._deadlines[0]):
            heappop(self._deadlines)
        due = min(self._deadlines[0][0] if self._deadlines else NEVER, self._cleanup_ms)
        return None if due == NEVER else due

    def tick(self, now_ms: int, wall_ms: int) -> list[str]:
        """Abort transactions whose time is over (whoever began them is fenced), try again what could not be
        stored, forget what was not used for long. The transactional ids whose transactions are aborted."""
        aborted = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            found = heappop(self._deadlines)
            entry = found[2]
            if self._stale(found):
                continue
            entry.armed = 0
            # Until it is done; what is stored meanwhile moves the deadline.
            self._arm(entry, now_ms + self.settings.transaction_retry_ms)
            if entry.pending is not None or entry.current is None:
                continue
            if entry.current.state == State.ONGOING:
                aborted.append(entry.transactional_id)
                self._abort(entry, wall_ms, _nobody)
            elif entry.marked:
                self._complete(entry, wall_ms)
        if self._cleanup_ms <= now_ms:
            interval_ms = self.settings.transaction_remove_expired_transaction_cleanup_interval_ms
            self._cleanup_ms = now_ms + interval_ms
            self._expire(wall_ms - self.settings.transactional_id_expiration_ms)
        return aborted

    def _expire(self, before_ms: int) -> None:
        for entry in self._entries.values():
            found = entry.current
            if not entry.busy and found is not None and found.state in IDLE and found.updated_ms <= before_ms:
                self._put(entry, Write(entry.transactional_id, None), _nobody)

    def _arm(self, entry: _Entry, due_ms: int) -> None:
        self._sequence += 1
        entry.armed = self._sequence
        heappush(self._deadlines, (due_ms, self._sequence, entry))
        if len(self._deadlines) > _COMPACT_ABOVE + 2 * len(self._entries):
            self._deadlines = [found for found in self._deadlines if not self._stale(found)]
            heapify(self._deadlines)

    @staticmethod
    def _stale(found: tuple[int, int, _Entry]) -> bool:
        return found[2].armed != found[1]

    # ---- the store ----

    def take(self) -> Outbox:
        """What is to be done, once."""
        box, self._outbox = self._outbox, Outbox([], [])
        return box

    def stored(self, transactional_id: str, now_ms: int) -> None:
        """The record of a `Write` is durable."""
        entry = self._entries[transactional_id]
        write, then = entry.pending, entry.then
        assert write is not None
        entry.pending = entry.then = None
        after = write.transaction
        if after is None:
            entry.armed = 0
            del self._entries[transactional_id]
        else:
            began = entry.current is None or entry.current.state != State.ONGOING
            entry.current = after
            if after.state != State.ONGOING:
                entry.armed = 0
            elif began:
                self._arm(entry, now_ms + after.timeout_ms)
            if after.state in PREPARED:
                self._finish(entry, after)
        if then is not None:
            then(NONE)

    def failed(self, transactional_id: str, error: int, now_ms: int) -> None:
        """The record of a `Write` could not be stored: nothing has changed."""
        entry = self._entries[transactional_id]
        then = entry.then
        entry.pending = entry.then = None
        if entry.current is None:
            del self._entries[transactional_id]
        elif entry.marked:
            self._arm(entry, now_ms + self.settings.transaction_retry_ms)
        if then is not None:
            then(error)

    def _write(self, entry: _Entry, after: Transaction, then: Callable[[int], None]) -> None:
        before = entry.current
        assert before is None or after.state in NEXT[before.state], f"{before} -> {after}"
        self._put(entry, Write(entry.transactional_id, after), then)

    def _put(self, entry: _Entry, write: Write, then: Callable[[int], None]) -> None:
        assert entry.pending is None, "one change at a time"
        entry.pending, entry.then = write, then
        self._outbox.writes.append(write)

    def _abort(self, entry: _Entry, wall_ms: int, then: Callable[[int], None]) -> None:
        """Abort without being asked by the producer, whose epoch is over. If nobody begins before it asks
        again, it may go on with the new one (KIP-588)."""
        current = entry.current
        assert current is not None
        after = replace(
            current,
            epoch=current.epoch + 1,
            last_epoch=current.epoch,
            state=State.PREPARE_ABORT,
            updated_ms=wall_ms,
        )
        self._write(entry, after, then)

    def _finish(self, entry: _Entry, prepared: Transaction) -> None:
        entry.marked = False
        self._outbox.finishes.append(
            Finish(
                entry.transactional_id,
                prepared.producer_id,
                prepared.epoch,
                prepared.state == State.PREPARE_COMMIT,
                prepared.partitions,
            )
        )

    def _complete(self, entry: _Entry, wall_ms: int) -> None:
        current = entry.current
        assert current is not None
        after = replace(current, state=COMPLETE[current.state], partitions=frozenset(), updated_ms=wall_ms)
        self._write(entry, after, lambda error: self._completed(entry, error))

    def _completed(self, entry: _Entry, error: int) -> None:
        entry.marked = bool(error)


def _nobody(error: int) -> None:
    """Nobody waits for this."""


def _check_producer(producer: Producer, current: Transaction) -> int:
    if producer.producer_id != current.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != current.epoch:
        return ErrorCode.PRODUCER_FENCED
    return NONE


def _may_be(expected: Producer, current: Transaction) -> bool:
    """Whether a client with this id and epoch may be the present producer, or one whose epochs ran out."""
    return expected.producer_id == current.producer_id or (
        expected.producer_id == current.last_producer_id and expected.epoch >= MAX_EPOCH
    )


def _next_epoch(current: Transaction, expected: Producer | None, fresh_id: int) -> Transaction | None:
    """What a producer that begins gets; None if it is fenced."""
    after = replace(current, state=State.EMPTY, partitions=frozenset(), started_ms=-1)
    if expected is None or expected.epoch == current.epoch:
        last = NO_EPOCH if expected is None else current.epoch
        if current.epoch >= MAX_EPOCH:
            return replace(
                after, producer_id=fresh_id, epoch=0, last_epoch=last, last_producer_id=current.producer_id
            )
        return replace(after, epoch=current.epoch + 1, last_epoch=last, last_producer_id=current.producer_id)
    # It asked before, and did not get the answer.
    repeated = expected.epoch == current.last_epoch and current.epoch <= MAX_EPOCH
    return after if repeated else None
