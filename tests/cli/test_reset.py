"""``ringleader groups reset`` and ``groups delete-offsets``: what is shown is set, without members."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ringleader.cli.scope import parse_scope
from ringleader.testing.coordinator import Coordinator
from tests.support.command import PATIENCE_S, Done, run_command, run_here

T0_MS = 1_700_000_000_000
"""Record n of each partition is n seconds later. Partition 0 has 10 records, 1 has 4, 2 has none."""
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"orders": 3, "bills": 1}, log_retention_ms=-1) as started:
        lines = [
            {"value": number, "partition": partition, "timestamp_ms": T0_MS + number * 1_000}
            for partition, count in ((0, 10), (1, 4))
            for number in range(count)
        ]
        text = "\n".join(map(json.dumps, lines))
        assert run_command(started.bootstrap, "produce", "orders", "--format", "json", stdin=text).code == 0
        assert run_command(started.bootstrap, "produce", "bills", "--value", "a").code == 0
        yield started


@pytest.fixture
def group(coordinator: Coordinator) -> str:
    """A group that has committed 5 of partition 0 and 2 of partition 1."""
    name = f"g{next(NUMBERS)}"
    consumer = confluent_kafka.Consumer({"bootstrap.servers": coordinator.bootstrap, "group.id": name})
    places = [confluent_kafka.TopicPartition("orders", *place) for place in ((0, 5), (1, 2))]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
    return name


def groups(coordinator: Coordinator, *arguments: str) -> Done:
    return run_here(coordinator.bootstrap, "groups", *arguments)


def offsets(coordinator: Coordinator, group: str) -> dict[tuple[str, int], int]:
    done = groups(coordinator, "describe", group, "--json")
    assert done.code == 0, done.err
    return {(one["topic"], one["partition"]): one["committed"] for one in json.loads(done.out)["offsets"]}


ORDERS = ("--topic", "orders")
BEHIND = " is behind the end of the log"
NO_COMMIT = "it has no committed offset"
TOO_LATE = "no record is that late"


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((*ORDERS, "--to-earliest"), {0: (0, ""), 1: (0, ""), 2: (0, "")}),
        ((*ORDERS, "--to-latest"), {0: (10, ""), 1: (4, ""), 2: (0, "")}),
        ((*ORDERS, "--to-current"), {0: (5, ""), 1: (2, ""), 2: (0, NO_COMMIT)}),
        (("--all-topics", "--to-earliest"), {0: (0, ""), 1: (0, "")}),
        (("--topic", "orders:1", "--topic", "orders:2", "--to-latest"), {1: (4, ""), 2: (0, "")}),
        ((*ORDERS, "--to-offset", "4"), {0: (4, ""), 1: (4, ""), 2: (0, "4" + BEHIND)}),
        (
            ("--all-topics", "--shift-by", "6"),
            {0: (10, "11" + BEHIND), 1: (4, "8" + BEHIND)},
        ),
        (("--all-topics", "--shift-by", "-3"), {0: (2, ""), 1: (0, "-1 is before the first record")}),
        (
            (*ORDERS, "--to-datetime", "2023-11-14T22:13:26Z"),
            {0: (6, ""), 1: (4, TOO_LATE), 2: (0, TOO_LATE)},
        ),
        (
            (*ORDERS, "--to-datetime", "2023-11-14T23:13:22.5+01:00"),
            {0: (3, ""), 1: (3, ""), 2: (0, TOO_LATE)},
        ),
        (("--topic", "orders:0", "--by-duration", "P36500D"), {0: (0, "")}),
        (("--topic", "orders:0", "--by-duration", "1ms"), {0: (10, TOO_LATE)}),
    ],
)
def test_every_case_of_kafkas_tool(
    coordinator: Coordinator, group: str, options: tuple[str, ...], wanted: dict[int, tuple[int, str]]
) -> None:
    done = groups(coordinator, "reset", group, *options, "--json")
    assert (done.code, done.err) == (0, f"Nothing has changed; --execute sets {_count(wanted)}.\n")
    answer = json.loads(done.out)
    assert (answer["group"], answer["executed"]) == (group, False)
    before, ends = {0: 5, 1: 2}, {0: 10, 1: 4, 2: 0}
    shown = {one.pop("partition"): one for one in answer["offsets"]}
    assert shown == {
        number: {
            "topic": "orders",
            "committed": before.get(number),
            "offset": offset,
            "start": 0,
            "end": ends[number],
            "note": note,
            "lag": ends[number] - before[number] if number in before else None,
            "new_lag": ends[number] - offset,
            "skipped": max(0, offset - before[number]) if number in before else None,
            "repeated": max(0, before[number] - offset) if number in before else None,
        }
        for number, (offset, note) in wanted.items()
    }
    assert offsets(coordinator, group) == {("orders", 0): 5, ("orders", 1): 2}
    done = groups(coordinator, "reset", group, *options, "--execute")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"Set {_count(wanted)} of group {group}.\n")
    set_now = {("orders", number): offset for number, (offset, _) in wanted.items()}
    assert offsets(coordinator, group) == {("orders", 0): 5, ("orders", 1): 2} | set_now


def _count(wanted: dict[int, Any]) -> str:
    return f"{len(wanted)} offset{'' if len(wanted) == 1 else 's'}"


def test_the_table(coordinator: Coordinator, group: str) -> None:
    done = run_command(coordinator.bootstrap, "groups", "reset", group, *ORDERS, "--to-offset", "3")
    assert (done.code, done.err) == (0, "")
    lines = [line.split(maxsplit=6) for line in done.out.splitlines()]
    assert lines[1:4] == [
        ["orders", "0", "5", "3", "5", "7"],
        ["orders", "1", "2", "3", "2", "1"],
        ["orders", "2", "-", "0", "-", "0", "3 is behind the end of the log"],
    ]
    assert done.out.endswith("\nNothing has changed; --execute sets 3 offsets.\n")


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_plan_is_kept_in_a_file_and_done_from_it(
    coordinator: Coordinator, group: str, tmp_path: Path, form: str
) -> None:
    done = groups(coordinator, "reset", group, *ORDERS, "--shift-by", "1", form)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "ringleader: There is no committed offset to shift for orders-2; leave them out, or say where to.\n"
    )
    done = groups(coordinator, "reset", group, "--all-topics", "--shift-by", "1", form)
    assert done.code == 0
    if form == "--csv":
        assert done.out == "orders,0,6\norders,1,3\n"
    plan = tmp_path / "plan"
    plan.write_text(done.out)
    assert groups(coordinator, "reset", group, "--from-file", str(plan), "--execute").code == 0
    assert offsets(coordinator, group) == {("orders", 0): 6, ("orders", 1): 3}


def test_a_plan_of_kafkas_tool_may_name_the_group(
    coordinator: Coordinator, group: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan"
    plan.write_text(f'{group},"bills",0,1\n{group},"orders",0,99\n')
    done = groups(coordinator, "reset", group, "--from-file", str(plan), "--execute")
    assert "99 is behind the end of the log" in done.out
    assert offsets(coordinator, group) == {("orders", 0): 10, ("orders", 1): 2, ("bills", 0): 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it names no offsets"),
        ("orders,0", "line 1 is not topic,partition,offset of group g"),
        ("orders,0,1\nother,orders,0,1\n", "line 2 is not topic,partition,offset of group g"),
        ("orders,0,-1", "line 1 is not"),
        ('{"offsets": 1}', "it is not what --json prints"),
        ("{", "it is not what --json prints"),
        ("\udcff", "is not text"),
        ("o" * 200_000 + ",0,1", "line 1 is not CSV: field larger than field limit"),
    ],
)
def test_a_plan_that_is_none_is_a_sentence(
    coordinator: Coordinator, tmp_path: Path, text: str, says: str
) -> None:
    plan = tmp_path / "plan"
    plan.write_text(text, errors="surrogateescape")
    done = groups(coordinator, "reset", "g", "--from-file", str(plan))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("ringleader: --from-file: ")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ([], 2, "Say where to: --to-earliest, "),
        (["--to-latest"], 2, "Say for what: --topic TOPIC[:0,1], or --all-topics."),
        (["--to-latest", "--all-topics", "--topic", "t"], 2, "Say for what"),
        (["--to-latest", "--to-earliest", "--all-topics"], 2, "--to-earliest and --to-latest: give one"),
        (["--to-latest", "--all-topics", "--csv", "--json"], 2, "--csv and --json"),
        (["--to-latest", "--topic", "orders:"], 2, "--topic: give it as TOPIC or TOPIC:0,1, not 'orders:'"),
        (["--to-latest", "--topic", "orders:a"], 2, "--topic: give it"),
        (["--to-datetime", "noon", "--all-topics"], 2, "--to-datetime: a time is 2026-01-31T12:00:00Z"),
        (["--by-duration", "long", "--all-topics"], 2, "--by-duration: a length of time is 1h"),
        (["--from-file", "x", "--all-topics"], 2, "--from-file says which partitions"),
        (["--from-file", "/nonexistent"], 2, "--from-file: No such file or directory: /nonexistent"),
        (
            ["--to-latest", "--topic", "orders:3"],
            1,
            "There is no partition 3 of topic orders: it has",
        ),
        (["--to-latest", "--topic", "none"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_wrong_use_is_a_sentence(
    coordinator: Coordinator, group: str, options: list[str], code: int, says: str
) -> None:
    done = groups(coordinator, "reset", group, *options)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_a_group_that_has_nothing_yet(coordinator: Coordinator) -> None:
    done = groups(coordinator, "reset", "new", "--all-topics", "--to-latest")
    assert done.code == 1
    assert done.err.splitlines() == [
        "ringleader: There is no group new yet: to set its offsets makes it.",
        "ringleader: Group new has no committed offsets; name topics with --topic.",
    ]
    assert groups(coordinator, "reset", "new", *ORDERS, "--to-latest", "--execute").code == 0
    assert offsets(coordinator, "new") == {("orders", 0): 10, ("orders", 1): 4, ("orders", 2): 0}


def test_while_it_has_members_a_group_is_left_alone(coordinator: Coordinator, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": coordinator.bootstrap,
            "group.id": group,
            "client.id": "biller",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    deadline_s = time.monotonic() + PATIENCE_S
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < deadline_s
    try:
        has = f"Group {group} has 1 member (biller on 127.0.0.1)"
        sentence = f"ringleader: {has}; stop them, then reset its offsets.\n"
        done = groups(coordinator, "reset", group, *ORDERS, "--to-earliest")
        assert (done.code, done.err) == (0, sentence)
        assert "Nothing has changed" in done.out
        done = groups(coordinator, "reset", group, *ORDERS, "--to-earliest", "--execute")
        assert done == (1, "", sentence)
        done = groups(coordinator, "delete-offsets", group, "--topic", "orders")
        assert done.code == 1
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in done.err
    finally:
        consumer.close()
    assert offsets(coordinator, group)["orders", 0] == 5


def test_offsets_are_forgotten(coordinator: Coordinator, group: str) -> None:
    done = groups(coordinator, "delete-offsets", group, "--topic", "orders:1,2", "--topic", "bills")
    assert done == (0, f"Group {group} has no offsets of orders-1 any more.\n", "")
    assert offsets(coordinator, group) == {("orders", 0): 5}
    done = groups(coordinator, "delete-offsets", group, "--topic", "orders:1")
    assert done == (1, "", f"ringleader: Group {group} has no committed offset of orders:1.\n")
    assert groups(coordinator, "delete-offsets", group, "--topic", "orders").code == 0
    assert groups(coordinator, "delete-offsets", group).code == 2


@pytest.mark.parametrize("topics", [["bills", "orders", "orders:0"], ["orders:0", "orders", "bills"]])
def test_a_topic_that_is_named_as_a_whole_and_in_parts_is_meant_as_a_whole(topics: list[str]) -> None:
    assert parse_scope(topics) == {"orders": None, "bills": None}
