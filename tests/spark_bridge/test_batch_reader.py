"""Batch reads: ranges by offsets, fixed when the DataFrame is first used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.protocol.records import Record, build_batch
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.fetching import fetch
from tests.spark_bridge.broker import Broker, Partition


@pytest.fixture
def broker() -> Iterator[Broker]:
    def partition(start: int, end: int) -> Partition:
        return Partition(build_batch([Record(at, 1_000 + 100 * at) for at in range(start, end)]), start=start)

    with Broker({"t": {0: partition(3, 9), 1: partition(0, 4)}}) as found:
        yield found
    fetch.close_clusters()


def rows(broker: Broker, **options: str) -> dict[int, list[int]]:
    """Offsets by partition, as all tasks of the read give them."""
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "subscribe": "t", "parallelism": "2"}
    reader = RingleaderBatchReader({name: value for name, value in (given | options).items() if value})
    found: dict[int, list[int]] = {}
    for task in reader.partitions():
        for arrow in reader.read(task):
            found.setdefault(arrow["partition"][0].as_py(), []).extend(arrow["offset"].to_pylist())
    return found


def test_all_there_is(broker: Broker) -> None:
    assert rows(broker) == {0: [3, 4, 5, 6, 7, 8], 1: [0, 1, 2, 3]}


def test_ranges_by_offsets(broker: Broker) -> None:
    found = rows(broker, startingOffsets='{"t":{"0":-2,"1":2}}', endingOffsets='{"t":{"0":5,"1":-1}}')
    assert found == {0: [3, 4], 1: [2, 3]}


def test_an_empty_range_has_a_task_without_rows(broker: Broker) -> None:
    assert rows(broker, endingOffsets='{"t":{"0":0,"1":0}}') == {}
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "subscribePattern": "none"}
    (task,) = RingleaderBatchReader(given).partitions()
    assert list(RingleaderBatchReader(given).read(task)) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"t":{"0":1}}'}, "t-1 is missing"),
        ({"endingOffsets": '{"t":{"0":1,"1":1,"7":1}}'}, "t-7, which does not exist"),
        ({"subscribe": "t,nowhere"}, "no such topic: nowhere"),
        ({"subscribe": "", "assign": '{"t":[0,8]}'}, "assign names t-8, which does not exist"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":1}}'}, "t-1 is missing"),
        ({"startingTimestamp": "1500"}, "no record of t-1 has the timestamp 1500 or a later one"),
    ],
)
def test_what_does_not_fit_the_topic_is_a_sentence(
    broker: Broker, options: dict[str, str], expected: str
) -> None:
    with pytest.raises(SourceError, match=expected):
        rows(broker, **options)


def test_offsets_that_are_gone_fail_or_are_left_out(broker: Broker) -> None:
    beyond = {"startingOffsets": '{"t":{"0":0,"1":0}}', "endingOffsets": '{"t":{"0":5,"1":90}}'}
    with pytest.raises(DataLossError, match="t-0 should be read from 0 to 5, but the log holds 3 to 9"):
        rows(broker, **beyond)
    assert rows(broker, failOnDataLoss="false", **beyond) == {0: [3, 4], 1: [0, 1, 2, 3]}
    # A topic that was made again is shorter than what somebody has read of the old one.
    with pytest.raises(DataLossError, match="t-1 should be read from 70 to 4, but the log holds 0 to 4"):
        rows(broker, startingOffsets='{"t":{"0":-2,"1":70}}')
    assert rows(broker, startingOffsets='{"t":{"0":8,"1":70}}', failOnDataLoss="false") == {0: [8]}


def test_ranges_by_timestamps(broker: Broker) -> None:
    """Partition 0 has times 1300 to 1800, partition 1 has 1000 to 1300."""
    assert rows(broker, startingTimestamp="1150", endingTimestamp="1500") == {0: [3, 4], 1: [2, 3]}
    each = {
        "startingOffsetsByTimestamp": '{"t":{"0":1700,"1":5000}}',
        "startingOffsets": '{"t":{"0":3,"1":0}}',
    }
    assert rows(broker, startingOffsetsByTimestampStrategy="latest", **each) == {0: [7, 8]}
    found = rows(
        broker, endingOffsetsByTimestamp='{"t":{"0":1,"1":1200}}', endingOffsets='{"t":{"0":9,"1":9}}'
    )
    assert found == {1: [0, 1]}


def test_a_pattern_or_single_partitions_say_what_to_read(broker: Broker) -> None:
    broker.topics["t2"] = {0: Partition(build_batch([Record(0)]))}
    assert rows(broker, subscribe="", subscribePattern="t.+") == {0: [0]}
    assert rows(broker, subscribe="", assign='{"t":[1]}') == {1: [0, 1, 2, 3]}
    assert rows(broker, subscribe="", subscribePattern="none") == {}


def test_the_rows_of_a_task_are_bounded(broker: Broker) -> None:
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "subscribe": "t", "parallelism": "1"}
    reader = RingleaderBatchReader(given | {"maxRecordsPerPartition": "3"})
    tasks = reader.partitions()
    assert [sum(len(arrow) for arrow in reader.read(task)) for task in tasks] == [2, 3, 2, 3]
    assert rows(broker, maxRecordsPerPartition="3") == {0: [3, 4, 5, 6, 7, 8], 1: [0, 1, 2, 3]}
