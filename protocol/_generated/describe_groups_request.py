"""DescribeGroupsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    DescribeGroupsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_Zx = Struct(">?x").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        return DescribeGroupsRequest(groups_1, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 0, data, start, budget) from None


def encode_v0(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        if message.include_authorized_operations:
            raise ValueError("include_authorized_operations cannot be sent in version 0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        return DescribeGroupsRequest(groups_1, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 1, data, start, budget) from None


def encode_v1(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        if message.include_authorized_operations:
            raise ValueError("include_authorized_operations cannot be sent in version 1")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        return DescribeGroupsRequest(groups_1, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 2, data, start, budget) from None


def encode_v2(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        if message.include_authorized_operations:
            raise ValueError("include_authorized_operations cannot be sent in version 2")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        return DescribeGroupsRequest(groups_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 3, data, start, budget) from None


def encode_v3(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        out.append(_WRITE_Z(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        return DescribeGroupsRequest(groups_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 4, data, start, budget) from None


def encode_v4(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        out.append(_WRITE_Z(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
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
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeGroupsRequest(groups_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 5, data, start, budget) from None


def encode_v5(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_Zx(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeGroupsRequest, int]:
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
            groups_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_4)
        groups_1 = items_3
        include_authorized_operations_7, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeGroupsRequest(groups_1, include_authorized_operations_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsRequest, 6, data, start, budget) from None


def encode_v6(message: DescribeGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_Zx(message.include_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsRequest, 6, error) from error
