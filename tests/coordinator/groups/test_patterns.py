"""Regular expressions of groups of the consumer protocol in a shard: when it asks which topics they match,
and what the answer changes. The test answers, with the function that the runtime answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups import patterns as matching
from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import Reader, Regex
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups import patterns as groups_patterns
from ringleader.coordinator.groups.patterns import LEAST_MS, REFRESH_MS, PatternsAsked
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.journal.entries import Cause, EpochEntry
from ringleader.coordinator.machine import Notice
from ringleader.coordinator.run_queue import whole
from ringleader.coordinator.runtime.patterns import answer
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.groups.test_consumer import Desk, Ticket

SETTINGS = GroupSettings(group_consumer_assignment_interval_ms=0)


@dataclass
class Rights:
    """By principal, the topics that it may not describe; by principal and host as well."""

    hidden: dict[str, set[str]] = field(default_factory=dict)
    is_open: bool = False
    names_hosts: bool = True

    def sees(self, principal: str, host: str, topic: str) -> bool:
        return not any(topic in self.hidden.get(one, ()) for one in (principal, f"{principal} {host}"))


class RegexDesk(Desk):
    """Heartbeats with an expression, by several principals."""

    def __init__(self, settings: GroupSettings = SETTINGS) -> None:
        super().__init__(settings)
        self.sight: Rights | None = None
        for name in ("payments", "orders-eu"):
            self.create(name)

    def create(self, name: str) -> None:
        self.topics.put(Topic(name, name.encode().ljust(16), 1))

    def requests(self) -> list[PatternsAsked]:
        """The questions since the last call."""
        found = [one for one in self.events if isinstance(one, PatternsAsked)]
        self.events = [one for one in self.events if not isinstance(one, PatternsAsked)]
        return found

    def tell(self, request: PatternsAsked, found: dict[str, Regex] | None = None) -> None:
        if found is None:
            found = whole(answer(request, self.topics, self.sight))
        self.shard.resolved(request.group_id, request.number, found, self.now_ms)
        self._settle()

    def resolve(self) -> None:
        """Answer the one question that there is."""
        [request] = self.requests()
        self.tell(request)

    def subscribes(
        self, member: str, pattern: str | None = "orders.*", *names: str, **more: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.says(member, 0, subscribed_topic_names=[*names], subscribed_topic_regex=pattern, **more)

    def says(self, member: str, epoch: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
        ticket = Ticket(1, principal=more.pop("principal", ""), client_host=more.pop("host", "/127.0.0.1"))
        request = ConsumerGroupHeartbeatRequest("g", member, epoch)
        if epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
        for name, value in more.items():
            setattr(request, name, value)
        response = self.shard.handle(request, ticket, self.now_ms)
        answers = self._settle()
        found: ConsumerGroupHeartbeatResponse = answers[ticket] if response is None else response
        return found

    def lives(self, member: str, **more: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat at the member's own epoch."""
        known = self.group.members[member]
        more = {"principal": known.subscription.principal, "host": known.subscription.client_host, **more}
        return self.says(member, known.current.epoch, **more)

    def reads(self, member: str) -> set[str]:
        """The topics of the member's target, after a heartbeat of its own."""
        self.lives(member)
        some = self.group.members[member].target
        return {topic.name for one in some if (topic := self.topics.of_id(one)) is not None}

    @property
    def group(self) -> Any:
        return self.shard._core.groups["g"].consumer

    def described(self) -> ConsumerGroupDescribeResponseDescribedGroup:
        found = self.shard.describe_consumer("g", Ticket())
        assert found is not None
        return found

    def written(self, kind: int) -> int:
        """Records of that type so far."""
        return sum(1 for key, _ in self.log if key[:2] == kind.to_bytes(2, "big"))


@pytest.fixture
def desk() -> RegexDesk:
    return RegexDesk()


def test_the_topics_come_with_the_answer(desk: RegexDesk) -> None:
    joined = desk.subscribes("a")
    assert (joined.error_code, joined.member_epoch, joined.assignment.topic_partitions) == (0, 1, [])  # type: ignore[union-attr]
    [request] = desk.requests()
    assert request.readers == {Reader("orders.*", ""): frozenset({"/127.0.0.1"})}
    desk.tell(request)
    assert desk.described().group_epoch == 2
    assert desk.reads("a") == {"orders", "orders-eu"}
    [member] = desk.described().members
    assert (member.subscribed_topic_regex, member.subscribed_topic_names) == ("orders.*", [])
    assert [one.text for one in desk.events if isinstance(one, Notice)] == [
        "regular expression orders.* matches 2 topics, new: orders, orders-eu"
    ]


def test_names_and_expressions_of_all_members_are_one(desk: RegexDesk) -> None:
    desk.subscribes("a", "orders-.*", "payments")
    desk.subscribes("b", None, "orders")
    desk.resolve()
    assert desk.reads("a") == {"orders-eu", "payments"}
    assert desk.reads("b") == {"orders"}


def test_an_expression_that_matches_nothing_begins_no_epoch(desk: RegexDesk) -> None:
    desk.subscribes("a", "nothing")
    desk.resolve()
    assert desk.described().group_epoch == 1
    assert desk.written(records.REGEX) == 1


def test_a_known_expression_counts_at_once(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.subscribes("b")
    assert desk.described().group_epoch == 3
    assert not desk.requests()


@pytest.mark.parametrize("pattern", ["(", "a**", "x" * 3_000])
def test_one_that_is_none_changes_nothing(desk: RegexDesk, pattern: str) -> None:
    refused = desk.subscribes("a", pattern)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert (refused.error_message or "").startswith("SubscribedTopicRegex `")
    assert not desk.log
    assert not desk.requests()


def test_a_group_has_so_many_expressions(desk: RegexDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "PATTERNS_MAX", 2)
    assert not desk.subscribes("a", "a").error_code
    assert not desk.subscribes("b", "b").error_code
    assert desk.subscribes("c", "c").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not desk.subscribes("c", "b").error_code


# ---- when it asks ----


def test_one_question_at_a_time(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [request] = desk.requests()
    desk.subscribes("b", "pay.*")
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    assert not desk.requests()
    desk.tell(request)  # of one of two
    desk.wait(LEAST_MS)
    desk.lives("a")
    assert not desk.requests()
    desk.wait(1)
    desk.lives("a")
    [request] = desk.requests()
    assert {one.pattern for one in request.readers} == {"orders.*", "pay.*"}


def test_a_new_topic_is_found(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu"}
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    assert not desk.requests()  # nothing is new
    desk.create("orders-us")
    desk.lives("a")
    desk.resolve()
    assert desk.described().group_epoch == 3
    assert desk.reads("a") == {"orders", "orders-eu", "orders-us"}
    desk.create("other")
    desk.wait(LEAST_MS + 1)
    desk.says("a", 3)
    desk.resolve()
    assert desk.described().group_epoch == 3


def test_a_new_topic_waits_for_ten_seconds(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.create("orders-us")
    desk.wait(LEAST_MS)
    desk.lives("a")
    assert not desk.requests()
    desk.wait(1)
    desk.lives("a")
    assert len(desk.requests()) == 1


def test_a_topic_that_goes_is_no_reason_to_ask(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.reads("a")
    desk.topics.remove("orders-eu")
    desk.wait(LEAST_MS + 1)
    assert desk.reads("a") == {"orders"}
    assert not desk.requests()


def test_all_is_resolved_again_after_ten_minutes(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    before = desk.written(records.REGEX)
    for _ in range(REFRESH_MS // 20_000):
        desk.wait(20_000)
        desk.lives("a")
    assert not desk.requests()
    desk.wait(1)
    desk.lives("a")
    desk.resolve()
    assert (desk.written(records.REGEX), desk.described().group_epoch) == (before + 1, 2)


def test_an_answer_of_no_use_is_asked_for_again(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [request] = desk.requests()
    desk.tell(request, {})
    desk.lives("a")
    assert not desk.requests()
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu"}


def test_what_was_matched_with_fewer_topics_than_another_expression_is_matched_again(desk: RegexDesk) -> None:
    """A topic came while the question was worked on."""
    desk.subscribes("a")
    desk.subscribes("b", "pay.*")
    [first] = desk.requests()
    desk.tell(first)
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    [request] = desk.requests()
    early = whole(answer(request, desk.topics, None))
    desk.create("orders-us")
    late = whole(answer(request, desk.topics, None))
    desk.tell(request, {"orders.*": early["orders.*"], "pay.*": late["pay.*"]})
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu", "orders-us"}


def test_an_expression_whose_answer_was_of_no_use_is_asked_for_again_beside_others(desk: RegexDesk) -> None:
    """That others are known does not make the new one wait until all is resolved again."""
    desk.subscribes("a")
    desk.resolve()
    desk.wait(LEAST_MS + 1)
    desk.subscribes("b", "pay.*")
    [request] = desk.requests()
    desk.tell(request, {})
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.reads("b") == {"payments"}


def test_topics_of_a_former_expression_go_to_others_though_the_new_one_matches_nothing(
    desk: RegexDesk,
) -> None:
    desk.subscribes("a", "pay.*")
    desk.resolve()
    desk.lives("a")
    desk.subscribes("b", None, "payments")
    assert (desk.reads("a"), desk.reads("b")) == ({"payments"}, set())
    desk.wait(LEAST_MS + 1)
    desk.lives("a", subscribed_topic_names=[], subscribed_topic_regex="z+", topic_partitions=[])
    desk.resolve()
    assert (desk.reads("a"), desk.reads("b")) == (set(), {"payments"})


def test_an_answer_that_never_comes_is_waited_for_so_long(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [lost] = desk.requests()
    for _ in range(REFRESH_MS // 20_000):
        desk.lives("a")
        desk.wait(20_000)
    assert not desk.requests()
    desk.lives("a")
    desk.resolve()
    start = len(desk.log)
    desk.tell(lost)
    assert len(desk.log) == start


def test_answers_to_nobody_change_nothing(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [request] = desk.requests()
    desk.tell(request._replace(group_id="none"))
    desk.tell(request._replace(number=7))
    assert desk.written(records.REGEX) == 0
    desk.says("a", -1)
    desk.tell(request)
    assert desk.written(records.REGEX) == 0


# ---- expressions that go ----


def test_what_nobody_asks_for_is_deleted(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.lives("a", subscribed_topic_regex="pay.*")
    assert desk.log[-1][1] is not None
    assert (records.key(records.REGEX, "g", "orders.*"), None) in desk.log
    assert not desk.requests()  # ten seconds have to pass, by what was known when the heartbeat came
    desk.lives("a")
    desk.resolve()
    assert desk.reads("a") == {"payments"}
    epoch = desk.described().group_epoch
    desk.lives("a", subscribed_topic_regex="")
    assert desk.described().group_epoch == epoch + 1
    assert desk.group.regexes == {}
    assert desk.group.held_bytes >= 0


# ---- principals ----

ANN, BOB = "User:ann", "User:bob"


def test_each_principal_has_the_topics_that_it_sees(desk: RegexDesk) -> None:
    desk.sight = Rights({ANN: {"orders-eu"}})
    desk.subscribes("a", principal=ANN)
    desk.resolve()
    desk.subscribes("b", principal=BOB)
    assert desk.described().group_epoch == 2  # resolved for another one only
    assert not desk.requests()
    desk.wait(LEAST_MS + 1)
    desk.lives("b", principal=BOB)
    desk.resolve()
    assert desk.described().group_epoch == 3
    for _ in range(2):
        assert desk.group.regexes["orders.*"].topics == {"orders", "orders-eu"}
        assert desk.group.topic_names(desk.group.members["a"]) == {"orders"}
        assert desk.group.topic_names(desk.group.members["b"]) == {"orders", "orders-eu"}
        desk.restart()
    assert desk.group.members["b"].subscription.principal == BOB


def test_a_member_that_is_another_principal_sees_what_that_sees(desk: RegexDesk) -> None:
    desk.sight = Rights({ANN: {"orders-eu"}})
    desk.subscribes("a", principal=ANN)
    desk.subscribes("b", principal=BOB)
    desk.resolve()
    desk.wait(LEAST_MS + 1)
    desk.lives("b", principal=BOB)
    desk.resolve()
    epoch = desk.described().group_epoch
    desk.lives("a", principal=BOB)
    assert desk.described().group_epoch == epoch + 1
    assert desk.group.topic_names(desk.group.members["a"]) == {"orders", "orders-eu"}


def test_other_rights_are_other_topics(desk: RegexDesk) -> None:
    desk.sight = Rights({ANN: {"orders-eu"}})
    desk.subscribes("a", principal=ANN)
    desk.resolve()
    desk.wait(LEAST_MS + 1)
    desk.sight.hidden.clear()
    desk.topics.seen_anew()
    desk.lives("a", principal=ANN)
    desk.resolve()
    assert desk.group.topic_names(desk.group.members["a"]) == {"orders", "orders-eu"}
    assert desk.described().group_epoch == 3


def test_a_principal_from_several_hosts_has_what_it_sees_from_each(desk: RegexDesk) -> None:
    desk.sight = Rights({f"{ANN} /10.0.0.1": {"orders-eu"}, f"{ANN} /10.0.0.2": {"orders"}})
    desk.subscribes("a", "orders.*|payments", principal=ANN, host="/10.0.0.1")
    desk.resolve()
    assert desk.group.topic_names(desk.group.members["a"]) == {"orders", "payments"}
    desk.subscribes("b", "orders.*|payments", principal=ANN, host="/10.0.0.2")
    desk.wait(LEAST_MS + 1)
    desk.topics.seen_anew()
    desk.lives("b")
    desk.resolve()
    assert desk.group.topic_names(desk.group.members["a"]) == {"payments"}


# ---- a restart ----


def test_all_is_known_after_a_restart(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.subscribes("b", "pay.*")
    desk.resolve()
    desk.wait(LEAST_MS + 1)
    desk.lives("b")
    desk.resolve()
    desk.reads("a")
    epoch, held = desk.described().group_epoch, desk.group.held_bytes
    desk.restart()
    assert desk.group.held_bytes == held
    assert desk.described().group_epoch == epoch
    assert {one: desk.group.topic_names(desk.group.members[one]) for one in "ab"} == {
        "a": {"orders", "orders-eu"},
        "b": {"payments"},
    }
    desk.lives("a")
    assert not desk.requests()
    desk.wait(LEAST_MS + 1)  # what was created meanwhile is not known to be old
    desk.lives("a")
    desk.resolve()
    assert desk.described().group_epoch == epoch


def test_a_restart_before_the_answer_asks_again(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [lost] = desk.requests()
    desk.restart()
    desk.tell(lost)
    assert desk.written(records.REGEX) == 0
    desk.lives("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu"}


# ---- too much ----


def test_a_record_that_is_too_large_is_not_written() -> None:
    desk = RegexDesk(SETTINGS.model_copy(update={"group_max_record_bytes": 1_000}))
    desk.subscribes("a", "many.*")
    desk.resolve()
    for number in range(100):
        desk.create(f"many-topics-{number}")
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.described().group_epoch == 1
    [notice] = [one.text for one in desk.events if isinstance(one, Notice)]
    assert "more than group.max.record.bytes" in notice
    desk.lives("a")
    assert not desk.requests()


def test_a_group_has_so_many_topics(desk: RegexDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_patterns, "TOPICS_MAX", 2)
    desk.subscribes("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu"}
    desk.create("orders-us")
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.reads("a") == {"orders", "orders-eu"}
    assert "match 3 topics, more than 2" in [one.text for one in desk.events if isinstance(one, Notice)][-1]


def test_topics_need_memory() -> None:
    desk = RegexDesk(SETTINGS.model_copy(update={"group_metadata_max_bytes": 20_000}))
    for number in range(100):
        desk.create(f"many-topics-{number}")
    assert not desk.subscribes("a", ".*").error_code
    desk.resolve()
    assert desk.described().group_epoch == 1
    assert [one.text for one in desk.events if isinstance(one, Notice)]
    desk.wait(LEAST_MS + 1)
    assert not desk.lives("a").error_code


def test_a_full_store_takes_no_answer(desk: RegexDesk) -> None:
    desk.subscribes("a")
    [request] = desk.requests()
    desk.shard.set_full(True, desk.now_ms)
    desk.tell(request)
    assert desk.written(records.REGEX) == 0
    desk.shard.set_full(False, desk.now_ms)
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.written(records.REGEX) == 1


# ---- the journal ----


def test_the_journal_names_the_cause(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.reads("a")
    desk.wait(LEAST_MS + 1)
    desk.create("orders-us")
    desk.lives("a")
    desk.resolve()
    desk.reads("a")
    causes = [
        (one.cause, one.cause_member, list(one.joined)) for one in desk.events if isinstance(one, EpochEntry)
    ]
    assert causes == [(Cause.MEMBER_JOINED, "a", ["a"]), (Cause.TOPICS_CHANGED, "", [])]


def test_the_journal_says_that_a_static_member_joined_under_the_id_that_it_has_by_then(
    desk: RegexDesk,
) -> None:
    desk.subscribes("a", instance_id="i")
    desk.says("a", -2, instance_id="i")
    desk.subscribes("b", instance_id="i")
    desk.resolve()
    desk.reads("b")
    [entry] = [one for one in desk.events if isinstance(one, EpochEntry)]
    assert (entry.cause, entry.cause_member, list(entry.joined)) == (Cause.MEMBER_JOINED, "b", ["b"])


def test_a_member_that_went_before_its_topics_were_known_has_not_joined(desk: RegexDesk) -> None:
    desk.subscribes("a")
    desk.resolve()
    desk.reads("a")
    desk.subscribes("b", "pay.*")
    desk.says("b", -1)
    desk.lives("a")
    entry = [one for one in desk.events if isinstance(one, EpochEntry)][-1]
    assert (entry.cause, list(entry.joined), list(entry.gone)) == (Cause.MEMBER_LEFT, [], ["b"])
