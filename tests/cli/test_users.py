"""``ringleader users``: the first user is made beside a daemon that does not run, the others by asking it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.cli import run
from ringleader.coordinator.security.store import FILE
from ringleader.testing import Coordinator
from tests.support.command import Done, run_command, run_here
from tests.support.daemon import Daemon

PASSWORD = "open sesame"
ADMIN = """\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.username=admin
sasl.password=open sesame
"""


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the password."""
    path = tmp_path_factory.mktemp("secret") / "password"
    path.write_text(f"{PASSWORD}\nnot this line\n")
    return path


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, secret: Path) -> Iterator[Daemon]:
    """One that asks who its clients are; its first user was made before it ran."""
    directory = tmp_path_factory.mktemp("daemon")
    made = run_here(
        None, "users", "add", "admin", "--data-dir", str(directory / "data"), "--password-file", str(secret)
    )
    assert made == Done(0, "User admin may log in by SCRAM-SHA-512.\n", "")
    with Daemon(directory, listener="SASL_PLAINTEXT") as started:
        yield started
    assert PASSWORD not in started.log()


@pytest.fixture
def admin(daemon: Daemon, tmp_path: Path) -> list[str]:
    """How the first user asks."""
    path = tmp_path / "admin.properties"
    path.write_text(ADMIN)
    return ["--bootstrap-server", daemon.bootstrap, "--command-config", str(path)]


def test_users_come_and_go(admin: list[str], secret: Path, tmp_path: Path) -> None:
    kinds = ["--mechanism", "SCRAM-SHA-256", "--mechanism", "scram-sha-512", "--iterations", "8192"]
    added = run_here(None, "users", "add", "alice", *kinds, "--password-file", str(secret), *admin)
    assert added == Done(0, "User alice may log in by SCRAM-SHA-256 and SCRAM-SHA-512.\n", "")
    listed = run_here(None, "users", "list", "--json", *admin)
    assert json.loads(listed.out) == [
        {"user": "admin", "mechanisms": {"SCRAM-SHA-512": 4096}},
        {"user": "alice", "mechanisms": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 8192}},
    ]
    shown = run_here(None, "users", "list", *admin).out.splitlines()
    assert shown[1].split() == ["admin", "-", "4096", "iterations"]
    as_alice = tmp_path / "alice.properties"
    as_alice.write_text(ADMIN.replace("admin", "alice").replace("512", "256"))
    command = ["topics", "list", "--bootstrap-server", admin[1], "--command-config", str(as_alice)]
    assert run_here(None, *command).code == 0
    removed = run_here(None, "users", "remove", "alice", *admin)
    assert removed == Done(0, "Removed alice.\n", "")
    refused = run_here(None, *command)
    assert refused.code == 1
    assert "user 'alice' (SCRAM-SHA-256)" in refused.err
    again = run_here(None, "users", "remove", "alice", "admin", *admin)
    assert again == Done(1, "", "ringleader: There is no user alice; nobody was removed.\n")


def test_the_password_may_come_by_standard_input(daemon: Daemon, admin: list[str], tmp_path: Path) -> None:
    done = run_command(daemon.bootstrap, "users", "add", "bob", *admin[2:], stdin="b\u00f6b's own\n")
    assert (done.code, done.err) == (0, "")
    as_bob = tmp_path / "bob.properties"
    as_bob.write_text(ADMIN.replace("admin", "bob").replace("open sesame", "b\u00f6b's own"))
    assert run_here(None, "topics", "list", "--command-config", str(as_bob), *admin[:2]).code == 0
    assert run_here(None, "users", "remove", "bob", *admin).code == 0


def test_a_user_that_may_not_log_in_may_not_ask(daemon: Daemon) -> None:
    refused = run_here(daemon.bootstrap, "users", "list")
    assert refused.code == 1
    assert "SASL" in refused.err


def test_a_directory_in_use_is_left_alone(daemon: Daemon, secret: Path) -> None:
    refused = run_here(
        None, "users", "add", "eve", "--data-dir", str(daemon.data_dir), "--password-file", str(secret)
    )
    assert refused.code == 1
    assert "another ringleader uses this data directory" in refused.err
    assert "stop the daemon" in refused.err
    assert "eve" not in (daemon.data_dir / FILE).read_text()


def test_users_of_nodes_are_kept_in_a_topic_of_the_cluster(secret: Path, tmp_path: Path) -> None:
    with Coordinator() as kafka:
        where = ["--cluster", kafka.bootstrap, "--cluster-replication-factor", "1"]
        add = ["users", "add", "admin", "--password-file", str(secret)]
        assert run_here(None, *add, *where) == Done(0, "User admin may log in by SCRAM-SHA-512.\n", "")
        more = ["--mechanism", "SCRAM-SHA-256", "--iterations", "8192"]
        assert run_here(None, *add, *more, *where).code == 0
        listed = run_here(None, "users", "list", "--json", *where)
        assert json.loads(listed.out) == [
            {"user": "admin", "mechanisms": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096}}
        ]
        refused = run_here(None, "users", "remove", "admin", "eve", *where)
        assert refused == Done(1, "", "ringleader: There is no user eve; nobody was removed.\n")
        assert run_here(None, "users", "remove", "admin", *where) == Done(0, "Removed admin.\n", "")
        assert run_here(None, "users", "list", "--json", *where).out == "[]\n"
        many = run_here(None, *add, "--cluster", kafka.bootstrap, "--cluster-security-topic", "other")
        assert (many.code, many.out) == (1, "")
        assert "cannot have cluster.replication.factor=3" in many.err
        kafka.produce("__ringleader_security", b"?", key=b"users/x")
        damaged = run_here(None, "users", "list", *where)
        assert (damaged.code, damaged.out) == (1, "")
        assert damaged.err.startswith("ringleader: topic __ringleader_security: the record 'users/x' cannot")
        assert damaged.err.count("\n") == 1


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path, secret: Path) -> None:
    arguments = ("users", "add", "eve", "--data-dir", str(tmp_path / "d"), "--password-file", str(secret))
    assert run_here(None, *arguments).code == 0
    (tmp_path / "d" / "node.json").write_text('{"format": 2, "cluster_id": "x", "stores": ["security.json"]}')
    (tmp_path / "d" / FILE).unlink()
    refused = run_here(None, *arguments)
    assert refused.code == 1
    assert "security.json is gone" in refused.err
    assert not (tmp_path / "d" / FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", "eve", "--mechanism", "PLAIN"], "--mechanism: there are SCRAM-SHA-512 and SCRAM-SHA-256"),
        (["add", "eve", "--iterations", "1000"], "--iterations"),
        (["add", "eve", "--password-file", "/nowhere/at/all"], "--password-file /nowhere/at/all"),
        (["add", "", "--password-file", "/nowhere"], "A user has a name."),
        (["add", "__ringleader_node", "--data-dir", "d"], "__ringleader_node is what nodes call themselves"),
        (["add", "eve", "--data-dir", "d", "--cluster", "k:1"], "Give --data-dir or --cluster, not both."),
        (["list", "--cluster", "k:x"], "--cluster: not an address of the form HOST:PORT: 'k:x'"),
        (["list", "--cluster", "k:1", "--cluster-properties", "/nowhere"], "--cluster-properties: "),
        (["add"], "USER"),
        (["remove"], "USER"),
    ],
)
def test_wrong_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run(["users", *arguments]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\n", b"a\0b\n"])
def test_texts_that_are_no_password(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    refused = run_here(
        None, "users", "add", "eve", "--data-dir", str(tmp_path / "d"), "--password-file", str(path)
    )
    assert refused.code == 2
    assert not (tmp_path / "d").exists()
