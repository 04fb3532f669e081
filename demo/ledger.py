"""The actions of one process, written down by itself: one JSON object a line, readable with any text tool.

``{"t": 12.3, "did": "processed", "partition": 3, "from": 100, "to": 150}`` covers offsets 100 to 149. A
member writes and syncs such lines BEFORE it commits them, so that a kill at any moment leaves no committed
record without its line. ``t`` is in seconds of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from demo import plan


def ranges(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Runs of consecutive offsets as half-open ranges, in the order given: 1 2 3 7 -> [(1, 4), (7, 8)]."""
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] == offset:
            runs[-1] = (runs[-1][0], offset + 1)
        else:
            runs.append((offset, offset + 1))
    return runs


class Ledger:
    """An append-only file of what this process did."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def note(self, did: str, **fields: Any) -> None:
        """Write one line; it is out of this process, but not synced, when this returns."""
        self._file.write(self._line(did, fields))
        self._file.flush()

    def processed(self, offsets: Mapping[int, Iterable[int]]) -> None:
        """Write down the offsets of each partition that were processed; on disk when this returns."""
        for partition, of_partition in offsets.items():
            for start, end in ranges(of_partition):
                fields = {"partition": partition, "from": start, "to": end}
                self._file.write(self._line("processed", fields))
        self._file.flush()
        os.fsync(self._file.fileno())

    @staticmethod
    def _line(did: str, fields: Mapping[str, Any]) -> str:
        return json.dumps({"t": round(time.monotonic(), 3), "did": did, **fields}) + "\n"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a ledger. A last line that a kill cut off is left out: nothing it says was committed."""
    if not path.exists():
        return []
    whole, _, _cut_off = path.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def named_member(description: str | None) -> Iterator[tuple[str, str, Ledger]]:
    """By the command line of a member's process: the daemon's address, the member's name, and its ledger."""
    parser = plan.arguments(description)
    parser.add_argument("--name", required=True)
    args = parser.parse_args()
    with Ledger(plan.Places(args.out).ledger(args.name)) as ledger:
        yield args.bootstrap, args.name, ledger
