"""The history of groups as Parquet files: what is in them is what `history`, `advise` and `cost` say."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringleader.insight.advice import Past, advise
from ringleader.insight.advice.cost import Cost, cost_of
from ringleader.insight.advice.findings import Advice
from ringleader.insight.advice.past import Counted, shared
from ringleader.insight.columns import rows as rows_module
from ringleader.insight.columns.arrow import CELLS_MAX, ROWS_MAX, batches, schema_of
from ringleader.insight.columns.files import write
from ringleader.insight.columns.model import TABLES, document
from ringleader.insight.columns.rows import DAY_MS, Selection, groups_in
from ringleader.insight.columns.rows import rows as rows_of
from ringleader.insight.history import History
from ringleader.insight.model import EventKind
from ringleader.testing.coordinator import Coordinator
from tests.insight.feed.watching import PARTITIONS, TOPIC, Pods, watching
from tests.insight.made import START_MS, Made, incidents
from tests.support.command import Done, run_here

PAGE = Path(__file__).parents[3] / "docs" / "history-data.md"


def exported(history: Path, directory: Path, *arguments: str) -> Done:
    return run_here(
        None, "history", *arguments, "--history", str(history), "--export", "parquet", "-o", str(directory)
    )


def read(directory: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(directory / f"{table}.parquet").to_pylist()
    return found


def ms(moment: Any) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Something of everything, and midnight in it."""
    path = tmp_path_factory.mktemp("made") / "prod.sqlite"
    midnight_ms = (START_MS // DAY_MS + 1) * DAY_MS
    return incidents(path, start_ms=midnight_ms - 300_000)


@pytest.fixture
def history(made: Path) -> Iterator[History]:
    with History.open(made, read_only=True) as opened:
        yield opened


def test_what_a_real_watcher_wrote_has_the_columns_of_its_json(tmp_path: Path) -> None:
    file, out = tmp_path / "watched.sqlite", tmp_path / "out"
    with Coordinator(topics={TOPIC: PARTITIONS}) as coordinator:
        pods = Pods(coordinator.bootstrap, "billing")
        try:
            with watching(coordinator.bootstrap, file) as watch:
                pods.up()
                pods.up()
                pods.down()
                watch.catch_up()
        finally:
            pods.close()
    done = exported(file, out, "billing", "--json")
    assert (done.code, done.err) == (0, "")
    counted = {one["table"]: one["rows"] for one in json.loads(done.out)["files"]}
    assert counted == {table: len(read(out, table)) for table in TABLES}
    shown = json.loads(run_here(None, "history", "billing", "--history", str(file), "--json").out)
    rows = read(out, "rebalances")
    assert len(rows) == len(shown["rebalances"]) >= 3
    same = [
        *("id", "group", "kind", "generation", "cause", "confidence", "evidence", "cause_members", "reason"),
        *("outcome", "protocol_type", "protocol", "leader", "joined", "join_ms", "join_last_member"),
        *("leader_ms", "sync_ms", "duration_ms", "unowned_ms"),
    ]
    for row, entry in zip(rows, shown["rebalances"], strict=True):
        assert {name: row[name] for name in same} == {name: entry[name] for name in same}
        for name in ("at", "began", "first_commit", "last_commit"):
            assert ms(row[name]) == entry[f"{name}_ms"]
        for name in ("members", "before"):
            assert row[name] == [member["member_id"] for member in entry[name]]
        assert {one["member_id"]: one["why"] for one in row["left"]} == {
            member_id: departure["why"] for member_id, departure in entry["left"].items()
        }
        assert row["cause_names"] == [entry["names"][member_id] for member_id in entry["cause_members"]]
        assert row["moved"] == len(entry["moves"])
    moves = [one for entry in shown["rebalances"] for one in entry["moves"]]
    names = ("topic", "partition", "giver", "heir", "unowned_ms")
    assert [{name: row[name] for name in names} for row in read(out, "moves")] == moves
    lives = read(out, "members")
    assert {one["client_id"] for one in lives} == {"pod-0", "pod-1"}
    assert [one["gone"] for one in lives if one["client_id"] == "pod-1"] == ["left"]


def test_every_table_has_the_rows_of_the_history(made: Path, history: History, tmp_path: Path) -> None:
    groups = groups_in(history)
    write(history, tmp_path, Selection(groups))
    for table in TABLES:
        assert pq.read_schema(tmp_path / f"{table}.parquet").equals(schema_of(table))
        assert {one["cluster_id"] for one in read(tmp_path, table)} == {history.cluster_id}
    found = [(one.group, one.id, one.at_ms) for group in groups for one in history.rebalances(group)]
    rows = read(tmp_path, "rebalances")
    assert [(one["group"], one["id"], ms(one["at"])) for one in rows] == found
    members = [one for group in groups for one in history.members(group)]
    assert [
        (one["group"], one["member_id"], ms(one["since"]), ms(one["until"]), one["gone"], one["topics"])
        for one in read(tmp_path, "members")
    ] == [
        (o.group, o.member.member_id, o.since_ms, o.until_ms, o.gone and o.gone.why, [*o.member.topics])
        for o in members
    ]
    events = [(one.group, one.id) for group in ("", *groups) for one in history.events(group)]
    assert [(one["group"], one["id"]) for one in read(tmp_path, "events")] == events
    assert "" in {one["group"] for one in read(tmp_path, "events")}


def test_costs_and_findings_are_those_of_each_day(made: Path, history: History, tmp_path: Path) -> None:
    write(history, tmp_path, Selection(("orders",)))
    oldest_ms, newest_ms = history.oldest_ms, history.newest_ms
    assert oldest_ms is not None
    assert newest_ms is not None
    midnight_ms = newest_ms // DAY_MS * DAY_MS
    days = [(oldest_ms, midnight_ms - 1), (midnight_ms, newest_ms)]
    pasts = [Past.read(history, "orders", *day) for day in days]
    assert all(past.counted for past in pasts)
    assert [
        (one["pod"], one["caused"], one["came"], one["went"], one["unowned_ms"], one["held_up_ms"])
        for one in read(tmp_path, "costs")
    ] == [
        (pod.name, pod.caused, pod.joined, pod.gone.total(), pod.unowned_ms, pod.held_up_ms)
        for past in pasts
        for pod in cost_of(past).pods
    ]
    findings = [one for past in pasts for one in advise(past, replay=False).findings]
    rows = read(tmp_path, "findings")
    assert findings
    assert [(one["pattern"], one["text"], one["evidence"], one["rebalance_ids"]) for one in rows] == [
        (one.pattern, one.text, [*one.evidence], [*one.rebalance_ids]) for one in findings
    ]
    assert [[(change["setting"], change["why"]) for change in one["changes"]] for one in rows] == [
        [(change.setting, change.why) for change in one.changes] for one in findings
    ]
    assert {(ms(one["since"]), ms(one["until"])) for one in read(tmp_path, "costs")} == {*days}
    assert len({one["day"] for one in read(tmp_path, "costs")}) == 2


def test_the_end_of_one_export_is_the_beginning_of_the_next(history: History, tmp_path: Path) -> None:
    whole = [one.id for one in history.rebalances("orders")]
    middle_ms = history.rebalances("orders")[len(whole) // 2].at_ms
    write(history, tmp_path / "first", Selection(("orders",), None, middle_ms))
    write(history, tmp_path / "second", Selection(("orders",), middle_ms))
    parts = [[one["id"] for one in read(tmp_path / name, "rebalances")] for name in ("first", "second")]
    assert all(parts)
    assert parts[0] + parts[1] == whole


def test_an_export_takes_the_place_of_the_one_before_as_a_whole(made: Path, tmp_path: Path) -> None:
    assert exported(made, tmp_path, "--since", "2020-01-01").code == 0
    before = pq.ParquetFile(tmp_path / "rebalances.parquet")
    # As a process leaves it that was killed while it wrote.
    (tmp_path / ".moves.parquet.new").write_bytes(b"PAR1 half of it")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert exported(made, tmp_path, "audit", "--since", "2020-01-01").code == 0
    assert {one["group"] for one in read(tmp_path, "rebalances")} == {"audit"}
    assert {one["group"] for one in read(tmp_path, "moves")} == {"audit"}
    # A reader of the old file reads it to its end.
    assert {*before.read().column("group").to_pylist()} > {"audit", "orders"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [one for one in names if ".new" not in one]


def test_an_export_that_fails_leaves_the_files_before(made: Path, tmp_path: Path) -> None:
    assert exported(made, tmp_path, "--since", "2020-01-01").code == 0
    before = (tmp_path / "rebalances.parquet").read_bytes()
    (tmp_path / ".members.parquet.new").mkdir()
    done = exported(made, tmp_path, "audit", "--since", "2020-01-01")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"ringleader: {tmp_path} cannot be written: Is a directory.\n"
    assert (tmp_path / "rebalances.parquet").read_bytes() == before
    assert not (tmp_path / ".rebalances.parquet.new").exists()


def test_one_process_writes_a_directory_at_a_time(made: Path, tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from ringleader.host.lock_file import LockFile
LockFile(Path(sys.argv[1]) / ".export.lock").acquire()
print("held", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        done = exported(made, tmp_path)
        assert done.code == 1
        assert done.err == f"ringleader: process {other.pid} writes into {tmp_path} already: wait for it.\n"
        assert other.stdin is not None
        other.stdin.close()


def test_all_tables_tell_of_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "prod.sqlite"
    with Made(path) as made:
        orders = made.group("orders", {"orders": 6}, ["a", "b"])
        made.write()
        with History.open(path, read_only=True) as history:
            with history.snapshot():
                before = history.rebalances("orders")
                orders.join("c")
                made.write()
                assert [*history.each_rebalance("orders")] == before
            assert len(history.rebalances("orders")) == len(before) + 1


def test_batches_are_bounded_by_rows_and_by_what_is_in_arrays() -> None:
    taken = 0

    def rows(each: int) -> Iterator[dict[str, Any]]:
        nonlocal taken
        empty = {column.name: None for column in TABLES["members"].columns}
        for _ in range(3 * ROWS_MAX):
            taken += 1
            yield {**empty, "group": "g", "topics": ["t"] * each}

    first = next(batches("members", rows(1)))
    assert first.num_rows == taken <= ROWS_MAX
    taken = 0
    first = next(batches("members", rows(1_000)))
    assert first.num_rows == taken <= CELLS_MAX // 1_000


def test_costs_worked_out_in_slices_are_those_of_the_day(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = Selection(groups_in(history))
    whole = [*rows_of("costs", history, selection)]
    assert sum(row["caused"] for row in whole) > 10
    monkeypatch.setattr(rows_module, "SLICE", 1)
    assert [*rows_of("costs", history, selection)] == whole
    taken: list[int] = []

    def cost(past: Past) -> Cost:
        taken.append(len(past.rebalances))
        return cost_of(past)

    monkeypatch.setattr(rows_module, "cost_of", cost)
    assert [*rows_of("costs", history, selection)] == whole
    assert max(taken) <= 2  # of one generation, where a static member came again


def test_a_slice_does_not_end_within_a_generation(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "SLICE", 1)
    one = history.rebalances(limit=1)[0]
    given = [replace(one, generation=number) for number in (1, 1, 2)]
    assert [len(some) for some in rows_module._slices(given)] == [2, 1]


def test_a_rebalance_is_shared_without_a_change(history: History) -> None:
    for group in groups_in(history):
        found = [*history.each_rebalance(group)]
        once = [*shared(found)]
        assert once == found
        for before, after in pairwise(once):
            if after.before and after.before == before.members:
                assert after.before is before.members


def test_findings_hold_the_partitions_of_the_newest_rebalance_only(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    pasts: list[Past] = []

    def noted(past: Past, *, replay: bool) -> Advice:
        pasts.append(past)
        return advise(past, replay=replay)

    monkeypatch.setattr(rows_module, "advise", noted)
    assert [*rows_of("findings", history, Selection(groups_in(history)))]
    older = [one for past in pasts for one in past.rebalances if one.at_ms < past.rebalances[-1].at_ms]
    assert sum(len(one.moves) for one in older) > 0
    for one in older:
        assert isinstance(one.moves, Counted)
        assert {type(member.assigned) for member in (*one.before, *one.members)} <= {Counted}
        with pytest.raises(TypeError, match="of which nothing else is known here"):
            list(one.moves)


def test_a_name_that_utf_8_does_not_have_is_no_obstacle() -> None:
    empty = {column.name: None for column in TABLES["events"].columns}
    (batch,) = batches("events", [{**empty, "text": "from \udcff"}])
    assert batch.column("text").to_pylist() == ["from ?"]


# ---- what is wrong ----


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["bilings"], 1, "There is no group bilings in the history; did you mean billing?\n"),
        (["--limit", "5"], 2, "--limit is for what is shown: files have all of it."),
        (["--since", "yesterday"], 2, "--since: a time is 2h, for two hours ago"),
    ],
)
def test_wrong_input_is_one_sentence(
    made: Path, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    done = exported(made, tmp_path / "out", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert says in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--export", "csv", "-o", "out"], "--export: it is parquet, not 'csv'."),
        (["--export", "parquet"], "name it with -o DIR."),
        (["orders", "-o", "out"], "--output is for --export."),
        ([], "Name one group; --export takes several, or none for all."),
        (["orders", "audit"], "Name one group; --export takes several, or none for all."),
    ],
)
def test_a_command_that_lacks_something_is_one_sentence(made: Path, arguments: list[str], says: str) -> None:
    done = run_here(None, "history", *arguments, "--history", str(made))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert says in done.err


def test_a_file_of_an_older_format_says_what_brings_it_up_to_date(made: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.sqlite"
    older.write_bytes(made.read_bytes())
    connection = sqlite3.connect(older)
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    done = exported(older, tmp_path / "out")
    assert done.code == 1
    assert done.err == (
        f"ringleader: {older} has the older format 0: `ringleader watch --history {older}` brings it up to"
        " date.\n"
    )


def test_a_directory_that_cannot_be_written_is_one_sentence(made: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = exported(made, tmp_path / "file")
    assert (done.code, done.err) == (
        1,
        f"ringleader: {tmp_path / 'file'} cannot be written: File exists.\n",
    )


def test_without_pyarrow_it_says_what_to_install(made: Path, tmp_path: Path) -> None:
    script = "import sys; sys.modules['pyarrow'] = None; from ringleader.cli import main; main()"
    command = ["history", "--history", str(made), "--export", "parquet", "-o", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ),
    )
    assert done.returncode == 1
    assert (
        done.stderr == "ringleader: --export parquet needs pyarrow: pip install 'ringleader[spark]' has it.\n"
    )


# ---- the page ----


@pytest.mark.parametrize("table", TABLES)
def test_the_page_has_every_column(table: str) -> None:
    (text,) = [one for one in document() if one.startswith(f"### `{table}`\n")]
    assert text in PAGE.read_text(), "run python -m ringleader.insight.columns.model and paste"


def test_events_have_a_kind_that_the_history_knows(made: Path, history: History, tmp_path: Path) -> None:
    write(history, tmp_path, Selection(groups_in(history)))
    assert {one["kind"] for one in read(tmp_path, "events")} <= {str(kind) for kind in EventKind}
    assert pa.types.is_timestamp(schema_of("events").field("at").type)
