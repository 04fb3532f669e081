"""``ringleader nodes``: list, shards, drain, move: the nodes in front of a Kafka cluster."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from ringleader.cli.asking import NOWHERE, security_of, servers_of
from ringleader.cli.common import (
    NONE,
    WRONG_INPUT,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
    utf8,
)

if TYPE_CHECKING:
    from ringleader.clients.connection.cluster import Cluster
    from ringleader.clients.connection.security import ClientSecurity
    from ringleader.coordinator.cluster.overview import Overview
    from ringleader.coordinator.cluster.state import MemberState

TIMEOUT_S = 15.0
MOVE_TIMEOUT_S = 120.0

app = typer.Typer(
    no_args_is_help=True,
    help="Show the nodes in front of a Kafka cluster, and the groups of each. The groups are "
    "spread over shards by their ids; a shard is on one node at a time.\n\n"
    "Examples:\n\n"
    "  ringleader nodes list --cluster k1:9092,k2:9092\n\n"
    "  ringleader nodes shards --cluster k1:9092 --group billing\n\n"
    "  ringleader nodes drain 2 --cluster k1:9092\n\n"
    "  ringleader nodes drain 2 --undo --cluster k1:9092\n\n"
    "  ringleader nodes move 17 3 --cluster k1:9092",
)

ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        parser=utf8,
        envvar="RINGLEADER_CLUSTER",
        metavar="HOST:PORT[,...]",
        help="Brokers of the Kafka cluster, as for `ringleader serve --cluster`.",
    ),
]
NodesGroupOption = Annotated[
    str,
    typer.Option(
        "--cluster-group-id",
        parser=utf8,
        envvar="RINGLEADER_CLUSTER_GROUP_ID",
        metavar="GROUP",
        help="Group whose members are the nodes.",
    ),
]
NODES_GROUP = "__ringleader_nodes"
NodeArgument = Annotated[int, typer.Argument(metavar="NODE", min=0, help="Node id.")]
ShardArgument = Annotated[int, typer.Argument(metavar="SHARD", min=0, help="Shard number.")]

T = TypeVar("T")


class _Nodes(NamedTuple):
    """Where the nodes are looked for."""

    bootstrap: str
    group_id: str
    security: ClientSecurity

    async def look(self, cluster: Cluster) -> Overview:
        """The nodes. Ends the command when there are none."""
        from ringleader.coordinator.cluster.overview import look

        found = await look(cluster, self.group_id, TIMEOUT_S)
        if found is None:
            fail(
                f"There are no nodes: group {self.group_id} at {self.bootstrap} has no members; --cluster "
                "names the Kafka brokers that the nodes were started with."
            )
        return found

    async def wish(self, wanted: MemberState) -> None:
        """Tell the controller."""
        from ringleader.coordinator.cluster.overview import wish

        await wish(self.bootstrap, self.group_id, wanted, self.security, TIMEOUT_S)

    async def until(self, cluster: Cluster, condition: Callable[[Overview], bool], what: str) -> Overview:
        """Wait until this holds. Ends the command when it takes too long."""
        from ringleader.coordinator.cluster.overview import look_until

        try:
            found = await look_until(cluster, self.group_id, condition, MOVE_TIMEOUT_S)
        except TimeoutError:
            fail(f"{what} is not done after {MOVE_TIMEOUT_S:g} s; it goes on: see `ringleader nodes list`.")
        if found is None:
            fail("The nodes are gone.")
        return found


def _ask(
    bootstrap: str,
    group_id: str,
    command_config: Path | None,
    question: Callable[[_Nodes, Cluster], Awaitable[T]],
) -> T:
    """Ask the nodes. An error ends the command with one sentence."""
    from ringleader.clients.connection.cluster import Cluster
    from ringleader.clients.errors import ClientError
    from ringleader.coordinator.cluster.map import MapError

    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    if not bootstrap:
        fail("--cluster is needed: brokers of the Kafka cluster, HOST:PORT.", WRONG_INPUT)
    servers_of(bootstrap, "--cluster")
    _, security = security_of(command_config)

    async def run() -> T:
        async with Cluster(
            bootstrap,
            client_id="ringleader-nodes",
            request_timeout_ms=int(TIMEOUT_S * 1000),
            tls=security.tls,
            sasl=security.sasl,
        ) as cluster:
            await cluster.ready(TIMEOUT_S)
            return await question(_Nodes(bootstrap, group_id, security), cluster)

    try:
        return asyncio.run(run())
    except TimeoutError:
        fail(f"The nodes of group {group_id} did not agree on a map within {TIMEOUT_S:g} s.")
    except (ClientError, MapError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")


def _check_node(found: Overview, node_id: int) -> None:
    nodes = [node.node_id for node in found.cluster.nodes]
    if node_id not in nodes:
        fail(f"There is no node {node_id}; there are {', '.join(map(str, nodes))}.", WRONG_INPUT)


def _node_rows(found: Overview) -> list[dict[str, Any]]:
    cluster = found.cluster
    rows = []
    for node in cluster.nodes:
        state = found.states.get(node.node_id)
        rows.append(
            {
                "node": node.node_id,
                "address": f"{node.host}:{node.port}",
                "version": node.version,
                "shards": len(cluster.owned_by(node.node_id)),
                "load": sum(state.loads.values()) if state is not None else 0,
                "state": "leaving"
                if node.node_id in cluster.leaving
                else "drained"
                if node.node_id in cluster.drained
                else "serving",
                "controller": node.node_id == cluster.controller,
            }
        )
    return rows


def _print_nodes(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("NODE", "ADDRESS", "VERSION", "SHARDS", "LOAD", "STATE", right=("SHARDS", "LOAD"))
    for row in rows:
        state = row["state"] + (", controller" if row["controller"] else "")
        shown.add_row(
            str(row["node"]), row["address"], row["version"], str(row["shards"]), str(row["load"]), state
        )
    console().print(shown)


@app.command("list")
def list_nodes(
    cluster: ClusterOption = "",
    cluster_group_id: NodesGroupOption = NODES_GROUP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the nodes: where they are, how many shards and how much load (members and commits per second) each
    has, and which one is the controller."""
    found = _ask(cluster, cluster_group_id, command_config, lambda nodes, connected: nodes.look(connected))
    _print_nodes(_node_rows(found), as_json)


@app.command("shards")
def shards(
    cluster: ClusterOption = "",
    cluster_group_id: NodesGroupOption = NODES_GROUP,
    command_config: CommandConfigOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", parser=utf8, metavar="GROUP", help="Show only the shard of this consumer group."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the shards with the node that each is on."""
    from ringleader.coordinator.groups.routing import partition_for

    found = _ask(cluster, cluster_group_id, command_config, lambda nodes, connected: nodes.look(connected))
    rows = []
    for shard, owner in enumerate(found.cluster.owners):
        if group is not None and shard != partition_for(group, len(found.cluster.owners)):
            continue
        node, state = found.cluster.node(owner), found.states.get(owner)
        rows.append(
            {
                "shard": shard,
                "node": None if node is None else node.node_id,
                "address": None if node is None else f"{node.host}:{node.port}",
                "load": state.loads.get(shard, 0) if state is not None else 0,
                "moving_to": found.cluster.moving.get(shard),
                "pinned": shard in found.cluster.pinned,
            }
        )
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("SHARD", "NODE", "ADDRESS", "LOAD", "MOVES TO", "PINNED", right=("SHARD", "LOAD"))
    for row in rows:
        moving = row["moving_to"]
        shown.add_row(
            str(row["shard"]),
            NONE if row["node"] is None else str(row["node"]),
            NONE if row["address"] is None else str(row["address"]),
            str(row["load"]),
            NONE if moving is None else str(moving),
            "yes" if row["pinned"] else NONE,
        )
    console().print(shown)


@app.command("drain")
def drain(
    node: NodeArgument,
    cluster: ClusterOption = "",
    cluster_group_id: NodesGroupOption = NODES_GROUP,
    command_config: CommandConfigOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Allow the node to own shards again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Move all shards of a node to the others, a few at a time, and wait for it. It gets none until `--undo`,
    or until it was gone and comes back. A node that is stopped by SIGTERM does this by itself."""
    from ringleader.coordinator.cluster.state import Drain, MemberState

    async def question(nodes: _Nodes, connected: Cluster) -> Overview:
        found = await nodes.look(connected)
        _check_node(found, node)
        others = {one.node_id for one in found.cluster.nodes} - found.cluster.drained - found.cluster.leaving
        if not undo and others <= {node}:
            fail(f"Node {node} cannot be drained: no other node could take its shards.")
        await nodes.wish(MemberState(drains=(Drain(node, not undo),)))

        def done(found: Overview) -> bool:
            return not found.cluster.moving and (undo or not found.cluster.owned_by(node))

        return await nodes.until(connected, done, f"Draining node {node}" if not undo else "The move")

    found = _ask(cluster, cluster_group_id, command_config, question)
    _print_nodes(_node_rows(found), as_json)


@app.command("move")
def move(
    shard: ShardArgument,
    node: NodeArgument,
    cluster: ClusterOption = "",
    cluster_group_id: NodesGroupOption = NODES_GROUP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a shard to a node, and wait for it. It stays there as long as the node does."""
    from ringleader.coordinator.cluster.state import MemberState, Pin

    async def question(nodes: _Nodes, connected: Cluster) -> Overview:
        found = await nodes.look(connected)
        _check_node(found, node)
        if shard >= len(found.cluster.owners):
            last = len(found.cluster.owners) - 1
            fail(f"There is no shard {shard}; they go from 0 to {last}.", WRONG_INPUT)
        if node in found.cluster.drained | found.cluster.leaving:
            fail(f"Node {node} takes no shards: it is drained or leaving.")
        await nodes.wish(MemberState(pins=(Pin(shard, node),)))
        return await nodes.until(
            connected, lambda found: found.cluster.owners[shard] == node, f"Moving shard {shard}"
        )

    found = _ask(cluster, cluster_group_id, command_config, question)
    _print_nodes(_node_rows(found), as_json)
