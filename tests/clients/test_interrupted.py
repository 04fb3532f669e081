"""Applications that are interrupted, exit, raise, or commit from elsewhere: every record is accounted for.

The rule: none is skipped, and none is committed before the application has asked for the next ones.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any
from weakref import WeakSet

import pytest

from ringleader import (
    Admin,
    CallbackFailedError,
    OffsetAndMetadata,
    RecordDeserializationError,
    SyncGroupConsumer,
    TopicPartition,
)
from ringleader.clients.fetch.model import Batch
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.clients.test_process_ends import run
from tests.support.consuming import PATIENCE_S, QUICK, Sink, Source, consumer, read_count, until
from tests.support.interrupting import InterruptedByTestError, interrupts

TOTAL = 200


class Ledger:
    """The application's records: those that it got, and those that it has asked past."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.passed: dict[TopicPartition, int] = {}
        self._hand: dict[TopicPartition, int] = {}

    def processes(self) -> None:
        """The next records are asked for: those in hand are processed."""
        self.passed |= self._hand
        self._hand = {}

    def got(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.sink.add(batch)
            self._hand[batch.topic_partition] = batch.next_offset

    def check(self, committed: dict[TopicPartition, OffsetAndMetadata], also_in_hand: bool = False) -> None:
        most = self.passed | (self._hand if also_in_hand else {})
        for partition, at in committed.items():
            assert at.offset <= most.get(partition, 0), partition


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    made = Source(coordinator)
    made.fill(batches=5, count=10)
    return made


def sync_consumer(coordinator: Coordinator, **options: Any) -> SyncGroupConsumer:
    return SyncGroupConsumer(coordinator.bootstrap, "g", ["t"], **(QUICK | {"max_poll_records": 7} | options))


REFUSED = 9
"""Of each partition the deserializer refuses every record whose number ends so, if it is asked to."""


def all_but_some(data: bytes) -> bytes:
    if data.endswith(b"%d" % REFUSED):
        raise ValueError("refused")
    return data


@pytest.mark.parametrize("refuses", [False, True], ids=["plain", "with bad records"])
@pytest.mark.parametrize("seed", range(4), indirect=True)
def test_wherever_a_blocking_application_is_interrupted_no_record_is_lost(
    coordinator: Coordinator, source: Source, seed: int, refuses: bool
) -> None:
    """In the middle of a deserializer, too; records that it refuses are skipped, one by one."""
    chance, ledger, interrupted = random.Random(seed), Ledger(), 0
    refused: set[tuple[TopicPartition, int | None]] = set()
    read = all_but_some if refuses else None
    with sync_consumer(coordinator, auto_commit_interval_ms=5, value_deserializer=read) as one:
        one.wait_assigned(PATIENCE_S)
        while ledger.sink.total + len(refused) < TOTAL:
            ledger.processes()
            limit = chance.choice((1, 3, 10, None))
            try:
                with interrupts(chance, chance.choice((0.01, 0.03, 0.1)), "clients/consumer/sync.py"):
                    batches = one.getmany(limit, timeout_s=PATIENCE_S)
            except RecordDeserializationError as error:
                if isinstance(error.__cause__, InterruptedByTestError):
                    interrupted += 1  # in the deserializer: it is asked again
                    continue
                place = error.topic, error.partition
                refused.add((place, error.offset))
                one.skip(error)
                ledger.passed[place] = error.next_offset
                continue
            except InterruptedByTestError:
                interrupted += 1
                if chance.random() < 0.3:
                    ledger.check(one.committed())
                continue
            assert sum(map(len, batches)) <= (7 if limit is None else limit)
            ledger.got(batches)
            ledger.check(one.committed())
            if chance.random() < 0.2:
                one.commit()
                ledger.check(one.committed(), also_in_hand=True)
        if not refuses:
            ledger.sink.exactly(source)
        assert refused == {
            (place, number)
            for place, count in source.counts.items()
            for number in range(REFUSED, count if refuses else 0, 10)
        }
        for place, offsets in ledger.sink.offsets.items():
            expected = set(range(source.counts[place])) - {at for of, at in refused if of == place}
            assert offsets == sorted(expected)
        assert interrupted
        assert one.getmany(timeout_s=0) == []
        one.commit()
        assert {at.offset for at in one.committed().values()} == {TOTAL // 4}


def test_the_end_of_an_object_that_is_held_weakly_is_not_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python would drop the exception, and no caller would get it."""
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    held = [Ledger()]
    kept = WeakSet(held)

    def let_go() -> None:
        with interrupts(random.Random(), 1, "clients/test_interrupted.py"):
            held[:] = []

    with pytest.raises(InterruptedByTestError):
        let_go()
    assert (dropped, list(kept)) == ([], [])


@pytest.mark.parametrize("seed", range(2), indirect=True)
def test_signals_that_raise_lose_no_record(coordinator: Coordinator, source: Source, seed: int) -> None:
    """The same with real ones, at moments that are drawn."""
    chance, ledger, interrupted, armed = random.Random(seed), Ledger(), 0, False

    def handler(_number: int, _frame: FrameType | None) -> None:
        if armed:
            raise InterruptedByTestError

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with sync_consumer(coordinator, auto_commit_interval_ms=5) as one:
            one.wait_assigned(PATIENCE_S)
            while ledger.sink.total < TOTAL:
                ledger.processes()
                batches: list[Batch] | None = None
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00001, 0.002))
                    armed = True
                    batches = one.getmany(chance.choice((1, 5)), timeout_s=PATIENCE_S)
                    armed = False
                except InterruptedByTestError:
                    interrupted += 1
                armed = False
                if batches is not None:
                    ledger.got(batches)
                ledger.check(one.committed())
            signal.setitimer(signal.ITIMER_REAL, 0)
            ledger.sink.exactly(source)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def offset_of(committed: dict[TopicPartition, OffsetAndMetadata], place: TopicPartition) -> int:
    return committed[place].offset if place in committed else 0


def test_a_commit_of_another_thread_leaves_out_what_is_worked_on(
    coordinator: Coordinator, source: Source
) -> None:
    ledger = Ledger()
    with sync_consumer(coordinator, auto_commit=False) as one:
        for _ in range(3):
            ledger.processes()
            ledger.got(one.getmany(timeout_s=PATIENCE_S))
            other = threading.Thread(target=one.commit)
            other.start()
            other.join()
            committed = one.committed()
            ledger.check(committed)
            assert {at: to for at, to in ledger.passed.items() if offset_of(committed, at) != to} == {}
        one.commit()
        ledger.processes()
        assert {at: offset.offset for at, offset in one.committed().items() if offset.offset} == ledger.passed


@pytest.mark.parametrize("way", ["wait_for", "task", "another task", "timer"])
async def test_a_commit_of_another_task_leaves_out_what_is_worked_on(
    coordinator: Coordinator, source: Source, way: str
) -> None:
    """The task that was given the records has them in hand, and nobody else: `wait_for` makes a task of its
    own before Python 3.12, and cannot be distinguished from records that are fetched ahead."""
    ledger = Ledger()
    async with consumer(coordinator, auto_commit=False, max_poll_records=10) as one:

        async def ask() -> list[Batch]:
            return await one.getmany(timeout_s=PATIENCE_S)

        async def commit() -> None:
            await one.commit()

        for _ in range(3):
            ledger.processes()
            if way == "wait_for":
                ledger.got(await asyncio.wait_for(one.getmany(), PATIENCE_S))
                await one.commit()
            elif way == "task":
                ledger.got(await asyncio.create_task(ask()))
                await one.commit()
            elif way == "another task":
                ledger.got(await ask())
                await asyncio.create_task(commit())
            else:
                ledger.got(await ask())
                loop = asyncio.get_running_loop()
                done: asyncio.Future[Any] = loop.create_future()
                if ledger.passed:  # else there is nothing to commit, and nothing to hear of
                    loop.call_soon(partial(one.commit_nowait, on_done=done.set_result))
                    await done
            same_task = way == "wait_for" and sys.version_info >= (3, 12)
            ledger.check(await one.committed(), also_in_hand=same_task)
        if same_task:
            ledger.processes()
        assert offsets_of(await one.committed()) == ledger.passed


async def test_offsets_left_out_of_a_commit_are_reported_once_and_can_be_named(
    coordinator: Coordinator, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger()
    async with consumer(coordinator, auto_commit=False, max_poll_records=10) as one:
        for _ in range(2):
            ledger.processes()
            batches = await asyncio.create_task(one.getmany(timeout_s=PATIENCE_S))
            ledger.got(batches)
            await one.commit()
            ledger.check(await one.committed())
        assert caplog.text.count("commit() leaves out the newest records") == 1
        await one.commit(batches)
        ledger.processes()
        assert offsets_of(await one.committed()) == ledger.passed
        batch = await asyncio.create_task(anext(one))
        ledger.got([batch])
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        one.commit_nowait(batch, on_done=done.set_result)
        assert await done is None
        ledger.processes()
        assert offsets_of(await one.committed()) == ledger.passed
        await one.commit([])
        with pytest.raises(ValueError, match="offsets are"):
            await one.commit([1])  # type: ignore[list-item]


def offsets_of(committed: dict[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
    return {at: to.offset for at, to in committed.items() if to.offset}


PREFETCH = """
import asyncio, os, signal, sys
from ringleader import GroupConsumer

async def main():
    options = {"auto_offset_reset": "earliest", "max_poll_records": 7, "auto_commit": False}
    async with GroupConsumer(sys.argv[1], "g", ["t"], **options) as one:
        ahead = asyncio.create_task(one.getmany())
        for turn in range(5):
            batches = await ahead
            ahead = asyncio.create_task(one.getmany())
            for batch in batches:
                print(batch.topic, batch.partition, batch.next_offset, flush=True)
            await asyncio.wait([ahead])
            await one.commit()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_records_that_were_fetched_ahead_are_not_committed_before_they_are_worked_on(
    coordinator: Coordinator, source: Source
) -> None:
    """The process is killed with a batch that its application never saw."""
    ended = subprocess.run(
        [sys.executable, "-c", PREFETCH, coordinator.bootstrap],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    worked: dict[TopicPartition, int] = {}
    for line in ended.stdout.splitlines():
        topic, partition, offset = line.split()
        worked[topic, int(partition)] = int(offset)

    async def committed() -> dict[TopicPartition, OffsetAndMetadata]:
        async with Admin(coordinator.bootstrap) as admin:
            return await admin.group_offsets("g")

    assert offsets_of(asyncio.run(committed())) == worked


EXITS: list[type[BaseException]] = [
    ValueError,
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
]


@pytest.mark.parametrize("exit_", EXITS)
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_a_callback_that_raises_ends_the_next_call(
    coordinator: Coordinator, source: Source, exit_: type[BaseException], kind: str
) -> None:
    """Nothing of its partitions is read or committed before the application has learned of it."""
    raised: list[str] = []

    def end(name: str) -> None:
        if name not in raised:
            raised.append(name)
            raise exit_(f"of {name}")

    async def end_later(name: str) -> None:
        await asyncio.sleep(0)
        end(name)

    def callback(name: str) -> Callable[[list[TopicPartition]], Any]:
        return lambda _partitions: end(name) if kind == "plain" else end_later(name)

    callbacks: dict[str, Any] = {name: callback(name) for name in ("on_assigned", "on_revoked")}
    async with asyncio.timeout(PATIENCE_S):
        async with consumer(coordinator, auto_commit_interval_ms=5, **callbacks) as one:
            with pytest.raises(CallbackFailedError, match="the callback on_assigned raised") as found:
                await one.getmany()
            assert found.value.callback == "on_assigned"
            cause = found.value.__cause__
            assert isinstance(cause, exit_) or isinstance(cause and cause.__cause__, exit_)
            assert await one.committed() == {}
            sink = Sink()
            while sink.total < TOTAL:
                for batch in await one.getmany():
                    sink.add(batch)
            sink.exactly(source)
            await one.subscribe(["u"])
            with pytest.raises(CallbackFailedError, match="the callback on_revoked raised"):
                await one.getmany()
    assert raised == ["on_assigned", "on_revoked"]


async def test_nothing_of_its_partitions_is_read_or_committed_before_the_application_has_heard(
    coordinator: Coordinator, source: Source
) -> None:
    """A commit without offsets says what auto-commit would."""

    def fail(_partitions: list[TopicPartition]) -> None:
        raise ValueError("not ready")

    async with consumer(coordinator, on_assigned=fail, auto_commit=False) as one:
        await until(lambda: "t" in {topic for topic, _ in one.assignment()})
        for place in one.assignment():
            assert await one.position(place, timeout_s=PATIENCE_S) == 0
        await until(lambda: bool(one._failures))
        await one.commit()
        assert await one.committed() == {}
        assert coordinator.faults.seen("Fetch") == []
        with pytest.raises(CallbackFailedError):
            await one.getmany(timeout_s=PATIENCE_S)
        (await read_count(one, TOTAL)).exactly(source)


@pytest.mark.parametrize("way", ["revoked", "lost"])
async def test_what_came_back_waits_for_its_own_failure(
    coordinator: Coordinator, source: Source, way: str
) -> None:
    """Two failures of on_assigned about the same partition, which went away in between."""
    calls: list[list[TopicPartition]] = []

    def fail(partitions: list[TopicPartition]) -> None:
        if partitions:
            calls.append(partitions)
            raise ValueError("not ready")

    async with consumer(coordinator, on_assigned=fail, auto_commit=False) as one:
        await until(lambda: len(calls) == 1)
        if way == "revoked":
            await one.subscribe(["u"])
            await until(lambda: not one.assignment())
            await one.subscribe(["t"])
        else:
            coordinator.faults.error("Heartbeat", ErrorCode.UNKNOWN_MEMBER_ID, times=1)
        await until(lambda: len(calls) == 2)
        for _ in range(2):
            for place in one.assignment():
                assert await one.position(place, timeout_s=PATIENCE_S) == 0
            await one.commit()
            assert await one.committed() == {}
            assert coordinator.faults.seen("Fetch") == []
            with pytest.raises(CallbackFailedError):
                await one.getmany(timeout_s=PATIENCE_S)
        (await read_count(one, TOTAL)).exactly(source)


async def test_nothing_is_committed_while_on_assigned_runs(coordinator: Coordinator, source: Source) -> None:
    running, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_partitions: list[TopicPartition]) -> None:
        running.set()
        await go_on.wait()

    async with consumer(coordinator, on_assigned=wait, auto_commit=False) as one:
        await running.wait()
        for place in one.assignment():
            assert await one.position(place, timeout_s=PATIENCE_S) == 0
        await one.commit()
        assert await one.committed() == {}
        go_on.set()
        await one.wait_assigned(PATIENCE_S)
        await one.commit()
        assert {at.offset for at in (await one.committed()).values()} == {0}


@pytest.mark.parametrize("exit_", EXITS)
def test_a_callback_that_exits_does_not_hang_a_blocking_consumer(
    coordinator: Coordinator, source: Source, exit_: type[BaseException]
) -> None:
    raised: list[int] = []

    def assigned(_partitions: list[TopicPartition]) -> None:
        if not raised:
            raised.append(1)
            raise exit_("of the callback")

    heard = threading.Event()

    def done(_error: object) -> None:
        heard.set()
        raise exit_("of on_done")

    with sync_consumer(coordinator, on_assigned=assigned) as one:
        with pytest.raises(CallbackFailedError, match="the callback on_assigned raised"):
            one.getmany(timeout_s=PATIENCE_S)
        sink = Sink()
        for batch in one.getmany(timeout_s=PATIENCE_S):
            sink.add(batch)
        one.commit_nowait(on_done=done)
        assert heard.wait(PATIENCE_S)
        with pytest.raises(CallbackFailedError, match="the callback on_done raised"):
            one.getmany(timeout_s=PATIENCE_S)
        while sink.total < TOTAL:
            for batch in one.getmany(timeout_s=PATIENCE_S):
                sink.add(batch)
        sink.exactly(source)


@pytest.mark.parametrize("exit_", EXITS)
@pytest.mark.parametrize("kind", ["plain", "coroutine", "blocking"])
async def test_of_partitions_that_are_lost_it_is_the_same(
    coordinator: Coordinator, source: Source, exit_: type[BaseException], kind: str
) -> None:
    def end(_partitions: list[TopicPartition]) -> None:
        raise exit_("of on_lost")

    async def end_later(partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        end(partitions)

    def lose() -> None:
        coordinator.faults.error("Heartbeat", ErrorCode.UNKNOWN_MEMBER_ID, times=1)

    async def forgotten() -> None:
        """The next join would wait for the session of the lost member, which the coordinator still knows."""
        await until(lambda: len(coordinator.faults.seen("JoinGroup")) == 4)
        coordinator.advance_clock(QUICK["session_timeout_ms"] / 1_000)

    raised = pytest.raises(CallbackFailedError, match="the callback on_lost raised")
    if kind == "blocking":

        def block() -> None:
            with sync_consumer(coordinator, on_lost=end) as one:
                one.wait_assigned(PATIENCE_S)
                lose()
                with raised:
                    while True:
                        one.getmany(timeout_s=PATIENCE_S)
                asyncio.run(forgotten())
                assert len(one.wait_assigned(PATIENCE_S)) == 4

        await asyncio.to_thread(block)
        return
    async with consumer(coordinator, on_lost=end if kind == "plain" else end_later) as one:
        await one.wait_assigned(PATIENCE_S)
        lose()
        async with asyncio.timeout(PATIENCE_S):
            with raised:
                while True:
                    await one.getmany()
        await forgotten()
        await until(lambda: len(one.assignment()) == 4)


FORK = """
import asyncio, json, os, sys, time
from ringleader import ClientError, GroupConsumer, SyncGroupConsumer

where = sys.argv[1]
options = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 50, "auto_offset_reset": "earliest"}
CALLS = {
    "getmany": lambda one: one.getmany(timeout_s=1),
    "getone": lambda one: one.getone(1),
    "commit": lambda one: one.commit(timeout_s=1),
    "commit_nowait": lambda one: one.commit_nowait(),
    "committed": lambda one: one.committed(timeout_s=1),
    "position": lambda one: one.position(("t", 0), timeout_s=1),
    "seek": lambda one: one.seek(("t", 0), 1),
    "lag": lambda one: one.lag(timeout_s=1),
    "assignment": lambda one: one.assignment(),
    "wait_assigned": lambda one: one.wait_assigned(1),
    "subscribe": lambda one: one.subscribe(["u"]),
    "start": lambda one: one.start(timeout_s=1),
    "stop": lambda one: one.stop(timeout_s=1),
}

async def result(found):
    return await found if asyncio.iscoroutine(found) else found

def tell(name, error):
    os.write(1, f"{name}: {type(error).__name__}: {error}\\n".encode())

def blocking():
    with SyncGroupConsumer(where, "g", ["t"], **options) as one:
        one.wait_assigned(20)
        if (child := os.fork()) == 0:
            for name, call in CALLS.items():
                try:
                    call(one)
                    os.write(1, f"{name} went through\\n".encode())
                except ClientError as error:
                    tell(name, error)
            os._exit(0)
        os.waitpid(child, 0)
        one.getmany(timeout_s=0)
        os.write(1, b"the parent goes on\\n")

async def looping():
    async with GroupConsumer(where, "g", ["t"], **options) as one:
        await one.wait_assigned(20)
        if (child := os.fork()) == 0:
            for name, call in CALLS.items():
                try:
                    await result(call(one))
                    os.write(1, f"{name} went through\\n".encode())
                except ClientError as error:
                    tell(name, error)
            os._exit(0)
        os.waitpid(child, 0)
        await one.getmany(timeout_s=0)
        os.write(1, b"the parent goes on\\n")

"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", ["blocking()", "asyncio.run(looping())"])
def test_in_a_copy_of_the_process_every_call_says_so_at_once(coordinator: Coordinator, kind: str) -> None:
    lines = run(coordinator, textwrap.dedent(FORK) + kind, head="").splitlines()
    assert lines.pop() == "the parent goes on"
    assert len(lines) == 13
    assert all("a copy of it (fork): make a new consumer here" in line for line in lines), lines
