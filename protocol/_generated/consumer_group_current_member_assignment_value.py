"""ConsumerGroupCurrentMemberAssignmentValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_iib = Struct(">iib").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_iib = Struct(">iib").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
    start = pos
    try:
        end = len(data)
        member_epoch_1, previous_member_epoch_2, state_3 = _READ_iib(data, pos)
        pos += 9
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        n_5 -= 1
        if n_5 > (end - pos) // 18:
            raise ValueError
        items_6: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = []
        for _ in range(n_5):
            topic_id_7, = _READ_U(data, pos)
            pos += 16
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 4:
                raise ValueError
            partitions_8 = list(unpack_from(">" + f"{n_9}i", data, pos))
            pos += n_9 * 4
            assignment_epochs_10 = None
            count_11, pos = read_uvarint(data, pos)
            if count_11 > (end - pos) // 2:
                raise ValueError
            for _ in range(count_11):
                tag_12, pos = read_uvarint(data, pos)
                stop_13, pos = read_uvarint(data, pos)
                stop_13 += pos
                if stop_13 > end:
                    raise ValueError
                if tag_12 == 0:
                    n_15 = data[pos]
                    if n_15 > 127:
                        n_15, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    assignment_epochs_14: list[int] | None = None
                    if n_15 > 0:
                        n_15 -= 1
                        if n_15 > (end - pos) // 4:
                            raise ValueError
                        assignment_epochs_14 = list(unpack_from(">" + f"{n_15}i", data, pos))
                        pos += n_15 * 4
                    assignment_epochs_10 = assignment_epochs_14
                    if pos != stop_13:
                        raise ValueError
                else:
                    pos = stop_13
            items_6.append(ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(topic_id_7, partitions_8, assignment_epochs_10))
        assigned_partitions_4 = items_6
        n_17 = data[pos]
        if n_17 > 127:
            n_17, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_17 == 0:
            raise ValueError
        n_17 -= 1
        if n_17 > (end - pos) // 18:
            raise ValueError
        items_18: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = []
        for _ in range(n_17):
            topic_id_19, = _READ_U(data, pos)
            pos += 16
            n_21 = data[pos]
            if n_21 > 127:
                n_21, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_21 == 0:
                raise ValueError
            n_21 -= 1
            if n_21 > (end - pos) // 4:
                raise ValueError
            partitions_20 = list(unpack_from(">" + f"{n_21}i", data, pos))
            pos += n_21 * 4
            assignment_epochs_22 = None
            count_23, pos = read_uvarint(data, pos)
            if count_23 > (end - pos) // 2:
                raise ValueError
            for _ in range(count_23):
                tag_24, pos = read_uvarint(data, pos)
                stop_25, pos = read_uvarint(data, pos)
                stop_25 += pos
                if stop_25 > end:
                    raise ValueError
                if tag_24 == 0:
                    n_27 = data[pos]
                    if n_27 > 127:
                        n_27, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    assignment_epochs_26: list[int] | None = None
                    if n_27 > 0:
                        n_27 -= 1
                        if n_27 > (end - pos) // 4:
                            raise ValueError
                        assignment_epochs_26 = list(unpack_from(">" + f"{n_27}i", data, pos))
                        pos += n_27 * 4
                    assignment_epochs_22 = assignment_epochs_26
                    if pos != stop_25:
                        raise ValueError
                else:
                    pos = stop_25
            items_18.append(ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(topic_id_19, partitions_20, assignment_epochs_22))
        partitions_pending_revocation_16 = items_18
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupCurrentMemberAssignmentValue(member_epoch_1, previous_member_epoch_2, state_3, assigned_partitions_4, partitions_pending_revocation_16), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupCurrentMemberAssignmentValue, 0, data, start) from None


def encode_v0(message: ConsumerGroupCurrentMemberAssignmentValue) -> bytes:
    try:
        out: list[bytes] = []
        assigned_partitions_1 = message.assigned_partitions
        n_2 = len(assigned_partitions_1) + 1
        out += (_WRITE_iib(message.member_epoch, message.previous_member_epoch, message.state), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in assigned_partitions_1:
            if len(item_3.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_4 = item_3.partitions
            n_5 = len(partitions_4) + 1
            out += (_WRITE_U(item_3.topic_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), pack(">" + f"{len(partitions_4)}i", *partitions_4))
            tags_6: list[tuple[int, bytes]] = []
            assignment_epochs_7 = item_3.assignment_epochs
            if assignment_epochs_7 is not None:
                payload_8: list[bytes] = []
                assignment_epochs_9 = assignment_epochs_7
                n_10 = len(assignment_epochs_9) + 1
                payload_8 += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(assignment_epochs_9)}i", *assignment_epochs_9))
                tags_6.append((0, b"".join(payload_8)))
            out.append(write_tags(tags_6))
        partitions_pending_revocation_11 = message.partitions_pending_revocation
        n_12 = len(partitions_pending_revocation_11) + 1
        out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
        for item_13 in partitions_pending_revocation_11:
            if len(item_13.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_14 = item_13.partitions
            n_15 = len(partitions_14) + 1
            out += (_WRITE_U(item_13.topic_id), UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), pack(">" + f"{len(partitions_14)}i", *partitions_14))
            tags_16: list[tuple[int, bytes]] = []
            assignment_epochs_17 = item_13.assignment_epochs
            if assignment_epochs_17 is not None:
                payload_18: list[bytes] = []
                assignment_epochs_19 = assignment_epochs_17
                n_20 = len(assignment_epochs_19) + 1
                payload_18 += (UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), pack(">" + f"{len(assignment_epochs_19)}i", *assignment_epochs_19))
                tags_16.append((0, b"".join(payload_18)))
            out.append(write_tags(tags_16))
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupCurrentMemberAssignmentValue, 0, error) from error
