"""OffsetForLeaderEpochRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iii = Struct(">iii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iii = Struct(">iii").pack
_WRITE_iiix = Struct(">iiix").pack


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetForLeaderEpochRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[OffsetForLeaderEpochRequestOffsetForLeaderTopic] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            topic_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 12:
                raise ValueError
            budget -= n_8 * 8
            if budget < 0:
                raise ValueError
            items_9: list[OffsetForLeaderEpochRequestOffsetForLeaderPartition] = []
            for _ in range(n_8):
                partition_10, current_leader_epoch_11, leader_epoch_12 = _READ_iii(data, pos)
                pos += 12
                items_9.append(OffsetForLeaderEpochRequestOffsetForLeaderPartition(partition_10, current_leader_epoch_11, leader_epoch_12))
            partitions_7 = items_9
            items_3.append(OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic_4, partitions_7))
        topics_1 = items_3
        return OffsetForLeaderEpochRequest(-2, topics_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochRequest, 2, data, start, budget) from None


def encode_v2(message: OffsetForLeaderEpochRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iii(item_5.partition, item_5.current_leader_epoch, item_5.leader_epoch))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetForLeaderEpochRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        budget -= n_3 * 24
        if budget < 0:
            raise ValueError
        items_4: list[OffsetForLeaderEpochRequestOffsetForLeaderTopic] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 12:
                raise ValueError
            budget -= n_9 * 8
            if budget < 0:
                raise ValueError
            items_10: list[OffsetForLeaderEpochRequestOffsetForLeaderPartition] = []
            for _ in range(n_9):
                partition_11, current_leader_epoch_12, leader_epoch_13 = _READ_iii(data, pos)
                pos += 12
                items_10.append(OffsetForLeaderEpochRequestOffsetForLeaderPartition(partition_11, current_leader_epoch_12, leader_epoch_13))
            partitions_8 = items_10
            items_4.append(OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic_5, partitions_8))
        topics_2 = items_4
        return OffsetForLeaderEpochRequest(replica_id_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochRequest, 3, data, start, budget) from None


def encode_v3(message: OffsetForLeaderEpochRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.replica_id, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iii(item_5.partition, item_5.current_leader_epoch, item_5.leader_epoch))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetForLeaderEpochRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 3:
            raise ValueError
        budget -= n_3 * 24
        if budget < 0:
            raise ValueError
        items_4: list[OffsetForLeaderEpochRequestOffsetForLeaderTopic] = []
        for _ in range(n_3):
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
            topic_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 13:
                raise ValueError
            budget -= n_9 * 8
            if budget < 0:
                raise ValueError
            items_10: list[OffsetForLeaderEpochRequestOffsetForLeaderPartition] = []
            for _ in range(n_9):
                partition_11, current_leader_epoch_12, leader_epoch_13 = _READ_iii(data, pos)
                pos += 12
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(OffsetForLeaderEpochRequestOffsetForLeaderPartition(partition_11, current_leader_epoch_12, leader_epoch_13))
            partitions_8 = items_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetForLeaderEpochRequest(replica_id_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetForLeaderEpochRequest, 4, data, start, budget) from None


def encode_v4(message: OffsetForLeaderEpochRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.replica_id), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            topic_4 = item_3.topic.encode()
            n_5 = len(topic_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), topic_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iiix(item_8.partition, item_8.current_leader_epoch, item_8.leader_epoch))
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetForLeaderEpochRequest, 4, error) from error
