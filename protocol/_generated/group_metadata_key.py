"""GroupMetadataKey: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    GroupMetadataKey,
)

_READ_h = Struct(">h").unpack_from
_WRITE_h = Struct(">h").pack


def decode_v2(data: bytes, pos: int) -> tuple[GroupMetadataKey, int]:
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
        return GroupMetadataKey(group_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(GroupMetadataKey, 2, data, start) from None


def encode_v2(message: GroupMetadataKey) -> bytes:
    try:
        group_1 = message.group.encode()
        return b"".join((_WRITE_h(len(group_1)), group_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(GroupMetadataKey, 2, error) from error
