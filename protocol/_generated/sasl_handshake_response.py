"""SaslHandshakeResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.security import (
    SaslHandshakeResponse,
)

_READ_h = Struct(">h").unpack_from
_READ_hi = Struct(">hi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hi = Struct(">hi").pack


def decode_v0(data: bytes, pos: int) -> tuple[SaslHandshakeResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 2:
            raise ValueError
        items_4: list[str] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            mechanisms_5 = data[pos:stop_7].decode()
            pos = stop_7
            items_4.append(mechanisms_5)
        mechanisms_2 = items_4
        return SaslHandshakeResponse(error_code_1, mechanisms_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslHandshakeResponse, 0, data, start) from None


def encode_v0(message: SaslHandshakeResponse) -> bytes:
    try:
        out: list[bytes] = []
        mechanisms_1 = message.mechanisms
        out.append(_WRITE_hi(message.error_code, len(mechanisms_1)))
        for item_2 in mechanisms_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslHandshakeResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[SaslHandshakeResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 2:
            raise ValueError
        items_4: list[str] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            mechanisms_5 = data[pos:stop_7].decode()
            pos = stop_7
            items_4.append(mechanisms_5)
        mechanisms_2 = items_4
        return SaslHandshakeResponse(error_code_1, mechanisms_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SaslHandshakeResponse, 1, data, start) from None


def encode_v1(message: SaslHandshakeResponse) -> bytes:
    try:
        out: list[bytes] = []
        mechanisms_1 = message.mechanisms
        out.append(_WRITE_hi(message.error_code, len(mechanisms_1)))
        for item_2 in mechanisms_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SaslHandshakeResponse, 1, error) from error
