"""The scope of a query: the partitions of its subscription, first positions, the ends of a batch read.

Precedence as in Spark's Kafka connector: one timestamp for all, timestamps for each partition, offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.ports import Lookup
from ringleader.spark_bridge.values import Subscription

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import BatchOptions, StreamOptions


def subscribed(subscription: Subscription, log: Lookup) -> list[TopicPartition]:
    """All partitions that there are of a subscription now, sorted."""
    topics = subscription.topics
    if subscription.pattern is not None:
        topics = log.topics(subscription.pattern)
    found = sorted(log.partitions(topics)) if topics else []
    return [tp for tp in found if tp in subscription.partitions] if subscription.partitions else found


def first_positions(
    options: StreamOptions | BatchOptions,
    fresh: Sequence[TopicPartition],
    log: Lookup,
) -> dict[TopicPartition, int]:
    """Where partitions start that nothing but the options says it of.

    Partitions that do not exist are left out. Raises SourceError when JSON does not name a partition, or no
    record is late enough.
    """
    times = _times(
        fresh,
        options.starting_timestamp,
        options.starting_offsets_by_timestamp,
        "startingOffsetsByTimestamp",
    )
    if times is None:
        return _by_offsets(fresh, options.starting_offsets, log, "startingOffsets")
    found: dict[TopicPartition, int] = {}
    for tp, offset in log.offsets_for_times(times).items():
        if offset is not None:
            found[tp] = offset
        elif options.starting_strategy == "latest":
            found |= log.offsets({tp: LATEST})
        else:
            raise SourceError(
                f"no record of {tp[0]}-{tp[1]} has the timestamp {times[tp]} or a later one. Set "
                "startingOffsetsByTimestampStrategy=latest to start at its end."
            )
    return found


def last_positions(
    options: BatchOptions, known: Sequence[TopicPartition], log: Lookup
) -> dict[TopicPartition, int]:
    """Where a batch read ends (exclusive). Raises SourceError when JSON does not name a partition."""
    times = _times(
        known, options.ending_timestamp, options.ending_offsets_by_timestamp, "endingOffsetsByTimestamp"
    )
    if times is None:
        return _by_offsets(known, options.ending_offsets, log, "endingOffsets")
    found = log.offsets_for_times(times)
    open_end = log.ends([tp for tp, offset in found.items() if offset is None])
    return {tp: offset for tp, offset in found.items() if offset is not None} | open_end


def _times(
    wanted: Sequence[TopicPartition],
    for_all: int | None,
    by_partition: Mapping[TopicPartition, int] | None,
    name: str,
) -> dict[TopicPartition, int] | None:
    """The timestamp of each partition; None when offsets say."""
    if for_all is not None:
        return dict.fromkeys(wanted, for_all)
    if by_partition is None:
        return None
    _check_named(by_partition, wanted, name)
    return {tp: by_partition[tp] for tp in wanted}


def _by_offsets(
    wanted: Sequence[TopicPartition], given: str | Mapping[TopicPartition, int], log: Lookup, name: str
) -> dict[TopicPartition, int]:
    if isinstance(given, str):
        if given == "latest":
            return log.ends(wanted) if name == "endingOffsets" else _ask(log, dict.fromkeys(wanted, LATEST))
        return _ask(log, dict.fromkeys(wanted, EARLIEST))
    _check_named(given, wanted, name)
    exact = {tp: given[tp] for tp in wanted if given[tp] >= 0}
    special = {tp: given[tp] for tp in wanted if given[tp] < 0}
    if name == "endingOffsets":
        return exact | (log.ends(special) if special else {})
    return exact | _ask(log, special)


def _ask(log: Lookup, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    return log.offsets(wanted) if wanted else {}


def _check_named(named: Mapping[TopicPartition, int], wanted: Sequence[TopicPartition], name: str) -> None:
    if missing := [tp for tp in wanted if tp not in named]:
        raise SourceError(
            f"{name} must name every partition of the subscription; {listed(missing)} is missing"
        )


def listed(partitions: Iterable[TopicPartition]) -> str:
    """``a-0, b-1`` for a sentence."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
