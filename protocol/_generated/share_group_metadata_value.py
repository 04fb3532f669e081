"""ShareGroupMetadataValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ShareGroupMetadataValue,
)
from ringleader.protocol.wire import skip_tags

_READ_iq = Struct(">iq").unpack_from
_WRITE_iqx = Struct(">iqx").pack


def decode_v0(data: bytes, pos: int) -> tuple[ShareGroupMetadataValue, int]:
    start = pos
    try:
        epoch_1, metadata_hash_2 = _READ_iq(data, pos)
        pos += 12
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ShareGroupMetadataValue(epoch_1, metadata_hash_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ShareGroupMetadataValue, 0, data, start) from None


def encode_v0(message: ShareGroupMetadataValue) -> bytes:
    try:
        return _WRITE_iqx(message.epoch, message.metadata_hash)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ShareGroupMetadataValue, 0, error) from error
