"""The other servers of a benchmark: an Apache Kafka broker and kfake, each a process on the server's CPU.

Both need tools that a machine may lack (a JDK and Maven; Go). A peer that cannot run is left out, and the run
says so on the screen, in its JSON file and in the document.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from bench.build import NoGoError, kfake_program
from bench.plan import KAFKA, KFAKE, TOPIC
from bench.processes import pinned
from bench.report import say
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    OffsetFetchRequest,
)
from tests.interop.kafka import BENCH_JVM, KAFKAS_PARTITIONS, VERSION, KafkaBroker, classpath
from tests.interop.maven import InteropError
from tests.support.rawclient import Address, RawConnection
from tests.support.tied import tied

_READY_TIMEOUT_S = 180.0
_TOPIC_RESOURCE, _SET, _DELETE = 2, 0, 1
_NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


CONSUMER_SESSION = {
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "600000",
}
"""A member of the consumer protocol has no timeout of its own, and must outlive what else is measured."""
_PROPERTIES = {
    # It stands still while others are measured; its controller must not take it for dead.
    "broker.session.timeout.ms": "120000",
    **KAFKAS_PARTITIONS,
    **CONSUMER_SESSION,
}


@dataclass(frozen=True, slots=True)
class Broker:
    """A running peer. `about`: its version and settings, for the reader of the numbers."""

    name: str
    address: Address
    pid: int
    about: str
    warmup_s: float = 0.0
    """CPU seconds under load until it runs at its speed."""


@dataclass(frozen=True, slots=True)
class Brokers:
    """The peers of a run by name, and why those that are missing are missing."""

    running: dict[str, Broker]
    left_out: dict[str, str]

    def to_dict(self) -> dict[str, dict[str, str]]:
        """For the JSON file."""
        return {
            "brokers": {name: one.about for name, one in self.running.items()},
            "left_out": self.left_out,
        }


def await_group(address: Address, group_id: str) -> None:
    """Waits until the coordinator of a group answers: the first use of groups makes Kafka create their topic.

    Raises ``TimeoutError``.
    """
    until = time.monotonic() + _READY_TIMEOUT_S
    with RawConnection(address) as connection:
        while time.monotonic() < until:
            code = connection.call(FindCoordinatorRequest(key=group_id), 2).error_code
            if code == 0:
                code = connection.call(OffsetFetchRequest(group_id=group_id, topics=[]), 5).error_code
            if code not in _NOT_YET:  # kfake knows no group that nobody has joined, and says so
                return
            time.sleep(0.05)  # there is nothing to wait on: the broker tells nobody when it is ready
    raise TimeoutError(f"no coordinator for {group_id} after {_READY_TIMEOUT_S:.0f} s")


def create_topic(address: Address, partitions: int) -> None:
    """The topic whose offsets are committed."""
    topic = CreateTopicsRequestCreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1)
    with RawConnection(address) as connection:
        [answer] = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 4).topics
    if answer.error_code:
        raise RuntimeError(f"CreateTopics: {error_name(answer.error_code)}")


def sync_each_commit(address: Address, on: bool) -> None:
    """Makes Kafka sync its offsets topic with each write (``log.flush.interval.messages=1``), or not.

    By default it does not.
    """
    name, operation = "flush.messages", _SET if on else _DELETE
    config = IncrementalAlterConfigsRequestAlterableConfig(name, operation, "1" if on else None)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        _TOPIC_RESOURCE, "__consumer_offsets", [config]
    )
    with RawConnection(address) as connection:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        [answer] = connection.call(request, 0).responses
    if answer.error_code:
        raise RuntimeError(f"IncrementalAlterConfigs: {error_name(answer.error_code)}")


@contextlib.contextmanager
def kafka(
    directory: Path, cpu: int, partitions: int, warmup_s: float, jvm: Sequence[str] = BENCH_JVM
) -> Iterator[Broker]:
    """Apache Kafka's broker with its defaults but for the initial delay. Raises `InteropError`."""
    with KafkaBroker(directory / "kafka", properties=_PROPERTIES, jvm=jvm, cpus=[cpu]) as broker:
        address = (broker.host, broker.port)
        create_topic(address, partitions)
        await_group(address, "first")
        yield Broker(KAFKA, address, broker.pid, f"{VERSION}, one broker (KRaft), {' '.join(jvm)}", warmup_s)


@contextlib.contextmanager
def kfake(directory: Path, cpu: int, partitions: int, *, synced: bool = False) -> Iterator[Broker]:
    """kfake in memory, or with its state in files synced with each write. Raises `NoGoError`."""
    options = ["--topic", f"{TOPIC}:{partitions}"]
    if synced:
        options += ["--data-dir", str(directory / "kfake"), "--sync"]
    process = subprocess.Popen(
        pinned(cpu, [str(kfake_program()), *options]), stdout=subprocess.PIPE, text=True
    )
    tied(process)
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        if len(words) != 4 or words[0] != "ready":
            raise RuntimeError("kfake did not start")
        host, _, port = words[1].rpartition(":")
        place = "in files, synced" if synced else "in memory"
        yield Broker(KFAKE, (host, int(port)), process.pid, f"{words[2]} ({words[3]}), {place}")
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _missing(name: str) -> str | None:
    """The reason why a peer cannot run here; None when it can."""
    check: Callable[[], object] = classpath if name == KAFKA else kfake_program
    try:
        check()
    except (InteropError, NoGoError) as problem:
        return str(problem)
    return None


@contextlib.contextmanager
def brokers(
    names: Sequence[str],
    directory: Path,
    cpu: int,
    *,
    partitions: int,
    warmup_s: float,
    jvm: Sequence[str] = BENCH_JVM,
) -> Iterator[Brokers]:
    """Starts those of `names` that can run here; a line says which cannot, and why.

    `warmup_s`: CPU seconds of the JVM under each load before it is measured.
    """
    left_out = {name: why for name in names if (why := _missing(name)) is not None}
    for name, why in left_out.items():
        say(f"  [yellow]left out: {name}[/]: {escape(why)}")
    with contextlib.ExitStack() as stack:
        running = {}
        for name in names:
            if name in left_out:
                continue
            one = (
                kafka(directory, cpu, partitions, warmup_s, jvm)
                if name == KAFKA
                else kfake(directory, cpu, partitions)
            )
            running[name] = stack.enter_context(one)
        yield Brokers(running, left_out)
