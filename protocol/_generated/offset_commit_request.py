"""OffsetCommitRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_iqh = Struct(">iqh").unpack_from
_READ_iqi = Struct(">iqi").unpack_from
_READ_iqih = Struct(">iqih").unpack_from
_READ_qi = Struct(">qi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_iqh = Struct(">iqh").pack
_WRITE_iqi = Struct(">iqi").pack
_WRITE_iqih = Struct(">iqih").pack
_WRITE_qi = Struct(">qi").pack


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        retention_time_ms_8, n_10 = _READ_qi(data, pos)
        pos += 12
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[OffsetCommitRequestTopic] = []
        for _ in range(n_10):
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            name_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 14:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[OffsetCommitRequestPartition] = []
            for _ in range(n_16):
                partition_index_18, committed_offset_19, n_21 = _READ_iqh(data, pos)
                pos += 14
                committed_metadata_20: str | None = None
                if n_21 >= 0:
                    stop_22 = pos + n_21
                    if stop_22 > end:
                        raise ValueError
                    committed_metadata_20 = data[pos:stop_22].decode()
                    pos = stop_22
                elif n_21 != -1:
                    raise ValueError
                items_17.append(OffsetCommitRequestPartition(partition_index_18, committed_offset_19, -1, committed_metadata_20))
            partitions_15 = items_17
            items_11.append(OffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, None, retention_time_ms_8, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 2, data, start, budget) from None


def encode_v2(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 2")
        topics_3 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_qi(message.retention_time_ms, len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partitions_6 = item_4.partitions
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partitions_6)))
            for item_7 in partitions_6:
                raw_9 = item_7.committed_metadata
                committed_metadata_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_iqh(item_7.partition_index, item_7.committed_offset, -1 if raw_9 is None else len(committed_metadata_8)), committed_metadata_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        retention_time_ms_8, n_10 = _READ_qi(data, pos)
        pos += 12
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[OffsetCommitRequestTopic] = []
        for _ in range(n_10):
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            name_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 14:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[OffsetCommitRequestPartition] = []
            for _ in range(n_16):
                partition_index_18, committed_offset_19, n_21 = _READ_iqh(data, pos)
                pos += 14
                committed_metadata_20: str | None = None
                if n_21 >= 0:
                    stop_22 = pos + n_21
                    if stop_22 > end:
                        raise ValueError
                    committed_metadata_20 = data[pos:stop_22].decode()
                    pos = stop_22
                elif n_21 != -1:
                    raise ValueError
                items_17.append(OffsetCommitRequestPartition(partition_index_18, committed_offset_19, -1, committed_metadata_20))
            partitions_15 = items_17
            items_11.append(OffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, None, retention_time_ms_8, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 3, data, start, budget) from None


def encode_v3(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 3")
        topics_3 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_qi(message.retention_time_ms, len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partitions_6 = item_4.partitions
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partitions_6)))
            for item_7 in partitions_6:
                raw_9 = item_7.committed_metadata
                committed_metadata_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_iqh(item_7.partition_index, item_7.committed_offset, -1 if raw_9 is None else len(committed_metadata_8)), committed_metadata_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        retention_time_ms_8, n_10 = _READ_qi(data, pos)
        pos += 12
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[OffsetCommitRequestTopic] = []
        for _ in range(n_10):
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            name_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 14:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[OffsetCommitRequestPartition] = []
            for _ in range(n_16):
                partition_index_18, committed_offset_19, n_21 = _READ_iqh(data, pos)
                pos += 14
                committed_metadata_20: str | None = None
                if n_21 >= 0:
                    stop_22 = pos + n_21
                    if stop_22 > end:
                        raise ValueError
                    committed_metadata_20 = data[pos:stop_22].decode()
                    pos = stop_22
                elif n_21 != -1:
                    raise ValueError
                items_17.append(OffsetCommitRequestPartition(partition_index_18, committed_offset_19, -1, committed_metadata_20))
            partitions_15 = items_17
            items_11.append(OffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, None, retention_time_ms_8, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 4, data, start, budget) from None


def encode_v4(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 4")
        topics_3 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_qi(message.retention_time_ms, len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partitions_6 = item_4.partitions
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partitions_6)))
            for item_7 in partitions_6:
                raw_9 = item_7.committed_metadata
                committed_metadata_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_iqh(item_7.partition_index, item_7.committed_offset, -1 if raw_9 is None else len(committed_metadata_8)), committed_metadata_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
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
        items_10: list[OffsetCommitRequestTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            name_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 14:
                raise ValueError
            budget -= n_15 * 24
            if budget < 0:
                raise ValueError
            items_16: list[OffsetCommitRequestPartition] = []
            for _ in range(n_15):
                partition_index_17, committed_offset_18, n_20 = _READ_iqh(data, pos)
                pos += 14
                committed_metadata_19: str | None = None
                if n_20 >= 0:
                    stop_21 = pos + n_20
                    if stop_21 > end:
                        raise ValueError
                    committed_metadata_19 = data[pos:stop_21].decode()
                    pos = stop_21
                elif n_20 != -1:
                    raise ValueError
                items_16.append(OffsetCommitRequestPartition(partition_index_17, committed_offset_18, -1, committed_metadata_19))
            partitions_14 = items_16
            items_10.append(OffsetCommitRequestTopic(name_11, partitions_14))
        topics_8 = items_10
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, None, -1, topics_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 5, data, start, budget) from None


def encode_v5(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 5")
        topics_3 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_i(len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partitions_6 = item_4.partitions
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partitions_6)))
            for item_7 in partitions_6:
                raw_9 = item_7.committed_metadata
                committed_metadata_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_iqh(item_7.partition_index, item_7.committed_offset, -1 if raw_9 is None else len(committed_metadata_8)), committed_metadata_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
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
        items_10: list[OffsetCommitRequestTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            name_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 18:
                raise ValueError
            budget -= n_15 * 24
            if budget < 0:
                raise ValueError
            items_16: list[OffsetCommitRequestPartition] = []
            for _ in range(n_15):
                partition_index_17, committed_offset_18, committed_leader_epoch_19, n_21 = _READ_iqih(data, pos)
                pos += 18
                committed_metadata_20: str | None = None
                if n_21 >= 0:
                    stop_22 = pos + n_21
                    if stop_22 > end:
                        raise ValueError
                    committed_metadata_20 = data[pos:stop_22].decode()
                    pos = stop_22
                elif n_21 != -1:
                    raise ValueError
                items_16.append(OffsetCommitRequestPartition(partition_index_17, committed_offset_18, committed_leader_epoch_19, committed_metadata_20))
            partitions_14 = items_16
            items_10.append(OffsetCommitRequestTopic(name_11, partitions_14))
        topics_8 = items_10
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, None, -1, topics_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 6, data, start, budget) from None


def encode_v6(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 6")
        topics_3 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_i(len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partitions_6 = item_4.partitions
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partitions_6)))
            for item_7 in partitions_6:
                raw_9 = item_7.committed_metadata
                committed_metadata_8 = b"" if raw_9 is None else raw_9.encode()
                out += (_WRITE_iqih(item_7.partition_index, item_7.committed_offset, item_7.committed_leader_epoch, -1 if raw_9 is None else len(committed_metadata_8)), committed_metadata_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, n_6 = _READ_ih(data, pos)
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
        items_13: list[OffsetCommitRequestTopic] = []
        for _ in range(n_12):
            n_15, = _READ_h(data, pos)
            pos += 2
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            name_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18, = _READ_i(data, pos)
            pos += 4
            if n_18 < 0:
                raise ValueError
            if n_18 > (end - pos) // 18:
                raise ValueError
            budget -= n_18 * 24
            if budget < 0:
                raise ValueError
            items_19: list[OffsetCommitRequestPartition] = []
            for _ in range(n_18):
                partition_index_20, committed_offset_21, committed_leader_epoch_22, n_24 = _READ_iqih(data, pos)
                pos += 18
                committed_metadata_23: str | None = None
                if n_24 >= 0:
                    stop_25 = pos + n_24
                    if stop_25 > end:
                        raise ValueError
                    committed_metadata_23 = data[pos:stop_25].decode()
                    pos = stop_25
                elif n_24 != -1:
                    raise ValueError
                items_19.append(OffsetCommitRequestPartition(partition_index_20, committed_offset_21, committed_leader_epoch_22, committed_metadata_23))
            partitions_17 = items_19
            items_13.append(OffsetCommitRequestTopic(name_14, partitions_17))
        topics_11 = items_13
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, group_instance_id_8, -1, topics_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 7, data, start, budget) from None


def encode_v7(message: OffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        raw_4 = message.group_instance_id
        group_instance_id_3 = b"" if raw_4 is None else raw_4.encode()
        topics_5 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id_or_member_epoch, len(member_id_2)), member_id_2, _WRITE_h(-1 if raw_4 is None else len(group_instance_id_3)), group_instance_id_3, _WRITE_i(len(topics_5)))
        for item_6 in topics_5:
            name_7 = item_6.name.encode()
            partitions_8 = item_6.partitions
            out += (_WRITE_h(len(name_7)), name_7, _WRITE_i(len(partitions_8)))
            for item_9 in partitions_8:
                raw_11 = item_9.committed_metadata
                committed_metadata_10 = b"" if raw_11 is None else raw_11.encode()
                out += (_WRITE_iqih(item_9.partition_index, item_9.committed_offset, item_9.committed_leader_epoch, -1 if raw_11 is None else len(committed_metadata_10)), committed_metadata_10)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, = _READ_i(data, pos)
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
        items_13: list[OffsetCommitRequestTopic] = []
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
            name_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18 = data[pos]
            if n_18 > 127:
                n_18, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_18 == 0:
                raise ValueError
            n_18 -= 1
            if n_18 > (end - pos) // 18:
                raise ValueError
            budget -= n_18 * 24
            if budget < 0:
                raise ValueError
            items_19: list[OffsetCommitRequestPartition] = []
            for _ in range(n_18):
                partition_index_20, committed_offset_21, committed_leader_epoch_22 = _READ_iqi(data, pos)
                pos += 16
                n_24 = data[pos]
                if n_24 > 127:
                    n_24, pos = read_uvarint(data, pos)
                    if n_24 > 32768:
                        raise ValueError
                else:
                    pos += 1
                committed_metadata_23: str | None = None
                if n_24 > 0:
                    stop_25 = pos + n_24 - 1
                    if stop_25 > end:
                        raise ValueError
                    committed_metadata_23 = data[pos:stop_25].decode()
                    pos = stop_25
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_19.append(OffsetCommitRequestPartition(partition_index_20, committed_offset_21, committed_leader_epoch_22, committed_metadata_23))
            partitions_17 = items_19
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_13.append(OffsetCommitRequestTopic(name_14, partitions_17))
        topics_11 = items_13
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, group_instance_id_8, -1, topics_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 8, data, start, budget) from None


def encode_v8(message: OffsetCommitRequest) -> bytes:
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
        topics_8 = message.topics
        n_9 = len(topics_8) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_i(message.generation_id_or_member_epoch), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
        for item_10 in topics_8:
            name_11 = item_10.name.encode()
            n_12 = len(name_11) + 1
            partitions_13 = item_10.partitions
            n_14 = len(partitions_13) + 1
            out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), name_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14))
            for item_15 in partitions_13:
                raw_17 = item_15.committed_metadata
                if raw_17 is None:
                    committed_metadata_16 = b""
                    n_18 = 0
                else:
                    committed_metadata_16 = raw_17.encode()
                    n_18 = len(committed_metadata_16) + 1
                out += (_WRITE_iqi(item_15.partition_index, item_15.committed_offset, item_15.committed_leader_epoch), UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), committed_metadata_16, b"\0")
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetCommitRequest, int]:
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
        generation_id_or_member_epoch_4, = _READ_i(data, pos)
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
        items_13: list[OffsetCommitRequestTopic] = []
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
            name_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18 = data[pos]
            if n_18 > 127:
                n_18, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_18 == 0:
                raise ValueError
            n_18 -= 1
            if n_18 > (end - pos) // 18:
                raise ValueError
            budget -= n_18 * 24
            if budget < 0:
                raise ValueError
            items_19: list[OffsetCommitRequestPartition] = []
            for _ in range(n_18):
                partition_index_20, committed_offset_21, committed_leader_epoch_22 = _READ_iqi(data, pos)
                pos += 16
                n_24 = data[pos]
                if n_24 > 127:
                    n_24, pos = read_uvarint(data, pos)
                    if n_24 > 32768:
                        raise ValueError
                else:
                    pos += 1
                committed_metadata_23: str | None = None
                if n_24 > 0:
                    stop_25 = pos + n_24 - 1
                    if stop_25 > end:
                        raise ValueError
                    committed_metadata_23 = data[pos:stop_25].decode()
                    pos = stop_25
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_19.append(OffsetCommitRequestPartition(partition_index_20, committed_offset_21, committed_leader_epoch_22, committed_metadata_23))
            partitions_17 = items_19
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_13.append(OffsetCommitRequestTopic(name_14, partitions_17))
        topics_11 = items_13
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetCommitRequest(group_id_1, generation_id_or_member_epoch_4, member_id_5, group_instance_id_8, -1, topics_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitRequest, 9, data, start, budget) from None


def encode_v9(message: OffsetCommitRequest) -> bytes:
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
        topics_8 = message.topics
        n_9 = len(topics_8) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_i(message.generation_id_or_member_epoch), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
        for item_10 in topics_8:
            name_11 = item_10.name.encode()
            n_12 = len(name_11) + 1
            partitions_13 = item_10.partitions
            n_14 = len(partitions_13) + 1
            out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), name_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14))
            for item_15 in partitions_13:
                raw_17 = item_15.committed_metadata
                if raw_17 is None:
                    committed_metadata_16 = b""
                    n_18 = 0
                else:
                    committed_metadata_16 = raw_17.encode()
                    n_18 = len(committed_metadata_16) + 1
                out += (_WRITE_iqi(item_15.partition_index, item_15.committed_offset, item_15.committed_leader_epoch), UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), committed_metadata_16, b"\0")
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitRequest, 9, error) from error
