"""The checks accept what a coordinator may do, and refuse what it must not: histories by hand."""

from __future__ import annotations

import math

import pytest

from tests.chaos.checks import (
    Commit,
    Owned,
    Read,
    View,
    given_up,
    merged,
    not_one_register,
    skipped,
    too_long,
    turned_back,
    two_contents,
    two_owners,
    without,
)
from tests.chaos.history import FAILED, OK, OPEN, UNKNOWN, process

PLACE = ("raw", "records:0")


def commit(offset: int, began_s: float, ended_s: float, end: str = OK, token: str | None = None) -> Commit:
    return Commit(PLACE, offset, f"t{offset}" if token is None else token, "writer", began_s, ended_s, end)


def read(offset: int, began_s: float, ended_s: float, token: str | None = None) -> Read:
    name = "" if offset < 0 else f"t{offset}"
    return Read(PLACE, offset, name if token is None else token, "reader", began_s, ended_s)


FOUR = [commit(1, 0, 1), commit(2, 2, 3), commit(3, 4, 5), commit(4, 6, 7)]

ALLOWED = {
    "what is there": (FOUR, [read(1, 1.5, 1.6), read(4, 8, 9)]),
    "nothing before the first": (FOUR, [read(-1, -2, -1), read(-1, -1, 0.5)]),
    "either, while it is under way": (FOUR, [read(1, 2.1, 2.2), read(2, 2.3, 2.4), read(2, 2.5, 4.5)]),
    "the old one, asked before": (FOUR, [read(1, 1.5, 2.5)]),
    "one of unknown outcome": ([*FOUR, commit(5, 8, 9, UNKNOWN)], [read(4, 10, 11), read(5, 12, 13)]),
    "one that never ended": ([*FOUR, commit(5, 8, math.inf, OPEN)], [read(5, 12, 13)]),
    "one that failed is not there": ([*FOUR, commit(5, 8, 9, FAILED)], [read(4, 10, 11)]),
    "back, as was committed": ([*FOUR, commit(1, 8, 9, token="back")], [read(1, 10, 11, "back")]),
    "back, while that is under way": (
        [*FOUR, commit(1, 8, 9, token="back")],
        [read(4, 8.1, 8.2), read(1, 8.3, 8.4, "back")],
    ),
    "two tries of one offset": (
        [*FOUR, commit(5, 8, 9, UNKNOWN, "5a"), commit(5, 9, 10, OK, "5b")],
        [read(5, 9.1, 9.2, "5a"), read(5, 11, 12, "5b")],
    ),
    "another writer, at the same time": (
        [*FOUR, commit(3, 5.5, 8, token="other")],
        [read(3, 9, 10, "other")],
    ),
}

TURNED_BACK = {
    "an older one": (FOUR, [read(3, 8, 9)]),
    "a much older one": (FOUR, [read(1, 8, 9)]),
    "nothing": (FOUR, [read(-1, 8, 9)]),
    "an older one, asked while a newer is under way": ([*FOUR, commit(5, 8, 10)], [read(3, 8.5, 9)]),
    "one of unknown outcome, long after": (
        [commit(1, 0, 1), commit(2, 2, 3, UNKNOWN), commit(2, 3.1, 4, OK, "2b"), commit(3, 5, 6)],
        [read(2, 7, 8)],
    ),
    "an older one after a step back": (
        [*FOUR, commit(3, 8, 9, token="back"), commit(4, 10, 11, token="4b")],
        [read(2, 12, 13)],
    ),
    "back, before that was committed": ([*FOUR, commit(1, 10, 11, token="back")], [read(1, 8, 9)]),
    "back, though that failed": ([*FOUR, commit(1, 8, 9, FAILED, "back")], [read(1, 10, 11, "back")]),
}

NOT_ONE_REGISTER = {
    **TURNED_BACK,
    "the newer one, then the older": (FOUR, [read(2, 2.1, 2.2), read(1, 2.3, 2.4)]),
    "the one before a step back, after it": ([*FOUR, commit(1, 8, 9, token="back")], [read(4, 10, 11)]),
    "what failed": ([*FOUR, commit(5, 8, 9, FAILED)], [read(5, 10, 11)]),
    "what nobody committed": (FOUR, [read(7, 8, 9)]),
    "another's metadata": (FOUR, [read(4, 8, 9, "t3")]),
    "what will be committed": ([*FOUR, commit(5, 10, 11)], [read(5, 8, 9)]),
    "gone and back": (
        [commit(1, 0, 1), commit(2, 2, 9, UNKNOWN), commit(3, 2, 3)],
        [read(3, 4, 5), read(2, 6, 7), read(3, 8, 9)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_answers_that_a_register_may_give(name: str) -> None:
    commits, reads = ALLOWED[name]
    assert turned_back(commits, reads) == []
    assert not_one_register(commits, reads) == []


@pytest.mark.parametrize("name", TURNED_BACK)
def test_an_acknowledged_commit_is_not_turned_back(name: str) -> None:
    commits, reads = TURNED_BACK[name]
    assert len(turned_back(commits, reads)) == len(reads)


@pytest.mark.parametrize(
    "name", [name for name in NOT_ONE_REGISTER if name != "one of unknown outcome, long after"]
)
def test_a_register_does_not_answer(name: str) -> None:
    commits, reads = NOT_ONE_REGISTER[name]
    assert not_one_register(commits, reads)


def test_a_commit_of_unknown_outcome_may_come_late_to_a_register_but_not_to_a_group() -> None:
    """A register allows what a coordinator that stands to its order does not do."""
    commits, reads = TURNED_BACK["one of unknown outcome, long after"]
    assert not_one_register(commits, reads) == []
    assert turned_back(commits, reads)


def test_commits_without_tokens_bound_reads_from_below_only() -> None:
    """A library may commit more by itself."""
    commits = [commit(1, 0, 1, token=""), commit(2, 2, 3, token="")]
    assert turned_back(commits, [read(9, 4, 5, "")]) == []
    assert turned_back(commits, [read(1, 4, 5, "")])
    with pytest.raises(ValueError, match="token"):
        not_one_register(commits, [read(2, 4, 5, "")])


def test_a_commit_is_tried_until_it_is_acknowledged() -> None:
    unknown = commit(5, 8, 9, UNKNOWN, "5a")
    for end in (OK, FAILED):
        assert given_up([*FOUR, unknown, commit(5, 9, 10, end, "5b"), commit(6, 12, math.inf, OPEN)]) == []
    [why] = given_up([*FOUR, unknown, commit(6, 12, math.inf, OPEN)])
    assert "gave up the commit of 5" in why


def test_partitions_and_groups_are_registers_of_their_own() -> None:
    other = Commit(("raw", "records:1"), 9, "t9", "writer", 0, 1, OK)
    assert turned_back([*FOUR, other], [read(4, 8, 9)]) == []
    assert not_one_register([*FOUR, other], [read(4, 8, 9)]) == []


def view(generation: int, member: str, began_s: float, *, leader: str = "a", members: str = "") -> View:
    return View("g", generation, member, leader, tuple(members), f"process of {member}", began_s, began_s + 1)


GENERATION = [view(1, "a", 0, members="ab"), view(1, "b", 0.5)]


def owned(generation: int, member: str, *partitions: int, at_s: float = 0.0) -> Owned:
    return Owned("g", generation, member, frozenset(partitions), f"process of {member}", at_s)


@pytest.mark.parametrize(
    ("views", "assigned"),
    [
        ([*GENERATION, view(2, "a", 2, members="a")], [owned(1, "a", 0)]),
        ([*GENERATION, *GENERATION], [owned(1, "a", 0), owned(2, "a", 0, at_s=9)]),
        ([view(1, "b", 0)], []),
        ([view(2, "a", 0.5, members="a"), view(1, "a", 0, members="ab")], [owned(2, "a", 0, at_s=2)]),
        ([*GENERATION, view(2, "a", 2, members="a"), view(1, "b", 4)], [owned(1, "a", 0, at_s=1)]),
    ],
)
def test_generations_as_they_may_come(views: list[View], assigned: list[Owned]) -> None:
    assert two_contents(views, assigned) == []


@pytest.mark.parametrize(
    ("views", "word"),
    [
        ([*GENERATION, view(1, "b", 1, leader="b")], "several leaders"),
        ([*GENERATION, view(1, "a", 1, members="abc")], "several lists"),
        ([*GENERATION, view(1, "c", 0)], "not in its list"),
        ([*GENERATION, view(3, "a", 2, members="a"), view(2, "a", 4, members="a")], "generation 2, though 3"),
    ],
)
def test_a_generation_is_not_given_out_again(views: list[View], word: str) -> None:
    assigned = [owned(1, "a", 0, at_s=2), owned(3, "a", 0, at_s=3.5), owned(2, "a", at_s=9)]
    [found] = two_contents(views, assigned)
    assert word in found


def test_partitions_have_an_owner_each() -> None:
    assert (
        two_owners([owned(1, "a", 0, 1), owned(1, "b", 2), owned(2, "b", 0, 1, 2), owned(1, "a", 0, 1)]) == []
    )


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (
            [owned(1, "a", 0, 1), owned(1, "b", 1)],
            "partition 1 was given to process of a and",
        ),
        ([owned(1, "a", 0, 1), owned(1, "a", 0)], r"had [0, 1]"),
    ],
)
def test_no_partition_has_two_owners(found: list[Owned], word: str) -> None:
    [why] = two_owners(found)
    assert word in why


def test_skipped_records_are_reported_by_group_and_partition() -> None:
    produced = {0: [(0, 10)], 1: [(5, 6)]}
    assert skipped(produced, {"g": {0: [(0, 4), (4, 10), (2, 6)], 1: [(0, 9)]}}) == []
    assert skipped(produced, {"g": {0: [(0, 4), (6, 10)], 1: [(5, 6)]}, "h": {}}) == [
        "g: offsets 4 to 5 of partition 0 were skipped",
        "h: offsets 0 to 9 of partition 0 were skipped",
        "h: offsets 5 to 5 of partition 1 were skipped",
    ]


def test_spans() -> None:
    assert merged([(5, 6), (0, 2), (2, 3), (1, 2)]) == [(0, 3), (5, 6)]
    assert without([(0, 10), (20, 30)], [(0, 2), (4, 5), (9, 25)]) == [(2, 4), (5, 9), (25, 30)]


def test_calls_end_within_their_bounds() -> None:
    lines = [
        {"t": 0.0, "did": "asks", "call": 1, "what": "poll", "bound_s": 5},
        {"t": 4.0, "did": OK, "call": 1},
        {"t": 4.0, "did": "asks", "call": 2, "what": "commit", "bound_s": 5},
        {"t": 10.0, "did": UNKNOWN, "call": 2, "why": "it took long"},
        {"t": 10.0, "did": "asks", "call": 3, "what": "poll", "bound_s": 5},
        {"t": 10.0, "did": "asks", "call": 4, "what": "poll", "bound_s": 15},
        {"t": 20.0, "did": "finished"},
    ]
    late, never = too_long([process("p", lines)])
    assert "commit at 4.000 ended after 6.0 s" in late
    assert "poll at 10.000 had not ended after 10.0 s" in never
