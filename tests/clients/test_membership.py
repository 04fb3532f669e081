"""GroupMember against the real daemon: an own protocol type, callbacks, commits, restarts."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.errors import (
    AssignmentFailedError,
    BrokerError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    MembershipError,
    MembershipOverError,
    RebalanceInProgressError,
    RetriableError,
)
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, Lost, MemberInfo, MemberProtocol, OffsetAndMetadata, Revoked
from ringleader.testing.coordinator import Coordinator
from tests.support.ports import free_ports
from tests.support.sharding import PATIENCE_S, SHARDS, Diary, assign, member, settled, shards


async def test_members_of_an_own_type_share_the_work(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        (share,) = await settled(one)
        assert shares_are_whole([share])
        assert one.is_leader
        assert share.member_id.startswith("ringleader-member-")
        async with member(coordinator) as two, member(coordinator) as three:
            found = await settled(one, two, three)
            while len({len(shards(share)) for share in found}) > 1 or len(shards(found[0])) != 4:
                found = await settled(one, two, three)
            assert shares_are_whole(found)
            assert [one.is_leader, two.is_leader, three.is_leader].count(True) == 1
        await until(lambda: one.assigned is not None and len(shards(one.assigned)) == SHARDS)
        assert shares_are_whole([await one.wait_assigned()])
    async with Admin(coordinator.bootstrap) as admin:
        (group,) = await admin.describe_groups(["jobs"])
    assert (group.state, group.protocol_type, group.members) == ("Empty", "sharding", ())


def shares_are_whole(found: list[Assigned]) -> bool:
    return sorted(shard for share in found for shard in shards(share)) == list(range(SHARDS))


async def until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 -- the members tell their callbacks only, not everybody
            await asyncio.sleep(0.01)


async def test_callbacks_in_order_with_reasons(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary) as one:
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator):
            await diary.until(Assigned, 2)
        await diary.until(Assigned, 3)
        await one.leave("the night shift is over")
    kinds = [type(line).__name__ for line in diary.lines]
    assert kinds == ["Assigned", "Revoked"] * 3
    assert diary.of(Revoked)[0].reason == "the group is rebalancing"
    assert diary.of(Revoked)[-1].reason == "leaving: the night shift is over"
    generations = [line.generation for line in diary.lines]
    assert generations == [1, 1, 2, 2, 3, 3]


async def test_on_revoked_holds_the_rejoin_and_may_commit(coordinator: Coordinator) -> None:
    finish = asyncio.Event()
    held: list[GroupMember] = []

    async def finish_work(revoked: Revoked) -> None:
        await finish.wait()
        await held[0].commit({("t", 0): 10 + revoked.generation})

    diary, late = Diary(Revoked=finish_work), Diary()
    async with member(coordinator, diary) as one:
        held.append(one)
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator, late) as two:
            await diary.until(Revoked)
            await asyncio.sleep(0.5)
            assert late.lines == []
            assert one.assigned is None
            finish.set()
            assert (await two.wait_assigned(PATIENCE_S)).generation == 2
            assert await two.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(11)}


async def test_on_revoked_that_never_ends_is_cancelled(coordinator: Coordinator) -> None:
    cancelled = asyncio.Event()

    async def never(_revoked: Revoked) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    diary = Diary(Revoked=never)
    async with member(coordinator, diary, rebalance_timeout_ms=1_500) as one:
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator, rebalance_timeout_ms=1_500) as two:
            lost = await diary.until(Lost)
            assert cancelled.is_set()
            assert "on_revoked did not end in time" in lost.reason
            await settled(one, two)
        await one.leave("bye", timeout_s=0.2)
    assert len(diary.of(Lost)) >= 2


async def test_a_blocked_loop_keeps_the_session() -> None:
    """The application's loop stands still for longer than the session; heartbeats come from elsewhere."""
    diary = Diary()
    with Coordinator(topics={"t": 4}, group_min_session_timeout_ms=100) as coordinator:
        await stand_still(coordinator, diary)
    assert diary.of(Lost) == []


async def stand_still(coordinator: Coordinator, diary: Diary) -> None:
    async with member(coordinator, diary, session_timeout_ms=1_000) as one:
        before = await one.wait_assigned(PATIENCE_S)
        time.sleep(2.5)  # noqa: ASYNC251 -- the point of the test
        await one.commit({("t", 1): 5})
        assert one.assigned == before


async def test_commit_and_fetch(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await one.commit({("t", 0): 5, ("t", 1): OffsetAndMetadata(7, "half way", 3)})
        everything = {("t", 0): OffsetAndMetadata(5), ("t", 1): OffsetAndMetadata(7, "half way", 3)}
        assert await one.committed() == everything
        assert await one.committed([("t", 1), ("t", 2)]) == {("t", 1): everything["t", 1]}
        with pytest.raises(BrokerError, match=r"t-2: OFFSET_METADATA_TOO_LARGE"):
            await one.commit({("t", 2): OffsetAndMetadata(1, "x" * 5_000)})
        with pytest.raises(RetriableError, match=r"t-4: UNKNOWN_TOPIC_OR_PARTITION"):
            await one.commit({("t", 4): 1}, timeout_s=0.3)
        await one.commit({})


async def test_commits_are_made_in_the_order_in_which_they_were_asked_for(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await asyncio.gather(*(one.commit({("t", 0): n}) for n in range(200)))
        assert (await one.committed())["t", 0].offset == 199


async def test_commits_without_a_share(coordinator: Coordinator) -> None:
    one = member(coordinator)
    with pytest.raises(MembershipOverError, match="not running"):
        await one.commit({("t", 0): 1})
    diary = Diary()
    async with one:
        await one.wait_assigned(PATIENCE_S)

        async def hold(_revoked: Revoked) -> None:
            await asyncio.sleep(0.1)

        async with member(coordinator, diary, on_revoked=hold) as two:
            with pytest.raises(RebalanceInProgressError):
                await two.commit({("t", 0): 1})
            await two.wait_assigned(PATIENCE_S)
    with pytest.raises(MembershipOverError, match="left"):
        await one.commit({("t", 0): 1})
    with pytest.raises(MembershipOverError, match="left"):
        await one.wait_assigned(1)


async def test_metadata_reaches_the_leader_and_changes_with_a_rejoin(coordinator: Coordinator) -> None:
    seen: list[list[bytes]] = []

    async def by_weight(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
        seen.append(sorted(info.metadata for info in members))
        await asyncio.sleep(0)
        return assign("", members)

    weight = [b"1"]
    protocols = [MemberProtocol("deal", lambda: weight[0])]
    async with (
        member(coordinator, assign=by_weight, protocols=protocols) as one,
        member(coordinator, assign=by_weight, protocols=[MemberProtocol("deal", b"9")]) as two,
    ):
        await until(lambda: bool(seen) and seen[-1] == [b"1", b"9"])
        weight[0] = b"5"
        await one.rejoin("weighs more")
        await until(lambda: seen[-1] == [b"5", b"9"])
        await settled(one, two)


async def test_a_restarted_daemon_costs_no_rebalance(coordinator: Coordinator) -> None:
    first, second = Diary(), Diary()
    async with member(coordinator, first) as one, member(coordinator, second) as two:
        await settled(one, two)
        while len(shards(one.assigned or (await one.wait_assigned()))) != SHARDS // 2:
            await settled(one, two)
        before = [one.assigned, two.assigned]
        counts = [len(first.lines), len(second.lines)]
        for offset in (1, 2):
            await asyncio.to_thread(coordinator.restart)
            await one.commit({("t", 0): offset})
        await two.commit({("t", 1): 9})
        assert [one.assigned, two.assigned] == before
        assert [len(first.lines), len(second.lines)] == counts
        assert await one.committed() == {("t", 0): OffsetAndMetadata(2), ("t", 1): OffsetAndMetadata(9)}


async def test_a_member_waits_for_a_daemon_that_comes_later(tmp_path: Any) -> None:
    later = Coordinator(data_dir=tmp_path)
    [later.port] = free_ports(1)
    one = member(f"127.0.0.1:{later.port}")
    await one.start()
    with pytest.raises(TimeoutError, match=r"about to join.*cannot connect"):
        await one.wait_assigned(0.5)
    with later:
        await one.wait_assigned(PATIENCE_S)
        await one.stop()


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"protocol_type": "other"}, InconsistentGroupProtocolError),
        ({"protocols": [MemberProtocol("unheard of")]}, InconsistentGroupProtocolError),
        ({"session_timeout_ms": 100, "heartbeat_interval_ms": 10}, InvalidSessionTimeoutError),
    ],
)
async def test_errors_that_end_the_membership(
    coordinator: Coordinator, options: dict[str, Any], kind: type[MembershipError]
) -> None:
    diary = Diary()
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator, diary, **options) as two:
            with pytest.raises(kind, match="group 'jobs'"):
                await two.wait_assigned(PATIENCE_S)
            assert isinstance(two.error, kind)
            assert await diary.until(kind) is two.error
            with pytest.raises(MembershipOverError, match="not running"):
                await two.commit({("t", 0): 1})
        assert one.assigned is not None


async def test_an_assign_that_fails(coordinator: Coordinator) -> None:
    def broken(_protocol: str, _members: list[MemberInfo]) -> dict[str, bytes]:
        raise KeyError("no such shard")

    async with member(coordinator, assign=broken) as one:
        with pytest.raises(AssignmentFailedError, match="no such shard"):
            await one.wait_assigned(PATIENCE_S)
    async with member(coordinator, assign=lambda *_: ["not", "a", "dict"]) as two:
        with pytest.raises(AssignmentFailedError, match="has to return a dict"):
            await two.wait_assigned(PATIENCE_S)


async def test_callback_exceptions_do_not_harm_the_membership(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(line: Any) -> None:
        raise RuntimeError(f"cannot handle {type(line).__name__}")

    async with member(coordinator, Diary(Assigned=broken, Revoked=broken)) as one:
        share = await one.wait_assigned(PATIENCE_S)
        assert shares_are_whole([share])
        async with member(coordinator) as two:
            await settled(one, two)
    texts = [
        record.exc_text or str(record.exc_info)
        for record in caplog.records
        if record.levelno == logging.ERROR
    ]
    assert any("cannot handle Assigned" in text for text in texts)
    assert any("cannot handle Revoked" in text for text in texts)


async def test_leave_from_inside_of_a_callback(coordinator: Coordinator) -> None:
    held: list[GroupMember] = []

    async def go(_assigned: Assigned) -> None:
        await held[0].leave("changed its mind")

    one = member(coordinator, Diary(Assigned=go))
    held.append(one)
    await one.start()
    await until(one._driver.ended.is_set)
    await until(lambda: one.assigned is None)
    with pytest.raises(MembershipOverError, match="has left"):
        await one.wait_assigned(PATIENCE_S)
    await one.stop()


async def test_start_and_stop_at_any_time(coordinator: Coordinator) -> None:
    one = member(coordinator)
    await one.stop()
    await one.start()
    with pytest.raises(MembershipError, match="started before"):
        await one.start()
    await asyncio.gather(one.stop(), one.stop(), one.leave("x"))
    await one.stop()
    two = member(coordinator)
    async with two:
        pass
    assert not [t for t in threading.enumerate() if t.name.startswith("group member")]


async def test_members_that_stop_while_they_join_hold_nobody_up(coordinator: Coordinator) -> None:
    """Or the group would wait for the member ids that they were given, until a session is over."""
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        for step in range(20):
            joins = len(coordinator.faults.seen("JoinGroup"))
            hasty = member(coordinator, session_timeout_ms=60_000)
            await hasty.start()
            while len(coordinator.faults.seen("JoinGroup")) == joins:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await asyncio.sleep(step % 4 * 0.0005)
            await hasty.stop()
        async with member(coordinator) as two:
            await settled(one, two)


@pytest.mark.leaves("LoopCaller._work")
def test_an_application_that_ends_without_stopping_leaves_the_group(coordinator: Coordinator) -> None:
    async def forgetful() -> GroupMember:
        one = member(coordinator)
        await one.start()
        await one.wait_assigned(PATIENCE_S)
        return one

    one = asyncio.run(forgetful())
    assert one._driver.ended.wait(PATIENCE_S)

    async def look() -> str:
        async with Admin(coordinator.bootstrap) as admin:
            return (await admin.describe_groups(["jobs"]))[0].state

    assert asyncio.run(look()) == "Empty"


@pytest.mark.parametrize(
    "options",
    [{"assign": None}, {"protocols": []}, {"heartbeat_interval_ms": 6_000}, {"session_timeout_ms": 50}],
)
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"assign|protocol|interval"):
        member("h:1", **options)
    with pytest.raises(ValueError, match="address"):
        member("h:x")


# ---- without an event loop ----


def sync_member(where: Coordinator, **options: Any) -> SyncGroupMember:
    given: dict[str, Any] = {
        "protocol_type": "sharding",
        "protocols": [MemberProtocol("deal")],
        "assign": assign,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 100,
    }
    return SyncGroupMember(where.bootstrap, "jobs", **(given | options))


def test_a_synchronous_member(coordinator: Coordinator) -> None:
    reported: list[str] = []

    def note(name: str) -> Any:
        return lambda what: reported.append(f"{name} {threading.current_thread().name}")

    with sync_member(coordinator, on_assigned=note("assigned"), on_revoked=note("revoked")) as one:
        assert shares_are_whole([one.wait_assigned(PATIENCE_S)])
        one.commit({("t", 0): 3})
        assert one.committed() == {("t", 0): OffsetAndMetadata(3)}
        with pytest.raises(BrokerError):
            one.commit({("t", 2): OffsetAndMetadata(1, "x" * 5_000)})
    assert reported == ["assigned group member callbacks", "revoked group member callbacks"]
    with pytest.raises(MembershipOverError):
        one.wait_assigned(1)
    with pytest.raises(MembershipOverError):
        one.committed()
    one.stop()


@pytest.mark.parametrize("way", ["future", "blocking"])
def test_a_synchronous_on_revoked_holds_the_rejoin(coordinator: Coordinator, way: str) -> None:
    called, finished = threading.Event(), Future[None]()

    def hold(_revoked: Revoked) -> Future[None] | None:
        called.set()
        if way == "future":
            return finished
        finished.result()
        return None

    with sync_member(coordinator, on_revoked=hold) as one:
        one.wait_assigned(PATIENCE_S)
        with sync_member(coordinator) as two:
            assert called.wait(PATIENCE_S)
            with pytest.raises(TimeoutError, match="joining"):
                two.wait_assigned(0.5)
            assert one.assigned is None
            finished.set_result(None)
            assert two.wait_assigned(PATIENCE_S).generation == 2


def test_a_synchronous_member_fails(coordinator: Coordinator) -> None:
    failed: list[MembershipError] = []
    one = sync_member(coordinator, session_timeout_ms=100, heartbeat_interval_ms=10, on_failed=failed.append)
    with one, pytest.raises(InvalidSessionTimeoutError):
        one.wait_assigned(PATIENCE_S)
    assert failed == [one.error]
