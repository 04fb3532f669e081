"""OffsetForLeaderEpochResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hiiq = Struct(">hiiq").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hiiq = Struct(">hiiq").pack
_WRITE_hiiqx = Struct(">hiiqx").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v2(data: bytes, pos: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 18:
                raise ValueError
            items_10: list[OffsetForLeaderEpochResponseEpochEndOffset] = []
            for _ in range(n_9):
                error_code_11, partition_12, leader_epoch_13, end_offset_14 = _READ_hiiq(data, pos)
                pos += 18
                items_10.append(OffsetForLeaderEpochResponseEpochEndOffset(error_code_11, partition_12, leader_epoch_13, end_offset_14))
            partitions_8 = items_10
            items_4.append(OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic_5, partitions_8))
        topics_2 = items_4
        return OffsetForLeaderEpochResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochResponse, 2, data, start) from None


def encode_v2(message: OffsetForLeaderEpochResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: OffsetForLeaderEpochResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_hiiq(item_5.error_code, item_5.partition, item_5.leader_epoch, item_5.end_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 18:
                raise ValueError
            items_10: list[OffsetForLeaderEpochResponseEpochEndOffset] = []
            for _ in range(n_9):
                error_code_11, partition_12, leader_epoch_13, end_offset_14 = _READ_hiiq(data, pos)
                pos += 18
                items_10.append(OffsetForLeaderEpochResponseEpochEndOffset(error_code_11, partition_12, leader_epoch_13, end_offset_14))
            partitions_8 = items_10
            items_4.append(OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic_5, partitions_8))
        topics_2 = items_4
        return OffsetForLeaderEpochResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochResponse, 3, data, start) from None


def encode_v3(message: OffsetForLeaderEpochResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: OffsetForLeaderEpochResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_hiiq(item_5.error_code, item_5.partition, item_5.leader_epoch, item_5.end_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 3:
            raise ValueError
        items_4: list[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult] = []
        for _ in range(n_3):
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_6 == 0:
                raise ValueError
            stop_7 = pos + n_6 - 1
            if stop_7 > end:
                raise ValueError
            topic_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 19:
                raise ValueError
            items_10: list[OffsetForLeaderEpochResponseEpochEndOffset] = []
            for _ in range(n_9):
                error_code_11, partition_12, leader_epoch_13, end_offset_14 = _READ_hiiq(data, pos)
                pos += 18
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetForLeaderEpochResponseEpochEndOffset(error_code_11, partition_12, leader_epoch_13, end_offset_14))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetForLeaderEpochResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochResponse, 4, data, start) from None


def encode_v4(message: OffsetForLeaderEpochResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: OffsetForLeaderEpochResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            topic_4 = item_3.topic.encode()
            n_5 = len(topic_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), topic_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_hiiqx(item_8.error_code, item_8.partition, item_8.leader_epoch, item_8.end_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochResponse, 4, error) from error
