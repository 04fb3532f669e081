"""OffsetDeleteResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.offsets import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ringleader.protocol.wire import PIECE_ITEMS

_READ_h = Struct(">h").unpack_from
_READ_hii = Struct(">hii").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hii = Struct(">hii").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack


def decode_v0(data: bytes, pos: int) -> tuple[OffsetDeleteResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, throttle_time_ms_2, n_4 = _READ_hii(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        if n_4 > (end - pos) // 6:
            raise ValueError
        items_5: list[OffsetDeleteResponseTopic] = []
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
            if n_10 > (end - pos) // 6:
                raise ValueError
            items_11: list[OffsetDeleteResponsePartition] = []
            for _ in range(n_10):
                partition_index_12, error_code_13 = _READ_ih(data, pos)
                pos += 6
                items_11.append(OffsetDeleteResponsePartition(partition_index_12, error_code_13))
            partitions_9 = items_11
            items_5.append(OffsetDeleteResponseTopic(name_6, partitions_9))
        topics_3 = items_5
        return OffsetDeleteResponse(error_code_1, throttle_time_ms_2, topics_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetDeleteResponse, 0, data, start) from None


def encode_v0(message: OffsetDeleteResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: OffsetDeleteResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_hii(message.error_code, message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                out.append(_WRITE_ih(item_5.partition_index, item_5.error_code))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetDeleteResponse, 0, error) from error
