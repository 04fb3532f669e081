"""A disk that can be made to fail under a daemon: see disk_faults.c."""

from __future__ import annotations

import os
from pathlib import Path

from bench.build import preload

SHIM = Path(__file__).with_name("disk_faults.c")


class Faults:
    """Of one daemon, which is started with `environ`. `path`: the file that it reads before each call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def environ(self) -> dict[str, str]:
        """Of the daemon. Raises `NoCompilerError`."""
        return {
            **os.environ,
            "LD_PRELOAD": str(preload(SHIM).resolve()),
            "RINGLEADER_FAULTS": str(self._path),
        }

    def fail(self, *lines: str) -> None:
        """From here on; without lines: no more."""
        fresh = self._path.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.replace(self._path)
