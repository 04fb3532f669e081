"""Codecs: what Java writes, what inflates too far, what is broken."""

from __future__ import annotations

import gzip
import random
import zlib
from concurrent.futures import ThreadPoolExecutor

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol import compression
from ringleader.protocol.compression import (
    Compression,
    CorruptBatchError,
    compress,
    decompress,
    inflate,
)
from tests.support.shares import share

REAL = [codec for codec in Compression if codec]
TEXT = b"some text that repeats itself, " * 5000


@given(st.binary(max_size=5000), st.sampled_from(list(Compression)))
def test_data_comes_back(data: bytes, codec: int) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", REAL)
def test_large_data_comes_back(codec: int, seed: int) -> None:
    data = random.Random(seed).randbytes(700_000) + bytes(3_000_000)
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", REAL)
def test_what_is_inflated_stays_as_long_as_it_is_looked_at(codec: int, seed: int) -> None:
    draw = random.Random(seed)
    texts = [draw.randbytes(draw.choice([10, 50_000, 70_000, 300_000])) * 2 for _ in range(60)]
    looked = []
    for text in texts:
        looked.append((text, inflate(codec, compress(codec, text))))
        if draw.random() < 0.5:
            looked.pop(draw.randrange(len(looked)))
        assert all(found == wanted for wanted, found in looked)


def test_memory_is_inflated_into_again_and_not_held_by_a_few_bytes() -> None:
    packed = compress(Compression.LZ4, TEXT)
    first, other = inflate(Compression.LZ4, packed), inflate(Compression.LZ4, packed)
    assert isinstance(first, memoryview)
    assert isinstance(other, memoryview)
    rooms = {id(first.obj), id(other.obj)}
    assert len(rooms) == 2
    del first, other
    again = inflate(Compression.LZ4, packed)
    assert isinstance(again, memoryview)
    assert id(again.obj) in rooms
    assert isinstance(inflate(Compression.LZ4, compress(Compression.LZ4, b"few")), bytes)


@pytest.mark.parametrize("codec", REAL)
def test_a_bomb_is_refused(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = compress(codec, bytes(200_000))
    assert len(packed) < 20_000
    assert decompress(codec, packed, 200_000) == bytes(200_000)
    with pytest.raises(CorruptBatchError):
        decompress(codec, packed, 199_999)
    monkeypatch.setattr(compression, "MAX_INFLATED_BYTES", 100_000)
    with pytest.raises(CorruptBatchError):
        decompress(codec, packed)


def test_the_limit_grows_with_the_data_between_its_bounds() -> None:
    assert compression.inflate_limit(10) == compression.INFLATE_FLOOR_BYTES
    assert compression.inflate_limit(100_000) == 100_000 * compression.MAX_INFLATE_RATIO
    assert compression.inflate_limit(100_000_000) == compression.MAX_INFLATED_BYTES


def test_a_stated_size_above_the_limit_is_refused_before_inflating() -> None:
    huge = b"\x28\xb5\x2f\xfd\xe0" + (2**50).to_bytes(8, "little") + bytes(10)
    with pytest.raises(CorruptBatchError, match=str(2**50)):
        decompress(Compression.ZSTD, huge)
    frame = b"\x04\x22\x4d\x18\x68\x40" + (2**50).to_bytes(8, "little") + bytes(10)
    with pytest.raises(CorruptBatchError, match=str(2**50)):
        decompress(Compression.LZ4, frame)
    with pytest.raises(CorruptBatchError, match="above the limit"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(10))


def test_raw_snappy_is_read_too() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_is_framed_as_java_frames_it() -> None:
    packed = compress(Compression.SNAPPY, TEXT)
    assert packed[:16].hex() == "82534e415050590000000001" + "00000001"
    assert len(TEXT) > 4 * 32 * 1024
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == TEXT[: 32 * 1024]


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("kind", ["zeros", "random", "repeated"])
def test_an_lz4_frame_is_one_of_independent_blocks_that_the_library_reads(
    size: int, kind: str, seed: int
) -> None:
    """Java's reader refuses blocks that lean on the ones before them, and makes room for the largest."""
    draw = random.Random(seed)
    parts = {"zeros": bytes(size), "random": draw.randbytes(size), "repeated": draw.randbytes(999) * 201}
    data = parts[kind][:size]
    packed = compress(Compression.LZ4, data)
    assert packed[:6] == b"\x04\x22\x4d\x18\x60\x40", "independent blocks of at most 64 KB, no sums"
    assert bytes(cramjam.lz4.decompress(packed)) == decompress(Compression.LZ4, packed) == data
    assert len(packed) <= 11 + size + 4 * -(-size // 65_536)
    assert kind == "random" or len(packed) < 100 + size // 3


def lz4_frame(chance: random.Random, data: bytes) -> bytes:
    """Independent blocks, some of which do not shrink, with and without checksums."""
    packer = cramjam.lz4.Compressor(content_checksum=chance.random() < 0.5, block_linked=False)
    packer.compress(data)
    return bytes(packer.finish())


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(5, whole=20)), indirect=True)
def test_lz4_by_blocks_is_what_the_stream_gives(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.randint(0, 90_000) for _ in range(chance.randint(0, 9))]
    data = b"".join(bytes(size) if chance.random() < 0.5 else chance.randbytes(size) for size in sizes)
    packed = lz4_frame(chance, data)
    assert compression._lz4_blocks(memoryview(packed), len(data)) == data
    if data:
        assert compression._lz4_blocks(memoryview(packed), len(data) - 1) is None
    for _ in range(20):
        damaged = bytearray(packed)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        cut = memoryview(damaged)[: chance.choice([len(damaged), chance.randrange(len(damaged))])]
        found = compression._lz4_blocks(cut, 1_000_000)
        room = bytearray(1_000_000)
        try:
            same: bytes | None = bytes(room[: cramjam.lz4.decompress_into(bytes(cut), room)])
        except cramjam.DecompressionError:
            # The stream compares the frame's checksums, too.
            continue
        assert found in (None, same)


def zstd_frame(chance: random.Random, data: bytes) -> bytes:
    """As librdkafka and Java write it, piece by piece and without a size, or with it."""
    sized, summed = chance.random() < 0.5, chance.random() < 0.5
    packer = zstandard.ZstdCompressor(
        level=chance.choice([1, 3, 9]), write_content_size=sized, write_checksum=summed
    )
    if sized:
        return packer.compress(data)
    pieces = packer.compressobj()
    cut = chance.randint(0, len(data))
    return pieces.compress(data[:cut]) + pieces.compress(data[cut:]) + pieces.flush()


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(5, whole=20)), indirect=True)
def test_zstd_with_a_kept_context_is_what_the_stream_gives(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.choice([0, 1, 3_000, 131_072, 200_000]) for _ in range(chance.randint(0, 3))]
    data = b"".join(bytes(size) if chance.random() < 0.5 else chance.randbytes(size) for size in sizes)
    packed = zstd_frame(chance, data)
    assert compression._zstd_frame(memoryview(packed), 1_000_000) == data
    if data:
        assert compression._zstd_frame(memoryview(packed), len(data) - 1) is None
        with pytest.raises(CorruptBatchError, match="above"):
            decompress(Compression.ZSTD, packed, len(data) - 1)
    for _ in range(20):
        damaged = bytearray(packed)
        at = chance.choice([chance.randrange(min(12, len(packed))), chance.randrange(len(packed))])
        damaged[at] ^= 1 << chance.randrange(8)
        cut = memoryview(damaged)[: chance.choice([len(damaged), chance.randrange(len(damaged))])]
        found = compression._zstd_frame(cut, 1_000_000)
        room = bytearray(1_000_000)
        try:
            same: bytes | None = bytes(room[: cramjam.zstd.decompress_into(bytes(cut), room)])
        except cramjam.DecompressionError:
            same = None
        assert found is None or found == same
        assert compression._zstd_frame(memoryview(packed), 1_000_000) == data, "it is ready for the next one"


def test_each_thread_has_a_zstd_context_of_its_own() -> None:
    """It is used without the GIL: two threads in one end the process."""
    with ThreadPoolExecutor(1) as other:
        theirs, _ = other.submit(compression._zstd_context).result()
    ours, _ = compression._zstd_context()
    assert theirs is not ours
    assert compression._zstd_context()[0] is ours


def test_zstd_frames_of_other_kinds_go_through_the_stream() -> None:
    """Two of them, one behind what is to be skipped, and one with a window that would be kept."""
    frame = compress(Compression.ZSTD, TEXT)
    skipped = b"\x50\x2a\x4d\x18\x02\x00\x00\x00ab"
    parameters = zstandard.ZstdCompressionParameters(window_log=24, write_content_size=False)
    pieces = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    wide = pieces.compress(TEXT) + pieces.flush()
    for packed, data in ((frame + frame, TEXT + TEXT), (skipped + frame, TEXT), (wide, TEXT)):
        assert compression._zstd_frame(memoryview(packed), 1_000_000) is None
        assert decompress(Compression.ZSTD, packed) == data


def test_frames_of_other_kinds_go_through_the_stream() -> None:
    packer = cramjam.lz4.Compressor(block_linked=True)
    packer.compress(TEXT)
    linked = bytes(packer.finish())
    assert compression._lz4_blocks(memoryview(linked), len(TEXT)) is None
    assert decompress(Compression.LZ4, linked) == TEXT
    two = compress(Compression.LZ4, b"one") + compress(Compression.LZ4, b"two")
    assert compression._lz4_blocks(memoryview(two), 6) is None


def test_frames_without_a_size_and_one_after_the_other() -> None:
    packer = zlib.compressobj(wbits=31)
    assert (
        decompress(Compression.GZIP, packer.compress(TEXT) + packer.flush() + gzip.compress(b"x"))
        == TEXT + b"x"
    )
    stream = cramjam.zstd.Compressor()
    stream.compress(TEXT)
    packed = bytes(stream.finish())
    assert decompress(Compression.ZSTD, packed + bytes(cramjam.zstd.compress(b"x"))) == TEXT + b"x"


@pytest.mark.parametrize("codec", REAL)
def test_every_truncation_is_an_error(codec: int, seed: int) -> None:
    packed = compress(codec, TEXT[:3000] + random.Random(seed).randbytes(60))
    framing = 16 if codec == Compression.SNAPPY else -1
    for length in range(len(packed)):
        if length == framing:
            continue
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed[:length])


@given(st.binary(max_size=200), st.sampled_from(REAL))
def test_any_bytes_give_bytes_or_the_one_error(data: bytes, codec: int) -> None:
    try:
        found = decompress(codec, data)
    except CorruptBatchError:
        return
    assert isinstance(found, bytes)


def test_unknown_codecs() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(CorruptBatchError):
            decompress(codec, b"abc")
        with pytest.raises(ValueError, match="unknown"):
            compress(codec, b"abc")


def test_the_rooms_that_a_thread_keeps_are_bounded_together() -> None:
    def kept_bytes() -> int:
        size = 64 * 1024
        while size <= compression._KEPT_BYTES:
            compression._scratch(size)
            size *= 2
        return sum(map(len, compression._local.kept))

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(kept_bytes).result() <= compression._KEPT_BYTES
