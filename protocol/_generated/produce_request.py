"""ProduceRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hi = Struct(">hi").unpack_from
_READ_hii = Struct(">hii").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hi = Struct(">hi").pack
_WRITE_hii = Struct(">hii").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 3, data, start, budget) from None


def encode_v3(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 4, data, start, budget) from None


def encode_v4(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 5, data, start, budget) from None


def encode_v5(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 6, data, start, budget) from None


def encode_v6(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 7, data, start, budget) from None


def encode_v7(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        acks_4, timeout_ms_5, n_7 = _READ_hii(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 8:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, n_17 = _READ_ii(data, pos)
                pos += 8
                records_16: bytes | None = None
                if n_17 >= 0:
                    stop_18 = pos + n_17
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                elif n_17 != -1:
                    raise ValueError
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 8, data, start, budget) from None


def encode_v8(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        topic_data_3 = message.topic_data
        out += (_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_hii(message.acks, message.timeout_ms, len(topic_data_3)))
        for item_4 in topic_data_3:
            name_5 = item_4.name.encode()
            partition_data_6 = item_4.partition_data
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_data_6)))
            for item_7 in partition_data_6:
                raw_9 = item_7.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_7.index, -1 if raw_9 is None else len(records_8)), records_8)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ProduceRequest, int]:
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
        transactional_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = str(data[pos:stop_3], "utf-8")
            pos = stop_3
        acks_4, timeout_ms_5 = _READ_hi(data, pos)
        pos += 6
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        n_7 -= 1
        if n_7 > (end - pos) // 3:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[ProduceRequestTopicProduceData] = []
        for _ in range(n_7):
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
            name_9 = str(data[pos:stop_11], "utf-8")
            pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            n_13 -= 1
            if n_13 > (end - pos) // 6:
                raise ValueError
            budget -= n_13 * 24
            if budget < 0:
                raise ValueError
            items_14: list[ProduceRequestPartitionProduceData] = []
            for _ in range(n_13):
                index_15, = _READ_i(data, pos)
                pos += 4
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                records_16: bytes | None = None
                if n_17 > 0:
                    stop_18 = pos + n_17 - 1
                    if stop_18 > end:
                        raise ValueError
                    records_16 = data[pos:stop_18]
                    pos = stop_18
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_14.append(ProduceRequestPartitionProduceData(index_15, records_16))
            partition_data_12 = items_14
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_8.append(ProduceRequestTopicProduceData(name_9, partition_data_12))
        topic_data_6 = items_8
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ProduceRequest(transactional_id_1, acks_4, timeout_ms_5, topic_data_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceRequest, 9, data, start, budget) from None


def encode_v9(message: ProduceRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.transactional_id
        if raw_2 is None:
            transactional_id_1 = b""
            n_3 = 0
        else:
            transactional_id_1 = raw_2.encode()
            n_3 = len(transactional_id_1) + 1
        topic_data_4 = message.topic_data
        n_5 = len(topic_data_4) + 1
        out += (UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), transactional_id_1, _WRITE_hi(message.acks, message.timeout_ms), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
        for item_6 in topic_data_4:
            name_7 = item_6.name.encode()
            n_8 = len(name_7) + 1
            partition_data_9 = item_6.partition_data
            n_10 = len(partition_data_9) + 1
            out += (UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), name_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
            for item_11 in partition_data_9:
                raw_13 = item_11.records
                if raw_13 is None:
                    records_12 = b""
                    n_14 = 0
                else:
                    records_12 = raw_13
                    n_14 = len(records_12) + 1
                out += (_WRITE_i(item_11.index), UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), records_12, b"\0")
            out.append(b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceRequest, 9, error) from error
