"""Time from the first JoinGroup of a new group to the last SyncGroup answer."""

from __future__ import annotations

import time
from typing import Any

from bench.plan import TOPIC, Plan
from bench.processes import Pins, cpu_seconds, daemon, work_dir
from bench.report import median, save, say, table
from tests.support.rawclient import address_of
from tests.support.rawgroup import allow_connections, form_group

# Apache Kafka 4.3.0 by the same method on a machine of the same kind (docs/performance.md).
KAFKA_SECONDS = {500: 0.06, 1_000: 0.10, 2_000: 0.20}


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes rebalance.json, returns its content."""
    pins = Pins.choose()
    most = max(plan.rebalance_members)
    results: dict[str, Any] = {}
    allow_connections(2 * most)
    with (
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{most}"]) as server,
    ):
        for count in plan.rebalance_members:
            rounds = []
            for number in range(plan.rounds):
                client_before, server_before = time.process_time(), cpu_seconds(server.pid)
                group = form_group(address_of(server.bootstrap), f"{count}-{number}", count, topic=TOPIC)
                rounds.append(
                    {
                        "seconds": group.seconds,
                        "client_cpu_s": time.process_time() - client_before,
                        "server_cpu_s": cpu_seconds(server.pid) - server_before,
                        "generations": group.generation,
                    }
                )
                group.close()
                say(f"  {count} members, round {number + 1}: {group.seconds:.3f} s")
            results[str(count)] = {"median_s": median(one["seconds"] for one in rounds), "rounds": rounds}
    rows = [
        [
            count,
            f"{result['median_s']:.3f}",
            f"{median(one['server_cpu_s'] for one in result['rounds']):.2f}",
            f"{median(one['client_cpu_s'] for one in result['rounds']):.2f}",
            f"{KAFKA_SECONDS[int(count)]:.2f}" if int(count) in KAFKA_SECONDS else "-",
        ]
        for count, result in results.items()
    ]
    columns = ["members", "seconds", "server CPU s", "client CPU s", "Apache Kafka, seconds"]
    table("First JoinGroup to last SyncGroup answer (medians)", columns, rows)
    whole = {"pins": {"server": pins.server, "load": "any"}, "results": results}
    save(plan.out_dir, "rebalance", whole)
    return whole
