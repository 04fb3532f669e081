"""DescribeProducersRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeProducersRequest, int]:
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
        items_3: list[DescribeProducersRequestTopicRequest] = []
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
            if n_8 > (end - pos) // 4:
                raise ValueError
            budget -= n_8
            if budget < 0:
                raise ValueError
            partition_indexes_7 = list(unpack_from(">" + f"{n_8}i", data, pos))
            pos += n_8 * 4
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DescribeProducersRequestTopicRequest(name_4, partition_indexes_7))
        topics_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeProducersRequest(topics_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeProducersRequest, 0, data, start, budget) from None


def encode_v0(message: DescribeProducersRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partition_indexes_6 = item_3.partition_indexes
            n_7 = len(partition_indexes_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), pack(">" + f"{len(partition_indexes_6)}i", *partition_indexes_6), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeProducersRequest, 0, error) from error
