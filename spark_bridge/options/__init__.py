"""The options of the source: Spark's Kafka connector's names, checked before anything connects.

The models below are the documentation too (``docs/spark.md`` shows them). Names are matched without
regard to case. An option that is unknown, contradictory, or means something else to a group member is
rejected with a sentence that names the remedy. The sink's are in ``sink_options``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from ringleader.clients.model import EARLIEST, LATEST
from ringleader.spark_bridge.options.build import OptionsError, build
from ringleader.spark_bridge.options.common import Connecting, Reading, check_one, check_topics
from ringleader.spark_bridge.options.kafka import CONSUMER
from ringleader.spark_bridge.options.values import (
    Assignors,
    Duration,
    GroupProtocol,
    Members,
    Millis,
    Offsets,
    Rows,
    Timestamp,
    Timestamps,
)
from ringleader.spark_bridge.values import ReplayPolicy, Subscription

__all__ = [
    "BatchOptions",
    "Connecting",
    "OptionsError",
    "StreamOptions",
    "Subscription",
    "batch_options",
    "stream_options",
]

logger = logging.getLogger("ringleader.spark")

# Options that users bring from Spark's Kafka connector and that cannot hold for a member of a group.
REFUSED = {
    "groupidprefix": "'groupIdPrefix' makes a new group for every query; here the group is the point. "
    "Set 'kafka.group.id'.",
    "kafka.auto.offset.reset": "'kafka.auto.offset.reset' does not apply: use 'startingOffsets' for a group "
    "without offsets, and 'failOnDataLoss' for offsets that are gone.",
    "kafka.enable.auto.commit": "'kafka.enable.auto.commit' does not apply: offsets are committed when Spark "
    "has logged the batch, never by a timer.",
    "kafka.key.deserializer": "'kafka.key.deserializer' does not apply: keys come as binary; cast in the "
    "query.",
    "kafka.value.deserializer": "'kafka.value.deserializer' does not apply: values come as binary; cast in "
    "the query.",
    "kafka.interceptor.classes": "'kafka.interceptor.classes' does not apply: there is no Java client here.",
    "path": "a topic is named by the option 'subscribe', not by a path in load().",
    "topic": "'topic' belongs to a sink; name the topics to read in 'subscribe'.",
}
_ENDS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STREAM_REFUSED = REFUSED | {
    name.lower(): f"a stream has no end: {name!r} is for spark.read." for name in _ENDS
}


# With `assign` there is no member, and the partitions are there.
_WITHOUT_ASSIGN = ("members", "weight", "wait_for_topics")


class StreamOptions(Reading):
    """Options of ``spark.readStream.format("ringleader")``."""

    group_id: str = Field(
        alias="kafka.group.id",
        min_length=1,
        max_length=32_767,
        description="The consumer group this query is a member of; with `assign` the one it commits for.",
    )
    starting_offsets: Offsets = Field(
        "latest",
        alias="startingOffsets",
        description="Where a partition starts for which the group has no committed offset: earliest, "
        "latest, or JSON that names every partition (-2 earliest, -1 latest). A group's committed offset "
        "always wins, then what the checkpoint knows: it holds where a query began. Partitions that come "
        "into being later start at earliest.",
    )
    wait_for_topics: bool = Field(
        False,
        alias="waitForTopics",
        description="Whether the query waits for topics of `subscribe` that do not exist, and reads them "
        "when they come; otherwise it fails at its start. With `trigger(availableNow=True)` it reads what is "
        "there of the others.",
    )
    max_offsets_per_trigger: Rows | None = Field(
        None,
        alias="maxOffsetsPerTrigger",
        description="Rows of a batch in all, shared in proportion to each partition's backlog, at least 1 "
        "for each with any.",
    )
    min_offsets_per_trigger: Rows | None = Field(
        None,
        alias="minOffsetsPerTrigger",
        description="No batch before this number of rows waits, or `maxTriggerDelay` is over.",
    )
    max_trigger_delay_ms: Duration = Field(
        900_000,
        alias="maxTriggerDelay",
        json_schema_extra={"shown": "`15m`"},
        description="How long minOffsetsPerTrigger may hold a batch up, from the last batch: 500ms, 30s, "
        "15m, 1h.",
    )
    replay_policy: ReplayPolicy = Field(
        ReplayPolicy.CLIP,
        alias="replayPolicy",
        description="What a batch reads that runs again after a restart. clip: what the group has not "
        "yet committed; exact: the same ranges again, for sinks that rely on the batch id.",
    )
    members: Members = Field(
        "auto",
        alias="members",
        description="As how many members the query joins its group: how many shares of the partitions it "
        "wants. auto: one with `sharedGroup=false` or `trigger(availableNow=True)`, else as many as "
        "`parallelism`, but no more than there are partitions, nor than 16; more join when partitions come.",
    )
    weight: float | None = Field(
        None,
        gt=0,
        lt=1e6,
        alias="weight",
        description="Joins as one member that wants this number of shares, next to members that give the "
        "assignor `weighted` their weight too. Not together with `members`.",
    )
    shared_group: bool = Field(
        True,
        alias="sharedGroup",
        description="Whether others may be in the group. false: the query fails with a sentence as soon as "
        "it is not alone, as stateful queries and exactly-once need.",
    )
    assignors: Assignors = Field(
        ("cooperative-sticky",),
        alias="kafka.partition.assignment.strategy",
        description="Assignors in order of preference; every member of a group must offer one in common: "
        "range, roundrobin, sticky, cooperative-sticky, weighted, lag-aware. Java's class names are "
        "understood. With only cooperative ones, partitions that stay are read on while the group "
        "rebalances. Default with `weight`: weighted.",
    )
    group_protocol: GroupProtocol = Field(
        "auto",
        alias="kafka.group.protocol",
        description="classic, or consumer (KIP-848: the coordinator assigns; Apache Kafka 4.0 and newer). "
        "auto: consumer for a query that is one member, with `sharedGroup=false` or "
        "`trigger(availableNow=True)`, where the coordinator serves it and nobody is in the group or it is "
        "of that protocol already, as such a query need not wait for others to join; else classic. So it is "
        "with `weight` and the options that only the classic one knows, and with `kafka.group.instance.id`.",
    )
    group_remote_assignor: str | None = Field(
        None,
        alias="kafka.group.remote.assignor",
        min_length=1,
        max_length=200,
        description="With `kafka.group.protocol=consumer`: the coordinator's assignor that this query votes "
        "for, uniform or range; none leaves it to the coordinator.",
    )
    group_instance_id: str | None = Field(
        None,
        alias="kafka.group.instance.id",
        min_length=1,
        max_length=240,
        description="Static membership (KIP-345): a restart within the session timeout takes its "
        "partitions up again without a rebalance, so `stop()` leaves them. With several members, -0, -1 and "
        "so on are appended.",
    )
    client_rack: str | None = Field(
        None,
        alias="kafka.client.rack",
        max_length=200,
        description="Where this query runs, for assignors that keep partitions near their members (KIP-881).",
    )
    session_timeout_ms: Millis = Field(
        45_000,
        alias="kafka.session.timeout.ms",
        description="Silence after which the coordinator removes the member.",
    )
    rebalance_timeout_ms: Millis = Field(
        300_000,
        alias="kafka.max.poll.interval.ms",
        description="How long a rebalance waits for this query to finish its batch; must exceed trigger "
        "interval plus batch time.",
    )
    metadata_max_age_ms: Millis = Field(
        30_000,
        alias="kafka.metadata.max.age.ms",
        description="How often members look for topics and partitions by themselves. The query looks for "
        "those of `subscribe` and `subscribePattern` at each trigger.",
    )
    heartbeat_interval_ms: Millis = Field(
        3_000, alias="kafka.heartbeat.interval.ms", description="Time between heartbeats."
    )

    @property
    def member_count(self) -> int | None:
        """As how many members the query joins at most; 1 with a weight, None: only the partitions say."""
        if self.weight is not None or self.assign:
            return 1
        return self.parallelism if self.members == "auto" else self.members

    @property
    def strategy(self) -> tuple[str, ...]:
        """The assignors to offer: those given, or what fits the weight."""
        given = "assignors" in self.model_fields_set
        return ("weighted",) if self.weight is not None and not given else self.assignors

    @property
    def chooses_protocol(self) -> bool:
        """Whether the group protocol is up to the query. With two addresses it is the classic one: a
        coordinator beside the cluster that has the records would assign topics of its own."""
        one_cluster = self.coordinator_servers is None
        free = self.group_protocol == "auto" and not self._classic_only()
        return free and one_cluster and self.group_instance_id is None

    @model_validator(mode="after")
    def _fit(self) -> StreamOptions:
        check_one(
            {
                "subscribe": bool(self.subscribe),
                "subscribePattern": self.subscribe_pattern is not None,
                "assign": bool(self.assign),
            }
        )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"kafka.heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be below "
                f"kafka.session.timeout.ms ({self.session_timeout_ms}); a third of it is usual"
            )
        if self.starting_offsets == "committed":
            raise ValueError(
                "startingOffsets=committed is for spark.read: a stream always starts at the group's "
                "committed offsets, and startingOffsets says where the group has none"
            )
        low, high = self.min_offsets_per_trigger, self.max_offsets_per_trigger
        if low is not None and high is not None and low > high:
            raise ValueError(f"minOffsetsPerTrigger ({low}) must not exceed maxOffsetsPerTrigger ({high})")
        self._check_members()
        self._check_protocol()
        if wanted := self.subscription.topics:
            check_topics(self.starting_offsets, wanted, "startingOffsets")
        self.check_start(wanted)
        return self

    @property
    def starts_at_earliest(self) -> bool:
        """Whether all partitions start at their beginning, those that come later as well."""
        return self.starting_offsets == "earliest" and not self.timed_start

    def _check_members(self) -> None:
        if self.assign and (given := [name for name in _WITHOUT_ASSIGN if name in self.model_fields_set]):
            names = ", ".join(str(type(self).model_fields[name].alias) for name in given)
            raise ValueError(
                f"{names} is for queries that join a group, as with assign none does: leave it out"
            )
        if self.weight is None:
            return
        if "members" in self.model_fields_set and self.members != 1:
            raise ValueError("members and weight contradict each other: a weighted query is one member")
        if "weighted" not in self.strategy:
            raise ValueError(
                "weight needs the assignor weighted in kafka.partition.assignment.strategy: no other asks "
                "for it"
            )

    def _check_protocol(self) -> None:
        if self.group_protocol == "consumer" and (given := self._classic_only()):
            raise ValueError(
                f"{', '.join(given)} is for the classic protocol: with kafka.group.protocol=consumer the "
                "coordinator decides it. Leave it out, or set kafka.group.protocol=classic"
            )
        if self.group_remote_assignor is not None and self.group_protocol != "consumer":
            raise ValueError("kafka.group.remote.assignor needs kafka.group.protocol=consumer")

    def _classic_only(self) -> list[str]:
        """Of the options that were given those that the consumer protocol does not know."""
        names = ("assignors", "weight", "session_timeout_ms", "heartbeat_interval_ms")
        return [str(type(self).model_fields[name].alias) for name in names if name in self.model_fields_set]


class BatchOptions(Reading):
    """Options of ``spark.read.format("ringleader")``: a plain read, never a member."""

    group_id: str | None = Field(
        None,
        alias="kafka.group.id",
        min_length=1,
        max_length=32_767,
        description="The group whose committed offsets startingOffsets=committed means. A batch read neither "
        "joins nor commits.",
    )
    starting_offsets: Offsets = Field(
        "earliest",
        alias="startingOffsets",
        description="earliest, committed (the offsets of kafka.group.id, earliest where it has none), or "
        "JSON.",
    )
    ending_timestamp: Timestamp | None = Field(
        None,
        alias="endingTimestamp",
        description="As `endingOffsetsByTimestamp`, one time for all partitions. Beats both others.",
    )
    ending_offsets_by_timestamp: Timestamps | None = Field(
        None,
        alias="endingOffsetsByTimestamp",
        description="Up to before the first record of this time or later, in ms; to the end where there is "
        "none. Beats `endingOffsets`.",
    )
    ending_offsets: Offsets = Field(
        "latest", alias="endingOffsets", description="latest, or JSON (-1 latest); ends are exclusive."
    )

    @model_validator(mode="after")
    def _fit(self) -> BatchOptions:
        check_one(
            {
                "subscribe": bool(self.subscribe),
                "subscribePattern": self.subscribe_pattern is not None,
                "assign": bool(self.assign),
            }
        )
        if self.starting_offsets == "latest" or _holds(self.starting_offsets, LATEST):
            raise ValueError(
                "startingOffsets of a batch read cannot be latest: there would be nothing to read"
            )
        if self.ending_offsets in ("earliest", "committed") or _holds(self.ending_offsets, EARLIEST):
            raise ValueError("endingOffsets must be latest, or JSON with offsets or -1")
        if self.starting_offsets == "committed" and self.group_id is None:
            raise ValueError("startingOffsets=committed needs kafka.group.id")
        if wanted := self.subscription.topics:
            check_topics(self.starting_offsets, wanted, "startingOffsets")
            check_topics(self.ending_offsets, wanted, "endingOffsets")
            check_topics(self.ending_offsets_by_timestamp, wanted, "endingOffsetsByTimestamp")
        self.check_start(wanted)
        return self


# A stream's options serve a batch read as well: what steers triggers and membership has no meaning there.
STREAM_ONLY = {
    alias.lower(): alias
    for name, field in StreamOptions.model_fields.items()
    if name not in BatchOptions.model_fields and (alias := field.alias)
}


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Check the options of a streaming query.

    Raises OptionsError with one sentence for each reason.
    """
    return build(StreamOptions, options, STREAM_REFUSED, without_effect=CONSUMER)


def batch_options(options: Mapping[str, str]) -> BatchOptions:
    """Check the options of a batch read.

    Options that only steer triggers or membership are left out, with a warning for those that Spark's
    own source warns of. Raises OptionsError with one sentence for each reason.
    """
    built = build(BatchOptions, options, REFUSED, STREAM_ONLY.keys(), CONSUMER)
    idle = [STREAM_ONLY[name] for given in options if (name := given.lower()) in STREAM_ONLY]
    if unused := [name for name in idle if not name.startswith("kafka.")]:
        logger.warning("a batch read has no use for %s", ", ".join(sorted(unused)))
    return built


def _holds(offsets: Any, value: int) -> bool:
    return isinstance(offsets, dict) and value in offsets.values()
