"""A cluster of a small shop over the last hours: what the page is looked at with."""

from __future__ import annotations

import time
from pathlib import Path

from ringleader.insight.model import EventKind, Kind
from tests.insight.made import Made

HOURS = 5


def story(path: Path) -> Path:
    """Written at once, ending about now."""
    begin_ms = time.time_ns() // 1_000_000 - HOURS * 3_600_000
    with Made(path, start_ms=begin_ms) as made:
        tell(made)
        made.wait((time.time_ns() // 1_000_000 - made.now_ms) / 1000 - 5)
    return path


def tell(made: Made) -> None:
    """Five hours of it."""
    orders = made.group(
        "orders", {"orders": 12, "refunds": 3}, ["orders-0", "orders-1", "orders-2", "orders-3"]
    )
    billing = made.group(
        "billing", {"invoices": 6}, ["billing-0", "billing-1"], static=True, cooperative=True,
        protocol="cooperative-sticky",
    )  # fmt: skip
    audit = made.group("audit", {"orders": 12}, ["audit-0"], kind=Kind.CONSUMER, protocol="uniform", rate=20)
    for number, name in enumerate(("search-index", "mail", "fraud-scores", "warehouse", "recommendations")):
        topic = {"shipments": 3} if number % 2 else {"clicks": 8}
        made.group(name, topic, [f"{name}-{one}" for one in range(2 + number)], rate=5 + 20 * number)
    made.group("reporting.nightly", {"invoices": 3}, ["nightly-0"]).leave("nightly-0")
    made.wait(1200)
    orders.deploy(pause_s=25)
    made.wait(1500)
    orders.crash("orders-2")
    made.wait(240)
    orders.join("orders-2", leader_s=4.8, slowest="orders-2")
    made.wait(900)
    billing.fence("billing-1")
    made.wait(4)
    billing.fence("billing-1")
    made.wait(600)
    orders.stall("orders-1")
    made.wait(120)
    orders.join("orders-1", join_s=3.4)
    made.wait(1800)
    made.groups["mail"].deploy(pause_s=8)
    orders.grow("refunds", 6)
    audit.join("audit-1")
    made.wait(1200)
    orders.coordinator_restarts()
    made.wait(900)
    orders.leader_rejoins()
    made.wait(600)
    for _ in range(5):
        made.groups["fraud-scores"].restart("fraud-scores-1")
        made.wait(100)
    orders.deploy(pause_s=20)
    audit.reset(9_000)
    made.event(EventKind.TOPIC_CREATED, "topic returns was created with 3 partitions")
    made.wait(900)
    orders.puzzle()
    made.wait(300)
    orders.leave("orders-3")
    made.wait(500)
    orders.join("orders-3")
