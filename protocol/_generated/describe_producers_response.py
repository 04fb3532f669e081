"""DescribeProducersResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    DescribeProducersResponse,
    DescribeProducersResponsePartitionResponse,
    DescribeProducersResponseProducerState,
    DescribeProducersResponseTopicResponse,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_qiiqiq = Struct(">qiiqiq").unpack_from
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_qiiqiqx = Struct(">qiiqiqx").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeProducersResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
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
        items_4: list[DescribeProducersResponseTopicResponse] = []
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
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 9:
                raise ValueError
            items_10: list[DescribeProducersResponsePartitionResponse] = []
            for _ in range(n_9):
                partition_index_11, error_code_12 = _READ_ih(data, pos)
                pos += 6
                n_14 = data[pos]
                if n_14 > 127:
                    n_14, pos = read_uvarint(data, pos)
                    if n_14 > 32768:
                        raise ValueError
                else:
                    pos += 1
                error_message_13: str | None = None
                if n_14 > 0:
                    stop_15 = pos + n_14 - 1
                    if stop_15 > end:
                        raise ValueError
                    error_message_13 = data[pos:stop_15].decode()
                    pos = stop_15
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                n_17 -= 1
                if n_17 > (end - pos) // 37:
                    raise ValueError
                items_18: list[DescribeProducersResponseProducerState] = []
                for _ in range(n_17):
                    producer_id_19, producer_epoch_20, last_sequence_21, last_timestamp_22, coordinator_epoch_23, current_txn_start_offset_24 = _READ_qiiqiq(data, pos)
                    pos += 36
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_18.append(DescribeProducersResponseProducerState(producer_id_19, producer_epoch_20, last_sequence_21, last_timestamp_22, coordinator_epoch_23, current_txn_start_offset_24))
                active_producers_16 = items_18
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(DescribeProducersResponsePartitionResponse(partition_index_11, error_code_12, error_message_13, active_producers_16))
            partitions_8 = items_10
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DescribeProducersResponseTopicResponse(name_5, partitions_8))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeProducersResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeProducersResponse, 0, data, start) from None


def encode_v0(message: DescribeProducersResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeProducersResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                raw_10 = item_8.error_message
                if raw_10 is None:
                    error_message_9 = b""
                    n_11 = 0
                else:
                    error_message_9 = raw_10.encode()
                    n_11 = len(error_message_9) + 1
                active_producers_12 = item_8.active_producers
                n_13 = len(active_producers_12) + 1
                out += (_WRITE_ih(item_8.partition_index, item_8.error_code), UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), error_message_9, UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
                for item_14 in active_producers_12:
                    out.append(_WRITE_qiiqiqx(item_14.producer_id, item_14.producer_epoch, item_14.last_sequence, item_14.last_timestamp, item_14.coordinator_epoch, item_14.current_txn_start_offset))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                out.append(b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeProducersResponse, 0, error) from error
