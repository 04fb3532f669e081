"""OffsetCommitKey: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    OffsetCommitKey,
)

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v1(data: bytes, pos: int) -> tuple[OffsetCommitKey, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        group_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5, = _READ_h(data, pos)
        pos += 2
        if n_5 < 0:
            raise ValueError
        stop_6 = pos + n_5
        if stop_6 > end:
            raise ValueError
        topic_4 = data[pos:stop_6].decode()
        pos = stop_6
        partition_7, = _READ_i(data, pos)
        pos += 4
        return OffsetCommitKey(group_1, topic_4, partition_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitKey, 1, data, start) from None


def encode_v1(message: OffsetCommitKey) -> bytes:
    try:
        group_1 = message.group.encode()
        topic_2 = message.topic.encode()
        return b"".join((_WRITE_h(len(group_1)), group_1, _WRITE_h(len(topic_2)), topic_2, _WRITE_i(message.partition)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitKey, 1, error) from error
