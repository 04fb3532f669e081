"""DescribeClientQuotasRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasRequestComponentData,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_b = Struct(">b").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_Zx = Struct(">?x").pack
_WRITE_b = Struct(">b").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeClientQuotasRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 5:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeClientQuotasRequestComponentData] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            entity_type_4 = data[pos:stop_6].decode()
            pos = stop_6
            match_type_7, n_9 = _READ_bh(data, pos)
            pos += 3
            match_8: str | None = None
            if n_9 >= 0:
                stop_10 = pos + n_9
                if stop_10 > end:
                    raise ValueError
                match_8 = data[pos:stop_10].decode()
                pos = stop_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(DescribeClientQuotasRequestComponentData(entity_type_4, match_type_7, match_8))
        components_1 = items_3
        strict_11, = _READ_Z(data, pos)
        pos += 1
        return DescribeClientQuotasRequest(components_1, strict_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClientQuotasRequest, 0, data, start, budget) from None


def encode_v0(message: DescribeClientQuotasRequest) -> bytes:
    try:
        out: list[bytes] = []
        components_1 = message.components
        out.append(_WRITE_i(len(components_1)))
        for item_2 in components_1:
            entity_type_3 = item_2.entity_type.encode()
            raw_5 = item_2.match
            match_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(entity_type_3)), entity_type_3, _WRITE_bh(item_2.match_type, -1 if raw_5 is None else len(match_4)), match_4)
        out.append(_WRITE_Z(message.strict))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClientQuotasRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeClientQuotasRequest, int]:
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
        if n_2 > (end - pos) // 4:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeClientQuotasRequestComponentData] = []
        for _ in range(n_2):
            n_5 = data[pos]
            if n_5 > 127:
                n_5, pos = read_uvarint(data, pos)
                if n_5 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_5 == 0:
                raise ValueError
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            entity_type_4 = data[pos:stop_6].decode()
            pos = stop_6
            match_type_7, = _READ_b(data, pos)
            pos += 1
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
                if n_9 > 32768:
                    raise ValueError
            else:
                pos += 1
            match_8: str | None = None
            if n_9 > 0:
                stop_10 = pos + n_9 - 1
                if stop_10 > end:
                    raise ValueError
                match_8 = data[pos:stop_10].decode()
                pos = stop_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DescribeClientQuotasRequestComponentData(entity_type_4, match_type_7, match_8))
        components_1 = items_3
        strict_11, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClientQuotasRequest(components_1, strict_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClientQuotasRequest, 1, data, start, budget) from None


def encode_v1(message: DescribeClientQuotasRequest) -> bytes:
    try:
        out: list[bytes] = []
        components_1 = message.components
        n_2 = len(components_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in components_1:
            entity_type_4 = item_3.entity_type.encode()
            n_5 = len(entity_type_4) + 1
            raw_7 = item_3.match
            if raw_7 is None:
                match_6 = b""
                n_8 = 0
            else:
                match_6 = raw_7.encode()
                n_8 = len(match_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), entity_type_4, _WRITE_b(item_3.match_type), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), match_6, b"\0")
        out.append(_WRITE_Zx(message.strict))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClientQuotasRequest, 1, error) from error
