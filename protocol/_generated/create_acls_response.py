"""CreateAclsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v1(data: bytes, pos: int) -> tuple[CreateAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[CreateAclsResponseAclCreationResult] = []
        for _ in range(n_3):
            error_code_5, n_7 = _READ_hh(data, pos)
            pos += 4
            error_message_6: str | None = None
            if n_7 >= 0:
                stop_8 = pos + n_7
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
                pos = stop_8
            elif n_7 != -1:
                raise ValueError
            items_4.append(CreateAclsResponseAclCreationResult(error_code_5, error_message_6))
        results_2 = items_4
        return CreateAclsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsResponse, 1, data, start) from None


def encode_v1(message: CreateAclsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: CreateAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[CreateAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[CreateAclsResponseAclCreationResult] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_6: str | None = None
            if n_7 > 0:
                stop_8 = pos + n_7 - 1
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
                pos = stop_8
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(CreateAclsResponseAclCreationResult(error_code_5, error_message_6))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateAclsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsResponse, 2, data, start) from None


def encode_v2(message: CreateAclsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: CreateAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[CreateAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, = _READ_i(data, pos)
        pos += 4
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[CreateAclsResponseAclCreationResult] = []
        for _ in range(n_3):
            error_code_5, = _READ_h(data, pos)
            pos += 2
            n_7 = data[pos]
            if n_7 > 127:
                n_7, pos = read_uvarint(data, pos)
                if n_7 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_6: str | None = None
            if n_7 > 0:
                stop_8 = pos + n_7 - 1
                if stop_8 > end:
                    raise ValueError
                error_message_6 = data[pos:stop_8].decode()
                pos = stop_8
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(CreateAclsResponseAclCreationResult(error_code_5, error_message_6))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateAclsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsResponse, 3, data, start) from None


def encode_v3(message: CreateAclsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: CreateAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsResponse, 3, error) from error
