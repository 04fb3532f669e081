"""Builds the compiled way to find records, when Ringleader is installed where there is a C compiler.

Hatch calls it for every wheel. Without a compiler, or with `RINGLEADER_NATIVE=0`, the wheel has Python only;
with `RINGLEADER_NATIVE=1` it has the compiled code or is not built. An editable install has it in the tree.

One wheel serves every CPython from 3.11 on (the stable ABI). A free-threaded CPython has no stable ABI: there
the wheel is of that version alone. The same sources give the same bytes, wherever they lie.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("protocol", "_native.c")
TARGET = Path("ringleader", "_native.abi3.so")
# No debugging information: it would hold the path of the tree.
FLAGS = ("-O2", "-g0", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-parameter")


class NotBuiltError(Exception):
    """There is no compiled code; the text says why."""


class NativeBuildHook(BuildHookInterface[Any]):
    """The hook that hatch finds and calls."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel is built. `version`: "standard" or "editable"."""
        root = Path(self.root)
        choice = os.environ.get("RINGLEADER_NATIVE")
        self._directory = tempfile.TemporaryDirectory(prefix="ringleader-")
        place = target()
        made: Path | None = Path(self._directory.name) / place.name
        try:
            if choice == "0":
                raise NotBuiltError("RINGLEADER_NATIVE=0")
            compile_native(root / SOURCE, Path(self._directory.name) / place.name)
        except NotBuiltError as error:
            if choice == "1":
                raise
            self.app.display_warning(
                f"ringleader: records will be found by Python, not by compiled code: {error}"
            )
            made = None
        if version == "editable":
            (root / place).unlink(missing_ok=True)
            if made is not None:
                shutil.move(made, root / place)
        elif made is not None:
            build_data["force_include"][str(made)] = str(place)
            build_data["pure_python"] = False
            build_data["tag"] = tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After it was built."""
        self._directory.cleanup()


def free_threaded() -> bool:
    """Whether this Python has no global lock."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def target() -> Path:
    """Where the library is in the package: under a name that any CPython finds, or this free-threaded one."""
    if free_threaded():
        return TARGET.with_name("_native" + sysconfig.get_config_var("EXT_SUFFIX"))
    return TARGET


def tag() -> str:
    """Of a wheel with the compiled code: any CPython from 3.11 on, or this free-threaded one."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    version = "cp{}{}".format(*sys.version_info)
    return f"{version}-{version}t-{platform}" if free_threaded() else f"cp311-abi3-{platform}"


def compile_native(source: Path, target: Path, *more: str) -> None:
    """Makes the library; `more` goes to the compiler. Raises NotBuiltError."""
    if sys.implementation.name != "cpython" or (free_threaded() and sys.version_info < (3, 13)):
        raise NotBuiltError("this Python has no ABI for it")
    flags = link_flags(sysconfig.get_config_var("LDSHARED") or "cc -shared", os.environ.get("ARCHFLAGS", ""))
    include = sysconfig.get_paths()["include"]
    command = [*compiler(), *flags, *FLAGS, *more, f"-I{include}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuiltError(f"{command[0]} failed: {(done.stderr.strip().splitlines() or ['?'])[0]}")


def link_flags(shared: str, architectures: str) -> list[str]:
    """How this Python links extension modules on this platform, but for its own compiler's name.
    `architectures`: ``ARCHFLAGS``, which on macOS say for which processors, in place of Python's own."""
    words, wanted = shlex.split(shared)[1:], shlex.split(architectures)
    if wanted:
        pairs = zip(words, ["", *words], strict=False)
        words = [word for word, before in pairs if "-arch" not in (word, before)]
    return [*words, *wanted]


def compiler() -> list[str]:
    """``$CC``, else the one that Python was built with, else ``cc``. Raises NotBuiltError."""
    for name in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc"):
        words = shlex.split(name or "")
        if words and shutil.which(words[0]) is not None:
            return words
    raise NotBuiltError("there is no C compiler (set CC to one)")
