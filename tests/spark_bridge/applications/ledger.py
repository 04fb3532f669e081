"""The work of a process of the chaos test, on disk before it goes on, so that a kill costs no line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Range = tuple[int, int, int]
"""Partition, first offset, end (exclusive)."""


def ranges_of(rows: Iterable[tuple[int, int]]) -> list[Range]:
    """(partition, offset) pairs as ranges without gaps; a row that comes twice begins a new one."""
    found: list[Range] = []
    for partition, offset in sorted(rows):
        if found and found[-1][0] == partition and found[-1][2] == offset:
            found[-1] = (partition, found[-1][1], offset + 1)
        else:
            found.append((partition, offset, offset + 1))
    return found


class Ledger:
    """One line for each thing done."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._number = 0

    def read(self, ranges: list[Range]) -> int:
        """Rows were processed; the number of this line, for ``committed``."""
        self._number += 1
        self._write({"read": ranges, "number": self._number, "process": os.getpid()})
        return self._number

    def committed(self, number: int) -> None:
        """The group took the commit of that line's rows."""
        self._write({"committed": number, "process": os.getpid()})

    def refused(self, number: int, why: str) -> None:
        """The group did not take it."""
        self._write({"refused": number, "why": why, "process": os.getpid()})

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines so far."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return  # cut off by a kill
