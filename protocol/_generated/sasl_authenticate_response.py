"""SaslAuthenticateResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.security import (
    SaslAuthenticateResponse,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_q = Struct(">q").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_q = Struct(">q").pack
_WRITE_qx = Struct(">qx").pack


def decode_v0(data: bytes, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hh(data, pos)
        pos += 4
        error_message_2: str | None = None
        if n_3 >= 0:
            stop_4 = pos + n_3
            if stop_4 > end:
                raise ValueError
            error_message_2 = data[pos:stop_4].decode()
            pos = stop_4
        elif n_3 != -1:
            raise ValueError
        n_6, = _READ_i(data, pos)
        pos += 4
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        auth_bytes_5 = data[pos:stop_7]
        pos = stop_7
        return SaslAuthenticateResponse(error_code_1, error_message_2, auth_bytes_5, 0), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateResponse, 0, data, start) from None


def encode_v0(message: SaslAuthenticateResponse) -> bytes:
    try:
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        auth_bytes_3 = message.auth_bytes
        return b"".join((_WRITE_hh(message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1, _WRITE_i(len(auth_bytes_3)), auth_bytes_3))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hh(data, pos)
        pos += 4
        error_message_2: str | None = None
        if n_3 >= 0:
            stop_4 = pos + n_3
            if stop_4 > end:
                raise ValueError
            error_message_2 = data[pos:stop_4].decode()
            pos = stop_4
        elif n_3 != -1:
            raise ValueError
        n_6, = _READ_i(data, pos)
        pos += 4
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        auth_bytes_5 = data[pos:stop_7]
        pos = stop_7
        session_lifetime_ms_8, = _READ_q(data, pos)
        pos += 8
        return SaslAuthenticateResponse(error_code_1, error_message_2, auth_bytes_5, session_lifetime_ms_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateResponse, 1, data, start) from None


def encode_v1(message: SaslAuthenticateResponse) -> bytes:
    try:
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        auth_bytes_3 = message.auth_bytes
        return b"".join((_WRITE_hh(message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1, _WRITE_i(len(auth_bytes_3)), auth_bytes_3, _WRITE_q(message.session_lifetime_ms)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, = _READ_h(data, pos)
        pos += 2
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
            if n_3 > 32768:
                raise ValueError
        else:
            pos += 1
        error_message_2: str | None = None
        if n_3 > 0:
            stop_4 = pos + n_3 - 1
            if stop_4 > end:
                raise ValueError
            error_message_2 = data[pos:stop_4].decode()
            pos = stop_4
        n_6 = data[pos]
        if n_6 > 127:
            n_6, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_6 == 0:
            raise ValueError
        stop_7 = pos + n_6 - 1
        if stop_7 > end:
            raise ValueError
        auth_bytes_5 = data[pos:stop_7]
        pos = stop_7
        session_lifetime_ms_8, = _READ_q(data, pos)
        pos += 8
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SaslAuthenticateResponse(error_code_1, error_message_2, auth_bytes_5, session_lifetime_ms_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslAuthenticateResponse, 2, data, start) from None


def encode_v2(message: SaslAuthenticateResponse) -> bytes:
    try:
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        auth_bytes_4 = message.auth_bytes
        n_5 = len(auth_bytes_4) + 1
        return b"".join((_WRITE_h(message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), auth_bytes_4, _WRITE_qx(message.session_lifetime_ms)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslAuthenticateResponse, 2, error) from error
