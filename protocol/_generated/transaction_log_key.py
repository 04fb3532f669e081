"""TransactionLogKey: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    TransactionLogKey,
)

_READ_h = Struct(">h").unpack_from
_WRITE_h = Struct(">h").pack


def decode_v0(data: bytes, pos: int) -> tuple[TransactionLogKey, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        return TransactionLogKey(transactional_id_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TransactionLogKey, 0, data, start) from None


def encode_v0(message: TransactionLogKey) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(TransactionLogKey, 0, error) from error
