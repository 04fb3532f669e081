"""One run: workers copy records in transactions; a seed decides what is killed and frozen meanwhile, servers
among it. Every copy has to be there once for readers of committed records."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ringleader.clients.group.settings import GroupProtocol
from tests.chaos.targets import ringleader_nodes
from tests.exactly_once.workers import SESSION_MS, Workers, copied, fill, stand_still
from tests.interop.kafka import KafkaBroker
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.daemon import Daemon

DEEDS = {
    "kill a worker": 5,
    "freeze a worker": 4,
    "add a worker": 2,
    "crash the server": 3,
    "stall the server": 2,
}
"""How often each is drawn."""
MOST_WORKERS = 4
DAEMON_OPTIONS = (
    *("--group-initial-rebalance-delay-ms", "0"),
    *("--group-min-session-timeout-ms", "100"),
    *("--group-consumer-session-timeout-ms", str(SESSION_MS)),
    *("--group-consumer-min-session-timeout-ms", str(SESSION_MS)),
    *("--group-consumer-heartbeat-interval-ms", "300"),
    *("--group-consumer-min-heartbeat-interval-ms", "300"),
)
KAFKA_PROPERTIES = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
}


class Process(Protocol):
    """A server that can be killed and started again."""

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""

    def kill(self) -> None:
        """SIGKILL."""

    def start(self) -> object:
        """On the same port and directory; returns once it serves."""


@dataclass(slots=True)
class Servers:
    """One process that the workers talk to, or several nodes."""

    processes: list[Process]
    replicas: int = 1

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(one.bootstrap for one in self.processes)


@contextmanager
def daemon(directory: Path) -> Iterator[Servers]:
    """Our daemon."""
    with Daemon(directory, options=DAEMON_OPTIONS) as started:
        yield Servers([started])


@contextmanager
def kafka(directory: Path) -> Iterator[Servers]:
    """A broker of Apache Kafka."""
    with KafkaBroker(directory, properties=KAFKA_PROPERTIES) as started:
        yield Servers([started])


@contextmanager
def nodes(directory: Path) -> Iterator[Servers]:
    """Two of our nodes on three brokers of Apache Kafka; the nodes are killed, the brokers are not."""
    options = (*DAEMON_OPTIONS, "--cluster-session-timeout-ms", "3000")
    with (
        KafkaCluster(directory / "brokers") as cluster,
        ringleader_nodes(directory, cluster, (1, 2), options) as started,
    ):
        yield Servers([*started.values()], replicas=3)


TARGETS: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[Servers]]] = {
    "daemon": daemon,
    "kafka": kafka,
    "nodes": nodes,
}


@dataclass(slots=True)
class Outcome:
    """The result of a run."""

    seed: int
    protocol: GroupProtocol
    records: int
    deeds: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Every copy is there once."""
        return not self.lost and not self.doubled

    def __str__(self) -> str:
        what = f"seed {self.seed}, {self.protocol} protocol, {self.records} records: {', '.join(self.deeds)}"
        return what if self.good else f"{what}: LOST {self.lost[:20]}, DOUBLED {self.doubled[:20]}"


def one_run(servers: Servers, seed: int, *, records: int = 600, deeds: int = 4) -> Outcome:
    """A run of its own topics and group; `records`: about so many."""
    chance = random.Random(seed)
    protocol: GroupProtocol = chance.choice(("classic", "consumer"))
    outcome = Outcome(seed, protocol, chance.randint(records // 2, records))
    run = f"r{seed}"
    asyncio.run(fill(servers.bootstrap, run, outcome.records, servers.replicas))
    with Workers(servers.bootstrap, run, protocol) as workers:
        for _ in range(deeds):
            time.sleep(chance.uniform(0, 0.6))  # the moment is drawn, too
            outcome.deeds.append(_deed(servers, workers, chance))
        outcome.lost, outcome.doubled = asyncio.run(copied(servers.bootstrap, run, outcome.records))
    return outcome


def _deed(servers: Servers, workers: Workers, chance: random.Random) -> str:
    """Do one, and return its name."""
    number = chance.choice(list(workers.running))
    place = chance.randrange(len(servers.processes))
    server = servers.processes[place]
    [deed] = chance.choices([*DEEDS], [*DEEDS.values()])
    match deed:
        case "kill a worker":
            workers.kill(number)
            workers.start(number)
        case "freeze a worker":
            seconds = chance.choice((0.5, SESSION_MS / 1000 + 1, SESSION_MS / 1000 + 2))
            workers.freeze(number, seconds)
            return f"{deed} {seconds} s"
        case "add a worker":
            if len(workers.running) == MOST_WORKERS:
                return "nothing"
            workers.start(max(workers.running) + 1)
        case "crash the server":
            server.kill()
            server.start()
        case _:
            seconds = chance.choice((0.3, 1.0, SESSION_MS / 1000 + 0.5))
            stand_still(server.pid, seconds)
            return f"{deed} {seconds} s"
    return deed
