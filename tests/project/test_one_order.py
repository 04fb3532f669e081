"""Each process collects the tests in the same order: xdist refuses a suite that they see differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def unordered(node: ast.expr) -> bool:
    """Whether it is a set as far as it says so itself: its order is another one in each process."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, op=ast.Sub() | ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return any(unordered(one) or _is_keys(one) for one in (left, right))
        case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate"), args=[first, *_]):
            return unordered(first)
        case ast.ListComp(generators=[first, *_]) | ast.GeneratorExp(generators=[first, *_]):
            return unordered(first.iter)
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def parameters(text: str) -> Iterator[ast.expr]:
    """The parameters of the tests."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "parametrize" and len(node.args) > 1:
                yield node.args[1]
            elif node.func.attr == "fixture":
                yield from (keyword.value for keyword in node.keywords if keyword.arg == "params")


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ("sorted({1, 2})", True),
        ("[name for name in NAMES if name != 'a']", True),
        ("NAMES.keys() - {'a'}", False),
        ("[name for name in set(NAMES)]", False),
        ("list(NAMES.keys() & OTHERS.keys())", False),
        ("{1, 2}", False),
    ],
)
def test_parameters_without_an_order_are_found(values: str, order: bool) -> None:
    found = list(parameters(f"@pytest.mark.parametrize('one', {values})\ndef test(one): pass"))
    assert [unordered(one) for one in found] == [not order]


def test_nothing_is_parametrized_with_a_set() -> None:
    wrong = [
        f"{path.relative_to(TESTS)}:{one.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for one in parameters(path.read_text())
        if unordered(one)
    ]
    assert wrong == []
