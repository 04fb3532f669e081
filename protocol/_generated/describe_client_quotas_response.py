"""DescribeClientQuotasResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.quotas import (
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData,
    DescribeClientQuotasResponseValueData,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_d = Struct(">d").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihh = Struct(">ihh").unpack_from
_WRITE_d = Struct(">d").pack
_WRITE_dx = Struct(">dx").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihh = Struct(">ihh").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeClientQuotasResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihh(data, pos)
        pos += 8
        error_message_3: str | None = None
        if n_4 >= 0:
            stop_5 = pos + n_4
            if stop_5 > end:
                raise ValueError
            error_message_3 = data[pos:stop_5].decode()
            pos = stop_5
        elif n_4 != -1:
            raise ValueError
        n_7, = _READ_i(data, pos)
        pos += 4
        entries_6: list[DescribeClientQuotasResponseEntryData] | None = None
        if n_7 >= 0:
            if n_7 > (end - pos) // 8:
                raise ValueError
            items_8: list[DescribeClientQuotasResponseEntryData] = []
            for _ in range(n_7):
                n_10, = _READ_i(data, pos)
                pos += 4
                if n_10 < 0:
                    raise ValueError
                if n_10 > (end - pos) // 4:
                    raise ValueError
                items_11: list[DescribeClientQuotasResponseEntityData] = []
                for _ in range(n_10):
                    n_13, = _READ_h(data, pos)
                    pos += 2
                    if n_13 < 0:
                        raise ValueError
                    stop_14 = pos + n_13
                    if stop_14 > end:
                        raise ValueError
                    entity_type_12 = data[pos:stop_14].decode()
                    pos = stop_14
                    n_16, = _READ_h(data, pos)
                    pos += 2
                    entity_name_15: str | None = None
                    if n_16 >= 0:
                        stop_17 = pos + n_16
                        if stop_17 > end:
                            raise ValueError
                        entity_name_15 = data[pos:stop_17].decode()
                        pos = stop_17
                    elif n_16 != -1:
                        raise ValueError
                    items_11.append(DescribeClientQuotasResponseEntityData(entity_type_12, entity_name_15))
                entity_9 = items_11
                n_19, = _READ_i(data, pos)
                pos += 4
                if n_19 < 0:
                    raise ValueError
                if n_19 > (end - pos) // 10:
                    raise ValueError
                items_20: list[DescribeClientQuotasResponseValueData] = []
                for _ in range(n_19):
                    n_22, = _READ_h(data, pos)
                    pos += 2
                    if n_22 < 0:
                        raise ValueError
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    key_21 = data[pos:stop_23].decode()
                    pos = stop_23
                    value_24, = _READ_d(data, pos)
                    pos += 8
                    items_20.append(DescribeClientQuotasResponseValueData(key_21, value_24))
                values_18 = items_20
                items_8.append(DescribeClientQuotasResponseEntryData(entity_9, values_18))
            entries_6 = items_8
        elif n_7 != -1:
            raise ValueError
        return DescribeClientQuotasResponse(throttle_time_ms_1, error_code_2, error_message_3, entries_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClientQuotasResponse, 0, data, start) from None


def encode_v0(message: DescribeClientQuotasResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeClientQuotasResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        entries_3 = message.entries
        out += (_WRITE_ihh(message.throttle_time_ms, message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1)
        if entries_3 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(entries_3)))
            for item_4 in entries_3:
                entity_5 = item_4.entity
                out.append(_WRITE_i(len(entity_5)))
                for item_6 in entity_5:
                    entity_type_7 = item_6.entity_type.encode()
                    raw_9 = item_6.entity_name
                    entity_name_8 = b"" if raw_9 is None else raw_9.encode()
                    out += (_WRITE_h(len(entity_type_7)), entity_type_7, _WRITE_h(-1 if raw_9 is None else len(entity_name_8)), entity_name_8)
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                values_10 = item_4.values
                out.append(_WRITE_i(len(values_10)))
                for item_11 in values_10:
                    key_12 = item_11.key.encode()
                    out += (_WRITE_h(len(key_12)), key_12, _WRITE_d(item_11.value))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClientQuotasResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[DescribeClientQuotasResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
            if n_4 > 32768:
                raise ValueError
        else:
            pos += 1
        error_message_3: str | None = None
        if n_4 > 0:
            stop_5 = pos + n_4 - 1
            if stop_5 > end:
                raise ValueError
            error_message_3 = data[pos:stop_5].decode()
            pos = stop_5
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
        else:
            pos += 1
        entries_6: list[DescribeClientQuotasResponseEntryData] | None = None
        if n_7 > 0:
            n_7 -= 1
            if n_7 > (end - pos) // 3:
                raise ValueError
            items_8: list[DescribeClientQuotasResponseEntryData] = []
            for _ in range(n_7):
                n_10 = data[pos]
                if n_10 > 127:
                    n_10, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_10 == 0:
                    raise ValueError
                n_10 -= 1
                if n_10 > (end - pos) // 3:
                    raise ValueError
                items_11: list[DescribeClientQuotasResponseEntityData] = []
                for _ in range(n_10):
                    n_13 = data[pos]
                    if n_13 > 127:
                        n_13, pos = read_uvarint(data, pos)
                        if n_13 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_13 == 0:
                        raise ValueError
                    stop_14 = pos + n_13 - 1
                    if stop_14 > end:
                        raise ValueError
                    entity_type_12 = data[pos:stop_14].decode()
                    pos = stop_14
                    n_16 = data[pos]
                    if n_16 > 127:
                        n_16, pos = read_uvarint(data, pos)
                        if n_16 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    entity_name_15: str | None = None
                    if n_16 > 0:
                        stop_17 = pos + n_16 - 1
                        if stop_17 > end:
                            raise ValueError
                        entity_name_15 = data[pos:stop_17].decode()
                        pos = stop_17
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_11.append(DescribeClientQuotasResponseEntityData(entity_type_12, entity_name_15))
                entity_9 = items_11
                n_19 = data[pos]
                if n_19 > 127:
                    n_19, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_19 == 0:
                    raise ValueError
                n_19 -= 1
                if n_19 > (end - pos) // 10:
                    raise ValueError
                items_20: list[DescribeClientQuotasResponseValueData] = []
                for _ in range(n_19):
                    n_22 = data[pos]
                    if n_22 > 127:
                        n_22, pos = read_uvarint(data, pos)
                        if n_22 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_22 == 0:
                        raise ValueError
                    stop_23 = pos + n_22 - 1
                    if stop_23 > end:
                        raise ValueError
                    key_21 = data[pos:stop_23].decode()
                    pos = stop_23
                    value_24, = _READ_d(data, pos)
                    pos += 8
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_20.append(DescribeClientQuotasResponseValueData(key_21, value_24))
                values_18 = items_20
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_8.append(DescribeClientQuotasResponseEntryData(entity_9, values_18))
            entries_6 = items_8
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClientQuotasResponse(throttle_time_ms_1, error_code_2, error_message_3, entries_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClientQuotasResponse, 1, data, start) from None


def encode_v1(message: DescribeClientQuotasResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DescribeClientQuotasResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        entries_4 = message.entries
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1)
        if entries_4 is None:
            out.append(b"\0")
        else:
            n_5 = len(entries_4) + 1
            out.append(UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
            for item_6 in entries_4:
                entity_7 = item_6.entity
                n_8 = len(entity_7) + 1
                out.append(UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8))
                for item_9 in entity_7:
                    entity_type_10 = item_9.entity_type.encode()
                    n_11 = len(entity_type_10) + 1
                    raw_13 = item_9.entity_name
                    if raw_13 is None:
                        entity_name_12 = b""
                        n_14 = 0
                    else:
                        entity_name_12 = raw_13.encode()
                        n_14 = len(entity_name_12) + 1
                    out += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), entity_type_10, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), entity_name_12, b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                values_15 = item_6.values
                n_16 = len(values_15) + 1
                out.append(UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16))
                for item_17 in values_15:
                    key_18 = item_17.key.encode()
                    n_19 = len(key_18) + 1
                    out += (UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19), key_18, _WRITE_dx(item_17.value))
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
        raise refused(DescribeClientQuotasResponse, 1, error) from error
