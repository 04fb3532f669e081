"""DeleteRecordsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    DeleteRecordsResponse,
    DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iqh = Struct(">iqh").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iqh = Struct(">iqh").pack
_WRITE_iqhx = Struct(">iqhx").pack


def decode_v0(data: bytes, pos: int) -> tuple[DeleteRecordsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[DeleteRecordsResponseDeleteRecordsTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 14:
                raise ValueError
            items_10: list[DeleteRecordsResponseDeleteRecordsPartitionResult] = []
            for _ in range(n_9):
                partition_index_11, low_watermark_12, error_code_13 = _READ_iqh(data, pos)
                pos += 14
                items_10.append(DeleteRecordsResponseDeleteRecordsPartitionResult(partition_index_11, low_watermark_12, error_code_13))
            partitions_8 = items_10
            items_4.append(DeleteRecordsResponseDeleteRecordsTopicResult(name_5, partitions_8))
        topics_2 = items_4
        return DeleteRecordsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsResponse, 0, data, start) from None


def encode_v0(message: DeleteRecordsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DeleteRecordsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iqh(item_5.partition_index, item_5.low_watermark, item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteRecordsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[DeleteRecordsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[DeleteRecordsResponseDeleteRecordsTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 14:
                raise ValueError
            items_10: list[DeleteRecordsResponseDeleteRecordsPartitionResult] = []
            for _ in range(n_9):
                partition_index_11, low_watermark_12, error_code_13 = _READ_iqh(data, pos)
                pos += 14
                items_10.append(DeleteRecordsResponseDeleteRecordsPartitionResult(partition_index_11, low_watermark_12, error_code_13))
            partitions_8 = items_10
            items_4.append(DeleteRecordsResponseDeleteRecordsTopicResult(name_5, partitions_8))
        topics_2 = items_4
        return DeleteRecordsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsResponse, 1, data, start) from None


def encode_v1(message: DeleteRecordsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DeleteRecordsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iqh(item_5.partition_index, item_5.low_watermark, item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteRecordsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DeleteRecordsResponse, int]:
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
        items_4: list[DeleteRecordsResponseDeleteRecordsTopicResult] = []
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
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 15:
                raise ValueError
            items_10: list[DeleteRecordsResponseDeleteRecordsPartitionResult] = []
            for _ in range(n_9):
                partition_index_11, low_watermark_12, error_code_13 = _READ_iqh(data, pos)
                pos += 14
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(DeleteRecordsResponseDeleteRecordsPartitionResult(partition_index_11, low_watermark_12, error_code_13))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteRecordsResponseDeleteRecordsTopicResult(name_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteRecordsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsResponse, 2, data, start) from None


def encode_v2(message: DeleteRecordsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DeleteRecordsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iqhx(item_8.partition_index, item_8.low_watermark, item_8.error_code))
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
        raise refused(DeleteRecordsResponse, 2, error) from error
