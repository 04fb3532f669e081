"""Records found by Python and by compiled code: a plugin that runs a module's tests in both ways.

`pytestmark = pytest.mark.usefixtures("both_ways")`. The compiled code is built for the run from this tree,
whatever is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ringleader.protocol import native
from tools.build_native import SOURCE, TARGET, NotBuiltError, compile_native

ROOT = Path(__file__).resolve().parents[2]


def build(directory: Path, *flags: str) -> Path:
    """The library, made from this tree, a warning being an error. Raises NotBuiltError."""
    made = directory / TARGET.name
    compile_native(ROOT / SOURCE, made, "-Werror", *flags)
    return made


def load(library: Path) -> ModuleType:
    """A library as a module, which is nobody else's."""
    spec = importlib.util.spec_from_file_location("ringleader._native", library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The compiled module."""
    try:
        return load(build(tmp_path_factory.mktemp("native")))
    except NotBuiltError as error:
        if "there is no" in str(error):
            pytest.skip(f"{error}: `make test` brings one")
        raise


@pytest.fixture(scope="module", params=["python", "compiled"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """The way that records are found."""
    before = native.compiled
    native.compiled = request.getfixturevalue("compiled") if request.param == "compiled" else None
    yield
    native.compiled = before
