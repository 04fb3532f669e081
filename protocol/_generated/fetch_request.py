"""FetchRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iiiibi = Struct(">iiiibi").unpack_from
_READ_iiiibii = Struct(">iiiibii").unpack_from
_READ_iiiibiii = Struct(">iiiibiii").unpack_from
_READ_iiqiqi = Struct(">iiqiqi").unpack_from
_READ_iiqqi = Struct(">iiqqi").unpack_from
_READ_iqi = Struct(">iqi").unpack_from
_READ_iqqi = Struct(">iqqi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iiiibi = Struct(">iiiibi").pack
_WRITE_iiiibii = Struct(">iiiibii").pack
_WRITE_iiiibiii = Struct(">iiiibiii").pack
_WRITE_iiqiqix = Struct(">iiqiqix").pack
_WRITE_iiqqi = Struct(">iiqqi").pack
_WRITE_iqi = Struct(">iqi").pack
_WRITE_iqqi = Struct(">iqqi").pack


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, n_7 = _READ_iiiibi(data, pos)
        pos += 21
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[FetchRequestFetchTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            topic_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 16:
                raise ValueError
            budget -= n_13 * 8
            if budget < 0:
                raise ValueError
            items_14: list[FetchRequestFetchPartition] = []
            for _ in range(n_13):
                partition_15, fetch_offset_16, partition_max_bytes_17 = _READ_iqi(data, pos)
                pos += 16
                items_14.append(FetchRequestFetchPartition(partition_15, -1, fetch_offset_16, -1, -1, partition_max_bytes_17))
            partitions_12 = items_14
            items_8.append(FetchRequestFetchTopic(topic_9, partitions_12))
        topics_6 = items_8
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, 0, -1, topics_6, [], ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 4, data, start, budget) from None


def encode_v4(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibi(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 4")
                out.append(_WRITE_iqi(item_5.partition, item_5.fetch_offset, item_5.partition_max_bytes))
        if message.forgotten_topics_data:
            raise ValueError("forgotten_topics_data cannot be sent in version 4")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, n_7 = _READ_iiiibi(data, pos)
        pos += 21
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[FetchRequestFetchTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            topic_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 24:
                raise ValueError
            budget -= n_13 * 8
            if budget < 0:
                raise ValueError
            items_14: list[FetchRequestFetchPartition] = []
            for _ in range(n_13):
                partition_15, fetch_offset_16, log_start_offset_17, partition_max_bytes_18 = _READ_iqqi(data, pos)
                pos += 24
                items_14.append(FetchRequestFetchPartition(partition_15, -1, fetch_offset_16, -1, log_start_offset_17, partition_max_bytes_18))
            partitions_12 = items_14
            items_8.append(FetchRequestFetchTopic(topic_9, partitions_12))
        topics_6 = items_8
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, 0, -1, topics_6, [], ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 5, data, start, budget) from None


def encode_v5(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibi(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 5")
                out.append(_WRITE_iqqi(item_5.partition, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        if message.forgotten_topics_data:
            raise ValueError("forgotten_topics_data cannot be sent in version 5")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, n_7 = _READ_iiiibi(data, pos)
        pos += 21
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[FetchRequestFetchTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            topic_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 24:
                raise ValueError
            budget -= n_13 * 8
            if budget < 0:
                raise ValueError
            items_14: list[FetchRequestFetchPartition] = []
            for _ in range(n_13):
                partition_15, fetch_offset_16, log_start_offset_17, partition_max_bytes_18 = _READ_iqqi(data, pos)
                pos += 24
                items_14.append(FetchRequestFetchPartition(partition_15, -1, fetch_offset_16, -1, log_start_offset_17, partition_max_bytes_18))
            partitions_12 = items_14
            items_8.append(FetchRequestFetchTopic(topic_9, partitions_12))
        topics_6 = items_8
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, 0, -1, topics_6, [], ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 6, data, start, budget) from None


def encode_v6(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibi(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 6")
                out.append(_WRITE_iqqi(item_5.partition, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        if message.forgotten_topics_data:
            raise ValueError("forgotten_topics_data cannot be sent in version 6")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, n_9 = _READ_iiiibiii(data, pos)
        pos += 29
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[FetchRequestFetchTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            topic_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 24:
                raise ValueError
            budget -= n_15 * 8
            if budget < 0:
                raise ValueError
            items_16: list[FetchRequestFetchPartition] = []
            for _ in range(n_15):
                partition_17, fetch_offset_18, log_start_offset_19, partition_max_bytes_20 = _READ_iqqi(data, pos)
                pos += 24
                items_16.append(FetchRequestFetchPartition(partition_17, -1, fetch_offset_18, -1, log_start_offset_19, partition_max_bytes_20))
            partitions_14 = items_16
            items_10.append(FetchRequestFetchTopic(topic_11, partitions_14))
        topics_8 = items_10
        n_22, = _READ_i(data, pos)
        pos += 4
        if n_22 < 0:
            raise ValueError
        if n_22 > (end - pos) // 6:
            raise ValueError
        budget -= n_22 * 24
        if budget < 0:
            raise ValueError
        items_23: list[FetchRequestForgottenTopic] = []
        for _ in range(n_22):
            n_25, = _READ_h(data, pos)
            pos += 2
            if n_25 < 0:
                raise ValueError
            stop_26 = pos + n_25
            if stop_26 > end:
                raise ValueError
            topic_24 = data[pos:stop_26].decode()
            pos = stop_26
            n_28, = _READ_i(data, pos)
            pos += 4
            if n_28 < 0:
                raise ValueError
            if n_28 > (end - pos) // 4:
                raise ValueError
            budget -= n_28
            if budget < 0:
                raise ValueError
            partitions_27 = list(unpack_from(">" + f"{n_28}i", data, pos))
            pos += n_28 * 4
            items_23.append(FetchRequestForgottenTopic(topic_24, partitions_27))
        forgotten_topics_data_21 = items_23
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, forgotten_topics_data_21, ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 7, data, start, budget) from None


def encode_v7(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibiii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 7")
                out.append(_WRITE_iqqi(item_5.partition, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        forgotten_topics_data_6 = message.forgotten_topics_data
        out.append(_WRITE_i(len(forgotten_topics_data_6)))
        for item_7 in forgotten_topics_data_6:
            topic_8 = item_7.topic.encode()
            partitions_9 = item_7.partitions
            out += (_WRITE_h(len(topic_8)), topic_8, _WRITE_i(len(partitions_9)), pack(">" + f"{len(partitions_9)}i", *partitions_9))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, n_9 = _READ_iiiibiii(data, pos)
        pos += 29
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[FetchRequestFetchTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            topic_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 24:
                raise ValueError
            budget -= n_15 * 8
            if budget < 0:
                raise ValueError
            items_16: list[FetchRequestFetchPartition] = []
            for _ in range(n_15):
                partition_17, fetch_offset_18, log_start_offset_19, partition_max_bytes_20 = _READ_iqqi(data, pos)
                pos += 24
                items_16.append(FetchRequestFetchPartition(partition_17, -1, fetch_offset_18, -1, log_start_offset_19, partition_max_bytes_20))
            partitions_14 = items_16
            items_10.append(FetchRequestFetchTopic(topic_11, partitions_14))
        topics_8 = items_10
        n_22, = _READ_i(data, pos)
        pos += 4
        if n_22 < 0:
            raise ValueError
        if n_22 > (end - pos) // 6:
            raise ValueError
        budget -= n_22 * 24
        if budget < 0:
            raise ValueError
        items_23: list[FetchRequestForgottenTopic] = []
        for _ in range(n_22):
            n_25, = _READ_h(data, pos)
            pos += 2
            if n_25 < 0:
                raise ValueError
            stop_26 = pos + n_25
            if stop_26 > end:
                raise ValueError
            topic_24 = data[pos:stop_26].decode()
            pos = stop_26
            n_28, = _READ_i(data, pos)
            pos += 4
            if n_28 < 0:
                raise ValueError
            if n_28 > (end - pos) // 4:
                raise ValueError
            budget -= n_28
            if budget < 0:
                raise ValueError
            partitions_27 = list(unpack_from(">" + f"{n_28}i", data, pos))
            pos += n_28 * 4
            items_23.append(FetchRequestForgottenTopic(topic_24, partitions_27))
        forgotten_topics_data_21 = items_23
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, forgotten_topics_data_21, ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 8, data, start, budget) from None


def encode_v8(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibiii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 8")
                out.append(_WRITE_iqqi(item_5.partition, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        forgotten_topics_data_6 = message.forgotten_topics_data
        out.append(_WRITE_i(len(forgotten_topics_data_6)))
        for item_7 in forgotten_topics_data_6:
            topic_8 = item_7.topic.encode()
            partitions_9 = item_7.partitions
            out += (_WRITE_h(len(topic_8)), topic_8, _WRITE_i(len(partitions_9)), pack(">" + f"{len(partitions_9)}i", *partitions_9))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, n_9 = _READ_iiiibiii(data, pos)
        pos += 29
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[FetchRequestFetchTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            topic_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 28:
                raise ValueError
            budget -= n_15 * 8
            if budget < 0:
                raise ValueError
            items_16: list[FetchRequestFetchPartition] = []
            for _ in range(n_15):
                partition_17, current_leader_epoch_18, fetch_offset_19, log_start_offset_20, partition_max_bytes_21 = _READ_iiqqi(data, pos)
                pos += 28
                items_16.append(FetchRequestFetchPartition(partition_17, current_leader_epoch_18, fetch_offset_19, -1, log_start_offset_20, partition_max_bytes_21))
            partitions_14 = items_16
            items_10.append(FetchRequestFetchTopic(topic_11, partitions_14))
        topics_8 = items_10
        n_23, = _READ_i(data, pos)
        pos += 4
        if n_23 < 0:
            raise ValueError
        if n_23 > (end - pos) // 6:
            raise ValueError
        budget -= n_23 * 24
        if budget < 0:
            raise ValueError
        items_24: list[FetchRequestForgottenTopic] = []
        for _ in range(n_23):
            n_26, = _READ_h(data, pos)
            pos += 2
            if n_26 < 0:
                raise ValueError
            stop_27 = pos + n_26
            if stop_27 > end:
                raise ValueError
            topic_25 = data[pos:stop_27].decode()
            pos = stop_27
            n_29, = _READ_i(data, pos)
            pos += 4
            if n_29 < 0:
                raise ValueError
            if n_29 > (end - pos) // 4:
                raise ValueError
            budget -= n_29
            if budget < 0:
                raise ValueError
            partitions_28 = list(unpack_from(">" + f"{n_29}i", data, pos))
            pos += n_29 * 4
            items_24.append(FetchRequestForgottenTopic(topic_25, partitions_28))
        forgotten_topics_data_22 = items_24
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, forgotten_topics_data_22, ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 9, data, start, budget) from None


def encode_v9(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibiii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 9")
                out.append(_WRITE_iiqqi(item_5.partition, item_5.current_leader_epoch, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        forgotten_topics_data_6 = message.forgotten_topics_data
        out.append(_WRITE_i(len(forgotten_topics_data_6)))
        for item_7 in forgotten_topics_data_6:
            topic_8 = item_7.topic.encode()
            partitions_9 = item_7.partitions
            out += (_WRITE_h(len(topic_8)), topic_8, _WRITE_i(len(partitions_9)), pack(">" + f"{len(partitions_9)}i", *partitions_9))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 9, error) from error


def decode_v10(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, n_9 = _READ_iiiibiii(data, pos)
        pos += 29
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[FetchRequestFetchTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            topic_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 28:
                raise ValueError
            budget -= n_15 * 8
            if budget < 0:
                raise ValueError
            items_16: list[FetchRequestFetchPartition] = []
            for _ in range(n_15):
                partition_17, current_leader_epoch_18, fetch_offset_19, log_start_offset_20, partition_max_bytes_21 = _READ_iiqqi(data, pos)
                pos += 28
                items_16.append(FetchRequestFetchPartition(partition_17, current_leader_epoch_18, fetch_offset_19, -1, log_start_offset_20, partition_max_bytes_21))
            partitions_14 = items_16
            items_10.append(FetchRequestFetchTopic(topic_11, partitions_14))
        topics_8 = items_10
        n_23, = _READ_i(data, pos)
        pos += 4
        if n_23 < 0:
            raise ValueError
        if n_23 > (end - pos) // 6:
            raise ValueError
        budget -= n_23 * 24
        if budget < 0:
            raise ValueError
        items_24: list[FetchRequestForgottenTopic] = []
        for _ in range(n_23):
            n_26, = _READ_h(data, pos)
            pos += 2
            if n_26 < 0:
                raise ValueError
            stop_27 = pos + n_26
            if stop_27 > end:
                raise ValueError
            topic_25 = data[pos:stop_27].decode()
            pos = stop_27
            n_29, = _READ_i(data, pos)
            pos += 4
            if n_29 < 0:
                raise ValueError
            if n_29 > (end - pos) // 4:
                raise ValueError
            budget -= n_29
            if budget < 0:
                raise ValueError
            partitions_28 = list(unpack_from(">" + f"{n_29}i", data, pos))
            pos += n_29 * 4
            items_24.append(FetchRequestForgottenTopic(topic_25, partitions_28))
        forgotten_topics_data_22 = items_24
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, forgotten_topics_data_22, ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 10, data, start, budget) from None


def encode_v10(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibiii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 10")
                out.append(_WRITE_iiqqi(item_5.partition, item_5.current_leader_epoch, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        forgotten_topics_data_6 = message.forgotten_topics_data
        out.append(_WRITE_i(len(forgotten_topics_data_6)))
        for item_7 in forgotten_topics_data_6:
            topic_8 = item_7.topic.encode()
            partitions_9 = item_7.partitions
            out += (_WRITE_h(len(topic_8)), topic_8, _WRITE_i(len(partitions_9)), pack(">" + f"{len(partitions_9)}i", *partitions_9))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 10, error) from error


def decode_v11(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, n_9 = _READ_iiiibiii(data, pos)
        pos += 29
        if n_9 < 0:
            raise ValueError
        if n_9 > (end - pos) // 6:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[FetchRequestFetchTopic] = []
        for _ in range(n_9):
            n_12, = _READ_h(data, pos)
            pos += 2
            if n_12 < 0:
                raise ValueError
            stop_13 = pos + n_12
            if stop_13 > end:
                raise ValueError
            topic_11 = data[pos:stop_13].decode()
            pos = stop_13
            n_15, = _READ_i(data, pos)
            pos += 4
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 28:
                raise ValueError
            budget -= n_15 * 8
            if budget < 0:
                raise ValueError
            items_16: list[FetchRequestFetchPartition] = []
            for _ in range(n_15):
                partition_17, current_leader_epoch_18, fetch_offset_19, log_start_offset_20, partition_max_bytes_21 = _READ_iiqqi(data, pos)
                pos += 28
                items_16.append(FetchRequestFetchPartition(partition_17, current_leader_epoch_18, fetch_offset_19, -1, log_start_offset_20, partition_max_bytes_21))
            partitions_14 = items_16
            items_10.append(FetchRequestFetchTopic(topic_11, partitions_14))
        topics_8 = items_10
        n_23, = _READ_i(data, pos)
        pos += 4
        if n_23 < 0:
            raise ValueError
        if n_23 > (end - pos) // 6:
            raise ValueError
        budget -= n_23 * 24
        if budget < 0:
            raise ValueError
        items_24: list[FetchRequestForgottenTopic] = []
        for _ in range(n_23):
            n_26, = _READ_h(data, pos)
            pos += 2
            if n_26 < 0:
                raise ValueError
            stop_27 = pos + n_26
            if stop_27 > end:
                raise ValueError
            topic_25 = data[pos:stop_27].decode()
            pos = stop_27
            n_29, = _READ_i(data, pos)
            pos += 4
            if n_29 < 0:
                raise ValueError
            if n_29 > (end - pos) // 4:
                raise ValueError
            budget -= n_29
            if budget < 0:
                raise ValueError
            partitions_28 = list(unpack_from(">" + f"{n_29}i", data, pos))
            pos += n_29 * 4
            items_24.append(FetchRequestForgottenTopic(topic_25, partitions_28))
        forgotten_topics_data_22 = items_24
        n_31, = _READ_h(data, pos)
        pos += 2
        if n_31 < 0:
            raise ValueError
        stop_32 = pos + n_31
        if stop_32 > end:
            raise ValueError
        rack_id_30 = data[pos:stop_32].decode()
        pos = stop_32
        return FetchRequest(None, replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, forgotten_topics_data_22, rack_id_30), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 11, data, start, budget) from None


def encode_v11(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_iiiibiii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch, len(topics_1)))
        for item_2 in topics_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.last_fetched_epoch != -1:
                    raise ValueError("last_fetched_epoch cannot be sent in version 11")
                out.append(_WRITE_iiqqi(item_5.partition, item_5.current_leader_epoch, item_5.fetch_offset, item_5.log_start_offset, item_5.partition_max_bytes))
        forgotten_topics_data_6 = message.forgotten_topics_data
        out.append(_WRITE_i(len(forgotten_topics_data_6)))
        for item_7 in forgotten_topics_data_6:
            topic_8 = item_7.topic.encode()
            partitions_9 = item_7.partitions
            out += (_WRITE_h(len(topic_8)), topic_8, _WRITE_i(len(partitions_9)), pack(">" + f"{len(partitions_9)}i", *partitions_9))
        rack_id_10 = message.rack_id.encode()
        out += (_WRITE_h(len(rack_id_10)), rack_id_10)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 11, error) from error


def decode_v12(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FetchRequest, int]:
    start = pos
    try:
        end = len(data)
        replica_id_2, max_wait_ms_3, min_bytes_4, max_bytes_5, isolation_level_6, session_id_7, session_epoch_8 = _READ_iiiibii(data, pos)
        pos += 25
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_10 == 0:
            raise ValueError
        n_10 -= 1
        if n_10 > (end - pos) // 3:
            raise ValueError
        budget -= n_10 * 24
        if budget < 0:
            raise ValueError
        items_11: list[FetchRequestFetchTopic] = []
        for _ in range(n_10):
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
                if n_13 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            stop_14 = pos + n_13 - 1
            if stop_14 > end:
                raise ValueError
            topic_12 = data[pos:stop_14].decode()
            pos = stop_14
            n_16 = data[pos]
            if n_16 > 127:
                n_16, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_16 == 0:
                raise ValueError
            n_16 -= 1
            if n_16 > (end - pos) // 33:
                raise ValueError
            budget -= n_16 * 8
            if budget < 0:
                raise ValueError
            items_17: list[FetchRequestFetchPartition] = []
            for _ in range(n_16):
                partition_18, current_leader_epoch_19, fetch_offset_20, last_fetched_epoch_21, log_start_offset_22, partition_max_bytes_23 = _READ_iiqiqi(data, pos)
                pos += 32
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_17.append(FetchRequestFetchPartition(partition_18, current_leader_epoch_19, fetch_offset_20, last_fetched_epoch_21, log_start_offset_22, partition_max_bytes_23))
            partitions_15 = items_17
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_11.append(FetchRequestFetchTopic(topic_12, partitions_15))
        topics_9 = items_11
        n_25 = data[pos]
        if n_25 > 127:
            n_25, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_25 == 0:
            raise ValueError
        n_25 -= 1
        if n_25 > (end - pos) // 3:
            raise ValueError
        budget -= n_25 * 24
        if budget < 0:
            raise ValueError
        items_26: list[FetchRequestForgottenTopic] = []
        for _ in range(n_25):
            n_28 = data[pos]
            if n_28 > 127:
                n_28, pos = read_uvarint(data, pos)
                if n_28 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_28 == 0:
                raise ValueError
            stop_29 = pos + n_28 - 1
            if stop_29 > end:
                raise ValueError
            topic_27 = data[pos:stop_29].decode()
            pos = stop_29
            n_31 = data[pos]
            if n_31 > 127:
                n_31, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_31 == 0:
                raise ValueError
            n_31 -= 1
            if n_31 > (end - pos) // 4:
                raise ValueError
            budget -= n_31
            if budget < 0:
                raise ValueError
            partitions_30 = list(unpack_from(">" + f"{n_31}i", data, pos))
            pos += n_31 * 4
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_26.append(FetchRequestForgottenTopic(topic_27, partitions_30))
        forgotten_topics_data_24 = items_26
        n_33 = data[pos]
        if n_33 > 127:
            n_33, pos = read_uvarint(data, pos)
            if n_33 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_33 == 0:
            raise ValueError
        stop_34 = pos + n_33 - 1
        if stop_34 > end:
            raise ValueError
        rack_id_32 = data[pos:stop_34].decode()
        pos = stop_34
        cluster_id_1 = None
        count_35, pos = read_uvarint(data, pos)
        if count_35 > (end - pos) // 2:
            raise ValueError
        budget -= count_35 * 24
        if budget < 0:
            raise ValueError
        for _ in range(count_35):
            tag_36, pos = read_uvarint(data, pos)
            stop_37, pos = read_uvarint(data, pos)
            stop_37 += pos
            if stop_37 > end:
                raise ValueError
            if tag_36 == 0:
                n_39 = data[pos]
                if n_39 > 127:
                    n_39, pos = read_uvarint(data, pos)
                    if n_39 > 32768:
                        raise ValueError
                else:
                    pos += 1
                cluster_id_38: str | None = None
                if n_39 > 0:
                    stop_40 = pos + n_39 - 1
                    if stop_40 > end:
                        raise ValueError
                    cluster_id_38 = data[pos:stop_40].decode()
                    pos = stop_40
                cluster_id_1 = cluster_id_38
                if pos != stop_37:
                    raise ValueError
            else:
                pos = stop_37
        return FetchRequest(cluster_id_1, replica_id_2, max_wait_ms_3, min_bytes_4, max_bytes_5, isolation_level_6, session_id_7, session_epoch_8, topics_9, forgotten_topics_data_24, rack_id_32), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchRequest, 12, data, start, budget) from None


def encode_v12(message: FetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_iiiibii(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, message.session_id, message.session_epoch), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            topic_4 = item_3.topic.encode()
            n_5 = len(topic_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), topic_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                out.append(_WRITE_iiqiqix(item_8.partition, item_8.current_leader_epoch, item_8.fetch_offset, item_8.last_fetched_epoch, item_8.log_start_offset, item_8.partition_max_bytes))
            out.append(b"\0")
        forgotten_topics_data_9 = message.forgotten_topics_data
        n_10 = len(forgotten_topics_data_9) + 1
        out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
        for item_11 in forgotten_topics_data_9:
            topic_12 = item_11.topic.encode()
            n_13 = len(topic_12) + 1
            partitions_14 = item_11.partitions
            n_15 = len(partitions_14) + 1
            out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), topic_12, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), pack(">" + f"{len(partitions_14)}i", *partitions_14), b"\0")
        rack_id_16 = message.rack_id.encode()
        n_17 = len(rack_id_16) + 1
        out += (UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), rack_id_16)
        tags_18: list[tuple[int, bytes]] = []
        cluster_id_19 = message.cluster_id
        if cluster_id_19 is not None:
            payload_20: list[bytes] = []
            cluster_id_21 = cluster_id_19.encode()
            n_22 = len(cluster_id_21) + 1
            payload_20 += (UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), cluster_id_21)
            tags_18.append((0, b"".join(payload_20)))
        out.append(write_tags(tags_18))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchRequest, 12, error) from error
