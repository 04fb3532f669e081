"""SyncGroupRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9, = _READ_i(data, pos)
        pos += 4
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[SyncGroupRequestAssignment] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            member_id_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            assignment_14 = data[pos:stop_16]
            pos = stop_16
            items_10.append(SyncGroupRequestAssignment(member_id_11, assignment_14))
        assignments_8 = items_10
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, None, None, None, assignments_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 0, data, start, budget) from None


def encode_v0(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 0")
        assignments_3 = message.assignments
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2, _WRITE_i(len(assignments_3)))
        for item_4 in assignments_3:
            member_id_5 = item_4.member_id.encode()
            assignment_6 = item_4.assignment
            out += (_WRITE_h(len(member_id_5)), member_id_5, _WRITE_i(len(assignment_6)), assignment_6)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9, = _READ_i(data, pos)
        pos += 4
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[SyncGroupRequestAssignment] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            member_id_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            assignment_14 = data[pos:stop_16]
            pos = stop_16
            items_10.append(SyncGroupRequestAssignment(member_id_11, assignment_14))
        assignments_8 = items_10
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, None, None, None, assignments_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 1, data, start, budget) from None


def encode_v1(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 1")
        assignments_3 = message.assignments
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2, _WRITE_i(len(assignments_3)))
        for item_4 in assignments_3:
            member_id_5 = item_4.member_id.encode()
            assignment_6 = item_4.assignment
            out += (_WRITE_h(len(member_id_5)), member_id_5, _WRITE_i(len(assignment_6)), assignment_6)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9, = _READ_i(data, pos)
        pos += 4
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[SyncGroupRequestAssignment] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            member_id_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            assignment_14 = data[pos:stop_16]
            pos = stop_16
            items_10.append(SyncGroupRequestAssignment(member_id_11, assignment_14))
        assignments_8 = items_10
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, None, None, None, assignments_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 2, data, start, budget) from None


def encode_v2(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 2")
        assignments_3 = message.assignments
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2, _WRITE_i(len(assignments_3)))
        for item_4 in assignments_3:
            member_id_5 = item_4.member_id.encode()
            assignment_6 = item_4.assignment
            out += (_WRITE_h(len(member_id_5)), member_id_5, _WRITE_i(len(assignment_6)), assignment_6)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9, = _READ_h(data, pos)
        pos += 2
        group_instance_id_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            group_instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        n_12, = _READ_i(data, pos)
        pos += 4
        if n_12 < 0:
            raise ValueError
        if n_12 > (end - pos) // 6:
            raise ValueError
        budget -= n_12 * 24
        if budget < 0:
            raise ValueError
        items_13: list[SyncGroupRequestAssignment] = []
        for _ in range(n_12):
            n_15, = _READ_h(data, pos)
            pos += 2
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            member_id_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18, = _READ_i(data, pos)
            pos += 4
            if n_18 < 0:
                raise ValueError
            stop_19 = pos + n_18
            if stop_19 > end:
                raise ValueError
            assignment_17 = data[pos:stop_19]
            pos = stop_19
            items_13.append(SyncGroupRequestAssignment(member_id_14, assignment_17))
        assignments_11 = items_13
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, group_instance_id_8, None, None, assignments_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 3, data, start, budget) from None


def encode_v3(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        raw_4 = message.group_instance_id
        group_instance_id_3 = b"" if raw_4 is None else raw_4.encode()
        assignments_5 = message.assignments
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2, _WRITE_h(-1 if raw_4 is None else len(group_instance_id_3)), group_instance_id_3, _WRITE_i(len(assignments_5)))
        for item_6 in assignments_5:
            member_id_7 = item_6.member_id.encode()
            assignment_8 = item_6.assignment
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(assignment_8)), assignment_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, = _READ_i(data, pos)
        pos += 4
        n_6 = data[pos]
        if n_6 > 127:
            n_6, pos = read_uvarint(data, pos)
            if n_6 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_6 == 0:
            raise ValueError
        stop_7 = pos + n_6 - 1
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            group_instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        n_12 = data[pos]
        if n_12 > 127:
            n_12, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_12 == 0:
            raise ValueError
        n_12 -= 1
        if n_12 > (end - pos) // 3:
            raise ValueError
        budget -= n_12 * 24
        if budget < 0:
            raise ValueError
        items_13: list[SyncGroupRequestAssignment] = []
        for _ in range(n_12):
            n_15 = data[pos]
            if n_15 > 127:
                n_15, pos = read_uvarint(data, pos)
                if n_15 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_15 == 0:
                raise ValueError
            stop_16 = pos + n_15 - 1
            if stop_16 > end:
                raise ValueError
            member_id_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18 = data[pos]
            if n_18 > 127:
                n_18, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_18 == 0:
                raise ValueError
            stop_19 = pos + n_18 - 1
            if stop_19 > end:
                raise ValueError
            assignment_17 = data[pos:stop_19]
            pos = stop_19
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_13.append(SyncGroupRequestAssignment(member_id_14, assignment_17))
        assignments_11 = items_13
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, group_instance_id_8, None, None, assignments_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 4, data, start, budget) from None


def encode_v4(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        member_id_3 = message.member_id.encode()
        n_4 = len(member_id_3) + 1
        raw_6 = message.group_instance_id
        if raw_6 is None:
            group_instance_id_5 = b""
            n_7 = 0
        else:
            group_instance_id_5 = raw_6.encode()
            n_7 = len(group_instance_id_5) + 1
        assignments_8 = message.assignments
        n_9 = len(assignments_8) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_i(message.generation_id), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
        for item_10 in assignments_8:
            member_id_11 = item_10.member_id.encode()
            n_12 = len(member_id_11) + 1
            assignment_13 = item_10.assignment
            n_14 = len(assignment_13) + 1
            out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), member_id_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), assignment_13, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SyncGroupRequest, int]:
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
        generation_id_4, = _READ_i(data, pos)
        pos += 4
        n_6 = data[pos]
        if n_6 > 127:
            n_6, pos = read_uvarint(data, pos)
            if n_6 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_6 == 0:
            raise ValueError
        stop_7 = pos + n_6 - 1
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            group_instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        n_12 = data[pos]
        if n_12 > 127:
            n_12, pos = read_uvarint(data, pos)
            if n_12 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_type_11: str | None = None
        if n_12 > 0:
            stop_13 = pos + n_12 - 1
            if stop_13 > end:
                raise ValueError
            protocol_type_11 = data[pos:stop_13].decode()
            pos = stop_13
        n_15 = data[pos]
        if n_15 > 127:
            n_15, pos = read_uvarint(data, pos)
            if n_15 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_name_14: str | None = None
        if n_15 > 0:
            stop_16 = pos + n_15 - 1
            if stop_16 > end:
                raise ValueError
            protocol_name_14 = data[pos:stop_16].decode()
            pos = stop_16
        n_18 = data[pos]
        if n_18 > 127:
            n_18, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_18 == 0:
            raise ValueError
        n_18 -= 1
        if n_18 > (end - pos) // 3:
            raise ValueError
        budget -= n_18 * 24
        if budget < 0:
            raise ValueError
        items_19: list[SyncGroupRequestAssignment] = []
        for _ in range(n_18):
            n_21 = data[pos]
            if n_21 > 127:
                n_21, pos = read_uvarint(data, pos)
                if n_21 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_21 == 0:
                raise ValueError
            stop_22 = pos + n_21 - 1
            if stop_22 > end:
                raise ValueError
            member_id_20 = data[pos:stop_22].decode()
            pos = stop_22
            n_24 = data[pos]
            if n_24 > 127:
                n_24, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_24 == 0:
                raise ValueError
            stop_25 = pos + n_24 - 1
            if stop_25 > end:
                raise ValueError
            assignment_23 = data[pos:stop_25]
            pos = stop_25
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(SyncGroupRequestAssignment(member_id_20, assignment_23))
        assignments_17 = items_19
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SyncGroupRequest(group_id_1, generation_id_4, member_id_5, group_instance_id_8, protocol_type_11, protocol_name_14, assignments_17), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupRequest, 5, data, start, budget) from None


def encode_v5(message: SyncGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        member_id_3 = message.member_id.encode()
        n_4 = len(member_id_3) + 1
        raw_6 = message.group_instance_id
        if raw_6 is None:
            group_instance_id_5 = b""
            n_7 = 0
        else:
            group_instance_id_5 = raw_6.encode()
            n_7 = len(group_instance_id_5) + 1
        raw_9 = message.protocol_type
        if raw_9 is None:
            protocol_type_8 = b""
            n_10 = 0
        else:
            protocol_type_8 = raw_9.encode()
            n_10 = len(protocol_type_8) + 1
        raw_12 = message.protocol_name
        if raw_12 is None:
            protocol_name_11 = b""
            n_13 = 0
        else:
            protocol_name_11 = raw_12.encode()
            n_13 = len(protocol_name_11) + 1
        assignments_14 = message.assignments
        n_15 = len(assignments_14) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_i(message.generation_id), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), protocol_type_8, UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), protocol_name_11, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15))
        for item_16 in assignments_14:
            member_id_17 = item_16.member_id.encode()
            n_18 = len(member_id_17) + 1
            assignment_19 = item_16.assignment
            n_20 = len(assignment_19) + 1
            out += (UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), member_id_17, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), assignment_19, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupRequest, 5, error) from error
