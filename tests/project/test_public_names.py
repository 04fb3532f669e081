"""The names that can be imported from `ringleader`: the same for Python and for a type checker."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ringleader


def names_for_type_checkers() -> dict[str, str]:
    tree = ast.parse(Path(ringleader.__file__).read_text())
    (block,) = [
        one
        for one in tree.body
        if isinstance(one, ast.If) and isinstance(one.test, ast.Name) and one.test.id == "TYPE_CHECKING"
    ]
    imports = [one for one in block.body if isinstance(one, ast.ImportFrom)]
    return {alias.name: one.module or "" for one in imports for alias in one.names}


def test_every_public_name_loads_and_is_known_to_type_checkers() -> None:
    homes = names_for_type_checkers()
    assert sorted(homes) == ringleader.__all__
    for name, home in homes.items():
        found = getattr(ringleader, name)
        assert getattr(found, "__module__", home).startswith("ringleader.clients") or home.endswith(".model")
    assert set(ringleader.__all__) <= set(dir(ringleader))
    with pytest.raises(AttributeError, match="Nobody"):
        _ = ringleader.Nobody  # type: ignore[attr-defined]
