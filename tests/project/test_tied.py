"""The processes that a run starts end with it, however it ends: Ctrl-C, SIGTERM, or SIGKILL."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]

STARTS = """
import subprocess, sys, threading
from tests.support.tied import tied

def start():
    # As Spark's launcher: a shell with a child of its own, in a session of its own.
    launcher = ["sh", "-c", "sleep 600 & echo; wait"]
    launched = tied(subprocess.Popen(launcher, start_new_session=True, stdout=subprocess.PIPE))
    launched.stdout.readline()
    started.append(launched)
    started.append(tied(subprocess.Popen(["sleep", "600"])))

started = []
thread = threading.Thread(target=start)  # a thread that ends before
thread.start()
thread.join()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_tied_processes_end_with_the_run(how: signal.Signals | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as run:
        assert run.stdout is not None
        assert run.stdin is not None
        assert run.stdout.readline() == "ready\n"
        started = psutil.Process(run.pid).children(recursive=True)
        assert len(started) == 4, "the launcher, its child, another one, the watcher"
        if how is None:
            run.stdin.close()
        else:
            run.send_signal(how)
        run.wait(20)
        _, alive = psutil.wait_procs(started, 20)
        assert alive == []
