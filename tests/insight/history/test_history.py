"""Every recorded fact is there again, as it was last stated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.insight.history import History, Position
from ringleader.insight.model import (
    Cause,
    Commit,
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    GroupState,
    Kind,
    Lag,
    Member,
    MemberSpan,
    Move,
    Outcome,
    Ownership,
    Rebalance,
)

ANNA = Member(
    "anna-1", "anna", "/10.0.0.1", "a", ("orders",), (("orders", 0), ("orders", 7)), 45_000, 300_000
)
BERT = Member("bert-1", "bert", "/10.0.0.2")
DEPARTED = DepartureFinding(
    Departure.SESSION_EXPIRED, Confidence.LIKELY, 45_300, ("its partitions stood still",)
)
FULL = Rebalance(
    id="offsets-3-17",
    group="billing",
    kind=Kind.CLASSIC,
    generation=4,
    at_ms=2_000,
    cause=Cause.SESSION_EXPIRED,
    confidence=Confidence.LIKELY,
    evidence=("one", "zwei \ud83d\ude80 \udc80"),
    cause_members=("bert-1",),
    reason="said so",
    outcome=Outcome.SUPERSEDED,
    protocol_type="consumer",
    protocol="range",
    leader="anna-1",
    members=(ANNA,),
    joined=("anna-1",),
    left={"bert-1": DEPARTED},
    before=(ANNA, BERT),
    began_ms=1_000,
    join_ms=900,
    join_last_member="anna-1",
    leader_ms=90,
    sync_ms=10,
    moves=(Move("orders", 7, "bert-1", "anna-1", 46_000), Move("orders", 8, None, None)),
    unowned_ms=46_000,
    first_commit_ms=2_100,
    last_commit_ms=800,
    principals={"anna-1": "User:anna"},
)


def rebalance(number: int, at_ms: int, group: str = "billing") -> Rebalance:
    return Rebalance(
        f"offsets-0-{number}", group, Kind.CLASSIC, number, at_ms, Cause.UNKNOWN, Confidence.UNKNOWN
    )


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    path = tmp_path / "some" / "where" / "h.sqlite"
    with History.open(path, cluster_id="abc", address="prod:9092") as history:
        yield history


def test_every_field_of_a_rebalance_comes_back(history: History) -> None:
    plain = rebalance(1, 1_000)
    history.record([FULL, plain])
    assert history.rebalance(FULL.id) == FULL
    assert history.rebalance(plain.id) == plain
    assert history.rebalance("offsets-9-9") is None


def test_a_later_statement_replaces_an_earlier_one(history: History) -> None:
    span = MemberSpan("billing", ANNA, 100, None, None, None)
    owned = Ownership("billing", "orders", 0, "anna-1", 100, None, "offsets-0-1")
    history.record([rebalance(1, 1_000), rebalance(1, 1_100), span, owned])
    over = span._replace(
        member=ANNA._replace(assigned=()), until_ms=900, gone=DEPARTED, rebalance_id="offsets-0-2"
    )
    history.record([rebalance(1, 1_200), over, owned._replace(until_ms=800)])
    assert history.rebalances() == [rebalance(1, 1_200)]
    assert history.members("billing") == [over]
    assert history.ownership("billing") == [owned._replace(until_ms=800)]


def test_rebalances_by_group_time_and_number(history: History) -> None:
    history.record([rebalance(number, number * 100, "ab"[number % 2]) for number in range(10)])

    def found(group: str | None = None, **options: int | bool) -> list[int]:
        return [one.generation for one in history.rebalances(group, **options)]  # type: ignore[arg-type]

    assert found() == list(range(10))
    assert found("b") == [1, 3, 5, 7, 9]
    assert found(since_ms=300, until_ms=500) == [3, 4, 5]
    assert found("a", limit=2) == [0, 2]
    assert found("a", limit=2, newest_first=True) == [8, 6]
    assert found("c") == []


def test_members_and_ownership_touch_the_time(history: History) -> None:
    spans = [
        MemberSpan("g", ANNA, 100, 200, DEPARTED, "offsets-0-2"),
        MemberSpan("g", BERT, 150, None, None, None),
        MemberSpan("other", ANNA, 100, None, None, None),
    ]
    owned = [
        Ownership("g", "orders", 0, "anna-1", 100, 200, "offsets-0-1"),
        Ownership("g", "orders", 0, "bert-1", 200, None, "offsets-0-2"),
        Ownership("g", "orders", 1, "anna-1", 100, 200, "offsets-0-1"),
        Ownership("other", "orders", 0, "anna-1", 100, None, "offsets-0-3"),
    ]
    history.record([*spans, *owned])
    assert history.members("g") == spans[:2]
    assert history.members("g", until_ms=149) == spans[:1]
    assert history.members("g", since_ms=201) == spans[1:2]
    assert history.ownership("g", topic="orders", partition=0) == owned[:2]
    assert history.ownership("g", since_ms=201) == owned[1:2]
    assert history.ownership("g", until_ms=199) == [owned[0], owned[2]]
    # At the moment of the change the new owner has it.
    assert history.owners_at("orders", 0, 199) == [owned[0], owned[3]]
    assert history.owners_at("orders", 0, 200) == [owned[3], owned[1]]
    assert history.owners_at("orders", 1, 200) == []


def test_offsets_and_lag_at_a_time(history: History) -> None:
    commits = [Commit("g", "orders", at % 2, at * 100, at) for at in range(6)]
    lags = [Lag("g", "orders", 0, 100, 50, None), Lag("g", "orders", 0, 200, 60, 40)]
    history.record([*commits, *lags])
    assert history.commits("g") == commits
    assert history.commits("g", partition=1, since_ms=300) == [commits[3], commits[5]]
    assert history.offsets_at("g", 350) == {("orders", 0): commits[2], ("orders", 1): commits[3]}
    assert history.offsets_at("g", -1) == {}
    assert history.lag("g") == lags
    assert history.lag("g", until_ms=150) == lags[:1]


def test_events_and_groups(history: History) -> None:
    events = [
        Event("e1", "", 100, EventKind.COORDINATOR_AWAY, "broker 1 does not answer"),
        Event("e2", "g", 200, EventKind.OFFSETS_RESET, "to 0"),
    ]
    state = GroupState("g", Kind.CONSUMER, "Stable", 3, "consumer", "uniform", "", (ANNA, BERT), 100)
    history.record([*events, state])
    assert history.events() == events
    assert history.events("g") == events[1:]
    assert history.events("") == events[:1]
    assert history.events(since_ms=150) == events[1:]
    assert history.groups() == [state]
    assert history.group("g") == state
    assert history.group("other") is None


def test_changes_in_their_order_each_once(history: History) -> None:
    state = GroupState("g", Kind.CLASSIC, "Stable", 3, "consumer", "range", "", (), 100)
    event = Event("e1", "g", 200, EventKind.OFFSETS_RESET, "to 0")
    begin = history.cursor
    history.record([state, rebalance(1, 300), event])
    cursor, found = history.changes(begin)
    assert found == [state, rebalance(1, 300), event]
    assert history.changes(cursor) == (cursor, [])
    history.record([state._replace(state="Empty"), state._replace(state="Dead"), rebalance(1, 400)])
    later, found = history.changes(cursor)
    assert found == [state._replace(state="Dead"), rebalance(1, 400)]
    assert later == history.cursor
    # A reader that begins now sees everything as it was last stated.
    assert history.changes(0)[1] == [event, state._replace(state="Dead"), rebalance(1, 400)]


def test_what_it_goes_on_from(history: History) -> None:
    history.record(
        [],
        positions={("__consumer_offsets", 7): Position(12, 10)},
        snapshots={"g": b"state", "h": b"other"},
        commits={"g": b"commits"},
        read_ms=5_000,
    )
    later = {("__consumer_offsets", 7): Position(13, 13)}
    history.record([], positions=later, snapshots={"h": b""}, commits={"h": b"", "only": b"some"})
    history.close()
    again = History.open(history.path)
    assert again.positions() == {("__consumer_offsets", 7): Position(13, 13)}
    assert again.snapshots() == [("g", b"state", b"commits"), ("only", b"", b"some")]
    assert (again.cluster_id, again.address, again.newest_ms) == ("abc", "prod:9092", 5_000)
    assert again.oldest_ms is None
    again.close()
