"""The lag of a share group of Apache Kafka, as a watcher measures it and its page tells it."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import confluent_kafka

from ringleader.insight.feed import watcher as watching
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.web import page
from tests.insight.feed.watching import PATIENCE_S
from tests.interop.secured import Secured, make_topics
from tests.support.command import run_command

kafka_admin: Any = import_module("confluent_kafka.admin")
"""Some of its names are not exported to type checkers."""
GROUP, TOPIC, RECORDS, DONE = "queue", "jobs", 20, 7


def _take(bootstrap: str) -> None:
    """A member of the group accepts some records, and leaves."""
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "max.poll.records": 1}
    consumer = confluent_kafka.ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    consumer.subscribe([TOPIC])
    done = 0
    for _ in range(int(PATIENCE_S)):
        for message in consumer.poll(1.0) or ():
            assert message.error() is None, message.error()
            accepted = done < DONE
            done += accepted
            kind = confluent_kafka.AcknowledgeType
            consumer.acknowledge(message, kind.ACCEPT if accepted else kind.RELEASE)
        consumer.commit_sync(timeout=10.0)
        if done == DONE:
            break
    assert done == DONE
    consumer.close()


async def _again() -> AsyncIterator[None]:
    """For what tells nobody: the broker's own count follows acknowledgements, the page looks now and then."""
    while True:
        yield
        await asyncio.sleep(0.1)


async def test_lag_of_a_share_group(secured: Secured, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(watching, "LAGS_EVERY_S", 0.5)
    bootstrap = secured.broker.bootstrap
    await make_topics(bootstrap, {TOPIC: 1})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number))
    assert not producer.flush(PATIENCE_S)
    earliest = kafka_admin.ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=kafka_admin.AlterConfigOpType.SET
    )
    resource = kafka_admin.ConfigResource(
        kafka_admin.ResourceType.GROUP, GROUP, incremental_configs=[earliest]
    )
    admin = kafka_admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)
    await asyncio.to_thread(_take, bootstrap)
    shown = await asyncio.to_thread(run_command, bootstrap, "groups", "describe", GROUP, "--json")
    [shown_row] = json.loads(shown.out)["offsets"]
    # The start moves later than records are done, so it does not tell the lag.
    assert 0 <= shown_row.pop("start") <= DONE
    assert shown_row == {"topic": TOPIC, "partition": 0, "end": RECORDS, "lag": RECORDS - DONE}
    shown = await asyncio.to_thread(run_command, bootstrap, "groups", "describe", GROUP)
    assert shown.out.splitlines()[0].startswith(f"Share group {GROUP}: ")
    assert shown.out.split()[-2:] == [str(RECORDS), str(RECORDS - DONE)]
    async with Watcher(bootstrap, tmp_path / "h.sqlite") as watcher, page(watcher.path) as url:
        async with asyncio.timeout(PATIENCE_S):
            async for _ in _again():
                lags = watcher.history.lag(GROUP)
                if lags and lags[-1].end_offset - (lags[-1].committed or 0) == RECORDS - DONE:
                    break
        assert (lags[-1].topic, lags[-1].partition, lags[-1].end_offset) == (TOPIC, 0, RECORDS)

        def read(path: str) -> bytes:
            with urllib.request.urlopen(f"{url}{path}", timeout=PATIENCE_S) as answer:
                return bytes(answer.read())

        wanted = f'ringleader_watch_lag_records{{group="{GROUP}"}} {RECORDS - DONE}.0'
        async with asyncio.timeout(PATIENCE_S):
            async for _ in _again():
                if wanted in (await asyncio.to_thread(read, "metrics")).decode():
                    break
        rows = json.loads(await asyncio.to_thread(read, "api/groups"))["groups"]
        [row] = [one for one in rows if one["group"] == GROUP]
        assert (row["kind"], row["lag"]) == ("share", RECORDS - DONE)
