"""The compiled way to find records as a file, whatever is installed. Imports nothing of the product."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

BUILT = "RINGLEADER_BUILT"
"""In the environment: a library that was built already, to be loaded in place of one of this run's own."""


def load(library: Path) -> ModuleType:
    """A library as a module, which is nobody else's."""
    spec = importlib.util.spec_from_file_location("ringleader._native", library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
