"""The page over the demo's own groups while it runs, and what is left of it: why they rebalanced."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from demo.plan import ROOT, Places
from demo.processes import Cast

WATCHER = "watcher"
REPORT_TIMEOUT_S = 60.0


def history(places: Places) -> Path:
    """The history that the watcher writes."""
    return places.out / "insight.sqlite"


def start(cast: Cast, places: Places, bootstrap: str) -> str:
    """Watch; where the page will be."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    cast.start(
        WATCHER, "ringleader", "watch", "--bootstrap-server", bootstrap, "--utc",
        "--history", str(history(places)), "--page", address,
    )  # fmt: skip
    return f"http://{address}/"


def leave_report(cast: Cast, places: Places, bootstrap: str, groups: Sequence[str]) -> Path:
    """End the watcher, and write down what it saw, with what came since."""
    cast.stop(WATCHER)
    file = places.out / "rebalances.txt"
    outputs = []
    for group in groups:
        for command in ("history", "cost"):
            done = subprocess.run(
                [
                    sys.executable, "-m", "ringleader", command, group, "--utc",
                    "--bootstrap-server", bootstrap, "--history", str(history(places)),
                ],
                capture_output=True, text=True, check=False, timeout=REPORT_TIMEOUT_S, cwd=ROOT,
            )  # fmt: skip
            outputs.append(done.stdout or done.stderr)
    file.write_text("\n".join(outputs))
    return file
