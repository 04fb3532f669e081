"""DescribeTransactionsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iqqh = Struct(">iqqh").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iqqh = Struct(">iqqh").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeTransactionsResponse, int]:
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
        if n_3 > (end - pos) // 28:
            raise ValueError
        items_4: list[DescribeTransactionsResponseTransactionState] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
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
            transactional_id_6 = data[pos:stop_8].decode()
            pos = stop_8
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
            transaction_state_9 = data[pos:stop_11].decode()
            pos = stop_11
            transaction_timeout_ms_12, transaction_start_time_ms_13, producer_id_14, producer_epoch_15 = _READ_iqqh(data, pos)
            pos += 22
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
            items_18: list[DescribeTransactionsResponseTopicData] = []
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
                topic_19 = data[pos:stop_21].decode()
                pos = stop_21
                n_23 = data[pos]
                if n_23 > 127:
                    n_23, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_23 == 0:
                    raise ValueError
                n_23 -= 1
                if n_23 > (end - pos) // 4:
                    raise ValueError
                partitions_22 = list(unpack_from(">" + f"{n_23}i", data, pos))
                pos += n_23 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_18.append(DescribeTransactionsResponseTopicData(topic_19, partitions_22))
            topics_16 = items_18
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DescribeTransactionsResponseTransactionState(error_code_5, transactional_id_6, transaction_state_9, transaction_timeout_ms_12, transaction_start_time_ms_13, producer_id_14, producer_epoch_15, topics_16))
        transaction_states_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeTransactionsResponse(throttle_time_ms_1, transaction_states_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeTransactionsResponse, 0, data, start) from None


def encode_v0(message: DescribeTransactionsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeTransactionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        transaction_states_1 = message.transaction_states
        n_2 = len(transaction_states_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in transaction_states_1:
            transactional_id_4 = item_3.transactional_id.encode()
            n_5 = len(transactional_id_4) + 1
            transaction_state_6 = item_3.transaction_state.encode()
            n_7 = len(transaction_state_6) + 1
            topics_8 = item_3.topics
            n_9 = len(topics_8) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), transactional_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), transaction_state_6, _WRITE_iqqh(item_3.transaction_timeout_ms, item_3.transaction_start_time_ms, item_3.producer_id, item_3.producer_epoch), UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
            for item_10 in topics_8:
                topic_11 = item_10.topic.encode()
                n_12 = len(topic_11) + 1
                partitions_13 = item_10.partitions
                n_14 = len(partitions_13) + 1
                out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), topic_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), pack(">" + f"{len(partitions_13)}i", *partitions_13), b"\0")
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
        raise refused(DescribeTransactionsResponse, 0, error) from error
