"""ShareGroupTargetAssignmentMemberValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMemberValueTopicPartition,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_WRITE_U = Struct(">16s").pack


def decode_v0(data: bytes, pos: int) -> tuple[ShareGroupTargetAssignmentMemberValue, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        n_2 -= 1
        if n_2 > (end - pos) // 18:
            raise ValueError
        items_3: list[ShareGroupTargetAssignmentMemberValueTopicPartition] = []
        for _ in range(n_2):
            topic_id_4, = _READ_U(data, pos)
            pos += 16
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_6 == 0:
                raise ValueError
            n_6 -= 1
            if n_6 > (end - pos) // 4:
                raise ValueError
            partitions_5 = list(unpack_from(">" + f"{n_6}i", data, pos))
            pos += n_6 * 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(ShareGroupTargetAssignmentMemberValueTopicPartition(topic_id_4, partitions_5))
        topic_partitions_1 = items_3
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ShareGroupTargetAssignmentMemberValue(topic_partitions_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ShareGroupTargetAssignmentMemberValue, 0, data, start) from None


def encode_v0(message: ShareGroupTargetAssignmentMemberValue) -> bytes:
    try:
        out: list[bytes] = []
        topic_partitions_1 = message.topic_partitions
        n_2 = len(topic_partitions_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topic_partitions_1:
            if len(item_3.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_4 = item_3.partitions
            n_5 = len(partitions_4) + 1
            out += (_WRITE_U(item_3.topic_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), pack(">" + f"{len(partitions_4)}i", *partitions_4), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ShareGroupTargetAssignmentMemberValue, 0, error) from error
