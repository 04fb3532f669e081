"""Reports of clients about themselves reach the journal, the history of a watcher, and what is said of a
departure."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import confluent_kafka
import pytest

from ringleader import GroupConsumer
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.model import Cause, Confidence, Departure, Rebalance
from tests.support.daemon import Daemon

PATIENCE_S = 60
T = TypeVar("T")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon to which clients tell of themselves ten times a second."""
    options = ["--group-initial-rebalance-delay-ms", "0", "--telemetry-interval-ms", "100"]
    options += ["--telemetry-enable"]
    with Daemon(tmp_path, topics=["orders:2"], options=options) as running:
        yield running


async def until(watcher: Watcher, found: Callable[[], T | None]) -> T:
    """The thing that is looked for in the history, as soon as it is there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await watcher.caught_up(PATIENCE_S)
            if (one := found()) is not None:
                return one


async def printed_json(*arguments: str) -> Any:
    """The JSON that a command prints."""
    command = [sys.executable, "-m", "ringleader", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def departure(watcher: Watcher) -> Rebalance | None:
    """The rebalance in which a member went because it did not poll."""
    for one in watcher.history.rebalances("billing"):
        if any(finding.why is Departure.POLL_INTERVAL_EXCEEDED for finding in one.left.values()):
            return one
    return None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_callback_that_takes_too_long_is_told_by_the_client(
    daemon: Daemon, tmp_path: Path, protocol: Literal["classic", "consumer"]
) -> None:
    free, lost = asyncio.Event(), asyncio.Event()

    async def slow(_partitions: Any) -> None:
        await free.wait()

    async with GroupConsumer(
        daemon.bootstrap,
        "billing",
        ["orders"],
        group_protocol=protocol,
        client_id="busy",
        max_poll_interval_ms=1_000,
        on_assigned=slow,
        on_lost=lambda _: lost.set(),
    ) as consumer:
        async with Watcher(daemon.bootstrap, tmp_path / "history.sqlite") as watcher:
            left = await until(watcher, lambda: departure(watcher))
            [(member_id, finding)] = left.left.items()
            assert (left.cause, left.confidence) == (Cause.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN)
            assert finding.confidence is Confidence.CERTAIN
            words = await until(
                watcher,
                lambda: next(
                    (
                        text
                        for text in (departure(watcher) or left).left[member_id].evidence
                        if text.startswith("its client said")
                    ),
                    None,
                ),
            )
            assert "poll" in words
            report = watcher.history.reports("billing")[member_id]
            assert report.text.startswith("busy@127.0.0.1 told of itself: ")
            assert "longest callback" in report.text
        free.set()
    del consumer


async def test_what_librdkafka_tells_stands_in_the_history(daemon: Daemon, tmp_path: Path) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": daemon.bootstrap, "group.id": "billing", "client.id": "teller"}
    )
    consumer.subscribe(["orders"])
    try:
        async with Watcher(daemon.bootstrap, tmp_path / "history.sqlite") as watcher:
            async with asyncio.timeout(PATIENCE_S):
                while not (reports := watcher.history.reports("billing")):
                    await asyncio.to_thread(consumer.poll, 0.05)
            [(member_id, event)] = reports.items()
            assert member_id.startswith("teller-")
            assert event.text.startswith("teller@127.0.0.1 told of itself: ")
            assert "of its time in poll()" in event.text
            await watcher.caught_up(PATIENCE_S)
            command = ("groups", "describe", "billing", "--history", str(watcher.path), "--json")
            shown = await printed_json(*command, "--bootstrap-server", daemon.bootstrap)
            [member] = shown["members"]
            assert member["member"] == member_id
            assert member["told"].startswith("teller@127.0.0.1 told of itself: ")
            assert member["told_ms"] >= event.at_ms
            known = await printed_json(
                "explain", "billing", "teller", "--history", str(watcher.path), "--json"
            )
            assert known["told"][0]["text"].startswith("teller@127.0.0.1 told of itself: ")
            owned = await printed_json("owners", "orders:0", "--history", str(watcher.path), "--json")
            assert owned["owners"][0]["told"].startswith("teller@127.0.0.1 told of itself: ")
    finally:
        await asyncio.to_thread(consumer.close)
