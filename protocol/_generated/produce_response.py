"""ProduceResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    ProduceResponse,
    ProduceResponseBatchIndexAndErrorMessage,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihqq = Struct(">ihqq").unpack_from
_READ_ihqqq = Struct(">ihqqq").unpack_from
_READ_ihqqqi = Struct(">ihqqqi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihqq = Struct(">ihqq").pack
_WRITE_ihqqq = Struct(">ihqqq").pack
_WRITE_ihqqqi = Struct(">ihqqqi").pack
_WRITE_ix = Struct(">ix").pack


def decode_v3(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 22:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13 = _READ_ihqq(data, pos)
                pos += 22
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, -1, [], None))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_14, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 3, data, start) from None


def encode_v3(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                out.append(_WRITE_ihqq(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 22:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13 = _READ_ihqq(data, pos)
                pos += 22
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, -1, [], None))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_14, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 4, data, start) from None


def encode_v4(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                out.append(_WRITE_ihqq(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 30:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14 = _READ_ihqqq(data, pos)
                pos += 30
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, [], None))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_15, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 5, data, start) from None


def encode_v5(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                out.append(_WRITE_ihqqq(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms, item_5.log_start_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 30:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14 = _READ_ihqqq(data, pos)
                pos += 30
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, [], None))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_15, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 6, data, start) from None


def encode_v6(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                out.append(_WRITE_ihqqq(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms, item_5.log_start_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 30:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14 = _READ_ihqqq(data, pos)
                pos += 30
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, [], None))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_15, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 7, data, start) from None


def encode_v7(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                out.append(_WRITE_ihqqq(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms, item_5.log_start_offset))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 7, error) from error


def decode_v8(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 6:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8, = _READ_i(data, pos)
            pos += 4
            if n_8 < 0:
                raise ValueError
            if n_8 > (end - pos) // 36:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, n_16 = _READ_ihqqqi(data, pos)
                pos += 34
                if n_16 < 0:
                    raise ValueError
                if n_16 > (end - pos) // 6:
                    raise ValueError
                items_17: list[ProduceResponseBatchIndexAndErrorMessage] = []
                for _ in range(n_16):
                    batch_index_18, n_20 = _READ_ih(data, pos)
                    pos += 6
                    batch_index_error_message_19: str | None = None
                    if n_20 >= 0:
                        stop_21 = pos + n_20
                        if stop_21 > end:
                            raise ValueError
                        batch_index_error_message_19 = data[pos:stop_21].decode()
                        pos = stop_21
                    elif n_20 != -1:
                        raise ValueError
                    items_17.append(ProduceResponseBatchIndexAndErrorMessage(batch_index_18, batch_index_error_message_19))
                record_errors_15 = items_17
                n_23, = _READ_h(data, pos)
                pos += 2
                error_message_22: str | None = None
                if n_23 >= 0:
                    stop_24 = pos + n_23
                    if stop_24 > end:
                        raise ValueError
                    error_message_22 = data[pos:stop_24].decode()
                    pos = stop_24
                elif n_23 != -1:
                    raise ValueError
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, record_errors_15, error_message_22))
            partition_responses_7 = items_9
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_25, = _READ_i(data, pos)
        pos += 4
        return ProduceResponse(responses_1, throttle_time_ms_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 8, data, start) from None


def encode_v8(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v8(message))


def encode_pieces_v8(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_i(len(responses_1)))
        for item_2 in responses_1:
            name_3 = item_2.name.encode()
            partition_responses_4 = item_2.partition_responses
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(len(partition_responses_4)))
            for item_5 in partition_responses_4:
                record_errors_6 = item_5.record_errors
                out.append(_WRITE_ihqqqi(item_5.index, item_5.error_code, item_5.base_offset, item_5.log_append_time_ms, item_5.log_start_offset, len(record_errors_6)))
                for item_7 in record_errors_6:
                    raw_9 = item_7.batch_index_error_message
                    batch_index_error_message_8 = b"" if raw_9 is None else raw_9.encode()
                    out += (_WRITE_ih(item_7.batch_index, -1 if raw_9 is None else len(batch_index_error_message_8)), batch_index_error_message_8)
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                raw_11 = item_5.error_message
                error_message_10 = b"" if raw_11 is None else raw_11.encode()
                out += (_WRITE_h(-1 if raw_11 is None else len(error_message_10)), error_message_10)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 8, error) from error


def decode_v9(data: bytes, pos: int) -> tuple[ProduceResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        n_2 -= 1
        if n_2 > (end - pos) // 3:
            raise ValueError
        items_3: list[ProduceResponseTopicProduceResponse] = []
        for _ in range(n_2):
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
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8 = data[pos]
            if n_8 > 127:
                n_8, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_8 == 0:
                raise ValueError
            n_8 -= 1
            if n_8 > (end - pos) // 33:
                raise ValueError
            items_9: list[ProduceResponsePartitionProduceResponse] = []
            for _ in range(n_8):
                index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14 = _READ_ihqqq(data, pos)
                pos += 30
                n_16 = data[pos]
                if n_16 > 127:
                    n_16, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_16 == 0:
                    raise ValueError
                n_16 -= 1
                if n_16 > (end - pos) // 6:
                    raise ValueError
                items_17: list[ProduceResponseBatchIndexAndErrorMessage] = []
                for _ in range(n_16):
                    batch_index_18, = _READ_i(data, pos)
                    pos += 4
                    n_20 = data[pos]
                    if n_20 > 127:
                        n_20, pos = read_uvarint(data, pos)
                        if n_20 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    batch_index_error_message_19: str | None = None
                    if n_20 > 0:
                        stop_21 = pos + n_20 - 1
                        if stop_21 > end:
                            raise ValueError
                        batch_index_error_message_19 = data[pos:stop_21].decode()
                        pos = stop_21
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_17.append(ProduceResponseBatchIndexAndErrorMessage(batch_index_18, batch_index_error_message_19))
                record_errors_15 = items_17
                n_23 = data[pos]
                if n_23 > 127:
                    n_23, pos = read_uvarint(data, pos)
                    if n_23 > 32768:
                        raise ValueError
                else:
                    pos += 1
                error_message_22: str | None = None
                if n_23 > 0:
                    stop_24 = pos + n_23 - 1
                    if stop_24 > end:
                        raise ValueError
                    error_message_22 = data[pos:stop_24].decode()
                    pos = stop_24
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_9.append(ProduceResponsePartitionProduceResponse(index_10, error_code_11, base_offset_12, log_append_time_ms_13, log_start_offset_14, record_errors_15, error_message_22))
            partition_responses_7 = items_9
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(ProduceResponseTopicProduceResponse(name_4, partition_responses_7))
        responses_1 = items_3
        throttle_time_ms_25, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ProduceResponse(responses_1, throttle_time_ms_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ProduceResponse, 9, data, start) from None


def encode_v9(message: ProduceResponse) -> bytes:
    return b"".join(encode_pieces_v9(message))


def encode_pieces_v9(message: ProduceResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            partition_responses_6 = item_3.partition_responses
            n_7 = len(partition_responses_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partition_responses_6:
                record_errors_9 = item_8.record_errors
                n_10 = len(record_errors_9) + 1
                out += (_WRITE_ihqqq(item_8.index, item_8.error_code, item_8.base_offset, item_8.log_append_time_ms, item_8.log_start_offset), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                for item_11 in record_errors_9:
                    raw_13 = item_11.batch_index_error_message
                    if raw_13 is None:
                        batch_index_error_message_12 = b""
                        n_14 = 0
                    else:
                        batch_index_error_message_12 = raw_13.encode()
                        n_14 = len(batch_index_error_message_12) + 1
                    out += (_WRITE_i(item_11.batch_index), UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), batch_index_error_message_12, b"\0")
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                raw_16 = item_8.error_message
                if raw_16 is None:
                    error_message_15 = b""
                    n_17 = 0
                else:
                    error_message_15 = raw_16.encode()
                    n_17 = len(error_message_15) + 1
                out += (UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), error_message_15, b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_ix(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ProduceResponse, 9, error) from error
