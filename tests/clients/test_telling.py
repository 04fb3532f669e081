"""The report of a member about itself: its figures, and when it is sent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ringleader import GroupConsumer
from ringleader.clients.group import telling
from ringleader.clients.group.telling import Telling, WindowMax
from ringleader.clients.metrics import Counters, MemberMetrics, member_metrics
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from tests.support.served import until

GAP = "org.apache.kafka.consumer.time.between.poll.max"
AGO = "org.apache.kafka.consumer.last.poll.seconds.ago"
CALLBACK = "ringleader.callback.time.max"
LEFT_AGO = "ringleader.left.seconds.ago"


class Clock:
    """A clock that a test sets, and a member at it."""

    def __init__(self) -> None:
        self.ms = 1_000
        self.member_id = "m-1"
        self.telling = Telling(self.metrics, 5_000, lambda: self.ms)

    def metrics(self) -> MemberMetrics:
        present = {
            "group": "billing",
            "client_id": "c",
            "member_id": self.member_id,
            "phase": "stable",
            "generation": 1,
            "commits_waiting": 0,
            "offsets_stored": 0,
            "work_in_hand": 0,
            "last_poll_age_ms": 40,
        }
        return member_metrics(Counters(), self.ms, present)

    def values(self) -> dict[str, float]:
        return dict(self.telling.figures()[1])

    def words(self) -> dict[str, str]:
        return dict(self.telling.figures()[0])


def test_a_maximum_is_of_one_to_two_windows() -> None:
    largest = WindowMax()
    assert largest.largest(0) is None
    largest.add(7, 1_000)
    largest.add(3, 2_000)
    assert largest.largest(30_000) == 7
    largest.add(5, 40_000)
    assert largest.largest(59_999) == 7
    assert largest.largest(60_000) == 5
    assert largest.largest(90_000) is None
    largest.add(2, 500_000)
    assert largest.largest(500_000) == 2
    assert largest.largest(560_000) is None, "two windows later without another"


def test_gaps_between_polls_and_callbacks_are_told_in_their_units() -> None:
    clock = Clock()
    assert GAP not in clock.values()
    clock.telling.polled(1_000)
    clock.telling.polled(3_500)
    clock.telling.polled(3_600)
    found = clock.values()
    assert (found[GAP], found[AGO], found[CALLBACK]) == (2_500.0, 0.04, 0.0)
    assert found["ringleader.poll.interval.limit"] == 5.0
    clock.telling.callback_began()
    clock.ms += 2_000
    assert clock.values()[CALLBACK] == 2.0, "it is under way"
    clock.telling.callback_ended()
    clock.ms += 1_000
    assert clock.values()[CALLBACK] == 2.0


def test_an_error_and_a_membership_that_was_given_up_are_told_for_a_while() -> None:
    clock = Clock()
    clock.telling.met("é" * 300)
    clock.telling.left("m-1", "stopped")
    clock.member_id = ""
    clock.ms += 2_000
    words = clock.words()
    assert words["ringleader_error"] == "é" * 127
    assert (words["ringleader_left_member_id"], words["ringleader_left_reason"]) == ("m-1", "stopped")
    assert words["group_member_id"] == "m-1", "it has no other yet"
    assert clock.values()[LEFT_AGO] == 2.0
    clock.member_id = "m-2"
    clock.ms += telling.ERROR_MS
    assert "ringleader_error" not in clock.words()
    assert clock.words()["group_member_id"] == "m-2"
    clock.ms += telling.LEFT_MS
    assert LEFT_AGO not in clock.values()
    assert "ringleader_left_member_id" not in clock.words()


def settings(path: Path) -> Settings:
    return Settings(
        listen="127.0.0.1:0",
        data_dir=path,
        topic="orders:2",
        telemetry_enable=True,
        telemetry_interval_ms=100,
        group_initial_rebalance_delay_ms=0,
    )


async def test_a_member_tells_its_coordinator_until_it_ends(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node:
        assert node.telemetry is not None
        telemetry = node.telemetry
        async with GroupConsumer(node.bootstrap, "billing", ["orders"], client_id="teller") as consumer:
            await until(lambda: any(telemetry.of_groups({"billing"}, 0)))
            [known] = telemetry.of_groups({"billing"}, 0)
            assert known.member_id == consumer.member.member_id
            assert known.client_id == "teller"
            assert known.values["poll_interval_limit_seconds"] == 300
            assert (known.terminating, known.left_id) == (False, "")
        [last] = telemetry.of_groups({"billing"}, 0)
        assert (last.instance_id, last.terminating) == (known.instance_id, True)
        assert (last.left_id, last.left_reason) == (known.member_id, "stopped")
        assert telemetry.pushes.keys() == {0}


async def test_a_member_that_is_not_to_tell_asks_for_nothing(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node:
        assert node.telemetry is not None
        telemetry = node.telemetry
        async with (
            GroupConsumer(node.bootstrap, "billing", ["orders"], enable_metrics_push=False) as silent,
            GroupConsumer(node.bootstrap, "other", ["orders"]),
        ):
            await until(lambda: any(telemetry.of_groups({"other"}, 0)) and bool(silent.member.member_id))
            assert not any(telemetry.of_groups({"billing"}, 0))
            assert telemetry.count(0) == 1


async def test_nothing_is_asked_of_a_coordinator_that_does_not_want_to_know(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    changed = settings(tmp_path).model_copy(update={"telemetry_enable": False})
    async with (
        Node(changed) as node,
        GroupConsumer(node.bootstrap, "billing", ["orders"], heartbeat_interval_ms=50) as consumer,
    ):
        # The member has looked whether it wants to: it does so every second.
        beats = round(1.5 * telling.LOOK_S * 1000 / 50)
        await until(lambda: consumer.metrics().member.heartbeats > beats)
        routes = node.server.routes
        assert not any(routes[key].requests for key in (71, 72) if key in routes)
    assert "not told" not in caplog.text
