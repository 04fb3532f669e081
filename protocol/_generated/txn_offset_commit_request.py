"""TxnOffsetCommitRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iqh = Struct(">iqh").unpack_from
_READ_iqi = Struct(">iqi").unpack_from
_READ_iqih = Struct(">iqih").unpack_from
_READ_qhi = Struct(">qhi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iqh = Struct(">iqh").pack
_WRITE_iqi = Struct(">iqi").pack
_WRITE_iqih = Struct(">iqih").pack
_WRITE_qhi = Struct(">qhi").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[TxnOffsetCommitRequest, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        group_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        producer_id_7, producer_epoch_8, n_10 = _READ_qhi(data, pos)
        pos += 14
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[TxnOffsetCommitRequestTopic] = []
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
            items_17: list[TxnOffsetCommitRequestPartition] = []
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
                items_17.append(TxnOffsetCommitRequestPartition(partition_index_18, committed_offset_19, -1, committed_metadata_20))
            partitions_15 = items_17
            items_11.append(TxnOffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return TxnOffsetCommitRequest(transactional_id_1, group_id_4, producer_id_7, producer_epoch_8, -1, '', None, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TxnOffsetCommitRequest, 0, data, start, budget) from None


def encode_v0(message: TxnOffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        if message.generation_id_or_member_epoch != -1:
            raise ValueError("generation_id_or_member_epoch cannot be sent in version 0")
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 0")
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 0")
        topics_3 = message.topics
        out += (_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_h(len(group_id_2)), group_id_2, _WRITE_qhi(message.producer_id, message.producer_epoch, len(topics_3)))
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
        raise refused(TxnOffsetCommitRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[TxnOffsetCommitRequest, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        group_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        producer_id_7, producer_epoch_8, n_10 = _READ_qhi(data, pos)
        pos += 14
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[TxnOffsetCommitRequestTopic] = []
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
            items_17: list[TxnOffsetCommitRequestPartition] = []
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
                items_17.append(TxnOffsetCommitRequestPartition(partition_index_18, committed_offset_19, -1, committed_metadata_20))
            partitions_15 = items_17
            items_11.append(TxnOffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return TxnOffsetCommitRequest(transactional_id_1, group_id_4, producer_id_7, producer_epoch_8, -1, '', None, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TxnOffsetCommitRequest, 1, data, start, budget) from None


def encode_v1(message: TxnOffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        if message.generation_id_or_member_epoch != -1:
            raise ValueError("generation_id_or_member_epoch cannot be sent in version 1")
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 1")
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 1")
        topics_3 = message.topics
        out += (_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_h(len(group_id_2)), group_id_2, _WRITE_qhi(message.producer_id, message.producer_epoch, len(topics_3)))
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
        raise refused(TxnOffsetCommitRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[TxnOffsetCommitRequest, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        group_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        producer_id_7, producer_epoch_8, n_10 = _READ_qhi(data, pos)
        pos += 14
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 6:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[TxnOffsetCommitRequestTopic] = []
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
            if n_16 > (end - pos) // 18:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[TxnOffsetCommitRequestPartition] = []
            for _ in range(n_16):
                partition_index_18, committed_offset_19, committed_leader_epoch_20, n_22 = _READ_iqih(data, pos)
                pos += 18
                committed_metadata_21: str | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    committed_metadata_21 = data[pos:stop_23].decode()
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_17.append(TxnOffsetCommitRequestPartition(partition_index_18, committed_offset_19, committed_leader_epoch_20, committed_metadata_21))
            partitions_15 = items_17
            items_11.append(TxnOffsetCommitRequestTopic(name_12, partitions_15))
        topics_9 = items_11
        return TxnOffsetCommitRequest(transactional_id_1, group_id_4, producer_id_7, producer_epoch_8, -1, '', None, topics_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TxnOffsetCommitRequest, 2, data, start, budget) from None


def encode_v2(message: TxnOffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        if message.generation_id_or_member_epoch != -1:
            raise ValueError("generation_id_or_member_epoch cannot be sent in version 2")
        if message.member_id:
            raise ValueError("member_id cannot be sent in version 2")
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 2")
        topics_3 = message.topics
        out += (_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_h(len(group_id_2)), group_id_2, _WRITE_qhi(message.producer_id, message.producer_epoch, len(topics_3)))
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
        raise refused(TxnOffsetCommitRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[TxnOffsetCommitRequest, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
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
        group_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        producer_id_7, producer_epoch_8, generation_id_or_member_epoch_9 = _READ_qhi(data, pos)
        pos += 14
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
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_13: str | None = None
        if n_14 > 0:
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            group_instance_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        n_17 = data[pos]
        if n_17 > 127:
            n_17, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_17 == 0:
            raise ValueError
        n_17 -= 1
        if n_17 > (end - pos) // 3:
            raise ValueError
        budget -= n_17 * 24
        if budget < 0:
            raise ValueError
        items_18: list[TxnOffsetCommitRequestTopic] = []
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
            name_19 = data[pos:stop_21].decode()
            pos = stop_21
            n_23 = data[pos]
            if n_23 > 127:
                n_23, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_23 == 0:
                raise ValueError
            n_23 -= 1
            if n_23 > (end - pos) // 18:
                raise ValueError
            budget -= n_23 * 24
            if budget < 0:
                raise ValueError
            items_24: list[TxnOffsetCommitRequestPartition] = []
            for _ in range(n_23):
                partition_index_25, committed_offset_26, committed_leader_epoch_27 = _READ_iqi(data, pos)
                pos += 16
                n_29 = data[pos]
                if n_29 > 127:
                    n_29, pos = read_uvarint(data, pos)
                    if n_29 > 32768:
                        raise ValueError
                else:
                    pos += 1
                committed_metadata_28: str | None = None
                if n_29 > 0:
                    stop_30 = pos + n_29 - 1
                    if stop_30 > end:
                        raise ValueError
                    committed_metadata_28 = data[pos:stop_30].decode()
                    pos = stop_30
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_24.append(TxnOffsetCommitRequestPartition(partition_index_25, committed_offset_26, committed_leader_epoch_27, committed_metadata_28))
            partitions_22 = items_24
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_18.append(TxnOffsetCommitRequestTopic(name_19, partitions_22))
        topics_16 = items_18
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return TxnOffsetCommitRequest(transactional_id_1, group_id_4, producer_id_7, producer_epoch_8, generation_id_or_member_epoch_9, member_id_10, group_instance_id_13, topics_16), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TxnOffsetCommitRequest, 3, data, start, budget) from None


def encode_v3(message: TxnOffsetCommitRequest) -> bytes:
    try:
        out: list[bytes] = []
        transactional_id_1 = message.transactional_id.encode()
        n_2 = len(transactional_id_1) + 1
        group_id_3 = message.group_id.encode()
        n_4 = len(group_id_3) + 1
        member_id_5 = message.member_id.encode()
        n_6 = len(member_id_5) + 1
        raw_8 = message.group_instance_id
        if raw_8 is None:
            group_instance_id_7 = b""
            n_9 = 0
        else:
            group_instance_id_7 = raw_8.encode()
            n_9 = len(group_instance_id_7) + 1
        topics_10 = message.topics
        n_11 = len(topics_10) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), transactional_id_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), group_id_3, _WRITE_qhi(message.producer_id, message.producer_epoch, message.generation_id_or_member_epoch), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), member_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), group_instance_id_7, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11))
        for item_12 in topics_10:
            name_13 = item_12.name.encode()
            n_14 = len(name_13) + 1
            partitions_15 = item_12.partitions
            n_16 = len(partitions_15) + 1
            out += (UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), name_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16))
            for item_17 in partitions_15:
                raw_19 = item_17.committed_metadata
                if raw_19 is None:
                    committed_metadata_18 = b""
                    n_20 = 0
                else:
                    committed_metadata_18 = raw_19.encode()
                    n_20 = len(committed_metadata_18) + 1
                out += (_WRITE_iqi(item_17.partition_index, item_17.committed_offset, item_17.committed_leader_epoch), UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), committed_metadata_18, b"\0")
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(TxnOffsetCommitRequest, 3, error) from error
