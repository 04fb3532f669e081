"""The command line itself: help that teaches, flags made from the settings, one sentence for wrong input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from ringleader.cli import app, run
from ringleader.coordinator.config import options
from ringleader.protocol import native
from ringleader.testing.coordinator import Coordinator
from tests.support.command import command_line, environment, run_command

Capture = pytest.CaptureFixture[str]


def _stderr(capsys: Capture) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(("compiled", "way"), [(None, "Python"), (object(), "compiled code")])
def test_version(capsys: Capture, monkeypatch: pytest.MonkeyPatch, compiled: object | None, way: str) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"ringleader {version('ringleader')} (records are found by {way})\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["serve", "--help"],
        ["topics", "-h"],
        ["groups", "-h"],
        *([name, "-h"] for name in ("produce", "consume", "plan", "size")),
        *([name, "-h"] for name in ("top", "history", "explain", "owners", "cost", "report", "advise")),
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


def test_only_serve_loads_the_coordinator() -> None:
    program = (
        "import sys, ringleader.cli; ringleader.cli.run(['--help']); "
        "sys.exit(any(name in sys.modules for name in ('ringleader.coordinator', 'pydantic', 'structlog')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Run the coordinator until it is stopped." in done.stdout


def test_a_command_loads_no_other_and_no_tables_before_it_prints_one() -> None:
    program = (
        "import sys, ringleader.cli; ringleader.cli.run(['topics', 'create', 't', '--partitions', '0']); "
        "print(sorted(name for name in sys.modules if name == 'rich' or name.startswith('ringleader.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    own = ("asking", "common", "topics", "values")
    assert done.stdout == f"{[f'ringleader.cli.{name}' for name in own]}\n"


@pytest.mark.parametrize(
    ("arguments", "library"),
    [
        (["topics", "create", "t", "--config", "x"], "pydantic"),
        (["produce", "t", "--header", "x"], "pydantic"),
        (["serve", "--log-level", "wrong"], "rich"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_the_start_waits_for_no_library_that_only_converts_or_prints(
    arguments: list[str], library: str
) -> None:
    program = (
        f"import sys; from ringleader.cli import run; print(run({arguments}), {library!r} in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "2 False\n"


def test_every_setting_is_a_flag_of_serve(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["serve", "--help"]) == 0
    words = capsys.readouterr().out.split()
    flags = {option.key: option.flag for option in options()}
    assert {flag for flag in flags.values() if flag} <= set(words)
    secrets = {"http.ssl.key.password", "ssl.key.password", "ssl.keystore.key"}
    assert {key for key, flag in flags.items() if not flag} == secrets
    assert not any(word.startswith(("--ssl-key-", "--ssl-keystore-key", "--http-ssl-key-")) for word in words)
    for panel in ("node", "Connections", "Groups", "Topics"):
        assert panel in words


def test_the_page_of_the_command_line_names_every_command_and_option() -> None:
    """Those of serve are the settings, which have a page of their own."""
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    for name, command in _commands(typer.main.get_command(app)):
        assert name.split()[-1] in page
        if name in ("produce", "consume", "groups reset", "topics alter", "groups delete-offsets"):
            for option in (option for one in command.params for option in (*one.opts, *one.secondary_opts)):
                negated = option.replace("--", "--no-", 1)
                assert not option.startswith("--") or option in page or negated in page, f"{name} {option}"


def _commands(top: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, command in getattr(top, "commands", {}).items():
        yield f"{name}{word}", command
        yield from _commands(command, f"{name}{word} ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["topics", "create", "or\udcffders"], "'or\\udcffders' is not UTF-8"),
        (["topics", "delete", "t", "\udcff"], "TOPIC"),
        (["produce", "or\udcffders", "--value", "x"], "'or\\udcffders' is not UTF-8"),
        (["consume", "t", "--group", "\udcff"], "--group"),
        (["groups", "describe", "\udcff"], "GROUP"),
        (["groups", "reset", "g", "--topic", "\udcff", "--to-latest"], "--topic"),
        (["topics", "list", "--bootstrap-server", "\udcff"], "--bootstrap-server"),
        (["plan", "\udcff"], "GROUP"),
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
    sentence = _stderr(capsys)
    assert sentence.startswith("ringleader: ")
    assert says in sentence
    assert sentence.count("\n") == 1
    assert "Traceback" not in sentence


def test_wrong_environment_and_file_name_where_it_came_from(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ringleader.properties"
    file.write_text("num.partitions = none\n")
    assert run(["serve", "--config", str(file)]) == 2
    assert f"num.partitions in {file}" in _stderr(capsys)
    file.write_text("num.partition = 3\n")
    assert run(["serve", "--config", str(file)]) == 2
    assert "did you mean num.partitions?" in _stderr(capsys)
    monkeypatch.setenv("RINGLEADER_NUM_PARTITIONS", "none")
    assert run(["serve"]) == 2
    assert "environment RINGLEADER_NUM_PARTITIONS" in _stderr(capsys)


@pytest.mark.parametrize(
    "arguments",
    [["topics", "list"], ["topics", "list", "--json"], ["consume", "t"], ["--help"], ["--version"]],
)
def test_a_reader_that_has_had_enough_is_no_error(arguments: list[str]) -> None:
    with Coordinator(topics={"t": 1}) as coordinator:
        if "consume" in arguments:
            assert run_command(coordinator.bootstrap, "produce", "t", "--value", "a").code == 0
        nobody_reads, output = os.pipe()
        os.close(nobody_reads)
        done = subprocess.run(
            command_line(*arguments),
            stdout=output,
            stderr=subprocess.PIPE,
            env=environment(coordinator.bootstrap),
            check=False,
        )
        os.close(output)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [[], ["topics"], ["groups"]])
def test_a_command_without_its_subcommand_shows_help(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert "Commands" in captured.out + captured.err
