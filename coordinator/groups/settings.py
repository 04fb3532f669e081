"""Settings and limits of the group machine: Kafka's broker names in snake case, then our own limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What an operator may change about groups. Times in milliseconds unless the name says otherwise."""

    # --- Kafka's own (defaults as Apache Kafka 4.x) ---

    group_min_session_timeout_ms: int = 6_000
    """JoinGroup with a shorter session timeout is refused with INVALID_SESSION_TIMEOUT (bound included)."""
    group_max_session_timeout_ms: int = 1_800_000
    """JoinGroup with a longer session timeout is refused with INVALID_SESSION_TIMEOUT (bound included)."""
    group_initial_rebalance_delay_ms: int = 3_000
    """How long a rebalance that starts from an empty group waits for more members (KIP-134)."""
    group_max_size: int = 2_147_483_647
    """Members of one group; more are refused with GROUP_MAX_SIZE_REACHED (KIP-389)."""
    offset_metadata_max_bytes: int = 4_096
    """Length of the text that may go with a committed offset, counted as Kafka does: in UTF-16 units."""
    offsets_retention_minutes: int = 10_080
    """How long offsets outlive their use (KIP-211): see `Offsets.expire` for when the clock starts."""
    offsets_retention_check_interval_ms: int = 600_000
    """How often expired offsets and empty groups are looked for."""

    # --- fixed in Kafka ---

    new_member_join_timeout_ms: int = 300_000
    """How long a new member may wait for its first join phase to complete (fixed in Kafka, KAFKA-7610)."""

    # --- our own limits; Kafka has none of them ---

    group_max_pending_members: int = 10_000
    """Member ids given out with MEMBER_ID_REQUIRED that have not come back, per group. Above it:
    GROUP_MAX_SIZE_REACHED. They expire after the session timeout of their request."""
    shard_max_groups: int = 100_000
    """Groups of one partition of __consumer_offsets. A request that would create one more:
    POLICY_VIOLATION."""
    member_max_metadata_bytes: int = 1_048_576
    """Protocol names and metadata that one member may offer in JoinGroup, together. Above it:
    POLICY_VIOLATION."""
    group_max_record_bytes: int = 16_777_216
    """Size of a group's record (all members with metadata and assignment). A leader's SyncGroup above it gets
    UNKNOWN_SERVER_ERROR, which is what Kafka answers when the record is larger than its log takes."""
    generation_block: int = 32
    """Generation numbers are reserved durably in blocks of this size, so that none is ever used twice, a
    crash included. After a crash a group skips the rest of its block."""
    group_full_retry_ms: int = 1_000
    """While the store is full, what is due is tried again after this time."""
