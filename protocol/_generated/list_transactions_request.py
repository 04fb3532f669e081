"""ListTransactionsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    ListTransactionsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ListTransactionsRequest, int]:
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
        if n_2 > end - pos:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
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
            state_filters_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(state_filters_4)
        state_filters_1 = items_3
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_8 == 0:
            raise ValueError
        n_8 -= 1
        if n_8 > (end - pos) // 8:
            raise ValueError
        budget -= n_8
        if budget < 0:
            raise ValueError
        producer_id_filters_7 = list(unpack_from(">" + f"{n_8}q", data, pos))
        pos += n_8 * 8
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ListTransactionsRequest(state_filters_1, producer_id_filters_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ListTransactionsRequest, 0, data, start, budget) from None


def encode_v0(message: ListTransactionsRequest) -> bytes:
    try:
        out: list[bytes] = []
        state_filters_1 = message.state_filters
        n_2 = len(state_filters_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in state_filters_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        producer_id_filters_6 = message.producer_id_filters
        n_7 = len(producer_id_filters_6) + 1
        out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), pack(">" + f"{len(producer_id_filters_6)}q", *producer_id_filters_6), b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ListTransactionsRequest, 0, error) from error
