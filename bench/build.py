"""Compiles the C programs, and those in Go, on first use, and again when their source changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

LOAD_SOURCES = Path(__file__).parent / "load"
KFAKE_SOURCES = Path(__file__).parent / "kfake"
OUT = Path(__file__).parent / "out"
_WARNINGS = ["-O2", "-Wall", "-Wextra"]
_GO_FLAGS = ["-trimpath", "-buildvcs=false", "-mod=readonly"]
_GO_TIMEOUT_S = 900


class NoCompilerError(Exception):
    """There is no C compiler on this machine; the text says what is needed and why."""


class NoGoError(Exception):
    """A program in Go cannot be built on this machine; the text says why and what to install."""


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


def kfake_program() -> Path:
    """The program of ``bench/kfake``. Raises `NoGoError`."""
    return go_program(KFAKE_SOURCES)


def go_program(directory: Path) -> Path:
    """The program whose main.go, go.mod and go.sum are in `directory`, built by Go into `ringleader` in the
    user's cache directory, and named after `directory`.

    Its modules come through the module proxy, checked against go.sum. Raises `NoGoError`.
    """
    go = shutil.which("go")
    if go is None:
        raise NoGoError("Go is needed to build it: install Go 1.26 or newer, so that `go` is on the PATH")
    sources = sorted(path for path in directory.iterdir() if path.name in ("main.go", "go.mod", "go.sum"))
    digest = hashlib.sha256()
    for text in (path.read_bytes() for path in sources):
        digest.update(len(text).to_bytes(8, "big") + text)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringleader"
    target = cache / f"{directory.name}-{digest.hexdigest()[:16]}" / directory.name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    command = [go, "build", *_GO_FLAGS, "-o", str(partial), "."]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, timeout=_GO_TIMEOUT_S
    )
    if done.returncode != 0:
        raise NoGoError(f"go build failed:\n{done.stderr.strip()}")
    partial.replace(target)
    return target
