"""ApiVersionsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.versions import (
    ApiVersionsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ApiVersionsRequest, int]:
    start = pos
    try:
        return ApiVersionsRequest('', ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsRequest, 0, data, start, budget) from None


def encode_v0(message: ApiVersionsRequest) -> bytes:
    try:
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ApiVersionsRequest, int]:
    start = pos
    try:
        return ApiVersionsRequest('', ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsRequest, 1, data, start, budget) from None


def encode_v1(message: ApiVersionsRequest) -> bytes:
    try:
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ApiVersionsRequest, int]:
    start = pos
    try:
        return ApiVersionsRequest('', ''), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsRequest, 2, data, start, budget) from None


def encode_v2(message: ApiVersionsRequest) -> bytes:
    try:
        return b""
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ApiVersionsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
            if n_2 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        stop_3 = pos + n_2 - 1
        if stop_3 > end:
            raise ValueError
        client_software_name_1 = data[pos:stop_3].decode()
        pos = stop_3
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        stop_6 = pos + n_5 - 1
        if stop_6 > end:
            raise ValueError
        client_software_version_4 = data[pos:stop_6].decode()
        pos = stop_6
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ApiVersionsRequest(client_software_name_1, client_software_version_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsRequest, 3, data, start, budget) from None


def encode_v3(message: ApiVersionsRequest) -> bytes:
    try:
        client_software_name_1 = message.client_software_name.encode()
        n_2 = len(client_software_name_1) + 1
        client_software_version_3 = message.client_software_version.encode()
        n_4 = len(client_software_version_3) + 1
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), client_software_name_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), client_software_version_3, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsRequest, 3, error) from error
