"""AlterClientQuotasRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasRequestOpData,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_dZ = Struct(">d?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_Zx = Struct(">?x").pack
_WRITE_dZ = Struct(">d?").pack
_WRITE_dZx = Struct(">d?x").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AlterClientQuotasRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 8:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[AlterClientQuotasRequestEntryData] = []
        for _ in range(n_2):
            n_5, = _READ_i(data, pos)
            pos += 4
            if n_5 < 0:
                raise ValueError
            if n_5 > (end - pos) // 4:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[AlterClientQuotasRequestEntityData] = []
            for _ in range(n_5):
                n_8, = _READ_h(data, pos)
                pos += 2
                if n_8 < 0:
                    raise ValueError
                stop_9 = pos + n_8
                if stop_9 > end:
                    raise ValueError
                entity_type_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11, = _READ_h(data, pos)
                pos += 2
                entity_name_10: str | None = None
                if n_11 >= 0:
                    stop_12 = pos + n_11
                    if stop_12 > end:
                        raise ValueError
                    entity_name_10 = data[pos:stop_12].decode()
                    pos = stop_12
                elif n_11 != -1:
                    raise ValueError
                items_6.append(AlterClientQuotasRequestEntityData(entity_type_7, entity_name_10))
            entity_4 = items_6
            n_14, = _READ_i(data, pos)
            pos += 4
            if n_14 < 0:
                raise ValueError
            if n_14 > (end - pos) // 11:
                raise ValueError
            budget -= n_14 * 24
            if budget < 0:
                raise ValueError
            items_15: list[AlterClientQuotasRequestOpData] = []
            for _ in range(n_14):
                n_17, = _READ_h(data, pos)
                pos += 2
                if n_17 < 0:
                    raise ValueError
                stop_18 = pos + n_17
                if stop_18 > end:
                    raise ValueError
                key_16 = data[pos:stop_18].decode()
                pos = stop_18
                value_19, remove_20 = _READ_dZ(data, pos)
                pos += 9
                items_15.append(AlterClientQuotasRequestOpData(key_16, value_19, remove_20))
            ops_13 = items_15
            items_3.append(AlterClientQuotasRequestEntryData(entity_4, ops_13))
        entries_1 = items_3
        validate_only_21, = _READ_Z(data, pos)
        pos += 1
        return AlterClientQuotasRequest(entries_1, validate_only_21), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterClientQuotasRequest, 0, data, start, budget) from None


def encode_v0(message: AlterClientQuotasRequest) -> bytes:
    try:
        out: list[bytes] = []
        entries_1 = message.entries
        out.append(_WRITE_i(len(entries_1)))
        for item_2 in entries_1:
            entity_3 = item_2.entity
            out.append(_WRITE_i(len(entity_3)))
            for item_4 in entity_3:
                entity_type_5 = item_4.entity_type.encode()
                raw_7 = item_4.entity_name
                entity_name_6 = b"" if raw_7 is None else raw_7.encode()
                out += (_WRITE_h(len(entity_type_5)), entity_type_5, _WRITE_h(-1 if raw_7 is None else len(entity_name_6)), entity_name_6)
            ops_8 = item_2.ops
            out.append(_WRITE_i(len(ops_8)))
            for item_9 in ops_8:
                key_10 = item_9.key.encode()
                out += (_WRITE_h(len(key_10)), key_10, _WRITE_dZ(item_9.value, item_9.remove))
        out.append(_WRITE_Z(message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterClientQuotasRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AlterClientQuotasRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        n_2 -= 1
        if n_2 > (end - pos) // 3:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[AlterClientQuotasRequestEntryData] = []
        for _ in range(n_2):
            n_5 = data[pos]
            if n_5 > 127:
                n_5, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_5 == 0:
                raise ValueError
            n_5 -= 1
            if n_5 > (end - pos) // 3:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[AlterClientQuotasRequestEntityData] = []
            for _ in range(n_5):
                n_8 = data[pos]
                if n_8 > 127:
                    n_8, pos = read_uvarint(data, pos)
                    if n_8 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_8 == 0:
                    raise ValueError
                stop_9 = pos + n_8 - 1
                if stop_9 > end:
                    raise ValueError
                entity_type_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11 = data[pos]
                if n_11 > 127:
                    n_11, pos = read_uvarint(data, pos)
                    if n_11 > 32768:
                        raise ValueError
                else:
                    pos += 1
                entity_name_10: str | None = None
                if n_11 > 0:
                    stop_12 = pos + n_11 - 1
                    if stop_12 > end:
                        raise ValueError
                    entity_name_10 = data[pos:stop_12].decode()
                    pos = stop_12
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_6.append(AlterClientQuotasRequestEntityData(entity_type_7, entity_name_10))
            entity_4 = items_6
            n_14 = data[pos]
            if n_14 > 127:
                n_14, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_14 == 0:
                raise ValueError
            n_14 -= 1
            if n_14 > (end - pos) // 11:
                raise ValueError
            budget -= n_14 * 24
            if budget < 0:
                raise ValueError
            items_15: list[AlterClientQuotasRequestOpData] = []
            for _ in range(n_14):
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                    if n_17 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                stop_18 = pos + n_17 - 1
                if stop_18 > end:
                    raise ValueError
                key_16 = data[pos:stop_18].decode()
                pos = stop_18
                value_19, remove_20 = _READ_dZ(data, pos)
                pos += 9
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_15.append(AlterClientQuotasRequestOpData(key_16, value_19, remove_20))
            ops_13 = items_15
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(AlterClientQuotasRequestEntryData(entity_4, ops_13))
        entries_1 = items_3
        validate_only_21, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AlterClientQuotasRequest(entries_1, validate_only_21), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterClientQuotasRequest, 1, data, start, budget) from None


def encode_v1(message: AlterClientQuotasRequest) -> bytes:
    try:
        out: list[bytes] = []
        entries_1 = message.entries
        n_2 = len(entries_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in entries_1:
            entity_4 = item_3.entity
            n_5 = len(entity_4) + 1
            out.append(UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
            for item_6 in entity_4:
                entity_type_7 = item_6.entity_type.encode()
                n_8 = len(entity_type_7) + 1
                raw_10 = item_6.entity_name
                if raw_10 is None:
                    entity_name_9 = b""
                    n_11 = 0
                else:
                    entity_name_9 = raw_10.encode()
                    n_11 = len(entity_name_9) + 1
                out += (UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), entity_type_7, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), entity_name_9, b"\0")
            ops_12 = item_3.ops
            n_13 = len(ops_12) + 1
            out.append(UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
            for item_14 in ops_12:
                key_15 = item_14.key.encode()
                n_16 = len(key_15) + 1
                out += (UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), key_15, _WRITE_dZx(item_14.value, item_14.remove))
            out.append(b"\0")
        out.append(_WRITE_Zx(message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterClientQuotasRequest, 1, error) from error
