"""Mutants: patches that break one rule of the group machine each, and how one becomes a tree to run.

A patch is a unified diff (paths from the repository's root) after some lines that say what is broken. It is
applied by what its lines say, not where they stand, so that changes elsewhere in a file do not matter.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import ringleader
import ringleader.coordinator.groups

HERE = Path(__file__).parent


class StalePatchError(Exception):
    """A patch does not fit the machine any more."""


def names() -> list[str]:
    """All mutants."""
    return sorted(patch.stem for patch in HERE.glob("*.patch"))


def description(name: str) -> str:
    """What is broken, in one line."""
    return _read(name).partition("--- ")[0].strip().replace("\n", " ")


def build(name: str, directory: Path) -> Path:
    """A package `ringleader` in `directory` whose group machine has the mutant `name`; everything else of it
    that the machine needs is the real one. Returns the directory to import it from. Raises
    `StalePatchError`."""
    package = Path(ringleader.__file__).parent
    machine = Path(ringleader.coordinator.groups.__file__).parent
    copy = directory / "ringleader"
    groups = copy / "coordinator" / "groups"
    shutil.copytree(machine, groups, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("__init__.py", "deadlines.py", "machine.py", "unix_time.py"):
        shutil.copy(machine.parent / module, groups.parent)
    shutil.copy(package / "__init__.py", copy)
    (copy / "protocol").symlink_to((package / "protocol").resolve(), target_is_directory=True)
    apply(name, _read(name), copy)
    return directory


def apply(name: str, patch: str, tree: Path) -> None:
    """Change the files of a tree as a patch says. Raises `StalePatchError`."""
    for path, hunks in _files(name, patch):
        file = tree / path
        if not file.is_file():
            raise StalePatchError(f"{name}: there is no {path} any more")
        text = file.read_text()
        for old, new in hunks:
            if text.count(old) != 1:
                found = "twice or more" if old in text else "no more"
                raise StalePatchError(f"{name}: {path} has these lines {found}:\n{old}")
            text = text.replace(old, new)
        file.write_text(text)


def _read(name: str) -> str:
    return (HERE / f"{name}.patch").read_text()


def _files(name: str, patch: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(path, hunks), each hunk as the lines before and after."""
    path, hunks = "", list[tuple[str, str]]()
    for line in patch.partition("--- ")[2].splitlines(keepends=True)[1:]:
        if line.startswith("--- "):
            yield path, hunks
            hunks = []
        elif line.startswith("+++ "):
            path = line[4:].split("\t")[0].strip().removeprefix("b/")
        elif line.startswith("@@ "):
            hunks.append(("", ""))
        elif line[:1] in (" ", "-", "+") and hunks:
            old, new = hunks[-1]
            text = line[1:]
            hunks[-1] = (old + text * (line[0] != "+"), new + text * (line[0] != "-"))
        elif line.strip():
            raise StalePatchError(f"{name}: no line of a diff: {line!r}")
    if not path or not hunks:
        raise StalePatchError(f"{name}: there is no diff in it")
    yield path, hunks
