"""Java's consumers tell of themselves unasked (KIP-714), in both group protocols."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.team import GROUP, PARTITIONS, TOPIC
from tests.support.daemon import Daemon

MEASURES = {
    *("poll_interval_max_seconds", "last_poll_ago_seconds", "poll_idle_ratio"),
    *("rebalance_latency_max_seconds", "fetch_latency_max_seconds"),
}
"""last_heartbeat_ago_seconds comes with the first heartbeat."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon to which clients tell of themselves five times a second."""
    options = ["--group-initial-rebalance-delay-ms", "0", "--telemetry-interval-ms", "200"]
    options += ["--telemetry-enable"]
    options += ["--http-listen", "127.0.0.1:0"]
    with Daemon(tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"], options=options) as running:
        yield running


def shown(daemon: Daemon) -> dict[str, float]:
    """The values that the one member of the group told."""
    line = next(line for line in daemon.log().splitlines() if "health and metrics" in line)
    address = line.partition("address=")[2].split()[0].strip("'")
    with urllib.request.urlopen(f"http://{address}/metrics?group={GROUP}") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {
        sample.name.removeprefix("ringleader_client_"): sample.value
        for family in families
        for sample in family.samples
        if sample.labels.get("client_id") == "teller"
    }


async def until_reported(daemon: Daemon) -> dict[str, float]:
    """All of it; a fetch is told last."""
    async with asyncio.timeout(60):
        while True:
            found = await asyncio.to_thread(shown, daemon)
            if "fetch_latency_max_seconds" in found:
                return found
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_consumer_tells_how_often_it_polls(
    daemon: Daemon, java_clients: JavaClients, protocol: str
) -> None:
    client = java_clients.name("teller", lambda event: None)
    config = {"bootstrap.servers": daemon.bootstrap, "group.id": GROUP, "group.protocol": protocol}
    config |= {"client.id": "teller", "fetch.max.wait.ms": "100"}
    await java_clients.call("consumer", client, config=config, topics=[TOPIC], commitOnRevoke=False)
    try:
        found = await until_reported(daemon)
    finally:
        await java_clients.call("close", client, how="DEFAULT")
    assert found.keys() >= MEASURES
    assert 0 < found["poll_interval_max_seconds"] < 60
    assert 0 <= found["poll_idle_ratio"] <= 1
