"""DeleteRecordsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iq = Struct(">iq").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iq = Struct(">iq").pack
_WRITE_iqx = Struct(">iqx").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteRecordsRequest, int]:
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
        items_3: list[DeleteRecordsRequestDeleteRecordsTopic] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
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
            items_9: list[DeleteRecordsRequestDeleteRecordsPartition] = []
            for _ in range(n_8):
                partition_index_10, offset_11 = _READ_iq(data, pos)
                pos += 12
                items_9.append(DeleteRecordsRequestDeleteRecordsPartition(partition_index_10, offset_11))
            partitions_7 = items_9
            items_3.append(DeleteRecordsRequestDeleteRecordsTopic(name_4, partitions_7))
        topics_1 = items_3
        timeout_ms_12, = _READ_i(data, pos)
        pos += 4
        return DeleteRecordsRequest(topics_1, timeout_ms_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsRequest, 0, data, start, budget) from None


def encode_v0(message: DeleteRecordsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iq(item_5.partition_index, item_5.offset))
        out.append(_WRITE_i(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteRecordsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteRecordsRequest, int]:
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
        items_3: list[DeleteRecordsRequestDeleteRecordsTopic] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
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
            items_9: list[DeleteRecordsRequestDeleteRecordsPartition] = []
            for _ in range(n_8):
                partition_index_10, offset_11 = _READ_iq(data, pos)
                pos += 12
                items_9.append(DeleteRecordsRequestDeleteRecordsPartition(partition_index_10, offset_11))
            partitions_7 = items_9
            items_3.append(DeleteRecordsRequestDeleteRecordsTopic(name_4, partitions_7))
        topics_1 = items_3
        timeout_ms_12, = _READ_i(data, pos)
        pos += 4
        return DeleteRecordsRequest(topics_1, timeout_ms_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsRequest, 1, data, start, budget) from None


def encode_v1(message: DeleteRecordsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_iq(item_5.partition_index, item_5.offset))
        out.append(_WRITE_i(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteRecordsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteRecordsRequest, int]:
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
        if n_2 > (end - pos) // 3:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DeleteRecordsRequestDeleteRecordsTopic] = []
        for _ in range(n_2):
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
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8 = data[pos]
            if n_8 > 127:
                n_8, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_8 == 0:
                raise ValueError
            n_8 -= 1
            if n_8 > (end - pos) // 13:
                raise ValueError
            budget -= n_8 * 8
            if budget < 0:
                raise ValueError
            items_9: list[DeleteRecordsRequestDeleteRecordsPartition] = []
            for _ in range(n_8):
                partition_index_10, offset_11 = _READ_iq(data, pos)
                pos += 12
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_9.append(DeleteRecordsRequestDeleteRecordsPartition(partition_index_10, offset_11))
            partitions_7 = items_9
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DeleteRecordsRequestDeleteRecordsTopic(name_4, partitions_7))
        topics_1 = items_3
        timeout_ms_12, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteRecordsRequest(topics_1, timeout_ms_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteRecordsRequest, 2, data, start, budget) from None


def encode_v2(message: DeleteRecordsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iqx(item_8.partition_index, item_8.offset))
            out.append(b"\0")
        out.append(_WRITE_ix(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteRecordsRequest, 2, error) from error
