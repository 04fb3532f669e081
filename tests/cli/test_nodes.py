"""``ringleader nodes`` against nodes: what it shows, what it moves, and what it says of wrong input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from ringleader.cli import run
from ringleader.coordinator.groups.routing import partition_for
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.served import until

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def kafka_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Coordinator]:
    """Stands for the cluster, whose address the commands take from the environment."""
    with Coordinator() as coordinator:
        monkeypatch.setenv("RINGLEADER_CLUSTER", coordinator.bootstrap)
        yield coordinator


@pytest.fixture
async def nodes(kafka_cluster: Coordinator) -> AsyncIterator[Nodes]:
    """Nodes 1 and 2, with half of the shards each."""
    async with Nodes(kafka_cluster, Lines()) as made:
        one, two = await made.start(1), await made.start(2)
        await until(lambda: [len(node.runtime.serving) for node in (one, two)] == [25, 25])
        yield made


async def command(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Run one command off the test's loop; exit code, standard output, standard error."""
    code = await asyncio.to_thread(run, ["nodes", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


async def as_json(capsys: Capture, *arguments: str) -> Any:
    code, out, err = await command(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


async def test_the_nodes_are_listed(nodes: Nodes, capsys: Capture) -> None:
    rows = await as_json(capsys, "list")
    assert [(row["node"], row["shards"], row["state"]) for row in rows] == [
        (1, 25, "serving"),
        (2, 25, "serving"),
    ]
    assert [row["address"] for row in rows] == [node.bootstrap for node in nodes.by_id.values()]
    assert sum(row["controller"] for row in rows) == 1
    code, out, _ = await command(capsys, "list")
    assert code == 0
    assert out.split()[:6] == ["NODE", "ADDRESS", "VERSION", "SHARDS", "LOAD", "STATE"]
    assert "serving, controller" in out


async def test_shards_are_listed_and_found_by_group(nodes: Nodes, capsys: Capture) -> None:
    rows = await as_json(capsys, "shards")
    assert [row["shard"] for row in rows] == list(range(50))
    owners = nodes.by_id[1].map
    assert owners is not None
    assert [row["node"] for row in rows] == list(owners.owners)
    [row] = await as_json(capsys, "shards", "--group", "billing")
    assert row["shard"] == partition_for("billing")
    code, out, _ = await command(capsys, "shards")
    assert (code, len(out.splitlines())) == (0, 51)


async def test_a_node_is_drained_and_gets_its_share_again(nodes: Nodes, capsys: Capture) -> None:
    rows = await as_json(capsys, "drain", "2")
    assert [(row["shards"], row["state"]) for row in rows] == [(50, "serving"), (0, "drained")]
    code, _, err = await command(capsys, "drain", "1")
    assert (code, err) == (1, "ringleader: Node 1 cannot be drained: no other node could take its shards.\n")
    code, _, err = await command(capsys, "move", "0", "2")
    assert (code, err) == (1, "ringleader: Node 2 takes no shards: it is drained or leaving.\n")
    rows = await as_json(capsys, "drain", "2", "--undo")
    assert [(row["shards"], row["state"]) for row in rows] == [(25, "serving"), (25, "serving")]
    # The node that gives up learns of the map by itself, perhaps after the node that takes over.
    await until(lambda: [len(node.runtime.serving) for node in nodes.by_id.values()] == [25, 25])


async def test_a_shard_is_moved_and_stays(nodes: Nodes, capsys: Capture) -> None:
    [before] = await as_json(capsys, "shards", "--group", "billing")
    heir = 3 - before["node"]
    await as_json(capsys, "move", str(before["shard"]), str(heir))
    [after] = await as_json(capsys, "shards", "--group", "billing")
    assert (after["node"], after["pinned"]) == (heir, True)
    await until(lambda: before["shard"] in nodes.by_id[heir].runtime.serving)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["drain", "7"], 2, "There is no node 7; there are 1, 2."),
        (["move", "0", "7"], 2, "There is no node 7; there are 1, 2."),
        (["move", "50", "1"], 2, "There is no shard 50; they go from 0 to 49."),
        (["list", "--cluster", "nonsense:port"], 2, "--cluster: not an address of the form HOST:PORT"),
        (["list", "--cluster-group-id", "nobody"], 1, "There are no nodes: group nobody at"),
    ],
)
async def test_wrong_input_is_one_sentence(
    nodes: Nodes, capsys: Capture, arguments: list[str], code: int, says: str
) -> None:
    found, out, err = await command(capsys, *arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"ringleader: {says}")
    assert len(err.splitlines()) == 1


def test_without_a_cluster_it_says_what_is_needed(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RINGLEADER_CLUSTER", raising=False)
    assert run(["nodes", "list"]) == 2
    assert capsys.readouterr().err == (
        "ringleader: --cluster is needed: brokers of the Kafka cluster, HOST:PORT.\n"
    )
