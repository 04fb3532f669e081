"""``ringleader migrate``: what is wrong is said before a cluster is asked; the rest is shown on a real one
(tests/interop/cluster/test_migrate.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.migration.state import FILE
from ringleader.testing.coordinator import Coordinator
from tests.support.command import Done, run_command, run_here

NOWHERE = "127.0.0.1:1"


def migrate(directory: Path, cluster: str, *arguments: str) -> Done:
    return run_here(None, "migrate", "--from", str(directory), "--cluster", cluster, *arguments)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The directory of a daemon that ran."""
    directory = tmp_path / "data"
    with Coordinator(data_dir=directory, topics={"orders": 2}) as one:
        one.produce("orders", b"a", b"b")
    return directory


def test_wrong_input(tmp_path: Path) -> None:
    absent = tmp_path / "gone"
    assert migrate(absent, NOWHERE).err == f"ringleader: --from: there is no directory {absent}.\n"
    assert migrate(absent, NOWHERE).code == 2
    done = migrate(tmp_path, "nowhere:x")
    assert done.code == 2
    assert "cluster" in done.err
    done = migrate(tmp_path, NOWHERE, "--cluster-properties", str(tmp_path / "none"))
    assert done.code == 2
    assert done.err.startswith("ringleader: --cluster-properties: ")
    for missing in (("--cluster", NOWHERE), ("--from", str(tmp_path))):
        done = run_command(NOWHERE, "migrate", *missing)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_a_directory_that_is_none_of_a_daemon(tmp_path: Path) -> None:
    done = migrate(tmp_path, NOWHERE)
    assert done.code == 1
    assert "is not the data directory of a daemon: it has no node.json" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_daemon_that_runs(tmp_path: Path) -> None:
    with Coordinator(data_dir=tmp_path / "data") as one:
        done = migrate(one.data_dir, NOWHERE)
    assert done.code == 1
    assert "another ringleader uses this data directory" in done.err


def test_a_cluster_that_cannot_be_reached(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.migration.migration.CALL_TIMEOUT_MS", 300)
    done = migrate(stopped, NOWHERE)
    assert done.code == 1
    assert NOWHERE in done.err


def test_a_note_of_an_earlier_run_that_cannot_be_read(stopped: Path) -> None:
    (stopped / FILE).write_text("{")
    done = migrate(stopped, NOWHERE)
    assert done.code == 1
    assert "to begin again, delete it" in done.err


def test_records_that_are_there_already_stop_it_before_anything_is_made(stopped: Path) -> None:
    with Coordinator(topics={"orders": 2}) as cluster:
        cluster.produce("orders", b"theirs")
        done = migrate(stopped, cluster.bootstrap)
        assert done.code == 1
        assert "there are records already in orders" in done.err
        assert not {"CreateTopics", "Produce"} & {one.api for one in cluster.faults.seen()}
    assert not (stopped / FILE).exists()


def test_other_numbers_of_partitions_stop_it(stopped: Path) -> None:
    with Coordinator(topics={"orders": 3}) as cluster:
        done = migrate(stopped, cluster.bootstrap)
        assert done.code == 1
        assert "topic orders has 3 partitions on the cluster and 2 here" in done.err


def test_a_dry_run_says_what_there_is(stopped: Path) -> None:
    with Coordinator() as cluster:
        done = migrate(stopped, cluster.bootstrap, "--dry-run")
        assert done.code == 0, done.err
        assert "Nothing has changed; 1 topic with 2 records and 0 groups with 0 offsets" in done.out
        assert not {"CreateTopics", "Produce"} & {one.api for one in cluster.faults.seen()}
