"""Settings and limits of the group machine: Kafka's broker names in snake case, then our own limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ringleader.protocol.wire import INT32_MAX, INT64_MAX


class GroupSettings(BaseModel):
    """What an operator may change about groups, but for what is `exclude`d: that only tests change. The
    descriptions are the documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    # --- Kafka's own (defaults as Apache Kafka 4.x) ---

    group_min_session_timeout_ms: int = Field(
        6_000, ge=1, le=INT32_MAX, description="Shortest session timeout that a member may ask for."
    )
    group_max_session_timeout_ms: int = Field(
        1_800_000, ge=1, le=INT32_MAX, description="Longest session timeout that a member may ask for."
    )
    group_initial_rebalance_delay_ms: int = Field(
        3_000,
        ge=0,
        le=INT32_MAX,
        description="How long a rebalance that starts from an empty group waits for more members.",
    )
    group_max_size: int = Field(INT32_MAX, ge=1, le=INT32_MAX, description="Members of one group.")
    offset_metadata_max_bytes: int = Field(
        4_096,
        ge=0,
        le=INT32_MAX,
        description="Length of the text that may go with a committed offset (counted in UTF-16 units).",
    )
    offsets_retention_minutes: int = Field(
        10_080,
        ge=1,
        le=INT32_MAX,
        description="How long committed offsets outlive the last member of their group, or their commit in a "
        "group that never had members.",
    )
    offsets_retention_check_interval_ms: int = Field(
        600_000,
        ge=1,
        le=INT64_MAX,
        description="How often expired offsets and empty groups are looked for. A wall clock that jumps, and "
        "back again within this time, makes nothing expire.",
    )

    # --- our own limits; Kafka has none of them ---

    group_max_pending_members: int = Field(
        10_000,
        ge=1,
        le=INT32_MAX,
        description="Member ids per group that were given out and have not come back to join.",
    )
    shard_max_groups: int = Field(
        100_000, ge=1, le=INT32_MAX, description="Groups of one partition of the offsets topic."
    )
    member_max_metadata_bytes: int = Field(
        1_048_576,
        ge=1_024,
        le=INT32_MAX,
        description="Protocol names and metadata that one member may offer when it joins, together.",
    )
    group_max_record_bytes: int = Field(
        16_777_216,
        ge=16_384,
        le=INT32_MAX,
        description="Size of a group's stored record, all members with metadata and assignment; and of the "
        "records of one commit together, which repeat the names of group and topic for each partition.",
    )
    group_metadata_max_bytes: int = Field(
        268_435_456,
        ge=1_048_576,
        le=INT64_MAX,
        description="Memory that all groups of this node may take together for their members: ids, what they "
        "offer and are assigned. A member counts twice what it offers, and 2 KiB at least, for it is in its "
        "group's record too; a record that is larger counts as it is. Above it JoinGroup of new members, or "
        "with a larger offer, is refused, and SyncGroup with larger assignments. The default is enough for "
        "130,000 members with offers of 500 bytes. In bytes. Committed offsets are not counted.",
    )
    generation_block: int = Field(
        32,
        ge=1,
        le=1_000_000,
        description="Generation numbers are reserved on the disk in blocks of this size, so that a crash "
        "never leads to a number being used twice; it skips the rest of the block.",
    )

    # --- fixed ---

    new_member_join_timeout_ms: int = Field(300_000, exclude=True)
    """How long a new member may wait for its first join phase to complete (fixed in Kafka, KAFKA-7610)."""
    proof_interval_ms: int = Field(5_000, exclude=True)
    """Where another node may own the shard: a zombie's heartbeats are a success for no longer than this, and
    the time that an append takes."""
    offsets_per_step: int = Field(500, exclude=True)
    """How many one step of long work sees to: retention, the end of a transaction, the deletion of a topic.
    A few milliseconds; in retention and deletion a group counts as one, too."""
    log_silence_ms: int = Field(3_000, exclude=True)
    """When an append has taken so long no session ends, and all start full when the log speaks again:
    heartbeats may stand behind a commit that waits for it. Default: the libraries' own interval of
    heartbeats."""
    group_full_retry_ms: int = Field(1_000, exclude=True)
    """While the store is full, what is due is tried again after this time."""
