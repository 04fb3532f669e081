"""Tests that draw try a share of what there is in `make test`, another one in each run, and all of it in
`make nightly`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

WHOLE = os.environ.get("RINGLEADER_TESTS_WHOLE") == "1"
"""Whether this run is a nightly one."""


def share(part: T, whole: T) -> T:
    """The part in `make test`, the whole in `make nightly`."""
    return whole if WHOLE else part
