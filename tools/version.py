"""The version of what is built, for hatchling: the tag of a release; else that of the next one.

No tag yet, or no repository (an unpacked archive, a container's copy): NEXT. An sdist has its version within.
`RINGLEADER_VERSION` in the environment wins: for builds that have no repository, as the image's.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

NEXT = "0.1.0"
"""The first release. From its tag on the tags say it."""
DESCRIBED = re.compile(r"v(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?-(\d+)-g[0-9a-f]+")


def version() -> str:
    """Of this tree."""
    return os.environ.get("RINGLEADER_VERSION") or from_tags(_described(Path(__file__).resolve().parents[1]))


def from_tags(described: str) -> str:
    """From what `git describe --tags --long` prints: v1.2.3-4-gabc gives 1.2.4.dev4; nothing gives NEXT."""
    found = DESCRIBED.fullmatch(described)
    if found is None:
        return NEXT
    major, minor, patch, pre, distance = found.groups()
    if distance == "0":
        return f"{major}.{minor}.{patch}{pre or ''}"
    return f"{major}.{minor}.{patch if pre else int(patch) + 1}.dev{distance}"


def _described(root: Path) -> str:
    if not (root / ".git").exists():  # a copy inside of another project's repository has none of its own
        return ""
    command = ["git", "-C", str(root), "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
