"""The file: one writer, many readers, other formats, bounds, a writer that is killed, a disk that is full."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from ringleader.insight.history import (
    FormatError,
    History,
    HistoryError,
    HistoryLockedError,
    Position,
    default_path,
    tables,
)
from ringleader.insight.history.history import MIN_BYTES, SAMPLES_LEAST_MS
from ringleader.insight.history.tables import FORMAT_VERSION
from ringleader.insight.model import Cause, Commit, Confidence, Event, EventKind, Kind, Rebalance
from tests.insight.made import Made, incidents

WRITER = """
import sys
from ringleader.insight.history import History, Position
from ringleader.insight.model import Commit
with History.open(sys.argv[1]) as history:
    for number in range(1_000_000):
        history.record(
            [Commit("g", "orders", one, number, number) for one in range(50)],
            positions={("__consumer_offsets", 0): Position(number + 1, number + 1)},
            snapshots={"g": b"%d" % number},
        )
        print(number, flush=True)
"""


def rebalance(number: int, at_ms: int, evidence: str = "") -> Rebalance:
    unknown = Cause.UNKNOWN, Confidence.UNKNOWN
    return Rebalance(f"offsets-0-{number}", "g", Kind.CLASSIC, number, at_ms, *unknown, evidence=(evidence,))


def test_a_writer_that_is_killed_leaves_whole_transactions(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"{number}.sqlite"
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        offsets = [int(writer.stdout.readline()) for _ in range(20)]
        os.kill(writer.pid, signal.SIGKILL)
        offsets += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        writer.wait()
        writer.stdout.close()
        with History.open(path, read_only=True) as history:
            [position] = history.positions().values()
            [(_, snapshot, _)] = history.snapshots()
            newest = history.offsets_at("g", 1 << 60)
        # Everything recorded before the kill is there; positions, snapshots and outputs are of one moment.
        assert position.next_offset > offsets[-1]
        assert int(snapshot) == position.next_offset - 1
        assert {one.offset for one in newest.values()} == {position.next_offset - 1}
        assert len(newest) == 50


def test_one_writer_and_readers_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with History.open(path, cluster_id="abc") as writer:
        with pytest.raises(HistoryLockedError) as refused:
            History.open(path)
        assert refused.value.pid == os.getpid()
        assert refused.value.path == path
        assert str(os.getpid()) in str(refused.value)
        with History.open(path, read_only=True) as reader:
            writer.record([rebalance(1, 1_000)])
            assert reader.rebalances() == [rebalance(1, 1_000)]
            with pytest.raises(HistoryError, match="read only"):
                reader.record([])
    with History.open(path) as again:
        assert again.rebalances() == [rebalance(1, 1_000)]


LOOK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print([name for name, in connection.execute("SELECT name FROM fact WHERE name LIKE 'test %' ORDER BY name")])
connection.close()
"""


def test_another_process_that_looks_at_the_file_takes_nothing_from_the_connections_of_its_writer(
    tmp_path: Path,
) -> None:
    """The last connection that closes a file removes its write-ahead log: it has to be the last one."""

    def seen_by_another() -> str:
        return subprocess.run(
            [sys.executable, "-c", LOOK, path], capture_output=True, text=True, check=True
        ).stdout.strip()

    path = tmp_path / "h.sqlite"
    with History.open(path, cluster_id="a"), closing(tables.connect(path, read_only=False)) as first:
        # Connections come and go in the process, too.
        tables.connect(path, read_only=True).close()
        with closing(tables.connect(path, read_only=False)) as second:
            assert seen_by_another() == "[]"
            first.execute("INSERT INTO fact VALUES ('test 1', 1)")
            second.execute("INSERT INTO fact VALUES ('test 2', 2)")
            assert seen_by_another() == "['test 1', 'test 2']"
        first.execute("INSERT INTO fact VALUES ('test 3', 3)")
        assert seen_by_another() == "['test 1', 'test 2', 'test 3']"


def test_the_file_of_another_cluster_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    History.open(path, cluster_id="abc").close()
    History.open(path, cluster_id="abc").close()
    for read_only in (False, True):
        with pytest.raises(HistoryError, match="of the cluster abc, not of xyz"):
            History.open(path, cluster_id="xyz", read_only=read_only)
    History.open(path).close()  # and the lock was given back


def test_what_is_no_history_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "text", tmp_path / "other", tmp_path / "newer"
    text.write_text("no database at all, but long enough to look at: " * 10)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
        connection.execute("PRAGMA application_id = 77")
    connection.close()
    History.open(newer).close()
    connection = sqlite3.connect(newer)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    connection.close()
    for path, says in ((text, "no history"), (other, "another program"), (newer, "a newer Ringleader")):
        before = path.read_bytes()
        for read_only in (False, True):
            with pytest.raises(FormatError, match=says):
                History.open(path, read_only=read_only)
        assert path.read_bytes() == before


def test_a_database_of_another_program_without_an_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(FormatError, match="another program"):
        History.open(path)


def test_there_has_to_be_something_to_read(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history at"):
        History.open(tmp_path / "none", read_only=True)
    (tmp_path / "empty").touch()
    with pytest.raises(HistoryError, match="is empty"):
        History.open(tmp_path / "empty", read_only=True)
    with pytest.raises(HistoryError, match="cannot be opened"):
        History.open(tmp_path / "empty" / "below")
    with pytest.raises(ValueError, match="at least 1048576 bytes"):
        History.open(tmp_path / "small", max_bytes=10)
    with pytest.raises(ValueError, match="above 0"):
        History.open(tmp_path / "small", max_age_ms=0)


def test_what_is_too_old_is_forgotten_a_bit_at_a_time(tmp_path: Path) -> None:
    with Made(tmp_path / "h.sqlite") as made:
        orders = made.group("orders", {"orders": 12}, ["a", "b", "c"])
        made.wait(600)
        orders.crash("a")
        made.wait(600)
        cut_ms = made.now_ms
        orders.join("d")
        made.wait(60)
        deleted = made.group("gone", {"orders": 12}, ["x"])
        deleted.delete()
        now_ms = made.now_ms
    with History.open(tmp_path / "h.sqlite", max_age_ms=now_ms - cut_ms) as history:
        owned = history.ownership("orders", since_ms=now_ms)
        while history.prune(now_ms):
            pass
        assert [one.joined for one in history.rebalances("orders")] == [(orders.members["d"].member_id,)]
        assert all(one.at_ms >= cut_ms for one in history.commits("orders"))
        assert all(one.at_ms >= cut_ms for one in history.lag("orders"))
        # A state that still holds stays, however long it has held.
        assert history.ownership("orders", since_ms=now_ms) == owned
        assert [one.until_ms for one in history.members("orders", since_ms=now_ms)] == [None] * 3
        assert [one.group for one in history.groups()] == ["gone", "orders"]
        while history.prune(now_ms + 3_600_000):
            pass
        assert [one.group for one in history.groups()] == ["orders"]
        assert history.rebalances() == []


def test_a_history_stays_within_its_size(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    limit = 2 << 20
    noise = [os.urandom(2_000).hex() for _ in range(40)]
    with History.open(path, max_bytes=limit) as history:
        at_ms = 0
        for number in range(120):
            at_ms += 60_000
            history.record([rebalance(number * 40 + one, at_ms, text) for one, text in enumerate(noise)])
            while history.prune(at_ms):
                pass
        newest = history.rebalances(newest_first=True, limit=1)[0]
        assert newest.at_ms == at_ms
        assert history.oldest_ms is not None
        assert 60_000 < history.oldest_ms < at_ms
    # Some of it is free, and used again.
    assert path.stat().st_size < 2 * limit


def test_samples_go_before_rebalances_when_there_is_too_much(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.sqlite", max_bytes=2 << 20) as history:
        day_ms = 24 * 3_600_000
        history.record([rebalance(1, 1_000)])
        for hour in range(72):
            history.record([Commit("g", f"topic-{one}", one, hour * 3_600_000, hour) for one in range(1_000)])
        now_ms = 3 * day_ms
        while history.prune(now_ms):
            pass
        assert history.rebalances() == [rebalance(1, 1_000)]
        assert history.commits("g")[0].at_ms > 3_600_000


def test_samples_of_the_last_hour_stay_when_older_ones_go(tmp_path: Path) -> None:
    now_ms = 30 * 24 * 3_600_000
    hour_ago_ms = now_ms - SAMPLES_LEAST_MS
    older, recent = (
        [Commit("g", f"topic-{one}", 0, at_ms, 1) for one in range(count)]
        for count, at_ms in ((10, hour_ago_ms - 1), (30_000, hour_ago_ms + 1))
    )
    with History.open(tmp_path / "h.sqlite", max_bytes=MIN_BYTES) as history:
        history.record([*older, *recent])
        assert history.prune(now_ms) == len(older)
        assert len(history.commits("g")) == len(recent)


def test_a_full_disk_is_said_and_nothing_is_half_done(tmp_path: Path) -> None:
    with History.open(tmp_path / "h.sqlite") as history:
        history.record([rebalance(1, 1_000)], positions={("t", 0): Position(1, 1)})
        connection = history._connection
        [[pages]] = connection.execute("PRAGMA page_count")
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        many = [rebalance(number, number, os.urandom(3_000).hex()) for number in range(100)]
        with pytest.raises(HistoryError, match="the disk is full: make room for"):
            history.record([*many, rebalance(1, 9_999)], positions={("t", 0): Position(2, 2)})
        assert history.rebalances() == [rebalance(1, 1_000)]
        assert history.positions() == {("t", 0): Position(1, 1)}
        connection.execute("PRAGMA max_page_count = 1000000")
        history.record([*many, rebalance(1, 9_999)], positions={("t", 0): Position(2, 2)})
        assert len(history.rebalances()) == 100
        assert history.cursor == 102


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    path = incidents(tmp_path / "h.sqlite")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))
    with pytest.raises(HistoryError, match="is damaged"):
        History.open(path, read_only=True)


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path("ab-C_9") == tmp_path / "ringleader" / "insight" / "ab-C_9.sqlite"
    assert default_path("../x/y").parent == tmp_path / "ringleader" / "insight"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path("abc") == tmp_path / "home/.local/share/ringleader/insight/abc.sqlite"
    with pytest.raises(ValueError, match="name a file"):
        default_path("")


def test_made_histories_hang_together(tmp_path: Path) -> None:
    with History.open(incidents(tmp_path / "h.sqlite"), read_only=True) as history:
        states = {one.group: one for one in history.groups()}
        assert {name: one.state for name, one in states.items()} == {
            "orders": "Stable",
            "billing": "Stable",
            "audit": "Stable",
            "console-consumer-4711": "Dead",
        }
        for group in ("orders", "billing", "audit"):
            rebalances = history.rebalances(group)
            assert [one.generation for one in rebalances] == list(range(1, len(rebalances) + 1))
            for one, after in pairwise(rebalances):
                assert after.before == one.members
                assert after.at_ms > one.at_ms
                went = {member.member_id for member in after.before} - {m.member_id for m in after.members}
                assert went == set(after.left)
            newest_ms = history.newest_ms
            assert newest_ms is not None
            owned = history.ownership(group, since_ms=newest_ms)
            now = {(one.topic, one.partition): one.member_id for one in owned}
            assert now == {tp: one.member_id for one in states[group].members for tp in one.assigned}
            alive = {one.member for one in history.members(group) if one.until_ms is None}
            assert alive == set(states[group].members)


def test_no_query_looks_at_everything(tmp_path: Path) -> None:
    History.open(tmp_path / "h.sqlite").close()
    connection = sqlite3.connect(tmp_path / "h.sqlite")
    for query in (
        "SELECT value FROM rebalance WHERE at_ms >= 1 AND grp = 'g' ORDER BY at_ms LIMIT 9",
        "SELECT value FROM rebalance ORDER BY at_ms DESC LIMIT 9",
        "SELECT value FROM member WHERE until_ms >= 1 AND grp = 'g' AND since_ms <= 5",
        "SELECT grp FROM ownership WHERE until_ms >= 1 AND grp = 'g' AND since_ms <= 5",
        "SELECT grp FROM ownership WHERE until_ms >= 1 AND topic = 't' AND partition = 1 AND since_ms <= 5",
        "SELECT at_ms FROM commits WHERE at_ms >= 1 AND grp = 'g' AND topic = 't' AND partition = 1",
        "SELECT max(change) FROM rebalance",
        "SELECT min(at_ms) FROM commits",
    ):
        plan = " ".join(str(row) for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert "SCAN" not in plan or "INDEX" in plan, plan
    connection.close()


def test_an_older_format_is_brought_up_to_date_by_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.sqlite"
    with History.open(path) as history:
        history.record([rebalance(1, 1_000)])
    # As a later version will have it.
    monkeypatch.setattr(tables, "FORMAT_VERSION", FORMAT_VERSION + 1)
    step = "ALTER TABLE event ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';"
    monkeypatch.setitem(tables.STEPS, FORMAT_VERSION, "DROP TABLE lag; DROP TABLE nothing;")
    with pytest.raises(
        FormatError, match=f"has the older format {FORMAT_VERSION}: `ringleader watch --history"
    ):
        History.open(path, read_only=True)
    with pytest.raises(HistoryError):
        History.open(path)  # the step fails: the file is as it was
    monkeypatch.setitem(tables.STEPS, FORMAT_VERSION, step)
    with History.open(path) as history:
        assert history.rebalances() == [rebalance(1, 1_000)]
        assert history._all("SELECT colour FROM event") == []
    with History.open(path, read_only=True) as history:
        assert history._all("PRAGMA user_version") == [(FORMAT_VERSION + 1,)]


def test_events_of_the_first_format_are_about_nobody(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    known = Event("e-1", "g", 1_000, EventKind.JOIN_REFUSED, "It was refused.", "app-1", "FENCED_INSTANCE_ID")
    with History.open(path) as history:
        history.record([known])
        assert history.events("g") == [known]
        assert history.changes(0)[1] == [known]
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE event DROP COLUMN member; ALTER TABLE event DROP COLUMN reason; PRAGMA user_version = 1;"
    )
    connection.close()
    with History.open(path) as history:
        assert history.events("g") == [known._replace(member="", reason="")]
        history.record([known])
        assert history.events("g") == [known]
