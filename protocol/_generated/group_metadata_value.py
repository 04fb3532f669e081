"""GroupMetadataValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    GroupMetadataValue,
    GroupMetadataValueMemberMetadata,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iii = Struct(">iii").unpack_from
_READ_q = Struct(">q").unpack_from
_READ_qi = Struct(">qi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iii = Struct(">iii").pack
_WRITE_q = Struct(">q").pack
_WRITE_qi = Struct(">qi").pack


def decode_v0(data: bytes, pos: int) -> tuple[GroupMetadataValue, int]:
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
        protocol_type_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_4, n_6 = _READ_ih(data, pos)
        pos += 6
        protocol_5: str | None = None
        if n_6 >= 0:
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            protocol_5 = data[pos:stop_7].decode()
            pos = stop_7
        elif n_6 != -1:
            raise ValueError
        n_9, = _READ_h(data, pos)
        pos += 2
        leader_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            leader_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        n_12, = _READ_i(data, pos)
        pos += 4
        if n_12 < 0:
            raise ValueError
        if n_12 > (end - pos) // 18:
            raise ValueError
        items_13: list[GroupMetadataValueMemberMetadata] = []
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
            n_18, = _READ_h(data, pos)
            pos += 2
            if n_18 < 0:
                raise ValueError
            stop_19 = pos + n_18
            if stop_19 > end:
                raise ValueError
            client_id_17 = data[pos:stop_19].decode()
            pos = stop_19
            n_21, = _READ_h(data, pos)
            pos += 2
            if n_21 < 0:
                raise ValueError
            stop_22 = pos + n_21
            if stop_22 > end:
                raise ValueError
            client_host_20 = data[pos:stop_22].decode()
            pos = stop_22
            session_timeout_23, n_25 = _READ_ii(data, pos)
            pos += 8
            if n_25 < 0:
                raise ValueError
            stop_26 = pos + n_25
            if stop_26 > end:
                raise ValueError
            subscription_24 = data[pos:stop_26]
            pos = stop_26
            n_28, = _READ_i(data, pos)
            pos += 4
            if n_28 < 0:
                raise ValueError
            stop_29 = pos + n_28
            if stop_29 > end:
                raise ValueError
            assignment_27 = data[pos:stop_29]
            pos = stop_29
            items_13.append(GroupMetadataValueMemberMetadata(member_id_14, None, client_id_17, client_host_20, -1, session_timeout_23, subscription_24, assignment_27))
        members_11 = items_13
        return GroupMetadataValue(protocol_type_1, generation_4, protocol_5, leader_8, -1, members_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataValue, 0, data, start) from None


def encode_v0(message: GroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        protocol_type_1 = message.protocol_type.encode()
        raw_3 = message.protocol
        protocol_2 = b"" if raw_3 is None else raw_3.encode()
        raw_5 = message.leader
        leader_4 = b"" if raw_5 is None else raw_5.encode()
        members_6 = message.members
        out += (_WRITE_h(len(protocol_type_1)), protocol_type_1, _WRITE_ih(message.generation, -1 if raw_3 is None else len(protocol_2)), protocol_2, _WRITE_h(-1 if raw_5 is None else len(leader_4)), leader_4, _WRITE_i(len(members_6)))
        for item_7 in members_6:
            member_id_8 = item_7.member_id.encode()
            client_id_9 = item_7.client_id.encode()
            client_host_10 = item_7.client_host.encode()
            subscription_11 = item_7.subscription
            assignment_12 = item_7.assignment
            out += (_WRITE_h(len(member_id_8)), member_id_8, _WRITE_h(len(client_id_9)), client_id_9, _WRITE_h(len(client_host_10)), client_host_10, _WRITE_ii(item_7.session_timeout, len(subscription_11)), subscription_11, _WRITE_i(len(assignment_12)), assignment_12)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataValue, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[GroupMetadataValue, int]:
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
        protocol_type_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_4, n_6 = _READ_ih(data, pos)
        pos += 6
        protocol_5: str | None = None
        if n_6 >= 0:
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            protocol_5 = data[pos:stop_7].decode()
            pos = stop_7
        elif n_6 != -1:
            raise ValueError
        n_9, = _READ_h(data, pos)
        pos += 2
        leader_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            leader_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        n_12, = _READ_i(data, pos)
        pos += 4
        if n_12 < 0:
            raise ValueError
        if n_12 > (end - pos) // 22:
            raise ValueError
        items_13: list[GroupMetadataValueMemberMetadata] = []
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
            n_18, = _READ_h(data, pos)
            pos += 2
            if n_18 < 0:
                raise ValueError
            stop_19 = pos + n_18
            if stop_19 > end:
                raise ValueError
            client_id_17 = data[pos:stop_19].decode()
            pos = stop_19
            n_21, = _READ_h(data, pos)
            pos += 2
            if n_21 < 0:
                raise ValueError
            stop_22 = pos + n_21
            if stop_22 > end:
                raise ValueError
            client_host_20 = data[pos:stop_22].decode()
            pos = stop_22
            rebalance_timeout_23, session_timeout_24, n_26 = _READ_iii(data, pos)
            pos += 12
            if n_26 < 0:
                raise ValueError
            stop_27 = pos + n_26
            if stop_27 > end:
                raise ValueError
            subscription_25 = data[pos:stop_27]
            pos = stop_27
            n_29, = _READ_i(data, pos)
            pos += 4
            if n_29 < 0:
                raise ValueError
            stop_30 = pos + n_29
            if stop_30 > end:
                raise ValueError
            assignment_28 = data[pos:stop_30]
            pos = stop_30
            items_13.append(GroupMetadataValueMemberMetadata(member_id_14, None, client_id_17, client_host_20, rebalance_timeout_23, session_timeout_24, subscription_25, assignment_28))
        members_11 = items_13
        return GroupMetadataValue(protocol_type_1, generation_4, protocol_5, leader_8, -1, members_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataValue, 1, data, start) from None


def encode_v1(message: GroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        protocol_type_1 = message.protocol_type.encode()
        raw_3 = message.protocol
        protocol_2 = b"" if raw_3 is None else raw_3.encode()
        raw_5 = message.leader
        leader_4 = b"" if raw_5 is None else raw_5.encode()
        members_6 = message.members
        out += (_WRITE_h(len(protocol_type_1)), protocol_type_1, _WRITE_ih(message.generation, -1 if raw_3 is None else len(protocol_2)), protocol_2, _WRITE_h(-1 if raw_5 is None else len(leader_4)), leader_4, _WRITE_i(len(members_6)))
        for item_7 in members_6:
            member_id_8 = item_7.member_id.encode()
            client_id_9 = item_7.client_id.encode()
            client_host_10 = item_7.client_host.encode()
            subscription_11 = item_7.subscription
            assignment_12 = item_7.assignment
            out += (_WRITE_h(len(member_id_8)), member_id_8, _WRITE_h(len(client_id_9)), client_id_9, _WRITE_h(len(client_host_10)), client_host_10, _WRITE_iii(item_7.rebalance_timeout, item_7.session_timeout, len(subscription_11)), subscription_11, _WRITE_i(len(assignment_12)), assignment_12)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataValue, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[GroupMetadataValue, int]:
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
        protocol_type_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_4, n_6 = _READ_ih(data, pos)
        pos += 6
        protocol_5: str | None = None
        if n_6 >= 0:
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            protocol_5 = data[pos:stop_7].decode()
            pos = stop_7
        elif n_6 != -1:
            raise ValueError
        n_9, = _READ_h(data, pos)
        pos += 2
        leader_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            leader_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        current_state_timestamp_11, n_13 = _READ_qi(data, pos)
        pos += 12
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 22:
            raise ValueError
        items_14: list[GroupMetadataValueMemberMetadata] = []
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
            n_19, = _READ_h(data, pos)
            pos += 2
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            client_id_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22, = _READ_h(data, pos)
            pos += 2
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            client_host_21 = data[pos:stop_23].decode()
            pos = stop_23
            rebalance_timeout_24, session_timeout_25, n_27 = _READ_iii(data, pos)
            pos += 12
            if n_27 < 0:
                raise ValueError
            stop_28 = pos + n_27
            if stop_28 > end:
                raise ValueError
            subscription_26 = data[pos:stop_28]
            pos = stop_28
            n_30, = _READ_i(data, pos)
            pos += 4
            if n_30 < 0:
                raise ValueError
            stop_31 = pos + n_30
            if stop_31 > end:
                raise ValueError
            assignment_29 = data[pos:stop_31]
            pos = stop_31
            items_14.append(GroupMetadataValueMemberMetadata(member_id_15, None, client_id_18, client_host_21, rebalance_timeout_24, session_timeout_25, subscription_26, assignment_29))
        members_12 = items_14
        return GroupMetadataValue(protocol_type_1, generation_4, protocol_5, leader_8, current_state_timestamp_11, members_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataValue, 2, data, start) from None


def encode_v2(message: GroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        protocol_type_1 = message.protocol_type.encode()
        raw_3 = message.protocol
        protocol_2 = b"" if raw_3 is None else raw_3.encode()
        raw_5 = message.leader
        leader_4 = b"" if raw_5 is None else raw_5.encode()
        members_6 = message.members
        out += (_WRITE_h(len(protocol_type_1)), protocol_type_1, _WRITE_ih(message.generation, -1 if raw_3 is None else len(protocol_2)), protocol_2, _WRITE_h(-1 if raw_5 is None else len(leader_4)), leader_4, _WRITE_qi(message.current_state_timestamp, len(members_6)))
        for item_7 in members_6:
            member_id_8 = item_7.member_id.encode()
            client_id_9 = item_7.client_id.encode()
            client_host_10 = item_7.client_host.encode()
            subscription_11 = item_7.subscription
            assignment_12 = item_7.assignment
            out += (_WRITE_h(len(member_id_8)), member_id_8, _WRITE_h(len(client_id_9)), client_id_9, _WRITE_h(len(client_host_10)), client_host_10, _WRITE_iii(item_7.rebalance_timeout, item_7.session_timeout, len(subscription_11)), subscription_11, _WRITE_i(len(assignment_12)), assignment_12)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataValue, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[GroupMetadataValue, int]:
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
        protocol_type_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_4, n_6 = _READ_ih(data, pos)
        pos += 6
        protocol_5: str | None = None
        if n_6 >= 0:
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            protocol_5 = data[pos:stop_7].decode()
            pos = stop_7
        elif n_6 != -1:
            raise ValueError
        n_9, = _READ_h(data, pos)
        pos += 2
        leader_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            leader_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        current_state_timestamp_11, n_13 = _READ_qi(data, pos)
        pos += 12
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 24:
            raise ValueError
        items_14: list[GroupMetadataValueMemberMetadata] = []
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
            n_19, = _READ_h(data, pos)
            pos += 2
            group_instance_id_18: str | None = None
            if n_19 >= 0:
                stop_20 = pos + n_19
                if stop_20 > end:
                    raise ValueError
                group_instance_id_18 = data[pos:stop_20].decode()
                pos = stop_20
            elif n_19 != -1:
                raise ValueError
            n_22, = _READ_h(data, pos)
            pos += 2
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            client_id_21 = data[pos:stop_23].decode()
            pos = stop_23
            n_25, = _READ_h(data, pos)
            pos += 2
            if n_25 < 0:
                raise ValueError
            stop_26 = pos + n_25
            if stop_26 > end:
                raise ValueError
            client_host_24 = data[pos:stop_26].decode()
            pos = stop_26
            rebalance_timeout_27, session_timeout_28, n_30 = _READ_iii(data, pos)
            pos += 12
            if n_30 < 0:
                raise ValueError
            stop_31 = pos + n_30
            if stop_31 > end:
                raise ValueError
            subscription_29 = data[pos:stop_31]
            pos = stop_31
            n_33, = _READ_i(data, pos)
            pos += 4
            if n_33 < 0:
                raise ValueError
            stop_34 = pos + n_33
            if stop_34 > end:
                raise ValueError
            assignment_32 = data[pos:stop_34]
            pos = stop_34
            items_14.append(GroupMetadataValueMemberMetadata(member_id_15, group_instance_id_18, client_id_21, client_host_24, rebalance_timeout_27, session_timeout_28, subscription_29, assignment_32))
        members_12 = items_14
        return GroupMetadataValue(protocol_type_1, generation_4, protocol_5, leader_8, current_state_timestamp_11, members_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataValue, 3, data, start) from None


def encode_v3(message: GroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        protocol_type_1 = message.protocol_type.encode()
        raw_3 = message.protocol
        protocol_2 = b"" if raw_3 is None else raw_3.encode()
        raw_5 = message.leader
        leader_4 = b"" if raw_5 is None else raw_5.encode()
        members_6 = message.members
        out += (_WRITE_h(len(protocol_type_1)), protocol_type_1, _WRITE_ih(message.generation, -1 if raw_3 is None else len(protocol_2)), protocol_2, _WRITE_h(-1 if raw_5 is None else len(leader_4)), leader_4, _WRITE_qi(message.current_state_timestamp, len(members_6)))
        for item_7 in members_6:
            member_id_8 = item_7.member_id.encode()
            raw_10 = item_7.group_instance_id
            group_instance_id_9 = b"" if raw_10 is None else raw_10.encode()
            client_id_11 = item_7.client_id.encode()
            client_host_12 = item_7.client_host.encode()
            subscription_13 = item_7.subscription
            assignment_14 = item_7.assignment
            out += (_WRITE_h(len(member_id_8)), member_id_8, _WRITE_h(-1 if raw_10 is None else len(group_instance_id_9)), group_instance_id_9, _WRITE_h(len(client_id_11)), client_id_11, _WRITE_h(len(client_host_12)), client_host_12, _WRITE_iii(item_7.rebalance_timeout, item_7.session_timeout, len(subscription_13)), subscription_13, _WRITE_i(len(assignment_14)), assignment_14)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataValue, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[GroupMetadataValue, int]:
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
        protocol_type_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_4, = _READ_i(data, pos)
        pos += 4
        n_6 = data[pos]
        if n_6 > 127:
            n_6, pos = read_uvarint(data, pos)
            if n_6 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_5: str | None = None
        if n_6 > 0:
            stop_7 = pos + n_6 - 1
            if stop_7 > end:
                raise ValueError
            protocol_5 = data[pos:stop_7].decode()
            pos = stop_7
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        leader_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            leader_8 = data[pos:stop_10].decode()
            pos = stop_10
        current_state_timestamp_11, = _READ_q(data, pos)
        pos += 8
        n_13 = data[pos]
        if n_13 > 127:
            n_13, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_13 == 0:
            raise ValueError
        n_13 -= 1
        if n_13 > (end - pos) // 15:
            raise ValueError
        items_14: list[GroupMetadataValueMemberMetadata] = []
        for _ in range(n_13):
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
            member_id_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            group_instance_id_18: str | None = None
            if n_19 > 0:
                stop_20 = pos + n_19 - 1
                if stop_20 > end:
                    raise ValueError
                group_instance_id_18 = data[pos:stop_20].decode()
                pos = stop_20
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
            client_id_21 = data[pos:stop_23].decode()
            pos = stop_23
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
            client_host_24 = data[pos:stop_26].decode()
            pos = stop_26
            rebalance_timeout_27, session_timeout_28 = _READ_ii(data, pos)
            pos += 8
            n_30 = data[pos]
            if n_30 > 127:
                n_30, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_30 == 0:
                raise ValueError
            stop_31 = pos + n_30 - 1
            if stop_31 > end:
                raise ValueError
            subscription_29 = data[pos:stop_31]
            pos = stop_31
            n_33 = data[pos]
            if n_33 > 127:
                n_33, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_33 == 0:
                raise ValueError
            stop_34 = pos + n_33 - 1
            if stop_34 > end:
                raise ValueError
            assignment_32 = data[pos:stop_34]
            pos = stop_34
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_14.append(GroupMetadataValueMemberMetadata(member_id_15, group_instance_id_18, client_id_21, client_host_24, rebalance_timeout_27, session_timeout_28, subscription_29, assignment_32))
        members_12 = items_14
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return GroupMetadataValue(protocol_type_1, generation_4, protocol_5, leader_8, current_state_timestamp_11, members_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataValue, 4, data, start) from None


def encode_v4(message: GroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        protocol_type_1 = message.protocol_type.encode()
        n_2 = len(protocol_type_1) + 1
        raw_4 = message.protocol
        if raw_4 is None:
            protocol_3 = b""
            n_5 = 0
        else:
            protocol_3 = raw_4.encode()
            n_5 = len(protocol_3) + 1
        raw_7 = message.leader
        if raw_7 is None:
            leader_6 = b""
            n_8 = 0
        else:
            leader_6 = raw_7.encode()
            n_8 = len(leader_6) + 1
        members_9 = message.members
        n_10 = len(members_9) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), protocol_type_1, _WRITE_i(message.generation), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), protocol_3, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), leader_6, _WRITE_q(message.current_state_timestamp), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
        for item_11 in members_9:
            member_id_12 = item_11.member_id.encode()
            n_13 = len(member_id_12) + 1
            raw_15 = item_11.group_instance_id
            if raw_15 is None:
                group_instance_id_14 = b""
                n_16 = 0
            else:
                group_instance_id_14 = raw_15.encode()
                n_16 = len(group_instance_id_14) + 1
            client_id_17 = item_11.client_id.encode()
            n_18 = len(client_id_17) + 1
            client_host_19 = item_11.client_host.encode()
            n_20 = len(client_host_19) + 1
            subscription_21 = item_11.subscription
            n_22 = len(subscription_21) + 1
            assignment_23 = item_11.assignment
            n_24 = len(assignment_23) + 1
            out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), member_id_12, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), group_instance_id_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), client_id_17, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), client_host_19, _WRITE_ii(item_11.rebalance_timeout, item_11.session_timeout), UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), subscription_21, UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), assignment_23, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataValue, 4, error) from error
