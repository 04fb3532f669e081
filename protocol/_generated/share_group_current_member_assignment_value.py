"""ShareGroupCurrentMemberAssignmentValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValueTopicPartitions,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_iib = Struct(">iib").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_iib = Struct(">iib").pack


def decode_v0(data: bytes, pos: int) -> tuple[ShareGroupCurrentMemberAssignmentValue, int]:
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
        items_6: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = []
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
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_6.append(ShareGroupCurrentMemberAssignmentValueTopicPartitions(topic_id_7, partitions_8))
        assigned_partitions_4 = items_6
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ShareGroupCurrentMemberAssignmentValue(member_epoch_1, previous_member_epoch_2, state_3, assigned_partitions_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ShareGroupCurrentMemberAssignmentValue, 0, data, start) from None


def encode_v0(message: ShareGroupCurrentMemberAssignmentValue) -> bytes:
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
            out += (_WRITE_U(item_3.topic_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), pack(">" + f"{len(partitions_4)}i", *partitions_4), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ShareGroupCurrentMemberAssignmentValue, 0, error) from error
