"""ConsumerGroupDescribeResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_b = Struct(">b").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_ix = Struct(">ix").pack
_WRITE_xbx = Struct(">xbx").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupDescribeResponse, int]:
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
        if n_3 > (end - pos) // 20:
            raise ValueError
        items_4: list[ConsumerGroupDescribeResponseDescribedGroup] = []
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
            group_epoch_15, assignment_epoch_16 = _READ_ii(data, pos)
            pos += 8
            n_18 = data[pos]
            if n_18 > 127:
                n_18, pos = read_uvarint(data, pos)
                if n_18 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_18 == 0:
                raise ValueError
            stop_19 = pos + n_18 - 1
            if stop_19 > end:
                raise ValueError
            assignor_name_17 = data[pos:stop_19].decode()
            pos = stop_19
            n_21 = data[pos]
            if n_21 > 127:
                n_21, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_21 == 0:
                raise ValueError
            n_21 -= 1
            if n_21 > (end - pos) // 16:
                raise ValueError
            items_22: list[ConsumerGroupDescribeResponseMember] = []
            for _ in range(n_21):
                n_24 = data[pos]
                if n_24 > 127:
                    n_24, pos = read_uvarint(data, pos)
                    if n_24 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_24 == 0:
                    raise ValueError
                stop_25 = pos + n_24 - 1
                if stop_25 > end:
                    raise ValueError
                member_id_23 = data[pos:stop_25].decode()
                pos = stop_25
                n_27 = data[pos]
                if n_27 > 127:
                    n_27, pos = read_uvarint(data, pos)
                    if n_27 > 32768:
                        raise ValueError
                else:
                    pos += 1
                instance_id_26: str | None = None
                if n_27 > 0:
                    stop_28 = pos + n_27 - 1
                    if stop_28 > end:
                        raise ValueError
                    instance_id_26 = data[pos:stop_28].decode()
                    pos = stop_28
                n_30 = data[pos]
                if n_30 > 127:
                    n_30, pos = read_uvarint(data, pos)
                    if n_30 > 32768:
                        raise ValueError
                else:
                    pos += 1
                rack_id_29: str | None = None
                if n_30 > 0:
                    stop_31 = pos + n_30 - 1
                    if stop_31 > end:
                        raise ValueError
                    rack_id_29 = data[pos:stop_31].decode()
                    pos = stop_31
                member_epoch_32, = _READ_i(data, pos)
                pos += 4
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
                client_id_33 = data[pos:stop_35].decode()
                pos = stop_35
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                    if n_37 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_37 == 0:
                    raise ValueError
                stop_38 = pos + n_37 - 1
                if stop_38 > end:
                    raise ValueError
                client_host_36 = data[pos:stop_38].decode()
                pos = stop_38
                n_40 = data[pos]
                if n_40 > 127:
                    n_40, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_40 == 0:
                    raise ValueError
                n_40 -= 1
                if n_40 > end - pos:
                    raise ValueError
                items_41: list[str] = []
                for _ in range(n_40):
                    n_43 = data[pos]
                    if n_43 > 127:
                        n_43, pos = read_uvarint(data, pos)
                        if n_43 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_43 == 0:
                        raise ValueError
                    stop_44 = pos + n_43 - 1
                    if stop_44 > end:
                        raise ValueError
                    subscribed_topic_names_42 = data[pos:stop_44].decode()
                    pos = stop_44
                    items_41.append(subscribed_topic_names_42)
                subscribed_topic_names_39 = items_41
                n_46 = data[pos]
                if n_46 > 127:
                    n_46, pos = read_uvarint(data, pos)
                    if n_46 > 32768:
                        raise ValueError
                else:
                    pos += 1
                subscribed_topic_regex_45: str | None = None
                if n_46 > 0:
                    stop_47 = pos + n_46 - 1
                    if stop_47 > end:
                        raise ValueError
                    subscribed_topic_regex_45 = data[pos:stop_47].decode()
                    pos = stop_47
                n_49 = data[pos]
                if n_49 > 127:
                    n_49, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_49 == 0:
                    raise ValueError
                n_49 -= 1
                if n_49 > (end - pos) // 19:
                    raise ValueError
                items_50: list[ConsumerGroupDescribeResponseTopicPartitions] = []
                for _ in range(n_49):
                    topic_id_51, = _READ_U(data, pos)
                    pos += 16
                    n_53 = data[pos]
                    if n_53 > 127:
                        n_53, pos = read_uvarint(data, pos)
                        if n_53 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_53 == 0:
                        raise ValueError
                    stop_54 = pos + n_53 - 1
                    if stop_54 > end:
                        raise ValueError
                    topic_name_52 = data[pos:stop_54].decode()
                    pos = stop_54
                    n_56 = data[pos]
                    if n_56 > 127:
                        n_56, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_56 == 0:
                        raise ValueError
                    n_56 -= 1
                    if n_56 > (end - pos) // 4:
                        raise ValueError
                    partitions_55 = list(unpack_from(">" + f"{n_56}i", data, pos))
                    pos += n_56 * 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_50.append(ConsumerGroupDescribeResponseTopicPartitions(topic_id_51, topic_name_52, partitions_55))
                topic_partitions_48 = items_50
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                assignment_57 = ConsumerGroupDescribeResponseAssignment(topic_partitions_48)
                n_59 = data[pos]
                if n_59 > 127:
                    n_59, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_59 == 0:
                    raise ValueError
                n_59 -= 1
                if n_59 > (end - pos) // 19:
                    raise ValueError
                items_60: list[ConsumerGroupDescribeResponseTopicPartitions] = []
                for _ in range(n_59):
                    topic_id_61, = _READ_U(data, pos)
                    pos += 16
                    n_63 = data[pos]
                    if n_63 > 127:
                        n_63, pos = read_uvarint(data, pos)
                        if n_63 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_63 == 0:
                        raise ValueError
                    stop_64 = pos + n_63 - 1
                    if stop_64 > end:
                        raise ValueError
                    topic_name_62 = data[pos:stop_64].decode()
                    pos = stop_64
                    n_66 = data[pos]
                    if n_66 > 127:
                        n_66, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_66 == 0:
                        raise ValueError
                    n_66 -= 1
                    if n_66 > (end - pos) // 4:
                        raise ValueError
                    partitions_65 = list(unpack_from(">" + f"{n_66}i", data, pos))
                    pos += n_66 * 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_60.append(ConsumerGroupDescribeResponseTopicPartitions(topic_id_61, topic_name_62, partitions_65))
                topic_partitions_58 = items_60
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                target_assignment_67 = ConsumerGroupDescribeResponseAssignment(topic_partitions_58)
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_22.append(ConsumerGroupDescribeResponseMember(member_id_23, instance_id_26, rack_id_29, member_epoch_32, client_id_33, client_host_36, subscribed_topic_names_39, subscribed_topic_regex_45, assignment_57, target_assignment_67, -1))
            members_20 = items_22
            authorized_operations_68, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(ConsumerGroupDescribeResponseDescribedGroup(error_code_5, error_message_6, group_id_9, group_state_12, group_epoch_15, assignment_epoch_16, assignor_name_17, members_20, authorized_operations_68))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupDescribeResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupDescribeResponse, 0, data, start) from None


def encode_v0(message: ConsumerGroupDescribeResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: ConsumerGroupDescribeResponse) -> Iterator[bytes]:
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
            assignor_name_11 = item_3.assignor_name.encode()
            n_12 = len(assignor_name_11) + 1
            members_13 = item_3.members
            n_14 = len(members_13) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), group_id_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), group_state_9, _WRITE_ii(item_3.group_epoch, item_3.assignment_epoch), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), assignor_name_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14))
            for item_15 in members_13:
                member_id_16 = item_15.member_id.encode()
                n_17 = len(member_id_16) + 1
                raw_19 = item_15.instance_id
                if raw_19 is None:
                    instance_id_18 = b""
                    n_20 = 0
                else:
                    instance_id_18 = raw_19.encode()
                    n_20 = len(instance_id_18) + 1
                raw_22 = item_15.rack_id
                if raw_22 is None:
                    rack_id_21 = b""
                    n_23 = 0
                else:
                    rack_id_21 = raw_22.encode()
                    n_23 = len(rack_id_21) + 1
                client_id_24 = item_15.client_id.encode()
                n_25 = len(client_id_24) + 1
                client_host_26 = item_15.client_host.encode()
                n_27 = len(client_host_26) + 1
                subscribed_topic_names_28 = item_15.subscribed_topic_names
                n_29 = len(subscribed_topic_names_28) + 1
                out += (UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), member_id_16, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), instance_id_18, UVARINT[n_23] if n_23 < 4096 else write_uvarint(n_23), rack_id_21, _WRITE_i(item_15.member_epoch), UVARINT[n_25] if n_25 < 4096 else write_uvarint(n_25), client_id_24, UVARINT[n_27] if n_27 < 4096 else write_uvarint(n_27), client_host_26, UVARINT[n_29] if n_29 < 4096 else write_uvarint(n_29))
                for item_30 in subscribed_topic_names_28:
                    item_31 = item_30.encode()
                    n_32 = len(item_31) + 1
                    out += (UVARINT[n_32] if n_32 < 4096 else write_uvarint(n_32), item_31)
                raw_34 = item_15.subscribed_topic_regex
                if raw_34 is None:
                    subscribed_topic_regex_33 = b""
                    n_35 = 0
                else:
                    subscribed_topic_regex_33 = raw_34.encode()
                    n_35 = len(subscribed_topic_regex_33) + 1
                assignment_36 = item_15.assignment
                topic_partitions_37 = assignment_36.topic_partitions
                n_38 = len(topic_partitions_37) + 1
                out += (UVARINT[n_35] if n_35 < 4096 else write_uvarint(n_35), subscribed_topic_regex_33, UVARINT[n_38] if n_38 < 4096 else write_uvarint(n_38))
                for item_39 in topic_partitions_37:
                    if len(item_39.topic_id) != 16:
                        raise ValueError("topic_id is not 16 bytes")
                    topic_name_40 = item_39.topic_name.encode()
                    n_41 = len(topic_name_40) + 1
                    partitions_42 = item_39.partitions
                    n_43 = len(partitions_42) + 1
                    out += (_WRITE_U(item_39.topic_id), UVARINT[n_41] if n_41 < 4096 else write_uvarint(n_41), topic_name_40, UVARINT[n_43] if n_43 < 4096 else write_uvarint(n_43), pack(">" + f"{len(partitions_42)}i", *partitions_42), b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                target_assignment_44 = item_15.target_assignment
                topic_partitions_45 = target_assignment_44.topic_partitions
                n_46 = len(topic_partitions_45) + 1
                out += (b"\0", UVARINT[n_46] if n_46 < 4096 else write_uvarint(n_46))
                for item_47 in topic_partitions_45:
                    if len(item_47.topic_id) != 16:
                        raise ValueError("topic_id is not 16 bytes")
                    topic_name_48 = item_47.topic_name.encode()
                    n_49 = len(topic_name_48) + 1
                    partitions_50 = item_47.partitions
                    n_51 = len(partitions_50) + 1
                    out += (_WRITE_U(item_47.topic_id), UVARINT[n_49] if n_49 < 4096 else write_uvarint(n_49), topic_name_48, UVARINT[n_51] if n_51 < 4096 else write_uvarint(n_51), pack(">" + f"{len(partitions_50)}i", *partitions_50), b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                out.append(b"\0\0")
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
        raise refused(ConsumerGroupDescribeResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[ConsumerGroupDescribeResponse, int]:
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
        if n_3 > (end - pos) // 20:
            raise ValueError
        items_4: list[ConsumerGroupDescribeResponseDescribedGroup] = []
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
            group_epoch_15, assignment_epoch_16 = _READ_ii(data, pos)
            pos += 8
            n_18 = data[pos]
            if n_18 > 127:
                n_18, pos = read_uvarint(data, pos)
                if n_18 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_18 == 0:
                raise ValueError
            stop_19 = pos + n_18 - 1
            if stop_19 > end:
                raise ValueError
            assignor_name_17 = data[pos:stop_19].decode()
            pos = stop_19
            n_21 = data[pos]
            if n_21 > 127:
                n_21, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_21 == 0:
                raise ValueError
            n_21 -= 1
            if n_21 > (end - pos) // 17:
                raise ValueError
            items_22: list[ConsumerGroupDescribeResponseMember] = []
            for _ in range(n_21):
                n_24 = data[pos]
                if n_24 > 127:
                    n_24, pos = read_uvarint(data, pos)
                    if n_24 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_24 == 0:
                    raise ValueError
                stop_25 = pos + n_24 - 1
                if stop_25 > end:
                    raise ValueError
                member_id_23 = data[pos:stop_25].decode()
                pos = stop_25
                n_27 = data[pos]
                if n_27 > 127:
                    n_27, pos = read_uvarint(data, pos)
                    if n_27 > 32768:
                        raise ValueError
                else:
                    pos += 1
                instance_id_26: str | None = None
                if n_27 > 0:
                    stop_28 = pos + n_27 - 1
                    if stop_28 > end:
                        raise ValueError
                    instance_id_26 = data[pos:stop_28].decode()
                    pos = stop_28
                n_30 = data[pos]
                if n_30 > 127:
                    n_30, pos = read_uvarint(data, pos)
                    if n_30 > 32768:
                        raise ValueError
                else:
                    pos += 1
                rack_id_29: str | None = None
                if n_30 > 0:
                    stop_31 = pos + n_30 - 1
                    if stop_31 > end:
                        raise ValueError
                    rack_id_29 = data[pos:stop_31].decode()
                    pos = stop_31
                member_epoch_32, = _READ_i(data, pos)
                pos += 4
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
                client_id_33 = data[pos:stop_35].decode()
                pos = stop_35
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                    if n_37 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_37 == 0:
                    raise ValueError
                stop_38 = pos + n_37 - 1
                if stop_38 > end:
                    raise ValueError
                client_host_36 = data[pos:stop_38].decode()
                pos = stop_38
                n_40 = data[pos]
                if n_40 > 127:
                    n_40, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_40 == 0:
                    raise ValueError
                n_40 -= 1
                if n_40 > end - pos:
                    raise ValueError
                items_41: list[str] = []
                for _ in range(n_40):
                    n_43 = data[pos]
                    if n_43 > 127:
                        n_43, pos = read_uvarint(data, pos)
                        if n_43 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_43 == 0:
                        raise ValueError
                    stop_44 = pos + n_43 - 1
                    if stop_44 > end:
                        raise ValueError
                    subscribed_topic_names_42 = data[pos:stop_44].decode()
                    pos = stop_44
                    items_41.append(subscribed_topic_names_42)
                subscribed_topic_names_39 = items_41
                n_46 = data[pos]
                if n_46 > 127:
                    n_46, pos = read_uvarint(data, pos)
                    if n_46 > 32768:
                        raise ValueError
                else:
                    pos += 1
                subscribed_topic_regex_45: str | None = None
                if n_46 > 0:
                    stop_47 = pos + n_46 - 1
                    if stop_47 > end:
                        raise ValueError
                    subscribed_topic_regex_45 = data[pos:stop_47].decode()
                    pos = stop_47
                n_49 = data[pos]
                if n_49 > 127:
                    n_49, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_49 == 0:
                    raise ValueError
                n_49 -= 1
                if n_49 > (end - pos) // 19:
                    raise ValueError
                items_50: list[ConsumerGroupDescribeResponseTopicPartitions] = []
                for _ in range(n_49):
                    topic_id_51, = _READ_U(data, pos)
                    pos += 16
                    n_53 = data[pos]
                    if n_53 > 127:
                        n_53, pos = read_uvarint(data, pos)
                        if n_53 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_53 == 0:
                        raise ValueError
                    stop_54 = pos + n_53 - 1
                    if stop_54 > end:
                        raise ValueError
                    topic_name_52 = data[pos:stop_54].decode()
                    pos = stop_54
                    n_56 = data[pos]
                    if n_56 > 127:
                        n_56, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_56 == 0:
                        raise ValueError
                    n_56 -= 1
                    if n_56 > (end - pos) // 4:
                        raise ValueError
                    partitions_55 = list(unpack_from(">" + f"{n_56}i", data, pos))
                    pos += n_56 * 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_50.append(ConsumerGroupDescribeResponseTopicPartitions(topic_id_51, topic_name_52, partitions_55))
                topic_partitions_48 = items_50
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                assignment_57 = ConsumerGroupDescribeResponseAssignment(topic_partitions_48)
                n_59 = data[pos]
                if n_59 > 127:
                    n_59, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_59 == 0:
                    raise ValueError
                n_59 -= 1
                if n_59 > (end - pos) // 19:
                    raise ValueError
                items_60: list[ConsumerGroupDescribeResponseTopicPartitions] = []
                for _ in range(n_59):
                    topic_id_61, = _READ_U(data, pos)
                    pos += 16
                    n_63 = data[pos]
                    if n_63 > 127:
                        n_63, pos = read_uvarint(data, pos)
                        if n_63 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_63 == 0:
                        raise ValueError
                    stop_64 = pos + n_63 - 1
                    if stop_64 > end:
                        raise ValueError
                    topic_name_62 = data[pos:stop_64].decode()
                    pos = stop_64
                    n_66 = data[pos]
                    if n_66 > 127:
                        n_66, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_66 == 0:
                        raise ValueError
                    n_66 -= 1
                    if n_66 > (end - pos) // 4:
                        raise ValueError
                    partitions_65 = list(unpack_from(">" + f"{n_66}i", data, pos))
                    pos += n_66 * 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_60.append(ConsumerGroupDescribeResponseTopicPartitions(topic_id_61, topic_name_62, partitions_65))
                topic_partitions_58 = items_60
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                target_assignment_67 = ConsumerGroupDescribeResponseAssignment(topic_partitions_58)
                member_type_68, = _READ_b(data, pos)
                pos += 1
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_22.append(ConsumerGroupDescribeResponseMember(member_id_23, instance_id_26, rack_id_29, member_epoch_32, client_id_33, client_host_36, subscribed_topic_names_39, subscribed_topic_regex_45, assignment_57, target_assignment_67, member_type_68))
            members_20 = items_22
            authorized_operations_69, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(ConsumerGroupDescribeResponseDescribedGroup(error_code_5, error_message_6, group_id_9, group_state_12, group_epoch_15, assignment_epoch_16, assignor_name_17, members_20, authorized_operations_69))
        groups_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupDescribeResponse(throttle_time_ms_1, groups_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupDescribeResponse, 1, data, start) from None


def encode_v1(message: ConsumerGroupDescribeResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: ConsumerGroupDescribeResponse) -> Iterator[bytes]:
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
            assignor_name_11 = item_3.assignor_name.encode()
            n_12 = len(assignor_name_11) + 1
            members_13 = item_3.members
            n_14 = len(members_13) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), group_id_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), group_state_9, _WRITE_ii(item_3.group_epoch, item_3.assignment_epoch), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), assignor_name_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14))
            for item_15 in members_13:
                member_id_16 = item_15.member_id.encode()
                n_17 = len(member_id_16) + 1
                raw_19 = item_15.instance_id
                if raw_19 is None:
                    instance_id_18 = b""
                    n_20 = 0
                else:
                    instance_id_18 = raw_19.encode()
                    n_20 = len(instance_id_18) + 1
                raw_22 = item_15.rack_id
                if raw_22 is None:
                    rack_id_21 = b""
                    n_23 = 0
                else:
                    rack_id_21 = raw_22.encode()
                    n_23 = len(rack_id_21) + 1
                client_id_24 = item_15.client_id.encode()
                n_25 = len(client_id_24) + 1
                client_host_26 = item_15.client_host.encode()
                n_27 = len(client_host_26) + 1
                subscribed_topic_names_28 = item_15.subscribed_topic_names
                n_29 = len(subscribed_topic_names_28) + 1
                out += (UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), member_id_16, UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), instance_id_18, UVARINT[n_23] if n_23 < 4096 else write_uvarint(n_23), rack_id_21, _WRITE_i(item_15.member_epoch), UVARINT[n_25] if n_25 < 4096 else write_uvarint(n_25), client_id_24, UVARINT[n_27] if n_27 < 4096 else write_uvarint(n_27), client_host_26, UVARINT[n_29] if n_29 < 4096 else write_uvarint(n_29))
                for item_30 in subscribed_topic_names_28:
                    item_31 = item_30.encode()
                    n_32 = len(item_31) + 1
                    out += (UVARINT[n_32] if n_32 < 4096 else write_uvarint(n_32), item_31)
                raw_34 = item_15.subscribed_topic_regex
                if raw_34 is None:
                    subscribed_topic_regex_33 = b""
                    n_35 = 0
                else:
                    subscribed_topic_regex_33 = raw_34.encode()
                    n_35 = len(subscribed_topic_regex_33) + 1
                assignment_36 = item_15.assignment
                topic_partitions_37 = assignment_36.topic_partitions
                n_38 = len(topic_partitions_37) + 1
                out += (UVARINT[n_35] if n_35 < 4096 else write_uvarint(n_35), subscribed_topic_regex_33, UVARINT[n_38] if n_38 < 4096 else write_uvarint(n_38))
                for item_39 in topic_partitions_37:
                    if len(item_39.topic_id) != 16:
                        raise ValueError("topic_id is not 16 bytes")
                    topic_name_40 = item_39.topic_name.encode()
                    n_41 = len(topic_name_40) + 1
                    partitions_42 = item_39.partitions
                    n_43 = len(partitions_42) + 1
                    out += (_WRITE_U(item_39.topic_id), UVARINT[n_41] if n_41 < 4096 else write_uvarint(n_41), topic_name_40, UVARINT[n_43] if n_43 < 4096 else write_uvarint(n_43), pack(">" + f"{len(partitions_42)}i", *partitions_42), b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                target_assignment_44 = item_15.target_assignment
                topic_partitions_45 = target_assignment_44.topic_partitions
                n_46 = len(topic_partitions_45) + 1
                out += (b"\0", UVARINT[n_46] if n_46 < 4096 else write_uvarint(n_46))
                for item_47 in topic_partitions_45:
                    if len(item_47.topic_id) != 16:
                        raise ValueError("topic_id is not 16 bytes")
                    topic_name_48 = item_47.topic_name.encode()
                    n_49 = len(topic_name_48) + 1
                    partitions_50 = item_47.partitions
                    n_51 = len(partitions_50) + 1
                    out += (_WRITE_U(item_47.topic_id), UVARINT[n_49] if n_49 < 4096 else write_uvarint(n_49), topic_name_48, UVARINT[n_51] if n_51 < 4096 else write_uvarint(n_51), pack(">" + f"{len(partitions_50)}i", *partitions_50), b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                out.append(_WRITE_xbx(item_15.member_type))
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
        raise refused(ConsumerGroupDescribeResponse, 1, error) from error
