"""The compiled code, built with the address and the undefined behaviour sanitizer, under its own tests and
under batches that are drawn. Code that touches memory that is not its own, or does something that C does not
define, ends the process with a report."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.target import HERE
from tests.support.library import BUILT
from tools.build_native import SOURCE, NotBuiltError, compile_native, compiler

NATIVE = "native"
ROOT = HERE.parents[1]
FLAGS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
TESTS = (
    "tests/protocol/test_native.py",
    "tests/protocol/test_native_writer.py",
    "tests/protocol/test_records_columns.py",
    "tests/protocol/test_records_in_place.py",
)
RUNTIMES = ("libasan.so", f"libclang_rt.asan-{platform.machine()}.so", "libclang_rt.asan.so")
"""As gcc and clang call it."""
SANITIZERS = {
    # Python itself leaves memory behind, and asks for more than there is to learn that.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=0:exitcode=77",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    # Else small objects come out of Python's own pools, and nobody sees where they end.
    "PYTHONMALLOC": "malloc",
}


class Checked(NamedTuple):
    """The result of a run under the sanitizers. `passed`: nothing was found, or there is nothing to find it
    with."""

    passed: bool
    text: str


def run_native(seconds: int) -> Checked:
    """Build, test, and draw for so long."""
    library = HERE / "out" / NATIVE / "sanitized.abi3.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    try:
        build(library)
        environment = sanitizing(library)
    except NotBuiltError as error:
        return Checked(True, f"left out: {error}")
    text = ""
    for command in (
        [
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(library.parent / "tests"),
            *TESTS,
        ],
        ["-m", "tests.fuzz.child", "batches", str(seconds), "--blind"],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        text += done.stdout
        if done.returncode:
            return Checked(False, text)
    return Checked(True, text)


def build(library: Path) -> None:
    """Raises NotBuiltError, where the compiler has no sanitizers, too."""
    compile_native(ROOT / SOURCE, library, *FLAGS)


def sanitizing(library: Path) -> dict[str, str]:
    """The environment of a Python that loads the library: the sanitizers' have to come before all others.
    Raises NotBuiltError."""
    return {**os.environ, **SANITIZERS, "LD_PRELOAD": str(_runtime()), BUILT: str(library)}


def _runtime() -> Path:
    """The library of the address sanitizer. Raises NotBuiltError."""
    command = compiler()
    for name in RUNTIMES:
        done = subprocess.run(
            [*command, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        found = Path(done.stdout.strip())
        if not done.returncode and found.is_absolute():
            return found
    raise NotBuiltError(f"{command[0]} has no library of its address sanitizer")
