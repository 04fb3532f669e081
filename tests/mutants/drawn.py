"""`python -m tests.mutants.drawn FILE ... --judges TEST ...`: mutants that nobody chose.

Draws small changes to the code of the files, by a seed that it prints: a comparison, a connective, a number,
a call that is left out. Each is applied to a copy of the tree, and the judges run there. A survivor is a rule
that no test holds, or a change that makes no difference: read it, and write the test, or a rule beside this
module with its judge. A change that makes no difference goes into explained.toml, with the reason, and is not
drawn any more. Exit status: 0 all were caught, 1 some survived, 2 a judge fails without any.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.rules import EXPLAINED, ROOT, StaleRuleError
from tests.mutants.trees import broken, run_tests

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip
_CALLED = {"max": "min", "min": "max", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Drawn:
    """One change: lines and columns of a node (columns in bytes of UTF-8), and the text in its place."""

    file: Path
    place: str
    """The innermost function or class around it, by its qualified name; "" in none."""
    first: tuple[int, int]
    last: tuple[int, int]
    new: str

    def apply(self, tree: Path) -> Path:
        """Change the file in a copy of the project. Returns it."""
        lines = (ROOT / self.file).read_bytes().splitlines(keepends=True)
        before = b"".join(lines[: self.first[0] - 1]) + lines[self.first[0] - 1][: self.first[1]]
        after = lines[self.last[0] - 1][self.last[1] :] + b"".join(lines[self.last[0] :])
        target = tree / self.file
        target.write_bytes(before + self.new.encode() + after)
        return target

    @property
    def line(self) -> str:
        """The lines that it changes, as one."""
        lines = (ROOT / self.file).read_text().splitlines()[self.first[0] - 1 : self.last[0]]
        return " ".join(" ".join(lines).split())

    @property
    def key(self) -> tuple[str, str, str]:
        """As explained.toml names it, wherever its lines stand by now."""
        module = ".".join(self.file.with_suffix("").parts)
        return f"{module}:{self.place}", self.line, self.new

    def __str__(self) -> str:
        return f"{self.file}:{self.first[0]} in {self.place}: {self.line}  ->  {self.new}"


def changes(file: Path) -> Iterator[Drawn]:
    """All that can be drawn in a file of the project."""
    tree = ast.parse((ROOT / file).read_text())
    passed_over = {id(part) for node in ast.walk(tree) for part in _passed_over(node)}
    for node, place in _placed(tree, ""):
        if id(node) in passed_over or not isinstance(node, ast.expr | ast.stmt):
            continue
        for new in _variants(node):
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            yield Drawn(file, place, (node.lineno, node.col_offset), end, new)


def explained() -> dict[tuple[str, str, str], str]:
    """Changes that make no difference, and why. Raises `StaleRuleError` for two of the same."""
    found = dict[tuple[str, str, str], str]()
    for one in tomllib.loads(EXPLAINED.read_text()).get("change", []):
        change = one["place"], one["line"], one["new"]
        if change in found:
            raise StaleRuleError(f"{one['place']}: {one['line']} is explained twice")
        found[change] = one["why"]
    return found


def _placed(node: ast.AST, place: str) -> Iterator[tuple[ast.AST, str]]:
    """All below a node, and where it stands."""
    for child in ast.iter_child_nodes(node):
        yield child, place
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _placed(child, f"{place}.{child.name}".lstrip("."))
        else:
            yield from _placed(child, place)


def _passed_over(node: ast.AST) -> Iterator[ast.AST]:
    """Annotations, texts in which a value stands, assertions and errors are left as they are."""
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield from ast.walk(node.annotation)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
        yield from ast.walk(node.returns)
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise):
        yield from ast.walk(node)


def _variants(node: ast.expr | ast.stmt) -> Iterator[str]:
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and len(changed.ops) == 1:
        changed.ops = [_COMPARED[type(changed.ops[0])]()]
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.BinOp) and type(changed.op) in _COMPUTED:
        changed.op = _COMPUTED[type(changed.op)]()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield f"({ast.unparse(changed.operand)})"
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, bool):
        yield str(not changed.value)
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, int):
        yield str(changed.value + 1)
    elif isinstance(changed, ast.Call) and isinstance(changed.func, ast.Name) and changed.func.id in _CALLED:
        changed.func.id = _CALLED[changed.func.id]
        yield ast.unparse(changed)
    elif isinstance(changed, ast.IfExp):
        yield f"({ast.unparse(changed.body)})"
        yield f"({ast.unparse(changed.orelse)})"
    elif isinstance(changed, ast.AugAssign | ast.Expr) and _has_effect(changed):
        yield "pass"
    elif isinstance(changed, ast.Break):
        yield "continue"
    elif isinstance(changed, ast.Continue):
        yield "break"


def _has_effect(statement: ast.AugAssign | ast.Expr) -> bool:
    return isinstance(statement, ast.AugAssign) or isinstance(statement.value, ast.Call | ast.Await)


def survives(change: Drawn, judges: list[str]) -> bool:
    """Whether all judges pass with it. One that takes too long has noticed."""
    try:
        with broken(change) as tree:
            return run_tests(tree, judges).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> int:
    """Draw, and print the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.drawn", description=__doc__)
    parser.add_argument("files", nargs="+", help="Python files or folders of the project")
    parser.add_argument("--judges", nargs="+", required=True, help="tests that should notice")
    parser.add_argument("--count", type=int, default=50, help="how many are drawn (default 50)")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of an earlier draw")
    given = parser.parse_args()
    files = [Path(name) for name in given.files]
    files = [
        each for file in files for each in (sorted((ROOT / file).rglob("*.py")) if file.is_dir() else [file])
    ]
    known = explained()
    all_changes = [
        change
        for file in files
        for change in changes(file.resolve().relative_to(ROOT))
        if change.key not in known
    ]
    drawn = random.Random(given.seed).sample(all_changes, min(given.count, len(all_changes)))
    print(f"{len(drawn)} of {len(all_changes)} changes, --seed {given.seed}", flush=True)
    with broken(None) as tree:
        if (unbroken := run_tests(tree, given.judges)).returncode:
            print(f"{unbroken.stdout[-3000:]}\na judge fails without any change", file=sys.stderr)
            return 2
    count = 0
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        judged = pool.map(lambda change: survives(change, given.judges), drawn)
        for change, survived in zip(drawn, judged, strict=True):
            if survived:
                count += 1
                print(f"SURVIVED {change}", flush=True)
    print(f"{len(drawn) - count} of {len(drawn)} were caught")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
