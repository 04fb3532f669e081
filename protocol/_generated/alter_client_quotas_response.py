"""AlterClientQuotasResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.quotas import (
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v0(data: bytes, pos: int) -> tuple[AlterClientQuotasResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 8:
            raise ValueError
        items_4: list[AlterClientQuotasResponseEntryData] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
            error_message_6: str | None = None
            if n_7 >= 0:
                stop_8 = pos + n_7
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
                pos = stop_8
            elif n_7 != -1:
                raise ValueError
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 4:
                raise ValueError
            items_11: list[AlterClientQuotasResponseEntityData] = []
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
                items_11.append(AlterClientQuotasResponseEntityData(entity_type_12, entity_name_15))
            entity_9 = items_11
            items_4.append(AlterClientQuotasResponseEntryData(error_code_5, error_message_6, entity_9))
        entries_2 = items_4
        return AlterClientQuotasResponse(throttle_time_ms_1, entries_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterClientQuotasResponse, 0, data, start) from None


def encode_v0(message: AlterClientQuotasResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: AlterClientQuotasResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        entries_1 = message.entries
        out.append(_WRITE_ii(message.throttle_time_ms, len(entries_1)))
        for item_2 in entries_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            entity_5 = item_2.entity
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_i(len(entity_5)))
            for item_6 in entity_5:
                entity_type_7 = item_6.entity_type.encode()
                raw_9 = item_6.entity_name
                entity_name_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_h(len(entity_type_7)), entity_type_7, _WRITE_h(-1 if raw_9 is None else len(entity_name_8)), entity_name_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterClientQuotasResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[AlterClientQuotasResponse, int]:
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
        items_4: list[AlterClientQuotasResponseEntryData] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_6: str | None = None
            if n_7 > 0:
                stop_8 = pos + n_7 - 1
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
                pos = stop_8
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
            items_11: list[AlterClientQuotasResponseEntityData] = []
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
                items_11.append(AlterClientQuotasResponseEntityData(entity_type_12, entity_name_15))
            entity_9 = items_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(AlterClientQuotasResponseEntryData(error_code_5, error_message_6, entity_9))
        entries_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AlterClientQuotasResponse(throttle_time_ms_1, entries_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterClientQuotasResponse, 1, data, start) from None


def encode_v1(message: AlterClientQuotasResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: AlterClientQuotasResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        entries_1 = message.entries
        n_2 = len(entries_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in entries_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            entity_7 = item_3.entity
            n_8 = len(entity_7) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8))
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
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterClientQuotasResponse, 1, error) from error
