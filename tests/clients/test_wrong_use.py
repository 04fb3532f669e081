"""A mistake of an application raises one sentence, where it happens, and hurts nobody else."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.errors import MembershipError
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, MemberProtocol, OffsetAndMetadata
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary, assign, member


async def test_a_wait_in_the_wrong_place_is_an_error(coordinator: Coordinator) -> None:
    """Inside of a callback, in another event loop: neither would ever end."""
    found: list[BaseException] = []

    async def wait_for_itself(_share: Assigned) -> None:
        try:
            await one.wait_assigned()
        except RuntimeError as error:
            found.append(error)

    def wait_elsewhere() -> None:
        with pytest.raises(RuntimeError, match="the event loop that called start"):
            asyncio.run(two.wait_assigned())

    one = member(coordinator, Diary(Assigned=wait_for_itself))
    async with one:
        await one.wait_assigned(PATIENCE_S)
        assert "a callback cannot wait for an assignment" in str(found[0])
    two = member(coordinator, assign=lambda _protocol, _members: asyncio.sleep(3600))
    await two.start()
    await asyncio.to_thread(wait_elsewhere)
    # Stopping works from anywhere, for an end that is not reached helps nobody.
    await asyncio.to_thread(lambda: asyncio.run(two.stop()))
    assert two.machine.state.phase.value == "left"
    await two.stop()


def test_a_wait_in_the_wrong_place_is_an_error_without_a_loop(coordinator: Coordinator) -> None:
    found: list[BaseException] = []

    def wait_for_itself(_share: Assigned) -> None:
        try:
            one.wait_assigned()
        except RuntimeError as error:
            found.append(error)

    one = SyncGroupMember(
        coordinator.bootstrap,
        "jobs",
        protocols=[MemberProtocol("deal")],
        assign=assign,
        on_assigned=wait_for_itself,
    )
    with one:
        one.wait_assigned(PATIENCE_S)
    assert "a callback cannot wait for an assignment" in str(found[0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"session_timeout_ms": "10000"},
            "session_timeout_ms has to be a whole number, not '10000'",
        ),
        ({"session_timeout_ms": 2**31}, "session_timeout_ms has to be at most 2147483647, not 2147483648"),
        ({"request_timeout_ms": 0}, "request_timeout_ms has to be above 0, not 0"),
        ({"retry_backoff_ms": -5}, "retry_backoff_ms has to be at least 0, not -5"),
        (
            {"quiesce_timeout_ms": "1"},
            "quiesce_timeout_ms has to be a whole number or None, not '1'",
        ),
        ({"protocols": ["deal"]}, "protocols is a list of MemberProtocol"),
        ({"protocols": MemberProtocol("deal")}, "protocols is a list of MemberProtocol"),
        ({"on_lost": 5}, "on_lost has to be something that can be called or None, not 5"),
        ({"group": 5}, "group_id has to be a text, not 5"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=rf"^(GroupMember\(\): )?{sentence}$"):
        member("h:1", **options)


WRONG: Any = "5"


@pytest.mark.parametrize(
    "offsets",
    [
        None,
        [("t", 0)],
        {"t": 5},
        {("t", "0"): 5},
        {("t", 0): "5"},
        {(None, 0): 5},
        {("t", 0): OffsetAndMetadata(WRONG)},
    ],
)
async def test_wrong_offsets_are_one_sentence(coordinator: Coordinator, offsets: Any) -> None:
    sentence = r"offsets are \{\(topic, partition\): offset\}, not "
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        with pytest.raises(ValueError, match=sentence):
            await one.commit(offsets)
        with pytest.raises(ValueError, match=sentence):
            one.commit_nowait(offsets)
        with pytest.raises(ValueError, match=sentence):
            one.store(offsets)


async def result_of(call: Callable[[Any], Any], one: GroupMember) -> None:
    done = call(one)
    if inspect.isawaitable(done):
        await done


async def test_a_wrong_argument_is_one_sentence_and_hurts_nobody(coordinator: Coordinator) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "timeout_s is a number of seconds, 0 or more, not '1'": lambda one: one.wait_assigned("1"),
        "timeout_s is a number of seconds, 0 or more, not -1": lambda one: one.commit({}, timeout_s=-1),
        "timeout_s is a number of seconds, 0 or more, not nan": lambda one: one.stop(timeout_s=math.nan),
        "timeout_s is a number of seconds, 0 or more, not inf": lambda one: one.leave(timeout_s=math.inf),
        "generation has to be a whole number or None, not '3'": lambda one: one.commit({}, generation="3"),
        "on_done has to be something that can be called or None, not 5": lambda one: one.commit_nowait(
            {}, on_done=5
        ),
        "generation has to be a whole number or None, not True": lambda one: one.store({}, generation=True),
        "reason has to be a text, not 5": lambda one: one.rejoin(5),
        "reason has to be a text, not 6": lambda one: one.leave(6),
        "partitions are [(topic, partition), ...], not 't'": lambda one: one.committed(["t"]),
        "partitions are [(topic, partition), ...], not 5": lambda one: one.committed(5),
    }
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        for sentence, call in calls.items():
            with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
                await result_of(call, one)
        assert one.error is None
        assert one.assigned is not None


@pytest.mark.parametrize("wrong", ["a text", None])
async def test_metadata_that_fails_do_not_make_the_group_wait(coordinator: Coordinator, wrong: Any) -> None:
    """At a rejoin, when the others would wait for this member until its session is over."""
    now: list[Any] = [b"well"]
    diary = Diary()
    one = member(coordinator, diary, protocols=[MemberProtocol("deal", lambda: now[0])])
    async with one, Admin(coordinator.bootstrap) as admin:
        await one.wait_assigned(PATIENCE_S)
        now[0] = wrong
        await one.rejoin("to say something else")
        failure = await diary.until(MembershipError)
        assert "metadata callback failed: TypeError(" in str(failure)
        (described,) = await admin.describe_groups(["jobs"])
        assert not described.members
        (left,) = coordinator.faults.seen("LeaveGroup")
        assert left.request.members[0].reason == "its metadata callback failed"


def test_a_wrong_protocol_is_one_sentence() -> None:
    wrong: Any = "a text"
    with pytest.raises(ValueError, match="a protocol's metadata is bytes or a callable, not 'a text'"):
        MemberProtocol("deal", wrong)
    with pytest.raises(ValueError, match="a protocol's name is a text, not ''"):
        MemberProtocol("")
