"""The transaction coordinator by itself, with a store and a clock that a test holds."""

from __future__ import annotations

from typing import Any

from ringleader.coordinator.transactions.machine import Finish, Machine, Producer, Result
from ringleader.coordinator.transactions.records import encode_key, encode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import State
from ringleader.protocol.errors import ErrorCode

WALL_MS = 1_700_000_000_000


class World:
    """A machine, its store and its clock. Records become durable at once, unless `held`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = TransactionSettings(**settings)
        self.machine = Machine(self.settings)
        self.now_ms = 0
        self.held = False
        self.store: dict[bytes, bytes] = {}
        self.finishes: list[Finish] = []
        self.fresh = 100
        self.written: list[Any] = []
        self.machine.loaded(0, WALL_MS)

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    def settle(self) -> None:
        """Store what was written, and see what is to be finished."""
        while True:
            box = self.machine.take()
            self.finishes += box.finishes
            self.written += box.writes
            if self.held or not self.written:
                return
            writes, self.written = self.written, []
            for write in writes:
                key = encode_key(write.transactional_id)
                if write.transaction is None:
                    del self.store[key]
                else:
                    self.store[key] = encode_value(write.transaction)
                self.machine.stored(write.transactional_id, self.now_ms)

    def fail(self, error: int = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        """What is on its way cannot be stored."""
        self.held = False
        writes, self.written = self.written, []
        for write in writes:
            self.machine.failed(write.transactional_id, error, self.now_ms)
        self.settle()

    def release(self) -> None:
        self.held = False
        self.settle()

    def ask(self, method: str, *arguments: Any) -> list[Result]:
        """Ask the machine; the list has the answer when there is one."""
        answers: list[Result] = []
        getattr(self.machine, method)(*arguments, answers.append, self.wall_ms)
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

    def add(self, producer: tuple[int, int], *partitions: tuple[str, int], name: str = "t") -> Any:
        answers = self.ask("add_partitions", name, Producer(*producer), partitions)
        return answers[0].error if answers else answers

    def end(self, producer: tuple[int, int], committed: bool = True, name: str = "t") -> Any:
        answers = self.ask("end", name, Producer(*producer), committed)
        return answers[0].error if answers else answers

    def finish(self) -> Finish:
        """All markers of the only transaction that is to be finished are written."""
        (found,) = self.finishes
        self.finishes = []
        self.machine.finished(found.transactional_id, self.wall_ms)
        self.settle()
        return found

    def pass_ms(self, duration_ms: int) -> list[str]:
        """Time goes by; what is aborted."""
        self.now_ms += duration_ms
        due = self.machine.next_deadline()
        aborted = (
            self.machine.tick(self.now_ms, self.wall_ms) if due is not None and due <= self.now_ms else []
        )
        self.settle()
        return aborted

    def state(self, name: str = "t") -> State | None:
        found = self.machine.find(name)
        return None if found is None else found.state

    def restarted(self) -> World:
        """What the next process makes of the store."""
        after = World()
        after.settings, after.now_ms, after.fresh = self.settings, self.now_ms, self.fresh
        after.store = dict(self.store)
        after.machine = Machine(self.settings)
        for key, value in self.store.items():
            after.machine.replay(key, value)
        after.machine.loaded(after.now_ms, after.wall_ms)
        after.settle()
        return after
