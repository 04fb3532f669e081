"""Settings and limits of the group machine: Kafka's broker names in snake case, then our own limits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS
from ringleader.coordinator.letter_case import ANY_CASE
from ringleader.host.words import Words
from ringleader.protocol.wire import INT32_MAX, INT64_MAX


def _known(assignors: tuple[str, ...]) -> tuple[str, ...]:
    if not assignors or not {*assignors} <= ASSIGNORS.keys():
        raise ValueError(f"there are {', '.join(ASSIGNORS)}, not {','.join(assignors) or 'none'}")
    return tuple(dict.fromkeys(assignors))


class GroupSettings(BaseModel):
    """The settings of groups. Those that are `exclude`d only tests change. The
    descriptions are the documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    # --- Kafka's own (defaults as Apache Kafka 4.x) ---

    group_min_session_timeout_ms: int = Field(
        6_000, ge=1, le=INT32_MAX, description="Shortest session timeout that a member may request."
    )
    group_max_session_timeout_ms: int = Field(
        1_800_000, ge=1, le=INT32_MAX, description="Longest session timeout that a member may request."
    )
    group_initial_rebalance_delay_ms: int = Field(
        3_000,
        ge=0,
        le=INT32_MAX,
        description="How long the first rebalance of an empty group waits for more members.",
    )
    group_max_size: int = Field(
        INT32_MAX, ge=1, le=INT32_MAX, description="Largest number of members in a group."
    )
    group_consumer_session_timeout_ms: int = Field(
        45_000,
        ge=1_000,
        le=INT32_MAX,
        description="How long a member of the consumer protocol may be silent before it is removed.",
    )
    group_consumer_heartbeat_interval_ms: int = Field(
        5_000,
        ge=100,
        le=INT32_MAX,
        description="How often members of the consumer protocol are to send heartbeats.",
    )
    group_consumer_assignment_interval_ms: int = Field(
        1_000,
        ge=0,
        le=15_000,
        description="Shortest time between two computations of the assignment of a group of the consumer "
        "protocol: changes within it are collected. 0: each change is computed at once.",
    )
    group_consumer_min_session_timeout_ms: int = Field(
        45_000, ge=1, le=INT32_MAX, description="Least `consumer.session.timeout.ms` of a single group."
    )
    group_consumer_max_session_timeout_ms: int = Field(
        60_000, ge=1, le=INT32_MAX, description="Largest `consumer.session.timeout.ms` of a single group."
    )
    group_consumer_min_heartbeat_interval_ms: int = Field(
        5_000, ge=1, le=INT32_MAX, description="Least `consumer.heartbeat.interval.ms` of a single group."
    )
    group_consumer_max_heartbeat_interval_ms: int = Field(
        15_000, ge=1, le=INT32_MAX, description="Largest `consumer.heartbeat.interval.ms` of a single group."
    )
    group_consumer_min_assignment_interval_ms: int = Field(
        0, ge=0, le=INT32_MAX, description="Least `consumer.assignment.interval.ms` of a single group."
    )
    group_consumer_max_assignment_interval_ms: int = Field(
        15_000, ge=0, le=INT32_MAX, description="Largest `consumer.assignment.interval.ms` of a single group."
    )
    group_consumer_max_size: int = Field(
        INT32_MAX,
        ge=1,
        le=INT32_MAX,
        description="Largest number of members in a group of the consumer protocol.",
    )
    group_consumer_assignors: Annotated[tuple[str, ...], Words, AfterValidator(_known)] = Field(
        ("uniform", "range"),
        description="Comma-separated assignors of the coordinator that members of the consumer protocol may "
        "ask for; the first is that of groups whose members ask for none. There are uniform and range, as in "
        "Kafka, [rack](consumer-protocol.md#racks) and [weighted](consumer-protocol.md#weights).",
    )
    group_consumer_migration_policy: Annotated[
        Literal["bidirectional", "upgrade", "downgrade", "disabled"], ANY_CASE
    ] = Field(
        "bidirectional",
        description="Whether a classic group of consumers becomes a group of the consumer protocol when a "
        "member of that joins (`upgrade`), and a classic one again when the last of them is gone "
        "(`downgrade`).",
    )
    group_consumer_leader_timeout_ms: int = Field(
        5_000,
        ge=100,
        le=INT32_MAX,
        description="How long a member of the consumer protocol may compute the assignment of its group "
        "(`client:NAME` as its assignor) before an assignor of the coordinator does. Kafka has no such "
        "assignors.",
    )
    offset_metadata_max_bytes: int = Field(
        4_096,
        ge=0,
        le=INT32_MAX,
        description="Longest metadata text of a committed offset, counted in UTF-16 units.",
    )
    offsets_retention_minutes: int = Field(
        10_080,
        ge=1,
        le=INT32_MAX,
        description="How long committed offsets are kept after the last member left the group, or after "
        "the commit if the group never had members.",
    )
    offsets_retention_check_interval_ms: int = Field(
        600_000,
        ge=1,
        le=INT64_MAX,
        description="How often expired offsets and empty groups are removed. If the wall clock jumps and "
        "returns within this time, nothing expires.",
    )

    # --- our own limits; Kafka has none of them ---

    group_max_pending_members: int = Field(
        10_000,
        ge=1,
        le=INT32_MAX,
        description="Largest number of member ids per group that were assigned but have not joined yet.",
    )
    shard_max_groups: int = Field(
        100_000,
        ge=1,
        le=INT32_MAX,
        description="Largest number of groups in one partition of the offsets topic.",
    )
    member_max_metadata_bytes: int = Field(
        1_048_576,
        ge=1_024,
        le=INT32_MAX,
        description="Largest total size of the protocol names and metadata in a member's JoinGroup.",
    )
    group_max_record_bytes: int = Field(
        16_777_216,
        ge=16_384,
        le=INT32_MAX,
        description="Largest stored record of a group (all members with metadata and assignment), and "
        "largest total size of the records of one commit, which repeat the names of group and topic for "
        "each partition.",
    )
    group_metadata_max_bytes: int = Field(
        268_435_456,
        ge=1_048_576,
        le=INT64_MAX,
        description="Memory for the members of all groups on this node: ids, metadata, assignments. A "
        "member counts twice its metadata, at least 2 KiB, since its group's record contains it, too; a "
        "larger record counts with its size. Above this limit, JoinGroup of new members or with more "
        "metadata is refused, and so is SyncGroup with larger assignments. The default is enough for "
        "130,000 members with 500 bytes of metadata. In bytes. Committed offsets are not counted. A "
        "member of the consumer protocol counts 2 KiB and its subscription, a group's partitions about "
        "200 bytes each; above this limit a heartbeat that would add to that is refused.",
    )
    generation_block: int = Field(
        32,
        ge=1,
        le=1_000_000,
        description="Generation numbers are reserved on disk in blocks of this size. After a crash, the "
        "rest of the block is skipped, so that no number is used twice.",
    )

    # --- fixed ---

    new_member_join_timeout_ms: int = Field(300_000, exclude=True)
    """How long a new member may wait for its first join phase to complete (fixed in Kafka, KAFKA-7610)."""
    confirm_interval_ms: int = Field(5_000, exclude=True)
    """Where another node may own the shard: a zombie's heartbeats are a success for no longer than this, and
    the time that an append takes."""
    offsets_per_step: int = Field(500, exclude=True)
    """How many one step of long work sees to: retention, the end of a transaction, the deletion of a topic.
    A few milliseconds; in retention and deletion a group counts as one, too."""
    assigned_at_once: int = Field(20_000, exclude=True)
    """How many partitions and topics of members one event sees to in the computation of a target, some 20 ms;
    what there is more of is long work, in steps of a fifth of it."""
    log_silence_ms: int = Field(3_000, exclude=True)
    """When an append has taken this time no session ends, and all start full when the log speaks again:
    heartbeats may stand behind a commit that waits for it. Default: the libraries' own interval of
    heartbeats."""
    group_full_retry_ms: int = Field(1_000, exclude=True)
    """While the store is full, what is due is tried again after this time."""
