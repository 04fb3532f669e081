"""One run: the cluster, who watches and who writes, many groups at once, and at last a restart for all."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import confluent_kafka

from ringleader.clients.admin import Admin
from tests.incidents import drawn, ledger
from tests.incidents.conclusions import BROKER_LOG, watching
from tests.incidents.ledger import Incident
from tests.incidents.steps import STEPS, restarted, start
from tests.incidents.team import SESSION_MS, Hosts, Looker, Spec, Team, World, now_ms
from tests.interop.kafka import KafkaBroker
from tests.support.daemon import Daemon

KAFKA, RINGLEADER = "kafka", "ringleader"
TARGETS = (KAFKA, RINGLEADER)
WRITE_EVERY_S = 0.4
"""One record into each partition."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
CONSUMER_SETTINGS = {
    "group.consumer.min.session.timeout.ms": str(SESSION_MS),
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1500",
}


class Writer:
    """Records for everybody, so that there is something to commit."""

    def __init__(self, bootstrap: str, teams: Sequence[Team]) -> None:
        # Partitions that are added get records soon, too.
        settings = {"linger.ms": 50, "topic.metadata.refresh.interval.ms": 1_000, "log_level": 3}
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})
        self._teams = teams
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def _write(self) -> None:
        while not self._stop.wait(WRITE_EVERY_S):
            for team in self._teams:
                if not team.live or team.spec.idle:
                    continue
                for topic, partitions in team.partitions.items():
                    for partition in range(partitions):
                        # A partition that was added a moment ago may not be known yet.
                        with contextlib.suppress(confluent_kafka.KafkaException, BufferError):
                            self._producer.produce(topic, b"order", partition=partition)
            self._producer.poll(0)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _cluster(target: str, directory: Path) -> KafkaBroker | Daemon:
    if target == KAFKA:
        return KafkaBroker(
            directory / "broker",
            properties={**SETTINGS, **CONSUMER_SETTINGS},
            keep_log=directory / BROKER_LOG,
        )
    settings = {**SETTINGS, **CONSUMER_SETTINGS}
    words = [word for name, value in settings.items() for word in ("--" + name.replace(".", "-"), value)]
    return Daemon(directory / "daemon", options=[*words, "--log-level", "warning"])


@contextlib.contextmanager
def _hosts(directory: Path) -> Iterator[Hosts]:
    hosts = Hosts(directory)
    try:
        yield hosts
    finally:
        hosts.kill()


async def _live(team: Team, order: random.Random, places: asyncio.Semaphore) -> None:
    steps = list(team.spec.steps)
    order.shuffle(steps)
    async with places:
        if team.spec.drawn:
            await drawn.live(team)
            return
        for step in (start, *(STEPS[step] for step in steps)):
            await step(team)
            if not all(one.settled for one in team.done):
                # The incidents that come next would be judged by the state that this one has left.
                break


async def direct(
    target: str, specs: Sequence[Spec], seed: int, directory: Path, parallel: int, say: Callable[[str], None]
) -> None:
    """Leaves ledger, history and records in `directory`."""
    incidents: list[Incident] = []
    with _cluster(target, directory) as cluster, _hosts(directory) as hosts:
        async with Admin(cluster.bootstrap) as admin, asyncio.TaskGroup() as background:
            looker = Looker(admin)
            world = World(cluster.bootstrap, admin, hosts, looker, incidents, say)
            teams = [Team(spec, world) for spec in specs]
            for team in teams:
                for topic, partitions in team.partitions.items():
                    await admin.create_topic(topic, partitions)
                looker.add(team.group)
            async with watching(cluster.bootstrap, directory):
                looking = background.create_task(looker.run())
                for library in dict.fromkeys(team.spec.library for team in teams):
                    await asyncio.to_thread(hosts.shared, library)
                try:
                    with Writer(cluster.bootstrap, teams):
                        places = asyncio.Semaphore(parallel)
                        async with asyncio.TaskGroup() as group:
                            for team in teams:
                                order = random.Random(f"{seed} {team.group}")
                                group.create_task(_live(team, order, places))
                        await _restart(cluster, teams, incidents, say)
                finally:
                    for one in incidents:
                        one.settled = one.settled and one.ended_ms > 0
                    ledger.write(directory / "ledger.jsonl", incidents)
                looking.cancel()


async def _restart(
    cluster: KafkaBroker | Daemon,
    teams: Sequence[Team],
    incidents: list[Incident],
    say: Callable[[str], None],
) -> None:
    sound = [team for team in teams if team.live and all(done.settled for done in team.done)]
    if not sound:
        return
    say("the broker restarts")
    began_ms = now_ms()
    await asyncio.to_thread(cluster.stop)
    await asyncio.to_thread(cluster.start)
    for team, settled in zip(sound, await asyncio.gather(*(team.rests() for team in sound)), strict=True):
        one = restarted(team, began_ms)
        one.settled, one.ended_ms = settled, now_ms()
        incidents.append(one)


__all__ = ["KAFKA", "RINGLEADER", "TARGETS", "direct"]
