"""The packages that install: an sdist, a wheel from that sdist, and imports in an environment that has only
the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("protocol", "coordinator", "clients", "spark_bridge", "report", "insight")
IMPORTS = """
import importlib, sys
from pathlib import Path
home = Path(sys.argv[1])
names = ["ringleader", "ringleader.cli", "ringleader.coordinator.groups", "ringleader.coordinator.storage"]
names += ["ringleader.clients", "ringleader.spark_bridge", "ringleader.protocol.messages"]
names += ["ringleader.report.command", "pyspark_ringleader", "pyspark_ringleader_history"]
for name in names:
    module = importlib.import_module(name)
    assert Path(module.__file__).is_relative_to(home), module.__file__
for name in (*sys.argv[2:], "tests", "demo", "bench", "tools"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(f"{name} is importable")
print("all there")
"""


def _build(kind: str, source: Path, out: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", str(out), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # From a copy of what is tracked or new: a build in the tree would see other tests' droppings.
    copy = tmp_path_factory.mktemp("tree") / "src"
    ignore = shutil.ignore_patterns(
        ".git", ".venv", ".cache", "__pycache__", "out", "dist", "build", ".*_cache"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignore)
    return _build("sdist", copy, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = lambda member, _: member  # Python 3.11 before 3.11.4 has no filters
        archive.extractall(unpacked)
    (source,) = unpacked.iterdir()
    return _build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.mark.xdist_group("packaging")
def test_sdist_holds_the_rooms(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"{room}/__init__.py" for room in ROOMS} <= names
    assert {"LICENSE", "Makefile", "constraints.txt", "pyproject.toml", "ringleader/cli/__init__.py"} <= names


@pytest.mark.xdist_group("packaging")
def test_wheel_installs_the_package_and_nothing_beside_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    modules = {"ringleader", "pyspark_ringleader.py", "pyspark_ringleader_history.py"}
    assert {top for top in tops if not top.endswith(".dist-info")} == modules
    for room in ROOMS:
        in_tree = {
            f"ringleader/{room}/{path.relative_to(ROOT / room)}"
            for path in (ROOT / room).rglob("*.py")
            if "__pycache__" not in path.parts
        }
        assert in_tree <= set(names)
    assert {f"ringleader/{path.name}" for path in (ROOT / "ringleader").glob("*.py")} <= set(names)
    assert "ringleader/py.typed" in names
    with zipfile.ZipFile(wheel) as archive:
        (commands,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        entry_points = archive.read(commands).decode()
    assert "ringleader-spark-python = ringleader.spark_bridge.worker_python:main" in entry_points
    assert len(names) == len(set(names))


@pytest.mark.xdist_group("packaging")
def test_wheel_imports_where_nothing_of_the_tree_is_at_hand(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    # The dependencies as they are installed here, without the .pth file of the editable install: -S skips it.
    bare = tmp_path / "elsewhere"
    bare.mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTS, str(home), *ROOMS],
        cwd=bare,
        env={"PYTHONPATH": f"{home}:{sysconfig.get_paths()['purelib']}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "all there", done.stdout + done.stderr
