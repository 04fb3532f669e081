"""The journal and `__consumer_offsets` of a daemon that is killed: what was written stays, and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kafka

from tests.support.daemon import Daemon
from tests.support.rawclient import address_of
from tests.support.rawgroup import form_group

JOURNAL = "__ringleader_journal"
OFFSETS = "__consumer_offsets"


def _read(daemon: Daemon, topic: str, count: int) -> list[tuple[int, int, bytes | None]]:
    """Partition, offset and value of the first `count` records of a topic, waiting for them."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=daemon.bootstrap, enable_auto_commit=False)
    try:
        partitions = [
            kafka.TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        found: list[tuple[int, int, bytes | None]] = []
        while len(found) < count:
            for some in consumer.poll(timeout_ms=1_000).values():
                found += [(one.partition, one.offset, one.value) for one in some]
        return sorted(found)
    finally:
        consumer.close()


def _journal(daemon: Daemon, count: int) -> list[dict[str, Any]]:
    return [json.loads(value or b"") for _, _, value in _read(daemon, JOURNAL, count)]


def test_a_killed_daemon_goes_on_where_its_journal_ended(tmp_path: Path) -> None:
    options = ["--group-initial-rebalance-delay-ms", "0"]
    with Daemon(tmp_path, topics=["orders:2"], options=options) as daemon:
        form_group(address_of(daemon.bootstrap), "before", 2, topic="orders").close()
        recorded = _journal(daemon, 2)
        while recorded[-1]["group"] != "before" or len(recorded[-1]["members"]) < 2:
            recorded = _journal(daemon, len(recorded) + 1)
        stored = _read(daemon, OFFSETS, 1)
        daemon.kill()
        daemon.start()
        form_group(address_of(daemon.bootstrap), "after", 1, topic="orders").close()
        again = _journal(daemon, len(recorded) + 2)
        assert again[: len(recorded)] == recorded
        rest = [(one.get("event", one["kind"]), one["group"]) for one in again[len(recorded) :]]
        assert rest[0] == ("started", ""), "and no stop before it"
        assert ("rebalance", "after") in rest
        assert set(stored) <= set(_read(daemon, OFFSETS, 2))
