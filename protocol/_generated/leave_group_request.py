"""LeaveGroupRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        member_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        return LeaveGroupRequest(group_id_1, member_id_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 0, data, start, budget) from None


def encode_v0(message: LeaveGroupRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.members:
            raise ValueError("members cannot be sent in version 0")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_h(len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        member_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        return LeaveGroupRequest(group_id_1, member_id_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 1, data, start, budget) from None


def encode_v1(message: LeaveGroupRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.members:
            raise ValueError("members cannot be sent in version 1")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_h(len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        member_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        return LeaveGroupRequest(group_id_1, member_id_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 2, data, start, budget) from None


def encode_v2(message: LeaveGroupRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.members:
            raise ValueError("members cannot be sent in version 2")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_h(len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_i(data, pos)
        pos += 4
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 4:
            raise ValueError
        budget -= n_5 * 24
        if budget < 0:
            raise ValueError
        items_6: list[LeaveGroupRequestMemberIdentity] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            member_id_7 = data[pos:stop_9].decode()
            pos = stop_9
            n_11, = _READ_h(data, pos)
            pos += 2
            group_instance_id_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                group_instance_id_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_6.append(LeaveGroupRequestMemberIdentity(member_id_7, group_instance_id_10, None))
        members_4 = items_6
        return LeaveGroupRequest(group_id_1, '', members_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 3, data, start, budget) from None


def encode_v3(message: LeaveGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 3")
        members_2 = message.members
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_i(len(members_2)))
        for item_3 in members_2:
            member_id_4 = item_3.member_id.encode()
            raw_6 = item_3.group_instance_id
            group_instance_id_5 = b"" if raw_6 is None else raw_6.encode()
            out += (_WRITE_h(len(member_id_4)), member_id_4, _WRITE_h(-1 if raw_6 is None else len(group_instance_id_5)), group_instance_id_5)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
            if n_2 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        stop_3 = pos + n_2 - 1
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
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
        items_6: list[LeaveGroupRequestMemberIdentity] = []
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
            member_id_7 = data[pos:stop_9].decode()
            pos = stop_9
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                group_instance_id_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_6.append(LeaveGroupRequestMemberIdentity(member_id_7, group_instance_id_10, None))
        members_4 = items_6
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return LeaveGroupRequest(group_id_1, '', members_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 4, data, start, budget) from None


def encode_v4(message: LeaveGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 4")
        members_3 = message.members
        n_4 = len(members_3) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4))
        for item_5 in members_3:
            member_id_6 = item_5.member_id.encode()
            n_7 = len(member_id_6) + 1
            raw_9 = item_5.group_instance_id
            if raw_9 is None:
                group_instance_id_8 = b""
                n_10 = 0
            else:
                group_instance_id_8 = raw_9.encode()
                n_10 = len(group_instance_id_8) + 1
            out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), member_id_6, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), group_instance_id_8, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[LeaveGroupRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
            if n_2 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        stop_3 = pos + n_2 - 1
        if stop_3 > end:
            raise ValueError
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        n_5 -= 1
        if n_5 > (end - pos) // 4:
            raise ValueError
        budget -= n_5 * 24
        if budget < 0:
            raise ValueError
        items_6: list[LeaveGroupRequestMemberIdentity] = []
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
            member_id_7 = data[pos:stop_9].decode()
            pos = stop_9
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                group_instance_id_10 = data[pos:stop_12].decode()
                pos = stop_12
            n_14 = data[pos]
            if n_14 > 127:
                n_14, pos = read_uvarint(data, pos)
                if n_14 > 32768:
                    raise ValueError
            else:
                pos += 1
            reason_13: str | None = None
            if n_14 > 0:
                stop_15 = pos + n_14 - 1
                if stop_15 > end:
                    raise ValueError
                reason_13 = data[pos:stop_15].decode()
                pos = stop_15
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_6.append(LeaveGroupRequestMemberIdentity(member_id_7, group_instance_id_10, reason_13))
        members_4 = items_6
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return LeaveGroupRequest(group_id_1, '', members_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(LeaveGroupRequest, 5, data, start, budget) from None


def encode_v5(message: LeaveGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 5")
        members_3 = message.members
        n_4 = len(members_3) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4))
        for item_5 in members_3:
            member_id_6 = item_5.member_id.encode()
            n_7 = len(member_id_6) + 1
            raw_9 = item_5.group_instance_id
            if raw_9 is None:
                group_instance_id_8 = b""
                n_10 = 0
            else:
                group_instance_id_8 = raw_9.encode()
                n_10 = len(group_instance_id_8) + 1
            raw_12 = item_5.reason
            if raw_12 is None:
                reason_11 = b""
                n_13 = 0
            else:
                reason_11 = raw_12.encode()
                n_13 = len(reason_11) + 1
            out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), member_id_6, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), group_instance_id_8, UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), reason_11, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(LeaveGroupRequest, 5, error) from error
