"""SaslHandshakeRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.security import (
    SaslHandshakeRequest,
)
from ringleader.protocol.wire import UNLIMITED

_READ_h = Struct(">h").unpack_from
_WRITE_h = Struct(">h").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SaslHandshakeRequest, int]:
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
        mechanism_1 = data[pos:stop_3].decode()
        pos = stop_3
        return SaslHandshakeRequest(mechanism_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslHandshakeRequest, 0, data, start, budget) from None


def encode_v0(message: SaslHandshakeRequest) -> bytes:
    try:
        mechanism_1 = message.mechanism.encode()
        return b"".join((_WRITE_h(len(mechanism_1)), mechanism_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslHandshakeRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SaslHandshakeRequest, int]:
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
        mechanism_1 = data[pos:stop_3].decode()
        pos = stop_3
        return SaslHandshakeRequest(mechanism_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslHandshakeRequest, 1, data, start, budget) from None


def encode_v1(message: SaslHandshakeRequest) -> bytes:
    try:
        mechanism_1 = message.mechanism.encode()
        return b"".join((_WRITE_h(len(mechanism_1)), mechanism_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslHandshakeRequest, 1, error) from error
