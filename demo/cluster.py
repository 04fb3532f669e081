"""Three Kafka brokers and three nodes in front of them, as processes on this machine.

``python -m demo.cluster`` runs them until Ctrl-C, and says who owns what whenever that changes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from rich.console import Console

from demo import plan
from demo.observe import DemoError
from demo.processes import Cast, ProcessError
from demo.stage import serve
from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import ClientError
from ringleader.coordinator.cluster.map import ClusterMap, MapError
from ringleader.coordinator.cluster.overview import look
from ringleader.coordinator.config import Settings
from tests.interop.kafka_cluster import KafkaCluster
from tests.interop.maven import InteropError

NODES = {1: "node-1", 2: "node-2", 3: "node-3"}
REPLICAS = 3
LOOK_TIMEOUT_S = 30.0
LOOK_INTERVAL_S = 0.5
NODES_GROUP = str(Settings.model_fields["cluster_group_id"].default)


class ThreeNodes:
    """Three brokers of Apache Kafka hold the records; three nodes have the groups."""

    def __init__(self, cast: Cast, directory: Path) -> None:
        self.journals = list(NODES.values())
        self.kafka = KafkaCluster(directory)
        self._cast = cast
        self._addresses: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        """Of all nodes."""
        return ",".join(self._addresses.values())

    async def start(self) -> str:
        """See `Stage`. Raises InteropError when the brokers cannot be started."""
        await self.start_nodes()
        async with Admin(self.bootstrap) as admin:
            await admin.create_topic(plan.TOPIC, plan.PARTITIONS, replication_factor=REPLICAS)
        return self.bootstrap

    async def start_nodes(self) -> None:
        """Brokers and nodes, and no topic."""
        await asyncio.to_thread(self.kafka.start)
        arguments = ["--listen", "127.0.0.1:0", "--cluster", self.kafka.bootstrap, *plan.of_coordinator()]
        found = await asyncio.gather(
            *(serve(self._cast, name, "--node-id", str(one), *arguments) for one, name in NODES.items())
        )
        self._addresses = dict(zip(NODES, found, strict=True))

    async def kill_owner(self, group: str) -> str | None:
        """See `Stage`."""
        async with Cluster(self.bootstrap) as cluster:
            owner = (await cluster.coordinator(group)).node_id
        self._cast.signal(NODES[owner], signal.SIGKILL)
        return NODES[owner]

    async def kill_broker(self) -> str | None:
        """See `Stage`."""
        async with Cluster(self.kafka.bootstrap) as cluster:
            topic = (await cluster.metadata([plan.TOPIC])).topics[plan.TOPIC]
        broker = topic.partitions[0].leader
        await asyncio.to_thread(self.kafka.kill, broker)
        return f"broker-{broker}"

    async def stop(self) -> None:
        """See `Stage`."""
        await asyncio.to_thread(self._cast.stop, *NODES.values())
        if self.kafka.brokers:
            await asyncio.to_thread(self.kafka.stop)


def shares(cluster: ClusterMap) -> str:
    """The owners of all partitions, in one line."""
    parts = []
    for node in cluster.nodes:
        owned = sorted(cluster.owned_by(node.node_id))
        leads = ", controller" if node.node_id == cluster.controller else ""
        parts.append(
            f"node {node.node_id} at {node.host}:{node.port}{leads}: {len(owned)} shards {_runs(owned)}"
        )
    return "\n".join(parts)


def _runs(numbers: list[int]) -> str:
    """0-3 7 9-10"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


async def _show(brokers: str, console: Console) -> None:
    """Say who owns what, at every change."""
    shown = ""
    async with Cluster(brokers) as cluster:
        while True:
            with contextlib.suppress(ClientError, MapError, TimeoutError):
                found = await look(cluster, NODES_GROUP, LOOK_TIMEOUT_S)
                if found is not None and not found.cluster.moving and shares(found.cluster) != shown:
                    shown = shares(found.cluster)
                    console.print(shown + "\n", highlight=False)
            await asyncio.sleep(LOOK_INTERVAL_S)


async def _run(out: Path, console: Console) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with Cast(plan.Places(out)) as cast:
        nodes = ThreeNodes(cast, out / "kafka")
        try:
            console.print("Starting three brokers of Apache Kafka and three nodes")
            await nodes.start_nodes()
            console.print(f"Clients:       {nodes.bootstrap}", highlight=False)
            console.print(f"Kafka brokers: {nodes.kafka.bootstrap}", highlight=False)
            console.print(
                f"Look:          ringleader nodes list --cluster {nodes.kafka.bootstrap}", highlight=False
            )
            console.print(f"Logs:          {out}\nCtrl-C ends everything.\n", highlight=False)
            showing = asyncio.create_task(_show(nodes.kafka.bootstrap, console))
            await stop.wait()
            showing.cancel()
            await asyncio.wait([showing])
        finally:
            console.print("Stopping")
            await nodes.stop()


def main() -> int:
    """Run until Ctrl-C."""
    from demo.director import fresh

    parser = argparse.ArgumentParser(prog="python -m demo.cluster", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=plan.ROOT / "demo" / "out" / "cluster", help="where every process writes"
    )
    out = parser.parse_args().out.resolve()
    console = Console(soft_wrap=True)
    try:
        fresh(out)
        asyncio.run(_run(out, console))
    except (DemoError, ProcessError, InteropError, ClientError) as error:
        console.print(f"The cluster failed: {error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
