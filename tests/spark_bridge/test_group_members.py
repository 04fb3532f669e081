"""Cooperative, several, weighted and static members behind a query, against a running coordinator."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ringleader.clients.group.membership import SyncGroupMember
from ringleader.clients.group.subscription import partitions_of, sync_consumer_member
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.fetching import fetch
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.test_group import PARTITIONS, SparkLike, committed, every_row, member_count, produce

PATIENCE = 2_000


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": PARTITIONS}) as found:
        yield found
    fetch.close_clusters()


def plain(coordinator: Coordinator, assigned: Callable[[set[int]], None], **options: Any) -> SyncGroupMember:
    return sync_consumer_member(
        coordinator.bootstrap,
        "g",
        ["t"],
        assignors=("cooperative-sticky",),
        on_assigned=lambda share: assigned({number for _, number in partitions_of(share)}),
        heartbeat_interval_ms=50,
        **options,
    )


def until(query: SparkLike, reached: Callable[[], bool], what: str) -> list[tuple[int, int]]:
    """Trigger after trigger until then; the rows that were read."""
    rows: list[tuple[int, int]] = []
    for _ in range(PATIENCE):
        if query.plan():
            rows += query.read()
        if reached():
            return rows
    raise AssertionError(f"never: {what}")


def test_what_stays_is_read_on_while_what_goes_waits_for_its_batch(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    shares: list[set[int]] = []
    has_share = threading.Event()

    def assigned(share: set[int]) -> None:
        shares.append(share)
        if share:
            has_share.set()

    with SparkLike(coordinator) as query:
        assert query.plan()
        ownership = query.reader._driver._ownership
        with plain(coordinator, assigned):
            while len(ownership.owned()) == PARTITIONS:
                ownership.wait_change(0.05)
            kept = {number for _, number in ownership.owned()}
            assert len(kept) == PARTITIONS // 2
            assert not has_share.is_set(), "a busy partition was handed over before its batch was committed"
            assert query.read() == every_row(0, 40)
            produce(coordinator, 8)
            until(query, has_share.is_set, "the plain member gets its share")
            assert query.reader._driver.refused_commits == 0
            assert committed(coordinator).items() >= dict.fromkeys(shares[-1], 10).items()
            assert shares[-1] == set(range(PARTITIONS)) - kept
            until(query, lambda: all(committed(coordinator)[p] == 12 for p in kept), "the rest read on")
        until(query, lambda: len(ownership.owned()) == PARTITIONS, "all partitions back")


def test_several_members_of_one_query(coordinator: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    produce(coordinator, 40)
    with caplog.at_level(logging.INFO, "ringleader.spark"), SparkLike(coordinator, members="3") as query:
        rows = until(query, lambda: sum(committed(coordinator).values()) == 40, "everything committed")
        assert sorted(rows) == every_row(0, 40)

        def shares() -> list[int]:
            report = query.reader.reportLatestOffset()
            assert report is not None
            assert report["lag"] == 0
            return sorted(len(owned) for owned in report["members"].values())

        until(query, lambda: shares() == [1, 1, 2], "three members with shares")
        assert member_count(coordinator) == 3
    assert member_count(coordinator) == 0
    assert "owns t-0,1,2,3 as 3 members" in caplog.text


def test_a_weighted_query_gets_more(coordinator: Coordinator) -> None:
    with SparkLike(coordinator, weight="3") as heavy, SparkLike(coordinator, weight="1") as light:
        starter = threading.Thread(target=light.plan)
        starter.start()
        until(heavy, lambda: len(heavy.owned()) == 3, "three of four partitions")
        starter.join()
        until(light, lambda: len(light.owned()) == 1, "one of four partitions")


def test_a_weight_that_does_not_count_is_reported(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    offers = {"kafka.partition.assignment.strategy": "weighted,cooperative-sticky"}
    joined = threading.Event()
    with plain(coordinator, lambda _: joined.set()):
        assert joined.wait(10)
        with SparkLike(coordinator, weight="3", **offers) as query:
            until(query, lambda: bool(query.owned()), "a share")
    assert "the weight does not count" in caplog.text


def generation(query: SparkLike) -> int:
    found: int = query.reader._driver._group.newest_generation()
    return found


def test_a_static_query_is_back_without_a_rebalance(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    static = {"kafka.group.instance.id": "etl", "members": "2"}
    with SparkLike(coordinator, **static) as query:
        until(query, lambda: sum(committed(coordinator).values()) == 40, "everything committed")
        until(query, query.reader._driver._group.stable, "both members in one generation")
        before = generation(query)
        checkpoint = query.start
    assert member_count(coordinator) == 2
    produce(coordinator, 8)
    with SparkLike(coordinator, **static) as query:
        query.start = checkpoint
        rows = until(query, lambda: sum(committed(coordinator).values()) == 48, "the rest committed")
        assert sorted(rows) == every_row(40, 8)
        assert generation(query) == before


def test_the_fenced_twin_fails_with_a_sentence(coordinator: Coordinator) -> None:
    static = {"kafka.group.instance.id": "etl"}
    with SparkLike(coordinator, **static) as one:
        one.plan()
        with SparkLike(coordinator, **static) as two:
            two.plan()
            with pytest.raises(SourceError, match=r"runs with kafka\.group\.instance\.id etl: only one may"):
                until(one, lambda: False, "fenced")


def test_members_that_know_no_assignor_in_common_are_told_what_to_set(coordinator: Coordinator) -> None:
    eager = {"kafka.partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
    with SparkLike(coordinator, **eager) as one:
        one.plan()
        with (
            SparkLike(coordinator) as two,
            pytest.raises(SourceError, match=r"offers cooperative-sticky; .* one assignor in common"),
        ):
            until(two, lambda: False, "refused")


def test_available_now_hands_its_share_over_when_it_is_read(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    shares: list[set[int]] = []
    everything = threading.Event()

    def assigned(share: set[int]) -> None:
        shares.append(share)
        if len(share) == PARTITIONS:
            everything.set()

    with SparkLike(coordinator, members="2", **{"kafka.group.instance.id": "etl"}) as query:
        query.reader.prepareForTriggerAvailableNow()
        produce(coordinator, 4)
        rows: list[tuple[int, int]] = []
        while query.plan():
            rows += query.read()
        assert sorted(rows) == every_row(0, 40)
        assert member_count(coordinator) == 0
        with plain(coordinator, assigned):
            assert everything.wait(10)
    assert committed(coordinator) == dict.fromkeys(range(PARTITIONS), 10)


def test_a_query_that_must_be_alone_finds_another_member(coordinator: Coordinator) -> None:
    produce(coordinator, 4)
    with SparkLike(coordinator, sharedGroup="false", members="2") as query:
        until(query, lambda: bool(committed(coordinator)), "a batch while it is alone")
        with plain(coordinator, lambda _: None), pytest.raises(SourceError, match="sharedGroup is false"):
            until(query, lambda: False, "noticed")


def test_topics_that_match_a_pattern_are_read(coordinator: Coordinator) -> None:
    coordinator.create_topic("other", 1)
    produce(coordinator, 8)
    with SparkLike(coordinator, subscribe="", subscribePattern="t|u.*") as query:
        rows = until(query, lambda: sum(committed(coordinator).values()) == 8, "everything committed")
        assert sorted(rows) == every_row(0, 8)
