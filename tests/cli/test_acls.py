"""``ringleader acls``: what is added is listed, counts, and is removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader import Acl, Admin
from tests.support.command import Done, run_here
from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose anonymous clients are super users."""
    options = ["--authorizer", "acl", "--super-users", "User:ANONYMOUS"]
    with Daemon(tmp_path_factory.mktemp("daemon"), options=options) as running:
        yield running


def listed(daemon: Daemon, *arguments: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(
        run_here(daemon.bootstrap, "acls", "list", "--json", *arguments).out
    )
    return found


def test_acls_come_and_go(daemon: Daemon) -> None:
    words = ("User:alice", "read", "describe-configs", "--topic", "orders", "--topic", "[/x]\n")
    added = run_here(daemon.bootstrap, "acls", "add", *words, "--host", "10.0.0.1")
    assert added == Done(
        0,
        "Added ALLOW User:alice READ on TOPIC orders from 10.0.0.1.\n"
        "Added ALLOW User:alice DESCRIBE_CONFIGS on TOPIC orders from 10.0.0.1.\n"
        "Added ALLOW User:alice READ on TOPIC [/x]\\n from 10.0.0.1.\n"
        "Added ALLOW User:alice DESCRIBE_CONFIGS on TOPIC [/x]\\n from 10.0.0.1.\n",
        "",
    )
    more = ("User:bob", "ALL", "--group", "g-", "--transactional-id", "t-", "--prefixed", "--deny")
    for _ in range(2):  # what is there already is as good
        assert run_here(daemon.bootstrap, "acls", "add", *more).code == 0
    assert run_here(daemon.bootstrap, "acls", "add", "User:bob", "ALTER", "--cluster").code == 0
    assert len(listed(daemon)) == 7
    assert {one["resource_name"] for one in listed(daemon, "--principal", "User:alice")} == {
        "orders",
        "[/x]\n",
    }
    assert len(listed(daemon, "--topic", "orders")) == 2
    assert listed(daemon, "--group", "g-") == [
        {
            "principal": "User:bob",
            "operation": "ALL",
            "resource_type": "GROUP",
            "resource_name": "g-",
            "pattern_type": "PREFIXED",
            "permission": "DENY",
            "host": "*",
        }
    ]
    shown = run_here(daemon.bootstrap, "acls", "list").out.splitlines()
    assert shown[0].split() == ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "NAME", "HOST"]
    assert len(shown) == 8

    other = run_here(daemon.bootstrap, "acls", "remove", *words)
    assert (other.code, other.out) == (1, "")
    assert "There is no ACL ALLOW User:alice READ on TOPIC orders" in other.err
    assert len(listed(daemon)) == 7
    removed = run_here(daemon.bootstrap, "acls", "remove", *words, "--host", "10.0.0.1")
    assert removed.code == 0
    assert removed.out.count("Removed ALLOW User:alice") == 4
    assert {one["principal"] for one in listed(daemon)} == {"User:bob"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "User:alice", "READ"), "Say on what"),
        (("add", "alice", "READ", "--topic", "t"), "a principal is TYPE:NAME"),
        (("add", "User:", "READ", "--topic", "t"), "a principal is TYPE:NAME"),
        (("add", "User:alice", "SING", "--topic", "t"), "there are ALL, READ, "),
        (("remove", "User:alice", "READ"), "Say on what"),
        (("list", "--topic", "t", "--group", "g"), "not both"),
        (("add", "User:alice"), "Missing argument"),
    ],
)
def test_wrong_input_is_one_sentence(words: tuple[str, ...], says: str) -> None:
    done = run_here("127.0.0.1:1", "acls", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


async def test_programs_do_the_same(daemon: Daemon) -> None:
    made = Acl("User:carol", "WRITE", "TRANSACTIONAL_ID", "t", "PREFIXED", "ALLOW", "10.0.0.1")
    async with Admin(daemon.bootstrap) as admin:
        await admin.create_acls([made])
        assert await admin.acls(principal="User:carol") == [made]
        assert await admin.acls(principal="User:carol", resource_type="TOPIC") == []
        await admin.delete_acls([made, made])
        assert await admin.acls(principal="User:carol") == []
        with pytest.raises(ValueError, match="there are TOPIC"):
            await admin.acls(resource_type="topics")


def test_where_there_are_none_it_is_said(tmp_path: Path) -> None:
    with Daemon(tmp_path) as plain:
        done = run_here(plain.bootstrap, "acls", "list")
    assert done.code == 1
    assert "SECURITY_DISABLED" in done.err
    assert done.err.count("\n") == 1
