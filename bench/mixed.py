"""Latency of heartbeats while the same daemon receives and sends 100 MB of records each second."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from bench.frames import COUNTER_MARK, Frame, frame, write_frames
from bench.heartbeats import ERROR_AT, heartbeat_frames
from bench.plan import TOPIC, Plan
from bench.processes import Pins, daemon, finish_load, run_load, start_load, work_dir
from bench.report import median, save, say, table
from ringleader.protocol.frames import encode_response
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.records import Record, build_batch
from tests.support.rawclient import address_of
from tests.support.rawgroup import form_group

PARTITIONS = 6
PRODUCE_VERSION, FETCH_VERSION = 8, 11
RECORD_BYTES, RECORDS = 1_000, 64
# 200 members at the clients' default interval of 3 s make 67 heartbeats a second; this is 30 times that.
HEARTBEATS_PER_S = 2_000
# Enough that a heartbeat that is due is sent, however late the answers to former ones are.
OPEN_LOOP_DEPTH = 64


def _batch() -> bytes:
    """One batch of random bytes, so that nothing on the way can shorten it."""
    source = random.Random(3)
    records = [Record(index, 0, None, source.randbytes(RECORD_BYTES), []) for index in range(RECORDS)]
    return build_batch(records)


def _produce(topic: str, partition: int, batch: bytes) -> Frame:
    data = [ProduceRequestPartitionProduceData(index=partition, records=batch)]
    topics = [ProduceRequestTopicProduceData(name=topic, partition_data=data)]
    return frame(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics), PRODUCE_VERSION)


def _fetch(topic: str, partition: int) -> Frame:
    wanted = FetchRequestFetchPartition(
        partition=partition, fetch_offset=COUNTER_MARK, partition_max_bytes=1 << 20
    )
    topics = [FetchRequestFetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=topics)
    return frame(request, FETCH_VERSION)


def _fetch_overhead(topic: str) -> int:
    """Bytes of a Fetch answer for one partition without records."""
    data = FetchResponsePartitionData(partition_index=0, records=b"", aborted_transactions=None)
    topics = [FetchResponseFetchableTopicResponse(topic=topic, partitions=[data])]
    return len(encode_response(FetchResponse(responses=topics), FETCH_VERSION, 0))


def _stream_options(
    port: int, directory: Path, topic: str, mb_per_s: int, seconds: float, warmup_s: float
) -> dict[str, Any]:
    batch = _batch()
    name = len(topic)
    places = range(PARTITIONS)
    return {
        "port": port,
        "produce": write_frames(directory / "produce", [[_produce(topic, place, batch)] for place in places]),
        "fetch": write_frames(directory / "fetch", [[_fetch(topic, place)] for place in places]),
        "batches_per_second": mb_per_s * 1e6 / len(batch),
        "batch_bytes": len(batch),
        "batch_records": RECORDS,
        # Up to the error code: size, correlation id, [throttle time, error, session,] topic count,
        # topic name, partition count, partition index.
        "produce_error_at": 8 + 4 + 2 + name + 4 + 4,
        "fetch_error_at": 8 + 10 + 4 + 2 + name + 4 + 4,
        "fetch_overhead": _fetch_overhead(topic),
        "warmup": warmup_s,
        "seconds": seconds,
    }


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes mixed.json, returns its content."""
    pins = Pins.choose()
    quiet: list[dict[str, Any]] = []
    busy: list[dict[str, Any]] = []
    streams: list[dict[str, Any]] = []
    # A topic for each round: its fetchers follow its producers, and do not catch up on an earlier round.
    logs = [f"traffic-{number}" for number in range(plan.rounds)]
    topics = [f"{TOPIC}:{plan.members}", *(f"{log}:{PARTITIONS}" for log in logs)]
    with work_dir(plan.data_dir) as directory, daemon(directory, pins.server, topics=topics) as server:
        group = form_group(address_of(server.bootstrap), "mixed", plan.members, topic=TOPIC)
        group.close()
        heartbeats = {
            "port": server.port,
            "frames": heartbeat_frames(directory / "frames", group, plan.connections),
            "depth": OPEN_LOOP_DEPTH,
            "rate": HEARTBEATS_PER_S,
            "warmup": plan.warmup_s,
            "seconds": plan.seconds,
            "error_at": ERROR_AT,
            "server_pid": server.pid,
        }
        for number, log in enumerate(logs):
            # The stream starts before the heartbeats are measured and ends after them.
            options = _stream_options(
                server.port, directory, log, plan.mb_per_s, plan.seconds + 0.5, plan.warmup_s
            )
            quiet.append(run_load(pins.load, "load", heartbeats))
            stream = start_load(pins.load, "stream", options)
            busy.append(run_load(pins.load, "load", heartbeats))
            streams.append(finish_load(stream))
            if busy[-1]["errors"] or streams[-1]["errors"]:
                raise RuntimeError(f"answers with errors: {busy[-1]['errors']} {streams[-1]['errors']}")
            say(f"  round {number + 1}: p99 {quiet[-1]['p99_us']:,.0f} us, then {busy[-1]['p99_us']:,.0f} us")
    rows = [
        [name, *(median(one[key] for one in rounds) for key in ("p50_us", "p99_us", "max_us"))]
        for name, rounds in (("nothing else", quiet), (f"{plan.mb_per_s} MB/s in and out", busy))
    ]
    table(f"Heartbeats at {HEARTBEATS_PER_S} a second beside", ["", "p50 us", "p99 us", "max us"], rows)
    say(
        f"  produced {median(one['produced_mb_s'] for one in streams):.0f} MB/s, "
        f"fetched {median(one['fetched_mb_s'] for one in streams):.0f} MB/s; "
        f"Produce p99 {median(one['produce_p99_us'] for one in streams):,.0f} us"
    )
    whole = {
        "heartbeats_per_s": HEARTBEATS_PER_S,
        "goal_mb_per_s": plan.mb_per_s,
        "results": {"quiet": quiet, "busy": busy, "streams": streams},
    }
    save(plan.out_dir, "mixed", whole)
    return whole
