"""OffsetDeleteRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ringleader.protocol.wire import UNLIMITED

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetDeleteRequest, int]:
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
        if n_5 > (end - pos) // 6:
            raise ValueError
        budget -= n_5 * 24
        if budget < 0:
            raise ValueError
        items_6: list[OffsetDeleteRequestTopic] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            name_7 = data[pos:stop_9].decode()
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 4:
                raise ValueError
            budget -= n_11 * 8
            if budget < 0:
                raise ValueError
            items_12: list[OffsetDeleteRequestPartition] = []
            for _ in range(n_11):
                partition_index_13, = _READ_i(data, pos)
                pos += 4
                items_12.append(OffsetDeleteRequestPartition(partition_index_13))
            partitions_10 = items_12
            items_6.append(OffsetDeleteRequestTopic(name_7, partitions_10))
        topics_4 = items_6
        return OffsetDeleteRequest(group_id_1, topics_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetDeleteRequest, 0, data, start, budget) from None


def encode_v0(message: OffsetDeleteRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        topics_2 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_i(len(topics_2)))
        for item_3 in topics_2:
            name_4 = item_3.name.encode()
            partitions_5 = item_3.partitions
            out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partitions_5)))
            for item_6 in partitions_5:
                out.append(_WRITE_i(item_6.partition_index))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetDeleteRequest, 0, error) from error
