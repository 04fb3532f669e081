"""Fuzz targets, and the bounds that hold for every input of each.

Nothing here imports the product: the process that fuzzes has to import it after the fuzzer is ready to
watch it.
"""

from __future__ import annotations

import atexit
import importlib
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = (
    "frames",
    "batches",
    "embedded",
    "groups",
    "transactions",
    "topic_log",
    "documents",
    "configuration",
    "http",
    "sasl",
    "answers",
)
"""Each is a module of `tests.fuzz.targets` with a `TARGET`."""

MAX_BYTES = 16_384
"""Of an input."""
CPU_S = 3.0
"""No input may take more CPU time, on a machine that is slow because the code is watched line by line."""
GROWTH_BYTES = 256 * 1024 * 1024
"""By so much one input may raise the most memory that the process ever had. Compressed batches may inflate to
16 MiB whatever their size, and a decompressor may hold a small multiple of it."""


class BrokenPromiseError(AssertionError):
    """The code did something with an input that its documentation excludes."""


@dataclass(frozen=True)
class Target:
    """One thing to be fuzzed."""

    name: str
    oracle: str
    """The property that holds for every input, in a sentence."""
    check: Callable[[bytes], None]
    """Raises whatever the product raises and may not, or `BrokenPromiseError`."""
    seeds: Callable[[], Iterable[bytes]]
    """Inputs that the project's own encoders make."""
    mutate: Callable[[bytes, Random], bytes]
    """Another input like this one, by its structure."""
    plant: Callable[[Any], None]
    """Breaks the product through a `pytest.MonkeyPatch`: the check has to notice."""
    close: Callable[[], None] = lambda: None
    """Gives back what the check holds from input to input."""


def load(name: str) -> Target:
    """Import a target, and with it the part of the product that it is about."""
    found: Target = importlib.import_module(f"tests.fuzz.targets.{name}").TARGET
    return found


def scratch() -> Path:
    """A directory for as long as this process lives."""
    made = Path(tempfile.mkdtemp(prefix="ringleader-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def promise(holds: object, text: str) -> None:
    """Raises `BrokenPromiseError` if it does not hold."""
    if not holds:
        raise BrokenPromiseError(text)


def judge(target: Target, data: bytes) -> None:
    """One input, with the bounds on time and memory. Raises what is a find."""
    began_s, peak = time.thread_time(), _peak_bytes()
    target.check(data)
    took_s, grown = time.thread_time() - began_s, _peak_bytes() - peak
    promise(took_s < CPU_S, f"{len(data)} bytes took {took_s:.1f} s of CPU time")
    promise(grown < GROWTH_BYTES, f"{len(data)} bytes took {grown:,} bytes of memory")


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
