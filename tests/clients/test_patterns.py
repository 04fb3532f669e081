"""Members whose topics are those that match a pattern; leaders that see what becomes of topics."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.overview import Overview
from ringleader.clients.group.leading.leader import Leading
from ringleader.clients.group.leading.matching import Choice, in_words
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.settings import SubscriptionSettings
from ringleader.clients.group.subscription import consumer_member, partitions_of, sync_consumer_member
from ringleader.clients.model import Lost, MemberInfo
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.overview import TopicOverview
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary

QUICK: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
    "metadata_max_age_ms": 50,
    "assignors": ["cooperative-sticky"],
}


def consumer(where: Coordinator, diary: Diary, topics: Any = None, **options: Any) -> GroupMember:
    callbacks = dict.fromkeys(("on_assigned", "on_revoked", "on_lost", "on_failed"), diary.note)
    return consumer_member(where.bootstrap, "g", topics, **(QUICK | callbacks | options))


async def until_owned(member: GroupMember, **shares: int) -> None:
    """The member has as many partitions of these topics as `shares` says, and none of others."""
    want = {(topic, partition) for topic, count in shares.items() for partition in range(count)}
    await until(lambda: member.assigned is not None and set(partitions_of(member.assigned)) == want)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def reasons(coordinator: Coordinator) -> list[str]:
    """The reasons why members joined, each once."""
    return list(dict.fromkeys(one.request.reason for one in coordinator.faults.seen("JoinGroup")))


def announced(coordinator: Coordinator) -> list[list[str]]:
    """The subscriptions of the joins, without repetitions."""
    topic_lists = [
        Subscription.decode(one.request.protocols[0].metadata).topics
        for one in coordinator.faults.seen("JoinGroup")
    ]
    return [
        topics for topics, before in zip(topic_lists, [None, *topic_lists], strict=False) if topics != before
    ]


async def test_topics_that_match_come_and_go(coordinator: Coordinator) -> None:
    diary = Diary()
    coordinator.create_topic("orders-de", 2)
    async with (
        consumer(coordinator, diary, pattern="orders-.*") as member,
        Admin(coordinator.bootstrap) as admin,
    ):
        await until_owned(member, **{"orders-de": 2})
        await admin.create_topic("my-orders-eu", 1)  # the whole name has to match
        await admin.create_topic("orders-eu", 1)
        await until_owned(member, **{"orders-de": 2, "orders-eu": 1})
        await admin.create_partitions("orders-eu", 3)
        await until_owned(member, **{"orders-de": 2, "orders-eu": 3})
        await admin.delete_topics(["orders-de"])
        await until_owned(member, **{"orders-eu": 3})
    assert diary.of(Lost) == []
    why = reasons(coordinator)
    assert "new topic orders-eu matches 'orders-.*'" in why
    assert "orders-eu has 3 partitions instead of 1" in why
    assert any(reason.startswith("topic orders-de, which matched 'orders-.*', is gone") for reason in why)
    assert announced(coordinator) == [["orders-de"], ["orders-de", "orders-eu"], ["orders-eu"]]


async def test_each_member_matches_its_own_pattern(coordinator: Coordinator) -> None:
    """The leader does not know the topic that the follower's pattern finds."""
    first, second = Diary(), Diary()
    async with consumer(coordinator, first, ["t"]) as leader:
        await until_owned(leader, t=4)
        async with consumer(coordinator, second, pattern=re.compile("u.*")) as follower:
            await until_owned(follower)
            await asyncio.to_thread(coordinator.create_topic, "users", 2)
            await until_owned(follower, users=2)
            assert leader.is_leader
            # And from now on the leader watches it.
            async with Admin(coordinator.bootstrap) as admin:
                await admin.create_partitions("users", 5)
            await until_owned(follower, users=5)
            await until_owned(leader, t=4)
    assert "users has 5 partitions instead of 2" in reasons(coordinator)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
async def test_a_group_of_patterns_comes_to_rest(coordinator: Coordinator, assignor: str) -> None:
    """All of them see the new topic by themselves; those that are late find that they have announced it."""
    diaries = [Diary() for _ in range(4)]
    made = [consumer(coordinator, diary, pattern="[tu]", assignors=[assignor]) for diary in diaries]

    def together() -> list[tuple[str, int]]:
        shares = [one.assigned for one in made]
        if None in shares or len({share.generation for share in shares if share}) != 1:
            return []
        return sorted(place for share in shares if share for place in partitions_of(share))

    async with made[0], made[1], made[2], made[3]:
        await until(lambda: together() == [("t", number) for number in range(4)])
        await asyncio.to_thread(coordinator.create_topic, "u", 4)
        await until(lambda: together() == [(topic, number) for topic in "tu" for number in range(4)])
        generation, looks = made[0].generation, len(coordinator.faults.seen("Metadata"))
        await until(lambda: len(coordinator.faults.seen("Metadata")) > looks + 40)
        assert {one.generation for one in made} == {generation}
    assert [diary.of(Lost) for diary in diaries] == [[], [], [], []]


async def test_every_join_says_what_matches_then(coordinator: Coordinator) -> None:
    diary = Diary()
    async with consumer(coordinator, diary, pattern="t|u", metadata_max_age_ms=600_000) as member:
        await until_owned(member, t=4)
        await asyncio.to_thread(coordinator.create_topic, "u", 1)
        await member.rejoin("for a reason of its own")
        await until_owned(member, t=4, u=1)
    assert announced(coordinator) == [["t"], ["t", "u"]]


async def test_the_clusters_own_topics_never_match(coordinator: Coordinator) -> None:
    diary = Diary()
    async with Admin(coordinator.bootstrap) as admin:
        names = {topic.name: topic.internal for topic in await admin.list_topics(internal=True)}
    async with consumer(coordinator, diary, pattern=".*") as member:
        await until_owned(member, t=4)
    assert announced(coordinator) == [[name for name, internal in sorted(names.items()) if not internal]]
    choice = Choice(None, ".*")
    choice.look(
        Overview({"a": TopicOverview(b"", 1, False, 0), "__b": TopicOverview(b"", 1, True, 0)}, {}, {})
    )
    assert choice.names == ("a",)


async def test_a_topic_that_is_waited_for_is_looked_for_more_often(coordinator: Coordinator) -> None:
    """The usual time between two looks is longer than this test waits."""
    options = {"metadata_max_age_ms": 600_000}
    async with consumer(coordinator, Diary(), ["later", "t"], **options) as member:
        await until_owned(member, t=4)
        await asyncio.to_thread(coordinator.create_topic, "later", 2)
        await until_owned(member, t=4, later=2)
    assert "topic later is there, with 2 partitions" in reasons(coordinator)


async def test_a_topic_that_was_created_again_is_noticed(coordinator: Coordinator) -> None:
    diary = Diary()
    async with consumer(coordinator, diary, ["t"]) as member:
        await until_owned(member, t=4)

        async def anew() -> None:
            topics = coordinator.node.topics
            await topics.delete("t", coordinator.node.runtime.forget_topic)
            await topics.create("t", 4, {})

        await asyncio.to_thread(lambda: coordinator.run(anew()))
        await until(lambda: "topic t was deleted and created again" in reasons(coordinator))
        await until_owned(member, t=4)


async def test_trouble_with_metadata_ends_no_membership(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()
    lost = [coordinator.faults.drop("Metadata", nth=n) for n in (1, 3, 4, 7)]
    async with consumer(coordinator, diary, pattern="t|u") as member:
        await until_owned(member, t=4)
        await until(lambda: all(rule.hits for rule in lost))
        await asyncio.to_thread(coordinator.create_topic, "u", 1)
        await until_owned(member, t=4, u=1)
    assert member.error is None
    assert diary.of(Lost) == []
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_a_static_leader_that_comes_back_watches_on(coordinator: Coordinator) -> None:
    """It gets its share without computing anything (KIP-814), and still has to see what changed meanwhile."""
    first, second = Diary(), Diary()
    async with consumer(coordinator, first, ["t"], group_instance_id="one") as before:
        await until_owned(before, t=4)
    async with Admin(coordinator.bootstrap) as admin:
        await admin.create_partitions("t", 6)
    async with consumer(coordinator, second, ["t"], group_instance_id="one") as after:
        await until_owned(after, t=6)
    assert "t has 6 partitions instead of 4" in reasons(coordinator)


def test_a_pattern_without_an_event_loop(coordinator: Coordinator) -> None:
    with sync_consumer_member(coordinator.bootstrap, "g", pattern="t.*", **QUICK) as member:
        member.wait_assigned(PATIENCE_S)
        assert announced(coordinator)[-1] == ["t"]


# ---- without a cluster ----


class Looks:
    """The leader's view of the cluster, step by step; the last one stays."""

    request_timeout_ms = 1_000

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seen: Overview) -> None:
        self.requested: list[Any] = []
        self._seen = list(seen)

        async def overview(_cluster: Any, topics: Any, **options: Any) -> Overview:
            self.requested.append((None if topics is None else sorted(topics), options["with_replicas"]))
            return self._seen.pop(0) if len(self._seen) > 1 else self._seen[0]

        monkeypatch.setattr("ringleader.clients.group.leading.leader.overview", overview)
        monkeypatch.setattr("ringleader.clients.group.leading.leader.CONFIRM_MS", 0)


def glance(**topics: Any) -> Overview:
    found = {
        name: TopicOverview(bytes(16), of, False, 0) if isinstance(of, int) else of
        for name, of in topics.items()
    }
    return Overview(found, {}, {1: "a", 2: "b"})


def leading(topics: Any = "t", pattern: Any = None) -> Leading:
    return Leading(Choice(topics, pattern), SubscriptionSettings())


def member(topics: list[str], rack: str | None = None) -> list[MemberInfo]:
    return [MemberInfo("m", None, Subscription(topics, rack_id=rack).encode())]


async def changes(one: Leading) -> list[str]:
    return await one._changes(None, True)  # type: ignore[arg-type]


async def share(one: Leading, infos: list[MemberInfo]) -> dict[str, list[int]]:
    shares = await one.lead(None, "range", infos)  # type: ignore[arg-type]
    return Assignment.decode(shares["m"]).partitions


async def test_what_seems_to_be_gone_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has just started may know less than there is."""
    looks = Looks(monkeypatch, glance(t=2), glance(), glance(t=2), glance())
    one = leading()
    assert await share(one, member(["t"])) == {"t": [0, 1]}
    assert await changes(one) == []
    assert await changes(one) == ["topic t is gone"]
    assert looks.requested == [(["t"], False)] * 5


async def test_a_topic_in_trouble_stays_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    trouble = TopicOverview(bytes(16), 0, False, ErrorCode.LEADER_NOT_AVAILABLE)
    Looks(monkeypatch, glance(t=2), glance(t=2), glance(t=trouble))
    one = leading(None, "t")
    await one.before_join(None)  # type: ignore[arg-type]
    assert await share(one, member(["t"])) == {"t": [0, 1]}
    assert one._choice.announce() == ("t",)
    assert await changes(one) == []


async def test_topics_that_may_not_be_seen_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = TopicOverview(bytes(16), 0, False, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    Looks(monkeypatch, glance(t=2, secret=secret))
    one = leading()
    assert await share(one, member(["t", "secret"])) == {"t": [0, 1]}
    assert await changes(one) == []
    (line,) = [record.message for record in caplog.records]
    assert line.endswith("topics that cannot be seen: secret (TOPIC_AUTHORIZATION_FAILED)")


async def test_racks_count_if_somebody_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    here = TopicOverview(bytes(16), 1, False, 0, (1,), ((1,),))
    there = here._replace(leaders=(2,), replicas=((2,),))
    looks = Looks(monkeypatch, glance(t=here), glance(t=there))
    one = leading()
    await share(one, member(["t"], "a"))
    assert await changes(one) == ["replicas of t are in other racks"]
    await share(one, member(["t"]))
    assert await changes(one) == []
    assert [with_replicas for _, with_replicas in looks.requested] == [True, True, False, False]


async def test_a_pattern_of_a_leader_needs_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch, glance(**{f"t{n}": 1 for n in range(10_000)}))
    one = leading(None, ".*")
    await one.before_join(None)  # type: ignore[arg-type]
    names = list(one._choice.announce())
    assert len(names) == 10_000
    assert sum(map(len, (await share(one, member(names))).values())) == 10_000
    looks.requested.clear()
    assert await changes(one) == []
    assert looks.requested == [(None, False)]


def test_many_changes_in_one_line() -> None:
    assert in_words([]) == ""
    assert in_words(["a", "b", "c"]) == "a; b; c"
    assert in_words(list("abcde")) == "a; b; c; and 2 more"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either topics or a pattern"),
        ({"topics": ["t"], "pattern": "t"}, "either topics or a pattern"),
        ({"pattern": "("}, r"'\(' is no regular expression: missing \)"),
        ({"pattern": re.compile(b"t")}, "a text"),
        ({"topics": ["t"], "metadata_max_age_ms": 0}, "metadata_max_age_ms"),
        ({"topics": ["t"], "lag_check_ms": 0}, "lag_check_ms"),
        ({"topics": ["t"], "imbalance": -1}, "imbalance"),
        ({"topics": ["t"], "auto_offset_reset": "middle"}, "auto_offset_reset has to be one of"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        consumer_member("h:1", "g", **options)
