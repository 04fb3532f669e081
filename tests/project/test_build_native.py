"""Building the compiled code: with a compiler and without, for a wheel and for an editable install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tools import build_native
from tools.build_native import SOURCE, TARGET, NotBuiltError, compile_native, compiler, link_flags
from tools.version import NEXT, from_tags, version

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
    """The way that the package there reports."""
    environment = {**os.environ, "PYTHONPATH": f"{home}", "RINGLEADER_NATIVE": "", **variables}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=True)
    module, library = done.stdout.split()
    assert module.startswith(str(home))
    return library


def test_a_wheel_made_with_a_compiler_is_one_platform_s(tree: Path, tmp_path: Path) -> None:
    made, output = wheel(tree, tmp_path / "out", RINGLEADER_NATIVE="1")
    assert made is not None, output
    name, version, python, abi, platform = made.stem.split("-")
    assert (name, version, python, abi) == ("ringleader", NEXT, "cp311", "abi3")
    assert platform != "any"
    home = tmp_path / "site"
    with zipfile.ZipFile(made) as archive:
        info = next(one for one in archive.namelist() if one.endswith("/WHEEL"))
        metadata = archive.read(info).decode()
        archive.extractall(home)
    assert "Root-Is-Purelib: false" in metadata
    assert f"Tag: cp311-abi3-{platform}" in metadata
    assert way_of(home) == str(home / TARGET)
    assert way_of(home, RINGLEADER_NATIVE="0") == "None"


def test_a_wheel_made_without_a_compiler_is_any_platform_s(tree: Path, tmp_path: Path) -> None:
    """Even where an editable install has left the compiled code in the tree."""
    (tree / TARGET).write_bytes(b"of another build")
    try:
        made, output = wheel(tree, tmp_path / "out", **NO_COMPILER)
    finally:
        (tree / TARGET).unlink()
    assert made is not None, output
    assert made.name == f"ringleader-{NEXT}-py3-none-any.whl"
    assert "records will be found by Python, not by compiled code: there is no C compiler" in output
    home = tmp_path / "site"
    with zipfile.ZipFile(made) as archive:
        assert not [one for one in archive.namelist() if one.endswith(".so")]
        archive.extractall(home)
    assert way_of(home) == "None"


def test_an_editable_install_has_it_in_the_tree_or_not_at_all(tree: Path, tmp_path: Path) -> None:
    made, output = wheel(tree, tmp_path / "with", "editable", RINGLEADER_NATIVE="1")
    assert made is not None, output
    assert way_of(tree) == str(tree / TARGET)
    made, output = wheel(tree, tmp_path / "without", "editable", **NO_COMPILER)
    assert made is not None, output
    assert "there is no C compiler" in output
    assert way_of(tree) == "None"


def test_a_build_that_asks_for_compiled_code_makes_no_wheel_without(tree: Path, tmp_path: Path) -> None:
    made, output = wheel(tree, tmp_path / "out", **NO_COMPILER | {"RINGLEADER_NATIVE": "1"})
    assert made is None
    assert "there is no C compiler (set CC to one)" in output


def test_the_compilers_output_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("#error not today\n")
    with pytest.raises(NotBuiltError, match="not today"):
        compile_native(broken, tmp_path / TARGET.name)
    monkeypatch.setenv("CC", "false --flag")
    if shutil.which("false"):
        assert compiler() == ["false", "--flag"]
        with pytest.raises(NotBuiltError, match=r"false failed: \?"):
            compile_native(ROOT / SOURCE, tmp_path / TARGET.name)


def test_the_same_tree_gives_the_same_bytes_wherever_it_lies(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "another folder" / "of the same"
    shutil.copytree(tree, copy, symlinks=True)
    for file in copy.rglob("*.py"):
        os.utime(file, (1, 1))
    wheels = [
        wheel(one, tmp_path / name, RINGLEADER_NATIVE="1", SOURCE_DATE_EPOCH="1700000000")
        for one, name in ((tree, "first"), (copy, "second"))
    ]
    (first, output), (second, other_output) = wheels
    assert first is not None, output
    assert second is not None, other_output
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_a_wheel_installs_where_nothing_is_and_says_that_its_code_is_compiled(
    tree: Path, tmp_path: Path
) -> None:
    """In a virtual environment of its own, by pip; its dependencies are those that are installed here."""
    made, output = wheel(tree, tmp_path / "out", RINGLEADER_NATIVE="1")
    assert made is not None, output
    home = tmp_path / "env"
    # The pip that is installed here works there: to install another one takes longer than all the rest.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    there = [sys.executable, "-m", "pip", "--python", str(home / "bin/python")]
    command = [*there, "install", "--quiet", "--no-index", "--no-deps", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # The packages that are installed here come after those of the new environment. The editable install is no
    # such package: it is a .pth file, and those of a folder that a .pth file names are not read.
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    for choice, way in (("1", "compiled code"), ("0", "Python")):
        version = subprocess.run(
            [str(home / "bin/ringleader"), "--version"],
            cwd=tmp_path,
            env=environment | {"RINGLEADER_NATIVE": choice},
            capture_output=True,
            text=True,
            check=False,
        )
        assert version.stdout == f"ringleader {NEXT} (records are found by {way})\n", version.stderr


def test_a_free_threaded_python_has_a_wheel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"Py_GIL_DISABLED": 1, "EXT_SUFFIX": ".cpython-314t-x86_64-linux-gnu.so"}
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: theirs.get(name, real(name)))
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    assert build_native.tag() == "cp314-cp314t-linux_x86_64"
    assert build_native.target() == Path("ringleader/_native.cpython-314t-x86_64-linux-gnu.so")
    monkeypatch.setattr(sys, "version_info", (3, 12, 0))
    with pytest.raises(NotBuiltError, match="has no ABI for it"):
        compile_native(ROOT / SOURCE, Path("nowhere.so"))


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="has these names itself, as its own way needs them")
def test_a_build_by_a_free_threaded_python_is_whole(tmp_path: Path) -> None:
    """Without the stable ABI, with stand-ins for the names that came with 3.13; compiled, never loaded."""
    names = ["PyList_GetItemRef=PySequence_GetItem", "Py_mod_gil=4", "Py_MOD_GIL_NOT_USED=((void *)1)"]
    names += ["Py_BEGIN_CRITICAL_SECTION(op)={", "Py_END_CRITICAL_SECTION()=}"]
    defined = [f"-D{name}" for name in ("Py_GIL_DISABLED=1", *names)]
    made = tmp_path / "made.so"
    compile_native(ROOT / SOURCE, made, "-Werror", *defined)
    assert made.stat().st_size > 1_000


def test_on_macos_the_processor_that_is_asked_for_is_built_for() -> None:
    universal = "clang -bundle -undefined dynamic_lookup -arch arm64 -arch x86_64 -g"
    assert link_flags(universal, "-arch arm64") == [
        "-bundle",
        "-undefined",
        "dynamic_lookup",
        "-g",
        "-arch",
        "arm64",
    ]
    assert link_flags(universal, "") == universal.split()[1:]


@pytest.mark.parametrize(
    ("described", "version"),
    [
        ("v1.2.3-0-gabc0123", "1.2.3"),
        ("v1.2.3rc1-0-gabc0123", "1.2.3rc1"),
        ("v1.2.3-14-gabc0123", "1.2.4.dev14"),
        ("v1.2.3rc1-2-gabc0123", "1.2.3.dev2"),
        ("", NEXT),
        ("fatal: no names found", NEXT),
    ],
)
def test_a_tag_is_a_version(described: str, version: str) -> None:
    assert from_tags(described) == version


def test_a_build_without_a_repository_may_give_the_version(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, output = wheel(tree, tmp_path / "out", RINGLEADER_NATIVE="0", RINGLEADER_VERSION="7.8.9")
    assert made is not None, output
    assert made.name == "ringleader-7.8.9-py3-none-any.whl"
    monkeypatch.setenv("RINGLEADER_VERSION", "7.8.9")
    assert version() == "7.8.9"


def test_a_tag_of_this_repository_is_found(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(ROOT / "tools/version.py", tools)
    author = ["-c", "user.name=a", "-c", "user.email=a@example"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "a"], ["tag", "v0.4.0"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    ask = "import version; print(version.version())"
    clean = {name: value for name, value in os.environ.items() if name != "RINGLEADER_VERSION"}
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=tools, env=clean, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0.4.0"
