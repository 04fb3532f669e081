"""DescribeGroupsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 14:
            raise ValueError
        items_3: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_2):
            error_code_4, n_6 = _READ_hh(data, pos)
            pos += 4
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
            group_state_8 = data[pos:stop_10].decode()
            pos = stop_10
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            protocol_type_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_h(data, pos)
            pos += 2
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            protocol_data_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18, = _READ_i(data, pos)
            pos += 4
            if n_18 < 0:
                raise ValueError
            if n_18 > (end - pos) // 14:
                raise ValueError
            items_19: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_18):
                n_21, = _READ_h(data, pos)
                pos += 2
                if n_21 < 0:
                    raise ValueError
                stop_22 = pos + n_21
                if stop_22 > end:
                    raise ValueError
                member_id_20 = data[pos:stop_22].decode()
                pos = stop_22
                n_24, = _READ_h(data, pos)
                pos += 2
                if n_24 < 0:
                    raise ValueError
                stop_25 = pos + n_24
                if stop_25 > end:
                    raise ValueError
                client_id_23 = data[pos:stop_25].decode()
                pos = stop_25
                n_27, = _READ_h(data, pos)
                pos += 2
                if n_27 < 0:
                    raise ValueError
                stop_28 = pos + n_27
                if stop_28 > end:
                    raise ValueError
                client_host_26 = data[pos:stop_28].decode()
                pos = stop_28
                n_30, = _READ_i(data, pos)
                pos += 4
                if n_30 < 0:
                    raise ValueError
                stop_31 = pos + n_30
                if stop_31 > end:
                    raise ValueError
                member_metadata_29 = data[pos:stop_31]
                pos = stop_31
                n_33, = _READ_i(data, pos)
                pos += 4
                if n_33 < 0:
                    raise ValueError
                stop_34 = pos + n_33
                if stop_34 > end:
                    raise ValueError
                member_assignment_32 = data[pos:stop_34]
                pos = stop_34
                items_19.append(DescribeGroupsResponseDescribedGroupMember(member_id_20, None, client_id_23, client_host_26, member_metadata_29, member_assignment_32))
            members_17 = items_19
            items_3.append(DescribeGroupsResponseDescribedGroup(error_code_4, None, group_id_5, group_state_8, protocol_type_11, protocol_data_14, members_17, -2147483648))
        groups_1 = items_3
        return DescribeGroupsResponse(0, groups_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 0, data, start) from None


def encode_v0(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_i(len(groups_1)))
        for item_2 in groups_1:
            if item_2.error_message is not None:
                raise ValueError("error_message cannot be sent in version 0")
            group_id_3 = item_2.group_id.encode()
            group_state_4 = item_2.group_state.encode()
            protocol_type_5 = item_2.protocol_type.encode()
            protocol_data_6 = item_2.protocol_data.encode()
            members_7 = item_2.members
            out += (_WRITE_hh(item_2.error_code, len(group_id_3)), group_id_3, _WRITE_h(len(group_state_4)), group_state_4, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_h(len(protocol_data_6)), protocol_data_6, _WRITE_i(len(members_7)))
            for item_8 in members_7:
                member_id_9 = item_8.member_id.encode()
                client_id_10 = item_8.client_id.encode()
                client_host_11 = item_8.client_host.encode()
                member_metadata_12 = item_8.member_metadata
                member_assignment_13 = item_8.member_assignment
                out += (_WRITE_h(len(member_id_9)), member_id_9, _WRITE_h(len(client_id_10)), client_id_10, _WRITE_h(len(client_host_11)), client_host_11, _WRITE_i(len(member_metadata_12)), member_metadata_12, _WRITE_i(len(member_assignment_13)), member_assignment_13)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_2.authorized_operations != -2147483648:
                raise ValueError("authorized_operations cannot be sent in version 0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 14:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
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
            group_state_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            protocol_type_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            protocol_data_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            if n_19 > (end - pos) // 14:
                raise ValueError
            items_20: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_19):
                n_22, = _READ_h(data, pos)
                pos += 2
                if n_22 < 0:
                    raise ValueError
                stop_23 = pos + n_22
                if stop_23 > end:
                    raise ValueError
                member_id_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25, = _READ_h(data, pos)
                pos += 2
                if n_25 < 0:
                    raise ValueError
                stop_26 = pos + n_25
                if stop_26 > end:
                    raise ValueError
                client_id_24 = data[pos:stop_26].decode()
                pos = stop_26
                n_28, = _READ_h(data, pos)
                pos += 2
                if n_28 < 0:
                    raise ValueError
                stop_29 = pos + n_28
                if stop_29 > end:
                    raise ValueError
                client_host_27 = data[pos:stop_29].decode()
                pos = stop_29
                n_31, = _READ_i(data, pos)
                pos += 4
                if n_31 < 0:
                    raise ValueError
                stop_32 = pos + n_31
                if stop_32 > end:
                    raise ValueError
                member_metadata_30 = data[pos:stop_32]
                pos = stop_32
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                stop_35 = pos + n_34
                if stop_35 > end:
                    raise ValueError
                member_assignment_33 = data[pos:stop_35]
                pos = stop_35
                items_20.append(DescribeGroupsResponseDescribedGroupMember(member_id_21, None, client_id_24, client_host_27, member_metadata_30, member_assignment_33))
            members_18 = items_20
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, None, group_id_6, group_state_9, protocol_type_12, protocol_data_15, members_18, -2147483648))
        groups_2 = items_4
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 1, data, start) from None


def encode_v1(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ii(message.throttle_time_ms, len(groups_1)))
        for item_2 in groups_1:
            if item_2.error_message is not None:
                raise ValueError("error_message cannot be sent in version 1")
            group_id_3 = item_2.group_id.encode()
            group_state_4 = item_2.group_state.encode()
            protocol_type_5 = item_2.protocol_type.encode()
            protocol_data_6 = item_2.protocol_data.encode()
            members_7 = item_2.members
            out += (_WRITE_hh(item_2.error_code, len(group_id_3)), group_id_3, _WRITE_h(len(group_state_4)), group_state_4, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_h(len(protocol_data_6)), protocol_data_6, _WRITE_i(len(members_7)))
            for item_8 in members_7:
                member_id_9 = item_8.member_id.encode()
                client_id_10 = item_8.client_id.encode()
                client_host_11 = item_8.client_host.encode()
                member_metadata_12 = item_8.member_metadata
                member_assignment_13 = item_8.member_assignment
                out += (_WRITE_h(len(member_id_9)), member_id_9, _WRITE_h(len(client_id_10)), client_id_10, _WRITE_h(len(client_host_11)), client_host_11, _WRITE_i(len(member_metadata_12)), member_metadata_12, _WRITE_i(len(member_assignment_13)), member_assignment_13)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_2.authorized_operations != -2147483648:
                raise ValueError("authorized_operations cannot be sent in version 1")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 14:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
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
            group_state_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            protocol_type_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            protocol_data_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            if n_19 > (end - pos) // 14:
                raise ValueError
            items_20: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_19):
                n_22, = _READ_h(data, pos)
                pos += 2
                if n_22 < 0:
                    raise ValueError
                stop_23 = pos + n_22
                if stop_23 > end:
                    raise ValueError
                member_id_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25, = _READ_h(data, pos)
                pos += 2
                if n_25 < 0:
                    raise ValueError
                stop_26 = pos + n_25
                if stop_26 > end:
                    raise ValueError
                client_id_24 = data[pos:stop_26].decode()
                pos = stop_26
                n_28, = _READ_h(data, pos)
                pos += 2
                if n_28 < 0:
                    raise ValueError
                stop_29 = pos + n_28
                if stop_29 > end:
                    raise ValueError
                client_host_27 = data[pos:stop_29].decode()
                pos = stop_29
                n_31, = _READ_i(data, pos)
                pos += 4
                if n_31 < 0:
                    raise ValueError
                stop_32 = pos + n_31
                if stop_32 > end:
                    raise ValueError
                member_metadata_30 = data[pos:stop_32]
                pos = stop_32
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                stop_35 = pos + n_34
                if stop_35 > end:
                    raise ValueError
                member_assignment_33 = data[pos:stop_35]
                pos = stop_35
                items_20.append(DescribeGroupsResponseDescribedGroupMember(member_id_21, None, client_id_24, client_host_27, member_metadata_30, member_assignment_33))
            members_18 = items_20
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, None, group_id_6, group_state_9, protocol_type_12, protocol_data_15, members_18, -2147483648))
        groups_2 = items_4
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 2, data, start) from None


def encode_v2(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ii(message.throttle_time_ms, len(groups_1)))
        for item_2 in groups_1:
            if item_2.error_message is not None:
                raise ValueError("error_message cannot be sent in version 2")
            group_id_3 = item_2.group_id.encode()
            group_state_4 = item_2.group_state.encode()
            protocol_type_5 = item_2.protocol_type.encode()
            protocol_data_6 = item_2.protocol_data.encode()
            members_7 = item_2.members
            out += (_WRITE_hh(item_2.error_code, len(group_id_3)), group_id_3, _WRITE_h(len(group_state_4)), group_state_4, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_h(len(protocol_data_6)), protocol_data_6, _WRITE_i(len(members_7)))
            for item_8 in members_7:
                member_id_9 = item_8.member_id.encode()
                client_id_10 = item_8.client_id.encode()
                client_host_11 = item_8.client_host.encode()
                member_metadata_12 = item_8.member_metadata
                member_assignment_13 = item_8.member_assignment
                out += (_WRITE_h(len(member_id_9)), member_id_9, _WRITE_h(len(client_id_10)), client_id_10, _WRITE_h(len(client_host_11)), client_host_11, _WRITE_i(len(member_metadata_12)), member_metadata_12, _WRITE_i(len(member_assignment_13)), member_assignment_13)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_2.authorized_operations != -2147483648:
                raise ValueError("authorized_operations cannot be sent in version 2")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 18:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
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
            group_state_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            protocol_type_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            protocol_data_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            if n_19 > (end - pos) // 14:
                raise ValueError
            items_20: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_19):
                n_22, = _READ_h(data, pos)
                pos += 2
                if n_22 < 0:
                    raise ValueError
                stop_23 = pos + n_22
                if stop_23 > end:
                    raise ValueError
                member_id_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25, = _READ_h(data, pos)
                pos += 2
                if n_25 < 0:
                    raise ValueError
                stop_26 = pos + n_25
                if stop_26 > end:
                    raise ValueError
                client_id_24 = data[pos:stop_26].decode()
                pos = stop_26
                n_28, = _READ_h(data, pos)
                pos += 2
                if n_28 < 0:
                    raise ValueError
                stop_29 = pos + n_28
                if stop_29 > end:
                    raise ValueError
                client_host_27 = data[pos:stop_29].decode()
                pos = stop_29
                n_31, = _READ_i(data, pos)
                pos += 4
                if n_31 < 0:
                    raise ValueError
                stop_32 = pos + n_31
                if stop_32 > end:
                    raise ValueError
                member_metadata_30 = data[pos:stop_32]
                pos = stop_32
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                stop_35 = pos + n_34
                if stop_35 > end:
                    raise ValueError
                member_assignment_33 = data[pos:stop_35]
                pos = stop_35
                items_20.append(DescribeGroupsResponseDescribedGroupMember(member_id_21, None, client_id_24, client_host_27, member_metadata_30, member_assignment_33))
            members_18 = items_20
            authorized_operations_36, = _READ_i(data, pos)
            pos += 4
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, None, group_id_6, group_state_9, protocol_type_12, protocol_data_15, members_18, authorized_operations_36))
        groups_2 = items_4
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 3, data, start) from None


def encode_v3(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ii(message.throttle_time_ms, len(groups_1)))
        for item_2 in groups_1:
            if item_2.error_message is not None:
                raise ValueError("error_message cannot be sent in version 3")
            group_id_3 = item_2.group_id.encode()
            group_state_4 = item_2.group_state.encode()
            protocol_type_5 = item_2.protocol_type.encode()
            protocol_data_6 = item_2.protocol_data.encode()
            members_7 = item_2.members
            out += (_WRITE_hh(item_2.error_code, len(group_id_3)), group_id_3, _WRITE_h(len(group_state_4)), group_state_4, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_h(len(protocol_data_6)), protocol_data_6, _WRITE_i(len(members_7)))
            for item_8 in members_7:
                member_id_9 = item_8.member_id.encode()
                client_id_10 = item_8.client_id.encode()
                client_host_11 = item_8.client_host.encode()
                member_metadata_12 = item_8.member_metadata
                member_assignment_13 = item_8.member_assignment
                out += (_WRITE_h(len(member_id_9)), member_id_9, _WRITE_h(len(client_id_10)), client_id_10, _WRITE_h(len(client_host_11)), client_host_11, _WRITE_i(len(member_metadata_12)), member_metadata_12, _WRITE_i(len(member_assignment_13)), member_assignment_13)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_i(item_2.authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 18:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
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
            group_state_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            protocol_type_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            protocol_data_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            if n_19 > (end - pos) // 16:
                raise ValueError
            items_20: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_19):
                n_22, = _READ_h(data, pos)
                pos += 2
                if n_22 < 0:
                    raise ValueError
                stop_23 = pos + n_22
                if stop_23 > end:
                    raise ValueError
                member_id_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25, = _READ_h(data, pos)
                pos += 2
                group_instance_id_24: str | None = None
                if n_25 >= 0:
                    stop_26 = pos + n_25
                    if stop_26 > end:
                        raise ValueError
                    group_instance_id_24 = data[pos:stop_26].decode()
                    pos = stop_26
                elif n_25 != -1:
                    raise ValueError
                n_28, = _READ_h(data, pos)
                pos += 2
                if n_28 < 0:
                    raise ValueError
                stop_29 = pos + n_28
                if stop_29 > end:
                    raise ValueError
                client_id_27 = data[pos:stop_29].decode()
                pos = stop_29
                n_31, = _READ_h(data, pos)
                pos += 2
                if n_31 < 0:
                    raise ValueError
                stop_32 = pos + n_31
                if stop_32 > end:
                    raise ValueError
                client_host_30 = data[pos:stop_32].decode()
                pos = stop_32
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                stop_35 = pos + n_34
                if stop_35 > end:
                    raise ValueError
                member_metadata_33 = data[pos:stop_35]
                pos = stop_35
                n_37, = _READ_i(data, pos)
                pos += 4
                if n_37 < 0:
                    raise ValueError
                stop_38 = pos + n_37
                if stop_38 > end:
                    raise ValueError
                member_assignment_36 = data[pos:stop_38]
                pos = stop_38
                items_20.append(DescribeGroupsResponseDescribedGroupMember(member_id_21, group_instance_id_24, client_id_27, client_host_30, member_metadata_33, member_assignment_36))
            members_18 = items_20
            authorized_operations_39, = _READ_i(data, pos)
            pos += 4
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, None, group_id_6, group_state_9, protocol_type_12, protocol_data_15, members_18, authorized_operations_39))
        groups_2 = items_4
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 4, data, start) from None


def encode_v4(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        out.append(_WRITE_ii(message.throttle_time_ms, len(groups_1)))
        for item_2 in groups_1:
            if item_2.error_message is not None:
                raise ValueError("error_message cannot be sent in version 4")
            group_id_3 = item_2.group_id.encode()
            group_state_4 = item_2.group_state.encode()
            protocol_type_5 = item_2.protocol_type.encode()
            protocol_data_6 = item_2.protocol_data.encode()
            members_7 = item_2.members
            out += (_WRITE_hh(item_2.error_code, len(group_id_3)), group_id_3, _WRITE_h(len(group_state_4)), group_state_4, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_h(len(protocol_data_6)), protocol_data_6, _WRITE_i(len(members_7)))
            for item_8 in members_7:
                member_id_9 = item_8.member_id.encode()
                raw_11 = item_8.group_instance_id
                group_instance_id_10 = b"" if raw_11 is None else raw_11.encode()
                client_id_12 = item_8.client_id.encode()
                client_host_13 = item_8.client_host.encode()
                member_metadata_14 = item_8.member_metadata
                member_assignment_15 = item_8.member_assignment
                out += (_WRITE_h(len(member_id_9)), member_id_9, _WRITE_h(-1 if raw_11 is None else len(group_instance_id_10)), group_instance_id_10, _WRITE_h(len(client_id_12)), client_id_12, _WRITE_h(len(client_host_13)), client_host_13, _WRITE_i(len(member_metadata_14)), member_metadata_14, _WRITE_i(len(member_assignment_15)), member_assignment_15)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_i(item_2.authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
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
            group_state_9 = data[pos:stop_11].decode()
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
            protocol_type_12 = data[pos:stop_14].decode()
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
            protocol_data_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            n_19 -= 1
            if n_19 > (end - pos) // 7:
                raise ValueError
            items_20: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_19):
                n_22 = data[pos]
                if n_22 > 127:
                    n_22, pos = read_uvarint(data, pos)
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_22 == 0:
                    raise ValueError
                stop_23 = pos + n_22 - 1
                if stop_23 > end:
                    raise ValueError
                member_id_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25 = data[pos]
                if n_25 > 127:
                    n_25, pos = read_uvarint(data, pos)
                    if n_25 > 32768:
                        raise ValueError
                else:
                    pos += 1
                group_instance_id_24: str | None = None
                if n_25 > 0:
                    stop_26 = pos + n_25 - 1
                    if stop_26 > end:
                        raise ValueError
                    group_instance_id_24 = data[pos:stop_26].decode()
                    pos = stop_26
                n_28 = data[pos]
                if n_28 > 127:
                    n_28, pos = read_uvarint(data, pos)
                    if n_28 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_28 == 0:
                    raise ValueError
                stop_29 = pos + n_28 - 1
                if stop_29 > end:
                    raise ValueError
                client_id_27 = data[pos:stop_29].decode()
                pos = stop_29
                n_31 = data[pos]
                if n_31 > 127:
                    n_31, pos = read_uvarint(data, pos)
                    if n_31 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_31 == 0:
                    raise ValueError
                stop_32 = pos + n_31 - 1
                if stop_32 > end:
                    raise ValueError
                client_host_30 = data[pos:stop_32].decode()
                pos = stop_32
                n_34 = data[pos]
                if n_34 > 127:
                    n_34, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_34 == 0:
                    raise ValueError
                stop_35 = pos + n_34 - 1
                if stop_35 > end:
                    raise ValueError
                member_metadata_33 = data[pos:stop_35]
                pos = stop_35
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_37 == 0:
                    raise ValueError
                stop_38 = pos + n_37 - 1
                if stop_38 > end:
                    raise ValueError
                member_assignment_36 = data[pos:stop_38]
                pos = stop_38
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_20.append(DescribeGroupsResponseDescribedGroupMember(member_id_21, group_instance_id_24, client_id_27, client_host_30, member_metadata_33, member_assignment_36))
            members_18 = items_20
            authorized_operations_39, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, None, group_id_6, group_state_9, protocol_type_12, protocol_data_15, members_18, authorized_operations_39))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 5, data, start) from None


def encode_v5(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            if item_3.error_message is not None:
                raise ValueError("error_message cannot be sent in version 5")
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            group_state_6 = item_3.group_state.encode()
            n_7 = len(group_state_6) + 1
            protocol_type_8 = item_3.protocol_type.encode()
            n_9 = len(protocol_type_8) + 1
            protocol_data_10 = item_3.protocol_data.encode()
            n_11 = len(protocol_data_10) + 1
            members_12 = item_3.members
            n_13 = len(members_12) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_state_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), protocol_type_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), protocol_data_10, UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
            for item_14 in members_12:
                member_id_15 = item_14.member_id.encode()
                n_16 = len(member_id_15) + 1
                raw_18 = item_14.group_instance_id
                if raw_18 is None:
                    group_instance_id_17 = b""
                    n_19 = 0
                else:
                    group_instance_id_17 = raw_18.encode()
                    n_19 = len(group_instance_id_17) + 1
                client_id_20 = item_14.client_id.encode()
                n_21 = len(client_id_20) + 1
                client_host_22 = item_14.client_host.encode()
                n_23 = len(client_host_22) + 1
                member_metadata_24 = item_14.member_metadata
                n_25 = len(member_metadata_24) + 1
                member_assignment_26 = item_14.member_assignment
                n_27 = len(member_assignment_26) + 1
                out += (UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), member_id_15, UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19), group_instance_id_17, UVARINT[n_21] if n_21 < 4096 else write_uvarint(n_21), client_id_20, UVARINT[n_23] if n_23 < 4096 else write_uvarint(n_23), client_host_22, UVARINT[n_25] if n_25 < 4096 else write_uvarint(n_25), member_metadata_24, UVARINT[n_27] if n_27 < 4096 else write_uvarint(n_27), member_assignment_26, b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_3.authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[DescribeGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 13:
            raise ValueError
        items_4: list[DescribeGroupsResponseDescribedGroup] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_6: str | None = None
            if n_7 > 0:
                stop_8 = pos + n_7 - 1
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
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
            group_id_9 = data[pos:stop_11].decode()
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
            protocol_type_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            stop_20 = pos + n_19 - 1
            if stop_20 > end:
                raise ValueError
            protocol_data_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            n_22 -= 1
            if n_22 > (end - pos) // 7:
                raise ValueError
            items_23: list[DescribeGroupsResponseDescribedGroupMember] = []
            for _ in range(n_22):
                n_25 = data[pos]
                if n_25 > 127:
                    n_25, pos = read_uvarint(data, pos)
                    if n_25 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_25 == 0:
                    raise ValueError
                stop_26 = pos + n_25 - 1
                if stop_26 > end:
                    raise ValueError
                member_id_24 = data[pos:stop_26].decode()
                pos = stop_26
                n_28 = data[pos]
                if n_28 > 127:
                    n_28, pos = read_uvarint(data, pos)
                    if n_28 > 32768:
                        raise ValueError
                else:
                    pos += 1
                group_instance_id_27: str | None = None
                if n_28 > 0:
                    stop_29 = pos + n_28 - 1
                    if stop_29 > end:
                        raise ValueError
                    group_instance_id_27 = data[pos:stop_29].decode()
                    pos = stop_29
                n_31 = data[pos]
                if n_31 > 127:
                    n_31, pos = read_uvarint(data, pos)
                    if n_31 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_31 == 0:
                    raise ValueError
                stop_32 = pos + n_31 - 1
                if stop_32 > end:
                    raise ValueError
                client_id_30 = data[pos:stop_32].decode()
                pos = stop_32
                n_34 = data[pos]
                if n_34 > 127:
                    n_34, pos = read_uvarint(data, pos)
                    if n_34 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_34 == 0:
                    raise ValueError
                stop_35 = pos + n_34 - 1
                if stop_35 > end:
                    raise ValueError
                client_host_33 = data[pos:stop_35].decode()
                pos = stop_35
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_37 == 0:
                    raise ValueError
                stop_38 = pos + n_37 - 1
                if stop_38 > end:
                    raise ValueError
                member_metadata_36 = data[pos:stop_38]
                pos = stop_38
                n_40 = data[pos]
                if n_40 > 127:
                    n_40, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_40 == 0:
                    raise ValueError
                stop_41 = pos + n_40 - 1
                if stop_41 > end:
                    raise ValueError
                member_assignment_39 = data[pos:stop_41]
                pos = stop_41
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_23.append(DescribeGroupsResponseDescribedGroupMember(member_id_24, group_instance_id_27, client_id_30, client_host_33, member_metadata_36, member_assignment_39))
            members_21 = items_23
            authorized_operations_42, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DescribeGroupsResponseDescribedGroup(error_code_5, error_message_6, group_id_9, group_state_12, protocol_type_15, protocol_data_18, members_21, authorized_operations_42))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeGroupsResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeGroupsResponse, 6, data, start) from None


def encode_v6(message: DescribeGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: DescribeGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            group_id_7 = item_3.group_id.encode()
            n_8 = len(group_id_7) + 1
            group_state_9 = item_3.group_state.encode()
            n_10 = len(group_state_9) + 1
            protocol_type_11 = item_3.protocol_type.encode()
            n_12 = len(protocol_type_11) + 1
            protocol_data_13 = item_3.protocol_data.encode()
            n_14 = len(protocol_data_13) + 1
            members_15 = item_3.members
            n_16 = len(members_15) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), group_id_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), group_state_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), protocol_type_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), protocol_data_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16))
            for item_17 in members_15:
                member_id_18 = item_17.member_id.encode()
                n_19 = len(member_id_18) + 1
                raw_21 = item_17.group_instance_id
                if raw_21 is None:
                    group_instance_id_20 = b""
                    n_22 = 0
                else:
                    group_instance_id_20 = raw_21.encode()
                    n_22 = len(group_instance_id_20) + 1
                client_id_23 = item_17.client_id.encode()
                n_24 = len(client_id_23) + 1
                client_host_25 = item_17.client_host.encode()
                n_26 = len(client_host_25) + 1
                member_metadata_27 = item_17.member_metadata
                n_28 = len(member_metadata_27) + 1
                member_assignment_29 = item_17.member_assignment
                n_30 = len(member_assignment_29) + 1
                out += (UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19), member_id_18, UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), group_instance_id_20, UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), client_id_23, UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), client_host_25, UVARINT[n_28] if n_28 < 4096 else write_uvarint(n_28), member_metadata_27, UVARINT[n_30] if n_30 < 4096 else write_uvarint(n_30), member_assignment_29, b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_3.authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeGroupsResponse, 6, error) from error
