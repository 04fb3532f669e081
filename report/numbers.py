"""The report on a group's topics: what the cluster knows and what the records say, put together.

`python -m ringleader.report --help` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleader.report import traffic
from ringleader.report.facts import GroupFacts, PartitionFacts
from ringleader.report.fitting import Fit, fit, rule, tries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOTS = 60
"""The most time slots of the window, each a whole number of seconds."""
SHOWN_KEY_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options of the report. Rates in records a second."""

    window_s: int
    hot_keys: int = 20
    head_room: float = 1.5
    """The target is the busiest time slot times this."""
    producer_per_s: float = 10_000.0
    """The rate of one producer with one partition."""
    consumer_per_s: float = 2_000.0
    """The rate of one consumer with one partition."""

    @property
    def slot_s(self) -> int:
        """Length of a time slot."""
        return max(1, self.window_s // SLOTS)


@dataclass(frozen=True, slots=True)
class PartitionTraffic:
    """One partition in the window."""

    place: PartitionFacts
    records: int
    bytes: int
    rate_per_s: float
    """Mean over the window, or over the newer part of it that was read."""
    peak_per_s: float
    """In its busiest time slot."""
    share: float
    """Of the topic's records in the window, those that were left out too."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key with many records. `key` is text for people. `records` and `bytes` are those that were read."""

    topic: str
    key: str
    records: int
    bytes: int
    share: float
    """Of the topic's records; where older ones were left out, those that were read stand for them, too."""
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """How a topic's records would spread over `n` partitions."""

    topic: str
    n: int
    share: float
    """Of all records, in the fullest of the n; 1/n would be even."""


@dataclass(frozen=True, slots=True)
class Report:
    """All of it. `times`: topic -> (begin of slot in ms, records a second) of each slot with records."""

    group: GroupFacts
    wanted: Wanted
    made_ms: int
    partitions: tuple[PartitionTraffic, ...]
    keys: tuple[HotKey, ...]
    spreads: tuple[Spread, ...]
    fits: tuple[Fit, ...]
    times: Mapping[str, tuple[tuple[int, float], ...]] = field(repr=False)

    @property
    def findings(self) -> list[str]:
        """The findings that somebody should know first, in sentences."""
        found = [*self._left_out(), *(sentence for one in self.fits for sentence in one.advice)]
        idle = [member for member in self.group.members if member.idle]
        if idle:
            names = ", ".join(sorted({member.client_id for member in idle}))
            found.append(f"{len(idle)} of {len(self.group.members)} members are idle: {names}.")
        ownerless = [one for one in self.group.partitions if one.owner is None]
        if ownerless and self.group.members:
            found.append(f"{len(ownerless)} partitions have no owner.")
        return found or ["Nothing stands out."]

    def _left_out(self) -> list[str]:
        left_out, cut = self.group.left_out, [one for one in self.group.partitions if one.left_out]
        if not cut:
            return []
        read = sum(one.end - one.start for one in self.group.partitions)
        return [
            f"Only {read:,} of the {read + left_out:,} records of the window were read (--max-records): "
            f"{left_out:,} older ones of {len(cut)} of {len(self.group.partitions)} partitions were left "
            "out. The shares of partitions and keys allow for them; a busier time or another key among them "
            "would not be seen."
        ]


def options(group: GroupFacts, bootstrap: str) -> dict[str, str]:
    """The options of the batch read of the window."""
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in group.partitions:
        starts.setdefault(one.topic, {})[str(one.partition)] = one.start
        ends.setdefault(one.topic, {})[str(one.partition)] = one.end
    return {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": ",".join(sorted(starts)),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }


def make(
    spark: SparkSession,
    group: GroupFacts,
    wanted: Wanted,
    read: Mapping[str, str],
    now_ms: int,
    out: Path | None = None,
) -> Report:
    """Read the window and report. `read`: options of format `ringleader`, see `options`. With `out`, its
    tables are written there as Parquet: partitions, keys (all of them), spread."""
    rows = traffic.slim(spark.read.format("ringleader").options(**read).load())
    scales = {(one.topic, one.partition): one.scale for one in group.partitions if one.left_out}
    rows = traffic.weighted(rows, scales).persist()
    try:
        slots = traffic.by_time(rows, wanted.slot_s)
        keys = traffic.by_key(rows).persist()
        counted = [row.asDict() for row in slots.collect()]
        hot = [_hot(row) for row in traffic.hottest(keys, wanted.hot_keys).collect()]
        partitions = _partitions(group, wanted, counted)
        times = _times(wanted, counted)
        counts = group.counts()
        targets = {
            topic: wanted.head_room * max((rate for _, rate in times.get(topic, ())), default=0.0)
            for topic in counts
        }
        ns = {
            topic: tries(n, rule(targets[topic], wanted.producer_per_s, wanted.consumer_per_s))
            for topic, n in counts.items()
        }
        spread = traffic.spread(keys, ns).persist()
        spreads = tuple(Spread(row["topic"], row["n"], float(row["share"])) for row in spread.collect())
        report = Report(
            group,
            wanted,
            now_ms,
            partitions,
            tuple(hot),
            spreads,
            tuple(_fit(topic, n, group, wanted, targets[topic], spreads, hot) for topic, n in counts.items()),
            times,
        )
        if out is not None:
            _write(spark, report, {"keys": keys, "spread": spread, "traffic": slots}, out)
        return report
    finally:
        rows.unpersist()


def _hot(row: Any) -> HotKey:
    return HotKey(
        row["topic"],
        shown(row["key"]),
        int(row["records"]),
        int(row["bytes"]),
        float(row["share"]),
        tuple(row["partitions"]),
    )


def shown(key: bytes | bytearray | None) -> str:
    """A key as text: its characters when it is text, else hexadecimal."""
    if key is None:
        return traffic.NO_KEY
    raw = bytes(key)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or not text:
        text = "0x" + raw.hex()
    return text if len(text) <= SHOWN_KEY_CHARACTERS else text[: SHOWN_KEY_CHARACTERS - 1] + "…"


def _partitions(
    group: GroupFacts, wanted: Wanted, counted: Sequence[Mapping[str, Any]]
) -> tuple[PartitionTraffic, ...]:
    records: dict[tuple[str, int], int] = {}
    sizes: dict[tuple[str, int], int] = {}
    peaks: dict[tuple[str, int], int] = {}
    begins: dict[tuple[str, int], int] = {}
    for row in counted:
        place = (row["topic"], row["partition"])
        begins.setdefault(place, row["slot_ms"])
        records[place] = records.get(place, 0) + row["records"]
        sizes[place] = sizes.get(place, 0) + (row["bytes"] or 0)
        peaks[place] = max(peaks.get(place, 0), row["records"])
    totals: dict[str, float] = {}
    windows: dict[tuple[str, int], float] = {}
    for one in group.partitions:
        place = (one.topic, one.partition)
        windows[place] = records[place] * one.scale if place in records else one.left_out
        totals[one.topic] = totals.get(one.topic, 0.0) + windows[place]
    spans = _spans(wanted, counted)

    def span_s(one: PartitionFacts) -> float:
        first, last = spans.get(one.topic, (0, wanted.window_s * 1000))
        # A log that was cut short says nothing of the time before.
        return (last - (begins.get((one.topic, one.partition), first) if one.left_out else first)) / 1000

    return tuple(
        PartitionTraffic(
            one,
            count := records.get((one.topic, one.partition), 0),
            sizes.get((one.topic, one.partition), 0),
            count / span_s(one),
            peaks.get((one.topic, one.partition), 0) / wanted.slot_s,
            windows[one.topic, one.partition] / total if (total := totals[one.topic]) else 0.0,
        )
        for one in group.partitions
    )


def _spans(wanted: Wanted, counted: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """From the begin of each topic's first slot with records to the end of its last, in ms."""
    found: dict[str, tuple[int, int]] = {}
    for row in counted:
        begin, end = row["slot_ms"], row["slot_ms"] + wanted.slot_s * 1000
        first, last = found.get(row["topic"], (begin, end))
        found[row["topic"]] = (min(first, begin), max(last, end))
    return found


def _times(wanted: Wanted, counted: Sequence[Mapping[str, Any]]) -> dict[str, tuple[tuple[int, float], ...]]:
    found: dict[str, dict[int, int]] = {}
    for row in counted:
        of = found.setdefault(row["topic"], {})
        of[row["slot_ms"]] = of.get(row["slot_ms"], 0) + row["records"]
    return {
        topic: tuple((at, count / wanted.slot_s) for at, count in sorted(of.items()))
        for topic, of in found.items()
    }


def _fit(
    topic: str,
    partitions: int,
    group: GroupFacts,
    wanted: Wanted,
    target_per_s: float,
    spreads: Sequence[Spread],
    hot: Sequence[HotKey],
) -> Fit:
    of_topic = [one for one in hot if one.topic == topic and one.key != traffic.NO_KEY]
    return fit(
        topic,
        partitions,
        sum(topic in member.topics for member in group.members),
        target_per_s,
        wanted.producer_per_s,
        wanted.consumer_per_s,
        {one.n: one.share for one in spreads if one.topic == topic},
        (of_topic[0].key, of_topic[0].share) if of_topic else None,
    )


def _write(spark: SparkSession, report: Report, frames: Mapping[str, DataFrame], out: Path) -> None:
    for name, frame in frames.items():
        frame.write.mode("overwrite").parquet(str(out / f"{name}.parquet"))
    rows = [
        {**{k: v for k, v in asdict(one).items() if k != "place"}, **asdict(one.place)}
        for one in report.partitions
    ]
    schema = (
        "topic string, partition int, start long, end long, left_out long, lag long, owner string, "
        "consumed_per_s double, records long, bytes long, rate_per_s double, peak_per_s double, share double"
    )
    spark.createDataFrame(rows, schema).write.mode("overwrite").parquet(str(out / "partitions.parquet"))
