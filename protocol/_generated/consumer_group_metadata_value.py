"""ConsumerGroupMetadataValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ConsumerGroupMetadataValue,
)
from ringleader.protocol.wire import read_uvarint, skip_tags, write_tags

_READ_i = Struct(">i").unpack_from
_READ_q = Struct(">q").unpack_from
_WRITE_i = Struct(">i").pack
_WRITE_q = Struct(">q").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupMetadataValue, int]:
    start = pos
    try:
        end = len(data)
        epoch_1, = _READ_i(data, pos)
        pos += 4
        metadata_hash_2 = 0
        count_3, pos = read_uvarint(data, pos)
        if count_3 > (end - pos) // 2:
            raise ValueError
        for _ in range(count_3):
            tag_4, pos = read_uvarint(data, pos)
            stop_5, pos = read_uvarint(data, pos)
            stop_5 += pos
            if stop_5 > end:
                raise ValueError
            if tag_4 == 0:
                metadata_hash_6, = _READ_q(data, pos)
                pos += 8
                metadata_hash_2 = metadata_hash_6
                if pos != stop_5:
                    raise ValueError
            else:
                pos = stop_5
        return ConsumerGroupMetadataValue(epoch_1, metadata_hash_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupMetadataValue, 0, data, start) from None


def encode_v0(message: ConsumerGroupMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        out.append(_WRITE_i(message.epoch))
        tags_1: list[tuple[int, bytes]] = []
        metadata_hash_2 = message.metadata_hash
        if metadata_hash_2 != 0:
            payload_3: list[bytes] = []
            payload_3.append(_WRITE_q(metadata_hash_2))
            tags_1.append((0, b"".join(payload_3)))
        out.append(write_tags(tags_1))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupMetadataValue, 0, error) from error
