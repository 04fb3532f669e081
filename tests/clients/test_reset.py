"""`auto_offset_reset`: which texts there are, and where each begins."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ringleader.clients.consumer import GroupConsumer, PartitionConsumer, SyncGroupConsumer
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.clients.reset import duration_ns, reset_time
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, consumer

SECOND, MINUTE, HOUR, DAY = 10**9, 60 * 10**9, 3_600 * 10**9, 86_400 * 10**9
NOW_MS = 1_700_000_000_000
LONGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "length_ns"),
    [
        ("PT20.345S", 20_345_000_000),
        ("PT15M", 15 * MINUTE),
        ("PT10H", 10 * HOUR),
        ("P2D", 2 * DAY),
        ("P2DT3H4M", 2 * DAY + 3 * HOUR + 4 * MINUTE),
        ("PT-6H3M", -6 * HOUR + 3 * MINUTE),
        ("-PT6H3M", -(6 * HOUR + 3 * MINUTE)),
        ("-PT-6H+3M", 6 * HOUR - 3 * MINUTE),
        ("pt1h", HOUR),
        ("+P1D", DAY),
        ("PT0S", 0),
        ("PT1,5S", 1_500_000_000),
        ("PT1.S", SECOND),
        ("PT-0.5S", -SECOND // 2),
        ("PT0.000000001S", 1),
        (f"PT{LONGEST}S", LONGEST * SECOND),
    ],
)
def test_durations_are_those_of_java(text: str, length_ns: int) -> None:
    assert duration_ns(text) == length_ns


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "1H", "P1H", "PT1D", "P1DT", "PT1H2", "T1H", "P1Y", "P1M", "P1W", "PT.5S"),
        *("PT1.5M", "PT1.0123456789S", " PT1H", "PT1H ", "PT1M1H", "PT1H1H", "P-D", "PT\u0661H", "--PT1H"),
        *(f"PT{LONGEST + 1}S", f"PT{LONGEST}.1S", f"P{LONGEST}D", f"PT{'9' * 5_000}H"),
    ],
)
def test_texts_that_are_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no ISO 8601 duration|is too long a duration"):
        duration_ns(text)


def test_policies_and_their_times() -> None:
    assert [reset_time(one, NOW_MS) for one in ("earliest", "latest", "none")] == [EARLIEST, LATEST, LATEST]
    assert reset_time("by_duration:PT1H", NOW_MS) == NOW_MS - 3_600_000
    assert reset_time("by_duration:PT0S", NOW_MS) == NOW_MS
    assert reset_time("by_duration:PT0.0001S", NOW_MS) == NOW_MS - 1
    assert reset_time("by_duration:P40000D", NOW_MS) == 0, "times below 0 mean something else"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("middle", "auto_offset_reset has to be one of .*'by_duration:PT1H', not 'middle'"),
        ("by_duration", "not 'by_duration'"),
        ("by_duration:", "'' is no ISO 8601 duration"),
        ("by_duration:1h", "'1h' is no ISO 8601 duration"),
        ("by_duration:-PT1H", "has to go back in time"),
        ("BY_DURATION:PT1H", "not 'BY_DURATION:PT1H'"),
    ],
)
def test_wrong_policies_are_refused_in_a_sentence(policy: str, words: str) -> None:
    options: dict[str, Any] = {"auto_offset_reset": policy}
    for make in (
        lambda: GroupConsumer("h:1", "g", ["t"], **options),
        lambda: SyncGroupConsumer("h:1", "g", ["t"], **options),
        lambda: PartitionConsumer("h:1", [("t", 0)], **options),
        lambda: consumer_member("h:1", "g", ["t"], **options),
    ):
        with pytest.raises(ValueError, match=words) as found:
            make()
        assert "\n" not in str(found.value)


def put(coordinator: Coordinator, place: TopicPartition, *ages_s: float) -> None:
    """A record for each age, one batch each."""
    now_ms = time.time_ns() // 10**6
    for age_s in ages_s:
        batch = build_batch([Record(0, now_ms - int(age_s * 1000), b"k", b"v")])
        coordinator.run(coordinator.node.topics.append(*place, batch))


async def test_where_a_new_group_begins(coordinator: Coordinator) -> None:
    put(coordinator, ("t", 0), 7_200, 5_000, 60, 30)
    put(coordinator, ("t", 1), 7_200, 7_100)
    put(coordinator, ("t", 2), 30)
    wanted = {("t", 0): 2, ("t", 1): 2, ("t", 2): 0, ("t", 3): 0}
    async with consumer(coordinator, auto_offset_reset="by_duration:PT1H") as one:
        await one.wait_assigned(PATIENCE_S)
        assert {place: await one.position(place) for place in wanted} == wanted
        put(coordinator, ("t", 1), 7_000)
        read = [(await one.getone(PATIENCE_S)) for _ in range(4)]
        places = sorted((one.record.topic, one.record.partition, one.record.offset) for one in read if one)
        assert places == [("t", 0, 2), ("t", 0, 3), ("t", 1, 2), ("t", 2, 0)]


async def test_out_of_the_log_it_begins_there_again(coordinator: Coordinator) -> None:
    put(coordinator, ("t", 0), 7_200, 60, 30)
    async with PartitionConsumer(
        coordinator.bootstrap, [("t", 0)], auto_offset_reset="by_duration:PT1H"
    ) as one:
        assert await one.position(("t", 0)) == 1
        one.seek(("t", 0), 1_000)
        found = await one.getone(PATIENCE_S)
        assert found is not None
        assert found.record.offset == 1
