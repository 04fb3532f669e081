"""Users whose names are meant to be something else: a path, a line of the log, a command of the terminal,
another user, everybody."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from ringleader.coordinator.security.scram import MIN_ITERATIONS, SHA_512, salt_password
from ringleader.coordinator.security.store import FILE
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.support.command import Done, run_here
from tests.support.daemon import Daemon
from tests.support.ports import free_ports
from tests.support.registered import PASSWORD, ScramClient
from tests.support.served import Client, connected

NAMES = (
    "a/b",
    "../../../etc/passwd",
    "C:\\nul",
    "line\n2026-01-01T00:00:00Z [info     ] all is well",
    "\r\rover",
    "\x1b[31mred\x1b]0;title\x07",
    "[red]x[/red]",
    "[/nothing]",
    "User:bob",
    "*",
    "a,b=c;d",
    "{} %s %n ${HOME}",
    "x" * 1_000,
)
UNSAID = ("nul\0name", "\u202eevil", "\u2028separated")
"""Users may be called so, but SCRAM cannot say it."""
LINE = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z \[[a-z]+ *\] .*")
SALT = b"26 characters of pure salt"


class Guarded(Daemon):
    """Its first listener asks nobody, and belongs to a super user; the other one asks for SASL."""

    def __init__(self, directory: Path, form: str) -> None:
        options = ["--authorizer", "acl", "--super-users", "User:ANONYMOUS", "--log-format", form]
        [self.guarded_port] = free_ports(1)
        super().__init__(
            directory,
            options=[*options, "--connection-failed-authentication-delay-ms", "0"],
            beside=f"SASL_PLAINTEXT://127.0.0.1:{self.guarded_port}",
        )


def files(directory: Path) -> set[Path]:
    """Of the daemon, but for the topics'."""
    found = {path for path in directory.rglob("*") if path.is_file()}
    return {path for path in found if not path.is_relative_to(directory / "data" / "topics")}


async def log_in(client: Client, name: str) -> int:
    assert (await client.call(kafka.SaslHandshakeRequest("SCRAM-SHA-512"), 1)).error_code == 0
    scram = ScramClient(name)
    first = await client.call(kafka.SaslAuthenticateRequest(scram.first), 2)
    if first.error_code:
        return int(first.error_code)
    last = await client.call(kafka.SaslAuthenticateRequest(scram.final(first.auth_bytes)), 2)
    return int(last.error_code)


async def make(root: Client, name: str) -> None:
    """The user, and an ACL for a topic and a group of that name."""
    user = kafka.AlterUserScramCredentialsRequestScramCredentialUpsertion(
        name,
        SHA_512.number,
        MIN_ITERATIONS,
        SALT,
        salt_password(SHA_512, PASSWORD.encode(), SALT, MIN_ITERATIONS),
    )
    made = await root.call(kafka.AlterUserScramCredentialsRequest(upsertions=[user]), 0)
    assert [one.error_code for one in made.results] == [0]
    acls = [kafka.CreateAclsRequestAclCreation(3, f"{name}'s", 3, f"User:{name}", "*", 3, 3)]
    created = await root.call(kafka.CreateAclsRequest(creations=acls), 3)
    assert [one.error_code for one in created.results] == [0]


async def seen(client: Client, name: str) -> int:
    """The answer that a user of that name gets about the group."""
    described = await client.call(kafka.DescribeGroupsRequest(groups=[f"{name}'s"]), 5)
    return int(described.groups[0].error_code)


@pytest.mark.parametrize("form", ["console", "json"])
async def test_a_name_is_a_name(tmp_path: Path, form: str) -> None:
    refused, failed = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.SASL_AUTHENTICATION_FAILED
    guarded = Guarded(tmp_path, form)
    with guarded as daemon:
        before = files(tmp_path)
        for name in (*NAMES, *UNSAID):
            async with connected("127.0.0.1", guarded.guarded_port) as stranger:
                assert await log_in(stranger, name) == failed
        async with connected("127.0.0.1", daemon.port) as root:
            for name in (*NAMES, *UNSAID, "bob"):
                await make(root, name)
        for name in (*NAMES, "bob"):
            async with connected("127.0.0.1", guarded.guarded_port) as client:
                assert await log_in(client, name) == 0
                for other in (*NAMES, "bob"):
                    allowed = other in (name, "*")  # an ACL for User:* is for everybody
                    assert await seen(client, other) == (0 if allowed else refused)
        listed = await asyncio.to_thread(run_here, daemon.bootstrap, "users", "list", "--json")
        assert {one["user"] for one in json.loads(listed.out)} == {*NAMES, *UNSAID, "bob"}
        shown = await asyncio.to_thread(run_here, daemon.bootstrap, "users", "list")
        assert shown.code == 0
        assert all(line.isprintable() for line in shown.out.splitlines())
        assert len(shown.out.strip().splitlines()) >= len(NAMES) + len(UNSAID)
        assert "[/nothing]" in shown.out
        removed = await asyncio.to_thread(run_here, daemon.bootstrap, "users", "remove", *NAMES, *UNSAID)
        assert removed.code == 0
        left = await asyncio.to_thread(run_here, daemon.bootstrap, "users", "list", "--json")
        assert json.loads(left.out) == [{"user": "bob", "mechanisms": {"SCRAM-SHA-512": MIN_ITERATIONS}}]
    assert files(tmp_path) <= before
    assert set(json.loads((tmp_path / "data" / FILE).read_text())["users"]) == {"bob"}
    for line in daemon.log().split("\n")[:-1]:
        assert line.isprintable()
        assert json.loads(line) if form == "json" else LINE.fullmatch(line), line


@pytest.mark.parametrize("name", NAMES)
def test_the_first_user_may_have_any_name(tmp_path: Path, name: str) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    data = tmp_path / "data"
    done = run_here(None, "users", "add", name, "--data-dir", str(data), "--password-file", str(password))
    assert done.code == 0
    assert done.out.count("\n") == 1
    assert done.out.strip().isprintable()
    assert set(json.loads((data / FILE).read_text())["users"]) == {name}


def test_a_user_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with Guarded(tmp_path, "json") as daemon:
        for name in NAMES:
            done = run_here(daemon.bootstrap, "users", "remove", name)
            assert isinstance(done, Done)
            assert (done.code, done.err.count("\n")) == (1, 1)
            assert done.err.strip().isprintable()
