"""The transaction coordinator by itself, with a store and a clock that a test holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.coordinator.machine import Append, Notice
from ringleader.coordinator.transactions.machine import Finish, Producer, Result, TransactionShard
from ringleader.coordinator.transactions.records import decode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import V1, V2, State, Transaction
from ringleader.protocol.errors import ErrorCode

WALL_MS = 1_700_000_000_000


def _follows(before: Transaction, after: Transaction) -> None:
    """Each record of a transactional id names the one before: a coordinator of Kafka goes on with
    it."""
    if after.producer_id != before.producer_id:
        assert after.previous_id == before.producer_id
        assert after.epoch == 0


Reply = Callable[[Result], None]


class _Answers(list[Result]):
    """A ticket."""

    def __init__(self, reply: Reply | None) -> None:
        self._reply = reply

    def append(self, result: Result) -> None:
        """The answer is there."""
        super().append(result)
        if self._reply is not None:
            self._reply(result)


class World:
    """A machine, its store and its clock. Records become durable at once, unless `held`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = TransactionSettings(**settings)
        self.now_ms = 0
        self.held = False
        self.store: dict[bytes, bytes] = {}
        self.finishes: list[Finish] = []
        """The transactions to be finished, once for each transactional id."""
        self.fresh = 100
        self.written: list[Append] = []
        """The appends that are on their way to the store."""
        self.aborted: list[str] = []
        """Transactions whose time was over."""
        self.unanswered: list[list[Result]] = []
        self.machine = self._loaded()

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    def _loaded(self) -> TransactionShard:
        machine = TransactionShard(self.settings)
        machine.replay(list(self.store.items()))
        machine.loaded(self.now_ms, self.wall_ms)
        return machine

    def settle(self) -> None:
        """Store what was written, hand out the answers, see what is to be finished."""
        while True:
            box = self.machine.drain()
            assert not self.machine.dirty
            for answer in box.answers:
                assert not answer.ticket, "answered twice"
                answer.ticket.append(answer.response)
            self.unanswered = [answers for answers in self.unanswered if not answers]
            for event in box.events:
                if isinstance(event, Notice):
                    self.aborted.append(event.subject)
                elif all(found.transactional_id != event.transactional_id for found in self.finishes):
                    self.finishes.append(event)
            self.written += box.appends
            if self.held or not self.written:
                return
            appends, self.written = self.written, []
            for append in appends:
                for key, value in append.records:
                    if value is None:
                        del self.store[key]
                    else:
                        if key in self.store:
                            _follows(decode_value(self.store[key]), decode_value(value))
                        self.store[key] = value
            self.machine.durable(appends[-1].position, self.now_ms)

    def fail(self) -> None:
        """The appends under way cannot be stored: the next life of the machine begins."""
        self.held = False
        self.written = []
        unanswered, self.unanswered = self.unanswered, []
        for answers in unanswered:
            answers.append(Result(ErrorCode.NOT_COORDINATOR))
        self.machine = self._loaded()
        self.settle()

    def release(self) -> None:
        self.held = False
        self.settle()

    def ask(self, method: str, *arguments: Any, reply: Reply | None = None) -> list[Result]:
        """Ask the machine; the list has the answer when there is one, and `reply` is called with it."""
        answers: list[Result] = _Answers(reply)
        self.unanswered.append(answers)
        getattr(self.machine, method)(*arguments, answers, self.now_ms)
        self.settle()
        return answers

    def init(
        self, transactional_id: str = "t", expected: tuple[int, int] | None = None, timeout_ms: int = 60_000
    ) -> Any:
        producer = None if expected is None else Producer(*expected)
        answers = self.ask("init_producer_id", transactional_id, timeout_ms, producer, self.fresh + 1)
        if not answers:
            return answers
        error, producer_id, epoch = answers[0]
        self.fresh = max(self.fresh, producer_id)
        return error or (producer_id, epoch)

    def join(self, producer: tuple[int, int], *partitions: tuple[str, int], name: str = "t") -> Any:
        """`add`, in a transaction of V2."""
        return self.add(producer, *partitions, name=name, version=V2)

    def add(
        self, producer: tuple[int, int], *partitions: tuple[str, int], name: str = "t", version: int = V1
    ) -> Any:
        answers: list[Result] = []
        self.unanswered.append(answers)
        self.machine.add_partitions(name, Producer(*producer), partitions, answers, self.now_ms, version)
        self.settle()
        return answers[0].error if answers else answers

    def end_raising(self, producer: tuple[int, int], committed: bool = True, name: str = "t") -> Any:
        """The error, or the producer of the next transaction."""
        fresh_id = self.fresh + 1 if self.machine.runs_out(name) else -1
        answers = self.ask("end_raising", name, Producer(*producer), committed, fresh_id)
        if not answers:
            return answers
        error, producer_id, epoch = answers[0]
        self.fresh = max(self.fresh, producer_id)
        return error or (producer_id, epoch)

    def end(self, producer: tuple[int, int], committed: bool = True, name: str = "t") -> Any:
        answers = self.ask("end", name, Producer(*producer), committed)
        return answers[0].error if answers else answers

    def finish(self) -> Finish:
        """All markers of the only transaction that is to be finished are written."""
        (found,) = self.finishes
        self.finishes = []
        self.finished(found)
        return found

    def finished(self, found: Finish) -> None:
        """All markers of a transaction are written."""
        self.machine.finished(found.transactional_id, found.producer_id, found.epoch, self.now_ms)
        self.settle()

    def pass_ms(self, duration_ms: int) -> list[str]:
        """Time goes by; what is known to be aborted since the last time."""
        self.now_ms += duration_ms
        while (due := self.machine.next_deadline()) is not None and due <= self.now_ms:
            self.machine.tick(self.now_ms)
        self.settle()
        aborted, self.aborted = self.aborted, []
        return aborted

    def state(self, name: str = "t") -> State | None:
        found = self.machine.find(name)
        return None if found is None else found.state

    def restarted(self) -> World:
        """The machine that the next process makes of the store."""
        after = World()
        after.settings, after.now_ms, after.fresh = self.settings, self.now_ms, self.fresh
        after.store = dict(self.store)
        after.machine = after._loaded()
        after.settle()
        return after
