"""The demo's account: it must see a lost record, a repeated one, and one that nobody produced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from demo import account
from demo.ledger import Ledger, ranges, read


def _processed(t: float, partition: int, start: int, end: int) -> dict[str, Any]:
    return {"t": t, "did": "processed", "partition": partition, "from": start, "to": end}


def _produced(partition: int, start: int, end: int) -> dict[str, Any]:
    return {"t": 0.0, "did": "produced", "partition": partition, "from": start, "to": end}


def test_every_record_once() -> None:
    members = {"a": [_processed(1, 0, 0, 5), _processed(2, 1, 0, 3)], "b": [_processed(3, 0, 5, 10)]}
    taken = account.take([_produced(0, 0, 4), _produced(0, 4, 10), _produced(1, 0, 3)], members)
    assert (taken.produced, taken.processed, taken.lost, taken.repeated) == (13, 13, 0, 0)
    assert taken.by_member == {"a": 8, "b": 5}
    assert not taken.unknown


def test_a_lost_record_is_named() -> None:
    taken = account.take([_produced(2, 0, 10)], {"a": [_processed(1, 2, 0, 6), _processed(1, 2, 7, 10)]})
    assert taken.missing == [(2, 6, 7)]
    assert (taken.lost, taken.processed) == (1, 9)


def test_a_partition_that_nobody_read_is_lost() -> None:
    taken = account.take([_produced(4, 0, 10)], {"a": []})
    assert taken.missing == [(4, 0, 10)]
    assert taken.by_member == {"a": 0}


def test_a_record_that_was_never_acknowledged_is_named() -> None:
    taken = account.take([_produced(0, 0, 3)], {"a": [_processed(1, 0, 0, 5)]})
    assert taken.unknown == [(0, 3, 5)]
    assert taken.processed == 3


def test_work_of_a_killed_member_is_repeated_by_its_heir() -> None:
    victim = [_processed(1, 0, 0, 100), {"t": 1.1, "did": "committed", "offsets": {"0": 100}}]
    victim += [_processed(2, 0, 100, 150)]
    members = {"victim": victim, "heir": [_processed(9, 0, 100, 120), _processed(10, 0, 120, 200)]}
    taken = account.take([_produced(0, 0, 200)], members, killed=["victim"])
    (twice,) = taken.twice
    assert (twice.start, twice.end, twice.members) == (100, 150, ("victim", "heir"))
    assert twice.why == "victim was killed after processing it, before its commit"
    assert (taken.processed, taken.repeated) == (200, 50)


def test_a_refused_commit_is_the_reason() -> None:
    slow = [
        _processed(1, 3, 0, 10),
        {"t": 2, "did": "refused", "offsets": {"3": 10}, "error": "CommitFailedError"},
    ]
    taken = account.take([_produced(3, 0, 10)], {"slow": slow, "next": [_processed(5, 3, 0, 10)]})
    (twice,) = taken.twice
    assert "moved before its commit (CommitFailedError)" in twice.why


def test_repeating_committed_work_is_called_what_it_is() -> None:
    first = [_processed(1, 3, 0, 10), {"t": 2, "did": "committed", "offsets": {"3": 10}}]
    taken = account.take([_produced(3, 0, 10)], {"first": first, "next": [_processed(5, 3, 0, 10)]})
    (twice,) = taken.twice
    assert "was not used" in twice.why


def test_ranges_join_neighbours() -> None:
    assert ranges([]) == []
    assert ranges([1, 2, 3, 7, 8, 2]) == [(1, 4), (7, 9), (2, 3)]


def test_ledger_comes_back_without_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "member.jsonl"
    with Ledger(path) as ledger:
        ledger.processed({0: [5, 6, 8], 2: [1]})
        ledger.note("committed", offsets={"0": 9})
    with path.open("a") as file:
        file.write('{"t": 1, "did": "processed", "part')
    lines = read(path)
    assert [(line["did"], line.get("partition"), line.get("from"), line.get("to")) for line in lines] == [
        ("processed", 0, 5, 7),
        ("processed", 0, 8, 9),
        ("processed", 2, 1, 2),
        ("committed", None, None, None),
    ]
    assert read(tmp_path / "none.jsonl") == []
