"""Finding a C compiler for the power-cut test and the benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import c_compiler


def _fake(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_named_compiler_wins_over_the_path(tmp_path: Path) -> None:
    named, on_path = _fake(tmp_path / "mine"), _fake(tmp_path / "cc")
    assert c_compiler.c_compiler({"CC": str(named), "PATH": str(tmp_path)}) == named
    assert c_compiler.c_compiler({"PATH": str(tmp_path)}) == on_path


def test_without_a_compiler_the_wheel_is_installed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str] = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if installed else None)

    def install(name: str) -> bool:
        installed.append(name)
        return True

    monkeypatch.setattr(c_compiler, "install", install)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    first, second = c_compiler.c_compiler({"PATH": ""}), c_compiler.c_compiler({"PATH": ""})
    assert first == second == tmp_path / "c-compiler" / "cc"
    assert installed == ["ziglang"]
    assert first.stat().st_mode & 0o111


def test_without_any_it_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(c_compiler, "install", lambda name: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert c_compiler.main() == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "set CC" in captured.err.splitlines()[-1]
