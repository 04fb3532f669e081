"""The coordinators of transactional ids: who leads a partition of their topic has the ids of it.

As Kafka's TransactionCoordinator before KIP-890: a transaction begins with the first partition that is taken
in, ends when EndTxn, a new producer or time decides so, and is over when each of its partitions has a marker.
A coordinator that takes over writes the markers of what is decided again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.transactions.brokers import TxnKafka

STATE_TOPIC = "__transaction_state"
STATE_PARTITIONS = 2
EMPTY, ONGOING = "Empty", "Ongoing"
PREPARE = {True: "PrepareCommit", False: "PrepareAbort"}
COMPLETE = {True: "CompleteCommit", False: "CompleteAbort"}
_OWNERS = "x-"
"""Ids under which nodes own partitions begin so."""
_MARKER_MS = (0, 1, 5, 50, 400, 4_000)

Place = tuple[str, int]


@dataclass(eq=False)
class Transaction:
    """The state of a transactional id."""

    name: str
    producer_id: int
    epoch: int = 0
    state: str = EMPTY
    timeout_ms: int = 60_000
    start_ms: int = -1
    serial: int = 0
    """Which of all transactions this is, or was last."""
    committed: bool = False
    partitions: set[Place] = field(default_factory=set)
    unmarked: set[Place] = field(default_factory=set)

    @property
    def ends(self) -> bool:
        """Whether it is decided, and not over."""
        return self.state in PREPARE.values()


class Coordination:
    """All coordinators."""

    def __init__(self, brokers: TxnKafka) -> None:
        self._brokers = brokers
        self._world = brokers.world
        self.known: dict[str, Transaction] = {}
        self._loading_until_s: dict[int, float] = {}
        """By partition of their topic."""
        self._held: dict[Place, list[Callable[[], None]]] = {}
        """Partitions to which no marker is written now, and what is to be done afterwards."""
        self._serial = 0
        self._next_id = 50_000

    def answer(self, request: Any, broker: int) -> Any:
        """None: it is not about a transaction of a client."""
        if isinstance(request, kafka.InitProducerIdRequest):
            name = request.transactional_id
            if name is None:
                self._next_id += 1
                return kafka.InitProducerIdResponse(producer_id=self._next_id, producer_epoch=0)
            if name.startswith(_OWNERS):
                return None
            code = self._away(name, broker)
            return kafka.InitProducerIdResponse(error_code=code) if code else self._init(request)
        if isinstance(request, kafka.FindCoordinatorRequest):
            [name] = request.coordinator_keys
            if name.startswith(_OWNERS):
                return None
            found = self._brokers.brokers[self._leader(name)]
            one = kafka.FindCoordinatorResponseCoordinator(name, *found)
            return kafka.FindCoordinatorResponse(coordinators=[one])
        if isinstance(request, kafka.AddPartitionsToTxnRequest):
            code = self._away(request.v3_and_below_transactional_id, broker) or self._add(request)
            return _added(request, code)
        if isinstance(request, kafka.EndTxnRequest):
            code = self._away(request.transactional_id, broker) or self._end(request)
            return kafka.EndTxnResponse(error_code=code)
        if isinstance(request, kafka.DescribeTransactionsRequest):
            states = [self._describe(name, broker) for name in request.transactional_ids]
            return kafka.DescribeTransactionsResponse(transaction_states=states)
        if isinstance(request, kafka.ListTransactionsRequest):
            return self._list(request, broker)
        return None

    # ---- who ----

    def partition_of(self, name: str) -> int:
        """Of their topic."""
        return int(name.rpartition("-")[2]) % STATE_PARTITIONS

    def _leader(self, name: str) -> int:
        return self._brokers.leading[STATE_TOPIC, self.partition_of(name)]

    def _is_loading(self, partition: int) -> bool:
        return self._world.time_s < self._loading_until_s.get(partition, 0.0)

    def _away(self, name: str, broker: int) -> int:
        if self._leader(name) != broker:
            return int(ErrorCode.NOT_COORDINATOR)
        if self._is_loading(self.partition_of(name)):
            return int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        lucky = not self._world.trouble or self._world.rng.random() >= 0.01
        return 0 if lucky else int(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def moved(self, partition: int) -> None:
        """Another broker leads: it loads for a while, and writes the markers again that may be missing."""
        rng = self._world.rng
        self._world.checks.counts["coordinators moved"] += 1
        loads_s = rng.choice([0.0, 0.05, 1.0, 7.0])
        self._loading_until_s[partition] = self._world.time_s + loads_s
        for one in self.known.values():
            if one.ends and self.partition_of(one.name) == partition:
                one.unmarked = set(one.partitions)
                self._write_markers(one, round(loads_s * 1000))

    def silence(self, for_s: float) -> None:
        """One of them loads for so long."""
        partition = self._world.rng.randrange(STATE_PARTITIONS)
        self._loading_until_s[partition] = self._world.time_s + for_s

    def hold(self, place: Place, for_s: float) -> None:
        """The markers for a partition come all at once after that time."""
        if place not in self._held:
            self._held[place] = []
            self._world.at(self._world.time_s + for_s, partial(self._release, place))

    def _release(self, place: Place) -> None:
        held = self._held.pop(place)
        self._world.rng.shuffle(held)
        for mark in held:
            mark()

    # ---- transactions ----

    def _init(self, request: kafka.InitProducerIdRequest) -> Any:
        name = request.transactional_id or ""
        found = self.known.get(name)
        if found is None:
            self._next_id += 1
            found = self.known[name] = Transaction(name, self._next_id, epoch=-1)
        if found.state == ONGOING:
            found.epoch += 1  # who had it is fenced
            self._decide(found, committed=False)
        if found.ends:
            return kafka.InitProducerIdResponse(error_code=int(ErrorCode.CONCURRENT_TRANSACTIONS))
        found.epoch += 1
        found.state = EMPTY
        found.timeout_ms = request.transaction_timeout_ms
        return kafka.InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.epoch)

    def _fenced(self, name: str, producer_id: int, epoch: int) -> int:
        found = self.known.get(name)
        if found is None or found.producer_id != producer_id:
            return int(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return 0 if found.epoch == epoch else int(ErrorCode.PRODUCER_FENCED)

    def _add(self, request: kafka.AddPartitionsToTxnRequest) -> int:
        name = request.v3_and_below_transactional_id
        code = self._fenced(name, request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        if code:
            return code
        found = self.known[name]
        if found.ends:
            return int(ErrorCode.CONCURRENT_TRANSACTIONS)
        if found.state != ONGOING:
            self._serial += 1
            found.state, found.serial, found.partitions = ONGOING, self._serial, set()
            found.start_ms = 1_700_000_000_000 + self._world.now_ms
            self._world.later(found.timeout_ms, partial(self._expire, found, found.serial))
        for topic in request.v3_and_below_topics:
            found.partitions |= {(topic.name, number) for number in topic.partitions}
        return 0

    def _expire(self, one: Transaction, serial: int) -> None:
        if one.serial == serial and one.state == ONGOING:
            self._world.checks.counts["timed out"] += 1
            one.epoch += 1
            self._decide(one, committed=False)

    def expire_one(self) -> None:
        """Time is over for one that is open."""
        open_ones = [one for one in self.known.values() if one.state == ONGOING]
        if open_ones:
            one = self._world.rng.choice(open_ones)
            self._expire(one, one.serial)

    def _end(self, request: kafka.EndTxnRequest) -> int:
        name = request.transactional_id
        code = self._fenced(name, request.producer_id, request.producer_epoch)
        if code:
            return code
        found = self.known[name]
        if found.state == ONGOING:
            self._decide(found, committed=request.committed)
            return 0
        if found.ends and found.committed == request.committed:
            return int(ErrorCode.CONCURRENT_TRANSACTIONS)
        return 0 if found.state == COMPLETE[request.committed] else int(ErrorCode.INVALID_TXN_STATE)

    def _decide(self, one: Transaction, *, committed: bool) -> None:
        self._world.say("decided", (one.name, one.serial, committed))
        one.state, one.committed, one.unmarked = PREPARE[committed], committed, set(one.partitions)
        self._world.checks.decided(one.serial, committed)
        self._write_markers(one, 0)

    def _write_markers(self, one: Transaction, after_ms: int) -> None:
        for place in sorted(one.unmarked):
            late_ms = self._world.rng.choice(_MARKER_MS if self._world.trouble else _MARKER_MS[:4])
            self._world.later(after_ms + late_ms, partial(self._mark, one, one.serial, place))

    def _mark(self, one: Transaction, serial: int, place: Place) -> None:
        if one.serial != serial or not one.ends:
            return  # from a coordinator before
        if place in self._held:
            self._held[place].append(partial(self._mark, one, serial, place))
            return
        if place in self._brokers.short:
            self._world.later(100, partial(self._mark, one, serial, place))
            return
        log = self._brokers.logs[place]
        offset = log.mark(one.producer_id, one.epoch, self._world.now_ms, one.committed)
        self._world.checks.marked(place[1], one.producer_id, offset, serial, one.committed)
        self._brokers.tell(log)
        one.unmarked.discard(place)
        if not one.unmarked:
            self._world.later(self._world.rng.choice((1, 5, 100)), partial(self._complete, one, serial))

    def _complete(self, one: Transaction, serial: int) -> None:
        if one.serial == serial and one.ends and not one.unmarked:
            one.state, one.partitions = COMPLETE[one.committed], set()

    # ---- how they stand ----

    def _describe(self, name: str, broker: int) -> Any:
        state = kafka.DescribeTransactionsResponseTransactionState
        if code := self._away(name, broker):
            return state(error_code=code, transactional_id=name)
        found = self.known.get(name)
        if found is None:
            return state(error_code=int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), transactional_id=name)
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(found.partitions):
            topics.setdefault(topic, []).append(number)
        return state(
            transactional_id=name,
            transaction_state=found.state,
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.start_ms,
            producer_id=found.producer_id,
            producer_epoch=found.epoch,
            topics=[kafka.DescribeTransactionsResponseTopicData(*item) for item in topics.items()],
        )

    def _list(self, request: kafka.ListTransactionsRequest, broker: int) -> Any:
        own = [
            number
            for number in range(STATE_PARTITIONS)
            if self._brokers.leading[STATE_TOPIC, number] == broker
        ]
        if any(map(self._is_loading, own)):
            return kafka.ListTransactionsResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        wanted = request.producer_id_filters
        states = [
            kafka.ListTransactionsResponseTransactionState(one.name, one.producer_id, one.state)
            for one in self.known.values()
            if self.partition_of(one.name) in own and (not wanted or one.producer_id in wanted)
        ]
        return kafka.ListTransactionsResponse(transaction_states=states)


def _added(request: kafka.AddPartitionsToTxnRequest, code: int) -> kafka.AddPartitionsToTxnResponse:
    one = kafka.AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult
    result = kafka.AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult
    return kafka.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            result(topic.name, [one(partition, code) for partition in topic.partitions])
            for topic in request.v3_and_below_topics
        ]
    )
