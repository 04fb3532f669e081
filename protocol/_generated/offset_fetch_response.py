"""OffsetFetchResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.offsets import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iqh = Struct(">iqh").unpack_from
_READ_iqi = Struct(">iqi").unpack_from
_READ_iqih = Struct(">iqih").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hx = Struct(">hx").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iqh = Struct(">iqh").pack
_WRITE_iqi = Struct(">iqi").pack
_WRITE_iqih = Struct(">iqih").pack


def decode_v1(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[OffsetFetchResponseTopic] = []
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
            if n_8 > (end - pos) // 16:
                raise ValueError
            items_9: list[OffsetFetchResponsePartition] = []
            for _ in range(n_8):
                partition_index_10, committed_offset_11, n_13 = _READ_iqh(data, pos)
                pos += 14
                metadata_12: str | None = None
                if n_13 >= 0:
                    stop_14 = pos + n_13
                    if stop_14 > end:
                        raise ValueError
                    metadata_12 = data[pos:stop_14].decode()
                    pos = stop_14
                elif n_13 != -1:
                    raise ValueError
                error_code_15, = _READ_h(data, pos)
                pos += 2
                items_9.append(OffsetFetchResponsePartition(partition_index_10, committed_offset_11, -1, metadata_12, error_code_15))
            partitions_7 = items_9
            items_3.append(OffsetFetchResponseTopic(name_4, partitions_7))
        topics_1 = items_3
        return OffsetFetchResponse(0, topics_1, 0, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 1, data, start) from None


def encode_v1(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                raw_7 = item_5.metadata
                metadata_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_iqh(item_5.partition_index, item_5.committed_offset, -1 if raw_7 is None else len(metadata_6)), metadata_6, _WRITE_h(item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 1")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[OffsetFetchResponseTopic] = []
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
            if n_8 > (end - pos) // 16:
                raise ValueError
            items_9: list[OffsetFetchResponsePartition] = []
            for _ in range(n_8):
                partition_index_10, committed_offset_11, n_13 = _READ_iqh(data, pos)
                pos += 14
                metadata_12: str | None = None
                if n_13 >= 0:
                    stop_14 = pos + n_13
                    if stop_14 > end:
                        raise ValueError
                    metadata_12 = data[pos:stop_14].decode()
                    pos = stop_14
                elif n_13 != -1:
                    raise ValueError
                error_code_15, = _READ_h(data, pos)
                pos += 2
                items_9.append(OffsetFetchResponsePartition(partition_index_10, committed_offset_11, -1, metadata_12, error_code_15))
            partitions_7 = items_9
            items_3.append(OffsetFetchResponseTopic(name_4, partitions_7))
        topics_1 = items_3
        error_code_16, = _READ_h(data, pos)
        pos += 2
        return OffsetFetchResponse(0, topics_1, error_code_16, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 2, data, start) from None


def encode_v2(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                raw_7 = item_5.metadata
                metadata_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_iqh(item_5.partition_index, item_5.committed_offset, -1 if raw_7 is None else len(metadata_6)), metadata_6, _WRITE_h(item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 2")
        out.append(_WRITE_h(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[OffsetFetchResponseTopic] = []
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
            if n_9 > (end - pos) // 16:
                raise ValueError
            items_10: list[OffsetFetchResponsePartition] = []
            for _ in range(n_9):
                partition_index_11, committed_offset_12, n_14 = _READ_iqh(data, pos)
                pos += 14
                metadata_13: str | None = None
                if n_14 >= 0:
                    stop_15 = pos + n_14
                    if stop_15 > end:
                        raise ValueError
                    metadata_13 = data[pos:stop_15].decode()
                    pos = stop_15
                elif n_14 != -1:
                    raise ValueError
                error_code_16, = _READ_h(data, pos)
                pos += 2
                items_10.append(OffsetFetchResponsePartition(partition_index_11, committed_offset_12, -1, metadata_13, error_code_16))
            partitions_8 = items_10
            items_4.append(OffsetFetchResponseTopic(name_5, partitions_8))
        topics_2 = items_4
        error_code_17, = _READ_h(data, pos)
        pos += 2
        return OffsetFetchResponse(throttle_time_ms_1, topics_2, error_code_17, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 3, data, start) from None


def encode_v3(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                raw_7 = item_5.metadata
                metadata_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_iqh(item_5.partition_index, item_5.committed_offset, -1 if raw_7 is None else len(metadata_6)), metadata_6, _WRITE_h(item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 3")
        out.append(_WRITE_h(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[OffsetFetchResponseTopic] = []
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
            if n_9 > (end - pos) // 16:
                raise ValueError
            items_10: list[OffsetFetchResponsePartition] = []
            for _ in range(n_9):
                partition_index_11, committed_offset_12, n_14 = _READ_iqh(data, pos)
                pos += 14
                metadata_13: str | None = None
                if n_14 >= 0:
                    stop_15 = pos + n_14
                    if stop_15 > end:
                        raise ValueError
                    metadata_13 = data[pos:stop_15].decode()
                    pos = stop_15
                elif n_14 != -1:
                    raise ValueError
                error_code_16, = _READ_h(data, pos)
                pos += 2
                items_10.append(OffsetFetchResponsePartition(partition_index_11, committed_offset_12, -1, metadata_13, error_code_16))
            partitions_8 = items_10
            items_4.append(OffsetFetchResponseTopic(name_5, partitions_8))
        topics_2 = items_4
        error_code_17, = _READ_h(data, pos)
        pos += 2
        return OffsetFetchResponse(throttle_time_ms_1, topics_2, error_code_17, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 4, data, start) from None


def encode_v4(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                raw_7 = item_5.metadata
                metadata_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_iqh(item_5.partition_index, item_5.committed_offset, -1 if raw_7 is None else len(metadata_6)), metadata_6, _WRITE_h(item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 4")
        out.append(_WRITE_h(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[OffsetFetchResponseTopic] = []
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
            if n_9 > (end - pos) // 20:
                raise ValueError
            items_10: list[OffsetFetchResponsePartition] = []
            for _ in range(n_9):
                partition_index_11, committed_offset_12, committed_leader_epoch_13, n_15 = _READ_iqih(data, pos)
                pos += 18
                metadata_14: str | None = None
                if n_15 >= 0:
                    stop_16 = pos + n_15
                    if stop_16 > end:
                        raise ValueError
                    metadata_14 = data[pos:stop_16].decode()
                    pos = stop_16
                elif n_15 != -1:
                    raise ValueError
                error_code_17, = _READ_h(data, pos)
                pos += 2
                items_10.append(OffsetFetchResponsePartition(partition_index_11, committed_offset_12, committed_leader_epoch_13, metadata_14, error_code_17))
            partitions_8 = items_10
            items_4.append(OffsetFetchResponseTopic(name_5, partitions_8))
        topics_2 = items_4
        error_code_18, = _READ_h(data, pos)
        pos += 2
        return OffsetFetchResponse(throttle_time_ms_1, topics_2, error_code_18, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 5, data, start) from None


def encode_v5(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                raw_7 = item_5.metadata
                metadata_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_iqih(item_5.partition_index, item_5.committed_offset, item_5.committed_leader_epoch, -1 if raw_7 is None else len(metadata_6)), metadata_6, _WRITE_h(item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 5")
        out.append(_WRITE_h(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
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
        items_4: list[OffsetFetchResponseTopic] = []
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
            if n_9 > (end - pos) // 20:
                raise ValueError
            items_10: list[OffsetFetchResponsePartition] = []
            for _ in range(n_9):
                partition_index_11, committed_offset_12, committed_leader_epoch_13 = _READ_iqi(data, pos)
                pos += 16
                n_15 = data[pos]
                if n_15 > 127:
                    n_15, pos = read_uvarint(data, pos)
                    if n_15 > 32768:
                        raise ValueError
                else:
                    pos += 1
                metadata_14: str | None = None
                if n_15 > 0:
                    stop_16 = pos + n_15 - 1
                    if stop_16 > end:
                        raise ValueError
                    metadata_14 = data[pos:stop_16].decode()
                    pos = stop_16
                error_code_17, = _READ_h(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetFetchResponsePartition(partition_index_11, committed_offset_12, committed_leader_epoch_13, metadata_14, error_code_17))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetFetchResponseTopic(name_5, partitions_8))
        topics_2 = items_4
        error_code_18, = _READ_h(data, pos)
        pos += 2
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchResponse(throttle_time_ms_1, topics_2, error_code_18, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 6, data, start) from None


def encode_v6(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: OffsetFetchResponse) -> Iterator[bytes]:
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
                raw_10 = item_8.metadata
                if raw_10 is None:
                    metadata_9 = b""
                    n_11 = 0
                else:
                    metadata_9 = raw_10.encode()
                    n_11 = len(metadata_9) + 1
                out += (_WRITE_iqi(item_8.partition_index, item_8.committed_offset, item_8.committed_leader_epoch), UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), metadata_9, _WRITE_hx(item_8.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 6")
        out.append(_WRITE_hx(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
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
        items_4: list[OffsetFetchResponseTopic] = []
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
            if n_9 > (end - pos) // 20:
                raise ValueError
            items_10: list[OffsetFetchResponsePartition] = []
            for _ in range(n_9):
                partition_index_11, committed_offset_12, committed_leader_epoch_13 = _READ_iqi(data, pos)
                pos += 16
                n_15 = data[pos]
                if n_15 > 127:
                    n_15, pos = read_uvarint(data, pos)
                    if n_15 > 32768:
                        raise ValueError
                else:
                    pos += 1
                metadata_14: str | None = None
                if n_15 > 0:
                    stop_16 = pos + n_15 - 1
                    if stop_16 > end:
                        raise ValueError
                    metadata_14 = data[pos:stop_16].decode()
                    pos = stop_16
                error_code_17, = _READ_h(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetFetchResponsePartition(partition_index_11, committed_offset_12, committed_leader_epoch_13, metadata_14, error_code_17))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetFetchResponseTopic(name_5, partitions_8))
        topics_2 = items_4
        error_code_18, = _READ_h(data, pos)
        pos += 2
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchResponse(throttle_time_ms_1, topics_2, error_code_18, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 7, data, start) from None


def encode_v7(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: OffsetFetchResponse) -> Iterator[bytes]:
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
                raw_10 = item_8.metadata
                if raw_10 is None:
                    metadata_9 = b""
                    n_11 = 0
                else:
                    metadata_9 = raw_10.encode()
                    n_11 = len(metadata_9) + 1
                out += (_WRITE_iqi(item_8.partition_index, item_8.committed_offset, item_8.committed_leader_epoch), UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), metadata_9, _WRITE_hx(item_8.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.groups:
            raise ValueError("groups cannot be sent in version 7")
        out.append(_WRITE_hx(message.error_code))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 7, error) from error


def decode_v8(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
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
        if n_3 > (end - pos) // 5:
            raise ValueError
        items_4: list[OffsetFetchResponseGroup] = []
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
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 3:
                raise ValueError
            items_10: list[OffsetFetchResponseTopics] = []
            for _ in range(n_9):
                n_12 = data[pos]
                if n_12 > 127:
                    n_12, pos = read_uvarint(data, pos)
                    if n_12 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_12 == 0:
                    raise ValueError
                stop_13 = pos + n_12 - 1
                if stop_13 > end:
                    raise ValueError
                name_11 = data[pos:stop_13].decode()
                pos = stop_13
                n_15 = data[pos]
                if n_15 > 127:
                    n_15, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_15 == 0:
                    raise ValueError
                n_15 -= 1
                if n_15 > (end - pos) // 20:
                    raise ValueError
                items_16: list[OffsetFetchResponsePartitions] = []
                for _ in range(n_15):
                    partition_index_17, committed_offset_18, committed_leader_epoch_19 = _READ_iqi(data, pos)
                    pos += 16
                    n_21 = data[pos]
                    if n_21 > 127:
                        n_21, pos = read_uvarint(data, pos)
                        if n_21 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    metadata_20: str | None = None
                    if n_21 > 0:
                        stop_22 = pos + n_21 - 1
                        if stop_22 > end:
                            raise ValueError
                        metadata_20 = data[pos:stop_22].decode()
                        pos = stop_22
                    error_code_23, = _READ_h(data, pos)
                    pos += 2
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_16.append(OffsetFetchResponsePartitions(partition_index_17, committed_offset_18, committed_leader_epoch_19, metadata_20, error_code_23))
                partitions_14 = items_16
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetFetchResponseTopics(name_11, partitions_14))
            topics_8 = items_10
            error_code_24, = _READ_h(data, pos)
            pos += 2
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetFetchResponseGroup(group_id_5, topics_8, error_code_24))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchResponse(throttle_time_ms_1, [], 0, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 8, data, start) from None


def encode_v8(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v8(message))


def encode_pieces_v8(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 8")
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            topics_6 = item_3.topics
            n_7 = len(topics_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in topics_6:
                name_9 = item_8.name.encode()
                n_10 = len(name_9) + 1
                partitions_11 = item_8.partitions
                n_12 = len(partitions_11) + 1
                out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), name_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
                for item_13 in partitions_11:
                    raw_15 = item_13.metadata
                    if raw_15 is None:
                        metadata_14 = b""
                        n_16 = 0
                    else:
                        metadata_14 = raw_15.encode()
                        n_16 = len(metadata_14) + 1
                    out += (_WRITE_iqi(item_13.partition_index, item_13.committed_offset, item_13.committed_leader_epoch), UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_14, _WRITE_hx(item_13.error_code))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                out.append(b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 8, error) from error


def decode_v9(data: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
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
        if n_3 > (end - pos) // 5:
            raise ValueError
        items_4: list[OffsetFetchResponseGroup] = []
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
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 3:
                raise ValueError
            items_10: list[OffsetFetchResponseTopics] = []
            for _ in range(n_9):
                n_12 = data[pos]
                if n_12 > 127:
                    n_12, pos = read_uvarint(data, pos)
                    if n_12 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_12 == 0:
                    raise ValueError
                stop_13 = pos + n_12 - 1
                if stop_13 > end:
                    raise ValueError
                name_11 = data[pos:stop_13].decode()
                pos = stop_13
                n_15 = data[pos]
                if n_15 > 127:
                    n_15, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_15 == 0:
                    raise ValueError
                n_15 -= 1
                if n_15 > (end - pos) // 20:
                    raise ValueError
                items_16: list[OffsetFetchResponsePartitions] = []
                for _ in range(n_15):
                    partition_index_17, committed_offset_18, committed_leader_epoch_19 = _READ_iqi(data, pos)
                    pos += 16
                    n_21 = data[pos]
                    if n_21 > 127:
                        n_21, pos = read_uvarint(data, pos)
                        if n_21 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    metadata_20: str | None = None
                    if n_21 > 0:
                        stop_22 = pos + n_21 - 1
                        if stop_22 > end:
                            raise ValueError
                        metadata_20 = data[pos:stop_22].decode()
                        pos = stop_22
                    error_code_23, = _READ_h(data, pos)
                    pos += 2
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_16.append(OffsetFetchResponsePartitions(partition_index_17, committed_offset_18, committed_leader_epoch_19, metadata_20, error_code_23))
                partitions_14 = items_16
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetFetchResponseTopics(name_11, partitions_14))
            topics_8 = items_10
            error_code_24, = _READ_h(data, pos)
            pos += 2
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetFetchResponseGroup(group_id_5, topics_8, error_code_24))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchResponse(throttle_time_ms_1, [], 0, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchResponse, 9, data, start) from None


def encode_v9(message: OffsetFetchResponse) -> bytes:
    return b"".join(encode_pieces_v9(message))


def encode_pieces_v9(message: OffsetFetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 9")
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            topics_6 = item_3.topics
            n_7 = len(topics_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in topics_6:
                name_9 = item_8.name.encode()
                n_10 = len(name_9) + 1
                partitions_11 = item_8.partitions
                n_12 = len(partitions_11) + 1
                out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), name_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
                for item_13 in partitions_11:
                    raw_15 = item_13.metadata
                    if raw_15 is None:
                        metadata_14 = b""
                        n_16 = 0
                    else:
                        metadata_14 = raw_15.encode()
                        n_16 = len(metadata_14) + 1
                    out += (_WRITE_iqi(item_13.partition_index, item_13.committed_offset, item_13.committed_leader_epoch), UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_14, _WRITE_hx(item_13.error_code))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                out.append(b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchResponse, 9, error) from error
