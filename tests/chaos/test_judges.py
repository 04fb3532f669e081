"""The judges themselves: clean histories pass, whatever they are, and each planted lie is caught by its
judge."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.build import NoGoError, go_program
from tests.chaos.checks import Commit, Read, not_one_register, skipped
from tests.chaos.facts import processed_of, produced_of
from tests.chaos.history import FAILED, OK, OPEN, UNKNOWN, process
from tests.chaos.judges.__main__ import main
from tests.chaos.judges.registers import SOURCES, histories, not_linearizable, parts
from tests.chaos.judges.verdicts import (
    ABORTED,
    CYCLES,
    DOUBLED,
    LOST,
    OWNERS,
    REGISTERS,
    SENTENCES,
    TORN,
    verdicts,
)
from tests.support.shares import share

Line = dict[str, Any]
EXAMPLES = settings(max_examples=10)


@pytest.fixture(scope="module", autouse=True)
def porcupine() -> None:
    """Built once, before a test's time runs."""
    try:
        go_program(SOURCES)
    except NoGoError as error:
        pytest.skip(str(error).splitlines()[0])


@dataclass
class Story:
    """The histories of a run in which the coordinator kept its promises: lines of each process, by time."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    calls: int = 0

    def saw(self, client: str, at_s: float, did: str, **more: Any) -> Line:
        line = {"t": at_s, "did": did, **more}
        self.lines.setdefault(client, []).append(line)
        return line

    def call(self, client: str, what: str, from_s: float, to_s: float, end: str, **fields: Any) -> Line:
        """The line that ends it."""
        self.calls += 1
        self.saw(client, from_s, "asks", call=self.calls, what=what, bound_s=9, **fields)
        return self.saw(client, to_s, end, call=self.calls)

    def caught(self) -> set[str]:
        """The kinds of violations that the judges found."""
        sentences = {sentence: kind for kind, sentence in SENTENCES.items()}
        found = verdicts(process(client, sorted(lines, key=at)) for client, lines in self.lines.items())
        assert found.open == []
        return {sentences[check.name] for check in found.checks if check.violations}

    def of(self, did: str, **fields: Any) -> list[Line]:
        """Lines with these fields, by time."""
        everything = sorted((line for lines in self.lines.values() for line in lines), key=at)
        return [line for line in everything if line["did"] == did and fields.items() <= line.items()]


def at(line: Line) -> float:
    return float(line["t"])


# ---- stories of a coordinator that keeps its promises ----


def offsets(story: Story, ends: Iterable[str], delays: Iterable[int]) -> None:
    """One writer; each commit of these outcomes takes effect in its middle, if it does, and two readers read
    all the time. A commit of unknown outcome has its effect every other time."""
    there = (-1, "")
    history = [(0.0, there)]
    for number, (end, delay) in enumerate(zip(ends, delays, strict=False), 1):
        began_s = float(10 * number)
        token = f"writer#{number}"
        story.call(
            "writer", "commit", began_s, began_s + 2 + delay, end,
            group="raw", offsets={"records:0": number}, tokens={"records:0": token},
        )  # fmt: skip
        if end == OK or (end == UNKNOWN and number % 2):
            there = (number, token)
        history.append((began_s + 1, there))
    for number, (moment_s, value) in enumerate(history):
        for reader, early_s in (("reader-1", 0.4), ("reader-2", 0.1)):
            for from_s, to_s in ((moment_s + 0.5 - early_s, moment_s + 1.5), (moment_s + 6, moment_s + 6.5)):
                ended = story.call(reader, "read", from_s, to_s, OK, groups=["raw"], number=number)
                ended["offsets"] = {"raw": {"records:0": list(value)}}


def owners(story: Story, sizes: Iterable[int]) -> None:
    """Two members by turns, each with `commits` commits of both partitions."""
    moment_s = 0.0
    for generation, size in enumerate(sizes, 1):
        client = f"member-{generation % 2}"
        story.saw(
            client, moment_s, "assigned", group="g", generation=generation, member=client, partitions=[0, 1]
        )
        for _ in range(size):
            moment_s += 2
            offsets = {"records:0": int(moment_s), "records:1": int(moment_s)}
            story.call(client, "commit", moment_s, moment_s + 1, OK, group="g", offsets=offsets)
        moment_s += 2
        story.saw(client, moment_s, "revoked", group="g", partitions=[0, 1])
        moment_s += 2


def moves(story: Story, ends: Iterable[str], sizes: Iterable[int]) -> None:
    """Transactions one after the other, by two members in turns; the offsets of the log that they write have
    room for markers."""
    version, offset, moment_s = 0, 0, 0.0
    for number, (end, size) in enumerate(zip(ends, sizes, strict=False)):
        name, moment_s = f"t{number}", moment_s + 10
        story.call(
            f"mover-{number % 2}", "transaction", moment_s, moment_s + 5, end,
            name=name, group="movers", reads={"records:0": version}, writes={"records:0": version + size},
            appends={"results:0": [[version, version + size]]},
        )  # fmt: skip
        committed = end == OK or (end == UNKNOWN and number % 2)
        records = [[offset + place, name, version + place] for place in range(size)]
        if committed:
            story.saw("auditor", moment_s + 6, "seen", log="results:0", records=records)
            version += size
        offset += size + 1


def consumed(story: Story, sizes: Iterable[int]) -> None:
    """Records that are produced, and processed in one group."""
    start = 0
    for size in sizes:
        story.saw("producer", start, "produced", partition=0, start=start, end=start + size)
        story.saw("consumer", start + 1, "processed", group="g", partition=0, start=start, end=start + size)
        start += size


ENDS = st.lists(st.sampled_from([OK, OK, OK, UNKNOWN, FAILED]), min_size=4, max_size=12)
SIZES = st.lists(st.integers(1, 4), min_size=12, max_size=12)
DELAYS = st.lists(st.integers(0, 4), min_size=12, max_size=12)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """All kinds in one run; the first commits and transactions are acknowledged, so that there is room for
    lies."""
    story = Story()
    offsets(story, [OK, OK, OK, *draw(ENDS)], draw(DELAYS))
    owners(story, draw(SIZES))
    moves(story, [OK, OK, OK, OK, *draw(ENDS)], draw(SIZES))
    consumed(story, draw(SIZES))
    return story


@EXAMPLES
@given(stories())
def test_a_clean_run_passes(story: Story) -> None:
    assert story.caught() == set()
    assert left_out(story) == []


def left_out(story: Story) -> list[str]:
    """Records that were skipped."""
    found = [process(client, lines) for client, lines in story.lines.items()]
    return skipped(produced_of(found), processed_of(found, ["g"]))


# ---- lies ----


def reads(story: Story) -> list[Line]:
    return [line for line in story.of(OK) if "offsets" in line]


def put(line: Line, value: list[Any]) -> None:
    line["offsets"] = {"raw": {"records:0": value}}


def lose_a_commit(story: Story) -> None:
    """The second commit was acknowledged, and all later reads of it have the first one."""
    for line in reads(story):
        if line["offsets"]["raw"]["records:0"] == [2, "writer#2"]:
            put(line, [1, "writer#1"])


def turn_a_commit_back(story: Story) -> None:
    """Everybody has read the third, and then one reads the second again."""
    third = [line for line in reads(story) if line["offsets"]["raw"]["records:0"] == [3, "writer#3"]]
    put(third[-1], [2, "writer#2"])


def read_what_was_refused(story: Story) -> None:
    """A commit that failed is there."""
    story.call(
        "writer", "commit", 900, 901, FAILED,
        group="raw", offsets={"records:0": 99}, tokens={"records:0": "writer#99"},
    )  # fmt: skip
    put(story.call("reader-1", "read", 910, 911, OK, groups=["raw"]), [99, "writer#99"])


def own_twice(story: Story) -> None:
    """A third member has a partition, with a commit that counts, before the last commit of the first one."""
    since_s = story.of("assigned")[0]["t"]
    story.saw("thief", since_s + 0.1, "assigned", group="g", generation=9, member="thief", partitions=[0])
    story.call("thief", "commit", since_s + 1, since_s + 3, OK, group="g", offsets={"records:0": 1})


def skip_a_record_of_a_transaction(story: Story) -> None:
    """A reader passes over the first record of the first one."""
    [first, *_] = story.of("seen")
    first["records"].pop(0)
    if not first["records"]:
        story.lines["auditor"].remove(first)


def move_past_a_record(story: Story) -> None:
    """The offset was committed, and the record before it never written."""
    [first, *_] = story.of("asks", what="transaction")
    first["appends"]["results:0"][0][1] -= 1
    story.of("seen")[0]["records"].pop()


def see_what_was_aborted(story: Story) -> None:
    """The fourth transaction was reported as aborted; nobody went on from it."""
    [*_, ended] = [line for line in story.of(OK) if line["call"] == story.of("asks", name="t3")[0]["call"]]
    ended["did"] = FAILED


def see_what_nobody_wrote(story: Story) -> None:
    """A record of a transaction that there never was."""
    story.saw("auditor", 999, "seen", log="results:1", records=[[0, "ghost", 0]])


def write_a_record_twice(story: Story) -> None:
    """The first record is there once more, at the end."""
    [_, name, source] = story.of("seen")[0]["records"][0]
    story.saw("auditor", 999, "seen", log="results:0", records=[[999, name, source]])


def lose_an_update(story: Story) -> None:
    """One more transaction went on from where the second one did, and wrote elsewhere."""
    second = story.of("asks", name="t1")[0]
    fields = {key: copy.deepcopy(second[key]) for key in ("group", "reads", "writes")}
    [[start, end]] = second["appends"]["results:0"]
    appends = {"results:7": [[start, end]]}
    story.call("mover-7", "transaction", 990, 991, OK, name="thief", appends=appends, **fields)


def go_round(story: Story) -> None:
    """In one log the first stands before the second, in another one behind it."""
    for name, place in (("t1", 0), ("t0", 1)):
        call_line = story.of("asks", name=name)[0]
        start = 100 + place
        call_line["appends"]["others:0"] = [[start, start + 1]]
        call_line["writes"]["records:1"], call_line["reads"]["records:1"] = start + 1, start
        story.saw("auditor", 990 + place, "seen", log="others:0", records=[[place, name, start]])


LIES: dict[Callable[[Story], None], set[str]] = {
    lose_a_commit: {REGISTERS},
    turn_a_commit_back: {REGISTERS},
    read_what_was_refused: {REGISTERS},
    own_twice: {OWNERS},
    skip_a_record_of_a_transaction: {TORN},
    move_past_a_record: {TORN},
    see_what_was_aborted: {ABORTED},
    see_what_nobody_wrote: {ABORTED},
    write_a_record_twice: {DOUBLED, CYCLES},
    lose_an_update: {LOST, CYCLES},
    go_round: {CYCLES},
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@EXAMPLES
@given(story=stories())
def test_a_lie_is_caught_by_its_judge(lie: Callable[[Story], None], story: Story) -> None:
    lie(story)
    assert story.caught() == LIES[lie]


@EXAMPLES
@given(stories(), st.data())
def test_a_record_that_no_member_processed_is_reported(story: Story, data: st.DataObject) -> None:
    missing = data.draw(st.sampled_from(story.of("processed")))
    story.lines["consumer"].remove(missing)
    [why] = left_out(story)
    assert f"offsets {missing['start']} to {missing['end'] - 1} of partition 0" in why


def test_files_are_judged_by_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Story()
    offsets(story, [OK] * 5, [0] * 5)

    def written() -> int:
        for client, lines in story.lines.items():
            (tmp_path / f"{client}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return main([str(tmp_path)])

    assert main([]) == 2
    assert written() == 0
    lose_a_commit(story)
    capsys.readouterr()
    assert written() == 1
    output = capsys.readouterr().out
    assert "a read of '1 writer#1' from 2" in output
    assert "has no place in any order" in output


def test_without_go_one_judge_is_left_out_aloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    story = Story()
    offsets(story, [OK] * 5, [0] * 5)
    own_twice_of = Story()
    owners(own_twice_of, [2, 2])
    own_twice(own_twice_of)
    story.lines |= own_twice_of.lines
    monkeypatch.setenv("PATH", str(tmp_path))
    found = verdicts(process(client, sorted(lines, key=at)) for client, lines in story.lines.items())
    [why] = found.open
    assert why.startswith(f"{SENTENCES[REGISTERS]}: Go is needed")
    assert [check.name for check in found.checks if check.violations] == [SENTENCES[OWNERS]]


# ---- Porcupine against Gibbons and Korach ----


@st.composite
def registers(draw: st.DrawFn) -> tuple[list[Commit], list[Read]]:
    """One register, clean or not: whatever commits and reads, at whatever times."""
    place = ("raw", "records:0")
    spans = st.tuples(st.integers(0, 30), st.integers(1, 8))
    commits = [
        Commit(place, number, f"t{number}", "w", began, math.inf if end == OPEN else began + took + 0.5, end)
        for number, ((began, took), end) in enumerate(
            draw(st.lists(st.tuples(spans, st.sampled_from([OK, OK, UNKNOWN, FAILED, OPEN])), max_size=6))
        )
    ]
    values = st.integers(-1, max(len(commits) - 1, -1))
    read = [
        Read(place, value, "" if value < 0 else f"t{value}", f"r{number}", began + 0.25, began + took + 0.25)
        for number, ((began, took), value) in enumerate(draw(st.lists(st.tuples(spans, values), max_size=6)))
    ]
    return commits, read


@settings(max_examples=share(20, whole=60))
@given(registers(), st.integers(1, 4))
def test_two_judges_of_registers_agree(found: tuple[list[Commit], list[Read]], length: int) -> None:
    """The two judges have nothing in common: Porcupine searches, Gibbons and Korach compare times."""
    illegal, undecided = not_linearizable(*found)
    assert undecided == []
    assert bool(illegal) == bool(not_one_register(*found))
    in_parts, _ = not_linearizable(*found, length=length)
    assert bool(in_parts) == bool(illegal)


def test_a_long_history_is_judged_in_parts() -> None:
    place = ("g", "t:0")
    commits = [Commit(place, number, f"t{number}", "w", number, number + 0.5, OK) for number in range(1000)]
    found = list(parts("g t:0", histories(commits, [])[place], 100))
    assert [len(part.operations) for part in found] == [100] * 10
    assert [part.initial for part in found[:3]] == ["", "99 t99", "199 t199"]
    late = [Read(place, 7, "t7", "r", 900.6, 900.7)]
    assert len(not_linearizable(commits, late)[0]) == 1
    right = replace(late[0], offset=900, token="t900")
    assert not_linearizable(commits, [right]) == ([], [])


def test_a_question_that_takes_too_long_to_decide_is_reported() -> None:
    """Commits without tokens that all overlap, and reads of them in an order that there is not."""
    commits = [Commit(("g", "t:0"), number % 9, "", f"w{number}", 0, 99, OK) for number in range(60)]
    reads = [Read(("g", "t:0"), number % 9, "", "r", 10 + number, 10.5 + number) for number in range(80)]
    illegal, undecided = not_linearizable(commits, reads, decide_s=0.05)
    assert illegal == []
    assert "not decided in 0.05 s" in undecided[0]
