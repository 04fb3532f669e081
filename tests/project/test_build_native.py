"""Building the compiled code: with a compiler and without, for a wheel and for an editable install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.build_native import SOURCE, TARGET, NotBuiltError, compile_native, compiler

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import sys
from ringleader.protocol import native
print(native.__file__, native.compiled and native.compiled.__file__)
"""

pytestmark = pytest.mark.xdist_group("packaging")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree without what was built in it."""
    copy = tmp_path_factory.mktemp("tree") / "src"
    ignore = shutil.ignore_patterns(
        ".git", ".venv", ".cache", "__pycache__", "out", "dist", "build", ".*_cache", "*.so", "tests", "bench"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignore)
    return copy


def wheel(tree: Path, out: Path, kind: str = "wheel", **variables: str) -> tuple[Path | None, str]:
    """Build one; the file, and what was said."""
    command = [sys.executable, "-c", BUILD, kind, str(out)]
    environment = {**os.environ, **variables}
    out.mkdir()
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    return next(out.iterdir(), None), done.stdout + done.stderr


BUILD = """
import sys
from hatchling import build
getattr(build, "build_" + sys.argv[1])(sys.argv[2])
"""
NO_COMPILER = {"CC": "", "PATH": "/nowhere", "RINGLEADER_NATIVE": ""}


def way_of(home: Path, **variables: str) -> str:
    """What the package there says of itself."""
    environment = {**os.environ, "PYTHONPATH": f"{home}", "RINGLEADER_NATIVE": "", **variables}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=True)
    module, library = done.stdout.split()
    assert module.startswith(str(home))
    return library


def test_a_wheel_made_with_a_compiler_is_one_platform_s(tree: Path, tmp_path: Path) -> None:
    made, said = wheel(tree, tmp_path / "out", RINGLEADER_NATIVE="1")
    assert made is not None, said
    name, version, python, abi, platform = made.stem.split("-")
    assert (name, version, python, abi) == ("ringleader", "0.1.0", "cp311", "abi3")
    assert platform != "any"
    home = tmp_path / "site"
    with zipfile.ZipFile(made) as archive:
        info = next(one for one in archive.namelist() if one.endswith("/WHEEL"))
        told = archive.read(info).decode()
        archive.extractall(home)
    assert "Root-Is-Purelib: false" in told
    assert f"Tag: cp311-abi3-{platform}" in told
    assert way_of(home) == str(home / TARGET)
    assert way_of(home, RINGLEADER_NATIVE="0") == "None"


def test_a_wheel_made_without_a_compiler_is_any_platform_s(tree: Path, tmp_path: Path) -> None:
    """Even where an editable install has left the compiled code in the tree."""
    (tree / TARGET).write_bytes(b"of another build")
    try:
        made, said = wheel(tree, tmp_path / "out", **NO_COMPILER)
    finally:
        (tree / TARGET).unlink()
    assert made is not None, said
    assert made.name == "ringleader-0.1.0-py3-none-any.whl"
    assert "records will be found by Python, not by compiled code: there is no C compiler" in said
    home = tmp_path / "site"
    with zipfile.ZipFile(made) as archive:
        assert not [one for one in archive.namelist() if one.endswith(".so")]
        archive.extractall(home)
    assert way_of(home) == "None"


def test_an_editable_install_has_it_in_the_tree_or_not_at_all(tree: Path, tmp_path: Path) -> None:
    made, said = wheel(tree, tmp_path / "with", "editable", RINGLEADER_NATIVE="1")
    assert made is not None, said
    assert way_of(tree) == str(tree / TARGET)
    made, said = wheel(tree, tmp_path / "without", "editable", **NO_COMPILER)
    assert made is not None, said
    assert "there is no C compiler" in said
    assert way_of(tree) == "None"


def test_who_asks_for_it_is_not_given_a_wheel_without(tree: Path, tmp_path: Path) -> None:
    made, said = wheel(tree, tmp_path / "out", **NO_COMPILER | {"RINGLEADER_NATIVE": "1"})
    assert made is None
    assert "there is no C compiler (set CC to one)" in said


def test_what_the_compiler_says_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("#error not today\n")
    with pytest.raises(NotBuiltError, match="not today"):
        compile_native(broken, tmp_path / TARGET.name)
    monkeypatch.setenv("CC", "false --flag")
    if shutil.which("false"):
        assert compiler() == ["false", "--flag"]
        with pytest.raises(NotBuiltError, match=r"false failed: \?"):
            compile_native(ROOT / SOURCE, tmp_path / TARGET.name)
