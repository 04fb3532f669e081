"""A leader that computes for longer than its session keeps its membership."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ringleader.clients.assignors import ASSIGNORS, RANGE, Assignment, Assignor, AssignorMember
from ringleader.clients.connection.overview import Overview
from ringleader.clients.group.leading import leader
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import Lost
from ringleader.protocol.overview import TopicOverview
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary

QUICK: dict[str, Any] = {"session_timeout_ms": 1_000, "heartbeat_interval_ms": 100}
BEATS = 30
"""As many heartbeats as three sessions have."""


async def test_heartbeats_go_on_while_python_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the interpreter's lock whenever it can, until it has seen heartbeats for three sessions."""
    given_up = threading.Event()

    with Coordinator(topics={"t": 4}, group_min_session_timeout_ms=100) as coordinator:

        def compute(members: Sequence[AssignorMember], counts: Any, racks: Any) -> Assignment:
            before, number = len(coordinator.faults.seen("Heartbeat")), 0
            while not given_up.is_set():
                number += 1
                if number % 100_000 == 0 and len(coordinator.faults.seen("Heartbeat")) >= before + BEATS:
                    break
            return RANGE.assign(members, counts, racks)

        monkeypatch.setitem(ASSIGNORS, "busy", Assignor("busy", compute))
        monkeypatch.setattr(leader, "INLINE_WORK", 0)
        diary = Diary()
        callbacks = dict.fromkeys(("on_assigned", "on_revoked", "on_lost", "on_failed"), diary.note)
        async with consumer_member(
            coordinator.bootstrap, "g", ["t"], assignors=["busy"], **(QUICK | callbacks)
        ) as member:
            try:
                share = await member.wait_assigned(PATIENCE_S)
            finally:
                given_up.set()
            assert (share.generation, len(partitions_of(share))) == (1, 4)
            assert diary.of(Lost) == []


async def test_the_end_does_not_wait_for_an_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    computing, may_end = threading.Event(), threading.Event()

    def compute(members: Sequence[AssignorMember], counts: Any, racks: Any) -> Assignment:
        computing.set()
        may_end.wait()
        return RANGE.assign(members, counts, racks)

    monkeypatch.setitem(ASSIGNORS, "slow", Assignor("slow", compute))
    monkeypatch.setattr(leader, "INLINE_WORK", 0)
    with Coordinator(topics={"t": 4}) as coordinator:
        member = consumer_member(coordinator.bootstrap, "g", ["t"], assignors=["slow"])
        try:
            await member.start()
            assert await asyncio.to_thread(computing.wait, PATIENCE_S)
            async with asyncio.timeout(PATIENCE_S):
                await member.stop()
        finally:
            may_end.set()


async def test_a_million_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The assignment is computed, encoded and sent; the session is shorter than that takes."""

    async def overview(_cluster: Any, topics: Any, **_options: Any) -> Overview:
        return Overview({topic: TopicOverview(bytes(16), 1_000_000, False, 0) for topic in topics}, {}, {})

    monkeypatch.setattr(leader, "overview", overview)
    diary = Diary()
    with Coordinator(group_min_session_timeout_ms=100) as coordinator:
        async with consumer_member(
            coordinator.bootstrap, "g", ["t"], assignors=["sticky"], on_lost=diary.note, **QUICK
        ) as member:
            share = await member.wait_assigned(60)
            decoded = await asyncio.to_thread(partitions_of, share)
            assert (share.generation, len(decoded)) == (1, 1_000_000)
            assert diary.of(Lost) == []


def test_of_two_claims_to_a_partition_the_one_of_the_newer_generation_counts() -> None:
    members = [
        AssignorMember(name, None, ("t",), {"t": [0]}, generation, None, b"")
        for name, generation in (("a", 2), ("b", 3), ("c", 1))
    ]
    for before in (math.inf, 9):
        assert leader._owned(members, before) == {"a": {}, "b": {"t": [0]}, "c": {}}
