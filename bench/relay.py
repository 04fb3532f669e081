"""The cost of a node's relay: records fetched and produced through it, compared with the same straight from
the brokers.

Three Apache Kafka brokers, and one node before them in a process of its own. The load is a process that looks
at nothing but the offsets of batches. The node's figure that counts is MB per CPU second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import uvloop

from bench.plan import KAFKA, Plan
from bench.processes import Pins, cpu_seconds, pinned, resident_bytes, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.protocol.errors import error_name
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    MetadataRequest,
    MetadataRequestTopic,
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.records import Record, build_batch
from tests.chaos import asking
from tests.interop.kafka import VERSION
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.rawclient import Address, RawConnection, address_of
from tests.support.tied import tied

MB = 1_000_000
SIZES = (100, 1_000, 10_000, 200_000)
"""Bytes of one record's value."""
BATCH_BYTES = 100_000
"""Of a batch of small records; a large one is a batch by itself."""
PARTITIONS = 6
FETCH_ONE, FETCH_ALL, PRODUCE = "fetch one", "fetch all", "produce"
KINDS = (FETCH_ONE, FETCH_ALL, PRODUCE)
"""Fetch of one partition, thus of one leader; of all partitions, whose leaders are three; Produce."""
PROPERTIES = {"broker.session.timeout.ms": "120000", "controller.quorum.fetch.timeout.ms": "20000"}
"""The brokers share the load's processor: nobody must take one for dead."""
FETCH_VERSION, PRODUCE_VERSION, METADATA_VERSION = 12, 9, 9
FETCH_MAX_BYTES = 50 * 2**20
PARTITION_MAX_BYTES = 2**20
"""As a Java consumer asks."""
FETCH_GOAL_MB = 150.0
"""MB a second of a core that the relay has to reach for Fetch."""


def topic_of(size: int) -> str:
    """The topic with records of that size."""
    return f"bytes-{size}"


# ---- the load: a process of its own ----


def leaders(bootstrap: str, topic: str) -> dict[Address, list[int]]:
    """Partitions by the address that leads them."""
    with RawConnection(address_of(bootstrap)) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        answer = connection.call(request, METADATA_VERSION)
    where = {one.node_id: (one.host, one.port) for one in answer.brokers}
    found: dict[Address, list[int]] = {}
    for one in answer.topics[0].partitions:
        found.setdefault(where[one.leader_id], []).append(one.partition_index)
    return found


def next_offset(records: memoryview) -> int | None:
    """The offset after the last whole batch; None when there is none."""
    found = None
    position = 0
    while len(records) - position >= 61:
        base, length = struct.unpack_from(">qi", records, position)
        stop = position + 12 + length
        if stop > len(records):
            break
        (last_delta,) = struct.unpack_from(">i", records, position + 23)
        found = base + last_delta + 1
        position = stop
    return found


class FetchLoad:
    """One connection that fetches partitions from their beginning, over and over, until the time is over."""

    def __init__(self, address: Address, topic: str, partitions: Sequence[int], together: bool) -> None:
        self._socket = socket.create_connection(address)
        self._buffer = memoryview(bytearray(64 * 2**20))
        self._topic = topic
        self._offsets = dict.fromkeys(partitions, 0)
        self._together = together
        self._turn = 0
        self.bytes = 0
        self.answers = 0

    def ask(self) -> None:
        """Send a Fetch of all partitions or, in turn, of one."""
        partitions = list(self._offsets)
        if not self._together:
            partitions = [partitions[self._turn % len(partitions)]]
        # As clients do, so that every partition has its turn.
        partitions = partitions[self._turn % len(partitions) :] + partitions[: self._turn % len(partitions)]
        self._turn += 1
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=FETCH_MAX_BYTES,
            session_epoch=-1,
            topics=[
                FetchRequestFetchTopic(
                    self._topic,
                    partitions=[
                        FetchRequestFetchPartition(
                            one, -1, self._offsets[one], partition_max_bytes=PARTITION_MAX_BYTES
                        )
                        for one in partitions
                    ],
                )
            ],
        )
        self._socket.sendall(encode_request(request, FETCH_VERSION, self._turn, "bench"))

    def take(self) -> None:
        """Receive the answer."""
        size = int.from_bytes(self._receive(4), "big")
        response: Any = decode_response(FetchResponse, self._receive(size), FETCH_VERSION)[1]
        for topic in response.responses:
            for one in topic.partitions:
                if one.error_code:
                    raise RuntimeError(f"Fetch: {error_name(one.error_code)}")
                after = next_offset(one.records)
                if after is not None:
                    self.bytes += len(one.records)
                    self._offsets[one.partition_index] = after
                elif self._offsets[one.partition_index] >= one.high_watermark:
                    self._offsets[one.partition_index] = 0
        self.answers += 1

    def _receive(self, size: int) -> memoryview:
        room = self._buffer[:size]
        have = 0
        while have < size:
            count = self._socket.recv_into(room[have:])
            if not count:
                raise RuntimeError("the connection was closed")
            have += count
        return room


class ProduceLoad:
    """One connection that produces batches to partitions in turn."""

    def __init__(self, address: Address, topic: str, partitions: Sequence[int], batch: bytes) -> None:
        self._socket = socket.create_connection(address)
        self._partitions = list(partitions)
        self._topic = topic
        self._batch = batch
        self._turn = 0
        self.bytes = 0
        self.answers = 0

    def ask(self) -> None:
        """Send a batch."""
        self._turn += 1
        partition = self._partitions[self._turn % len(self._partitions)]
        data = ProduceRequestTopicProduceData(
            self._topic, partition_data=[ProduceRequestPartitionProduceData(partition, self._batch)]
        )
        request = ProduceRequest(None, 1, 30_000, [data])
        self._socket.sendall(encode_request(request, PRODUCE_VERSION, self._turn, "bench"))

    def take(self) -> None:
        """Receive the answer."""
        size = int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL), "big")
        self._socket.recv(size, socket.MSG_WAITALL)
        self.bytes += len(self._batch)
        self.answers += 1


def batch_of(size: int) -> bytes:
    """Records of that size that do not compress."""
    chance = random.Random(size)
    now_ms = int(time.time() * 1000)  # what is old is deleted
    records = [
        Record(offset, now_ms, b"k", chance.randbytes(size))
        for offset in range(max(1, BATCH_BYTES // (size + 20)))
    ]
    return build_batch(records)


def load(kind: str, bootstrap: str, size: int, seconds: float) -> dict[str, float]:
    """Fetch or produce with a connection to each leader, one request under way on each."""
    topic = topic_of(size)
    connections: list[Any] = []
    for address, partitions in leaders(bootstrap, topic).items():
        if kind == PRODUCE:
            connections.append(ProduceLoad(address, topic, partitions, batch_of(size)))
        else:
            connections.append(FetchLoad(address, topic, partitions, kind == FETCH_ALL))
    for one in connections:
        one.ask()
    start_s, until_s = time.perf_counter(), time.perf_counter() + seconds
    while time.perf_counter() < until_s:
        for one in connections:
            one.take()
            one.ask()
    for one in connections:
        one.take()
    total = sum(one.bytes for one in connections)
    return {
        "bytes": total,
        "seconds": time.perf_counter() - start_s,
        "answers": sum(one.answers for one in connections),
    }


# ---- the node: a process of its own ----


async def serve(bootstrap: str, count: int) -> None:
    """Nodes that pass on; their addresses on standard output, until standard input ends."""
    from tests.support.relayed import relaying  # not in the processes that are the load, one after the other

    async with relaying(bootstrap, count) as nodes:
        print(",".join(node.bootstrap for node in nodes), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextlib.contextmanager
def node(cpu: int, bootstrap: str) -> Iterator[tuple[str, int]]:
    """One node: its address and process id."""
    command = [sys.executable, "-m", "bench.relay", "serve", bootstrap]
    process = tied(
        subprocess.Popen(pinned(cpu, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError("the node did not start")
        yield address, process.pid
    finally:
        process.communicate()


# ---- the benchmark ----


def _run_load(pins: Pins, kind: str, bootstrap: str, size: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.relay", kind, bootstrap, str(size), str(seconds)]
    done = subprocess.run(pinned(pins.load, command), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr.strip()}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _fill(pins: Pins, bootstrap: str, seconds: float) -> None:
    with RawConnection(address_of(bootstrap)) as connection:
        topics = [CreateTopicsRequestCreatableTopic(topic_of(size), PARTITIONS, 1) for size in SIZES]
        for topic in connection.call(CreateTopicsRequest(topics, timeout_ms=30_000), 4).topics:
            if topic.error_code:
                raise RuntimeError(f"CreateTopics: {error_name(topic.error_code)}")
    for size in SIZES:
        asking.until(partial(_is_led, bootstrap, size), "leaders")
        _run_load(pins, PRODUCE, bootstrap, size, seconds)


def _is_led(bootstrap: str, size: int) -> bool:
    with RawConnection(address_of(bootstrap)) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic_of(size))])
        [topic] = connection.call(request, METADATA_VERSION).topics
    return bool(topic.partitions) and all(one.leader_id >= 0 for one in topic.partitions)


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes relay.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    say(f"relay: three brokers, one node, records of {', '.join(map(str, SIZES))} bytes")
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        KafkaCluster(directory / "kafka", properties=PROPERTIES, jvm=plan.jvm, cpus=[pins.load]) as cluster,
        node(pins.server, cluster.bootstrap) as (address, pid),
    ):
        straight = cluster.bootstrap.partition(",")[0]
        _fill(pins, straight, 2 * plan.seconds)
        for kind in KINDS:
            for size in SIZES:
                rounds = []
                for _ in range(plan.rounds):
                    direct = _run_load(pins, kind, straight, size, plan.seconds)
                    before_s = cpu_seconds(pid)
                    relayed = _run_load(pins, kind, address, size, plan.seconds)
                    spent_s = cpu_seconds(pid) - before_s
                    rounds.append(
                        {
                            "direct_mb_s": direct["bytes"] / direct["seconds"] / MB,
                            "relayed_mb_s": relayed["bytes"] / relayed["seconds"] / MB,
                            "mb_per_cpu_s": relayed["bytes"] / max(spent_s, 0.01) / MB,
                            "kb_per_answer": relayed["bytes"] / relayed["answers"] / 1000,
                        }
                    )
                found = {key: median(one[key] for one in rounds) for key in rounds[0]}
                results[f"{kind}, {size:,} bytes"] = found
                say(
                    f"  {kind}, {size:,} bytes: {found['relayed_mb_s']:,.0f} MB/s through the node, "
                    f"{found['direct_mb_s']:,.0f} without it"
                )
        resident = resident_bytes(pid)
    rows = [[name, *found.values()] for name, found in results.items()]
    table("Relay", ["", "direct MB/s", "relayed MB/s", "MB per CPU s", "kB per answer"], rows)
    goals = [
        Goal(
            f"relay: {name}, MB per CPU second",
            f"{FETCH_GOAL_MB:g} MB",
            found["mb_per_cpu_s"] / FETCH_GOAL_MB,
            1.0,
        )
        for name, found in results.items()
        if not name.startswith(PRODUCE)
    ]
    print_goals(goals)
    result = {
        "results": results,
        "resident_mb": resident / MB,
        "brokers": {f"{KAFKA}, three brokers": VERSION},
    }
    save(plan.out_dir, "relay", result, goals)
    return result


def main(arguments: Sequence[str]) -> None:
    """A process of the benchmark."""
    kind, bootstrap, *more = arguments
    if kind == "serve":
        uvloop.run(serve(bootstrap, 1))
    else:
        print(json.dumps(load(kind, bootstrap, int(more[0]), float(more[1]))))


if __name__ == "__main__":
    main(sys.argv[1:])
