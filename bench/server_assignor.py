"""How long a large group of the consumer protocol keeps others waiting while its target is made.

Measured are the CPU time of each call of the machine that has a part in it; and, through a daemon, the
heartbeats of a small group, one after the other, next to a large group that is quiet, that forms, and that
loses a member.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.plan import Plan
from bench.processes import Pins, daemon, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import Current, Subscription
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.machine import Answer
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.support.rawclient import RawConnection

LIMIT_MS = 50.0
"""A heartbeat of another group is to be no later than that."""
LARGE, SMALL = "large", "small"


class Server(Protocol):
    """A connection, or the machine itself."""

    def call(self, message: Any) -> Any:
        """The answer."""


@dataclass
class Member:
    """A member as its heartbeats need it."""

    group_id: str
    member_id: str
    topics: list[str]
    epoch: int = 0
    owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = field(default_factory=list)
    news: bool = True

    def beat(self, server: Server, epoch: int | None = None) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat and its answer; raises `RuntimeError` for an error. `epoch`: -1 to leave."""
        request = ConsumerGroupHeartbeatRequest(
            self.group_id, self.member_id, self.epoch if epoch is None else epoch
        )
        if not request.member_epoch:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 300_000, self.topics
        if self.news:
            request.topic_partitions = self.owned
        answer: ConsumerGroupHeartbeatResponse = server.call(request)
        if answer.error_code:
            raise RuntimeError(f"{self.member_id}: {answer.error_code} {answer.error_message}")
        self.epoch, self.news = answer.member_epoch, answer.assignment is not None
        if answer.assignment is not None:
            self.owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(one.topic_id, one.partitions)
                for one in answer.assignment.topic_partitions
            ]
        return answer


class Watch:
    """Heartbeats of another group, one after the other, in a thread."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._member = Member(SMALL, "small-member", [topic])
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._seconds: list[float] = []

    def _run(self) -> None:
        connection = RawConnection(self._bootstrap)
        while not self._stop.is_set():
            began_s = time.perf_counter()
            self._member.beat(connection)
            self._seconds.append(time.perf_counter() - began_s)
            time.sleep(0.001)
        connection.socket.close()

    @contextmanager
    def running(self) -> Iterator[Watch]:
        """It goes on until the end."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def take(self) -> list[float]:
        """The milliseconds of each heartbeat since the last call."""
        seconds, self._seconds = self._seconds, []
        return [one * 1_000 for one in seconds]


def _round(connection: RawConnection, members: list[Member]) -> None:
    for one in members:
        one.beat(connection)


def settle(connection: RawConnection, members: list[Member], partitions: int) -> None:
    """Heartbeats until all have the same epoch and every partition, evenly: a target before all had joined
    gives the first ones more."""
    while True:
        _round(connection, members)
        owned = [sum(len(topic.partitions) for topic in one.owned) for one in members]
        is_even = max(owned) - min(owned) <= 1
        if is_even and sum(owned) == partitions and len({one.epoch for one in members}) == 1:
            return


def _topics(names: list[str], each: int) -> Topics:
    topics = Topics()
    for name in names:
        topics.put(Topic(name, uuid.uuid5(uuid.NAMESPACE_DNS, name).bytes, each))
    return topics


class Machine:
    """A shard with the large group, before it has a target; no socket, and a log that has everything at
    once. `cpu_ms`: of each call since the last `take`."""

    def __init__(self, count: int, topics: Topics) -> None:
        names = frozenset(one.name for one in topics.all())
        group = ConsumerGroup(LARGE, epoch=2, metadata_hash=topics.metadata_hash(names))
        for number in range(count):
            group.subscribe(f"member-{number:05}", Subscription(topic_names=names))
            group.move(f"member-{number:05}", Current(epoch=1))
        group.assignment_epoch = 1
        self.shard = Shard(0, GroupSettings(), lambda prefix: prefix, topics=topics)
        self.shard.replay(records.all_records(group))
        self.now_ms = 1_000_000
        self.shard.loaded(self.now_ms, self.now_ms)
        self.members = [Member(LARGE, name, [], 1) for name in group.members]
        self.cpu_ms: list[float] = []

    def call(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat, and all that is due after it."""
        response = self._timed(lambda: self.shard.handle(request, Ticket(), self.now_ms))
        answers = self._drain()
        while (due_ms := self.shard.next_deadline()) is not None and due_ms <= self.now_ms:
            self._timed(lambda: self.shard.tick(self.now_ms))
            self._drain()
        found: ConsumerGroupHeartbeatResponse = response or answers[0].response
        return found

    def _timed(self, work: Callable[[], Any]) -> Any:
        began_s = time.process_time()
        found = work()
        self.cpu_ms.append((time.process_time() - began_s) * 1_000)
        return found

    def _drain(self) -> list[Answer]:
        answers = []
        while self.shard.dirty:
            box = self.shard.drain()
            answers += box.answers
            for append in box.appends:
                self.shard.durable(append.position, self.now_ms)
        return answers

    def settle(self) -> None:
        """Heartbeats until all have what they are to have."""
        for _ in range(3):
            self.now_ms += 2_000
            for one in self.members:
                one.beat(self)

    def take(self) -> dict[str, float]:
        """The cost of the calls since the last `take`."""
        found, self.cpu_ms = self.cpu_ms, []
        return {"calls": len(found), "whole": sum(found), "longest": max(found)}


class Ticket:
    """Of a request to the machine."""

    api_version = 1
    client_id: str | None = "bench"
    client_host = "/127.0.0.1"
    principal = ""
    connection: object = None


def _computed(plan: Plan) -> dict[str, list[dict[str, float]]]:
    """CPU of the first target, and of the next one when a member has left, in the machine alone."""
    count, topics, each = plan.server_assignor
    machine = Machine(count, _topics([f"topic-{number:04}" for number in range(topics)], each))
    machine.members[0].beat(machine)
    found = {"it forms": [machine.take()]}
    for _ in range(plan.assignor_times):
        machine.settle()
        machine.members.pop(0).beat(machine, epoch=-1)
        machine.now_ms += 2_000
        machine.take()
        machine.members[0].beat(machine)
        found.setdefault("one leaves: the target", []).append(machine.take())
    return found


def _served(plan: Plan, pins: Pins) -> dict[str, list[float]]:
    """Milliseconds of the other group's heartbeats, through a daemon."""
    count, topics, each = plan.server_assignor
    names = [f"topic-{number:04}" for number in range(topics)]
    results: dict[str, list[float]] = {}
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        daemon(
            directory,
            pins.server,
            topics=[f"{name}:{each}" for name in names],
            options=["--group-consumer-session-timeout-ms", "600000"],
        ) as server,
        Watch(server.bootstrap, names[0]).running() as watch,
    ):
        connection = RawConnection(server.bootstrap)

        def phase(name: str) -> None:
            found = watch.take()
            results.setdefault(name, []).extend(found)
            say(f"  {name}: {max(found):.1f} ms at most")

        time.sleep(plan.seconds)
        phase("nothing else")
        members = [Member(LARGE, f"member-{number:05}", names) for number in range(count)]
        _round(connection, members)
        settle(connection, members, topics * each)
        phase("it forms")
        for _ in range(plan.rounds):
            _round(connection, members)
            phase("heartbeats only")
            members.pop(0).beat(connection, epoch=-1)
            time.sleep(1.0)  # group.consumer.assignment.interval.ms
            watch.take()
            members[0].beat(connection)
            time.sleep(0.5)
            phase("one leaves: the target")
            settle(connection, members, topics * each)
            phase("one leaves: the partitions")
        connection.socket.close()
    return {name: sorted(found) for name, found in results.items()}


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the tables, writes server_assignor.json, returns its content."""
    pins = Pins.choose()
    count, topics, each = plan.server_assignor
    say(f"server_assignor: {count:,} members, {topics:,} topics, {topics * each:,} partitions")
    computed, served = _computed(plan), _served(plan, pins)
    whole = {"sizes": plan.server_assignor, "computed": computed, "served": served}
    table("Computing in the machine, CPU ms (medians)", COMPUTED, computed_cells(computed))
    table("Heartbeats of another group, ms", SERVED, served_cells(served))
    longest = max(one["longest"] for rounds in computed.values() for one in rounds)
    name = "the longest time for which the computation keeps other groups waiting, of CPU"
    goals = [Goal(name, f"a limit of {LIMIT_MS:g} ms", longest / LIMIT_MS, 1, is_time=True)]
    print_goals(goals)
    save(plan.out_dir, "server_assignor", whole, goals)
    return whole


COMPUTED = ("the large group", "calls", "whole", "longest call")
SERVED = ("the large group", "heartbeats", "p50", "p99", "latest")


def computed_cells(results: dict[str, list[dict[str, float]]]) -> list[list[object]]:
    """Rows under `COMPUTED`; the longest call of all rounds."""
    return [
        [
            name,
            f"{median(one['calls'] for one in rounds):.0f}",
            f"{median(one['whole'] for one in rounds):.1f}",
            f"{max(one['longest'] for one in rounds):.1f}",
        ]
        for name, rounds in results.items()
    ]


def served_cells(results: dict[str, list[float]]) -> list[list[object]]:
    """Rows under `SERVED`."""
    return [
        [name, f"{len(some):,}", *(f"{some[at]:.1f}" for at in (len(some) // 2, len(some) * 99 // 100, -1))]
        for name, some in results.items()
    ]
