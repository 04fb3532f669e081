"""The targets that a run breaks: Ringleader's nodes on a Kafka cluster, the cluster's own coordinator, or one
daemon alone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ringleader.coordinator.config import Settings
from ringleader.coordinator.groups.routing import partition_for
from tests.chaos import asking
from tests.chaos.clients.common import PARTITIONS, TOPIC
from tests.chaos.network import LinkedNode, Network, listeners
from tests.chaos.schedule import BROKER, CONTROLLER, OWNER, Fault
from tests.interop.kafka import KAFKAS_PARTITIONS, TEST_JVM
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.daemon import Daemon, DaemonError
from tests.support.failing_disk import Faults
from tests.support.links import Links
from tests.support.ports import free_ports

RINGLEADER, KAFKA, SINGLE = "ringleader", "kafka", "single"
NODE, BROKERS = "node", "broker"
"""The layers of which one process at a time is down."""
NODES_GROUP = Settings.model_fields["cluster_group_id"].default
GROUPS_TOPIC = Settings.model_fields["cluster_groups_topic"].default
REPLICAS, IN_SYNC = 3, 2

KAFKA_DEFAULTS = {
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "replica.lag.time.max.ms": "30000",
    **KAFKAS_PARTITIONS,
    "num.network.threads": "3",
    "num.io.threads": "8",
    "group.min.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "3000",
}
"""Settings that `KafkaCluster` has quicker or smaller for tests, as Kafka has them."""


@dataclass(frozen=True, slots=True)
class Victim:
    """A process that can be broken. `start` waits until it serves again."""

    name: str
    layer: str
    kill: Callable[[], object]
    stop: Callable[[], object]
    start: Callable[[], object]
    pid: Callable[[], int]

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid(), signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid(), signal.SIGCONT)


class Node(Daemon):
    """``ringleader serve --cluster``. A traceback does not end the run: `complaints` has it."""

    def __init__(self, directory: Path, brokers: str, node_id: int, options: Sequence[str]) -> None:
        super().__init__(directory, options=options)
        self.tracebacks_expected = True
        self._brokers, self.node_id = brokers, node_id

    def command(self) -> list[str]:
        """Of the next start."""
        return [
            *(sys.executable, "-m", "ringleader", "serve", "--listen", self.bootstrap),
            *("--cluster", self._brokers, "--node-id", str(self.node_id), *self._options),
        ]


class Target:
    """A running cluster. `bootstrap`: whom clients ask; `brokers`: where the logs are. `network`: the links
    through which clients come, if there are any; `disk`: of a single daemon, if it can be made to fail."""

    def __init__(
        self,
        kind: str,
        nodes: Mapping[int, Daemon],
        cluster: KafkaCluster | None,
        network: Network | None = None,
        disk: Faults | None = None,
    ) -> None:
        self.kind, self.nodes, self.cluster = kind, dict(nodes), cluster
        self.network, self.disk = network, disk
        self.addresses = (
            [network.fronts[node_id].address for node_id in nodes]
            if network is not None
            else [node.bootstrap for node in nodes.values()]
            if nodes
            else [broker.bootstrap for broker in cluster.brokers.values()]
            if cluster is not None
            else []
        )
        """The addresses that the readers ask, one by one."""
        self.bootstrap = ",".join(self.addresses)
        self.brokers = self.bootstrap if cluster is None else cluster.bootstrap

    @property
    def own_addresses(self) -> str:
        """The address that the run itself asks, past all links."""
        return ",".join(node.bootstrap for node in self.nodes.values()) or self.bootstrap

    # ---- who is who ----

    def node(self, node_id: int) -> Victim:
        """The process that clients know by that id as a coordinator."""
        if not self.nodes:
            return self.broker(node_id)
        node = self.nodes[node_id]
        return Victim(f"node {node_id}", NODE, node.kill, node.stop, node.start, lambda: node.pid)

    def broker(self, node_id: int) -> Victim:
        """A broker; alone, the daemon is everything."""
        if self.cluster is None:
            return self.node(node_id)
        broker = self.cluster.brokers[node_id]
        return Victim(
            f"broker {node_id}", BROKERS, broker.kill, broker.stop, broker.start, lambda: broker.pid
        )

    def owner(self, group: str) -> int | None:
        """The node that coordinates the group now."""
        return asking.coordinator(self.own_addresses, group)

    def controller(self) -> int | None:
        """The node that gives out groups to nodes; for Kafka's own coordinator the active controller."""
        if self.kind == SINGLE:
            return next(iter(self.nodes))
        if self.kind == KAFKA:
            return asking.quorum_leader(self.brokers)
        found = asking.cluster_map(self.brokers, NODES_GROUP)
        return None if found is None or found.controller not in self.nodes else found.controller

    def state_leader(self, group: str) -> int | None:
        """The broker that leads the partition which keeps the group's state."""
        if self.kind == RINGLEADER:
            return asking.leader(self.brokers, GROUPS_TOPIC, partition_for(group))
        return self.owner(group)

    def victim(self, fault: Fault, groups: Sequence[str]) -> Victim | None:
        """The victim of a fault; None if nobody knows at the moment."""
        group = groups[fault.group % len(groups)]
        if fault.victim == BROKER and self.cluster is not None:
            return self.broker(sorted(self.cluster.brokers)[fault.pick % len(self.cluster.brokers)])
        if fault.victim in (OWNER, BROKER):
            found = self.owner(group)
        elif fault.victim == CONTROLLER:
            found = self.controller()
        else:
            found = self.state_leader(group)
            return None if found is None else self.broker(found)
        return None if found is None else self.node(found)

    # ---- its health ----

    def await_healthy(self, groups: Sequence[str]) -> None:
        """Until all replicas are in sync and each group's coordinator answers. Raises ``TimeoutError``."""
        if self.cluster is not None:
            count = len(self.cluster.brokers)
            asking.until(lambda: asking.all_in_sync(self.brokers, count), "all replicas in sync")
        asking.await_groups(self.own_addresses, groups)

    def complaints(self) -> list[str]:
        """Tracebacks in the nodes' logs, each once."""
        found = []
        for node_id, node in self.nodes.items():
            count = node.log().count("Traceback (most recent call last)")
            if count:
                found.append(f"node {node_id} logged {count} tracebacks: {node.log_path}")
        return found

    def revive(self) -> list[str]:
        """Start the nodes again that are not there; which, and why."""
        found = []
        for node_id, node in self.nodes.items():
            if node.running and node.process.poll() is None:
                continue
            code = f" with exit code {node.wait()}" if node.running else ""
            found.append(f"node {node_id} had ended by itself{code}, and was started again")
            try:
                node.start()
            except DaemonError as error:
                found.append(f"node {node_id}: {str(error).splitlines()[0]}")
        return found


@contextmanager
def target(
    kind: str,
    directory: Path,
    *,
    properties: Mapping[str, str] = KAFKA_DEFAULTS,
    jvm: Sequence[str] = TEST_JVM,
    node_options: Sequence[str] = (),
    nodes: int = 3,
    topics: Collection[str] = (TOPIC,),
    links: Links | None = None,
    failing_disk: bool = False,
) -> Iterator[Target]:
    """All processes of that kind of target, ended at the end. `links`: clients, nodes and brokers are
    connected through these. Raises `InteropError`, `DaemonError`, `NoCompilerError` (for a disk that can be
    made to fail)."""
    network = None if links is None else Network(links)
    if kind == SINGLE:
        with _single(directory / "node-1", topics, node_options, network, failing_disk) as alone:
            yield alone
        return
    ids = range(1, nodes + 1)
    with KafkaCluster(
        directory / "kafka",
        properties=properties,
        jvm=jvm,
        listeners=None if network is None else listeners(ids),
        advertise=None if network is None else network.advertise,
    ) as cluster:
        for topic in topics:
            asking.create_topic(cluster.bootstrap, topic, PARTITIONS, REPLICAS, IN_SYNC)
        if kind == KAFKA:
            yield Target(kind, {}, cluster)
            return
        with ringleader_nodes(directory, cluster, ids, node_options, network) as started:
            yield Target(kind, started, cluster, network)


@contextmanager
def _single(
    directory: Path,
    topics: Collection[str],
    options: Sequence[str],
    network: Network | None,
    failing_disk: bool,
) -> Iterator[Target]:
    [port] = free_ports(1)
    if network is not None:
        options = [*options, "--advertised-address", network.front(1, port).address]
    disk = Faults(directory / "faults") if failing_disk else None
    daemon = Daemon(
        directory,
        topics=[f"{topic}:{PARTITIONS}" for topic in topics],
        options=options,
        environ=None if disk is None else disk.environ(),
    )
    daemon.port, daemon.tracebacks_expected = port, True
    try:
        daemon.start()
        yield Target(SINGLE, {1: daemon}, None, network, disk)
    finally:
        daemon.kill()


@contextmanager
def ringleader_nodes(
    directory: Path,
    cluster: KafkaCluster,
    ids: Sequence[int],
    options: Sequence[str] = (),
    network: Network | None = None,
) -> Iterator[dict[int, Daemon]]:
    """Nodes on that cluster; killed at the end. Raises `DaemonError`."""

    def made(node_id: int) -> Daemon:
        own = directory / f"node-{node_id}"
        if network is not None:
            return LinkedNode(own, node_id, options, network)
        return Node(own, cluster.bootstrap, node_id, options)

    started = {node_id: made(node_id) for node_id in ids}
    try:
        for node in started.values():
            node.start()
        yield started
    finally:
        for node in started.values():
            node.kill()
