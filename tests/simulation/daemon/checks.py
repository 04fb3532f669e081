"""The invariants of every run of the daemon and its clients, judged by what these saw."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.daemon.world import DaemonWorld

TopicPartition = tuple[str, int]

REQUESTS_MAX = {"Fetch": 240, "Produce": 240, "connect": 60}
"""Of one client in one second, by API: several times what the busiest one of a thousand seeds asks. A
producer whose batches take 200 bytes may have waited for the disk, with 60 records of each topic, and a
consumer then fetches what comes batch by batch."""
OTHER_REQUESTS_MAX = 30
TURNS_MAX = 5_000
"""Of all threads of one process in one second."""
_AFTER_DISK_MS = 60_000

_OF_THE_DISK = (
    "append failed",
    "journal not written",
    "records cannot be written",
    "storage failed",
    "store full",
    "topic log failed",
    "topic not removed",
)
"""These lines of level ERROR are expected for some time after the disk has failed."""


class Checks(logging.Handler):
    """Watches one run. It gets the log lines of all processes."""

    def __init__(self, world: DaemonWorld) -> None:
        super().__init__(logging.ERROR)
        self.world = world
        self.counts: Counter[str] = Counter()
        """Event -> how often it happened; "most ...": the highest number."""
        self.acknowledged: dict[tuple[str, str, int], int] = {}
        """By group and partition: the highest offset whose commit was answered well."""
        self.produced: dict[TopicPartition, int] = {}
        """How many records of each partition were acknowledged."""
        self.calls: Counter[tuple[str, int]] = Counter()
        """Client and second -> how often its application asked for offsets or committed."""
        self.disk_failed_ms: int | None = None
        self._owners: dict[tuple[str, int, TopicPartition], str] = {}
        self._handed: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        self._values: dict[bytes, tuple[TopicPartition, int]] = {}
        self._whole: dict[TopicPartition, int] = {}
        """All records before that offset were handed out."""

    def wrong(self, name: str, text: str) -> None:
        """A check does not hold: the run ends."""
        self.world.wrong(name, text)

    # ---- what clients tell ----

    def calls_offsets(self, client: str) -> None:
        """An application asks for offsets, or commits."""
        self.calls[client, self.world.turns.now_us // 1_000_000] += 1

    def owns(self, group: str, client: str, generation: int, partitions: Iterable[TopicPartition]) -> None:
        """A client was informed that these are its own."""
        self.counts["assigned"] += 1
        for partition in partitions:
            owner = self._owners.setdefault((group, generation, partition), client)
            if owner != client:
                text = f"{partition} of generation {generation} of {group}: {owner} and {client}"
                self.wrong("one owner", text)

    def committed(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        """A commit was answered well."""
        self.counts["commits"] += 1
        self._learn(group, offsets)

    def _learn(self, group: str, offsets: dict[TopicPartition, int]) -> None:
        for (topic, partition), offset in offsets.items():
            place = group, topic, partition
            self.acknowledged[place] = max(offset, self.acknowledged.get(place, 0))
            if group == "readers" and offset > self._handed_to((topic, partition)):
                first = self._handed_to((topic, partition))
                self.wrong(
                    "none skipped", f"{topic}-{partition}: {offset} is committed, {first} not handed out"
                )

    def known(self, group: str) -> dict[tuple[str, str, int], int]:
        """The offsets that an answer to a question from now on must have, at least."""
        return {place: offset for place, offset in self.acknowledged.items() if place[0] == group}

    def fetched(
        self,
        group_id: str,
        known: dict[tuple[str, str, int], int],
        found: dict[TopicPartition, int],
        client: str,
    ) -> None:
        """A client got the committed offsets of the group `group_id`; what was `known` when it asked."""
        self.counts["fetched"] += 1
        self._learn(group_id, found)
        for (group, topic, partition), offset in known.items():
            there = found.get((topic, partition), 0)
            if there < offset:
                text = f"{client} finds {there} for {topic}-{partition} of {group}, {offset} was acknowledged"
                self.wrong("commits never go back", text)

    def handed(self, tp: TopicPartition, offset: int, value: bytes) -> None:
        """A record was handed to an application."""
        self.counts["records"] += 1
        before = self._handed[tp].setdefault(offset, value)
        if before != value:
            self.wrong("a record stays what it is", f"{tp} offset {offset}: {before!r}, then {value!r}")
        place = self._values.setdefault(value, (tp, offset))
        if place != (tp, offset):
            self.wrong("written once", f"{value!r} stands at {place} and at {(tp, offset)}")

    def _handed_to(self, tp: TopicPartition) -> int:
        at, handed = self._whole.get(tp, 0), self._handed[tp]
        while at in handed:
            at += 1
        self._whole[tp] = at
        return at

    def missing(self) -> str:
        """Which acknowledged records were not handed out yet, or not committed."""
        for tp, count in self.produced.items():
            if self._handed_to(tp) < count:
                return f"{tp}: {count} records are written, {self._handed_to(tp)} handed out"
            committed = self.acknowledged.get(("readers", *tp), 0)
            if committed < count:
                return f"{tp}: {count} records are written, {committed} committed"
        return ""

    # ---- how often ----

    def rates(self) -> None:
        """Nobody asks, or turns, without end."""
        for (client, api, second), count in self.world.net.requests.items():
            if api in ("OffsetCommit", "OffsetFetch"):  # as many as its application wants, and some again
                count -= 2 * (self.calls[client, second] + self.calls[client, second - 1])
            self.counts[f"most {api}"] = max(count, self.counts[f"most {api}"])
            if count > REQUESTS_MAX.get(api, OTHER_REQUESTS_MAX):
                self.wrong("requests have a bound", f"{client}: {count} {api} in second {second}")
        self.world.net.requests.clear()

    def turns(self, before: dict[str, int], now: dict[str, int]) -> None:
        """Within one second."""
        for client, count in now.items():
            more = count - before.get(client, 0)
            self.counts["most turns"] = max(more, self.counts["most turns"])
            if more > TURNS_MAX:
                self.wrong("turns have a bound", f"{client}: {more} turns in a second")

    # ---- log lines ----

    def emit(self, record: logging.LogRecord) -> None:
        """A line of level ERROR or above."""
        if self.world.turns.over or self.world.turns.process.dead:
            return
        text = record.getMessage()
        self.world.say("log", text)
        disk_ms = self.disk_failed_ms
        lately = disk_ms is not None and self.world.turns.now_ms < disk_ms + _AFTER_DISK_MS
        if lately and text.startswith(_OF_THE_DISK):
            self.counts["errors of the disk"] += 1
            return
        self.wrong("no error in the log", f"{self.world.turns.process}: {text}")
