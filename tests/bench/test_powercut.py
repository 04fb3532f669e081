"""The power cut of the crash tests: what was synced stays, what was not goes. Needs a C compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.support.powercut import cut_power, watching

# Each line is a step of a process that then kills itself.
_SCRIPT = """
import os, shutil, signal, sys
root = sys.argv[1]
path = os.path.join(root, "state.db")
def sync(name):
    os.fsync(os.open(name, os.O_RDONLY))
def put(name, data):
    with open(os.path.join(root, name), "wb") as stream:
        stream.write(data)
{steps}
os.kill(os.getpid(), signal.SIGKILL)
"""
_BEGIN = (
    "fd = os.open(path, os.O_RDWR | os.O_CREAT)",
    "os.write(fd, b'synced')",
    "os.fsync(fd)",
    "sync(root)",
)


def after_cut(tmp_path: Path, *steps: str, draw: Random | None = None) -> dict[str, bytes | None]:
    """The files that are there after a process did these things and lost power: content by name, None: a
    directory."""
    root, journal = tmp_path / "state", tmp_path / "journal"
    for directory in (root, journal):
        directory.mkdir(exist_ok=True)
    code = _SCRIPT.format(steps="\n".join(steps))
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        env=watching(root, journal),
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr
    cut_power(root, journal, draw)
    assert not list(journal.iterdir())
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


@pytest.mark.parametrize(
    "steps",
    [
        [],
        ["os.write(fd, b'lost')", "os.write(fd, b'too')"],
        ["os.pwrite(fd, b'LOST', 1)", "os.pwritev(fd, [b'!', b'!'], 2)", "os.pwrite(fd, b'??', 5)"],
        ["os.writev(fd, [b'lo', b'st'])"],
        ["os.ftruncate(fd, 2)", "os.pwrite(fd, b'x', 9)"],
        ["os.truncate(path, 0)"],
        ["open(path, 'wb').write(b'begun anew')"],
        ["open(path, 'ab').write(b'and more')"],
        ["os.unlink(path)"],
        ["os.write(fd, b'lost')", "os.unlink(path)"],
        ["os.unlink(path)", "put('state.db', b'another')", "sync(path)"],
        ["os.rename(path, path + '.old')"],
        ["put('new', b'never synced')"],
        ["put('new', b'its name is not synced')", "sync(root + '/new')"],
        ["put('new', b'another')", "sync(root + '/new')", "os.replace(root + '/new', path)"],
        ["os.mkdir(root + '/below')", "put('below/file', b'x')", "sync(root + '/below')"],
        ["os.link(path, path + '.copy')"],
    ],
)
def test_unsynced_writes_go_and_synced_ones_stay(tmp_path: Path, steps: list[str]) -> None:
    assert after_cut(tmp_path, *_BEGIN, *steps) == {"state.db": b"synced"}


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (["os.write(fd, b'!')", "os.fdatasync(fd)"], {"state.db": b"synced!"}),
        (["os.write(fd, b'!')", "sync(path)"], {"state.db": b"synced!"}),
        (["os.write(fd, b'!')", "os.sync()"], {"state.db": b"synced!"}),
        (["os.unlink(path)", "sync(root)"], {}),
        (["os.rename(path, path + '.old')", "sync(root)"], {"state.db.old": b"synced"}),
        # The name is on the disk, the content is not.
        (
            ["put('state.new', b'x')", "os.replace(root + '/state.new', path)", "sync(root)"],
            {"state.db": b""},
        ),
        (["os.mkdir(root + '/a')", "put('a/b', b'x')", "sync(root)"], {"state.db": b"synced", "a": None}),
        (
            [
                "os.mkdir(root + '/a')",
                "put('a/b', b'x')",
                "sync(root)",
                "sync(root + '/a')",
                "sync(root + '/a/b')",
            ],
            {"state.db": b"synced", "a": None, "a/b": b"x"},
        ),
    ],
)
def test_synced_writes_stay(tmp_path: Path, steps: list[str], left: dict[str, bytes | None]) -> None:
    assert after_cut(tmp_path, *_BEGIN, *steps) == left


def test_never_synced_means_nothing(tmp_path: Path) -> None:
    assert after_cut(tmp_path, "fd = os.open(path, os.O_RDWR | os.O_CREAT)", "os.fsync(fd)") == {}


def test_a_removed_tree_comes_back(tmp_path: Path) -> None:
    make = ["os.makedirs(root + '/a/b')", "put('a/b/c', b'1')", "put('a/d', b'2')", "os.sync()"]
    tree = after_cut(tmp_path, *make)
    assert tree == {"a": None, "a/b": None, "a/b/c": b"1", "a/d": b"2"}
    assert after_cut(tmp_path, "shutil.rmtree(root + '/a')") == tree
    assert after_cut(tmp_path, "shutil.rmtree(root + '/a')", "sync(root)") == {}


def test_with_a_draw_each_file_is_as_of_some_moment_after_its_sync(tmp_path: Path) -> None:
    seen = set()
    for seed in range(12):
        begin = (*_BEGIN, "os.ftruncate(fd, 0)", "os.lseek(fd, 0, 0)", "os.fsync(fd)")
        left = after_cut(tmp_path, *begin, *["os.write(fd, b'x')"] * 3, draw=Random(seed))
        seen.add(left["state.db"])
        assert left.keys() == {"state.db"}
    assert seen <= {b"", b"x", b"xx", b"xxx"}
    assert len(seen) > 1


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    after_cut(tmp_path, f"open({str(outside)!r}, 'wb').write(b'there')")
    assert outside.read_bytes() == b"there"
