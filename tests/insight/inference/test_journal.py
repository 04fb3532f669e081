"""Insight reads the journal as the daemon writes it: both ends, and the bytes between them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator.journal.entries import (
    Cause as JournalCause,
)
from ringleader.coordinator.journal.entries import (
    ChangeKind,
    ChangeRecord,
    EpochEntry,
    FirstCommit,
    Incident,
    IncidentKind,
    JournalEntry,
    Present,
    Seated,
    Wait,
)
from ringleader.coordinator.journal.entries import DepartedMember as Departed
from ringleader.coordinator.journal.entries import (
    Departure as Went,
)
from ringleader.coordinator.journal.entries import Outcome as Ended
from ringleader.coordinator.journal.record import JournalRecords, Message, started
from ringleader.insight.inference.engine import Inference
from ringleader.insight.inference.facts import Fact, Output, Topic, TopicsSeen
from ringleader.insight.inference.journal import decode
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    Event,
    EventKind,
    GroupState,
    Kind,
    MemberSpan,
    Ownership,
    Rebalance,
)
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.messages import GroupMetadataValue, GroupMetadataValueMemberMetadata

T0 = 1_700_000_000_000
SUBSCRIPTION = Subscription(["orders"]).encode(1)


def present(name: str, partitions: list[int], instance_id: str | None = None) -> Present:
    share = Assignment({"orders": partitions}).encode(1)
    return Present(
        f"{name}-1", name, "/10.0.0.1", instance_id, 45_000, 300_000, SUBSCRIPTION, share, T0, T0, -1
    )


def stored(*members: Present) -> GroupMetadataValue:
    return GroupMetadataValue(
        "consumer",
        1,
        "range",
        members[0].member_id,
        T0,
        [
            GroupMetadataValueMemberMetadata(
                one.member_id,
                one.group_instance_id,
                one.client_id,
                one.client_host,
                one.rebalance_timeout_ms,
                one.session_timeout_ms,
                one.metadata,
                one.assignment,
            )
            for one in members
        ],
    )


FIRST = JournalEntry(
    "g",
    1,
    JournalCause.MEMBER_JOINED,
    "a-1",
    "",
    Ended.STABLE,
    "consumer",
    "range",
    "a-1",
    (),
    ("a-1", "b-1"),
    ("a-1", "b-1"),
    {},
    T0,
    3_000,
    2_900,
    "b-1",
    60,
    40,
    2,
    (present("a", [0]), present("b", [1], "i-b")),
)
SECOND = JournalEntry(
    "g",
    2,
    JournalCause.SESSION_EXPIRED,
    "b-1",
    "",
    Ended.STABLE,
    "consumer",
    "range",
    "a-1",
    ("a-1", "b-1"),
    ("a-1",),
    (),
    {"b-1": Went.SESSION_EXPIRED},
    T0 + 100_000,
    700,
    600,
    "a-1",
    60,
    40,
    1,
    (present("a", [0, 1]),),
    stored(present("a", [0]), present("b", [1], "i-b")),
    {"b-1": Departed(Went.SESSION_EXPIRED, T0 + 99_000, T0 + 54_000, "b", "/10.0.0.1", "i-b")},
    T0 + 98_000,
)


def read(*messages: Message) -> list[Output]:
    """As the daemon writes it and the watcher reads it, with a restart after each record."""
    records, outputs = JournalRecords(), []
    inference = Inference(exact=True)
    for offset, one in enumerate(messages):
        at_ms, key, value = records.row(one)
        fact = decode(0, offset, at_ms, key, value)
        assert fact is not None
        inference.tell(fact)
        outputs += inference.drain()
        kept = [(group, inference.snapshot(group), b"") for group in inference.dirty()[0]]
        if kept:
            inference = Inference(exact=True)
            inference.restore(kept)
    return outputs


def test_a_rebalance_is_what_the_daemon_says() -> None:
    outputs = read(FIRST, SECOND)
    first, second = (one for one in outputs if isinstance(one, Rebalance))
    assert (first.id, first.generation, first.cause, first.confidence) == (
        "journal-0-0",
        1,
        Cause.MEMBER_JOINED,
        Confidence.EXACT,
    )
    assert (first.began_ms, first.join_ms, first.leader_ms, first.sync_ms) == (T0 - 3_000, 2_900, 60, 40)
    assert [(one.name, one.topics, one.assigned) for one in first.members] == [
        ("a@10.0.0.1", ("orders",), (("orders", 0),)),
        ("i-b", ("orders",), (("orders", 1),)),
    ]
    assert second.cause is Cause.SESSION_EXPIRED
    assert second.cause_members == ("b-1",)
    assert second.left["b-1"].why is Departure.SESSION_EXPIRED
    assert second.left["b-1"].silent_ms == 45_000
    assert second.evidence == (
        "the journal says: session expired, i-b",
        "i-b: session expired, last request 45 s before; its session timeout is 45 s",
    )
    assert [one[:4] for one in second.moves] == [("orders", 1, "b-1", "a-1")]
    assert second.unowned_ms == sum(one.unowned_ms or 0 for one in second.moves)
    ended = [one for one in outputs if isinstance(one, MemberSpan) and one.until_ms]
    assert [(one.member.member_id, one.rebalance_id) for one in ended] == [("b-1", "journal-0-1")]
    held = [one for one in outputs if isinstance(one, Ownership) and one.partition == 1]
    assert held[-1].member_id == "a-1"
    assert [one.generation for one in outputs if isinstance(one, GroupState)] == [1, 2]


@pytest.mark.parametrize("reason", ["consumer poll timeout has expired.", "the consumer is being closed"])
def test_a_member_that_says_that_it_was_busy_did_not_just_leave(reason: str) -> None:
    left = Departed(Went.LEFT, T0 + 99_000, T0 + 98_000, "b", "/10.0.0.1", "i-b")
    message = replace(SECOND, cause=JournalCause.MEMBER_LEFT, reason=reason, gone={"b-1": left})
    *_, second = (one for one in read(FIRST, message) if isinstance(one, Rebalance))
    departed = second.left["b-1"]
    if reason == "the consumer is being closed":
        assert (second.cause, second.confidence) == (Cause.MEMBER_LEFT, Confidence.EXACT)
        assert (departed.why, departed.confidence) == (Departure.LEFT, Confidence.EXACT)
        return
    assert (second.cause, second.confidence) == (Cause.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN)
    assert (departed.why, departed.confidence) == (Departure.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN)
    assert departed.silent_ms == 1_000
    assert "had not called poll()" in departed.evidence[-1]
    assert "the journal says: member left, i-b" in second.evidence


def test_nobody_has_a_partition_until_before_it_got_it_when_a_clock_was_set_back() -> None:
    outputs = read(FIRST, replace(SECOND, at_ms=T0 - 5_000))
    ended = [one for one in outputs if isinstance(one, Ownership) and one.until_ms is not None]
    assert [(one.partition, one.member_id) for one in ended] == [(1, "b-1")]
    assert [(one.since_ms, one.until_ms) for one in ended] == [(T0, T0)]


def test_a_first_commit_that_comes_later_completes_the_rebalance() -> None:
    outputs = read(FIRST, FirstCommit("g", 1, member_id="a-1", at_ms=T0 + 700, after_ms=700))
    *_, last = (one for one in outputs if isinstance(one, Rebalance))
    assert (last.id, last.first_commit_ms) == ("journal-0-0", T0 + 700)


def test_a_static_member_that_comes_back_is_a_restart_until_the_old_one_asks_again() -> None:
    back = Incident(
        "g",
        IncidentKind.STATIC_RETURNED,
        T0 + 9_000,
        "b-2",
        "b",
        "/10.0.0.2",
        "i-b",
        ErrorCode.NONE,
        "b-1",
        T0 + 4_000,
    )
    fenced = Incident("g", IncidentKind.INSTANCE_FENCED, T0 + 9_500, "b-1", "b", "/10.0.0.1", "i-b")
    outputs = read(FIRST, back, fenced)
    _, restart, twice = (one for one in outputs if isinstance(one, Rebalance))
    assert (restart.cause, restart.generation, restart.unowned_ms) == (Cause.STATIC_MEMBER_REPLACED, 1, 5_000)
    assert restart.left["b-1"].why is Departure.RESTARTED
    assert [one.member_id for one in restart.members] == ["a-1", "b-2"]
    assert (twice.id, twice.cause, twice.left["b-1"].why) == (
        restart.id,
        Cause.INSTANCE_FENCED,
        Departure.FENCED,
    )


def test_a_rebalance_of_the_consumer_protocol() -> None:
    orders = b"o" * 16

    def seated(name: str, partitions: list[int]) -> Seated:
        return Seated(
            f"{name}-1",
            name,
            "/10.0.0.1",
            None,
            45_000,
            60_000,
            frozenset(["orders"]),
            2,
            {orders: partitions},
        )

    entry = EpochEntry(
        "g",
        2,
        JournalCause.MEMBER_JOINED,
        "b-1",
        Ended.STABLE,
        "uniform",
        (seated("a", [0]), seated("b", [1])),
        (seated("a", [0, 1]),),
        ("b-1",),
        {},
        T0,
        4_200,
        100,
        4_100,
        {(orders, 1): ("a-1", "b-1", 90)},
        (Wait("b-1", "a-1", ((orders, 1),), T0 - 4_100, T0 - 90),),
        {orders: "orders"},
    )
    outputs = read(entry)
    [found] = [one for one in outputs if isinstance(one, Rebalance)]
    assert (found.kind, found.generation, found.confidence) == (Kind.CONSUMER, 2, Confidence.EXACT)
    assert (found.join_ms, found.leader_ms, found.sync_ms, found.unowned_ms) == (None, 100, 4_100, 90)
    assert "b@10.0.0.1 waited 4 s for a@10.0.0.1 to give up orders:1" in found.evidence
    [state] = [one for one in outputs if isinstance(one, GroupState)]
    assert (state.kind, state.state) == (Kind.CONSUMER, "Stable")
    owned = {one.partition: one.member_id for one in outputs if isinstance(one, Ownership)}
    assert owned == {0: "a-1", 1: "b-1"}


@pytest.mark.parametrize(
    ("incident", "kind", "text"),
    [
        (
            Incident(
                "g",
                IncidentKind.REVOCATION_AWAITED,
                T0,
                "a-1",
                "a",
                "/10.0.0.3",
                partitions=(("orders", 2, None, None),),
                waiting=("b-1", "c-1"),
                since_ms=T0 - 12_000,
            ),
            EventKind.REVOCATION_AWAITED,
            "a@10.0.0.3 has not given up orders:2 for 12 s: 2 members cannot go on.",
        ),
        (
            Incident(
                "g",
                IncidentKind.EPOCH_REFUSED,
                T0,
                "a-1",
                "a",
                "/10.0.0.3",
                error=ErrorCode.STALE_MEMBER_EPOCH,
            ),
            EventKind.EPOCH_REFUSED,
            "a@10.0.0.3: a commit of another member epoch was refused: STALE_MEMBER_EPOCH.",
        ),
        (
            Incident(
                "g",
                IncidentKind.ASSIGNOR_FELL_BACK,
                T0,
                "a-1",
                "a",
                "/10.0.0.3",
                reason="no member can compute client:best",
            ),
            EventKind.ASSIGNOR_FELL_BACK,
            "The coordinator assigned in place of a member (a@10.0.0.3): no member can compute client:best.",
        ),
        (
            Incident("g", IncidentKind.STATIC_AWAY, T0, "a-1", "a", "/10.0.0.3", "i-a"),
            EventKind.STATIC_AWAY,
            "i-a left for a while, and keeps its partitions until its session ends.",
        ),
        (
            Incident(
                "g",
                IncidentKind.JOIN_REFUSED,
                T0,
                "",
                "c",
                "/10.0.0.3",
                None,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
            ),
            EventKind.JOIN_REFUSED,
            "c@10.0.0.3 was refused to join: GROUP_MAX_SIZE_REACHED.",
        ),
        (
            Incident(
                "g",
                IncidentKind.OFFSETS_RESET,
                T0,
                partitions=(("orders", 0, 90, 10), ("orders", 1, None, 5)),
            ),
            EventKind.OFFSETS_RESET,
            "Committed offsets of 2 partitions of orders were set: 80 records back.",
        ),
        (
            Incident("g", IncidentKind.OFFSETS_EXPIRED, T0, partitions=(("orders", 0, 90, None),)),
            EventKind.OFFSETS_DELETED,
            "The committed offsets of 1 partition of orders expired.",
        ),
        (Incident("g", IncidentKind.GROUP_DELETED, T0), EventKind.GROUP_DELETED, "The group was deleted."),
    ],
)
def test_what_else_it_says(incident: Incident, kind: EventKind, text: str) -> None:
    (event,) = read(incident)
    assert isinstance(event, Event)
    assert (event.id, event.group, event.at_ms, event.kind, event.text) == (
        "journal-0-0",
        "g",
        T0,
        kind,
        text,
    )


@pytest.mark.parametrize(
    ("incident", "member", "reason"),
    [
        (
            Incident("g", IncidentKind.ASSIGNOR_FELL_BACK, T0, "a-1", "a", "/h", reason="its own (why)"),
            "a@h",
            "its own (why)",
        ),
        (
            Incident(
                "g", IncidentKind.JOIN_REFUSED, T0, "", "c", "/10.0.0.3", "i-c",
                ErrorCode.UNRELEASED_INSTANCE_ID, principal="User:ann",
            ),
            "i-c",
            "UNRELEASED_INSTANCE_ID",
        ),
        (Incident("g", IncidentKind.GROUP_DELETED, T0), "", ""),
    ],
)  # fmt: skip
def test_it_says_in_fields_of_whom_and_why(incident: Incident, member: str, reason: str) -> None:
    (event,) = read(incident)
    assert isinstance(event, Event)
    assert (event.member, event.reason) == (member, reason)


def _deed(event: str, subject: str, detail: str = "", **more: Any) -> ChangeRecord:
    kind = ChangeKind.REFUSED if event == "refused" else ChangeKind.CHANGED
    client: dict[str, Any] = {"principal": "User:ann", "client_id": "c", "client_host": "/10.0.0.3", **more}
    return ChangeRecord(kind, event, T0, subject=subject, detail=detail, **client)


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        (
            _deed("refused", "TOPIC orders", "READ"),
            EventKind.REFUSED,
            "c@10.0.0.3 (User:ann) was not allowed READ of TOPIC orders.",
        ),
        (
            _deed("join refused", "GROUP g", "READ", error=ErrorCode.GROUP_AUTHORIZATION_FAILED),
            EventKind.JOIN_REFUSED,
            "c@10.0.0.3 (User:ann) was refused to join: GROUP_AUTHORIZATION_FAILED.",
        ),
        (
            _deed("topic configuration changed", "orders", "retention.ms=1"),
            EventKind.CHANGED,
            "Topic configuration changed by User:ann: orders (retention.ms=1).",
        ),
        (
            _deed("quotas altered", "user ann", "producer_byte_rate=1024"),
            EventKind.CHANGED,
            "Quotas altered by User:ann: user ann (producer_byte_rate=1024).",
        ),
        (
            _deed("user removed", "bob", principal="User:ANONYMOUS"),
            EventKind.CHANGED,
            "User removed by c@10.0.0.3: bob.",
        ),
        (
            Incident("g", IncidentKind.GROUP_DELETED, T0, client_id="c", principal="User:ann"),
            EventKind.GROUP_DELETED,
            "The group was deleted by User:ann.",
        ),
        (
            Incident("g", IncidentKind.OFFSETS_RESET, T0, "", "c", "/h", principal="User:ann"),
            EventKind.OFFSETS_RESET,
            "Committed offsets of 0 partitions of  were set by User:ann: none moved.",
        ),
    ],
)
def test_it_says_who(message: Message, kind: EventKind, text: str) -> None:
    (event,) = read(message)
    assert isinstance(event, Event)
    assert (event.kind, event.text) == (kind, text)


def test_members_are_somebody_where_the_journal_knows_it() -> None:
    ann, nobody, late = (
        one._replace(principal=principal)
        for one, principal in zip(FIRST.members * 2, ("User:ann", "User:ANONYMOUS", None), strict=False)
    )
    [rebalance] = [one for one in read(replace(FIRST, members=(ann, nobody))) if isinstance(one, Rebalance)]
    assert rebalance.principals == {ann.member_id: "User:ann"}
    [rebalance] = [one for one in read(replace(FIRST, members=(late, nobody))) if isinstance(one, Rebalance)]
    assert rebalance.principals == {}


@pytest.mark.parametrize("journal_first", [True, False])
def test_what_a_poll_sees_of_a_topic_too_is_one_event(journal_first: bool) -> None:
    inference = Inference(exact=True)
    inference.tell(TopicsSeen(T0 - 1, {}))
    at_ms, key, value = JournalRecords().row(_deed("topic created", "orders", "partitions=2"))
    fact = decode(0, 5, at_ms, key, value)
    assert fact is not None
    both: list[Fact] = [fact, TopicsSeen(T0 + 1, {"orders": Topic(2, b"x" * 16)})]
    for one in both if journal_first else reversed(both):
        inference.tell(one)
    events = {one.id: one for one in inference.drain() if isinstance(one, Event)}
    assert [one.text for one in events.values()] == ["Topic created by User:ann: orders (partitions=2)."]


def test_the_daemon_itself() -> None:
    at_ms, key, value = started(T0)
    fact = decode(0, 5, at_ms, key, value)
    assert fact is not None
    assert fact.entry == Event("journal-0-5", "", T0, EventKind.COORDINATOR_BACK, "The daemon started.")


def test_what_a_later_version_says_is_passed_by() -> None:
    assert decode(0, 0, 0, b"g", json.dumps({"format": 2, "kind": "rebalance"}).encode()) is None
    assert decode(0, 0, 0, b"g", json.dumps({"format": 1, "kind": "weather"}).encode()) is None
    assert decode(0, 0, 0, b"g", None) is None


@pytest.mark.parametrize("value", [b"", b"{", b"[]", b"{}", b'{"format":1,"kind":"rebalance"}', b"\xff"])
def test_what_cannot_be_read_is_malformed(value: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(0, 0, 0, b"g", value)
