"""DescribeConfigsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    DescribeConfigsResponse,
    DescribeConfigsResponseDescribeConfigsResourceResult,
    DescribeConfigsResponseDescribeConfigsResult,
    DescribeConfigsResponseDescribeConfigsSynonym,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_ZbZ = Struct(">?b?").unpack_from
_READ_ZbZi = Struct(">?b?i").unpack_from
_READ_b = Struct(">b").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_ZbZ = Struct(">?b?").pack
_WRITE_ZbZi = Struct(">?b?i").pack
_WRITE_b = Struct(">b").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_bx = Struct(">bx").pack
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v1(data: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[DescribeConfigsResponseDescribeConfigsResult] = []
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
            n_14, = _READ_i(data, pos)
            pos += 4
            if n_14 < 0:
                raise ValueError
            if n_14 > (end - pos) // 11:
                raise ValueError
            items_15: list[DescribeConfigsResponseDescribeConfigsResourceResult] = []
            for _ in range(n_14):
                n_17, = _READ_h(data, pos)
                pos += 2
                if n_17 < 0:
                    raise ValueError
                stop_18 = pos + n_17
                if stop_18 > end:
                    raise ValueError
                name_16 = data[pos:stop_18].decode()
                pos = stop_18
                n_20, = _READ_h(data, pos)
                pos += 2
                value_19: str | None = None
                if n_20 >= 0:
                    stop_21 = pos + n_20
                    if stop_21 > end:
                        raise ValueError
                    value_19 = data[pos:stop_21].decode()
                    pos = stop_21
                elif n_20 != -1:
                    raise ValueError
                read_only_22, config_source_23, is_sensitive_24, n_26 = _READ_ZbZi(data, pos)
                pos += 7
                if n_26 < 0:
                    raise ValueError
                if n_26 > (end - pos) // 5:
                    raise ValueError
                items_27: list[DescribeConfigsResponseDescribeConfigsSynonym] = []
                for _ in range(n_26):
                    n_29, = _READ_h(data, pos)
                    pos += 2
                    if n_29 < 0:
                        raise ValueError
                    stop_30 = pos + n_29
                    if stop_30 > end:
                        raise ValueError
                    name_28 = data[pos:stop_30].decode()
                    pos = stop_30
                    n_32, = _READ_h(data, pos)
                    pos += 2
                    value_31: str | None = None
                    if n_32 >= 0:
                        stop_33 = pos + n_32
                        if stop_33 > end:
                            raise ValueError
                        value_31 = data[pos:stop_33].decode()
                        pos = stop_33
                    elif n_32 != -1:
                        raise ValueError
                    source_34, = _READ_b(data, pos)
                    pos += 1
                    items_27.append(DescribeConfigsResponseDescribeConfigsSynonym(name_28, value_31, source_34))
                synonyms_25 = items_27
                items_15.append(DescribeConfigsResponseDescribeConfigsResourceResult(name_16, value_19, read_only_22, config_source_23, is_sensitive_24, synonyms_25, 0, ''))
            configs_13 = items_15
            items_4.append(DescribeConfigsResponseDescribeConfigsResult(error_code_5, error_message_6, resource_type_9, resource_name_10, configs_13))
        results_2 = items_4
        return DescribeConfigsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsResponse, 1, data, start) from None


def encode_v1(message: DescribeConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DescribeConfigsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            resource_name_5 = item_2.resource_name.encode()
            configs_6 = item_2.configs
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_bh(item_2.resource_type, len(resource_name_5)), resource_name_5, _WRITE_i(len(configs_6)))
            for item_7 in configs_6:
                name_8 = item_7.name.encode()
                raw_10 = item_7.value
                value_9 = b"" if raw_10 is None else raw_10.encode()
                synonyms_11 = item_7.synonyms
                out += (_WRITE_h(len(name_8)), name_8, _WRITE_h(-1 if raw_10 is None else len(value_9)), value_9, _WRITE_ZbZi(item_7.read_only, item_7.config_source, item_7.is_sensitive, len(synonyms_11)))
                for item_12 in synonyms_11:
                    name_13 = item_12.name.encode()
                    raw_15 = item_12.value
                    value_14 = b"" if raw_15 is None else raw_15.encode()
                    out += (_WRITE_h(len(name_13)), name_13, _WRITE_h(-1 if raw_15 is None else len(value_14)), value_14, _WRITE_b(item_12.source))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[DescribeConfigsResponseDescribeConfigsResult] = []
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
            n_14, = _READ_i(data, pos)
            pos += 4
            if n_14 < 0:
                raise ValueError
            if n_14 > (end - pos) // 11:
                raise ValueError
            items_15: list[DescribeConfigsResponseDescribeConfigsResourceResult] = []
            for _ in range(n_14):
                n_17, = _READ_h(data, pos)
                pos += 2
                if n_17 < 0:
                    raise ValueError
                stop_18 = pos + n_17
                if stop_18 > end:
                    raise ValueError
                name_16 = data[pos:stop_18].decode()
                pos = stop_18
                n_20, = _READ_h(data, pos)
                pos += 2
                value_19: str | None = None
                if n_20 >= 0:
                    stop_21 = pos + n_20
                    if stop_21 > end:
                        raise ValueError
                    value_19 = data[pos:stop_21].decode()
                    pos = stop_21
                elif n_20 != -1:
                    raise ValueError
                read_only_22, config_source_23, is_sensitive_24, n_26 = _READ_ZbZi(data, pos)
                pos += 7
                if n_26 < 0:
                    raise ValueError
                if n_26 > (end - pos) // 5:
                    raise ValueError
                items_27: list[DescribeConfigsResponseDescribeConfigsSynonym] = []
                for _ in range(n_26):
                    n_29, = _READ_h(data, pos)
                    pos += 2
                    if n_29 < 0:
                        raise ValueError
                    stop_30 = pos + n_29
                    if stop_30 > end:
                        raise ValueError
                    name_28 = data[pos:stop_30].decode()
                    pos = stop_30
                    n_32, = _READ_h(data, pos)
                    pos += 2
                    value_31: str | None = None
                    if n_32 >= 0:
                        stop_33 = pos + n_32
                        if stop_33 > end:
                            raise ValueError
                        value_31 = data[pos:stop_33].decode()
                        pos = stop_33
                    elif n_32 != -1:
                        raise ValueError
                    source_34, = _READ_b(data, pos)
                    pos += 1
                    items_27.append(DescribeConfigsResponseDescribeConfigsSynonym(name_28, value_31, source_34))
                synonyms_25 = items_27
                items_15.append(DescribeConfigsResponseDescribeConfigsResourceResult(name_16, value_19, read_only_22, config_source_23, is_sensitive_24, synonyms_25, 0, ''))
            configs_13 = items_15
            items_4.append(DescribeConfigsResponseDescribeConfigsResult(error_code_5, error_message_6, resource_type_9, resource_name_10, configs_13))
        results_2 = items_4
        return DescribeConfigsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsResponse, 2, data, start) from None


def encode_v2(message: DescribeConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DescribeConfigsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            resource_name_5 = item_2.resource_name.encode()
            configs_6 = item_2.configs
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_bh(item_2.resource_type, len(resource_name_5)), resource_name_5, _WRITE_i(len(configs_6)))
            for item_7 in configs_6:
                name_8 = item_7.name.encode()
                raw_10 = item_7.value
                value_9 = b"" if raw_10 is None else raw_10.encode()
                synonyms_11 = item_7.synonyms
                out += (_WRITE_h(len(name_8)), name_8, _WRITE_h(-1 if raw_10 is None else len(value_9)), value_9, _WRITE_ZbZi(item_7.read_only, item_7.config_source, item_7.is_sensitive, len(synonyms_11)))
                for item_12 in synonyms_11:
                    name_13 = item_12.name.encode()
                    raw_15 = item_12.value
                    value_14 = b"" if raw_15 is None else raw_15.encode()
                    out += (_WRITE_h(len(name_13)), name_13, _WRITE_h(-1 if raw_15 is None else len(value_14)), value_14, _WRITE_b(item_12.source))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[DescribeConfigsResponseDescribeConfigsResult] = []
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
            n_14, = _READ_i(data, pos)
            pos += 4
            if n_14 < 0:
                raise ValueError
            if n_14 > (end - pos) // 14:
                raise ValueError
            items_15: list[DescribeConfigsResponseDescribeConfigsResourceResult] = []
            for _ in range(n_14):
                n_17, = _READ_h(data, pos)
                pos += 2
                if n_17 < 0:
                    raise ValueError
                stop_18 = pos + n_17
                if stop_18 > end:
                    raise ValueError
                name_16 = data[pos:stop_18].decode()
                pos = stop_18
                n_20, = _READ_h(data, pos)
                pos += 2
                value_19: str | None = None
                if n_20 >= 0:
                    stop_21 = pos + n_20
                    if stop_21 > end:
                        raise ValueError
                    value_19 = data[pos:stop_21].decode()
                    pos = stop_21
                elif n_20 != -1:
                    raise ValueError
                read_only_22, config_source_23, is_sensitive_24, n_26 = _READ_ZbZi(data, pos)
                pos += 7
                if n_26 < 0:
                    raise ValueError
                if n_26 > (end - pos) // 5:
                    raise ValueError
                items_27: list[DescribeConfigsResponseDescribeConfigsSynonym] = []
                for _ in range(n_26):
                    n_29, = _READ_h(data, pos)
                    pos += 2
                    if n_29 < 0:
                        raise ValueError
                    stop_30 = pos + n_29
                    if stop_30 > end:
                        raise ValueError
                    name_28 = data[pos:stop_30].decode()
                    pos = stop_30
                    n_32, = _READ_h(data, pos)
                    pos += 2
                    value_31: str | None = None
                    if n_32 >= 0:
                        stop_33 = pos + n_32
                        if stop_33 > end:
                            raise ValueError
                        value_31 = data[pos:stop_33].decode()
                        pos = stop_33
                    elif n_32 != -1:
                        raise ValueError
                    source_34, = _READ_b(data, pos)
                    pos += 1
                    items_27.append(DescribeConfigsResponseDescribeConfigsSynonym(name_28, value_31, source_34))
                synonyms_25 = items_27
                config_type_35, n_37 = _READ_bh(data, pos)
                pos += 3
                documentation_36: str | None = None
                if n_37 >= 0:
                    stop_38 = pos + n_37
                    if stop_38 > end:
                        raise ValueError
                    documentation_36 = data[pos:stop_38].decode()
                    pos = stop_38
                elif n_37 != -1:
                    raise ValueError
                items_15.append(DescribeConfigsResponseDescribeConfigsResourceResult(name_16, value_19, read_only_22, config_source_23, is_sensitive_24, synonyms_25, config_type_35, documentation_36))
            configs_13 = items_15
            items_4.append(DescribeConfigsResponseDescribeConfigsResult(error_code_5, error_message_6, resource_type_9, resource_name_10, configs_13))
        results_2 = items_4
        return DescribeConfigsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsResponse, 3, data, start) from None


def encode_v3(message: DescribeConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: DescribeConfigsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            resource_name_5 = item_2.resource_name.encode()
            configs_6 = item_2.configs
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_bh(item_2.resource_type, len(resource_name_5)), resource_name_5, _WRITE_i(len(configs_6)))
            for item_7 in configs_6:
                name_8 = item_7.name.encode()
                raw_10 = item_7.value
                value_9 = b"" if raw_10 is None else raw_10.encode()
                synonyms_11 = item_7.synonyms
                out += (_WRITE_h(len(name_8)), name_8, _WRITE_h(-1 if raw_10 is None else len(value_9)), value_9, _WRITE_ZbZi(item_7.read_only, item_7.config_source, item_7.is_sensitive, len(synonyms_11)))
                for item_12 in synonyms_11:
                    name_13 = item_12.name.encode()
                    raw_15 = item_12.value
                    value_14 = b"" if raw_15 is None else raw_15.encode()
                    out += (_WRITE_h(len(name_13)), name_13, _WRITE_h(-1 if raw_15 is None else len(value_14)), value_14, _WRITE_b(item_12.source))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                raw_17 = item_7.documentation
                documentation_16 = b"" if raw_17 is None else raw_17.encode()
                out += (_WRITE_bh(item_7.config_type, -1 if raw_17 is None else len(documentation_16)), documentation_16)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
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
        if n_3 > (end - pos) // 7:
            raise ValueError
        items_4: list[DescribeConfigsResponseDescribeConfigsResult] = []
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
            n_14 = data[pos]
            if n_14 > 127:
                n_14, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_14 == 0:
                raise ValueError
            n_14 -= 1
            if n_14 > (end - pos) // 9:
                raise ValueError
            items_15: list[DescribeConfigsResponseDescribeConfigsResourceResult] = []
            for _ in range(n_14):
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                    if n_17 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                stop_18 = pos + n_17 - 1
                if stop_18 > end:
                    raise ValueError
                name_16 = data[pos:stop_18].decode()
                pos = stop_18
                n_20 = data[pos]
                if n_20 > 127:
                    n_20, pos = read_uvarint(data, pos)
                    if n_20 > 32768:
                        raise ValueError
                else:
                    pos += 1
                value_19: str | None = None
                if n_20 > 0:
                    stop_21 = pos + n_20 - 1
                    if stop_21 > end:
                        raise ValueError
                    value_19 = data[pos:stop_21].decode()
                    pos = stop_21
                read_only_22, config_source_23, is_sensitive_24 = _READ_ZbZ(data, pos)
                pos += 3
                n_26 = data[pos]
                if n_26 > 127:
                    n_26, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_26 == 0:
                    raise ValueError
                n_26 -= 1
                if n_26 > (end - pos) // 4:
                    raise ValueError
                items_27: list[DescribeConfigsResponseDescribeConfigsSynonym] = []
                for _ in range(n_26):
                    n_29 = data[pos]
                    if n_29 > 127:
                        n_29, pos = read_uvarint(data, pos)
                        if n_29 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_29 == 0:
                        raise ValueError
                    stop_30 = pos + n_29 - 1
                    if stop_30 > end:
                        raise ValueError
                    name_28 = data[pos:stop_30].decode()
                    pos = stop_30
                    n_32 = data[pos]
                    if n_32 > 127:
                        n_32, pos = read_uvarint(data, pos)
                        if n_32 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    value_31: str | None = None
                    if n_32 > 0:
                        stop_33 = pos + n_32 - 1
                        if stop_33 > end:
                            raise ValueError
                        value_31 = data[pos:stop_33].decode()
                        pos = stop_33
                    source_34, = _READ_b(data, pos)
                    pos += 1
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_27.append(DescribeConfigsResponseDescribeConfigsSynonym(name_28, value_31, source_34))
                synonyms_25 = items_27
                config_type_35, = _READ_b(data, pos)
                pos += 1
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                    if n_37 > 32768:
                        raise ValueError
                else:
                    pos += 1
                documentation_36: str | None = None
                if n_37 > 0:
                    stop_38 = pos + n_37 - 1
                    if stop_38 > end:
                        raise ValueError
                    documentation_36 = data[pos:stop_38].decode()
                    pos = stop_38
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_15.append(DescribeConfigsResponseDescribeConfigsResourceResult(name_16, value_19, read_only_22, config_source_23, is_sensitive_24, synonyms_25, config_type_35, documentation_36))
            configs_13 = items_15
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DescribeConfigsResponseDescribeConfigsResult(error_code_5, error_message_6, resource_type_9, resource_name_10, configs_13))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeConfigsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsResponse, 4, data, start) from None


def encode_v4(message: DescribeConfigsResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: DescribeConfigsResponse) -> Iterator[bytes]:
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
            resource_name_7 = item_3.resource_name.encode()
            n_8 = len(resource_name_7) + 1
            configs_9 = item_3.configs
            n_10 = len(configs_9) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, _WRITE_b(item_3.resource_type), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), resource_name_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
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
                synonyms_17 = item_11.synonyms
                n_18 = len(synonyms_17) + 1
                out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), name_12, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), value_14, _WRITE_ZbZ(item_11.read_only, item_11.config_source, item_11.is_sensitive), UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18))
                for item_19 in synonyms_17:
                    name_20 = item_19.name.encode()
                    n_21 = len(name_20) + 1
                    raw_23 = item_19.value
                    if raw_23 is None:
                        value_22 = b""
                        n_24 = 0
                    else:
                        value_22 = raw_23.encode()
                        n_24 = len(value_22) + 1
                    out += (UVARINT[n_21] if n_21 < 4096 else write_uvarint(n_21), name_20, UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), value_22, _WRITE_bx(item_19.source))
                    if len(out) > PIECE_ITEMS:
                        yield b"".join(out)
                        out = []
                raw_26 = item_11.documentation
                if raw_26 is None:
                    documentation_25 = b""
                    n_27 = 0
                else:
                    documentation_25 = raw_26.encode()
                    n_27 = len(documentation_25) + 1
                out += (_WRITE_b(item_11.config_type), UVARINT[n_27] if n_27 < 4096 else write_uvarint(n_27), documentation_25, b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsResponse, 4, error) from error
