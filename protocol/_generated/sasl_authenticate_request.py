"""SaslAuthenticateRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.security import (
    SaslAuthenticateRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_i = Struct(">i").unpack_from
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SaslAuthenticateRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        auth_bytes_1 = data[pos:stop_3]
        pos = stop_3
        return SaslAuthenticateRequest(auth_bytes_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateRequest, 0, data, start, budget) from None


def encode_v0(message: SaslAuthenticateRequest) -> bytes:
    try:
        auth_bytes_1 = message.auth_bytes
        return b"".join((_WRITE_i(len(auth_bytes_1)), auth_bytes_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SaslAuthenticateRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        auth_bytes_1 = data[pos:stop_3]
        pos = stop_3
        return SaslAuthenticateRequest(auth_bytes_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateRequest, 1, data, start, budget) from None


def encode_v1(message: SaslAuthenticateRequest) -> bytes:
    try:
        auth_bytes_1 = message.auth_bytes
        return b"".join((_WRITE_i(len(auth_bytes_1)), auth_bytes_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[SaslAuthenticateRequest, int]:
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
        stop_3 = pos + n_2 - 1
        if stop_3 > end:
            raise ValueError
        auth_bytes_1 = data[pos:stop_3]
        pos = stop_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SaslAuthenticateRequest(auth_bytes_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateRequest, 2, data, start, budget) from None


def encode_v2(message: SaslAuthenticateRequest) -> bytes:
    try:
        auth_bytes_1 = message.auth_bytes
        n_2 = len(auth_bytes_1) + 1
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), auth_bytes_1, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateRequest, 2, error) from error
