"""Which of the partitions of __consumer_offsets a group belongs to, as every Kafka broker computes it."""

from __future__ import annotations

OFFSETS_TOPIC_PARTITIONS = 50
"""Default of `offsets.topic.num.partitions`. Never change it for a data directory that has groups in it."""


def java_string_hash(text: str) -> int:
    """`java.lang.String.hashCode`: over UTF-16 code units, in signed 32-bit arithmetic."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


def partition_for(key: str, partitions: int = OFFSETS_TOPIC_PARTITIONS) -> int:
    """The partition (0-based) that a group id or transactional id belongs to: abs(hashCode) mod `partitions`.

    As in Kafka, the absolute value of -2^31 (which Java cannot represent) counts as 0.
    """
    value = java_string_hash(key)
    return 0 if value == -0x80000000 else abs(value) % partitions
