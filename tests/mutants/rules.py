"""Rules that break one promise each: which lines of which function become which others.

A rule is a table of a TOML file beside this module:

    [late_log_ends_the_shard]
    breaks = "A shard whose log is merely late is lost."
    judges = ["tests/coordinator/runtime/test_moves.py"]
    place = "MovingShards._late_append"
    old = "return True"
    new = "return False"

`place` names a function, method or class by its qualified name, wherever its module stands; where several
have that name, "coordinator.runtime.moving:MovingShards.f" tells them apart. "coordinator.runtime.moving" is
a whole module, and "protocol/_native.c" a file. `old` are whole lines that stand once in that place, at any
depth; `new` takes their place. `judges` are tests; without them the simulation of the group machine judges.
"""

from __future__ import annotations

import ast
import functools
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXPLAINED = HERE / "explained.toml"
"""No rules: see `drawn`."""
ROOMS = ("clients", "coordinator", "insight", "protocol", "report", "ringleader", "spark_bridge")
"""The folders of code that a rule may break."""

_Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class StaleRuleError(Exception):
    """A rule does not fit the code any more."""


@dataclass(frozen=True)
class Rule:
    """One change that breaks a promise."""

    name: str
    breaks: str
    place: str
    old: str
    new: str
    judges: list[str] = field(default_factory=list)

    def apply(self, tree: Path) -> Path:
        """Change the file in a copy of the project. Returns it. Raises `StaleRuleError`."""
        file, first, last = _find(self)
        target = tree / file
        lines = target.read_text().splitlines(keepends=True)
        changed = self.change(tree)[1]
        target.write_text("".join(lines[: first - 1]) + changed + "".join(lines[last:]))
        return target

    def change(self, tree: Path = ROOT) -> tuple[str, str]:
        """The place that it breaks, before and after. Raises `StaleRuleError`."""
        file, first, last = _find(self)
        part = "".join((tree / file).read_text().splitlines(keepends=True)[first - 1 : last])
        return part, _replaced(self, part)

    def file(self) -> Path:
        """The file that it breaks. Raises `StaleRuleError`."""
        return ROOT / _find(self)[0]


def read(directory: Path = HERE) -> dict[str, Rule]:
    """All rules by their names. Raises `StaleRuleError` for two of one name."""
    rules = dict[str, Rule]()
    for file in sorted(set(directory.glob("*.toml")) - {EXPLAINED}):
        for name, table in tomllib.loads(file.read_text()).items():
            if name in rules:
                raise StaleRuleError(f"{name}: there are two rules of this name")
            rules[name] = Rule(name, **table)
    return rules


def _find(rule: Rule) -> tuple[Path, int, int]:
    if "/" in rule.place:
        file = Path(rule.place)
        if not (ROOT / file).is_file():
            raise StaleRuleError(f"{rule.name}: there is no {file} any more")
        return file, 1, len((ROOT / file).read_text().splitlines())
    found = _places().get(rule.place, [])
    if len(found) != 1:
        where = ", ".join(str(file) for file, _, _ in found) or "nowhere any more"
        raise StaleRuleError(f"{rule.name}: {rule.place} is found {where}")
    return found[0]


@functools.cache
def _places() -> dict[str, list[tuple[Path, int, int]]]:
    """(file, first line, last line) of all that has a qualified name, with and without its module."""
    places = defaultdict[str, list[tuple[Path, int, int]]](list)
    for folder in ROOMS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = path.relative_to(ROOT)
            if any(part.is_symlink() for part in (path, *path.parents) if part != ROOT):
                continue
            module = ".".join(file.with_suffix("").parts)
            text = path.read_text()
            places[module].append((file, 1, len(text.splitlines())))
            for name, node in _named(ast.parse(text), ""):
                decorators = [decorator.lineno for decorator in node.decorator_list]
                span = (file, min([node.lineno, *decorators]), node.end_lineno or node.lineno)
                places[name].append(span)
                places[f"{module}:{name}"].append(span)
    return places


def _named(tree: ast.AST, prefix: str) -> Iterator[tuple[str, _Named]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}"
            yield name, node
            yield from _named(node, f"{name}.")
        else:
            yield from _named(node, prefix)


def _replaced(rule: Rule, part: str) -> str:
    """A part of a file with the rule's new lines for its old ones."""
    lines = part.splitlines(keepends=True)
    old = textwrap.dedent(rule.old).strip("\n").splitlines()
    found = [at for at in range(len(lines) - len(old) + 1) if _same(lines[at : at + len(old)], old)]
    if len(found) != 1:
        how = "twice or more" if found else "no more"
        raise StaleRuleError(f"{rule.name}: {rule.place} has these lines {how}:\n{rule.old}")
    (at,) = found
    first = lines[at]
    indent = first[: len(first) - len(first.lstrip())]
    new = textwrap.indent(textwrap.dedent(rule.new).strip("\n"), indent)
    return "".join(lines[:at]) + (new and new + "\n") + "".join(lines[at + len(old) :])


def _same(lines: list[str], old: list[str]) -> bool:
    if old and lines[0].strip() != old[0].strip():
        return False  # what follows takes far longer
    return textwrap.dedent("".join(lines)).splitlines() == old
