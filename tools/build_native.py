"""Builds the compiled way to find records, when Ringleader is installed where there is a C compiler.

Hatch calls it for every wheel. Without a compiler, or with `RINGLEADER_NATIVE=0`, the wheel has Python only;
with `RINGLEADER_NATIVE=1` it has the compiled code or is not built. An editable install has it in the tree.
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
FLAGS = ("-O2", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-parameter")


class NotBuiltError(Exception):
    """There is no compiled code; the text says why."""


class NativeBuildHook(BuildHookInterface[Any]):
    """What hatch finds and calls."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel is built. `version`: "standard" or "editable"."""
        root = Path(self.root)
        choice = os.environ.get("RINGLEADER_NATIVE")
        self._directory = tempfile.TemporaryDirectory(prefix="ringleader-")
        made: Path | None = Path(self._directory.name) / TARGET.name
        try:
            if choice == "0":
                raise NotBuiltError("RINGLEADER_NATIVE=0")
            compile_native(root / SOURCE, Path(self._directory.name) / TARGET.name)
        except NotBuiltError as error:
            if choice == "1":
                raise
            self.app.display_warning(
                f"ringleader: records will be found by Python, not by compiled code: {error}"
            )
            made = None
        if version == "editable":
            (root / TARGET).unlink(missing_ok=True)
            if made is not None:
                shutil.move(made, root / TARGET)
        elif made is not None:
            build_data["force_include"][str(made)] = str(TARGET)
            build_data["pure_python"] = False
            build_data["tag"] = tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After it was built."""
        self._directory.cleanup()


def tag() -> str:
    """Of a wheel with the compiled code: any CPython from 3.11 on, this platform."""
    platform = sysconfig.get_platform()
    return "cp311-abi3-" + platform.replace("-", "_").replace(".", "_")


def compile_native(source: Path, target: Path, *more: str) -> None:
    """Makes the library; `more` goes to the compiler. Raises NotBuiltError."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotBuiltError("this Python has no stable ABI for it")
    # How this Python links extension modules on this platform, but for its own compiler's name.
    flags = shlex.split(sysconfig.get_config_var("LDSHARED") or "cc -shared")[1:]
    include = sysconfig.get_paths()["include"]
    command = [*compiler(), *flags, *FLAGS, *more, f"-I{include}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuiltError(f"{command[0]} failed: {(done.stderr.strip().splitlines() or ['?'])[0]}")


def compiler() -> list[str]:
    """``$CC``, else the one that Python was built with, else ``cc``. Raises NotBuiltError."""
    for name in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc"):
        words = shlex.split(name or "")
        if words and shutil.which(words[0]) is not None:
            return words
    raise NotBuiltError("there is no C compiler (set CC to one)")
