"""The four codecs of record batches, both ways, and the bounds on what a few bytes may inflate to.

Source: Kafka's record batch attributes (bits 0 to 2) and the framings that the Java client writes: gzip, the
xerial framing of snappy, lz4 frames of independent blocks, zstd frames.
"""

from __future__ import annotations

import threading
import zlib
from enum import IntEnum
from struct import Struct
from typing import Any

import cramjam

from ringleader.protocol.errors import MalformedError

MAX_INFLATED_BYTES = 256 * 1024 * 1024
"""No batch may inflate to more than this."""
MAX_INFLATE_RATIO = 1_000
"""No batch may inflate to more than this many times its size, once it is above `INFLATE_FLOOR_BYTES`."""
INFLATE_FLOOR_BYTES = 16 * 1024 * 1024
"""Below this the ratio is not looked at: equal records compress far better than a thousandfold."""

_INT32 = Struct(">i")
_UINT32_LITTLE = Struct("<I")
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_SKIPPABLE = frozenset(bytes((kind, 0x2A, 0x4D, 0x18)) for kind in range(0x50, 0x60))
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_KIND, _LZ4_INDEPENDENT = 0xE3, 0x60
"""Of the flags of an lz4 frame, those that say how to read blocks: version 1, independent, no dictionary."""
_LZ4_BLOCK_SUM, _LZ4_SIZED, _LZ4_SUM = 16, 8, 4
_LZ4_MOST_RATIO = 255
_LZ4_STORED = 1 << 31
_LZ4_BLOCK_BYTES = 64 * 1024
# As Java's: independent blocks of at most 64 KB, no sums but the header's own.
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_UNREADABLE, _ZSTD_SINGLE, _ZSTD_SUM = 0x0B, 32, 4
"""Of the flags of a zstd frame: a dictionary or what is reserved; no window but the content; a checksum."""
_ZSTD_MOST_WINDOW = 13 << 3 | 7
"""The code of a window of less than 16 MB, which a thread's context keeps."""
_ZSTD_BLOCK_BYTES = 128 * 1024
_ZSTD_RUN, _ZSTD_COMPRESSED = 1, 2
_FRAMES = {"lz4": {_LZ4_MAGIC} | _SKIPPABLE, "zstd": {_ZSTD_MAGIC} | _SKIPPABLE}
_FIRST_GUESS_BYTES = 64 * 1024
_FIRST_GZIP_BYTES = 1_024
_KEPT_BYTES = 8 * 1024 * 1024
_local = threading.local()
_GZIP_WBITS = 31
# zlib's fast level: the produced bytes are read once or twice, and the builder of the batch pays for the
# time.
_GZIP_LEVEL = 6


class CorruptBatchError(MalformedError):
    """Record data that cannot be read: cut off, wrong checksum, impossible lengths, broken compression."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__("RecordBatch", 2, "records", position, reason)

    def __reduce__(self) -> Any:
        # Spark carries errors from its executors to its driver.
        return type(self), (self.reason, self.position)


class Compression(IntEnum):
    """Codec numbers of the batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def inflate_limit(compressed_bytes: int) -> int:
    """How many bytes a batch whose records take `compressed_bytes` may inflate to."""
    return min(MAX_INFLATED_BYTES, max(INFLATE_FLOOR_BYTES, compressed_bytes * MAX_INFLATE_RATIO))


def compress(codec: int, data: bytes) -> bytes:
    """`data` in the framing that Java clients read. Raises ValueError for an unknown codec."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZIP:
        packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
        return packer.compress(data) + packer.flush()
    if codec == Compression.SNAPPY:
        return _snappy_compress(data)
    if codec == Compression.LZ4:
        return _lz4_compress(data)
    if codec == Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data))
    raise ValueError(f"unknown compression codec {codec}")


def decompress(codec: int, data: bytes | memoryview, limit: int | None = None) -> bytes:
    """The records of a batch. `limit`: most bytes they may take, `inflate_limit` of their size by default.

    Never takes more than a small multiple of the limit in memory. Raises CorruptBatchError for broken data,
    for data above the limit, and for an unknown codec.
    """
    return bytes(inflate(codec, data, limit))


def inflate(codec: int, data: bytes | memoryview, limit: int | None = None) -> bytes | memoryview:
    """As `decompress`, without a last copy: perhaps a view of memory that is used again as soon as there is
    no view of it."""
    if limit is None:
        limit = inflate_limit(len(data))
    if codec == Compression.NONE:
        return bytes(data)
    if codec == Compression.GZIP:
        return _gzip_decompress(data, limit)
    if codec == Compression.SNAPPY:
        return _snappy_decompress(data, limit)
    if codec == Compression.LZ4:
        found = _lz4_blocks(memoryview(data), limit)
        if found is not None:
            return found
        return _inflate_into(cramjam.lz4.decompress_into, data, limit, _lz4_size(data), "lz4")
    if codec == Compression.ZSTD:
        found = _zstd_frame(memoryview(data), limit)
        if found is not None:
            return found
        return _inflate_into(cramjam.zstd.decompress_into, data, limit, _zstd_size(data), "zstd")
    raise CorruptBatchError(f"unknown compression codec {codec}")


def _too_large(size: int | None, limit: int) -> CorruptBatchError:
    found = "more" if size is None else f"{size} bytes"
    return CorruptBatchError(f"compressed records inflate to {found}, above the limit of {limit} bytes")


def _gzip_decompress(data: bytes | memoryview, limit: int) -> bytes:
    parts: list[bytes] = []
    view = memoryview(data)
    pos, end, room = 0, len(view), limit
    try:
        while pos < end:
            inflater = zlib.decompressobj(_GZIP_WBITS)
            # The bytes behind a member are copied when that ends, and thousands of small ones may follow each
            # other: so the first piece of each is small, and the next ones are larger.
            size = _FIRST_GZIP_BYTES
            while not inflater.eof:
                if pos == end:
                    raise CorruptBatchError("gzip data is cut off")
                stop = min(pos + size, end)
                part = inflater.decompress(view[pos:stop], room + 1)
                if len(part) > room:
                    raise _too_large(None, limit)
                room -= len(part)
                parts.append(part)
                pos, size = stop - len(inflater.unused_data), size * 8
    except zlib.error as error:
        raise CorruptBatchError(f"broken gzip data: {error}") from None
    if not parts:
        raise CorruptBatchError("gzip data is empty")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_compress(data: bytes) -> bytes:
    out = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        out += (_INT32.pack(len(block)), block)
    return b"".join(out)


def _lz4_compress(data: bytes) -> bytes:
    # Block by block: the library makes frames in twice the time, and in 25 times by default.
    out: list[bytes | memoryview] = [_LZ4_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        part = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(part, store_size=False))
        if len(block) < len(part):
            out += (_UINT32_LITTLE.pack(len(block)), block)
        else:
            out += (_UINT32_LITTLE.pack(len(part) | _LZ4_STORED), part)
    out.append(_UINT32_LITTLE.pack(0))
    return b"".join(out)


def _snappy_decompress(data: bytes | memoryview, limit: int) -> bytes | memoryview:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _snappy_blocks([data], limit)
    blocks: list[bytes | memoryview] = []
    view = memoryview(data)
    pos = len(_XERIAL_HEADER)
    if len(view) < pos:
        raise CorruptBatchError("a snappy header is cut off")
    while pos < len(view):
        if len(view) - pos < 4:
            raise CorruptBatchError("a snappy block is cut off")
        (size,) = _INT32.unpack_from(view, pos)
        pos += 4
        if not 0 < size <= len(view) - pos:
            raise CorruptBatchError(f"a snappy block of {size} bytes cannot follow")
        blocks.append(view[pos : pos + size])
        pos += size
    return _snappy_blocks(blocks, limit)


def _snappy_blocks(blocks: list[bytes | memoryview], limit: int) -> bytes | memoryview:
    """Inflate raw blocks, each of which starts with its inflated size."""
    total = 0
    for block in blocks:
        total += _snappy_size(block)
        if total > limit:
            raise _too_large(total, limit)
    room = _scratch(total)
    end = 0
    try:
        for block in blocks:
            end += cramjam.snappy.decompress_raw_into(block, room[end:])
        return _trimmed(room, end)
    except cramjam.DecompressionError as error:
        raise CorruptBatchError(f"broken snappy data: {error}") from None


def _snappy_size(block: bytes | memoryview) -> int:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 127) << shift
        if byte < 128:
            return size
        shift += 7
    raise CorruptBatchError("a snappy block has no size")


def _lz4_blocks(data: memoryview, limit: int) -> bytes | memoryview | None:
    """Inflate a frame as Kafka's producers write it, block by block: ten times as fast as through its stream.
    None for any other frame, and for what is broken or too large: the stream decides on those. The frame's
    checksums are not looked at, as that of the batch covers it."""
    end = len(data)
    if end < 7 or data[:4] != _LZ4_MAGIC or data[5] & 0x8F:
        return None
    flags = data[4]
    if flags & _LZ4_KIND != _LZ4_INDEPENDENT:
        return None
    # 64 KB, 256 KB, 1 MB or 4 MB.
    most, total, blocks = 1 << 8 + (data[5] >> 3), 0, []
    pos = 7 + (flags & _LZ4_SIZED)
    after_block = 4 if flags & _LZ4_BLOCK_SUM else 0
    while True:
        if end - pos < 4:
            return None
        (size,) = _UINT32_LITTLE.unpack_from(data, pos)
        pos += 4
        if not size:
            break
        stored, size = size & _LZ4_STORED, size & ~_LZ4_STORED
        if size > end - pos:
            return None
        blocks.append((stored, data[pos : pos + size]))
        total += min(most, _LZ4_MOST_RATIO * size)
        pos += size + after_block
    if pos + (flags & _LZ4_SUM) != end:
        return None
    room = _scratch(min(total, limit))
    at = 0
    try:
        for stored, block in blocks:
            if not stored:
                at += cramjam.lz4.decompress_block_into(block, room[at : at + most])
            elif len(block) <= min(most, len(room) - at):
                room[at : at + len(block)] = block
                at += len(block)
            else:
                return None
    except cramjam.DecompressionError:
        return None
    return _trimmed(room, at) if _lz4_size(data) in (None, at) else None


def _lz4_size(data: bytes | memoryview) -> int | None:
    """The inflated size if the frame's header tells it (flag bit 3)."""
    if len(data) >= 14 and data[4] & 8:
        return int.from_bytes(data[6:14], "little")
    return None


def _zstd_frame(data: memoryview, limit: int) -> bytes | memoryview | None:
    """Inflate a frame that is alone, as producers write it, with a context that the thread keeps: to make one
    takes longer than most batches. None for anything else, and for what is broken or too large: the stream
    decides on those. The frame's checksum need not be looked at, as that of the batch covers it."""
    size = _zstd_room(data)
    if size is None:
        return None
    declared = _zstd_size(data)
    if declared is not None:
        size = declared
        if declared > limit:
            return None
    room = _scratch(min(size, limit))
    context, broken = _zstd_context()
    try:
        count: int = context.stream_reader(data).readinto(room)
    except broken:
        return None
    if count != declared if declared is not None else count == limit < size:
        return None
    return _trimmed(room, count)


def _zstd_context() -> tuple[Any, type[Exception]]:
    """The thread's own, and what it raises."""
    kept: tuple[Any, type[Exception]] | None = _local.__dict__.get("zstd")
    if kept is None:
        import zstandard  # not at the top: most programs need none, and would start later

        kept = _local.zstd = zstandard.ZstdDecompressor(), zstandard.ZstdError
    return kept


def _zstd_room(data: memoryview) -> int | None:
    """The most that a frame inflates to which begins and ends with `data`; None: there is no such one (RFC
    8878, 3.1.1)."""
    end = len(data)
    if end < 9 or data[:4] != _ZSTD_MAGIC or data[4] & _ZSTD_UNREADABLE:
        return None
    flags, total, last = data[4], 0, 0
    single = flags & _ZSTD_SINGLE
    if not single and data[5] > _ZSTD_MOST_WINDOW:
        return None
    pos = (5 if single else 6) + (1 if single else 0, 2, 4, 8)[flags >> 6]
    while not last:
        block = int.from_bytes(data[pos : pos + 3], "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        pos += 3 + (1 if kind == _ZSTD_RUN else size)
        total += _ZSTD_BLOCK_BYTES if kind == _ZSTD_COMPRESSED else size
        if pos > end or kind > _ZSTD_COMPRESSED or size > _ZSTD_BLOCK_BYTES:
            return None
    return total if pos + (flags & _ZSTD_SUM) == end else None


def _zstd_size(data: bytes | memoryview) -> int | None:
    """The inflated size if the frame's header tells it (RFC 8878, 3.1.1.1)."""
    if len(data) < 6:
        return None
    descriptor = data[4]
    single_segment = descriptor & 32
    code = descriptor >> 6
    if code == 0 and not single_segment:
        return None
    start = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[start : start + (1, 2, 4, 8)[code]], "little")
    return size + 256 if code == 1 else size


def _scratch(size: int) -> memoryview:
    """Room to inflate into. Most batches inflate faster than memory for them is cleared, so a thread's rooms
    are kept while they are small, the oldest one first, and used again when nobody looks at them any more."""
    if size > _KEPT_BYTES:
        return memoryview(bytearray(size))
    kept: list[bytearray] = _local.__dict__.setdefault("kept", [])
    fit = _FIRST_GUESS_BYTES
    while fit < size:
        fit *= 2
    for one in kept:
        if len(one) == fit and is_free(one):
            return memoryview(one)[:size]
    while kept and sum(map(len, kept)) + fit > _KEPT_BYTES:
        del kept[0]
    kept.append(bytearray(fit))
    return memoryview(kept[-1])[:size]


def _trimmed(room: memoryview, size: int) -> bytes | memoryview:
    """The first bytes of the room, which they would hold as a whole: a copy, if that is much larger."""
    return bytes(room[:size]) if 4 * size < len(room) else room[:size]


def is_free(buffer: bytearray) -> bool:
    """Whether there is no view of it: one that is looked at does not change its size."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True


def _inflate_into(
    into: Any, data: bytes | memoryview, limit: int, declared_bytes: int | None, name: str
) -> bytes | memoryview:
    """Inflate into a buffer of the stated or a guessed size, then into larger ones, never above the limit."""
    if bytes(data[:4]) not in _FRAMES[name]:
        raise CorruptBatchError(f"no {name} frame")
    if declared_bytes is not None and declared_bytes > limit:
        raise _too_large(declared_bytes, limit)
    size = declared_bytes if declared_bytes is not None else max(_FIRST_GUESS_BYTES, 8 * len(data))
    while True:
        size = min(size, limit)
        buffer = _scratch(size)
        try:
            count: int = into(data, buffer)
        except cramjam.DecompressionError as error:
            # It does not say in a reliable way whether the buffer was too small, so a larger one decides.
            if size == limit:
                raise CorruptBatchError(f"broken {name} data, or above {limit} bytes: {error}") from None
            size = max(_FIRST_GUESS_BYTES, size * 4)
            continue
        return _trimmed(buffer, count)
