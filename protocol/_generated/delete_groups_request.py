"""DeleteGroupsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    DeleteGroupsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteGroupsRequest, int]:
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
            groups_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_names_4)
        groups_names_1 = items_3
        return DeleteGroupsRequest(groups_names_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsRequest, 0, data, start, budget) from None


def encode_v0(message: DeleteGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_names_1 = message.groups_names
        out.append(_WRITE_i(len(groups_names_1)))
        for item_2 in groups_names_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteGroupsRequest, int]:
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
            groups_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_names_4)
        groups_names_1 = items_3
        return DeleteGroupsRequest(groups_names_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsRequest, 1, data, start, budget) from None


def encode_v1(message: DeleteGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_names_1 = message.groups_names
        out.append(_WRITE_i(len(groups_names_1)))
        for item_2 in groups_names_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteGroupsRequest, int]:
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
            groups_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(groups_names_4)
        groups_names_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteGroupsRequest(groups_names_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsRequest, 2, data, start, budget) from None


def encode_v2(message: DeleteGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        groups_names_1 = message.groups_names
        n_2 = len(groups_names_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_names_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsRequest, 2, error) from error
