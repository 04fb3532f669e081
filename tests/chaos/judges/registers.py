"""Committed offsets as registers, judged by Porcupine: a checker of linearizability that others wrote, in Go.

Every commit writes one value, its offset and its token; every OffsetFetch reads one. A commit that was
refused has no effect. One of unknown outcome may have had it at any time after its beginning, or never.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.build import go_program
from tests.chaos.checks import Commit, Place, Read
from tests.chaos.history import FAILED, OK

SOURCES = Path(__file__).with_name("porcupine")
PART = 400
"""Operations after which the next moment is looked for at which a history can be cut: Porcupine's memory
grows with the square of their number."""
DECIDE_S = 30.0
"""For each part."""
_NOTHING = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """On one register; `to_s` is infinite if it is not known that it had its effect, or when."""

    write: bool
    value: str
    client: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Part:
    """Operations that nothing before or after them overlaps; `initial` is there before them."""

    key: str
    initial: str
    operations: tuple[Operation, ...]


def value(offset: int, token: str) -> str:
    """The value in the register; nothing where nothing is committed."""
    return _NOTHING if offset < 0 else f"{offset} {token}"


def histories(commits: Iterable[Commit], reads: Iterable[Read]) -> dict[Place, list[Operation]]:
    """The operations on each register, by their beginnings.

    Without a loss of violations these are left out or made shorter: a commit of unknown outcome whose value,
    which no other commit has, was never read may as well be the last one; if it was read, it was there by the
    first answer that has it.
    """
    found: dict[Place, list[Operation]] = defaultdict(list)
    for read in reads:
        found[read.place].append(
            Operation(False, value(read.offset, read.token), read.client, read.began_s, read.ended_s)
        )
    answered = {place: _first_answers(operations) for place, operations in found.items()}
    by_place: dict[Place, list[Operation]] = defaultdict(list)
    for commit in commits:
        if commit.end != FAILED:
            until_s = commit.ended_s if commit.end == OK else math.inf
            by_place[commit.place].append(
                Operation(True, value(commit.offset, commit.token), commit.client, commit.began_s, until_s)
            )
    for place, writes in by_place.items():
        counted = Counter(one.value for one in writes)
        for one in writes:
            if math.isinf(one.to_s) and counted[one.value] == 1:
                first_s = answered.get(place, {}).get(one.value)
                if first_s is None:
                    continue
                one = replace(one, to_s=max(first_s, one.from_s))
            found[place].append(one)
    for operations in found.values():
        operations.sort(key=lambda one: one.from_s)
    return found


def _first_answers(reads: Iterable[Operation]) -> dict[str, float]:
    first: dict[str, float] = {}
    for one in reads:
        first[one.value] = min(first.get(one.value, math.inf), one.to_s)
    return first


def parts(key: str, operations: Sequence[Operation], length: int = PART) -> Iterator[Part]:
    """One history in parts of about that length, each of which can be judged by itself: cut where nothing is
    under way, and where it is certain which write came last."""
    initial, begin, until_s = _NOTHING, 0, -math.inf
    last: Operation | None = None
    certain = True
    for at, one in enumerate(operations):
        if at - begin >= length and one.from_s > until_s and last is not None and certain:
            yield Part(key, initial, tuple(operations[begin:at]))
            initial, begin, last = last.value, at, None
        until_s = max(until_s, one.to_s)
        if one.write:
            certain = last is None or last.to_s < one.from_s
            last = one if last is None or one.to_s >= last.to_s else last
    yield Part(key, initial, tuple(operations[begin:]))


def not_linearizable(
    commits: Iterable[Commit], reads: Iterable[Read], *, decide_s: float = DECIDE_S, length: int = PART
) -> tuple[list[str], list[str]]:
    """Registers of which no order of all operations can be right; and those that were not decided in time.
    Raises `NoGoError` where Porcupine cannot be built."""
    program = go_program(SOURCES)
    found: list[Part] = []
    for (group, place), operations in sorted(histories(commits, reads).items()):
        found += parts(f"{group} {place}", operations, length)
    lines: list[str] = []
    for number, part in enumerate(found):
        lines += map(json.dumps, _lines(str(number), part))
    done = subprocess.run(
        [str(program), str(decide_s)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    illegal, undecided = [], []
    for answer in map(json.loads, done.stdout.splitlines()):
        part = found[int(answer["key"])]
        if answer["result"] == "unknown":
            undecided.append(f"{part.key}: {len(part.operations)} operations, not decided in {decide_s:g} s")
        elif answer["result"] == "illegal":
            illegal.append(f"{part.key}: {_words(answer.get('first'), part)}")
    return illegal, undecided


def _lines(key: str, part: Part) -> Iterator[dict[str, Any]]:
    yield {"key": key, "initial": part.initial}
    clients: dict[str, int] = {}
    for one in part.operations:
        line: dict[str, Any] = {
            "key": key,
            "client": clients.setdefault(one.client, len(clients)),
            "from": round(one.from_s * 1e9),
            "write" if one.write else "read": one.value,
        }
        yield line if math.isinf(one.to_s) else {**line, "to": round(one.to_s * 1e9)}


def _words(first: dict[str, Any] | None, part: Part) -> str:
    if first is None:
        return "no order of its operations can be right"
    what = f"a commit of {first['write']!r}" if "write" in first else f"a read of {first['read']!r}"
    until_s = first["to"] / 1e9 if "to" in first else math.inf
    return (
        f"{what} from {first['from'] / 1e9:.3f} to {until_s:.3f} has no place in any order of the "
        f"{len(part.operations)} operations around it"
    )
