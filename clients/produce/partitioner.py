"""Which partition a record goes to when its row names none: as Kafka's Java producer decides.

A record with a key goes where the key's murmur2 says, so that producers of both kinds keep a key in one
partition. Records without one stay with a partition until a batch is full, then move on (KIP-480, KIP-794).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from ringleader.protocol import native

_compiled = None if native.compiled is None else native.compiled.murmur2
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
FEWEST_IN_COLUMNS = 32


@lru_cache(maxsize=1_024)
def _words(length: int) -> Struct:
    return Struct(f"<{length // 4}I")


def murmur2(data: bytes) -> int:
    """The 32-bit hash of ``org.apache.kafka.common.utils.Utils.murmur2``, signed as in Java."""
    if native.compiled is not None:
        found: int = native.compiled.murmur2(data)
        return found - (1 << 32) if found & 0x80000000 else found
    length = len(data)
    whole = length & ~3
    h = _SEED ^ length
    for word in _words(length).unpack_from(data):
        k = word * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if length != whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h & 0x80000000 else h


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key among that number, as ``BuiltInPartitioner.partitionForKey``."""
    found: int = (_compiled or murmur2)(key)
    return (found & 0x7FFFFFFF) % partitions


def partitions_of_keys(keys: Any, partitions: int) -> Any:
    """``partition_of_key`` for a ``pyarrow`` array of binary, as an array of int32; null for null.

    Keys of one length are hashed together, word by word in columns; few of a length one by one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(keys)
    counted = pc.value_counts(lengths)
    if len(counted) == 1 and not keys.null_count:
        return _partitions_of_one_length(keys, lengths[0].as_py(), partitions)
    rows, numbers = [], []
    for entry in counted:
        length = entry["values"].as_py()
        chosen = pc.is_null(lengths) if length is None else pc.equal(lengths, length)
        rows.append(pc.indices_nonzero(pc.fill_null(chosen, False)))
        if length is None:
            numbers.append(pa.nulls(len(rows[-1]), pa.int32()))
        else:
            numbers.append(_partitions_of_one_length(keys.take(rows[-1]), length, partitions))
    if not rows:
        return pa.nulls(len(keys), pa.int32())
    # Back into the order of the rows.
    return pa.concat_arrays(numbers).take(pc.array_sort_indices(pa.concat_arrays(rows)))


def _partitions_of_one_length(keys: Any, length: int, partitions: int) -> Any:
    """As ``partitions_of_keys``, for keys of one length, none null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(keys) < FEWEST_IN_COLUMNS or sys.byteorder != "little":
        return pa.array([partition_of_key(key, partitions) for key in keys.to_pylist()], pa.int32())
    positive = pc.bit_wise_and(_murmur2_columns(keys, length), pa.scalar(0x7FFFFFFF, pa.uint32()))
    count = pa.scalar(partitions, pa.uint32())
    return pc.subtract(positive, pc.multiply(pc.divide(positive, count), count)).cast(pa.int32())


def _murmur2_columns(keys: Any, length: int) -> Any:
    """The hashes (uint32) of keys of one length, none null: what wraps around in Java does so here."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def number(value: int) -> Any:
        return pa.scalar(value, pa.uint32())

    def mixed(column: Any, shift: int) -> Any:
        return pc.bit_wise_xor(column, pc.shift_right(column, number(shift)))

    count, m = len(keys), number(_M)
    h = pa.repeat(number(_SEED ^ length), count)
    words = -(-length // 4)
    if words:
        padding = pa.scalar(bytes(words * 4 - length), pa.binary())
        padded = pc.binary_join_element_wise(keys, padding, pa.scalar(b"", pa.binary()))
        _, offsets, data = padded.buffers()
        first = int.from_bytes(memoryview(offsets)[4 * padded.offset : 4 * padded.offset + 4], "little")
        flat = pa.Array.from_buffers(pa.uint32(), count * words, [None, data.slice(first)])
    for at in range(words):
        word = flat.take(pa.array(range(at, count * words, words), pa.int64()))
        if at < length // 4:
            k = pc.multiply(mixed(pc.multiply(word, m), 24), m)
            h = pc.bit_wise_xor(pc.multiply(h, m), k)
        else:
            h = pc.multiply(pc.bit_wise_xor(h, word), m)
    return mixed(pc.multiply(mixed(h, 13), m), 15)


class _TurnsInPython:
    """As Turns of `_native.c`."""

    def __init__(self, order: list[int], most: int) -> None:
        """`most`: bytes that a partition gets before it is the next one's turn."""
        self._order, self._most = order, most
        self._at = self._bytes = 0

    @property
    def current(self) -> int:
        """The partition whose turn it is."""
        return self._order[self._at]

    def over(self, size_bytes: int) -> bool:
        """Whether a record of that size goes to the next one."""
        return self._bytes > 0 and self._bytes + size_bytes > self._most

    def take(self, size_bytes: int) -> int:
        """The partition of a record of that size."""
        if self.over(size_bytes):
            self._at, self._bytes = (self._at + 1) % len(self._order), 0
        self._bytes += size_bytes
        return self.current


if TYPE_CHECKING:
    Turns = _TurnsInPython
else:
    Turns = _TurnsInPython if native.compiled is None else native.compiled.Turns


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
