"""The partitions of a query's subscription: there at its start, coming and going while it runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.starting import listed, subscribed
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.ports import Log

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

T = TypeVar("T")
logger = logging.getLogger("ringleader.spark")

# Triggers may follow each other within milliseconds.
LOOK_S = 1.0
# A pattern asks for all topics there are: in a large cluster looking takes a twentieth of the time at most.
REST = 20


class Topics:
    """The topics of the last look. ``missing_s``: a topic that the cluster does not know for this time counts
    as deleted."""

    def __init__(self, options: StreamOptions, log: Log, missing_s: float) -> None:
        self._options = options
        self._log = log
        self._missing_s = missing_s
        self._missing_since: dict[TopicPartition, float] = {}
        self._looked_s = 0.0
        self._rest_s = LOOK_S
        self.partitions: frozenset[TopicPartition] = frozenset()

    def ask(self) -> list[TopicPartition]:
        """The partitions that there are now, sorted."""
        return subscribed(self._options.subscription, self._log)

    def first(
        self,
        positions: Mapping[TopicPartition, int],
        patience_s: float,
        pause: Callable[[], None],
        goes_on: str,
    ) -> None:
        """Look for the first time. A topic that was just created is given ``patience_s`` to be known.

        Raises SourceError when a named topic is missing that must be there; otherwise a warning says that
        the query ``goes_on``. ``positions``: those of the checkpoint.
        """
        options, deadline_s = self._options, time.monotonic() + patience_s
        while True:
            found = self.ask()
            self.partitions, self._looked_s = frozenset(found), time.monotonic()
            known = {topic for topic, _ in found}
            wanted = options.subscription
            missing = [topic for topic in wanted.topics if topic not in known]
            if options.subscribe_pattern is not None and not known:
                logger.warning("no topic matches %r (yet); %s", options.subscribe_pattern, goes_on)
            absent = [tp for tp in wanted.partitions if tp[0] in known and tp not in found]
            if not missing and not absent:
                return
            remembered = {topic for topic, _ in positions}
            deleted = missing and not options.fail_on_data_loss and remembered.issuperset(missing)
            if options.wait_for_topics or deleted:
                logger.warning("no such topic (yet): %s; %s", ", ".join(missing), goes_on)
                return
            named = "assign" if wanted.partitions else "subscribe"
            if absent and time.monotonic() >= deadline_s:
                raise SourceError(f"assign names {listed(absent)}, which does not exist")
            if time.monotonic() >= deadline_s:
                raise SourceError(
                    f"no such topic: {', '.join(missing)}. Create it, correct the option {named!r}, or set "
                    "waitForTopics=true for a query that subscribes and waits for it."
                )
            pause()

    def look(self) -> frozenset[TopicPartition]:
        """Look again, when it is time to; what has come since."""
        now_s = time.monotonic()
        if now_s - self._looked_s < self._rest_s:
            return frozenset()
        before, self.partitions = self.partitions, frozenset(self.ask())
        self._looked_s = time.monotonic()
        self._rest_s = self._rest_after(self._looked_s - now_s)
        missing = dict.fromkeys(before, now_s) | self._missing_since
        self._missing_since = {tp: since_s for tp, since_s in missing.items() if tp not in self.partitions}
        return self.partitions - before

    def _rest_after(self, took_s: float) -> float:
        """Until the next look. By name it is cheap; a pattern lists all topics, so that is done less often
        where it takes long, but no less often than members do."""
        if self._options.subscribe_pattern is None:
            return LOOK_S
        return max(LOOK_S, min(REST * took_s, self._options.metadata_max_age_ms / 1000))

    def remembered(self, of: Mapping[TopicPartition, T]) -> dict[TopicPartition, T]:
        """Of partitions that are there, or may only be unknown for a moment."""
        late_s = time.monotonic() - self._missing_s
        there = self.partitions | {tp for tp, since_s in self._missing_since.items() if since_s > late_s}
        return {tp: value for tp, value in of.items() if tp in there}
