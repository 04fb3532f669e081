"""Members of the consumer protocol that compute the assignment of their group: the machine by script, and
real processes with the daemon (docs/leader-side-assignors.md)."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
)
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.group.leading import tasks
from ringleader.clients.group.machine.actions import ComputeTarget
from ringleader.clients.group.subscription import consumer_member
from ringleader.protocol.leader_shares import read_share, share_numbers
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTaskMember,
    ConsumerGroupHeartbeatResponseTaskSubscription,
    ConsumerGroupHeartbeatResponseTaskTopic,
)
from tests.support.consumer_protocol_script import ConsumerProtocolScript, topic_id
from tests.support.consuming import PATIENCE_S, until
from tests.support.daemon import Daemon

# ---- a member that computes for the group ----


def task(epoch: int, *members: str, assignor: str = "range") -> ConsumerGroupHeartbeatResponseLeaderTask:
    return ConsumerGroupHeartbeatResponseLeaderTask(
        epoch,
        epoch - 1,
        assignor,
        [ConsumerGroupHeartbeatResponseTaskTopic(topic_id("t"), "t", 4)],
        [ConsumerGroupHeartbeatResponseTaskSubscription([0])],
        [ConsumerGroupHeartbeatResponseTaskMember(one) for one in members],
    )


def leader(script: ConsumerProtocolScript, epoch: int = 2) -> ComputeTarget:
    script.start()
    script.find()
    script.beaten(1, {}, task=task(epoch, "me", "other"))
    report: ComputeTarget = script.last_reported(ComputeTarget)
    return report


def test_a_leader_sends_what_it_has_computed_at_once_and_once() -> None:
    script = ConsumerProtocolScript(server_assignor="client:range", user_data=b"7")
    report = leader(script)
    computed = ConsumerGroupHeartbeatRequestComputedTarget(report.task.group_epoch)
    script.machine.delegated(report, computed, script.now_ms)
    script.look()
    beat = script.heartbeat()
    assert (beat.member_epoch, beat.computed_target, beat.leader_user_data) == (1, computed, None)
    script.beaten(2, {"t": [0, 1]})
    script.name("t")
    assert script.heartbeat().computed_target is None


def test_a_member_says_that_it_can_lead_when_it_joins_and_when_that_changes() -> None:
    script = ConsumerProtocolScript(server_assignor="client:range", user_data=b"").start()
    script.find()
    assert script.heartbeat().leader_user_data == b""
    script.beaten(1, {})
    script.user_data = b"8"
    script.wait(script.due_ms() - script.now_ms)
    assert script.heartbeat().leader_user_data == b"8"


def test_an_answer_that_may_be_lost_is_sent_again() -> None:
    script = ConsumerProtocolScript(server_assignor="client:range", user_data=b"")
    report = leader(script)
    computed = ConsumerGroupHeartbeatRequestComputedTarget(report.task.group_epoch)
    script.machine.delegated(report, computed, script.now_ms)
    script.look()
    assert script.heartbeat().computed_target == computed
    script.fail("ConsumerGroupHeartbeat")
    script.wait(1_000)
    script.find()
    assert script.heartbeat().computed_target == computed


def test_what_it_has_computed_while_a_heartbeat_was_on_its_way_is_in_the_next() -> None:
    script = ConsumerProtocolScript(server_assignor="client:range", user_data=b"")
    report = leader(script)
    script.wait(script.due_ms() - script.now_ms)
    assert script.heartbeat().computed_target is None
    computed = ConsumerGroupHeartbeatRequestComputedTarget(report.task.group_epoch)
    script.machine.delegated(report, computed, script.now_ms)
    script.beaten(1)
    script.wait(script.due_ms() - script.now_ms)
    assert script.heartbeat().computed_target == computed


def test_only_the_newest_task_is_answered() -> None:
    script = ConsumerProtocolScript(server_assignor="client:range", user_data=b"")
    old = leader(script)
    script.wait(script.due_ms() - script.now_ms)
    script.beaten(1, task=task(3, "me"))
    new = script.last_reported(ComputeTarget)
    assert new.task.group_epoch == 3
    for report in (old, new):
        answer = ConsumerGroupHeartbeatRequestComputedTarget(report.task.group_epoch)
        script.machine.delegated(report, answer, script.now_ms)
        script.look()
    sent = script.heartbeat().computed_target
    assert sent is not None
    assert sent.group_epoch == 3


# ---- an assignor of the classic protocol answers a task ----


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_every_assignor_gives_each_partition_to_one_subscriber_at_once(name: str) -> None:
    """Cooperative ones too, which withhold what changes hands from one round of the classic protocol."""
    to_compute = task(5, "a", "b", "c", assignor=name)
    to_compute.topics.append(ConsumerGroupHeartbeatResponseTaskTopic(topic_id("u"), "u", 3))
    to_compute.subscriptions.append(ConsumerGroupHeartbeatResponseTaskSubscription([0, 1]))
    to_compute.members[2].subscription = 1
    to_compute.members[0].owned = share_numbers([(0, [0, 1, 2, 3])])
    members, counts = tasks.read(to_compute)
    answer = tasks.compute(to_compute, ASSIGNORS[name], members, counts, None)
    assert answer.group_epoch == 5
    given = [
        (answer.topic_ids[place], number)
        for one in answer.members
        for place, numbers in read_share(one.share)
        for number in numbers
    ]
    wanted = [(topic_id("t"), number) for number in range(4)] + [(topic_id("u"), n) for n in range(3)]
    assert sorted(given) == sorted(wanted)
    if name in ("sticky", "cooperative-sticky", "weighted"):
        (first,) = [one for one in answer.members if one.member_id == "a"]
        assert {answer.topic_ids[place] for place, _ in read_share(first.share)} == {topic_id("t")}


def test_the_bytes_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "leader-side-assignors.md").read_text()
    block = page.partition("In bytes,")[2].partition("```text\n")[2].partition("```")[0]
    shown = "".join(re.split(r" {3,}", line)[0] for line in block.splitlines())
    member = ConsumerGroupHeartbeatRequestComputedMember("m", share_numbers([(0, [1, 2])]))
    answer = ConsumerGroupHeartbeatRequestComputedTarget(4, topic_ids=[b"a" * 16], members=[member])
    request = ConsumerGroupHeartbeatRequest("g", "m", 3, computed_target=answer)
    assert request.encode(1).hex() == shown.replace(" ", "")


# ---- with the daemon ----

OPTIONS = [
    *("--group-consumer-session-timeout-ms", "3000"),
    *("--group-consumer-heartbeat-interval-ms", "100"),
    *("--group-consumer-assignment-interval-ms", "0"),
    *("--group-consumer-leader-timeout-ms", "1000"),
]
PARTITIONS = 6


def greedy(members: Any, partitions: PartitionCounts, _racks: Any) -> Assignment:
    """All to the member with the largest user data."""
    best = max(members, key=lambda one: (one.user_data or b"", one.member_id))
    return {best.member_id: {topic: list(range(count)) for topic, count in partitions.items()}}


def wrong(members: Sequence[AssignorMember], partitions: PartitionCounts, _racks: Any) -> Assignment:
    """Every partition to every member."""
    return {one.member_id: {t: list(range(n)) for t, n in partitions.items()} for one in members}


def raises(*_: Any) -> Assignment:
    raise RuntimeError("no idea")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("leaders"), topics=[f"t:{PARTITIONS}"], options=OPTIONS) as found:
        yield found


@pytest.fixture
def group() -> str:
    return f"g-{uuid4().hex}"


@pytest.fixture(autouse=True)
def own_assignors(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in (Assignor("greedy", greedy), Assignor("wrong", wrong), Assignor("raises", raises)):
        monkeypatch.setitem(ASSIGNORS, one.name, one)


def at(daemon: Daemon, group: str, assignor: str, name: str = "a", **options: Any) -> GroupConsumer:
    return GroupConsumer(
        daemon.bootstrap, group, "t", group_protocol="consumer", client_id=name,
        group_remote_assignor=assignor, **options,
    )  # fmt: skip


async def shares(counts: list[int], *consumers: GroupConsumer) -> None:
    """Until the consumers have that many partitions, and all of them."""

    def so() -> bool:
        each = [one.assignment() for one in consumers]
        return [len(one) for one in each] == counts and len({p for one in each for p in one}) == PARTITIONS

    await until(so)


async def test_an_assignor_of_the_classic_protocol_assigns_in_the_consumer_protocol(
    daemon: Daemon, group: str
) -> None:
    async with at(daemon, group, "client:weighted", weight=1.0) as one:
        await shares([6], one)
        async with at(daemon, group, "client:weighted", "b", weight=2.0) as two:
            await shares([2, 4], one, two)
            async with at(daemon, group, "client:weighted", "c", weight=3.0) as three:
                await shares([1, 2, 3], one, two, three)
            await shares([2, 4], one, two)


async def test_an_assignor_of_ones_own_knows_what_members_tell_it(daemon: Daemon, group: str) -> None:
    async with at(daemon, group, "client:greedy", assignor_user_data=b"5") as one:
        await shares([6], one)
        async with at(daemon, group, "client:greedy", "b", assignor_user_data=b"7") as two:
            await shares([0, 6], one, two)
            async with at(daemon, group, "client:greedy", "c", assignor_user_data=b"6") as three:
                await until(lambda: three.member.generation > 3)
                await shares([0, 6, 0], one, two, three)
        await shares([6], one)


@pytest.mark.parametrize(
    ("assignor", "why"),
    [("client:wrong", "has two owners"), ("client:raises", "RuntimeError('no idea')")],
)
async def test_what_a_leader_gets_wrong_the_coordinator_assigns(
    daemon: Daemon, group: str, assignor: str, why: str
) -> None:
    async with at(daemon, group, assignor) as one, at(daemon, group, assignor, "b") as two:
        await shares([3, 3], one, two)
    lines = [line for line in daemon.log().splitlines() if group in line]
    assert any(why in line and "is not taken" in line for line in lines)
    assert any("the coordinator's own assignor computes" in line for line in lines)


async def test_lag_and_racks_are_looked_at_by_the_leader(daemon: Daemon, group: str) -> None:
    async with (
        at(daemon, group, "client:lag-aware", auto_offset_reset="earliest") as one,
        at(daemon, group, "client:lag-aware", "b", auto_offset_reset="earliest") as two,
    ):
        await until(lambda: len(one.assignment()) + len(two.assignment()) == PARTITIONS)
    async with (
        at(daemon, group, "client:range", client_rack="r") as one,
        at(daemon, group, "client:range", "b", client_rack="q") as two,
    ):
        await shares([3, 3], one, two)


def test_an_assignor_that_this_process_does_not_have_is_no_option() -> None:
    with pytest.raises(ValueError, match="unknown assignor 'best' in group_remote_assignor"):
        consumer_member("h:1", "g", ["t"], group_protocol="consumer", group_remote_assignor="client:best")
    with pytest.raises(ValueError, match="session_timeout_ms: without a meaning"):
        consumer_member(
            "h:1", "g", ["t"], group_protocol="consumer", group_remote_assignor="client:range",
            session_timeout_ms=9_000,
        )  # fmt: skip


@contextlib.asynccontextmanager
async def process(daemon: Daemon, group: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A member in a process of its own that never ends its computation, and says when it begins."""
    program = f"""
import asyncio, time
from ringleader import GroupConsumer
from ringleader.clients.assignors import ASSIGNORS, Assignor

def slow(*_):
    print("computing", flush=True)
    time.sleep(600)

async def main():
    ASSIGNORS["greedy"] = Assignor("greedy", slow)
    async with GroupConsumer({daemon.bootstrap!r}, {group!r}, "t", group_protocol="consumer",
                             group_remote_assignor="client:greedy", assignor_user_data=b"1") as one:
        await one.wait_assigned()
        print("assigned", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    found = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield found
    finally:
        with contextlib.suppress(ProcessLookupError):
            found.kill()
        await found.wait()


async def until_printed(found: asyncio.subprocess.Process, word: bytes) -> None:
    assert found.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        while (await found.stdout.readline()).strip() != word:
            pass


async def test_a_leader_that_does_not_answer_is_not_waited_for_beyond_the_bound(
    daemon: Daemon, group: str
) -> None:
    async with process(daemon, group) as slow:
        await until_printed(slow, b"computing")
        await until_printed(slow, b"assigned")
        async with at(daemon, group, "client:greedy", assignor_user_data=b"2") as one:
            await shares([6], one)  # it leads: the other one failed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_leader_that_dies_while_it_computes_has_a_successor(
    daemon: Daemon, group: str, number: signal.Signals
) -> None:
    async with at(daemon, group, "client:greedy", assignor_user_data=b"0") as one:
        await shares([6], one)
        async with process(daemon, group) as leader:
            await until_printed(leader, b"computing")
            leader.send_signal(number)
            await shares([6], one)
            async with at(daemon, group, "client:greedy", "c", assignor_user_data=b"3") as two:
                await shares([0, 6], one, two)


async def test_the_daemons_restart_loses_nothing_that_a_leader_has_to_know(
    tmp_path_factory: pytest.TempPathFactory, group: str
) -> None:
    directory = tmp_path_factory.mktemp("restarted")
    with Daemon(directory, topics=[f"t:{PARTITIONS}"], options=OPTIONS) as daemon:
        async with (
            at(daemon, group, "client:weighted", weight=1.0) as one,
            at(daemon, group, "client:weighted", "b", weight=2.0) as two,
        ):
            await shares([2, 4], one, two)
            daemon.kill()
            daemon.start()
            async with Admin(daemon.bootstrap) as admin:
                await admin.create_partitions("t", 9)
            await until(lambda: [len(one.assignment()), len(two.assignment())] == [3, 6])
