"""SyncGroupResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    SyncGroupResponse,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_hi = Struct(">hi").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_WRITE_hi = Struct(">hi").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihi = Struct(">ihi").pack


def decode_v0(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        stop_4 = pos + n_3
        if stop_4 > end:
            raise ValueError
        assignment_2 = data[pos:stop_4]
        pos = stop_4
        return SyncGroupResponse(0, error_code_1, None, None, assignment_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 0, data, start) from None


def encode_v0(message: SyncGroupResponse) -> bytes:
    try:
        assignment_1 = message.assignment
        return b"".join((_WRITE_hi(message.error_code, len(assignment_1)), assignment_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        assignment_3 = data[pos:stop_5]
        pos = stop_5
        return SyncGroupResponse(throttle_time_ms_1, error_code_2, None, None, assignment_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 1, data, start) from None


def encode_v1(message: SyncGroupResponse) -> bytes:
    try:
        assignment_1 = message.assignment
        return b"".join((_WRITE_ihi(message.throttle_time_ms, message.error_code, len(assignment_1)), assignment_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        assignment_3 = data[pos:stop_5]
        pos = stop_5
        return SyncGroupResponse(throttle_time_ms_1, error_code_2, None, None, assignment_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 2, data, start) from None


def encode_v2(message: SyncGroupResponse) -> bytes:
    try:
        assignment_1 = message.assignment
        return b"".join((_WRITE_ihi(message.throttle_time_ms, message.error_code, len(assignment_1)), assignment_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihi(data, pos)
        pos += 10
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        assignment_3 = data[pos:stop_5]
        pos = stop_5
        return SyncGroupResponse(throttle_time_ms_1, error_code_2, None, None, assignment_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 3, data, start) from None


def encode_v3(message: SyncGroupResponse) -> bytes:
    try:
        assignment_1 = message.assignment
        return b"".join((_WRITE_ihi(message.throttle_time_ms, message.error_code, len(assignment_1)), assignment_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        stop_5 = pos + n_4 - 1
        if stop_5 > end:
            raise ValueError
        assignment_3 = data[pos:stop_5]
        pos = stop_5
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SyncGroupResponse(throttle_time_ms_1, error_code_2, None, None, assignment_3), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 4, data, start) from None


def encode_v4(message: SyncGroupResponse) -> bytes:
    try:
        assignment_1 = message.assignment
        n_2 = len(assignment_1) + 1
        return b"".join((_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), assignment_1, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[SyncGroupResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
            if n_4 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_type_3: str | None = None
        if n_4 > 0:
            stop_5 = pos + n_4 - 1
            if stop_5 > end:
                raise ValueError
            protocol_type_3 = data[pos:stop_5].decode()
            pos = stop_5
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        protocol_name_6: str | None = None
        if n_7 > 0:
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            protocol_name_6 = data[pos:stop_8].decode()
            pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_10 == 0:
            raise ValueError
        stop_11 = pos + n_10 - 1
        if stop_11 > end:
            raise ValueError
        assignment_9 = data[pos:stop_11]
        pos = stop_11
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return SyncGroupResponse(throttle_time_ms_1, error_code_2, protocol_type_3, protocol_name_6, assignment_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(SyncGroupResponse, 5, data, start) from None


def encode_v5(message: SyncGroupResponse) -> bytes:
    try:
        raw_2 = message.protocol_type
        if raw_2 is None:
            protocol_type_1 = b""
            n_3 = 0
        else:
            protocol_type_1 = raw_2.encode()
            n_3 = len(protocol_type_1) + 1
        raw_5 = message.protocol_name
        if raw_5 is None:
            protocol_name_4 = b""
            n_6 = 0
        else:
            protocol_name_4 = raw_5.encode()
            n_6 = len(protocol_name_4) + 1
        assignment_7 = message.assignment
        n_8 = len(assignment_7) + 1
        return b"".join((_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), protocol_type_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), protocol_name_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), assignment_7, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(SyncGroupResponse, 5, error) from error
