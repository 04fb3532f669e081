"""Durable commits per second, with the daemon's sync calls counted from outside, beside real brokers."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.brokers import Broker, Brokers, brokers, kfake, sync_each_commit
from bench.build import LOAD_SOURCES, preload
from bench.filesystem import refuse_memory
from bench.frames import COUNTER_MARK, Frame, deal, frame, write_frames
from bench.heartbeats import ERROR_AT as HEARTBEAT_ERROR_AT
from bench.heartbeats import formed, heartbeat_frames
from bench.peers import Peer, goals_against, in_turn, summary
from bench.plan import DEPTHS, KAFKA, KFAKE, RINGLEADER, TOPIC, YARDSTICK, Plan
from bench.processes import Pins, daemon, work_dir, yardstick
from bench.report import print_goals, save, say, table
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.rawclient import address_of
from tests.support.rawgroup import FormedGroup

VERSION = 7
# An OffsetCommit v7 answer with one partition ends with that partition's error code.
ERROR_AT = -2
KAFKA_SYNCED, KFAKE_SYNCED = f"{KAFKA}, synced", f"{KFAKE}, synced"
# How many times the rate of each peer is wanted. The C server answers heartbeats; Kafka does not sync.
GOALS = {YARDSTICK: 0.15, KAFKA: 1.0}
CPU_GOALS = {KAFKA: 1.0}
COUNTERS = ("fsync", "fdatasync", "sync_file_range", "msync")


def commit_frames(path: Path, group: FormedGroup, connections: int) -> Path:
    """A file with a commit of one partition by each member; the offset grows with each sending."""
    return write_frames(path, deal(commits_of(group), connections))


def commits_of(group: FormedGroup) -> list[Frame]:
    """The same, to be dealt out."""
    return [
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


def _broker_peers(others: Brokers, synced: Broker | None, directory: Path, plan: Plan) -> list[Peer]:
    """Kafka as it is and with a sync of each write; kfake in memory and with a sync of each write."""
    peers = []

    def add(one: Broker, name: str, frames: Path, prepare: Callable[[], None] | None = None) -> None:
        peers.append(Peer(name, one.address[1], one.pid, frames, ERROR_AT, one.warmup_s, prepare))

    def frames(one: Broker, name: str) -> Path:
        group = formed(one.address, "commits", plan.members)
        return commit_frames(directory / f"frames {name}", group, plan.connections)

    if (one := others.running.get(KAFKA)) is not None:
        sent = frames(one, KAFKA)
        add(one, KAFKA, sent, partial(sync_each_commit, one.address, False))
        add(one, KAFKA_SYNCED, sent, partial(sync_each_commit, one.address, True))
    if (one := others.running.get(KFAKE)) is not None:
        add(one, KFAKE, frames(one, KFAKE))
    if synced is not None:
        add(synced, KFAKE_SYNCED, frames(synced, KFAKE_SYNCED))
    return peers


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes commits.json, returns its content.

    Raises `MemoryFileSystemError`, and `RuntimeError` when there were too few syncs for the answers.
    """
    pins = Pins.choose()
    results: dict[str, Any] = {}
    with pins.aside(), work_dir(plan.data_dir) as directory, contextlib.ExitStack() as stack:
        file_system = refuse_memory(directory)
        counts = SyncCounts(directory / "syncs")
        say(f"commits: {plan.members} members, {plan.connections} connections, data on {file_system}")
        topics = [f"{TOPIC}:{plan.members}"]
        server = stack.enter_context(daemon(directory, pins.server, topics=topics, environ=counts.environ()))
        port, pid = stack.enter_context(yardstick(pins.server))
        others = stack.enter_context(
            brokers(
                plan.brokers,
                directory,
                pins.server,
                partitions=plan.members,
                warmup_s=plan.jvm_warmup_s,
                jvm=plan.jvm,
            )
        )
        synced = None
        if KFAKE in others.running:
            synced = stack.enter_context(kfake(directory, pins.server, plan.members, synced=True))
        group = formed(address_of(server.bootstrap), "commits", plan.members)
        commits = commit_frames(directory / "commits", group, plan.connections)
        heartbeats = heartbeat_frames(directory / "heartbeats", group, plan.connections)
        peer = Peer(RINGLEADER, server.port, server.pid, commits, ERROR_AT)
        limit = Peer(YARDSTICK, port, pid, heartbeats, HEARTBEAT_ERROR_AT)
        rivals = _broker_peers(others, synced, directory, plan)
        for depth in DEPTHS:
            peers = [peer, limit, *rivals] if depth == 1 else [peer]
            before = counts.read()
            rounds = in_turn(peers, depth, plan, pins)
            after = counts.read()
            results[f"depth {depth}"] = {
                "medians": {name: summary(measured) for name, measured in rounds.items()},
                "syncs": {name: after[name] - before[name] for name in COUNTERS},
                "rounds": rounds,
            }
            _check_syncs(results[f"depth {depth}"], plan.connections * depth)
    medians = results["depth 1"]["medians"]
    goals = [
        *goals_against(f"durable commits per second, {plan.connections} clients", medians, "per_s", GOALS),
        *goals_against("durable commits per CPU second of the server", medians, "per_cpu_s", CPU_GOALS),
    ]
    rows = [
        [
            f"{name}, {depth}",
            *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us")),
            *((result["sync_calls"], f"{result['commits_per_sync']:.1f}") if name == RINGLEADER else "  "),
        ]
        for depth, result in results.items()
        for name, values in result["medians"].items()
    ]
    columns = ["server", "per second", "per CPU second", "p50 us", "p99 us", "syncs seen", "commits per sync"]
    table("OffsetCommit v7, one partition (medians); the C server answers heartbeats", columns, rows)
    print_goals(goals)
    cpu_ratio = medians[RINGLEADER]["per_cpu_s"] / medians[YARDSTICK]["per_cpu_s"]
    say(f"  to the C server's heartbeats, per CPU second of the servers: {cpu_ratio:.3f}")
    whole = {
        "version": VERSION,
        "cpu_ratio": cpu_ratio,
        "file_system": file_system,
        "pins": {"server": pins.server, "load": pins.load},
        **others.to_dict(),
        "results": results,
    }
    save(plan.out_dir, "commits", whole, goals)
    return whole


def _check_syncs(result: dict[str, Any], under_way: int) -> None:
    """A sync covers no more commits than were under way: fewer syncs mean that answers came early."""
    answered = sum(one["all_answers"] for one in result["rounds"][RINGLEADER])
    calls = result["syncs"]["fsync"] + result["syncs"]["fdatasync"]
    if calls * under_way < answered:
        raise RuntimeError(f"{answered} commits were acknowledged, but only {calls} sync calls were seen")
    result["sync_calls"] = calls
    result["commits_per_sync"] = answered / calls
