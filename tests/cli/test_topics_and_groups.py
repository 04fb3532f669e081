"""``ringleader topics`` and ``ringleader groups`` against a daemon, with a member at work."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import aiokafka
import pytest

from ringleader.cli import asking, run
from tests.support.daemon import Daemon
from tests.support.members import AiokafkaMember, Board, Stage
from tests.support.ports import free_address

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    directory = tmp_path_factory.mktemp("daemon")
    with Daemon(directory, options=["--group-initial-rebalance-delay-ms", "0"]) as started:
        yield started


@pytest.fixture(autouse=True)
def _server(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGLEADER_BOOTSTRAP_SERVER", daemon.bootstrap)


async def _command(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Run one command off the test's loop; returns exit code, standard output, standard error."""
    code = await asyncio.to_thread(run, list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


async def _json(capsys: Capture, *arguments: str) -> Any:
    code, out, err = await _command(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


async def test_a_topic_from_creation_to_deletion(capsys: Capture, daemon: Daemon) -> None:
    created = await _command(capsys, "topics", "create", "bills", "--partitions", "3")
    assert created == (0, "Created topic bills.\n", "")
    code, out, _ = await _command(capsys, "topics", "list")
    assert code == 0
    assert ["bills", "3"] in [line.split() for line in out.splitlines()]
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=daemon.bootstrap) as producer:
        await producer.send_and_wait("bills", b"one", partition=2)
    found = await _json(capsys, "topics", "describe", "bills")
    assert [(one["partition"], one["start"], one["end"]) for one in found["partitions"]] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 1),
    ]
    assert len(found["id"]) == 32
    code, out, _ = await _command(capsys, "topics", "describe", "bills")
    assert (code, found["id"] in out) == (0, True)
    assert (await _command(capsys, "topics", "delete", "bills"))[0] == 0
    assert "bills" not in [one["topic"] for one in await _json(capsys, "topics", "list")]


async def test_a_topic_is_altered(capsys: Capture) -> None:
    setting = ("--config", "retention.ms=86400000")
    assert (await _command(capsys, "topics", "create", "grows", "--partitions", "2", *setting))[0] == 0
    found = await _json(capsys, "topics", "describe", "grows")
    assert found["configs"] == {"retention.ms": {"value": "86400000", "set_by": "topic"}}
    changed = ("--config", "retention.ms=5000", "--config", "cleanup.policy=compact", "--partitions", "4")
    assert await _command(capsys, "topics", "alter", "grows", *changed) == (
        0,
        "Topic grows: retention.ms is 5000, cleanup.policy is compact, 4 partitions.\n",
        "",
    )
    code, out, _ = await _command(capsys, "topics", "describe", "grows")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert [line[0] for line in lines[2:6]] == ["0", "1", "2", "3"]
    assert lines[7:] == [
        ["CONFIG", "VALUE", "SET", "BY"],
        ["cleanup.policy", "compact", "topic"],
        ["retention.ms", "5000", "topic"],
    ]
    assert await _command(capsys, "topics", "alter", "grows", "--delete-config", "retention.ms") == (
        0,
        "Topic grows: retention.ms has its default.\n",
        "",
    )
    found = await _json(capsys, "topics", "describe", "grows")
    assert list(found["configs"]) == ["cleanup.policy"]
    code, out, _ = await _command(capsys, "topics", "alter", "grows", "--partitions", "4")
    assert (code, out) == (0, "Topic grows: 4 partitions as before.\n")


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((), 2, "Say what to change"),
        (("--config", "x"), 2, "--config: give it as NAME=VALUE"),
        (
            ("--config", "retention.ms=1", "--delete-config", "retention.ms"),
            2,
            "retention.ms is set, or taken",
        ),
        (("--config", "retention.ms=x"), 1, "Invalid value x"),
        (("--delete-config", "retention"), 1, "Unknown topic config name: retention"),
        (("--partitions", "1"), 1, "Topic stays has 2 partitions; a topic never gets fewer."),
    ],
)
async def test_a_topic_that_cannot_be_altered_so_stays(
    capsys: Capture, options: tuple[str, ...], code: int, says: str
) -> None:
    await _command(capsys, "topics", "create", "stays", "--partitions", "2")
    found, out, err = await _command(capsys, "topics", "alter", "stays", *options)
    assert (found, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    described = await _json(capsys, "topics", "describe", "stays")
    assert (described["configs"], len(described["partitions"])) == ({}, 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("topics", "describe", "none"), "none"),
        (("topics", "alter", "none", "--partitions", "2"), "none"),
        (("topics", "alter", "none", "--delete-config", "retention.ms"), "none"),
        (("topics", "delete", "none"), "none"),
        (("groups", "describe", "none"), "There is no group none."),
        (("groups", "delete", "none"), "none"),
        (("topics", "create", "a topic"), "a topic"),
    ],
)
async def test_what_cannot_be_done_is_one_sentence(
    arguments: tuple[str, ...], says: str, capsys: Capture
) -> None:
    code, out, err = await _command(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("ringleader: ")
    assert says in err
    assert err.count("\n") == 1


async def test_creating_a_topic_twice_is_refused(capsys: Capture) -> None:
    assert (await _command(capsys, "topics", "create", "twice", "--partitions", "1"))[0] == 0
    code, _, err = await _command(capsys, "topics", "create", "twice", "--partitions", "1")
    assert code == 1
    assert "twice" in err


async def test_a_server_that_is_not_there_is_one_sentence(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT_MS", 500)
    address = free_address()
    code, out, err = await _command(capsys, "groups", "list", "--bootstrap-server", address)
    assert (code, out) == (1, "")
    assert err.startswith("ringleader: ")
    assert address in err
    assert err.count("\n") == 1


async def test_a_server_that_says_nothing_is_waited_for_once(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT_MS", 500)
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        code, out, err = await _command(capsys, "groups", "describe", "g", "--bootstrap-server", address)
    assert (code, out) == (1, "")
    assert err.startswith(f"ringleader: no connection to {address} within 0.")
    assert time.monotonic() - began < 5


async def test_all_topics_that_cannot_be_deleted_are_named(capsys: Capture) -> None:
    code, _, err = await _command(capsys, "topics", "delete", "not-here", "nor-here")
    assert code == 1
    assert "'not-here'" in err
    assert "'nor-here'" in err


async def test_an_address_that_is_none_is_wrong_input(capsys: Capture) -> None:
    code, _, err = await _command(capsys, "topics", "list", "--bootstrap-server", "nowhere:port")
    assert code == 2
    assert "--bootstrap-server" in err


async def test_a_group_from_its_first_member_to_deletion(capsys: Capture, daemon: Daemon) -> None:
    assert (await _command(capsys, "topics", "create", "orders", "--partitions", "2"))[0] == 0
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=daemon.bootstrap) as producer:
        for number in range(5):
            await producer.send_and_wait("orders", b"order", partition=number % 2)
    board = Board()
    async with Stage() as stage:
        # Commits when it leaves, and never before: the lag is what was produced.
        member = AiokafkaMember(
            board, daemon.bootstrap, "billing", "orders", "biller", auto_commit_interval_ms=3_600_000
        )
        await stage.enter(member)
        await board.until(lambda now: len(now.got.get("biller", ())) == 5)
        listed = await _json(capsys, "groups", "list")
        one = {"group": "billing", "state": "Stable", "type": "consumer", "group_type": "classic"}
        assert one in listed
        found = await _json(capsys, "groups", "describe", "billing")
        (shown,) = found["members"]
        assert (found["state"], found["protocol"]) == ("Stable", "roundrobin")
        assert (found["group_type"], found["group_epoch"]) == ("classic", None)
        assert (shown["epoch"], shown["target"], shown["topics"]) == (None, None, ["orders"])
        assert (shown["client"], shown["partitions"]) == ("biller", {"orders": [0, 1]})
        assert [(one["committed"], one["end"], one["lag"]) for one in found["offsets"]] == [
            (None, 3, 3),
            (None, 2, 2),
        ]
        code, out, _ = await _command(capsys, "groups", "describe", "billing")
        assert code == 0
        lines = [line.split() for line in out.splitlines()]
        assert out.startswith("Group billing: Stable, assigned by roundrobin\n")
        assert lines[2] == ["MEMBER", "CLIENT", "HOST", "PARTITIONS"]
        assert ["orders", "0", "-", "3", "3", "biller"] in lines
        assert any("orders: 0 1" in line for line in out.splitlines())
        code, _, err = await _command(capsys, "groups", "delete", "billing")
        assert code == 1
        assert "billing" in err
    code, out, _ = await _command(capsys, "groups", "describe", "billing")
    assert code == 0
    assert ["orders", "0", "3", "3", "0", "-"] in [line.split() for line in out.splitlines()]
    assert (await _command(capsys, "groups", "delete", "billing"))[0] == 0
    assert "billing" not in [one["group"] for one in await _json(capsys, "groups", "list")]
