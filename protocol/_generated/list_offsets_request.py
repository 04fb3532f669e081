"""ListOffsetsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ib = Struct(">ib").unpack_from
_READ_ibi = Struct(">ibi").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iiq = Struct(">iiq").unpack_from
_READ_iq = Struct(">iq").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ib = Struct(">ib").pack
_WRITE_ibi = Struct(">ibi").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iiq = Struct(">iiq").pack
_WRITE_iiqx = Struct(">iiqx").pack
_WRITE_iq = Struct(">iq").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
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
        items_4: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
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
            items_10: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_9):
                partition_index_11, timestamp_12 = _READ_iq(data, pos)
                pos += 12
                items_10.append(ListOffsetsRequestListOffsetsPartition(partition_index_11, -1, timestamp_12))
            partitions_8 = items_10
            items_4.append(ListOffsetsRequestListOffsetsTopic(name_5, partitions_8))
        topics_2 = items_4
        return ListOffsetsRequest(replica_id_1, 0, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 1, data, start, budget) from None


def encode_v1(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.isolation_level != 0:
            raise ValueError("isolation_level cannot be sent in version 1")
        topics_1 = message.topics
        out.append(_WRITE_ii(message.replica_id, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iq(item_5.partition_index, item_5.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2, n_4 = _READ_ibi(data, pos)
        pos += 9
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 12:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, timestamp_13 = _READ_iq(data, pos)
                pos += 12
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, -1, timestamp_13))
            partitions_9 = items_11
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 2, data, start, budget) from None


def encode_v2(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ibi(message.replica_id, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iq(item_5.partition_index, item_5.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2, n_4 = _READ_ibi(data, pos)
        pos += 9
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 12:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, timestamp_13 = _READ_iq(data, pos)
                pos += 12
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, -1, timestamp_13))
            partitions_9 = items_11
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 3, data, start, budget) from None


def encode_v3(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ibi(message.replica_id, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iq(item_5.partition_index, item_5.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2, n_4 = _READ_ibi(data, pos)
        pos += 9
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 16:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, current_leader_epoch_13, timestamp_14 = _READ_iiq(data, pos)
                pos += 16
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, current_leader_epoch_13, timestamp_14))
            partitions_9 = items_11
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 4, data, start, budget) from None


def encode_v4(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ibi(message.replica_id, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iiq(item_5.partition_index, item_5.current_leader_epoch, item_5.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2, n_4 = _READ_ibi(data, pos)
        pos += 9
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
            n_7, = _READ_h(data, pos)
            pos += 2
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 16:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, current_leader_epoch_13, timestamp_14 = _READ_iiq(data, pos)
                pos += 16
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, current_leader_epoch_13, timestamp_14))
            partitions_9 = items_11
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 5, data, start, budget) from None


def encode_v5(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ibi(message.replica_id, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iiq(item_5.partition_index, item_5.current_leader_epoch, item_5.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2 = _READ_ib(data, pos)
        pos += 5
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > (end - pos) // 3:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
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
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 17:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, current_leader_epoch_13, timestamp_14 = _READ_iiq(data, pos)
                pos += 16
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, current_leader_epoch_13, timestamp_14))
            partitions_9 = items_11
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 6, data, start, budget) from None


def encode_v6(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_ib(message.replica_id, message.isolation_level), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iiqx(item_8.partition_index, item_8.current_leader_epoch, item_8.timestamp))
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListOffsetsRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, isolation_level_2 = _READ_ib(data, pos)
        pos += 5
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > (end - pos) // 3:
            raise ValueError
        budget -= n_4 * 24
        if budget < 0:
            raise ValueError
        items_5: list[ListOffsetsRequestListOffsetsTopic] = []
        for _ in range(n_4):
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
            name_6 = data[pos:stop_8].decode()
            pos = stop_8
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 17:
                raise ValueError
            budget -= n_10 * 8
            if budget < 0:
                raise ValueError
            items_11: list[ListOffsetsRequestListOffsetsPartition] = []
            for _ in range(n_10):
                partition_index_12, current_leader_epoch_13, timestamp_14 = _READ_iiq(data, pos)
                pos += 16
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(ListOffsetsRequestListOffsetsPartition(partition_index_12, current_leader_epoch_13, timestamp_14))
            partitions_9 = items_11
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_5.append(ListOffsetsRequestListOffsetsTopic(name_6, partitions_9))
        topics_3 = items_5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListOffsetsRequest(replica_id_1, isolation_level_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListOffsetsRequest, 7, data, start, budget) from None


def encode_v7(message: ListOffsetsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_ib(message.replica_id, message.isolation_level), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iiqx(item_8.partition_index, item_8.current_leader_epoch, item_8.timestamp))
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListOffsetsRequest, 7, error) from error
