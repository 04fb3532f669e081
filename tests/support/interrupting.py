"""Interrupts the calls of a blocking client, wherever Python runs signal handlers in it."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
    if frame is not None and frame.f_code.co_name == "gc_callback":
        return False  # of hypothesis: what a callback of the garbage collector raises goes nowhere
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False
