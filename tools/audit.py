"""Asks whether holes are known in the packages of ``constraints.txt``: ``make audit``.

The database of advisories is asked by pip-audit, which lives in an environment of its own. A package that
could not be looked up counts as a failure: that nothing is known of it does not mean that it has no hole.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PINNED = ROOT / "constraints.txt"
HOME = Path(sys.prefix) / "audit"
PIP_AUDIT = "pip-audit==2.10.1"
TIMEOUT_S = 600
HOLES, NOT_KNOWN = 1, 2
"""Exit codes besides 0."""


class AuditError(Exception):
    """Nothing came out of it; one sentence."""


def main() -> int:
    """The exit code."""
    try:
        holes = verdict(ask())
    except AuditError as error:
        print(f"audit: {error}", file=sys.stderr)
        return NOT_KNOWN
    print("\n".join(holes) or "No hole is known in any package of constraints.txt.")
    return HOLES if holes else 0


def ask() -> str:
    """The output of pip-audit, as JSON. Raises `AuditError`."""
    program = HOME / "bin" / "pip-audit"
    if not program.exists():
        venv.create(HOME, with_pip=True)
        _run([str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", PIP_AUDIT])
    words = ("--no-deps", "--disable-pip", "--requirement", str(PINNED))
    return _run([str(program), *words, "--progress-spinner", "off", "--format", "json"], fine=(0, HOLES))


def _run(command: list[str], fine: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    # pip-audit ends with the same code when it could not ask.
    if done.returncode not in fine or (len(fine) > 1 and not done.stdout):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise AuditError(f"{Path(command[0]).name} failed: {last}")
    return done.stdout


def verdict(printed: str) -> list[str]:
    """One line for each known hole. Raises `AuditError` where a package could not be looked up."""
    try:
        packages: list[dict[str, Any]] = json.loads(printed)["dependencies"]
    except (ValueError, KeyError, TypeError):
        raise AuditError("pip-audit printed something else than its report") from None
    unknown = [one["name"] for one in packages if "skip_reason" in one]
    if unknown or not packages:
        raise AuditError(
            f"the database of advisories did not answer about {len(unknown)} of {len(packages)} packages, so "
            f"nothing is known; run it where that can be reached, or take constraints.txt there: "
            f"pip-audit --no-deps --disable-pip -r constraints.txt"
        )
    return [
        f"{one['name']} {one['version']}: {hole['id']}, fixed in {', '.join(hole['fix_versions']) or 'none'}"
        for one in packages
        for hole in one["vulns"]
    ]


if __name__ == "__main__":
    sys.exit(main())
