"""ListGroupsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ListGroupsResponse,
    ListGroupsResponseListedGroup,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hi = Struct(">hi").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hi = Struct(">hi").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihi = Struct(">ihi").pack


def decode_v0(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_h(data, pos)
            pos += 2
            if n_9 < 0:
                raise ValueError
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            protocol_type_8 = data[pos:stop_10].decode()
            pos = stop_10
            items_4.append(ListGroupsResponseListedGroup(group_id_5, protocol_type_8, '', ''))
        groups_2 = items_4
        return ListGroupsResponse(0, error_code_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 0, data, start) from None


def encode_v0(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_hi(message.error_code, len(groups_1)))
        for item_2 in groups_1:
            group_id_3 = item_2.group_id.encode()
            protocol_type_4 = item_2.protocol_type.encode()
            out += (_WRITE_h(len(group_id_3)), group_id_3, _WRITE_h(len(protocol_type_4)), protocol_type_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 4:
            raise ValueError
        items_5: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            group_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            protocol_type_9 = data[pos:stop_11].decode()
            pos = stop_11
            items_5.append(ListGroupsResponseListedGroup(group_id_6, protocol_type_9, '', ''))
        groups_3 = items_5
        return ListGroupsResponse(throttle_time_ms_1, error_code_2, groups_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 1, data, start) from None


def encode_v1(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ihi(message.throttle_time_ms, message.error_code, len(groups_1)))
        for item_2 in groups_1:
            group_id_3 = item_2.group_id.encode()
            protocol_type_4 = item_2.protocol_type.encode()
            out += (_WRITE_h(len(group_id_3)), group_id_3, _WRITE_h(len(protocol_type_4)), protocol_type_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 4:
            raise ValueError
        items_5: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            group_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            protocol_type_9 = data[pos:stop_11].decode()
            pos = stop_11
            items_5.append(ListGroupsResponseListedGroup(group_id_6, protocol_type_9, '', ''))
        groups_3 = items_5
        return ListGroupsResponse(throttle_time_ms_1, error_code_2, groups_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 2, data, start) from None


def encode_v2(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ihi(message.throttle_time_ms, message.error_code, len(groups_1)))
        for item_2 in groups_1:
            group_id_3 = item_2.group_id.encode()
            protocol_type_4 = item_2.protocol_type.encode()
            out += (_WRITE_h(len(group_id_3)), group_id_3, _WRITE_h(len(protocol_type_4)), protocol_type_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > (end - pos) // 3:
            raise ValueError
        items_5: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_4):
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_7 == 0:
                raise ValueError
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            group_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            protocol_type_9 = data[pos:stop_11].decode()
            pos = stop_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(ListGroupsResponseListedGroup(group_id_6, protocol_type_9, '', ''))
        groups_3 = items_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsResponse(throttle_time_ms_1, error_code_2, groups_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 3, data, start) from None


def encode_v3(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            protocol_type_6 = item_3.protocol_type.encode()
            n_7 = len(protocol_type_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), protocol_type_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > (end - pos) // 4:
            raise ValueError
        items_5: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_4):
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_7 == 0:
                raise ValueError
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            group_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            protocol_type_9 = data[pos:stop_11].decode()
            pos = stop_11
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
            group_state_12 = data[pos:stop_14].decode()
            pos = stop_14
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(ListGroupsResponseListedGroup(group_id_6, protocol_type_9, group_state_12, ''))
        groups_3 = items_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsResponse(throttle_time_ms_1, error_code_2, groups_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 4, data, start) from None


def encode_v4(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            protocol_type_6 = item_3.protocol_type.encode()
            n_7 = len(protocol_type_6) + 1
            group_state_8 = item_3.group_state.encode()
            n_9 = len(group_state_8) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), protocol_type_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), group_state_8, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > (end - pos) // 5:
            raise ValueError
        items_5: list[ListGroupsResponseListedGroup] = []
        for _ in range(n_4):
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_7 == 0:
                raise ValueError
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            group_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            protocol_type_9 = data[pos:stop_11].decode()
            pos = stop_11
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
            group_state_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16 = data[pos]
            if n_16 > 127:
                n_16, pos = read_uvarint(data, pos)
                if n_16 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_16 == 0:
                raise ValueError
            stop_17 = pos + n_16 - 1
            if stop_17 > end:
                raise ValueError
            group_type_15 = data[pos:stop_17].decode()
            pos = stop_17
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(ListGroupsResponseListedGroup(group_id_6, protocol_type_9, group_state_12, group_type_15))
        groups_3 = items_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListGroupsResponse(throttle_time_ms_1, error_code_2, groups_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListGroupsResponse, 5, data, start) from None


def encode_v5(message: ListGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: ListGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            protocol_type_6 = item_3.protocol_type.encode()
            n_7 = len(protocol_type_6) + 1
            group_state_8 = item_3.group_state.encode()
            n_9 = len(group_state_8) + 1
            group_type_10 = item_3.group_type.encode()
            n_11 = len(group_type_10) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), protocol_type_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), group_state_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), group_type_10, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListGroupsResponse, 5, error) from error
