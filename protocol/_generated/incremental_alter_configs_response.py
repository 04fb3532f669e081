"""IncrementalAlterConfigsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v0(data: bytes, pos: int) -> tuple[IncrementalAlterConfigsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 7:
            raise ValueError
        items_4: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = []
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
            resource_type_9, n_11 = _READ_bh(data, pos)
            pos += 3
            if n_11 < 0:
                raise ValueError
            stop_12 = pos + n_11
            if stop_12 > end:
                raise ValueError
            resource_name_10 = data[pos:stop_12].decode()
            pos = stop_12
            items_4.append(IncrementalAlterConfigsResponseAlterConfigsResourceResponse(error_code_5, error_message_6, resource_type_9, resource_name_10))
        responses_2 = items_4
        return IncrementalAlterConfigsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(IncrementalAlterConfigsResponse, 0, data, start) from None


def encode_v0(message: IncrementalAlterConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: IncrementalAlterConfigsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            resource_name_5 = item_2.resource_name.encode()
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_bh(item_2.resource_type, len(resource_name_5)), resource_name_5)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(IncrementalAlterConfigsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[IncrementalAlterConfigsResponse, int]:
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
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = []
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
            resource_type_9, = _READ_b(data, pos)
            pos += 1
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_11 == 0:
                raise ValueError
            stop_12 = pos + n_11 - 1
            if stop_12 > end:
                raise ValueError
            resource_name_10 = data[pos:stop_12].decode()
            pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(IncrementalAlterConfigsResponseAlterConfigsResourceResponse(error_code_5, error_message_6, resource_type_9, resource_name_10))
        responses_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return IncrementalAlterConfigsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(IncrementalAlterConfigsResponse, 1, data, start) from None


def encode_v1(message: IncrementalAlterConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: IncrementalAlterConfigsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            resource_name_7 = item_3.resource_name.encode()
            n_8 = len(resource_name_7) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, _WRITE_b(item_3.resource_type), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), resource_name_7, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(IncrementalAlterConfigsResponse, 1, error) from error
