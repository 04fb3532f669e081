"""A member that is over says why, in every call; and an error of the library's own ends it, instead of being
tried for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import InternalError, MembershipOverError
from ringleader.clients.group.leading import leader
from ringleader.clients.group.machine import classic
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import MemberProtocol
from ringleader.clients.offsets.group_offsets import GroupOffsets
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary, assign, member

OFFSETS = {("t", 0): 1}


async def work(one: GroupMember) -> None:
    async with one.working():
        pass


CALLS: dict[str, Callable[[GroupMember], Awaitable[Any]]] = {
    "wait_assigned": lambda one: one.wait_assigned(),
    "working": work,
    "commit": lambda one: one.commit(OFFSETS),
    "committed": lambda one: one.committed(),
    "rejoin": lambda one: one.rejoin("news"),
    "ready": lambda one: one.ready(),
}


async def until_ended(one: GroupMember | SyncGroupMember) -> None:
    assert await asyncio.to_thread(one._driver.ended.wait, PATIENCE_S)


@pytest.mark.parametrize("call", CALLS)
async def test_a_member_that_never_started(coordinator: Coordinator, call: str) -> None:
    with pytest.raises(MembershipOverError, match=r"never started|not running \(new\)"):
        await CALLS[call](member(coordinator))


@pytest.mark.parametrize("call", CALLS)
async def test_a_member_that_has_left(coordinator: Coordinator, call: str) -> None:
    one = member(coordinator)
    async with one:
        await one.wait_assigned(PATIENCE_S)
    with pytest.raises(MembershipOverError, match=r"has left|not running \(left\)"):
        await CALLS[call](one)
    assert one.assigned is None


@pytest.mark.leaves("group member")  # the loop of the first run ended under it
def test_a_second_run(coordinator: Coordinator) -> None:
    one = member(coordinator)

    async def first() -> None:
        await one.start()
        await one.wait_assigned(PATIENCE_S)

    async def second() -> None:
        for call in ("wait_assigned", "working", "rejoin"):
            with pytest.raises(MembershipOverError, match="event loop has ended"):
                await CALLS[call](one)
        await until_ended(one)
        for call in ("commit", "committed"):
            with pytest.raises(MembershipOverError, match="not running"):
                await CALLS[call](one)
        assert one.assigned is None

    asyncio.run(first())
    asyncio.run(second())


async def test_another_loop(coordinator: Coordinator) -> None:
    """Even when there is an assignment already."""
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)

        def elsewhere() -> None:
            for call in ("wait_assigned", "working"):
                with pytest.raises(RuntimeError, match="ask in the event loop that called start"):
                    asyncio.run(CALLS[call](one))  # type: ignore[arg-type]

        await asyncio.to_thread(elsewhere)


def test_a_synchronous_member(coordinator: Coordinator) -> None:
    one = SyncGroupMember(
        coordinator.bootstrap,
        "jobs",
        protocols=[MemberProtocol("deal")],
        assign=assign,
        protocol_type="sharding",
    )
    calls: list[Callable[[], Any]] = [
        one.wait_assigned,
        lambda: one.working().__enter__(),
        lambda: one.commit(OFFSETS),
        one.committed,
        lambda: one.rejoin("news"),
    ]
    for call in calls:
        with pytest.raises(MembershipOverError, match=r"never started|not running \(new\)"):
            call()
    with one:
        one.wait_assigned(PATIENCE_S)
    for call in calls:
        with pytest.raises(MembershipOverError, match=r"has left|not running \(left\)"):
            call()


# ---- errors of our own ----


class Bug(Exception):  # noqa: N818
    """Something that nobody foresaw."""


def raises(*_: object, **__: object) -> Any:
    raise Bug("unforeseen")


@pytest.mark.parametrize("where", ["request", "machine", "step", "cluster"])
async def test_an_error_of_our_own_ends_the_member(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It is reported, by every call and `on_failed`, and the group does not wait for the session's end."""
    diary = Diary()
    if where == "cluster":
        monkeypatch.setattr(Cluster, "__init__", raises)
    async with member(coordinator, diary) as one:
        if where != "cluster":
            await one.wait_assigned(PATIENCE_S)
        if where == "request":
            monkeypatch.setattr(Cluster, "send", raises)
        elif where == "machine":
            monkeypatch.setattr(classic, "heartbeat", raises)
        elif where == "step":
            monkeypatch.setattr(MemberMachine, "rejoin", raises)
            await one.rejoin("news")
        error = await diary.until(InternalError)
        assert isinstance(error.__cause__, Bug)
        with pytest.raises(InternalError, match="an error in this library has ended the membership: Bug"):
            await one.wait_assigned(PATIENCE_S)
        await until_ended(one)
        assert one.assigned is None
        if where in ("machine", "step"):
            (left,) = coordinator.faults.seen("LeaveGroup")
            assert left.request.members[0].reason == "an internal error"


async def test_a_commit_that_meets_an_error_of_our_own(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Auto-commit would meet it again and again."""
    diary = Diary()
    monkeypatch.setattr(GroupOffsets, "write", raises)
    async with member(coordinator, diary, auto_commit_interval_ms=20) as one:
        await one.wait_assigned(PATIENCE_S)
        one.store(OFFSETS)
        assert isinstance((await diary.until(InternalError)).__cause__, Bug)


async def test_a_watch_that_meets_an_error_of_our_own(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary()
    monkeypatch.setattr(leader.Leading, "_changes", raises)
    async with consumer_member(
        coordinator.bootstrap, "g", "t", metadata_max_age_ms=20, on_failed=diary.note
    ) as one:
        error = await diary.until(InternalError)
        assert isinstance(error.__cause__, Bug)
        assert one.error is error


def test_a_synchronous_member_that_meets_an_error_of_our_own(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported = threading.Event()
    with SyncGroupMember(
        coordinator.bootstrap,
        "jobs",
        protocols=[MemberProtocol("deal")],
        assign=assign,
        heartbeat_interval_ms=50,
        on_failed=lambda _error: reported.set(),
    ) as one:
        one.wait_assigned(PATIENCE_S)
        monkeypatch.setattr(classic, "heartbeat", raises)
        assert reported.wait(PATIENCE_S)
        with pytest.raises(InternalError):
            one.wait_assigned(PATIENCE_S)
