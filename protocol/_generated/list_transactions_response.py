"""ListTransactionsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_ih = Struct(">ih").unpack_from
_READ_q = Struct(">q").unpack_from
_WRITE_ih = Struct(">ih").pack
_WRITE_q = Struct(">q").pack


def decode_v0(data: bytes, pos: int) -> tuple[ListTransactionsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        n_4 -= 1
        if n_4 > end - pos:
            raise ValueError
        items_5: list[str] = []
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
            unknown_state_filters_6 = data[pos:stop_8].decode()
            pos = stop_8
            items_5.append(unknown_state_filters_6)
        unknown_state_filters_3 = items_5
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_10 == 0:
            raise ValueError
        n_10 -= 1
        if n_10 > (end - pos) // 11:
            raise ValueError
        items_11: list[ListTransactionsResponseTransactionState] = []
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
            transactional_id_12 = data[pos:stop_14].decode()
            pos = stop_14
            producer_id_15, = _READ_q(data, pos)
            pos += 8
            n_17 = data[pos]
            if n_17 > 127:
                n_17, pos = read_uvarint(data, pos)
                if n_17 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_17 == 0:
                raise ValueError
            stop_18 = pos + n_17 - 1
            if stop_18 > end:
                raise ValueError
            transaction_state_16 = data[pos:stop_18].decode()
            pos = stop_18
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_11.append(ListTransactionsResponseTransactionState(transactional_id_12, producer_id_15, transaction_state_16))
        transaction_states_9 = items_11
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListTransactionsResponse(throttle_time_ms_1, error_code_2, unknown_state_filters_3, transaction_states_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListTransactionsResponse, 0, data, start) from None


def encode_v0(message: ListTransactionsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: ListTransactionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        unknown_state_filters_1 = message.unknown_state_filters
        n_2 = len(unknown_state_filters_1) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in unknown_state_filters_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        transaction_states_6 = message.transaction_states
        n_7 = len(transaction_states_6) + 1
        out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
        for item_8 in transaction_states_6:
            transactional_id_9 = item_8.transactional_id.encode()
            n_10 = len(transactional_id_9) + 1
            transaction_state_11 = item_8.transaction_state.encode()
            n_12 = len(transaction_state_11) + 1
            out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), transactional_id_9, _WRITE_q(item_8.producer_id), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), transaction_state_11, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListTransactionsResponse, 0, error) from error
