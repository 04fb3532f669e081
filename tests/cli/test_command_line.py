"""The command line itself: help that teaches, flags made from the settings, one sentence for wrong input."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from ringleader.cli import run
from ringleader.coordinator.config import options

Capture = pytest.CaptureFixture[str]


def _said(capsys: Capture) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_version(capsys: Capture) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"ringleader {version('ringleader')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["serve", "--help"],
        ["topics", "-h"],
        ["groups", "-h"],
        *([name, "-h"] for name in ("produce", "consume", "plan", "size")),
        *(["topics", name, "-h"] for name in ("create", "list", "describe", "alter", "delete")),
        *(["groups", name, "-h"] for name in ("list", "describe", "reset", "delete-offsets", "delete")),
    ],
    ids=" ".join,
)
def test_help_comes_with_examples(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 0
    captured = capsys.readouterr()
    _, examples = captured.out.split("Examples:")
    assert examples.count(" ringleader ") >= 2
    assert captured.err == ""


def test_every_setting_is_a_flag_of_serve(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["serve", "--help"]) == 0
    words = capsys.readouterr().out.split()
    assert {option.flag for option in options()} <= set(words)
    for panel in ("node", "Connections", "Groups", "Topics"):
        assert panel in words


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--num-partitions", "many"], "--num-partitions"),
        (["serve", "--num-partitions", "0"], "--num-partitions"),
        (["serve", "--topic", "orders"], "NAME:PARTITIONS"),
        (["serve", "--topic", "orders:2", "--topic", "orders:3"], "more than once"),
        (["serve", "--listen", "nowhere"], "HOST:PORT"),
        (["serve", "--log-format", "xml"], "--log-format"),
        (["serve", "--auto-create-topics-enable", "perhaps"], "--auto-create-topics-enable"),
        (["serve", "--no-such-setting", "1"], "--no-such-setting"),
        (["serve", "--config", "/nonexistent/settings.toml"], "/nonexistent/settings.toml"),
        (["serve", "surplus"], "surplus"),
        (["dance"], "dance"),
        (["topics", "dance"], "dance"),
        (["groups", "describe"], "Missing argument"),
        (["topics", "create", "orders", "--partitions", "x"], "--partitions"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], says: str, capsys: Capture) -> None:
    assert run(arguments) == 2
    said = _said(capsys)
    assert said.startswith("ringleader: ")
    assert says in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_wrong_environment_and_file_name_where_it_came_from(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ringleader.properties"
    file.write_text("num.partitions = none\n")
    assert run(["serve", "--config", str(file)]) == 2
    assert f"num.partitions in {file}" in _said(capsys)
    file.write_text("num.partition = 3\n")
    assert run(["serve", "--config", str(file)]) == 2
    assert "did you mean num.partitions?" in _said(capsys)
    monkeypatch.setenv("RINGLEADER_NUM_PARTITIONS", "none")
    assert run(["serve"]) == 2
    assert "environment RINGLEADER_NUM_PARTITIONS" in _said(capsys)


@pytest.mark.parametrize("arguments", [[], ["topics"], ["groups"]])
def test_a_command_without_its_subcommand_shows_help(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert "Commands" in captured.out + captured.err
