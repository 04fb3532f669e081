"""A marked test gets a second try, which the run reports; any other failure fails the run at once."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.second_try import CACHED, TRY_AGAIN

ROOT = Path(__file__).parents[2]

COMMON = """
import pytest
from hypothesis import given, strategies
from pathlib import Path

LATE = pytest.mark.second_try("its timeout runs by the clock")
seen = Path("seen")

def worse(name):  # fails at the first try only
    seen.mkdir(exist_ok=True)
    first = not (seen / name).exists()
    (seen / name).touch()
    assert not first

def test_good():
    pass
"""

LATE = """
from test_common import *

@LATE
def test_clock():
    worse("clock")

@LATE
@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("odd", ["a@b"])
def test_grouped(odd):
    worse("grouped")

@LATE
def test_fine():
    pass

@LATE
def test_broken():
    assert (seen / "mended").exists()
"""

# One by one beside those above.
FOR_GOOD = {
    "not marked": "def test_it():\n    worse('it')",
    "a seed": "@LATE\ndef test_it(seed):\n    worse('it')",
    "draws": "@LATE\n@pytest.mark.draws\ndef test_it():\n    worse('it')",
    "given": "@LATE\n@given(strategies.none())\ndef test_it(_):\n    worse('it')",
    "left": "@pytest.fixture\ndef it():\n    yield\n    worse('it')\n\n@LATE\ndef test_it(it):\n    pass",
    "crash": "@LATE\ndef test_it():\n    import os\n    os._exit(1)",
    "unreadable": "raise KeyError",
}


def make_suite(folder: Path, more: str = "") -> None:
    """A small suite in `folder`."""
    markers = '["draws", "second_try(why)", "xdist_group"]'
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\nmarkers = {markers}\n")
    (folder / "test_common.py").write_text(COMMON)
    (folder / "test_late.py").write_text(LATE)
    (folder / "test_more.py").write_text(f"from test_common import *\n\n{more}\n")


def tried(
    folder: Path, *options: str, processes: int = 1, dist: str = "loadgroup"
) -> tuple[int, dict[str, list[str]], str]:
    """The exit code, the tests that ran on other processes by how they ended, and all that was said."""
    named = [
        "xdist.plugin",
        "xdist.looponfail",
        *(f"tests.support.{one}" for one in ("seeds", "groups", "second_try")),
    ]
    plugins = [word for one in named for word in ("-p", one)]
    command = [sys.executable, "-m", "pytest", "-v", "-n", str(processes), "--dist", dist, *plugins]
    env = {"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env |= {
        name: value for name, value in os.environ.items() if name.startswith("PYTHON") and name not in env
    }
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, env=env)
    ended: dict[str, set[str]] = {}
    for how, name in re.findall(r"\] (PASSED|FAILED|ERROR) \w+\.py::test_(\w+)", done.stdout):
        ended.setdefault(how.lower(), set()).add(name)
    return done.returncode, {how: sorted(names) for how, names in ended.items()}, done.stdout + done.stderr


def test_a_marked_test_is_tried_again_and_named(tmp_path: Path) -> None:
    make_suite(tmp_path)
    (tmp_path / "seen").mkdir()
    code, ended, output = tried(tmp_path)
    assert (code, ended["failed"]) == (TRY_AGAIN, ["broken", "clock", "grouped"]), output
    assert (
        "test_late.py::test_clock: its timeout runs by the clock" in output.partition("may be tried once")[2]
    )
    (tmp_path / "seen" / "mended").touch()
    code, ended, output = tried(tmp_path, "--second-try")
    assert (code, ended) == (0, {"passed": ["broken", "clock", "grouped"]}), output
    second_try = output.partition("at the second try")[2]
    assert "passed: test_late.py::test_clock: its timeout runs by the clock" in second_try
    assert "passed: test_late.py::test_grouped[a@b]: its timeout" in second_try


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    make_suite(tmp_path)
    assert tried(tmp_path)[0] == TRY_AGAIN
    code, ended, output = tried(tmp_path, "--second-try")
    assert (code, ended) == (1, {"failed": ["broken"], "passed": ["clock", "grouped"]}), output
    assert "did not pass: test_late.py::test_broken: " in output.partition("at the second try")[2]
    code, ended, output = tried(tmp_path, "--second-try")
    assert (code, ended) == (pytest.ExitCode.NO_TESTS_COLLECTED, {}), "there is no third one"


def test_a_run_without_a_cache_has_no_second_try(tmp_path: Path) -> None:
    make_suite(tmp_path)
    code, _, output = tried(tmp_path, "-k", "clock", "-p", "no:cacheprovider", processes=0)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "FAILED test_late.py::test_clock" in output


@pytest.mark.parametrize("why", FOR_GOOD)
def test_everything_else_fails_the_run_at_once(tmp_path: Path, why: str) -> None:
    make_suite(tmp_path, FOR_GOOD[why])
    # With groups, xdist waits for ever when its only process crashed.
    processes, dist = (1, "load") if why == "crash" else (0, "loadgroup")
    code, _, output = tried(tmp_path, "-k", "clock or test_it", processes=processes, dist=dist)
    assert code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), output
    assert "once more" not in output
    kept = tmp_path / ".pytest_cache/v" / CACHED
    assert not kept.exists() or kept.read_text() == "{}", "nothing is left to a second try"


# ---- the Makefile ----

PYTHON = """#!/bin/sh
case "$*" in
*pytest*--second-try*) echo "$*" >> second; exit {second} ;;
*pytest*) echo "$*" >> first; exit {first} ;;
esac
echo /nowhere
"""


@pytest.mark.parametrize("target", ["test", "interop"])
@pytest.mark.parametrize(
    ("first", "second", "passes", "again"),
    [
        (0, 1, True, False),
        (1, 0, False, False),
        (2, 0, False, False),
        (TRY_AGAIN, 0, True, True),
        (TRY_AGAIN, 1, False, True),
    ],
)
def test_make_tries_again_only_what_may_be(
    tmp_path: Path, target: str, first: int, second: int, passes: bool, again: bool
) -> None:
    python, ready = tmp_path / "python", tmp_path / "ready"
    python.write_text(PYTHON.format(first=first, second=second))
    python.chmod(0o755)
    ready.touch()
    command = ["make", "-f", str(ROOT / "Makefile"), target, f"PY={python}", f"READY={ready}"]
    for name in ("pyproject.toml", "constraints.txt", "tools/setup_venv.sh", "tools/build_native.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "protocol").mkdir()
    (tmp_path / "protocol/_native.c").touch()
    ready.touch()
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
    )
    assert (done.returncode == 0, (tmp_path / "second").exists()) == (passes, again), done
    if again:
        assert "-n 1" in (tmp_path / "second").read_text()


# ---- who has one ----

OTHERS = re.compile(r"aiokafka|kafka-python|librdkafka|Java|Spark|Kafka's")


def test_each_reason_names_whose_clock_it_is() -> None:
    """And no mark is on a test of ours alone."""
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if "mark.second_try(" not in text or path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.second_try":
                [reason] = node.args
                found[path.relative_to(ROOT), node.lineno] = ast.literal_eval(reason)
    assert found
    assert {place: why for place, why in found.items() if not OTHERS.search(why)} == {}
