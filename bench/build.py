"""Compiles the C programs on first use, and again when their source changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

LOAD_SOURCES = Path(__file__).parent / "load"
OUT = Path(__file__).parent / "out"
_WARNINGS = ["-O2", "-Wall", "-Wextra"]


class NoCompilerError(Exception):
    """There is no C compiler on this machine; the text says what is needed and why."""


def compiler() -> str:
    """The path of the C compiler: ``$CC``, else ``cc``. Raises `NoCompilerError`."""
    name = os.environ.get("CC", "cc")
    found = shutil.which(name)
    if found is None:
        raise NoCompilerError(
            f"no C compiler: {name!r} is not on the PATH. The load generator, the yardstick server and "
            "the sync probes are small C programs (Debian and Ubuntu: apt install gcc libc6-dev; or set CC)."
        )
    return found


def _compile(source: Path, target: Path, flags: list[str], depends: list[Path]) -> Path:
    newest = max(path.stat().st_mtime for path in [source, *depends])
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")  # several test processes may build at the same time
    command = [compiler(), *_WARNINGS, *flags, "-o", str(partial), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    partial.replace(target)
    return target


def program(name: str) -> Path:
    """The program of ``bench/load/<name>.c``, compiled.

    Raises `NoCompilerError`, or `RuntimeError` with the compiler's messages.
    """
    return _compile(LOAD_SOURCES / f"{name}.c", OUT / "bin" / name, [], [LOAD_SOURCES / "common.h"])


def preload(source: Path) -> Path:
    """A library for LD_PRELOAD made from one C file. Raises as `program` does."""
    return _compile(source, OUT / "bin" / f"{source.stem}.so", ["-shared", "-fPIC"], [])
