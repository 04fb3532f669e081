"""Installs, on first need, what a machine may lack and PyPI has: a Java runtime, a C compiler."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def install(package: str) -> bool:
    """Install the pinned version into the running environment; whether that worked."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--constraint", str(CONSTRAINTS), package]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def ask_fresh(code: str) -> str | None:
    """The output of `code` in a new process of this Python, or None when it fails.

    This process would not see a package that was installed after it began to import.
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def write_script(path: Path, text: str) -> Path:
    """Write an executable file in one step: another process may be starting it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(draft.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return draft.replace(path)
