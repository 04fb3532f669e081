"""Which partition a record goes to when its row names none: as Kafka's Java producer decides.

A record with a key goes where the key's murmur2 says, so that producers of both kinds keep a key in one
partition. Records without one stay with a partition until a batch is full, then move on (KIP-480, KIP-794).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The 32-bit hash of ``org.apache.kafka.common.utils.Utils.murmur2``, signed as in Java."""
    length = len(data)
    whole = length & ~3
    h = _SEED ^ length
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if length != whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h & 0x80000000 else h


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key among so many, as ``BuiltInPartitioner.partitionForKey``."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitions:
    """Where records without a key of one topic go. Not thread-safe."""

    def __init__(self, available: Sequence[int], source: random.Random) -> None:
        """``available``: partitions that have a leader, at least one; ``source`` chooses the first."""
        self._order = list(available)
        source.shuffle(self._order)
        self._at = 0

    @property
    def current(self) -> int:
        """The partition to fill now."""
        return self._order[self._at]

    def move_on(self) -> None:
        """A batch is full: the next partition, all in turn."""
        self._at = (self._at + 1) % len(self._order)
