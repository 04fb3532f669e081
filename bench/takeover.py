"""How long it takes until another node serves a million committed offsets, when the node that had them all is
killed.

Two nodes on three brokers: one has all groups, the other was drained, so that it has none and takes all. The
time is from the kill to the answer of the last of the groups, one of each partition of groups, as seen by a
client that asks the heir all the time. The one that was killed comes back between rounds, and gets all again.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import Any

from bench.failover import PROPERTIES
from bench.plan import KAFKA, TOPIC, Plan
from bench.processes import resident_bytes, work_dir
from bench.replay import PARTITIONS, check, commit_all, group_of, last_offset
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.coordinator.groups.routing import partition_for
from ringleader.protocol.errors import MalformedError
from tests.chaos import asking
from tests.chaos.targets import NODES_GROUP, ringleader_nodes
from tests.interop.kafka import VERSION
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.rawclient import ConnectionClosedError, RawConnection

OWNER, HEIR = 1, 2
LIMIT_S = 10.0
"""The goal for a million offsets."""
SERVED_S = 120.0
ASK_S = 0.01


def served(address: str, groups: list[str], since_s: float) -> tuple[float, float]:
    """The seconds until the first and the last of these groups answer there. Raises ``TimeoutError``."""
    waiting, first_s = list(groups), 0.0
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(RawConnection(address, timeout_s=SERVED_S))
        while waiting:
            group = waiting[0]
            try:
                offset = last_offset(connection, group)
            except (ConnectionClosedError, MalformedError, OSError):
                connection = stack.enter_context(RawConnection(address, timeout_s=SERVED_S))
                continue
            now_s = time.monotonic() - since_s
            if offset is None:
                if now_s > SERVED_S:
                    raise TimeoutError(f"{len(waiting)} partitions of groups not served in {SERVED_S:.0f} s")
                waiting.append(waiting.pop(0))
                time.sleep(ASK_S)
                continue
            check(group, offset)
            first_s = first_s or now_s
            waiting.pop(0)
    return first_s, time.monotonic() - since_s


def _owns_all(brokers: str) -> bool:
    found = asking.cluster_map(brokers, NODES_GROUP)
    return found is not None and set(found.owners) == {OWNER} and len(found.nodes) == 2


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes takeover.json, returns its content. Raises `InteropError`."""
    rounds: list[dict[str, float]] = []
    groups = {partition_for(name): name for name in map(group_of, range(plan.offsets // PARTITIONS))}
    samples = list(groups.values())
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(work_dir(plan.data_dir))
        say(f"takeover: {KAFKA} {VERSION}, three brokers; two nodes")
        cluster = stack.enter_context(KafkaCluster(directory / "kafka", properties=PROPERTIES, jvm=plan.jvm))
        asking.create_topic(cluster.bootstrap, TOPIC, PARTITIONS, 1, 1)
        nodes = stack.enter_context(ringleader_nodes(directory, cluster, (OWNER, HEIR)))
        command = [sys.executable, "-m", "ringleader", "nodes", "drain", str(HEIR)]
        subprocess.run([*command, "--cluster", cluster.bootstrap], check=True, capture_output=True)
        owner, heir = nodes[OWNER], nodes[HEIR]
        asking.until(lambda: _owns_all(cluster.bootstrap), "one node has all")
        asking.await_groups(owner.bootstrap, samples)
        say(f"  committing {plan.offsets:,} offsets")
        commit_all(owner.bootstrap, plan.offsets)
        for number in range(plan.rounds):
            if number:
                owner.start()
                asking.until(lambda: _owns_all(cluster.bootstrap), "one node has all again", SERVED_S)
                asking.await_groups(owner.bootstrap, samples)
            since_s = time.monotonic()
            owner.kill()
            first_s, served_s = served(heir.bootstrap, samples, since_s)
            rounds.append({"first_s": first_s, "served_s": served_s})
            say(f"  round {number + 1}: first after {first_s:.2f} s, all after {served_s:.2f} s")
        resident = resident_bytes(heir.pid)
    results: dict[str, Any] = {
        "offsets": plan.offsets,
        "first_s": median([one["first_s"] for one in rounds]),
        "served_s": median([one["served_s"] for one in rounds]),
        "resident_mib": resident / 2**20,
        "rounds": rounds,
    }
    rows = [
        ["kill to the first group's answer, s", f"{results['first_s']:.2f}"],
        ["kill to the last group's answer, s", f"{results['served_s']:.2f}"],
        ["resident memory then, MiB", f"{results['resident_mib']:.0f}"],
    ]
    table(f"{plan.offsets:,} offsets taken over (medians)", ["", ""], rows)
    goals = [
        Goal(
            f"{plan.offsets:,} offsets taken over after a kill",
            f"a limit of {LIMIT_S:g} s",
            results["served_s"] / LIMIT_S,
            1.0,
            is_time=True,
        )
    ]
    print_goals(goals)
    whole = {
        "results": results,
        "brokers": {f"{KAFKA}, three brokers": f"{VERSION} (KRaft), {' '.join(plan.jvm)}"},
    }
    save(plan.out_dir, "takeover", whole, goals)
    return whole
