"""Keys and values of the records in __consumer_offsets.

Stored with an int16 in front: what kind of key it is, or the version of the value. That number is the version
to encode and decode with; the two bytes themselves are the caller's.
"""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@message(versions=(1, 1), kind="data")
class OffsetCommitKey(Message):
    """Key of a committed offset: group, topic and partition (OffsetCommitKey v1 of __consumer_offsets)."""

    group: str = field("string", default="")
    topic: str = field("string", default="")
    partition: int = field("int32", default=0)


@message(versions=(0, 4), flexible=4, kind="data")
class OffsetCommitValue(Message):
    """A committed offset (OffsetCommitValue v0-4 of __consumer_offsets).

    Times in ms since 1970; `expire_timestamp` -1 leaves expiry to the settings.
    """

    offset: int = field("int64", default=0)
    leader_epoch: int = field("int32", versions=(3, LAST), default=-1, ignorable=True)
    metadata: str = field("string", default="")
    commit_timestamp: int = field("int64", default=0)
    expire_timestamp: int = field("int64", versions=(1, 1), default=-1, ignorable=True)
    topic_id: bytes = field(
        "uuid", versions=(4, LAST), default=ZERO_UUID, tag=0, tagged=(4, LAST), ignorable=True
    )


@message(versions=(2, 2), kind="data")
class GroupMetadataKey(Message):
    """Key of a group (GroupMetadataKey v2 of __consumer_offsets)."""

    group: str = field("string", default="")


@struct
class GroupMetadataValueMemberMetadata:
    """One of `GroupMetadataValue.members`."""

    member_id: str = field("string", default="")
    group_instance_id: str | None = field(
        "string", versions=(3, LAST), nullable=(3, LAST), default=None, ignorable=True
    )
    client_id: str = field("string", default="")
    client_host: str = field("string", default="")
    rebalance_timeout: int = field("int32", versions=(1, LAST), default=-1, ignorable=True)
    session_timeout: int = field("int32", default=0)
    subscription: bytes = field("bytes", default=b"")
    assignment: bytes = field("bytes", default=b"")


@message(versions=(0, 4), flexible=4, kind="data")
class GroupMetadataValue(Message):
    """A group at its last sync, with its members and assignments (GroupMetadataValue v0-4 of
    __consumer_offsets).

    Timeouts in ms. `protocol` and `leader` are null in an empty group.
    """

    protocol_type: str = field("string", default="")
    generation: int = field("int32", default=0)
    protocol: str | None = field("string", nullable=(0, LAST), default="")
    leader: str | None = field("string", nullable=(0, LAST), default="")
    current_state_timestamp: int = field("int64", versions=(2, LAST), default=-1, ignorable=True)
    members: list[GroupMetadataValueMemberMetadata] = array(GroupMetadataValueMemberMetadata, factory=list)


@message(versions=(0, 0), kind="data")
class TransactionLogKey(Message):
    """Key of a transaction (TransactionLogKey v0 of __transaction_state; KIP-98)."""

    transactional_id: str = field("string", default="")


@struct
class TransactionLogValuePartitionsSchema:
    """One of `TransactionLogValue.transaction_partitions`."""

    topic: str = field("string", default="")
    partition_ids: list[int] = array("int32", factory=list)


@message(versions=(0, 1), flexible=1, kind="data")
class TransactionLogValue(Message):
    """A transaction (TransactionLogValue v0-1 of __transaction_state; KIP-98, KIP-890).

    Times in ms since 1970, -1 for none. `transaction_status`: 0 Empty, 1 Ongoing, 2 PrepareCommit,
    3 PrepareAbort, 4 CompleteCommit, 5 CompleteAbort. `transaction_partitions` is null when Empty.
    """

    producer_id: int = field("int64", default=0)
    previous_producer_id: int = field(
        "int64", versions=(1, LAST), default=-1, tag=0, tagged=(1, LAST), ignorable=True
    )
    next_producer_id: int = field(
        "int64", versions=(1, LAST), default=-1, tag=1, tagged=(1, LAST), ignorable=True
    )
    producer_epoch: int = field("int16", default=0)
    next_producer_epoch: int = field(
        "int16", versions=(1, LAST), default=-1, tag=3, tagged=(1, LAST), ignorable=True
    )
    transaction_timeout_ms: int = field("int32", default=0)
    transaction_status: int = field("int8", default=0)
    transaction_partitions: list[TransactionLogValuePartitionsSchema] | None = array(
        TransactionLogValuePartitionsSchema, nullable=(0, LAST), factory=list
    )
    transaction_last_update_timestamp_ms: int = field("int64", default=0)
    transaction_start_timestamp_ms: int = field("int64", default=0)
    client_transaction_version: int = field(
        "int16", versions=(1, LAST), default=0, tag=2, tagged=(1, LAST), ignorable=True
    )
