"""ListOffsetsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ihqq = Struct(">ihqq").unpack_from
_READ_ihqqi = Struct(">ihqqi").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ihqq = Struct(">ihqq").pack
_WRITE_ihqqi = Struct(">ihqqi").pack
_WRITE_ihqqix = Struct(">ihqqix").pack
_WRITE_ii = Struct(">ii").pack


def decode_v1(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ListOffsetsResponseListOffsetsTopicResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 22:
                raise ValueError
            items_9: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_8):
                partition_index_10, error_code_11, timestamp_12, offset_13 = _READ_ihqq(data, pos)
                pos += 22
                items_9.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_10, error_code_11, timestamp_12, offset_13, -1))
            partitions_7 = items_9
            items_3.append(ListOffsetsResponseListOffsetsTopicResponse(name_4, partitions_7))
        topics_1 = items_3
        return ListOffsetsResponse(0, topics_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 1, data, start) from None


def encode_v1(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: ListOffsetsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.leader_epoch != -1:
                    raise ValueError("leader_epoch cannot be sent in version 1")
                out.append(_WRITE_ihqq(item_5.partition_index, item_5.error_code, item_5.timestamp, item_5.offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 22:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14 = _READ_ihqq(data, pos)
                pos += 22
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, -1))
            partitions_8 = items_10
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 2, data, start) from None


def encode_v2(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: ListOffsetsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.leader_epoch != -1:
                    raise ValueError("leader_epoch cannot be sent in version 2")
                out.append(_WRITE_ihqq(item_5.partition_index, item_5.error_code, item_5.timestamp, item_5.offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 22:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14 = _READ_ihqq(data, pos)
                pos += 22
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, -1))
            partitions_8 = items_10
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 3, data, start) from None


def encode_v3(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: ListOffsetsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.leader_epoch != -1:
                    raise ValueError("leader_epoch cannot be sent in version 3")
                out.append(_WRITE_ihqq(item_5.partition_index, item_5.error_code, item_5.timestamp, item_5.offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 26:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15 = _READ_ihqqi(data, pos)
                pos += 26
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15))
            partitions_8 = items_10
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 4, data, start) from None


def encode_v4(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: ListOffsetsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_ihqqi(item_5.partition_index, item_5.error_code, item_5.timestamp, item_5.offset, item_5.leader_epoch))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 26:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15 = _READ_ihqqi(data, pos)
                pos += 26
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15))
            partitions_8 = items_10
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 5, data, start) from None


def encode_v5(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: ListOffsetsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_ihqqi(item_5.partition_index, item_5.error_code, item_5.timestamp, item_5.offset, item_5.leader_epoch))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
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
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 27:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15 = _READ_ihqqi(data, pos)
                pos += 26
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 6, data, start) from None


def encode_v6(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: ListOffsetsResponse) -> Iterator[bytes]:
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
                out.append(_WRITE_ihqqix(item_8.partition_index, item_8.error_code, item_8.timestamp, item_8.offset, item_8.leader_epoch))
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
        raise refused(ListOffsetsResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
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
        items_4: list[ListOffsetsResponseListOffsetsTopicResponse] = []
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
            if n_9 > (end - pos) // 27:
                raise ValueError
            items_10: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15 = _READ_ihqqi(data, pos)
                pos += 26
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(ListOffsetsResponseListOffsetsPartitionResponse(partition_index_11, error_code_12, timestamp_13, offset_14, leader_epoch_15))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(ListOffsetsResponseListOffsetsTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListOffsetsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsResponse, 7, data, start) from None


def encode_v7(message: ListOffsetsResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: ListOffsetsResponse) -> Iterator[bytes]:
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
                out.append(_WRITE_ihqqix(item_8.partition_index, item_8.error_code, item_8.timestamp, item_8.offset, item_8.leader_epoch))
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
        raise refused(ListOffsetsResponse, 7, error) from error
