"""The data directory is closed to other users of the machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.data_dir import claim
from ringleader.coordinator.node import Node
from ringleader.coordinator.serving import StartError
from ringleader.coordinator.topics.disk import write_whole
from ringleader.host.lock_file import ForeignFileError, LockFile
from ringleader.insight.history.errors import HistoryError
from ringleader.insight.history.history import History
from tests.coordinator.server.test_throttle import produce
from tests.support.cluster_nodes import Lines
from tests.support.served import connected

NOBODY = 65_534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory that others can get at."""
    found = Path(tempfile.mkdtemp())
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def node(directory: Path) -> Node:
    return Node(Settings(data_dir=directory, listen="127.0.0.1:0", topic="orders:1"))


async def test_nothing_in_it_is_for_others(reachable: Path) -> None:
    before = os.umask(0)
    try:
        async with node(reachable / "a" / "data") as one, connected(one.host, one.port) as client:
            await client.call(produce(), 9)
            made = [reachable / "a" / "data", *(reachable / "a" / "data").rglob("*")]
            assert len(made) > 10
            assert {(str(path), mode(path) & 0o077) for path in made} == {(str(path), 0) for path in made}
    finally:
        os.umask(before)
    assert mode(reachable / "a" / "data") == 0o700


TRIES = """
ls "$1" && echo sees
(: < "$1/ringleader.lock") && echo reads the lock
(: >> "$1/ringleader.lock") && echo writes the lock
exit 0
"""
"""A file that can be opened can be locked."""


@AS_ROOT
async def test_another_user_can_neither_hold_the_lock_nor_see_anything(reachable: Path) -> None:
    """Also where it was made for all, by an older ringleader."""
    data = reachable / "data"
    data.mkdir(mode=0o755)
    (data / "ringleader.lock").touch(0o644)
    before = await _tried(data)
    async with node(data):
        pass
    assert (before, await _tried(data)) == (b"ringleader.lock\nsees\nreads the lock\n", b"")
    assert mode(data / "ringleader.lock") == 0o600


async def _tried(data: Path) -> bytes:
    pipe = asyncio.subprocess.PIPE
    one = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", TRIES, "sh", str(data), user=NOBODY, group=NOBODY, stdout=pipe, stderr=pipe
    )
    output, _ = await one.communicate()
    assert one.returncode == 0
    return output


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    "is a symbolic link": lambda lock, victim: lock.symlink_to(victim),
    "is no file of its own": lambda lock, victim: os.link(victim, lock),
    "is no file": lambda lock, victim: os.mkfifo(lock),
}


@pytest.mark.parametrize("what", PLANTED)
async def test_what_another_user_has_put_in_place_of_a_lock_is_not_touched(tmp_path: Path, what: str) -> None:
    victim, data = tmp_path / "victim", tmp_path / "data"
    victim.write_text("of great worth")
    data.mkdir(mode=0o777)
    PLANTED[what](data / "ringleader.lock", victim)
    with pytest.raises(StartError, match=rf"ringleader\.lock {what}.*: look at it and delete it$"):
        await node(data).start()
    PLANTED[what](data / "history.db.lock", victim)
    with pytest.raises(HistoryError, match=rf"history\.db\.lock {what}.*: look at it and delete it$"):
        History.open(data / "history.db")
    assert victim.read_text() == "of great worth"
    (data / "ringleader.lock").unlink()
    async with node(data):
        pass


def test_a_file_is_replaced_by_one_of_its_own(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "node.json"
    victim.write_text("of great worth")
    (tmp_path / "node.json.new").symlink_to(victim)
    write_whole(path, b"{}")
    assert (path.read_text(), path.is_symlink(), victim.read_text()) == ("{}", False, "of great worth")


@AS_ROOT
async def test_a_lock_of_another_user_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "ringleader.lock").touch(0o600)
    os.chown(tmp_path / "ringleader.lock", NOBODY, NOBODY)
    with pytest.raises(StartError, match=r"ringleader\.lock belongs to another user \(uid 65534\)"):
        await node(tmp_path).start()


@AS_ROOT
def test_a_lock_that_may_not_be_opened_says_whose_it_is(reachable: Path) -> None:
    """It is left from a start as root."""
    (reachable / "ringleader.lock").touch(0o600)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(ForeignFileError, match=r"ringleader\.lock belongs to another user \(uid 0\)"):
            LockFile(reachable / "ringleader.lock").acquire()
    finally:
        os.seteuid(0)


def lines_of(directory: Path) -> Lines:
    lines = Lines()
    claim(directory, lines.log)
    return lines


@pytest.mark.parametrize("was", [0o755, 0o777, 0o770, 0o701])
def test_one_that_was_open_is_closed_with_a_line(tmp_path: Path, was: int) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(was)
    [line] = lines_of(directory)
    assert (line["level"], line["was"], line["now"]) == ("warning", f"{was:04o}", "0700")
    assert mode(directory) == 0o700
    assert lines_of(directory) == []


@AS_ROOT
async def test_of_another_user(tmp_path: Path) -> None:
    """A container's volume is root's, and of a group of ours: that is enough. One where anybody may write is
    not."""
    directory = tmp_path / "volume"
    directory.mkdir()
    for was, lines in ((0o2770, 0), (0o2775, 1)):
        os.chown(directory, NOBODY, os.getegid())
        directory.chmod(was)
        assert len(lines_of(directory)) == lines
        assert mode(directory) == was
    directory.chmod(0o777)
    with pytest.raises(
        StartError, match=r"belongs to another user \(uid 65534\), and anybody may write there"
    ):
        await node(directory).start()
    assert list(directory.iterdir()) == []
    async with node(directory / "ringleader"):
        assert mode(directory / "ringleader") == 0o700


def test_a_history_is_for_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with History.open(tmp_path / "new" / "history.db"):
            made = [tmp_path / "new", *(tmp_path / "new").iterdir()]
            assert len(made) >= 3
            assert [path for path in made if mode(path) & 0o077] == []
    finally:
        os.umask(before)
