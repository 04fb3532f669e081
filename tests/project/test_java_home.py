"""Finding a Java for Spark, and the shim around a trimmed runtime; the Javas here are made up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import java_home


def _fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25), ("21-ea", 21)])
def test_feature_version(tmp_path: Path, text: str, version: int) -> None:
    assert java_home.java_version(_fake_java(tmp_path, text)) == version


def test_a_program_that_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_home.java_version(tmp_path / "none") is None
    assert java_home.java_version(Path("/bin/true")) is None


def test_the_named_home_wins_over_the_path(tmp_path: Path) -> None:
    named, on_path = tmp_path / "named", tmp_path / "path"
    _fake_java(named, "21.0.1")
    _fake_java(on_path, "17.0.1")
    assert java_home.java_home({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}) == named


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    named, on_path = tmp_path / "named", tmp_path / "path"
    _fake_java(named, "11.0.1")
    _fake_java(on_path, "17.0.1")
    assert java_home.java_home({"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}) == on_path


def test_without_a_java_the_wheel_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _fake_java(tmp_path / "wheel", "25")
    monkeypatch.setattr(java_home, "wheel_java", lambda: real)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    home = java_home.java_home({"PATH": ""})
    assert home == tmp_path / "java-home"
    assert java_home.java_version(home / "bin" / "java") == 25


def test_nothing_is_installed_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_home, "wheel_java", lambda: None)
    assert java_home.java_home({"PATH": ""}) is None


def test_shim_drops_the_module_that_the_runtime_lacks_and_nothing_else(tmp_path: Path) -> None:
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nfor argument do printf "%s\\n" "$argument"; done\n')
    echo.chmod(0o755)
    shim = java_home.shim_home(tmp_path / "home", echo) / "bin" / "java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dtext=with space", "", "Main", "*"]
    done = subprocess.run([shim, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [one for one in given if "incubator" not in one]
