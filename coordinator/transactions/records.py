"""The stored records of transactions: Kafka's own records of __transaction_state.

Each key and value has an int16 version in front.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error

from ringleader.coordinator.transactions.states import Partition, State, Transaction
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionLogValuePartitionsSchema,
)

KEY_VERSION = 0
VALUE_VERSION = 1
"""The version that is written; 0 is read, too."""

_VERSION = Struct(">h")


def encode_key(transactional_id: str) -> bytes:
    """TransactionLogKey v0."""
    return _VERSION.pack(KEY_VERSION) + TransactionLogKey(transactional_id).encode(KEY_VERSION)


_ABORTED = TransactionLogValuePartitionsSchema("", [])
"""Ours: a transaction of this epoch was aborted. Other readers see a topic without partitions."""


def by_topic(partitions: Iterable[Partition]) -> list[tuple[str, list[int]]]:
    """The topics with their partitions, both sorted. Of many partitions that is faster than to sort them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [(topic, sorted(topics[topic])) for topic in sorted(topics)]


def encode_value(transaction: Transaction) -> bytes:
    """TransactionLogValue v1."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_id,
        next_producer_id=transaction.next_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state == State.EMPTY
        else [
            *([_ABORTED] if transaction.aborted else ()),
            *(TransactionLogValuePartitionsSchema(*entry) for entry in by_topic(transaction.partitions)),
        ],
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )
    return _VERSION.pack(VALUE_VERSION) + value.encode(VALUE_VERSION)


def decode_key(key: bytes) -> str | None:
    """The transactional id; None for a key of another version. Raises MalformedError."""
    if _version(key) != KEY_VERSION:
        return None
    return TransactionLogKey.decode(key, KEY_VERSION, _VERSION.size).transactional_id


def decode_value(value: bytes) -> Transaction:
    """A transaction. Raises MalformedError."""
    version = _version(value)
    if not 0 <= version <= VALUE_VERSION:
        raise MalformedError("TransactionLogValue", version, "version", 0, "the version is not known")
    found = TransactionLogValue.decode(value, version, _VERSION.size)
    try:
        state = State(found.transaction_status)
    except ValueError:
        raise MalformedError(
            "TransactionLogValue",
            version,
            "transaction_status",
            0,
            f"there is no state {found.transaction_status}",
        ) from None
    return Transaction(
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (entry.topic, partition)
            for entry in found.transaction_partitions or ()
            for partition in entry.partition_ids
        ),
        started_ms=found.transaction_start_timestamp_ms,
        updated_ms=found.transaction_last_update_timestamp_ms,
        aborted=_ABORTED in (found.transaction_partitions or ()),
        version=found.client_transaction_version,
        previous_id=found.previous_producer_id,
        next_id=found.next_producer_id,
    )


def _version(data: bytes) -> int:
    try:
        return int(_VERSION.unpack_from(data)[0])
    except struct_error:
        raise MalformedError("TransactionLogKey", -1, "version", 0, "cut off") from None
