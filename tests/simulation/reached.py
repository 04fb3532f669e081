"""`python -m tests.simulation.reached --seeds N`: what do N fresh seeds of each world reach of the machines?

Counts the ways of every branch, the transitions of groups and the error codes that are answered. A way that
no seed went is printed, unless unreached.toml says why it cannot be: draw what leads there more often, or add
it with the reason. Tracing makes a seed several times as slow.
"""

from __future__ import annotations

import argparse
import ast
import secrets
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import TRANSITIONS
from ringleader.protocol.errors import error_name
from tests.simulation.seeds import SEED_BITS
from tests.simulation.world import World

ROOT = Path(__file__).parents[2]
EXPLAINED = Path(__file__).with_name("unreached.toml")
_OF_CONSUMERS = (
    *("changes", "configs", "consumer", "delegated", "epoch_notes"),
    *("epochs", "migration", "mixed", "targets"),
)
CONSUMER_FILES = tuple(f"coordinator/groups/{name}.py" for name in _OF_CONSUMERS)
"""Those of the room of groups that are about the consumer protocol."""
MACHINES: dict[str, tuple[str, ...]] = {
    "groups": ("coordinator/groups/*.py",),
    "consumer": ("coordinator/consumer_groups/*.py", *CONSUMER_FILES),
    "transactions": ("coordinator/group_transactions/*.py",),
    "cluster": ("coordinator/cluster/controller.py", "coordinator/cluster/placement.py"),
    "clients": ("clients/group/machine/*.py",),
}
"""Files of the machine that a world is about, as patterns."""


class Way(NamedTuple):
    """One way that a branch can go."""

    place: str
    """Module and function, as in "coordinator.groups.join:Joining._new"."""
    line: str
    """The condition as it stands there, as one line."""
    way: str
    """`holds`, `fails`, `enters` (a loop) or `catches`."""


@dataclass(frozen=True)
class Branch:
    """The lines of a condition and of what comes first when it holds."""

    way: Way
    condition: range
    first: int

    def is_reached(self, steps: Counter[tuple[int, int]]) -> bool:
        """By these steps from one line of the file to the next; 0 is the function's end."""
        if self.way.way != "fails":
            return any(after == self.first and self._comes(before) for before, after in steps)
        return any(
            before in self.condition and after not in self.condition and after != self.first
            for before, after in steps
        )

    def _comes(self, before: int) -> bool:
        return self.way.way == "catches" or before in self.condition


def branches(file: Path) -> Iterator[Branch]:
    """All of a file."""
    text = file.read_text()
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for node, place in _placed(ast.parse(text), ""):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        condition: ast.AST | None = None
        ways: tuple[str, ...] = ()
        if isinstance(node, ast.If | ast.While):
            condition, ways = node.test, ("holds", "fails")
        elif isinstance(node, ast.For | ast.AsyncFor):
            condition, ways = node.iter, ("enters",)
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            condition, ways = node.type, ("catches",)
        endless = isinstance(condition, ast.Constant)
        if condition is None or endless or not isinstance(first, ast.stmt) or not place:
            continue
        assert isinstance(condition, ast.expr)
        line = " ".join((ast.get_source_segment(text, condition) or "").split())
        if line == "TYPE_CHECKING":
            continue
        lines = range(getattr(node, "lineno", 0), (condition.end_lineno or condition.lineno) + 1)
        for way in ways:
            yield Branch(Way(f"{module}:{place}", line, way), lines, first.lineno)


def _placed(node: ast.AST, place: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, place
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from _placed(child, f"{place}.{getattr(child, 'name', '')}".lstrip(".") if named else place)


class Reached:
    """Watches what runs, while it is entered."""

    def __init__(self, files: list[Path]) -> None:
        self._files = {f"ringleader/{file.relative_to(ROOT)}": file for file in files}
        self.steps: dict[Path, Counter[tuple[int, int]]] = {file: Counter() for file in files}
        self.transitions: Counter[tuple[str, str]] = Counter()
        self.codes: Counter[tuple[str, str]] = Counter()
        """Request and name of the error code that it was answered."""
        self._known: dict[str, Path | None] = {}
        self._patches = [
            mock.patch.object(Group, "transition", self._telling(Group.transition, self._moves)),
            mock.patch.object(World, "answered", self._telling(World.answered, self._answers)),
        ]

    def __enter__(self) -> Reached:
        for patch in self._patches:
            patch.start()
        threading.settrace(self._enters)
        sys.settrace(self._enters)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)
        for patch in self._patches:
            patch.stop()

    @staticmethod
    def _telling(function: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
        def telling(*arguments: Any) -> Any:
            tell(*arguments)
            return function(*arguments)

        return telling

    def _moves(self, group: Group, state: Any, _unix_ms: int) -> None:
        self.transitions[str(group.state), str(state)] += 1

    def _answers(self, _world: World, call: Any, response: Any) -> None:
        name = type(call.request).__name__
        for code in {response} if isinstance(response, int) else set(_codes(response)):
            self.codes[name, error_name(code)] += 1

    def _enters(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if name not in self._known:
            found = next((file for end, file in self._files.items() if name.endswith(end)), None)
            self._known[name] = found or next((file for file in self.steps if str(file) == name), None)
        file = self._known[name]
        if file is None:
            return None
        steps, before = self.steps[file], frame.f_lineno  # where a coroutine goes on

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal before
            if event == "line":
                steps[before, frame.f_lineno] += 1
                before = frame.f_lineno
            elif event == "return":
                steps[before, 0] += 1
            elif event == "exception" and not issubclass(argument[0], StopIteration):
                before = -1
            return step

        return step

    def missing(self) -> list[Way]:
        """The ways that nothing went."""
        return [
            one.way
            for file, steps in self.steps.items()
            for one in branches(file)
            if not one.is_reached(steps)
        ]


def _codes(response: Any) -> Iterator[int]:
    if is_dataclass(response):
        for field in fields(response):
            value = getattr(response, field.name)
            if field.name == "error_code":
                yield value
            elif isinstance(value, list):
                for one in value:
                    yield from _codes(one)


def explained() -> dict[Way, str]:
    """The ways that cannot be gone in a simulation, and why."""
    rows = tomllib.loads(EXPLAINED.read_text()).get("way", [])
    return {Way(row["place"], row["line"], row["way"]): row["why"] for row in rows}


def files_of(machine: str) -> list[Path]:
    """Of a machine."""
    found = [file for pattern in MACHINES[machine] for file in sorted(ROOT.glob(pattern))]
    others = () if machine == "consumer" else CONSUMER_FILES
    left_out = {ROOT / name for name in others}
    return [file for file in found if file.name != "__init__.py" and file not in left_out]


def play(machine: str, seed: int) -> None:
    """One seed of the world that is about a machine. Raises `ViolationError`."""
    if machine == "groups":
        from tests.simulation.world import simulate

        simulate(seed)
    elif machine == "consumer":
        from tests.simulation.consumer.world import simulate as simulate_consumer

        simulate_consumer(seed)
    elif machine == "transactions":
        from tests.simulation.transactions.world import simulate as simulate_transactions

        simulate_transactions(seed)
    elif machine == "cluster":
        from tests.simulation.nodes.cuts import cuts, simulate_cuts

        simulate_cuts(seed, cuts)
    else:
        from tests.simulation.daemon.world import simulate as simulate_daemon

        simulate_daemon(seed)


def main() -> None:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.reached", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="fresh seeds of each world (default 20)")
    parser.add_argument("--machine", choices=MACHINES, action="append", help="of this one only")
    given = parser.parse_args()
    known = explained()
    for machine in given.machine or MACHINES:
        with Reached(files_of(machine)) as reached:
            for _ in range(given.seeds):
                play(machine, secrets.randbits(SEED_BITS))
        ways = sum(1 for file in files_of(machine) for _ in branches(file))
        missing = [way for way in reached.missing() if way not in known]
        print(f"{machine}: {ways} ways, {len(missing)} never gone and not explained")
        for way in missing:
            print(f"  {way.place}: {way.line} {way.way}")
        if machine == "groups":
            for old, nexts in TRANSITIONS.items():
                for new in nexts:
                    print(f"  {old} -> {new}: {reached.transitions[str(old), str(new)]} times")
            for (request, code), count in sorted(reached.codes.items()):
                print(f"  {request} {code}: {count} times")


if __name__ == "__main__":
    main()
