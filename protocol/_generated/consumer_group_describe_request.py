"""ConsumerGroupDescribeRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ConsumerGroupDescribeRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_WRITE_Zx = Struct(">?x").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ConsumerGroupDescribeRequest, int]:
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
        if n_2 > end - pos:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
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
            group_ids_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(group_ids_4)
        group_ids_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupDescribeRequest(group_ids_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupDescribeRequest, 0, data, start, budget) from None


def encode_v0(message: ConsumerGroupDescribeRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_ids_1 = message.group_ids
        n_2 = len(group_ids_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in group_ids_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_Zx(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupDescribeRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ConsumerGroupDescribeRequest, int]:
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
        if n_2 > end - pos:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
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
            group_ids_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(group_ids_4)
        group_ids_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupDescribeRequest(group_ids_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupDescribeRequest, 1, data, start, budget) from None


def encode_v1(message: ConsumerGroupDescribeRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_ids_1 = message.group_ids
        n_2 = len(group_ids_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in group_ids_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_Zx(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupDescribeRequest, 1, error) from error
