"""Batch reads: ranges by offsets, fixed when the DataFrame is first used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.protocol.records import Record, build_batch
from ringleader.spark_bridge import fetch
from ringleader.spark_bridge.batch import RingleaderBatchReader
from ringleader.spark_bridge.errors import DataLossError, SourceError
from tests.spark_bridge.broker import Broker, Partition


@pytest.fixture
def broker() -> Iterator[Broker]:
    def partition(start: int, end: int) -> Partition:
        return Partition(build_batch([Record(offset) for offset in range(start, end)]), start=start)

    with Broker({"t": {0: partition(3, 9), 1: partition(0, 4)}}) as found:
        yield found
    fetch.close_wires()


def rows(broker: Broker, **options: str) -> dict[int, list[int]]:
    """Offsets by partition, as all tasks of the read give them."""
    given = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "subscribe": "t", "parallelism": "2"}
    reader = RingleaderBatchReader(given | options)
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


def test_an_empty_range_has_no_task(broker: Broker) -> None:
    assert rows(broker, endingOffsets='{"t":{"0":0,"1":0}}') == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingOffsets": '{"t":{"0":1}}'}, "t-1 is missing"),
        ({"endingOffsets": '{"t":{"0":1,"1":1,"7":1}}'}, "t-7, which does not exist"),
        ({"subscribe": "t,nowhere"}, "no such topic: nowhere"),
    ],
)
def test_what_does_not_fit_the_topic_is_a_sentence(
    broker: Broker, options: dict[str, str], said: str
) -> None:
    with pytest.raises(SourceError, match=said):
        rows(broker, **options)


def test_offsets_that_are_gone_fail_or_are_left_out(broker: Broker) -> None:
    beyond = {"startingOffsets": '{"t":{"0":0,"1":0}}', "endingOffsets": '{"t":{"0":5,"1":90}}'}
    with pytest.raises(DataLossError, match="t-0 should be read from 0 to 5, but the log holds 3 to 9"):
        rows(broker, **beyond)
    assert rows(broker, failOnDataLoss="false", **beyond) == {0: [3, 4], 1: [0, 1, 2, 3]}
