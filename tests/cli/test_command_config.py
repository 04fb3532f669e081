"""--command-config: which commands take it, and what is said about files that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.cli import run

Capture = pytest.CaptureFixture[str]
COMMANDS = [
    ["topics", "list"],
    ["topics", "create", "t"],
    ["topics", "describe", "t"],
    ["topics", "delete", "t"],
    ["topics", "alter", "t", "--partitions", "2"],
    ["groups", "list"],
    ["groups", "describe", "g"],
    ["groups", "delete", "g"],
    ["groups", "reset", "g", "--topic", "t", "--to-latest"],
    ["groups", "delete-offsets", "g", "--topic", "t"],
    ["produce", "t", "--value", "v"],
    ["consume", "t"],
    ["plan", "g"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_that_asks_a_cluster_takes_it(command: list[str], capsys: Capture) -> None:
    assert run([*command, "--command-config", "/nonexistent/client.properties"]) == 2
    stderr = capsys.readouterr().err
    assert (
        stderr == "ringleader: --command-config: No such file or directory: /nonexistent/client.properties.\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"security.protocol=TLS", "security.protocol is 'TLS'; there are PLAINTEXT, SSL"),
        (b"sasl.jaas.config=x", "sasl.jaas.config is set, but security.protocol is not"),
        (b"security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", "sasl.mechanism is 'GSSAPI'"),
        (
            b"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=s3cret",
            "expected CLASS required",
        ),
        (b"\xff\xfe", "is not text"),
        (b"#" * (1024 * 1024 + 1), "more than 1048576 bytes"),
    ],
)
def test_wrong_properties_are_one_sentence(text: bytes, why: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(text)
    assert run(["topics", "list", "--command-config", str(path)]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"ringleader: --command-config: {path}")
    assert why in stderr
    assert stderr.count("\n") == 1
    assert "s3cret" not in stderr


def test_the_environment_may_name_the_file(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGLEADER_COMMAND_CONFIG", str(tmp_path / "none"))
    assert run(["groups", "list"]) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err
