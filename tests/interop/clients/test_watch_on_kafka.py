"""A watcher on Apache Kafka: killed it knows the same as one that was not, and the command through TLS."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ringleader.insight.feed.catch_up import history_of
from ringleader.insight.history import History
from ringleader.insight.model import Cause, Departure, Kind
from tests.insight.feed.watching import PARTITIONS, PATIENCE_S, Pods, Watching, contents, watching
from tests.interop.secured import PASSWORD, USER, Secured, make_topics
from tests.support.command import command_line, environment


@pytest.fixture
def topic(secured: Secured, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own."""
    name = str(request.node.name)
    asyncio.run(make_topics(secured.broker.bootstrap, {name: PARTITIONS}))
    return name


def commit_in_transactions(bootstrap: str, group: str, topic: str) -> None:
    """One that is aborted, one that counts, and one that stays open."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    for number, end in enumerate(("abort", "commit", "")):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"{group}-{end}"}
        )
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        offsets = [confluent_kafka.TopicPartition(topic, partition, number + 70) for partition in range(2)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
        if end:
            getattr(producer, f"{end}_transaction")(PATIENCE_S)
    consumer.close()


def test_killed_and_started_again_it_knows_the_same(secured: Secured, topic: str, tmp_path: Path) -> None:
    bootstrap = secured.broker.bootstrap
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    # Makes the topic of transactions, which would be seen to come only by a client that asks for topics at
    # the right time.
    commit_in_transactions(bootstrap, "before", topic)
    with watching(bootstrap, whole) as one:
        classic = Pods(bootstrap, "old-way", topic)
        modern = Pods(bootstrap, "new-way", topic, **{"group.protocol": "consumer"})
        for number in range(2):
            other = Watching(bootstrap, killed)
            for pods in (classic, modern):
                pods.up()
                pods.commit(number)
            if number:
                other.catch_up()
                commit_in_transactions(bootstrap, "exactly-once", topic)
            other.kill()
            for pods in (classic, modern):
                pods.up()
                pods.down()
                pods.commit(number + 1)
        with watching(bootstrap, killed) as other:
            other.catch_up()
        classic.close()
        modern.close()
        one.catch_up()
    asyncio.run(_closed(bootstrap, killed))
    assert contents(killed) == contents(whole)
    with History.open(killed, read_only=True) as history:
        for group, kind in (("old-way", Kind.CLASSIC), ("new-way", Kind.CONSUMER)):
            rebalances = history.rebalances(group)
            assert {one.kind for one in rebalances} == {kind}
            causes = [one.cause for one in rebalances]
            assert causes[0] is Cause.MEMBER_JOINED
            assert Cause.MEMBER_LEFT in causes
            assert not any(one.until_ms is None for one in history.members(group))
            departures = [one.gone.why for one in history.members(group) if one.gone is not None]
            assert set(departures) == {Departure.LEFT}
        committed = history.offsets_at("exactly-once", 1 << 60)
        assert {tp: one.offset for tp, one in committed.items()} == {(topic, 0): 71, (topic, 1): 71}


async def _closed(bootstrap: str, path: Path) -> None:
    (await history_of(bootstrap, path)).close()


def test_the_command_with_tls_and_sasl(secured: Secured, topic: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.username={USER}\nsasl.password={PASSWORD}\nssl.ca.location={secured.certificates.authority}\n"
    )
    arguments = ("--command-config", str(config), "--history", str(tmp_path / "h"), "--no-page", "--json")
    watch = subprocess.Popen(
        command_line("watch", *arguments),
        env=environment(secured.broker.address("SECURE")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stderr is not None
        assert watch.stdout is not None
        for line in watch.stderr:
            if "watching" in line:
                break
        pods = Pods(secured.broker.bootstrap, topic, topic)
        pods.up()
        for line in watch.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["type"] == "rebalance" and event["group"] == topic:
                break
        assert event["cause"] == "member joined"
        assert [one["client_id"] for one in event["members"]] == ["pod-0"]
        pods.close()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == 0
    finally:
        watch.kill()
        watch.communicate()
