"""ListGroupsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ListGroupsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
    start = pos
    try:
        return ListGroupsRequest([], []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 0, data, start, budget) from None


def encode_v0(message: ListGroupsRequest) -> bytes:
    try:
        if message.states_filter:
            raise ValueError("states_filter cannot be sent in version 0")
        if message.types_filter:
            raise ValueError("types_filter cannot be sent in version 0")
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
    start = pos
    try:
        return ListGroupsRequest([], []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 1, data, start, budget) from None


def encode_v1(message: ListGroupsRequest) -> bytes:
    try:
        if message.states_filter:
            raise ValueError("states_filter cannot be sent in version 1")
        if message.types_filter:
            raise ValueError("types_filter cannot be sent in version 1")
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
    start = pos
    try:
        return ListGroupsRequest([], []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 2, data, start, budget) from None


def encode_v2(message: ListGroupsRequest) -> bytes:
    try:
        if message.states_filter:
            raise ValueError("states_filter cannot be sent in version 2")
        if message.types_filter:
            raise ValueError("types_filter cannot be sent in version 2")
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
    start = pos
    try:
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsRequest([], []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 3, data, start, budget) from None


def encode_v3(message: ListGroupsRequest) -> bytes:
    try:
        if message.states_filter:
            raise ValueError("states_filter cannot be sent in version 3")
        if message.types_filter:
            raise ValueError("types_filter cannot be sent in version 3")
        return b"\0"
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
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
            states_filter_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(states_filter_4)
        states_filter_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsRequest(states_filter_1, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 4, data, start, budget) from None


def encode_v4(message: ListGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        states_filter_1 = message.states_filter
        n_2 = len(states_filter_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in states_filter_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        if message.types_filter:
            raise ValueError("types_filter cannot be sent in version 4")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListGroupsRequest, int]:
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
            states_filter_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(states_filter_4)
        states_filter_1 = items_3
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_8 == 0:
            raise ValueError
        n_8 -= 1
        if n_8 > end - pos:
            raise ValueError
        budget -= n_8 * 24
        if budget < 0:
            raise ValueError
        items_9: list[str] = []
        for _ in range(n_8):
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_11 == 0:
                raise ValueError
            stop_12 = pos + n_11 - 1
            if stop_12 > end:
                raise ValueError
            types_filter_10 = data[pos:stop_12].decode()
            pos = stop_12
            items_9.append(types_filter_10)
        types_filter_7 = items_9
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsRequest(states_filter_1, types_filter_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsRequest, 5, data, start, budget) from None


def encode_v5(message: ListGroupsRequest) -> bytes:
    try:
        out: list[bytes] = []
        states_filter_1 = message.states_filter
        n_2 = len(states_filter_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in states_filter_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        types_filter_6 = message.types_filter
        n_7 = len(types_filter_6) + 1
        out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
        for item_8 in types_filter_6:
            item_9 = item_8.encode()
            n_10 = len(item_9) + 1
            out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), item_9)
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsRequest, 5, error) from error
