"""JoinGroupResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hih = Struct(">hih").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_READ_ihih = Struct(">ihih").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_h = Struct(">h").pack
_WRITE_hih = Struct(">hih").pack
_WRITE_i = Struct(">i").pack
_WRITE_ihi = Struct(">ihi").pack
_WRITE_ihih = Struct(">ihih").pack


def decode_v0(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, generation_id_2, n_4 = _READ_hih(data, pos)
        pos += 8
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        protocol_name_3 = data[pos:stop_5].decode()
        pos = stop_5
        n_7, = _READ_h(data, pos)
        pos += 2
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        leader_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        member_id_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        items_14: list[JoinGroupResponseMember] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            member_id_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupResponseMember(member_id_15, None, metadata_18))
        members_12 = items_14
        return JoinGroupResponse(0, error_code_1, generation_id_2, None, protocol_name_3, leader_6, False, member_id_9, members_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 0, data, start) from None


def encode_v0(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 0")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 0")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_hih(message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            metadata_8 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(metadata_8)), metadata_8)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, generation_id_2, n_4 = _READ_hih(data, pos)
        pos += 8
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        protocol_name_3 = data[pos:stop_5].decode()
        pos = stop_5
        n_7, = _READ_h(data, pos)
        pos += 2
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        leader_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        member_id_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        items_14: list[JoinGroupResponseMember] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            member_id_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupResponseMember(member_id_15, None, metadata_18))
        members_12 = items_14
        return JoinGroupResponse(0, error_code_1, generation_id_2, None, protocol_name_3, leader_6, False, member_id_9, members_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 1, data, start) from None


def encode_v1(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 1")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 1")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_hih(message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            metadata_8 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(metadata_8)), metadata_8)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3, n_5 = _READ_ihih(data, pos)
        pos += 12
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        protocol_name_4 = data[pos:stop_6].decode()
        pos = stop_6
        n_8, = _READ_h(data, pos)
        pos += 2
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        leader_7 = data[pos:stop_9].decode()
        pos = stop_9
        n_11, = _READ_h(data, pos)
        pos += 2
        if n_11 < 0:
            raise ValueError
        stop_12 = pos + n_11
        if stop_12 > end:
            raise ValueError
        member_id_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14, = _READ_i(data, pos)
        pos += 4
        if n_14 < 0:
            raise ValueError
        if n_14 > (end - pos) // 6:
            raise ValueError
        items_15: list[JoinGroupResponseMember] = []
        for _ in range(n_14):
            n_17, = _READ_h(data, pos)
            pos += 2
            if n_17 < 0:
                raise ValueError
            stop_18 = pos + n_17
            if stop_18 > end:
                raise ValueError
            member_id_16 = data[pos:stop_18].decode()
            pos = stop_18
            n_20, = _READ_i(data, pos)
            pos += 4
            if n_20 < 0:
                raise ValueError
            stop_21 = pos + n_20
            if stop_21 > end:
                raise ValueError
            metadata_19 = data[pos:stop_21]
            pos = stop_21
            items_15.append(JoinGroupResponseMember(member_id_16, None, metadata_19))
        members_13 = items_15
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, None, protocol_name_4, leader_7, False, member_id_10, members_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 2, data, start) from None


def encode_v2(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 2")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 2")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            metadata_8 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(metadata_8)), metadata_8)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3, n_5 = _READ_ihih(data, pos)
        pos += 12
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        protocol_name_4 = data[pos:stop_6].decode()
        pos = stop_6
        n_8, = _READ_h(data, pos)
        pos += 2
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        leader_7 = data[pos:stop_9].decode()
        pos = stop_9
        n_11, = _READ_h(data, pos)
        pos += 2
        if n_11 < 0:
            raise ValueError
        stop_12 = pos + n_11
        if stop_12 > end:
            raise ValueError
        member_id_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14, = _READ_i(data, pos)
        pos += 4
        if n_14 < 0:
            raise ValueError
        if n_14 > (end - pos) // 6:
            raise ValueError
        items_15: list[JoinGroupResponseMember] = []
        for _ in range(n_14):
            n_17, = _READ_h(data, pos)
            pos += 2
            if n_17 < 0:
                raise ValueError
            stop_18 = pos + n_17
            if stop_18 > end:
                raise ValueError
            member_id_16 = data[pos:stop_18].decode()
            pos = stop_18
            n_20, = _READ_i(data, pos)
            pos += 4
            if n_20 < 0:
                raise ValueError
            stop_21 = pos + n_20
            if stop_21 > end:
                raise ValueError
            metadata_19 = data[pos:stop_21]
            pos = stop_21
            items_15.append(JoinGroupResponseMember(member_id_16, None, metadata_19))
        members_13 = items_15
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, None, protocol_name_4, leader_7, False, member_id_10, members_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 3, data, start) from None


def encode_v3(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 3")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 3")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            metadata_8 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(metadata_8)), metadata_8)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3, n_5 = _READ_ihih(data, pos)
        pos += 12
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        protocol_name_4 = data[pos:stop_6].decode()
        pos = stop_6
        n_8, = _READ_h(data, pos)
        pos += 2
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        leader_7 = data[pos:stop_9].decode()
        pos = stop_9
        n_11, = _READ_h(data, pos)
        pos += 2
        if n_11 < 0:
            raise ValueError
        stop_12 = pos + n_11
        if stop_12 > end:
            raise ValueError
        member_id_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14, = _READ_i(data, pos)
        pos += 4
        if n_14 < 0:
            raise ValueError
        if n_14 > (end - pos) // 6:
            raise ValueError
        items_15: list[JoinGroupResponseMember] = []
        for _ in range(n_14):
            n_17, = _READ_h(data, pos)
            pos += 2
            if n_17 < 0:
                raise ValueError
            stop_18 = pos + n_17
            if stop_18 > end:
                raise ValueError
            member_id_16 = data[pos:stop_18].decode()
            pos = stop_18
            n_20, = _READ_i(data, pos)
            pos += 4
            if n_20 < 0:
                raise ValueError
            stop_21 = pos + n_20
            if stop_21 > end:
                raise ValueError
            metadata_19 = data[pos:stop_21]
            pos = stop_21
            items_15.append(JoinGroupResponseMember(member_id_16, None, metadata_19))
        members_13 = items_15
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, None, protocol_name_4, leader_7, False, member_id_10, members_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 4, data, start) from None


def encode_v4(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 4")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 4")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            metadata_8 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_i(len(metadata_8)), metadata_8)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3, n_5 = _READ_ihih(data, pos)
        pos += 12
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        protocol_name_4 = data[pos:stop_6].decode()
        pos = stop_6
        n_8, = _READ_h(data, pos)
        pos += 2
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        leader_7 = data[pos:stop_9].decode()
        pos = stop_9
        n_11, = _READ_h(data, pos)
        pos += 2
        if n_11 < 0:
            raise ValueError
        stop_12 = pos + n_11
        if stop_12 > end:
            raise ValueError
        member_id_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14, = _READ_i(data, pos)
        pos += 4
        if n_14 < 0:
            raise ValueError
        if n_14 > (end - pos) // 8:
            raise ValueError
        items_15: list[JoinGroupResponseMember] = []
        for _ in range(n_14):
            n_17, = _READ_h(data, pos)
            pos += 2
            if n_17 < 0:
                raise ValueError
            stop_18 = pos + n_17
            if stop_18 > end:
                raise ValueError
            member_id_16 = data[pos:stop_18].decode()
            pos = stop_18
            n_20, = _READ_h(data, pos)
            pos += 2
            group_instance_id_19: str | None = None
            if n_20 >= 0:
                stop_21 = pos + n_20
                if stop_21 > end:
                    raise ValueError
                group_instance_id_19 = data[pos:stop_21].decode()
                pos = stop_21
            elif n_20 != -1:
                raise ValueError
            n_23, = _READ_i(data, pos)
            pos += 4
            if n_23 < 0:
                raise ValueError
            stop_24 = pos + n_23
            if stop_24 > end:
                raise ValueError
            metadata_22 = data[pos:stop_24]
            pos = stop_24
            items_15.append(JoinGroupResponseMember(member_id_16, group_instance_id_19, metadata_22))
        members_13 = items_15
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, None, protocol_name_4, leader_7, False, member_id_10, members_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 5, data, start) from None


def encode_v5(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 5")
        protocol_name_1 = raw_2.encode()
        leader_3 = message.leader.encode()
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 5")
        member_id_4 = message.member_id.encode()
        members_5 = message.members
        out += (_WRITE_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(protocol_name_1)), protocol_name_1, _WRITE_h(len(leader_3)), leader_3, _WRITE_h(len(member_id_4)), member_id_4, _WRITE_i(len(members_5)))
        for item_6 in members_5:
            member_id_7 = item_6.member_id.encode()
            raw_9 = item_6.group_instance_id
            group_instance_id_8 = b"" if raw_9 is None else raw_9.encode()
            metadata_10 = item_6.metadata
            out += (_WRITE_h(len(member_id_7)), member_id_7, _WRITE_h(-1 if raw_9 is None else len(group_instance_id_8)), group_instance_id_8, _WRITE_i(len(metadata_10)), metadata_10)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3 = _READ_ihi(data, pos)
        pos += 10
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
        protocol_name_4 = data[pos:stop_6].decode()
        pos = stop_6
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
        leader_7 = data[pos:stop_9].decode()
        pos = stop_9
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
        member_id_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_14 == 0:
            raise ValueError
        n_14 -= 1
        if n_14 > (end - pos) // 4:
            raise ValueError
        items_15: list[JoinGroupResponseMember] = []
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
            member_id_16 = data[pos:stop_18].decode()
            pos = stop_18
            n_20 = data[pos]
            if n_20 > 127:
                n_20, pos = read_uvarint(data, pos)
                if n_20 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_19: str | None = None
            if n_20 > 0:
                stop_21 = pos + n_20 - 1
                if stop_21 > end:
                    raise ValueError
                group_instance_id_19 = data[pos:stop_21].decode()
                pos = stop_21
            n_23 = data[pos]
            if n_23 > 127:
                n_23, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_23 == 0:
                raise ValueError
            stop_24 = pos + n_23 - 1
            if stop_24 > end:
                raise ValueError
            metadata_22 = data[pos:stop_24]
            pos = stop_24
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_15.append(JoinGroupResponseMember(member_id_16, group_instance_id_19, metadata_22))
        members_13 = items_15
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, None, protocol_name_4, leader_7, False, member_id_10, members_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 6, data, start) from None


def encode_v6(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_name
        if raw_2 is None:
            raise ValueError("protocol_name cannot be null in version 6")
        protocol_name_1 = raw_2.encode()
        n_3 = len(protocol_name_1) + 1
        leader_4 = message.leader.encode()
        n_5 = len(leader_4) + 1
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 6")
        member_id_6 = message.member_id.encode()
        n_7 = len(member_id_6) + 1
        members_8 = message.members
        n_9 = len(members_8) + 1
        out += (_WRITE_ihi(message.throttle_time_ms, message.error_code, message.generation_id), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), protocol_name_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), leader_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), member_id_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
        for item_10 in members_8:
            member_id_11 = item_10.member_id.encode()
            n_12 = len(member_id_11) + 1
            raw_14 = item_10.group_instance_id
            if raw_14 is None:
                group_instance_id_13 = b""
                n_15 = 0
            else:
                group_instance_id_13 = raw_14.encode()
                n_15 = len(group_instance_id_13) + 1
            metadata_16 = item_10.metadata
            n_17 = len(metadata_16) + 1
            out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), member_id_11, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), group_instance_id_13, UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), metadata_16, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3 = _READ_ihi(data, pos)
        pos += 10
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_type_4: str | None = None
        if n_5 > 0:
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            protocol_type_4 = data[pos:stop_6].decode()
            pos = stop_6
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
            if n_8 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_name_7: str | None = None
        if n_8 > 0:
            stop_9 = pos + n_8 - 1
            if stop_9 > end:
                raise ValueError
            protocol_name_7 = data[pos:stop_9].decode()
            pos = stop_9
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
        leader_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_14 == 0:
            raise ValueError
        stop_15 = pos + n_14 - 1
        if stop_15 > end:
            raise ValueError
        member_id_13 = data[pos:stop_15].decode()
        pos = stop_15
        n_17 = data[pos]
        if n_17 > 127:
            n_17, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_17 == 0:
            raise ValueError
        n_17 -= 1
        if n_17 > (end - pos) // 4:
            raise ValueError
        items_18: list[JoinGroupResponseMember] = []
        for _ in range(n_17):
            n_20 = data[pos]
            if n_20 > 127:
                n_20, pos = read_uvarint(data, pos)
                if n_20 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_20 == 0:
                raise ValueError
            stop_21 = pos + n_20 - 1
            if stop_21 > end:
                raise ValueError
            member_id_19 = data[pos:stop_21].decode()
            pos = stop_21
            n_23 = data[pos]
            if n_23 > 127:
                n_23, pos = read_uvarint(data, pos)
                if n_23 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_22: str | None = None
            if n_23 > 0:
                stop_24 = pos + n_23 - 1
                if stop_24 > end:
                    raise ValueError
                group_instance_id_22 = data[pos:stop_24].decode()
                pos = stop_24
            n_26 = data[pos]
            if n_26 > 127:
                n_26, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_26 == 0:
                raise ValueError
            stop_27 = pos + n_26 - 1
            if stop_27 > end:
                raise ValueError
            metadata_25 = data[pos:stop_27]
            pos = stop_27
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_18.append(JoinGroupResponseMember(member_id_19, group_instance_id_22, metadata_25))
        members_16 = items_18
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, protocol_type_4, protocol_name_7, leader_10, False, member_id_13, members_16), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 7, data, start) from None


def encode_v7(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_type
        if raw_2 is None:
            protocol_type_1 = b""
            n_3 = 0
        else:
            protocol_type_1 = raw_2.encode()
            n_3 = len(protocol_type_1) + 1
        raw_5 = message.protocol_name
        if raw_5 is None:
            protocol_name_4 = b""
            n_6 = 0
        else:
            protocol_name_4 = raw_5.encode()
            n_6 = len(protocol_name_4) + 1
        leader_7 = message.leader.encode()
        n_8 = len(leader_7) + 1
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 7")
        member_id_9 = message.member_id.encode()
        n_10 = len(member_id_9) + 1
        members_11 = message.members
        n_12 = len(members_11) + 1
        out += (_WRITE_ihi(message.throttle_time_ms, message.error_code, message.generation_id), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), protocol_type_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), protocol_name_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), leader_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), member_id_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
        for item_13 in members_11:
            member_id_14 = item_13.member_id.encode()
            n_15 = len(member_id_14) + 1
            raw_17 = item_13.group_instance_id
            if raw_17 is None:
                group_instance_id_16 = b""
                n_18 = 0
            else:
                group_instance_id_16 = raw_17.encode()
                n_18 = len(group_instance_id_16) + 1
            metadata_19 = item_13.metadata
            n_20 = len(metadata_19) + 1
            out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), member_id_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), group_instance_id_16, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), metadata_19, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 7, error) from error


def decode_v8(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3 = _READ_ihi(data, pos)
        pos += 10
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_type_4: str | None = None
        if n_5 > 0:
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            protocol_type_4 = data[pos:stop_6].decode()
            pos = stop_6
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
            if n_8 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_name_7: str | None = None
        if n_8 > 0:
            stop_9 = pos + n_8 - 1
            if stop_9 > end:
                raise ValueError
            protocol_name_7 = data[pos:stop_9].decode()
            pos = stop_9
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
        leader_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_14 == 0:
            raise ValueError
        stop_15 = pos + n_14 - 1
        if stop_15 > end:
            raise ValueError
        member_id_13 = data[pos:stop_15].decode()
        pos = stop_15
        n_17 = data[pos]
        if n_17 > 127:
            n_17, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_17 == 0:
            raise ValueError
        n_17 -= 1
        if n_17 > (end - pos) // 4:
            raise ValueError
        items_18: list[JoinGroupResponseMember] = []
        for _ in range(n_17):
            n_20 = data[pos]
            if n_20 > 127:
                n_20, pos = read_uvarint(data, pos)
                if n_20 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_20 == 0:
                raise ValueError
            stop_21 = pos + n_20 - 1
            if stop_21 > end:
                raise ValueError
            member_id_19 = data[pos:stop_21].decode()
            pos = stop_21
            n_23 = data[pos]
            if n_23 > 127:
                n_23, pos = read_uvarint(data, pos)
                if n_23 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_22: str | None = None
            if n_23 > 0:
                stop_24 = pos + n_23 - 1
                if stop_24 > end:
                    raise ValueError
                group_instance_id_22 = data[pos:stop_24].decode()
                pos = stop_24
            n_26 = data[pos]
            if n_26 > 127:
                n_26, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_26 == 0:
                raise ValueError
            stop_27 = pos + n_26 - 1
            if stop_27 > end:
                raise ValueError
            metadata_25 = data[pos:stop_27]
            pos = stop_27
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_18.append(JoinGroupResponseMember(member_id_19, group_instance_id_22, metadata_25))
        members_16 = items_18
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, protocol_type_4, protocol_name_7, leader_10, False, member_id_13, members_16), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 8, data, start) from None


def encode_v8(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v8(message))


def encode_pieces_v8(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_type
        if raw_2 is None:
            protocol_type_1 = b""
            n_3 = 0
        else:
            protocol_type_1 = raw_2.encode()
            n_3 = len(protocol_type_1) + 1
        raw_5 = message.protocol_name
        if raw_5 is None:
            protocol_name_4 = b""
            n_6 = 0
        else:
            protocol_name_4 = raw_5.encode()
            n_6 = len(protocol_name_4) + 1
        leader_7 = message.leader.encode()
        n_8 = len(leader_7) + 1
        if message.skip_assignment:
            raise ValueError("skip_assignment cannot be sent in version 8")
        member_id_9 = message.member_id.encode()
        n_10 = len(member_id_9) + 1
        members_11 = message.members
        n_12 = len(members_11) + 1
        out += (_WRITE_ihi(message.throttle_time_ms, message.error_code, message.generation_id), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), protocol_type_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), protocol_name_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), leader_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), member_id_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
        for item_13 in members_11:
            member_id_14 = item_13.member_id.encode()
            n_15 = len(member_id_14) + 1
            raw_17 = item_13.group_instance_id
            if raw_17 is None:
                group_instance_id_16 = b""
                n_18 = 0
            else:
                group_instance_id_16 = raw_17.encode()
                n_18 = len(group_instance_id_16) + 1
            metadata_19 = item_13.metadata
            n_20 = len(metadata_19) + 1
            out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), member_id_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), group_instance_id_16, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), metadata_19, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 8, error) from error


def decode_v9(data: bytes, pos: int) -> tuple[JoinGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, generation_id_3 = _READ_ihi(data, pos)
        pos += 10
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_type_4: str | None = None
        if n_5 > 0:
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            protocol_type_4 = data[pos:stop_6].decode()
            pos = stop_6
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
            if n_8 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_name_7: str | None = None
        if n_8 > 0:
            stop_9 = pos + n_8 - 1
            if stop_9 > end:
                raise ValueError
            protocol_name_7 = data[pos:stop_9].decode()
            pos = stop_9
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
        leader_10 = data[pos:stop_12].decode()
        pos = stop_12
        skip_assignment_13, = _READ_Z(data, pos)
        pos += 1
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
        n_18 -= 1
        if n_18 > (end - pos) // 4:
            raise ValueError
        items_19: list[JoinGroupResponseMember] = []
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
                if n_24 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_23: str | None = None
            if n_24 > 0:
                stop_25 = pos + n_24 - 1
                if stop_25 > end:
                    raise ValueError
                group_instance_id_23 = data[pos:stop_25].decode()
                pos = stop_25
            n_27 = data[pos]
            if n_27 > 127:
                n_27, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_27 == 0:
                raise ValueError
            stop_28 = pos + n_27 - 1
            if stop_28 > end:
                raise ValueError
            metadata_26 = data[pos:stop_28]
            pos = stop_28
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(JoinGroupResponseMember(member_id_20, group_instance_id_23, metadata_26))
        members_17 = items_19
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupResponse(throttle_time_ms_1, error_code_2, generation_id_3, protocol_type_4, protocol_name_7, leader_10, skip_assignment_13, member_id_14, members_17), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupResponse, 9, data, start) from None


def encode_v9(message: JoinGroupResponse) -> bytes:
    return b"".join(encode_pieces_v9(message))


def encode_pieces_v9(message: JoinGroupResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.protocol_type
        if raw_2 is None:
            protocol_type_1 = b""
            n_3 = 0
        else:
            protocol_type_1 = raw_2.encode()
            n_3 = len(protocol_type_1) + 1
        raw_5 = message.protocol_name
        if raw_5 is None:
            protocol_name_4 = b""
            n_6 = 0
        else:
            protocol_name_4 = raw_5.encode()
            n_6 = len(protocol_name_4) + 1
        leader_7 = message.leader.encode()
        n_8 = len(leader_7) + 1
        member_id_9 = message.member_id.encode()
        n_10 = len(member_id_9) + 1
        members_11 = message.members
        n_12 = len(members_11) + 1
        out += (_WRITE_ihi(message.throttle_time_ms, message.error_code, message.generation_id), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), protocol_type_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), protocol_name_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), leader_7, _WRITE_Z(message.skip_assignment), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), member_id_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
        for item_13 in members_11:
            member_id_14 = item_13.member_id.encode()
            n_15 = len(member_id_14) + 1
            raw_17 = item_13.group_instance_id
            if raw_17 is None:
                group_instance_id_16 = b""
                n_18 = 0
            else:
                group_instance_id_16 = raw_17.encode()
                n_18 = len(group_instance_id_16) + 1
            metadata_19 = item_13.metadata
            n_20 = len(metadata_19) + 1
            out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), member_id_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), group_instance_id_16, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), metadata_19, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupResponse, 9, error) from error
