"""The report of a member to its coordinator about itself (KIP-714), where that asks for it: how long the
application took between polls and in callbacks, the last error, and why it gave up a membership.

Nothing is sent to a coordinator that does not offer the two APIs, as a Kafka without a plugin for them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.clients.metrics import MemberMetrics
from ringleader.clients.model import Node
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ringleader.protocol.otlp import TEXT_MAX_BYTES, write_metrics
from ringleader.protocol.schema import ZERO_UUID

logger = logging.getLogger("ringleader.clients.group.membership")

WINDOW_MS = 30_000
"""A maximum is of the last one to two windows, as Java's clients have them."""
ERROR_MS = 60_000
"""An error that is older is not reported any more."""
LEFT_MS = 600_000
"""A membership that was given up longer ago than this is not reported."""
LOOK_S = 1.0
"""A coordinator that is not connected, or does not want to know, is looked at again after that."""
AGAIN_S = 10.0
"""A request that failed is tried again after that."""
LAST_TIMEOUT_S = 0.5
"""How long a member that ends waits for its last report to be taken."""
_CONSUMER = "org.apache.kafka.consumer"
_AGAIN = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
)
"""After these errors of a push the subscription is asked for again."""


class WindowMax:
    """The largest value of the last one to two windows."""

    def __init__(self) -> None:
        self._began_ms: int | None = None
        self._now = self._before = -1

    def add(self, value: int, now_ms: int) -> None:
        """One more."""
        self._turn(now_ms)
        self._now = max(self._now, value)

    def largest(self, now_ms: int) -> int | None:
        """None: there was none."""
        self._turn(now_ms)
        found = max(self._now, self._before)
        return None if found < 0 else found

    def _turn(self, now_ms: int) -> None:
        began_ms = now_ms if self._began_ms is None else self._began_ms
        passed = (now_ms - began_ms) // WINDOW_MS
        if passed:
            self._before, self._now = (self._now if passed == 1 else -1), -1
        self._began_ms = began_ms + passed * WINDOW_MS


class Telling:
    """The figures of one member, and their way to its coordinator. `polled` may come from any thread, as may
    `callback_began` and `callback_ended`; all else belongs to the driver's loop."""

    def __init__(
        self,
        metrics: Callable[[], MemberMetrics],
        limit_ms: int | None,
        now_ms: Callable[[], int],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`limit_ms`: its `max_poll_interval_ms`."""
        self._metrics = metrics
        self._limit_ms = limit_ms
        self._now_ms = now_ms
        self._chance = chance
        self._gaps, self._callbacks = WindowMax(), WindowMax()
        self._polled_ms: int | None = None
        self._running_ms: int | None = None
        self._error: tuple[int, str] | None = None
        self._left: tuple[int, str, str] | None = None
        """When, as which member, and why."""
        self._instance_id = ZERO_UUID
        self._subscription: tuple[Node, int, list[str], int] | None = None
        """Where it is known, its id, the metrics that are wanted, and how often, in milliseconds."""

    # ---- what happens ----

    def polled(self, now_ms: int) -> None:
        """The application makes progress."""
        if self._polled_ms is not None:
            self._gaps.add(now_ms - self._polled_ms, now_ms)
        self._polled_ms = now_ms

    def callback_began(self) -> None:
        """One of the application's callbacks runs from now on."""
        self._running_ms = self._now_ms()

    def callback_ended(self) -> None:
        """It has ended, or does not matter any more."""
        began_ms, self._running_ms = self._running_ms, None
        if began_ms is not None:
            now_ms = self._now_ms()
            self._callbacks.add(now_ms - began_ms, now_ms)

    def met(self, error: str) -> None:
        """A request failed, or the assignment was lost."""
        self._error = (self._now_ms(), error)

    def left(self, member_id: str, reason: str) -> None:
        """It gives up this membership by itself."""
        if member_id:
            self._left = (self._now_ms(), member_id, reason)

    # ---- telling ----

    async def run(self, cluster: Cluster, coordinator: Callable[[], Node | None], purpose: str) -> None:
        """Tell, as often as the coordinator wants it. `purpose`: of the open connection to it, which knows
        whether it does."""
        wait_s = 0.0
        while True:
            await asyncio.sleep(wait_s)
            node = coordinator()
            if node is None or not cluster.offers(node, purpose, PushTelemetryRequest):
                wait_s = LOOK_S
                continue
            try:
                wait_s = await self._turn(cluster, node)
            except ClientError as error:
                logger.debug("not told: %s", error)
                wait_s = AGAIN_S

    async def _turn(self, cluster: Cluster, node: Node) -> float:
        """One request; how long to wait until the next."""
        known = self._subscription
        if known is None or known[0] != node:
            request = GetTelemetrySubscriptionsRequest(self._instance_id)
            answer = await cluster.send(node, plain(request))
            if answer.error_code:
                return AGAIN_S
            self._instance_id = answer.client_instance_id
            interval_ms: int = max(answer.push_interval_ms, 1)
            self._subscription = node, answer.subscription_id, answer.requested_metrics, interval_ms
            # A group's members began together: they do not all tell at the same time (KIP-714).
            return interval_ms / 1000 * (0.5 + self._chance())
        _, _, wanted, interval_ms = known
        if not wanted:
            self._subscription = None  # nothing is wanted: asked again in an interval
            return interval_ms / 1000
        answer = await cluster.send(node, plain(self._push(False)))
        if answer.error_code in _AGAIN:
            self._subscription = None
        elif answer.error_code:
            logger.warning("what this member told was refused: %s", error_name(answer.error_code))
        return interval_ms / 1000

    async def end(self, cluster: Cluster) -> None:
        """Tell for the last time, if it was wanted."""
        known = self._subscription
        if known is None or not known[2]:
            return
        deadline_s = asyncio.get_running_loop().time() + LAST_TIMEOUT_S
        try:
            await cluster.send(known[0], plain(self._push(True)), deadline_s=deadline_s)
        except ClientError as error:
            logger.debug("not told at the end: %s", error)

    def _push(self, terminating: bool) -> PushTelemetryRequest:
        assert self._subscription is not None
        _, subscription_id, wanted, _ = self._subscription
        attributes, values = self.figures()
        prefixes = tuple(wanted) if "*" not in wanted else ("",)
        pushed = {name: value for name, value in values.items() if name.startswith(prefixes)}
        return PushTelemetryRequest(
            self._instance_id,
            subscription_id,
            terminating,
            metrics=write_metrics(attributes, pushed, time.time_ns()),
        )

    def figures(self) -> tuple[Mapping[str, str], Mapping[str, float]]:
        """The report of now: attributes, and metrics by their names."""
        now_ms, found = self._now_ms(), self._metrics()
        running_ms = 0 if self._running_ms is None else now_ms - self._running_ms
        values: list[tuple[str, int | float | None]] = [
            (f"{_CONSUMER}.time.between.poll.max", self._gaps.largest(now_ms)),
            (f"{_CONSUMER}.last.poll.seconds.ago", _seconds(found.last_poll_age_ms)),
            (f"{_CONSUMER}.coordinator.rebalance.latency.max", found.rebalance_ms_max),
            (
                f"{_CONSUMER}.coordinator.last.heartbeat.seconds.ago",
                _seconds(found.last_heartbeat_age_ms),
            ),
            (
                f"{_CONSUMER}.coordinator.heartbeat.response.time.max",
                found.heartbeat_round_trip_ms_max,
            ),
            ("ringleader.poll.interval.limit", _seconds(self._limit_ms)),
            (
                "ringleader.callback.time.max",
                max(running_ms, self._callbacks.largest(now_ms) or 0) / 1000,
            ),
        ]
        attributes = {"group_id": found.group, "group_member_id": found.member_id}
        if self._error is not None and now_ms - self._error[0] <= ERROR_MS:
            attributes["ringleader_error"] = _cut(self._error[1])
        if self._left is not None and now_ms - self._left[0] <= LEFT_MS:
            left_ms, member_id, reason = self._left
            attributes["ringleader_left_member_id"] = member_id
            attributes["ringleader_left_reason"] = _cut(reason)
            values.append(("ringleader.left.seconds.ago", (now_ms - left_ms) / 1000))
            attributes["group_member_id"] = attributes["group_member_id"] or member_id
        return attributes, {name: float(value) for name, value in _known(values)}


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:TEXT_MAX_BYTES].decode("utf-8", "ignore")


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _known(values: Iterable[tuple[str, int | float | None]]) -> Iterable[tuple[str, int | float]]:
    return ((name, value) for name, value in values if value is not None)
