"""LeaveGroupResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hx = Struct(">hx").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihi = Struct(">ihi").pack


def decode_v0(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    start = pos
    try:
        error_code_1, = _READ_h(data, pos)
        pos += 2
        return LeaveGroupResponse(0, error_code_1, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 0, data, start) from None


def encode_v0(message: LeaveGroupResponse) -> bytes:
    try:
        if message.members:
            raise ValueError("members cannot be sent in version 0")
        return _WRITE_h(message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        return LeaveGroupResponse(throttle_time_ms_1, error_code_2, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 1, data, start) from None


def encode_v1(message: LeaveGroupResponse) -> bytes:
    try:
        if message.members:
            raise ValueError("members cannot be sent in version 1")
        return _WRITE_ih(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        return LeaveGroupResponse(throttle_time_ms_1, error_code_2, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 2, data, start) from None


def encode_v2(message: LeaveGroupResponse) -> bytes:
    try:
        if message.members:
            raise ValueError("members cannot be sent in version 2")
        return _WRITE_ih(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        items_5: list[LeaveGroupResponseMemberResponse] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            member_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_h(data, pos)
            pos += 2
            group_instance_id_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                group_instance_id_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            error_code_12, = _READ_h(data, pos)
            pos += 2
            items_5.append(LeaveGroupResponseMemberResponse(member_id_6, group_instance_id_9, error_code_12))
        members_3 = items_5
        return LeaveGroupResponse(throttle_time_ms_1, error_code_2, members_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 3, data, start) from None


def encode_v3(message: LeaveGroupResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: LeaveGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        members_1 = message.members
        out.append(_WRITE_ihi(message.throttle_time_ms, message.error_code, len(members_1)))
        for item_2 in members_1:
            member_id_3 = item_2.member_id.encode()
            raw_5 = item_2.group_instance_id
            group_instance_id_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(member_id_3)), member_id_3, _WRITE_h(-1 if raw_5 is None else len(group_instance_id_4)), group_instance_id_4, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
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
        items_5: list[LeaveGroupResponseMemberResponse] = []
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
            member_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                group_instance_id_9 = data[pos:stop_11].decode()
                pos = stop_11
            error_code_12, = _READ_h(data, pos)
            pos += 2
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(LeaveGroupResponseMemberResponse(member_id_6, group_instance_id_9, error_code_12))
        members_3 = items_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return LeaveGroupResponse(throttle_time_ms_1, error_code_2, members_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 4, data, start) from None


def encode_v4(message: LeaveGroupResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: LeaveGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        members_1 = message.members
        n_2 = len(members_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in members_1:
            member_id_4 = item_3.member_id.encode()
            n_5 = len(member_id_4) + 1
            raw_7 = item_3.group_instance_id
            if raw_7 is None:
                group_instance_id_6 = b""
                n_8 = 0
            else:
                group_instance_id_6 = raw_7.encode()
                n_8 = len(group_instance_id_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), member_id_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), group_instance_id_6, _WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
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
        items_5: list[LeaveGroupResponseMemberResponse] = []
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
            member_id_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                group_instance_id_9 = data[pos:stop_11].decode()
                pos = stop_11
            error_code_12, = _READ_h(data, pos)
            pos += 2
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(LeaveGroupResponseMemberResponse(member_id_6, group_instance_id_9, error_code_12))
        members_3 = items_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return LeaveGroupResponse(throttle_time_ms_1, error_code_2, members_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupResponse, 5, data, start) from None


def encode_v5(message: LeaveGroupResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: LeaveGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        members_1 = message.members
        n_2 = len(members_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in members_1:
            member_id_4 = item_3.member_id.encode()
            n_5 = len(member_id_4) + 1
            raw_7 = item_3.group_instance_id
            if raw_7 is None:
                group_instance_id_6 = b""
                n_8 = 0
            else:
                group_instance_id_6 = raw_7.encode()
                n_8 = len(group_instance_id_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), member_id_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), group_instance_id_6, _WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupResponse, 5, error) from error
