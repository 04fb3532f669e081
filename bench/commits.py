"""Durable commits per second, with the sync calls counted from outside the daemon."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

from bench.build import LOAD_SOURCES, preload
from bench.filesystem import refuse_memory
from bench.frames import COUNTER_MARK, deal, frame, write_frames
from bench.heartbeats import DAEMON, YARDSTICK, heartbeat_frames
from bench.heartbeats import ERROR_AT as HEARTBEAT_ERROR_AT
from bench.peers import Peer, in_turn, summary
from bench.plan import DEPTHS, TOPIC, Plan
from bench.processes import Pins, daemon, work_dir, yardstick
from bench.report import Goal, print_goals, save, say, table
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.rawclient import address_of
from tests.support.rawgroup import FormedGroup, form_group

VERSION = 7
# An OffsetCommit v7 answer with one partition ends with that partition's error code.
ERROR_AT = -2
GOAL = 0.15
COUNTERS = ("fsync", "fdatasync", "sync_file_range", "msync")


def commit_frames(path: Path, group: FormedGroup, connections: int) -> Path:
    """A file with a commit of one partition by each member; the offset grows with each sending."""
    frames = [
        frame(
            OffsetCommitRequest(
                group_id=group.group_id,
                generation_id_or_member_epoch=group.generation,
                member_id=member.member_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name=TOPIC,
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=member.index,
                                committed_offset=COUNTER_MARK,
                                committed_metadata="",
                            )
                        ],
                    )
                ],
            ),
            VERSION,
        )
        for member in group.members
    ]
    return write_frames(path, deal(frames, connections))


class SyncCounts:
    """The counters that bench/load/synccount.c, preloaded into the daemon, keeps in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_bytes(bytes(8 * len(COUNTERS)))

    def environ(self) -> dict[str, str]:
        """The environment in which the daemon counts."""
        library = preload(LOAD_SOURCES / "synccount.c")
        return {**os.environ, "LD_PRELOAD": str(library), "RINGLEADER_SYNC_COUNTS": str(self._path)}

    def read(self) -> dict[str, int]:
        """Calls so far."""
        return dict(zip(COUNTERS, struct.unpack(f"={len(COUNTERS)}Q", self._path.read_bytes()), strict=True))


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes commits.json, returns its content.

    Raises `MemoryFileSystemError`, and `RuntimeError` when there were too few syncs for the answers.
    """
    pins = Pins.choose()
    results: dict[str, Any] = {}
    with work_dir(plan.data_dir) as directory:
        file_system = refuse_memory(directory)
        counts = SyncCounts(directory / "syncs")
        say(f"commits: {plan.members} members, {plan.connections} connections, data on {file_system}")
        with (
            daemon(
                directory, pins.server, topics=[f"{TOPIC}:{plan.members}"], environ=counts.environ()
            ) as server,
            yardstick(pins.server) as (port, pid),
        ):
            group = form_group(address_of(server.bootstrap), "commits", plan.members, topic=TOPIC)
            group.close()
            commits = commit_frames(directory / "commits", group, plan.connections)
            heartbeats = heartbeat_frames(directory / "heartbeats", group, plan.connections)
            peer = Peer(DAEMON, server.port, server.pid, commits, ERROR_AT)
            limit = Peer(YARDSTICK, port, pid, heartbeats, HEARTBEAT_ERROR_AT)
            for depth in DEPTHS:
                peers = [peer, limit] if depth == 1 else [peer]
                before = counts.read()
                rounds = in_turn(peers, depth, plan, pins)
                after = counts.read()
                results[f"depth {depth}"] = {
                    "medians": {name: summary(measured) for name, measured in rounds.items()},
                    "syncs": {name: after[name] - before[name] for name in COUNTERS},
                    "rounds": rounds,
                }
                _check_syncs(results[f"depth {depth}"], plan.connections * depth)
    limit_per_s = results["depth 1"]["medians"][YARDSTICK]["per_s"]
    ratio = results["depth 1"]["medians"][DAEMON]["per_s"] / limit_per_s
    by_cpu = {name: values["per_cpu_s"] for name, values in results["depth 1"]["medians"].items()}
    goals = [Goal(f"durable commits per second, {plan.connections} clients", ratio, GOAL)]
    rows = [
        [
            f"{name}, {depth}",
            *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us")),
            *([result["sync_calls"], f"{result['commits_per_sync']:.1f}"] if name == DAEMON else ["", ""]),
        ]
        for depth, result in results.items()
        for name, values in result["medians"].items()
    ]
    columns = ["server", "per second", "per CPU second", "p50 us", "p99 us", "syncs seen", "commits per sync"]
    table("OffsetCommit v7, one partition, synced (medians); the C server answers heartbeats", columns, rows)
    print_goals(goals)
    cpu_ratio = by_cpu[DAEMON] / by_cpu[YARDSTICK]
    say(f"  the same per CPU second of the servers: {cpu_ratio:.3f}")
    whole = {
        "version": VERSION,
        "cpu_ratio": cpu_ratio,
        "file_system": file_system,
        "pins": {"server": pins.server, "load": pins.load},
        "results": results,
    }
    save(plan.out_dir, "commits", whole, goals)
    return whole


def _check_syncs(result: dict[str, Any], under_way: int) -> None:
    """A sync covers no more commits than were under way: fewer syncs mean that answers came early."""
    answered = sum(one["all_answers"] for one in result["rounds"][DAEMON])
    calls = result["syncs"]["fsync"] + result["syncs"]["fdatasync"]
    if calls * under_way < answered:
        raise RuntimeError(f"{answered} commits were acknowledged, but only {calls} sync calls were seen")
    result["sync_calls"] = calls
    result["commits_per_sync"] = answered / calls
