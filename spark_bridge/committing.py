"""A batch read that commits: its ranges are fixed first, read, and committed on explicit request.

Spark tells a batch source nothing of how a job ended, so a read by itself can never commit honestly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.starting import listed
from ringleader.spark_bridge.batch_reader import batch_bounds
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.coordinator import GroupCoordinator
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.spark_bridge.options import OptionsError, batch_options
from ringleader.spark_bridge.values import OffsetRange, by_topic


@dataclass(frozen=True)
class PlannedRead:
    """A batch read whose ranges are fixed, and can be committed once they are processed.

    ``options`` go to ``spark.read.format("ringleader").options(**planned.options).load()``; they name the
    ranges, so however often the DataFrame is used it has the same rows.
    """

    group_id: str
    ranges: Mapping[TopicPartition, OffsetRange]
    # Passwords may be among them.
    options: Mapping[str, str] = field(repr=False)
    committed: Mapping[TopicPartition, int]
    _coordinators: Endpoint
    _timeout_s: float

    @property
    def rows(self) -> int:
        """How many offsets the ranges have in all: the number of rows, or a little above it."""
        return sum(found.rows for found in self.ranges.values())

    def commit(self) -> None:
        """Commit the ends of the ranges to the group. Call it when their rows are processed, not before.

        Raises SourceError when the group has members, or its offsets are not those that the read began
        with: then another query has worked on the same ranges, and nothing is committed.
        """
        with GroupCoordinator(self._coordinators, self.group_id, self._timeout_s) as group:
            now = _offsets(group, self.ranges)
            if moved := [tp for tp in self.ranges if now.get(tp) != self.committed.get(tp)]:
                raise SourceError(
                    f"the offsets of group {self.group_id} were changed meanwhile for {listed(moved)}; "
                    "nothing is committed"
                )
            group.commit({tp: found.end for tp, found in self.ranges.items()})


def plan_read(options: Mapping[str, str]) -> PlannedRead:
    """Fix the ranges of a batch read now, for a ``commit()`` after it.

    ``options``: as for ``spark.read.format("ringleader")``, with ``kafka.group.id``. Connects to the
    cluster. Raises OptionsError, SourceError or DataLossError.
    """
    parsed = batch_options(options)
    if parsed.group_id is None:
        raise OptionsError(
            "plan_read needs kafka.group.id: it is the group that the ranges are committed to."
        )
    fetch = parsed.task
    timeout_s = parsed.api_timeout_ms / 1000
    log = KafkaLog.of(fetch.endpoint, parsed)
    try:
        starts, ends = batch_bounds(parsed, fetch, log)
    finally:
        log.close()
    if not starts:
        raise SourceError(f"there is nothing to read: no partition of {parsed.subscription}")
    ranges = {tp: OffsetRange(start, max(start, ends.get(tp, start))) for tp, start in starts.items()}
    with GroupCoordinator(parsed.coordinators, parsed.group_id, timeout_s) as group:
        committed = _offsets(group, ranges)
    fixing = {"subscribe", "subscribepattern", "assign", "startingoffsets", "startingtimestamp"}
    fixing |= {"startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy"}
    fixing |= {"endingoffsets", "endingtimestamp", "endingoffsetsbytimestamp"}
    fixed = {name: value for name, value in options.items() if name.lower() not in fixing}
    fixed |= _exactly(ranges)
    return PlannedRead(parsed.group_id, ranges, fixed, committed, parsed.coordinators, timeout_s)


def _offsets(group: GroupCoordinator, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return {tp: found.offset for tp, found in group.fetch(partitions).items()}


def _exactly(ranges: Mapping[TopicPartition, OffsetRange]) -> dict[str, str]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(ranges):
        topics.setdefault(topic, []).append(partition)
    return {
        "assign": json.dumps(topics),
        "startingOffsets": json.dumps(by_topic({tp: found.start for tp, found in ranges.items()})),
        "endingOffsets": json.dumps(by_topic({tp: found.end for tp, found in ranges.items()})),
    }
