"""Prints the C compiler to use, and provides one when the machine has none.

Order: ``$CC``, ``cc`` on the path, then the compiler of the ``ziglang`` wheel, which is installed into the
running environment on first need. Only the power-cut test and the benchmarks compile small C programs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.wheels import install, write_script

ZIGLANG = "ziglang"

SHIM = """\
#!/bin/sh
# The C compiler of the ziglang wheel, its cache beside it.
ZIG_GLOBAL_CACHE_DIR="{cache}" ZIG_LOCAL_CACHE_DIR="{cache}" exec "{python}" -m ziglang cc "$@"
"""


class NoCompilerError(Exception):
    """There is no C compiler; the text says what to do."""


def c_compiler(environ: Mapping[str, str] | None = None) -> Path:
    """The compiler to call as ``cc``. Raises NoCompilerError."""
    environ = os.environ if environ is None else environ
    found = shutil.which(environ.get("CC") or "cc", path=environ.get("PATH", ""))
    if found is not None:
        return Path(found)
    if importlib.util.find_spec(ZIGLANG) is None:
        print("No C compiler here: installing the one of the ziglang wheel (about 100 MB)", file=sys.stderr)
        if not install(ZIGLANG):
            raise NoCompilerError(f"There is no C compiler (cc) and {ZIGLANG} did not install: set CC to one")
    home = Path(sys.prefix) / "c-compiler"
    return write_script(home / "cc", SHIM.format(python=sys.executable, cache=home / "cache"))


def main() -> int:
    """Print it; exit code 1 and one sentence when there is none to be had."""
    try:
        print(c_compiler())
    except NoCompilerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
