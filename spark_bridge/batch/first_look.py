"""The partitions that ``startingOffsets`` is for: those that a run of a query is the first to see."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

logger = logging.getLogger("ringleader.spark")


def not_looked_at(
    options: StreamOptions, document: OffsetDocument, partitions: frozenset[TopicPartition]
) -> frozenset[TopicPartition]:
    """Those of all ``partitions`` of a subscription that no run of the query has looked at, as the document
    of the checkpoint says. Later partitions are newer than the query."""
    if options.starts_at_earliest:
        return frozenset()
    looked = document.subscription
    if looked is None:
        return frozenset() if document.number else partitions
    return frozenset(tp for tp in partitions if not looked.covers(tp))


def tell_passed_over(options: StreamOptions) -> None:
    """A start that somebody has worked out for each partition has no effect on a query that goes on."""
    for name, given in (
        ("startingOffsets", options.starting_offsets),
        ("startingOffsetsByTimestamp", options.starting_offsets_by_timestamp),
    ):
        if isinstance(given, Mapping):
            logger.warning(
                "%s is ignored: the checkpoint says where this query goes on. To start again, set a new "
                "checkpointLocation and a kafka.group.id without offsets",
                name,
            )
