"""`python -m tests.spec.traces --seed N`: is this run one that docs/spec allows? `--count K`: fresh ones.

A trace is a list of lines, one for each step: see docs/spec/Trace.tla. TLC takes all traces in one start, and
says how far it came with each. FILES: traces that were written with `--write`.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.spec.tlc import SPEC, TlcError, run_tlc
from tools import proof

Line = dict[str, Any]
AT_ONCE = 25
"""Traces of one start of TLC: their text is the larger part of its memory."""

_CHANGES = {"classic": "(downgraded)", "consumer": "(upgraded)"}
_REACHED = re.compile(r'<<"reached", (\d+), (\d+)>>')
_REFUSES = re.compile(r'<<\s*"refuses",\s*(\d+),\s*(\d+),(.*?)>>(?=\n(?:<<|[A-Z]|$))', re.S)
_BROKEN = re.compile(r"(?:Invariant|Action property) (\w+) is violated")


@dataclass(slots=True)
class Trace:
    """The steps that were seen of one group. `again`: the command that checks it again."""

    title: str
    members: set[str]
    partitions: set[str]
    lines: list[Line]
    again: str = ""
    open: bool = False
    """Whether only members were watched, not the coordinator."""
    at_first: set[str] | None = None
    """The partitions that there were at first; None: all."""
    classics: set[str] = field(default_factory=set)
    """Those of the members that speak the classic protocol."""
    changes: bool = False
    """Whether the group is a classic one when only such members are left."""

    @property
    def there(self) -> set[str]:
        """Likewise."""
        return self.partitions if self.at_first is None else self.at_first

    def write(self, path: Path) -> None:
        """As JSON; a set is {"set": [...]}."""
        with path.open("w") as file:
            head = {"title": self.title, "members": self.members, "open": self.open, "there": self.there}
            more = {"partitions": self.partitions, "classics": self.classics, "changes": self.changes}
            for one in ({**head, **more}, *self.lines):
                file.write(json.dumps(one, default=lambda some: {"set": sorted(some)}) + "\n")

    @classmethod
    def read(cls, path: Path) -> Trace:
        """As `write` left it."""
        found = [json.loads(line, object_hook=_set) for line in path.read_text().splitlines()]
        head = found[0]
        again = f"python -m tests.spec.traces {path}"
        whole = head["title"], head["members"], head["partitions"], found[1:], again
        return cls(*whole, head["open"], head["there"], head["classics"], head["changes"])


def _set(some: dict[str, Any]) -> Any:
    return set(some["set"]) if some.keys() == {"set"} else some


@dataclass(slots=True)
class Result:
    """The outcome for all traces. `refused`: by title, why a trace is not as the specification says."""

    refused: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


def check(traces: Sequence[Trace], *, spec: Path = SPEC) -> Result:
    """Raises `TlcError`, and `InteropError` without Java or Maven."""
    result = Result()
    for start in range(0, len(traces), AT_ONCE):
        _check(traces[start : start + AT_ONCE], spec, result)
    return result


def _check(traces: Sequence[Trace], spec: Path, result: Result) -> None:
    text = run_tlc(spec / "Trace.tla", "trace", {"TraceData.tla": _module(traces)})
    broken = _BROKEN.search(text)
    if broken is None and "No error has been found" not in text:
        raise TlcError(text[-4_000:])
    reached = dict.fromkeys(range(1, len(traces) + 1), 0)
    for run, line in _REACHED.findall(text):
        reached[int(run)] = max(reached[int(run)], int(line))
    wanted = {(int(run), int(line)): " ".join(what.split()) for run, line, what in _REFUSES.findall(text)}
    for number, trace in enumerate(traces, start=1):
        done = reached[number] - 1
        result.steps += done
        result.kinds.update(one["kind"] for one in trace.lines[:done])
        protocols = [one["protocol"] for one in trace.lines[:done] if "protocol" in one]
        result.kinds.update(_CHANGES[two] for one, two in pairwise(protocols) if one != two)
        if done < len(trace.lines) and broken is None:
            of = wanted.get((number, done + 1), "it is none of its steps")
            _refuse(result, trace, done, f"the specification says: {of}")
    if broken is not None:
        run, line = (int(re.findall(rf"/\\ {name} = (\d+)", text)[-1]) for name in ("run", "line"))
        _refuse(result, traces[run - 1], line - 2, f"{broken[1]} does not hold after it")


def _refuse(result: Result, trace: Trace, done: int, why: str) -> None:
    line = trace.lines[done]
    member = f"{line['m']} ({line['id']})" if "id" in line else line.get("m", "")
    name = f"{member} {line['kind']}".strip()
    seen = {key: value for key, value in line.items() if key not in ("kind", "m", "id")}
    text = json.dumps(seen, default=sorted)
    where = f"{trace.title}: step {done + 1} of {len(trace.lines)}, {name}: {text}"
    result.refused[trace.title] = f"{where}; {why}; again: {trace.again}"


def _module(traces: Sequence[Trace]) -> str:
    def all_of(name: str) -> str:
        return _tla({one for trace in traces for one in getattr(trace, name)})

    runs = ",\n\n".join("<<" + ",\n".join(_tla(line) for line in one.lines) + ">>" for one in traces)
    return (
        "---- MODULE TraceData ----\n"
        f"TheMembers == {all_of('members')}\n"
        f"TheClassics == {all_of('classics')}\n"
        f"ThePartitions == {all_of('partitions')}\n"
        f"There == <<{', '.join(_tla(one.there) for one in traces)}>>\n"
        f"Changes == <<{', '.join(_tla(one.changes) for one in traces)}>>\n"
        f"Open == <<{', '.join(_tla(one.open) for one in traces)}>>\n"
        f"Runs == <<{runs}>>\n====\n"
    )


def _tla(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, set):
        return "{" + ", ".join(_tla(one) for one in sorted(value)) + "}"
    assert isinstance(value, dict)
    return "[" + ", ".join(f"{key} |-> {_tla(one)}" for key, one in value.items()) + "]" if value else "<<>>"


def main() -> int:
    """The exit code: 1 if a trace is refused."""
    from tests.spec.recorder import record

    parser = argparse.ArgumentParser(prog="python -m tests.spec.traces", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILES")
    parser.add_argument("--seed", type=int, action="append", default=[], help="run this seed; repeatable")
    parser.add_argument("--count", type=int, default=0, help="so many fresh seeds")
    parser.add_argument("--write", type=Path, help="write the (last) trace to this file, too")
    proof.add_option(parser)
    given = parser.parse_args()
    traces = [Trace.read(path) for path in given.files]
    traces += [record(seed) for seed in (*given.seed, *(secrets.randbits(48) for _ in range(given.count)))]
    if given.write:
        traces[-1].write(given.write)
    found = check(traces)
    for one in found.refused.values():
        print(one)
    print(f"{len(traces)} traces, {found.steps} steps, {len(found.refused)} refused")
    print(dict(sorted(found.kinds.items())))
    if given.proof:
        figures = {"traces": len(traces), "steps": found.steps}
        refused = {"traces that are refused": len(found.refused)}
        proof.leave("traces", {**figures, **refused}, good=not found.refused, adds=tuple(figures))
    return 1 if found.refused else 0


if __name__ == "__main__":
    sys.exit(main())
