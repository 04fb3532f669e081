"""How long a cooperative group takes to give a second consumer its partitions, and how long nobody has them.

The first consumer reads alone until its heartbeats come at their own pace; then a second one of the same
library joins. Default settings of each library, but for the assignor where another one is its default.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bench.brokers import brokers
from bench.plan import KAFKA, RINGLEADER, TOPIC, Plan
from bench.processes import Pins, daemon, work_dir
from bench.report import Goal, median, print_goals, save, say, table

OURS, LIBRDKAFKA = "GroupConsumer", "confluent-kafka"
PARTITIONS = 8
PATIENCE_S = 60.0
ROUNDS_LIMIT_S = 0.045
HEARTBEAT_S = 3.0
"""The default of both libraries: the first consumer may hear of the second only after this time."""


class Member:
    """A consumer that says what it has. `assigned` and `given_up`: when it last got and gave up some."""

    def __init__(self) -> None:
        self.has: set[int] = set()
        self.assigned_s = self.given_up_s = 0.0

    def got(self, partitions: list[int]) -> None:
        """These came."""
        if partitions:
            self.has |= set(partitions)
            self.assigned_s = time.perf_counter()

    def lost(self, partitions: list[int]) -> None:
        """These went."""
        if partitions:
            self.has -= set(partitions)
            self.given_up_s = time.perf_counter()


async def ours(bootstrap: str, group: str, member: Member, stop: threading.Event) -> None:
    """A `GroupConsumer` that runs until it is stopped."""
    from ringleader import GroupConsumer

    async with GroupConsumer(
        bootstrap,
        group,
        [TOPIC],
        assignors=["cooperative-sticky"],
        on_assigned=lambda partitions: member.got([number for _, number in partitions]),
        on_revoked=lambda partitions: member.lost([number for _, number in partitions]),
    ) as consumer:
        while not stop.is_set():
            await consumer.getmany(timeout_s=0.05)


def librdkafka(bootstrap: str, group: str, member: Member, stop: threading.Event) -> None:
    """A confluent-kafka consumer that runs until it is stopped."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    consumer.subscribe(
        [TOPIC],
        on_assign=lambda _consumer, partitions: member.got([one.partition for one in partitions]),
        on_revoke=lambda _consumer, partitions: member.lost([one.partition for one in partitions]),
    )
    while not stop.is_set():
        consumer.poll(0.05)
    consumer.close()


def _run(library: str, bootstrap: str, group: str, member: Member, stop: threading.Event) -> None:
    if library == OURS:
        asyncio.run(ours(bootstrap, group, member, stop))
    else:
        librdkafka(bootstrap, group, member, stop)


def _until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the group does not settle")
        time.sleep(0.0005)


def hand_over(library: str, bootstrap: str, settled_s: float) -> dict[str, float]:
    """One round: seconds until the second has its half, from its start and from when the first learns of it;
    and seconds in which nobody had what moved."""
    group, stop = f"handover-{uuid.uuid4().hex[:8]}", threading.Event()
    first, second = Member(), Member()
    threads = [
        threading.Thread(target=_run, args=(library, bootstrap, group, member, stop))
        for member in (first, second)
    ]
    try:
        threads[0].start()
        _until(lambda: len(first.has) == PARTITIONS)
        # Not always at the same point of the first one's heartbeats.
        time.sleep(settled_s + random.uniform(0, HEARTBEAT_S) * bool(settled_s))
        began_s = time.perf_counter()
        threads[1].start()
        _until(lambda: len(second.has) == PARTITIONS // 2)
        without_owner_s = second.assigned_s - first.given_up_s
    finally:
        stop.set()
        for thread in threads:
            with suppress(RuntimeError):  # it was not started
                thread.join()
    return {"whole": second.assigned_s - began_s, "without owner": without_owner_s}


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes handover.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    with (
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{PARTITIONS}"]) as server,
        brokers(
            [name for name in plan.brokers if name == KAFKA],
            directory,
            pins.server,
            partitions=PARTITIONS,
            warmup_s=0,
        ) as found,
    ):
        addresses = {RINGLEADER: server.bootstrap}
        addresses |= {name: "{}:{}".format(*one.address) for name, one in found.running.items()}
        for broker, bootstrap in addresses.items():
            results[broker] = {OURS: [], LIBRDKAFKA: []}
            for number in range(plan.rounds + 1):
                for library, rounds in results[broker].items():
                    one = hand_over(library, bootstrap, plan.handover_settled_s)
                    words = ", ".join(f"{what} {seconds * 1000:.0f} ms" for what, seconds in one.items())
                    say(f"  {broker}, round {number}, {library}: {words}")
                    if number:  # the first round warms up
                        rounds.append(one)
        about = found.to_dict()
    medians = {
        broker: {
            library: {what: median(one[what] for one in rounds) for what in rounds[0]}
            for library, rounds in libraries.items()
        }
        for broker, libraries in results.items()
    }
    ratio = medians[RINGLEADER][OURS]["without owner"]
    goals = [
        Goal(
            "a cooperative hand-over: without an owner",
            f"a limit of {ROUNDS_LIMIT_S * 1000:.0f} ms",
            ratio / ROUNDS_LIMIT_S,
            1.0,
            is_time=True,
        )
    ]
    rows = [
        [f"{library} on {broker}", values["whole"] * 1000, values["without owner"] * 1000]
        for broker, libraries in medians.items()
        for library, values in libraries.items()
    ]
    table("Hand-over of half the partitions (medians)", ["consumers", "whole, ms", "without owner, ms"], rows)
    print_goals(goals)
    whole = {"results": results, "medians": medians, **about}
    save(plan.out_dir, "handover", whole, goals)
    return whole
