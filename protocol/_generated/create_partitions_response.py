"""CreatePartitionsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
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


def decode_v0(data: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[CreatePartitionsResponseCreatePartitionsTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, n_10 = _READ_hh(data, pos)
            pos += 4
            error_message_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                error_message_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            items_4.append(CreatePartitionsResponseCreatePartitionsTopicResult(name_5, error_code_8, error_message_9))
        results_2 = items_4
        return CreatePartitionsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsResponse, 0, data, start) from None


def encode_v0(message: CreatePartitionsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: CreatePartitionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            name_3 = item_2.name.encode()
            raw_5 = item_2.error_message
            error_message_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_hh(item_2.error_code, -1 if raw_5 is None else len(error_message_4)), error_message_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[CreatePartitionsResponseCreatePartitionsTopicResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, n_10 = _READ_hh(data, pos)
            pos += 4
            error_message_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                error_message_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            items_4.append(CreatePartitionsResponseCreatePartitionsTopicResult(name_5, error_code_8, error_message_9))
        results_2 = items_4
        return CreatePartitionsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsResponse, 1, data, start) from None


def encode_v1(message: CreatePartitionsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: CreatePartitionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            name_3 = item_2.name.encode()
            raw_5 = item_2.error_message
            error_message_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_hh(item_2.error_code, -1 if raw_5 is None else len(error_message_4)), error_message_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
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
        if n_3 > (end - pos) // 5:
            raise ValueError
        items_4: list[CreatePartitionsResponseCreatePartitionsTopicResult] = []
        for _ in range(n_3):
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_6 == 0:
                raise ValueError
            stop_7 = pos + n_6 - 1
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                error_message_9 = data[pos:stop_11].decode()
                pos = stop_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(CreatePartitionsResponseCreatePartitionsTopicResult(name_5, error_code_8, error_message_9))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreatePartitionsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsResponse, 2, data, start) from None


def encode_v2(message: CreatePartitionsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: CreatePartitionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_h(item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
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
        if n_3 > (end - pos) // 5:
            raise ValueError
        items_4: list[CreatePartitionsResponseCreatePartitionsTopicResult] = []
        for _ in range(n_3):
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_6 == 0:
                raise ValueError
            stop_7 = pos + n_6 - 1
            if stop_7 > end:
                raise ValueError
            name_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                error_message_9 = data[pos:stop_11].decode()
                pos = stop_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(CreatePartitionsResponseCreatePartitionsTopicResult(name_5, error_code_8, error_message_9))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreatePartitionsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsResponse, 3, data, start) from None


def encode_v3(message: CreatePartitionsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: CreatePartitionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_h(item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsResponse, 3, error) from error
