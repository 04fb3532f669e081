"""Entries for the journal besides the line of a rebalance: the members, changes to offsets, a group's first
commit; and none of them is written before its cause is in the log."""

from __future__ import annotations

from typing import TypeVar

from ringleader.coordinator.journal.entries import FirstCommit, Incident, IncidentKind, JournalEntry
from tests.coordinator.groups.script import WALL_START_MS, Script

FORM = "join a v=3; tick 3s; sync a"
"""A group of one, at 3 s."""

T = TypeVar("T")


def played(*lines: str) -> Script:
    """A script after these lines."""
    script = Script()
    for line in lines:
        script.play(line)
    return script


def events_of(script: Script, kind: type[T]) -> list[T]:
    """All of a kind."""
    return [event for event in script.events if isinstance(event, kind)]


def incidents(script: Script, kind: IncidentKind) -> list[Incident]:
    """All of a kind."""
    return [one for one in events_of(script, Incident) if one.kind is kind]


def test_a_member_that_joins_again_as_somebody_else_is_told_under_its_new_name() -> None:
    script = played("join a v=3 as=ann; tick 3s; sync a", "join a as=bob; sync a")
    first, second = events_of(script, JournalEntry)
    assert [one.principal for one in first.members] == ["User:ann"]
    assert [one.principal for one in second.members] == ["User:bob"]


def test_a_static_member_is_told_under_the_name_of_the_process_that_has_its_place() -> None:
    script = played("join a instance=i1 as=ann; tick 3s; sync a", "join a2 instance=i1 as=bob")
    script.play("leave a2")
    assert events_of(script, JournalEntry)[-1].gone["i1-2"].principal == "User:bob"


def test_when_the_former_process_of_a_static_member_was_heard_of_is_reported() -> None:
    script = played(
        "join a instance=i1; tick 3s; sync a; tick 2s; heartbeat a; tick 2s", "join a2 instance=i1"
    )
    [back] = incidents(script, IncidentKind.STATIC_RETURNED)
    assert back.last_heard_ms == WALL_START_MS + 5_000
    assert back.at_ms == WALL_START_MS + 7_000


def test_deleted_offsets_are_told_when_that_is_in_the_log() -> None:
    script = played(FORM, "commit a t/0@5; leave a; store hold; offset-delete t/0")
    assert not incidents(script, IncidentKind.OFFSETS_DELETED)
    script.play("store ok")
    [deleted] = incidents(script, IncidentKind.OFFSETS_DELETED)
    assert deleted.partitions == (("t", 0, 5, None),)


def test_the_time_to_the_first_commit_counts_from_the_assignment() -> None:
    script = played("join a v=3; tick 3s; tick 2s; sync a; tick 1s; commit a t/0@5")
    [first] = events_of(script, FirstCommit)
    assert (first.after_ms, first.at_ms) == (1_000, WALL_START_MS + 6_000)


def test_a_commit_that_takes_the_short_way_is_the_last_one_before_a_rebalance() -> None:
    script = played(FORM, "tick 1s")
    member = ("g", 1, "a-1", None)
    assert script.shard.commit_one(*member, "t", 0, 6, -1, object(), script.now_ms)  # type: ignore[arg-type]
    [append] = script.shard.drain().appends
    script.shard.durable(append.position, script.now_ms)
    script.shard.drain()
    script.play("tick 1s; join a; sync a")
    assert events_of(script, JournalEntry)[-1].last_commit_ms == WALL_START_MS + 4_000


def test_of_a_group_made_again_nothing_is_shown_before_its_deletion_is_in_the_log() -> None:
    script = played(FORM, "commit a t/0@5; leave a; store hold")
    assert script.play("delete g") == ["3s  -: delete waits"]
    assert script.play("join b v=3") == ["3s  b: join waits"]
    assert script.play("fetch t/0") == ["3s  -: fetch waits"]


def test_a_group_whose_last_member_id_expires_waits_for_the_deletion_of_its_offsets() -> None:
    """The answers that a crash takes back would be none, and then the old offset again."""
    script = played("commit op t/0@5 gen=-1 id=", "join a v=5", "store hold")
    assert script.play("offset-delete t/0") == ["0s  -: offset-delete waits"]
    script.play("tick 10s")
    assert script.play("fetch t/0") == ["10s  -: fetch waits"]
    script.play("store fail")
    assert script.play("fetch t/0") == ["10s  -: fetch t/0@5"]


def test_a_member_id_that_was_given_out_is_taken_though_empty_groups_were_looked_for_meanwhile() -> None:
    script = played("settings offsets_retention_check_interval_ms=10m", "join a v=5 session=30m", "tick 10m")
    assert "603s  a: join ok" in script.play("join a; tick 3s")[-1]
    assert not incidents(script, IncidentKind.GROUP_EXPIRED)
