"""DeleteTopicsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Uh = Struct(">16sh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_Uh = Struct(">16sh").pack
_WRITE_h = Struct(">h").pack
_WRITE_hx = Struct(">hx").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v1(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
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
            error_code_8, = _READ_h(data, pos)
            pos += 2
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, None))
        responses_2 = items_4
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 1, data, start) from None


def encode_v1(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            raw_4 = item_2.name
            if raw_4 is None:
                raise ValueError("name cannot be null in version 1")
            name_3 = raw_4.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
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
            error_code_8, = _READ_h(data, pos)
            pos += 2
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, None))
        responses_2 = items_4
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 2, data, start) from None


def encode_v2(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            raw_4 = item_2.name
            if raw_4 is None:
                raise ValueError("name cannot be null in version 2")
            name_3 = raw_4.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
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
            error_code_8, = _READ_h(data, pos)
            pos += 2
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, None))
        responses_2 = items_4
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 3, data, start) from None


def encode_v3(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            raw_4 = item_2.name
            if raw_4 is None:
                raise ValueError("name cannot be null in version 3")
            name_3 = raw_4.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
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
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
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
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, None))
        responses_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 4, data, start) from None


def encode_v4(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            raw_5 = item_3.name
            if raw_5 is None:
                raise ValueError("name cannot be null in version 4")
            name_4 = raw_5.encode()
            n_6 = len(name_4) + 1
            out += (UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, _WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
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
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
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
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9))
        responses_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 5, data, start) from None


def encode_v5(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            raw_5 = item_3.name
            if raw_5 is None:
                raise ValueError("name cannot be null in version 5")
            name_4 = raw_5.encode()
            n_6 = len(name_4) + 1
            raw_8 = item_3.error_message
            if raw_8 is None:
                error_message_7 = b""
                n_9 = 0
            else:
                error_message_7 = raw_8.encode()
                n_9 = len(error_message_7) + 1
            out += (UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, _WRITE_h(item_3.error_code), UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), error_message_7, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
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
        if n_3 > (end - pos) // 21:
            raise ValueError
        items_4: list[DeleteTopicsResponseDeletableTopicResult] = []
        for _ in range(n_3):
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            name_5: str | None = None
            if n_6 > 0:
                stop_7 = pos + n_6 - 1
                if stop_7 > end:
                    raise ValueError
                name_5 = data[pos:stop_7].decode()
                pos = stop_7
            topic_id_8, error_code_9 = _READ_Uh(data, pos)
            pos += 18
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                error_message_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteTopicsResponseDeletableTopicResult(name_5, topic_id_8, error_code_9, error_message_10))
        responses_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsResponse(throttle_time_ms_1, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsResponse, 6, data, start) from None


def encode_v6(message: DeleteTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: DeleteTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            raw_5 = item_3.name
            if raw_5 is None:
                name_4 = b""
                n_6 = 0
            else:
                name_4 = raw_5.encode()
                n_6 = len(name_4) + 1
            if len(item_3.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            raw_8 = item_3.error_message
            if raw_8 is None:
                error_message_7 = b""
                n_9 = 0
            else:
                error_message_7 = raw_8.encode()
                n_9 = len(error_message_7) + 1
            out += (UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, _WRITE_Uh(item_3.topic_id, item_3.error_code), UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), error_message_7, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsResponse, 6, error) from error
