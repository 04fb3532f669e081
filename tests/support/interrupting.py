"""Interrupts the calls of a blocking client, wherever Python runs signal handlers in it."""

from __future__ import annotations

import _weakrefset
import random
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CALLED_BY_PYTHON = (_weakrefset.__file__, weakref.__file__)


class InterruptedByTestError(Exception):
    """The exception that a signal handler raises."""


@contextmanager
def interrupts(chance: random.Random, rate: float, file: str) -> Iterator[None]:
    """Raise where Python runs signal handlers in this thread: when a function begins, and when one that is
    written in C has ended. Only inside of calls of the code in `file` (the end of its path)."""

    def tell(frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_return") and chance.random() < rate and _inside(frame, file):
            raise InterruptedByTestError

    sys.setprofile(tell)
    try:
        yield
    finally:
        sys.setprofile(None)


def _inside(frame: FrameType | None, file: str) -> bool:
    while frame is not None:
        # Callbacks of the garbage collector (as hypothesis') and of weak references cannot raise to anybody.
        if frame.f_code.co_name == "gc_callback" or frame.f_code.co_filename in CALLED_BY_PYTHON:
            return False
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False
