"""CreateTopicsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicConfigs,
    CreateTopicsResponseCreatableTopicResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_Uh = Struct(">16sh").unpack_from
_READ_ZbZ = Struct(">?b?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_Uh = Struct(">16sh").pack
_WRITE_ZbZx = Struct(">?b?x").pack
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ii = Struct(">ii").pack


def decode_v2(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9, 0, -1, -1, []))
        topics_2 = items_4
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 2, data, start) from None


def encode_v2(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            raw_5 = item_2.error_message
            error_message_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_hh(item_2.error_code, -1 if raw_5 is None else len(error_message_4)), error_message_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9, 0, -1, -1, []))
        topics_2 = items_4
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 3, data, start) from None


def encode_v3(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            raw_5 = item_2.error_message
            error_message_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_hh(item_2.error_code, -1 if raw_5 is None else len(error_message_4)), error_message_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9, 0, -1, -1, []))
        topics_2 = items_4
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 4, data, start) from None


def encode_v4(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_ii(message.throttle_time_ms, len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            raw_5 = item_2.error_message
            error_message_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_hh(item_2.error_code, -1 if raw_5 is None else len(error_message_4)), error_message_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
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
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            num_partitions_13, replication_factor_14 = _READ_ih(data, pos)
            pos += 6
            n_16 = data[pos]
            if n_16 > 127:
                n_16, pos = read_uvarint(data, pos)
            else:
                pos += 1
            configs_15: list[CreateTopicsResponseCreatableTopicConfigs] | None = None
            if n_16 > 0:
                n_16 -= 1
                if n_16 > (end - pos) // 6:
                    raise ValueError
                items_17: list[CreateTopicsResponseCreatableTopicConfigs] = []
                for _ in range(n_16):
                    n_19 = data[pos]
                    if n_19 > 127:
                        n_19, pos = read_uvarint(data, pos)
                        if n_19 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_19 == 0:
                        raise ValueError
                    stop_20 = pos + n_19 - 1
                    if stop_20 > end:
                        raise ValueError
                    name_18 = data[pos:stop_20].decode()
                    pos = stop_20
                    n_22 = data[pos]
                    if n_22 > 127:
                        n_22, pos = read_uvarint(data, pos)
                        if n_22 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    value_21: str | None = None
                    if n_22 > 0:
                        stop_23 = pos + n_22 - 1
                        if stop_23 > end:
                            raise ValueError
                        value_21 = data[pos:stop_23].decode()
                        pos = stop_23
                    read_only_24, config_source_25, is_sensitive_26 = _READ_ZbZ(data, pos)
                    pos += 3
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_17.append(CreateTopicsResponseCreatableTopicConfigs(name_18, value_21, read_only_24, config_source_25, is_sensitive_26))
                configs_15 = items_17
            topic_config_error_code_12 = 0
            count_27, pos = read_uvarint(data, pos)
            if count_27 > (end - pos) // 2:
                raise ValueError
            for _ in range(count_27):
                tag_28, pos = read_uvarint(data, pos)
                stop_29, pos = read_uvarint(data, pos)
                stop_29 += pos
                if stop_29 > end:
                    raise ValueError
                if tag_28 == 0:
                    topic_config_error_code_30, = _READ_h(data, pos)
                    pos += 2
                    topic_config_error_code_12 = topic_config_error_code_30
                    if pos != stop_29:
                        raise ValueError
                else:
                    pos = stop_29
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9, topic_config_error_code_12, num_partitions_13, replication_factor_14, configs_15))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 5, data, start) from None


def encode_v5(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            configs_9 = item_3.configs
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_h(item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, _WRITE_ih(item_3.num_partitions, item_3.replication_factor))
            if configs_9 is None:
                out.append(b"\0")
            else:
                n_10 = len(configs_9) + 1
                out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                for item_11 in configs_9:
                    name_12 = item_11.name.encode()
                    n_13 = len(name_12) + 1
                    raw_15 = item_11.value
                    if raw_15 is None:
                        value_14 = b""
                        n_16 = 0
                    else:
                        value_14 = raw_15.encode()
                        n_16 = len(value_14) + 1
                    out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), name_12, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), value_14, _WRITE_ZbZx(item_11.read_only, item_11.config_source, item_11.is_sensitive))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
            tags_17: list[tuple[int, bytes]] = []
            topic_config_error_code_18 = item_3.topic_config_error_code
            if topic_config_error_code_18 != 0:
                payload_19: list[bytes] = []
                payload_19.append(_WRITE_h(topic_config_error_code_18))
                tags_17.append((0, b"".join(payload_19)))
            out.append(write_tags(tags_17))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
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
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            num_partitions_13, replication_factor_14 = _READ_ih(data, pos)
            pos += 6
            n_16 = data[pos]
            if n_16 > 127:
                n_16, pos = read_uvarint(data, pos)
            else:
                pos += 1
            configs_15: list[CreateTopicsResponseCreatableTopicConfigs] | None = None
            if n_16 > 0:
                n_16 -= 1
                if n_16 > (end - pos) // 6:
                    raise ValueError
                items_17: list[CreateTopicsResponseCreatableTopicConfigs] = []
                for _ in range(n_16):
                    n_19 = data[pos]
                    if n_19 > 127:
                        n_19, pos = read_uvarint(data, pos)
                        if n_19 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_19 == 0:
                        raise ValueError
                    stop_20 = pos + n_19 - 1
                    if stop_20 > end:
                        raise ValueError
                    name_18 = data[pos:stop_20].decode()
                    pos = stop_20
                    n_22 = data[pos]
                    if n_22 > 127:
                        n_22, pos = read_uvarint(data, pos)
                        if n_22 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    value_21: str | None = None
                    if n_22 > 0:
                        stop_23 = pos + n_22 - 1
                        if stop_23 > end:
                            raise ValueError
                        value_21 = data[pos:stop_23].decode()
                        pos = stop_23
                    read_only_24, config_source_25, is_sensitive_26 = _READ_ZbZ(data, pos)
                    pos += 3
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_17.append(CreateTopicsResponseCreatableTopicConfigs(name_18, value_21, read_only_24, config_source_25, is_sensitive_26))
                configs_15 = items_17
            topic_config_error_code_12 = 0
            count_27, pos = read_uvarint(data, pos)
            if count_27 > (end - pos) // 2:
                raise ValueError
            for _ in range(count_27):
                tag_28, pos = read_uvarint(data, pos)
                stop_29, pos = read_uvarint(data, pos)
                stop_29 += pos
                if stop_29 > end:
                    raise ValueError
                if tag_28 == 0:
                    topic_config_error_code_30, = _READ_h(data, pos)
                    pos += 2
                    topic_config_error_code_12 = topic_config_error_code_30
                    if pos != stop_29:
                        raise ValueError
                else:
                    pos = stop_29
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', error_code_8, error_message_9, topic_config_error_code_12, num_partitions_13, replication_factor_14, configs_15))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 6, data, start) from None


def encode_v6(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            configs_9 = item_3.configs
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_h(item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, _WRITE_ih(item_3.num_partitions, item_3.replication_factor))
            if configs_9 is None:
                out.append(b"\0")
            else:
                n_10 = len(configs_9) + 1
                out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                for item_11 in configs_9:
                    name_12 = item_11.name.encode()
                    n_13 = len(name_12) + 1
                    raw_15 = item_11.value
                    if raw_15 is None:
                        value_14 = b""
                        n_16 = 0
                    else:
                        value_14 = raw_15.encode()
                        n_16 = len(value_14) + 1
                    out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), name_12, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), value_14, _WRITE_ZbZx(item_11.read_only, item_11.config_source, item_11.is_sensitive))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
            tags_17: list[tuple[int, bytes]] = []
            topic_config_error_code_18 = item_3.topic_config_error_code
            if topic_config_error_code_18 != 0:
                payload_19: list[bytes] = []
                payload_19.append(_WRITE_h(topic_config_error_code_18))
                tags_17.append((0, b"".join(payload_19)))
            out.append(write_tags(tags_17))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
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
        if n_3 > (end - pos) // 28:
            raise ValueError
        items_4: list[CreateTopicsResponseCreatableTopicResult] = []
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
            num_partitions_14, replication_factor_15 = _READ_ih(data, pos)
            pos += 6
            n_17 = data[pos]
            if n_17 > 127:
                n_17, pos = read_uvarint(data, pos)
            else:
                pos += 1
            configs_16: list[CreateTopicsResponseCreatableTopicConfigs] | None = None
            if n_17 > 0:
                n_17 -= 1
                if n_17 > (end - pos) // 6:
                    raise ValueError
                items_18: list[CreateTopicsResponseCreatableTopicConfigs] = []
                for _ in range(n_17):
                    n_20 = data[pos]
                    if n_20 > 127:
                        n_20, pos = read_uvarint(data, pos)
                        if n_20 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_20 == 0:
                        raise ValueError
                    stop_21 = pos + n_20 - 1
                    if stop_21 > end:
                        raise ValueError
                    name_19 = data[pos:stop_21].decode()
                    pos = stop_21
                    n_23 = data[pos]
                    if n_23 > 127:
                        n_23, pos = read_uvarint(data, pos)
                        if n_23 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    value_22: str | None = None
                    if n_23 > 0:
                        stop_24 = pos + n_23 - 1
                        if stop_24 > end:
                            raise ValueError
                        value_22 = data[pos:stop_24].decode()
                        pos = stop_24
                    read_only_25, config_source_26, is_sensitive_27 = _READ_ZbZ(data, pos)
                    pos += 3
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_18.append(CreateTopicsResponseCreatableTopicConfigs(name_19, value_22, read_only_25, config_source_26, is_sensitive_27))
                configs_16 = items_18
            topic_config_error_code_13 = 0
            count_28, pos = read_uvarint(data, pos)
            if count_28 > (end - pos) // 2:
                raise ValueError
            for _ in range(count_28):
                tag_29, pos = read_uvarint(data, pos)
                stop_30, pos = read_uvarint(data, pos)
                stop_30 += pos
                if stop_30 > end:
                    raise ValueError
                if tag_29 == 0:
                    topic_config_error_code_31, = _READ_h(data, pos)
                    pos += 2
                    topic_config_error_code_13 = topic_config_error_code_31
                    if pos != stop_30:
                        raise ValueError
                else:
                    pos = stop_30
            items_4.append(CreateTopicsResponseCreatableTopicResult(name_5, topic_id_8, error_code_9, error_message_10, topic_config_error_code_13, num_partitions_14, replication_factor_15, configs_16))
        topics_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsResponse(throttle_time_ms_1, topics_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsResponse, 7, data, start) from None


def encode_v7(message: CreateTopicsResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: CreateTopicsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            if len(item_3.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            configs_9 = item_3.configs
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_Uh(item_3.topic_id, item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, _WRITE_ih(item_3.num_partitions, item_3.replication_factor))
            if configs_9 is None:
                out.append(b"\0")
            else:
                n_10 = len(configs_9) + 1
                out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                for item_11 in configs_9:
                    name_12 = item_11.name.encode()
                    n_13 = len(name_12) + 1
                    raw_15 = item_11.value
                    if raw_15 is None:
                        value_14 = b""
                        n_16 = 0
                    else:
                        value_14 = raw_15.encode()
                        n_16 = len(value_14) + 1
                    out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), name_12, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), value_14, _WRITE_ZbZx(item_11.read_only, item_11.config_source, item_11.is_sensitive))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
            tags_17: list[tuple[int, bytes]] = []
            topic_config_error_code_18 = item_3.topic_config_error_code
            if topic_config_error_code_18 != 0:
                payload_19: list[bytes] = []
                payload_19.append(_WRITE_h(topic_config_error_code_18))
                tags_17.append((0, b"".join(payload_19)))
            out.append(write_tags(tags_17))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsResponse, 7, error) from error
