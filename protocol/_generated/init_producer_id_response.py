"""InitProducerIdResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    InitProducerIdResponse,
)
from ringleader.protocol.wire import skip_tags

_READ_ihqh = Struct(">ihqh").unpack_from
_WRITE_ihqh = Struct(">ihqh").pack
_WRITE_ihqhx = Struct(">ihqhx").pack


def decode_v0(data: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _READ_ihqh(data, pos)
        pos += 16
        return InitProducerIdResponse(throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdResponse, 0, data, start) from None


def encode_v0(message: InitProducerIdResponse) -> bytes:
    try:
        return _WRITE_ihqh(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _READ_ihqh(data, pos)
        pos += 16
        return InitProducerIdResponse(throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdResponse, 1, data, start) from None


def encode_v1(message: InitProducerIdResponse) -> bytes:
    try:
        return _WRITE_ihqh(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _READ_ihqh(data, pos)
        pos += 16
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdResponse(throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdResponse, 2, data, start) from None


def encode_v2(message: InitProducerIdResponse) -> bytes:
    try:
        return _WRITE_ihqhx(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _READ_ihqh(data, pos)
        pos += 16
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdResponse(throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdResponse, 3, data, start) from None


def encode_v3(message: InitProducerIdResponse) -> bytes:
    try:
        return _WRITE_ihqhx(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    start = pos
    try:
        throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _READ_ihqh(data, pos)
        pos += 16
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdResponse(throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdResponse, 4, data, start) from None


def encode_v4(message: InitProducerIdResponse) -> bytes:
    try:
        return _WRITE_ihqhx(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdResponse, 4, error) from error
