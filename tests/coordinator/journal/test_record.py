"""The journal's records of partitions: who had them, who has them, how long nobody did."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator.journal import record as journal_record
from ringleader.coordinator.journal.entries import (
    Cause,
    DepartedMember,
    Departure,
    FirstCommit,
    Incident,
    IncidentKind,
    JournalEntry,
    Outcome,
    Present,
)
from ringleader.coordinator.journal.record import PIECE_ITEMS, VALUE_MAX_BYTES, JournalRecords
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import GroupMetadataValue, GroupMetadataValueMemberMetadata


def _here(
    name: str,
    assigned: list[int],
    joined_ms: int,
    synced_ms: int,
    owned: list[int] | None = None,
    last_heard_ms: int = -1,
) -> Present:
    offer = Subscription(["orders"], owned_partitions={"orders": owned} if owned else {}).encode()
    share = Assignment({"orders": assigned} if assigned else {}).encode()
    return Present(
        name, name, "/10.0.0.1", None, 10_000, 60_000, offer, share, joined_ms, synced_ms, last_heard_ms
    )


def _stored(**assigned: list[int]) -> GroupMetadataValue:
    members = [
        GroupMetadataValueMemberMetadata(
            member_id=name,
            client_id=name,
            client_host="/10.0.0.1",
            session_timeout=10_000,
            rebalance_timeout=60_000,
            subscription=Subscription(["orders"]).encode(),
            assignment=Assignment({"orders": partitions}).encode(),
        )
        for name, partitions in assigned.items()
    ]
    return GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", members=members)


def _departed(why: Departure, at_ms: int, last_heard_ms: int) -> DepartedMember:
    return DepartedMember(why, at_ms, last_heard_ms, "b", "/10.0.0.2", None)


def _entry(*members: Present, outcome: Outcome = Outcome.STABLE, **more: Any) -> JournalEntry:
    departed: dict[str, DepartedMember] = more.pop("gone", {})
    return JournalEntry(
        group_id="g",
        generation=2,
        cause=Cause.MEMBER_JOINED,
        cause_member="b",
        reason="",
        outcome=outcome,
        protocol_type="consumer",
        protocol="range",
        leader="a",
        members_before=("a",),
        members_after=tuple(one.member_id for one in members),
        joined=(),
        left={one: how.why for one, how in departed.items()},
        gone=departed,
        members=members,
        at_ms=2_000,
        duration_ms=1_000,
        join_ms=600,
        leader_ms=300,
        sync_ms=100,
        **more,
    )


def _written(records: JournalRecords, entry: JournalEntry) -> dict[str, Any]:
    at_ms, key, value = records.row(entry)
    row: dict[str, Any] = json.loads(value)
    assert (at_ms, key) == (entry.at_ms, b"g")
    assert (row["format"], row["kind"], row["group"], row["at_ms"]) == (1, "rebalance", "g", entry.at_ms)
    return row


def test_an_eager_member_is_without_its_partitions_from_its_join_to_its_share() -> None:
    entry = _entry(_here("a", [0], 1_200, 1_950), _here("b", [1], 1_000, 2_000), before=_stored(a=[0, 1]))
    record = _written(JournalRecords(), entry)
    assert record["moves"] == [["orders", 1, "a", "b", 800]]
    assert record["unowned_ms"] == 800 + 750
    assert record["began_ms"] == 1_000
    assert [(one["member_id"], one["assigned"], one["topics"]) for one in record["members"]] == [
        ("a", [["orders", [0]]], ["orders"]),
        ("b", [["orders", [1]]], ["orders"]),
    ]
    assert [one["assigned"] for one in record["before"]] == [[["orders", [0, 1]]]]


def test_a_cooperative_member_keeps_what_it_does_not_give_away() -> None:
    records = JournalRecords()
    first = _written(
        records,
        _entry(
            _here("a", [0], 1_200, 1_950, owned=[0, 1]),
            _here("b", [], 1_000, 2_000),
            before=_stored(a=[0, 1]),
        ),
    )
    assert (first["moves"], first["unowned_ms"]) == ([["orders", 1, "a", None, None]], 0)
    second = _written(
        records,
        _entry(
            _here("a", [0], 2_100, 2_200, owned=[0]),
            _here("b", [1], 2_100, 2_250),
            before=_stored(a=[0], b=[]),
        ),
    )
    assert (second["moves"], second["unowned_ms"]) == ([["orders", 1, None, "b", 300]], 300)


def test_an_expired_member_had_nothing_since_its_last_request_and_one_that_left_since_it_left() -> None:
    for why, since_ms in (
        (Departure.SESSION_EXPIRED, 100),
        (Departure.LEFT, 1_000),
        (Departure.NOT_REJOINED, 1_000),
    ):
        entry = _entry(
            _here("a", [0, 1], 1_500, 2_000, owned=[0]),
            before=_stored(a=[0], b=[1]),
            gone={"b": _departed(why, 1_000, 100)},
        )
        record = _written(JournalRecords(), entry)
        assert record["moves"] == [["orders", 1, "b", "a", 2_000 - since_ms]]
        left = record["left"]["b"]
        assert (left["why"], left["silent_ms"], left["client_host"]) == (why.value, 900, "/10.0.0.2")


def test_a_gap_goes_on_over_superseded_and_empty_generations() -> None:
    records = JournalRecords()
    superseded = _entry(_here("a", [], 1_200, -1), outcome=Outcome.SUPERSEDED, before=_stored(a=[0]))
    record = _written(records, superseded)
    assert (record["moves"], record["members"][0]["assigned"]) == ([], None)
    empty = _entry(
        outcome=Outcome.EMPTY, before=_stored(a=[0]), gone={"a": _departed(Departure.LEFT, 1_800, 1_800)}
    )
    assert _written(records, empty)["moves"] == [["orders", 0, "a", None, None]]
    again = _written(records, _entry(_here("c", [0], 5_000, 9_200), before=_stored()))
    assert (again["moves"], again["unowned_ms"]) == ([["orders", 0, None, "c", 8_000]], 8_000)


def test_a_static_member_that_came_back_was_away_since_its_former_process_was_heard() -> None:
    entry = _entry(_here("a", [0], 1_500, 2_000, last_heard_ms=700), before=_stored(a=[0]))
    record = _written(JournalRecords(), entry)
    assert (record["moves"], record["unowned_ms"]) == ([], 1_300)


def test_a_share_that_nobody_came_for_is_no_end_of_a_gap() -> None:
    records = JournalRecords()
    record = _written(records, _entry(_here("a", [0], 1_200, -1), before=_stored(a=[0])))
    assert (record["unowned_ms"], record["members"][0]["synced_ms"]) == (0, None)
    record = _written(records, _entry(_here("a", [0], 3_000, 3_200), before=_stored(a=[0])))
    assert record["unowned_ms"] == 2_000
    record = _written(records, _entry(_here("a", [0], 5_000, 5_300), before=_stored(a=[0])))
    assert record["unowned_ms"] == 300, "the first gap was over"


def test_gaps_are_remembered_up_to_a_number_of_partitions_and_counted_while_they_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_record, "UNOWNED_MAX", 2)
    records = JournalRecords()
    departed = {"a": _departed(Departure.LEFT, 1_800, 1_800)}
    left = _entry(outcome=Outcome.EMPTY, before=_stored(a=[0]), gone=departed)
    back = _entry(_here("c", [0], 5_000, 9_200), before=_stored())

    def gap_ms(group_id: str) -> int:
        _, _, value = records.row(replace(back, group_id=group_id))
        found: int = json.loads(value)["unowned_ms"]
        return found

    for _ in range(2):
        for group_id in ("g", "h", "i"):
            records.row(replace(left, group_id=group_id))
        assert [gap_ms(group_id) for group_id in ("g", "h", "i")] == [7_400, 7_400, 0]


def test_what_cannot_be_read_is_null() -> None:
    odd = _here("a", [0], 1_200, 1_950)._replace(metadata=b"\0", assignment=b"\0\0\0\0\0\1")
    record = _written(JournalRecords(), _entry(odd))
    assert (record["members"][0]["topics"], record["members"][0]["assigned"]) == (None, None)
    assert (record["last_commit_ms"], record["first_commit_ms"]) == (None, None)


def test_a_record_has_a_limit() -> None:
    members = tuple(
        _here("m" * 100 + str(number), [number], 1_000, 2_000)._replace(client_id="c" * 2_000)
        for number in range(2_000)
    )
    records = JournalRecords()
    _, _, value = records.row(_entry(*members))
    record = json.loads(value)
    assert len(value) <= VALUE_MAX_BYTES
    assert (record["cut"], len(record["members"]), record["before"]) == (True, 100, [])


def test_first_commits_and_incidents() -> None:
    records = JournalRecords()
    at_ms, key, value = records.row(FirstCommit("g", 7, "a", 2_500, 300))
    assert (at_ms, key) == (2_500, b"g")
    assert json.loads(value) == {
        "format": 1, "kind": "first-commit", "group": "g", "at_ms": 2_500, "generation": 7, "member_id": "a",
        "after_ms": 300,
    }  # fmt: skip
    refused = Incident(
        "g\ud800", IncidentKind.JOIN_REFUSED, 9, client_id="c", error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    row = json.loads(records.row(refused, 3)[2])
    assert (row["event"], row["error"], row["count"]) == ("join refused", "INCONSISTENT_GROUP_PROTOCOL", 3)
    reset = Incident(
        "g", IncidentKind.OFFSETS_RESET, 9, partitions=(("orders", 1, 5, 2), ("orders", 2, None, 0))
    )
    assert json.loads(records.row(reset)[2])["partitions"] == [["orders", 1, 5, 2], ["orders", 2, None, 0]]
    assert json.loads(journal_record.stopped(4)[2])["event"] == "stopped"


def test_a_long_list_is_the_same_text_in_pieces() -> None:
    for count in (0, 1, PIECE_ITEMS, PIECE_ITEMS + 1, 2 * PIECE_ITEMS + 7):
        value = {"moves": tuple((f"ü{number}", number, None) for number in range(count)), "n": 1}
        _, _, raw = journal_record._row(0, "g", value)
        assert raw.decode() == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
