"""Several Apache Kafka brokers on this machine that make one cluster: KRaft, each broker and controller."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.kafka import TEST_JVM, KafkaBroker, fresh_cluster_id
from tests.interop.maven import InteropError

PROPERTIES = {
    # A broker that is killed or paused is out of the cluster after a second, not after nine.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.threads": "1",
}
"""Over `TEST_PROPERTIES`, and under what a test asks for."""

_ATTEMPTS = 3


class KafkaCluster:
    """`with KafkaCluster(directory) as cluster:` or `start` and `stop`. Brokers are called by their node id,
    1 to `brokers`; each has its files in a directory of its own, and keeps its ports.

    Internal topics have as many replicas as there are brokers, three at most, and a minimum in sync of one
    less: with three, one may be missing. `listeners`, `advertise`: see `KafkaBroker`; the latter also gets
    the node whose listener it is.
    """

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
        jvm: Sequence[str] = TEST_JVM,
        cpus: Sequence[int] | None = None,
        listeners: Mapping[str, str] | None = None,
        advertise: Callable[[int, str, int], int] | None = None,
    ) -> None:
        self.directory = directory
        self._properties = dict(properties or {})
        self._racks = racks or {}
        self._jvm = jvm
        self._cpus = cpus
        self._listeners = listeners
        self._advertise = advertise
        self._ids = range(1, brokers + 1)
        self.brokers: dict[int, KafkaBroker] = {}

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of all brokers, comma-separated."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self) -> None:
        """Start all brokers and wait until they serve. Raises `InteropError`."""
        if self.brokers:
            self._all(KafkaBroker.start)
            return
        for attempt in range(_ATTEMPTS):
            self.brokers = self._made()
            try:
                self._all(KafkaBroker.start)
                return
            except InteropError:
                self._all(KafkaBroker.kill)
                if attempt == _ATTEMPTS - 1:
                    raise

    def stop(self) -> None:
        """SIGTERM to all that run, and wait for their end."""
        for broker in self.brokers.values():
            if broker.running:
                os.kill(broker.pid, signal.SIGCONT)
        self._all(KafkaBroker.stop)

    def stop_one(self, broker: int) -> None:
        """SIGTERM: it hands its partitions over first."""
        self.brokers[broker].stop()

    def kill(self, broker: int) -> None:
        """SIGKILL."""
        self.brokers[broker].kill()

    def restart(self, broker: int) -> None:
        """Start it again, stopping it before if it runs; wait until it serves. Raises `InteropError`."""
        self.brokers[broker].stop()
        self.brokers[broker].start()

    def pause(self, broker: int) -> None:
        """SIGSTOP."""
        os.kill(self.brokers[broker].pid, signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """SIGCONT."""
        os.kill(self.brokers[broker].pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _made(self) -> dict[int, KafkaBroker]:
        """With ports that are free at the moment. All are formatted before one starts, as a quorum needs."""
        count = len(self._ids)
        replicas = min(count, 3)
        in_sync = max(1, replicas - 1)
        cluster_id = fresh_cluster_id()
        made = {
            node_id: KafkaBroker(
                self.directory / f"broker-{node_id}",
                properties={
                    **PROPERTIES,
                    "node.id": str(node_id),
                    "offsets.topic.replication.factor": str(replicas),
                    "transaction.state.log.replication.factor": str(replicas),
                    "transaction.state.log.min.isr": str(in_sync),
                    "share.coordinator.state.topic.replication.factor": str(replicas),
                    "share.coordinator.state.topic.min.isr": str(in_sync),
                    **({"broker.rack": self._racks[node_id]} if node_id in self._racks else {}),
                    **self._properties,
                },
                jvm=self._jvm,
                cpus=self._cpus,
                cluster_id=cluster_id,
                listeners=self._listeners,
                advertise=None if self._advertise is None else partial(self._advertise, node_id),
            )
            for node_id in self._ids
        }
        for broker in made.values():
            broker.choose_ports()
        voters = ",".join(f"{node_id}@{broker.controller}" for node_id, broker in made.items())
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda broker: broker.format(voters), made.values()))
        return made

    def _all(self, do: Callable[[KafkaBroker], None]) -> None:
        """At once: a broker serves only when a majority of the controllers is there."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(do, self.brokers.values()))
