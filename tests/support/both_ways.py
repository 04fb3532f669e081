"""Records found by Python and by compiled code: a plugin that runs a module's tests in both ways.

`pytestmark = pytest.mark.usefixtures("both_ways")`. The compiled code is built for the run from this tree,
whatever is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ringleader.protocol import native
from tests.support.library import BUILT, load
from tools.build_native import SOURCE, TARGET, NotBuiltError, compile_native

ROOT = Path(__file__).resolve().parents[2]


def build(directory: Path, *flags: str) -> Path:
    """The library, made from this tree, a warning being an error. Raises NotBuiltError."""
    made = directory / TARGET.name
    compile_native(ROOT / SOURCE, made, "-Werror", *flags)
    return made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The compiled module."""
    if BUILT in os.environ:
        return load(Path(os.environ[BUILT]))
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
