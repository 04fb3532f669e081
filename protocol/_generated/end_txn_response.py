"""EndTxnResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    EndTxnResponse,
)
from ringleader.protocol.wire import skip_tags

_READ_ih = Struct(">ih").unpack_from
_WRITE_ih = Struct(">ih").pack
_WRITE_ihx = Struct(">ihx").pack


def decode_v0(data: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        return EndTxnResponse(throttle_time_ms_1, error_code_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnResponse, 0, data, start) from None


def encode_v0(message: EndTxnResponse) -> bytes:
    try:
        return _WRITE_ih(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        return EndTxnResponse(throttle_time_ms_1, error_code_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnResponse, 1, data, start) from None


def encode_v1(message: EndTxnResponse) -> bytes:
    try:
        return _WRITE_ih(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        return EndTxnResponse(throttle_time_ms_1, error_code_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnResponse, 2, data, start) from None


def encode_v2(message: EndTxnResponse) -> bytes:
    try:
        return _WRITE_ih(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return EndTxnResponse(throttle_time_ms_1, error_code_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnResponse, 3, data, start) from None


def encode_v3(message: EndTxnResponse) -> bytes:
    try:
        return _WRITE_ihx(message.throttle_time_ms, message.error_code)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnResponse, 3, error) from error
