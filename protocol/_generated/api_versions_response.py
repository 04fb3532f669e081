"""ApiVersionsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.versions import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    ApiVersionsResponseFinalizedFeatureKey,
    ApiVersionsResponseSupportedFeatureKey,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_hhh = Struct(">hhh").unpack_from
_READ_hi = Struct(">hi").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_q = Struct(">q").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_h = Struct(">h").pack
_WRITE_hhh = Struct(">hhh").pack
_WRITE_hhhx = Struct(">hhhx").pack
_WRITE_hhx = Struct(">hhx").pack
_WRITE_hi = Struct(">hi").pack
_WRITE_i = Struct(">i").pack
_WRITE_q = Struct(">q").pack


def decode_v0(data: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ApiVersionsResponseApiVersion] = []
        for _ in range(n_3):
            api_key_5, min_version_6, max_version_7 = _READ_hhh(data, pos)
            pos += 6
            items_4.append(ApiVersionsResponseApiVersion(api_key_5, min_version_6, max_version_7))
        api_keys_2 = items_4
        return ApiVersionsResponse(error_code_1, api_keys_2, 0, [], -1, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsResponse, 0, data, start) from None


def encode_v0(message: ApiVersionsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: ApiVersionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        api_keys_1 = message.api_keys
        out.append(_WRITE_hi(message.error_code, len(api_keys_1)))
        for item_2 in api_keys_1:
            out.append(_WRITE_hhh(item_2.api_key, item_2.min_version, item_2.max_version))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ApiVersionsResponseApiVersion] = []
        for _ in range(n_3):
            api_key_5, min_version_6, max_version_7 = _READ_hhh(data, pos)
            pos += 6
            items_4.append(ApiVersionsResponseApiVersion(api_key_5, min_version_6, max_version_7))
        api_keys_2 = items_4
        throttle_time_ms_8, = _READ_i(data, pos)
        pos += 4
        return ApiVersionsResponse(error_code_1, api_keys_2, throttle_time_ms_8, [], -1, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsResponse, 1, data, start) from None


def encode_v1(message: ApiVersionsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: ApiVersionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        api_keys_1 = message.api_keys
        out.append(_WRITE_hi(message.error_code, len(api_keys_1)))
        for item_2 in api_keys_1:
            out.append(_WRITE_hhh(item_2.api_key, item_2.min_version, item_2.max_version))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, n_3 = _READ_hi(data, pos)
        pos += 6
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[ApiVersionsResponseApiVersion] = []
        for _ in range(n_3):
            api_key_5, min_version_6, max_version_7 = _READ_hhh(data, pos)
            pos += 6
            items_4.append(ApiVersionsResponseApiVersion(api_key_5, min_version_6, max_version_7))
        api_keys_2 = items_4
        throttle_time_ms_8, = _READ_i(data, pos)
        pos += 4
        return ApiVersionsResponse(error_code_1, api_keys_2, throttle_time_ms_8, [], -1, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsResponse, 2, data, start) from None


def encode_v2(message: ApiVersionsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: ApiVersionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        api_keys_1 = message.api_keys
        out.append(_WRITE_hi(message.error_code, len(api_keys_1)))
        for item_2 in api_keys_1:
            out.append(_WRITE_hhh(item_2.api_key, item_2.min_version, item_2.max_version))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, = _READ_h(data, pos)
        pos += 2
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
        items_4: list[ApiVersionsResponseApiVersion] = []
        for _ in range(n_3):
            api_key_5, min_version_6, max_version_7 = _READ_hhh(data, pos)
            pos += 6
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(ApiVersionsResponseApiVersion(api_key_5, min_version_6, max_version_7))
        api_keys_2 = items_4
        throttle_time_ms_8, = _READ_i(data, pos)
        pos += 4
        supported_features_9 = []
        finalized_features_epoch_10 = -1
        finalized_features_11 = []
        zk_migration_ready_12 = False
        count_13, pos = read_uvarint(data, pos)
        if count_13 > (end - pos) // 2:
            raise ValueError
        for _ in range(count_13):
            tag_14, pos = read_uvarint(data, pos)
            stop_15, pos = read_uvarint(data, pos)
            stop_15 += pos
            if stop_15 > end:
                raise ValueError
            if tag_14 == 0:
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                n_17 -= 1
                if n_17 > (end - pos) // 6:
                    raise ValueError
                items_18: list[ApiVersionsResponseSupportedFeatureKey] = []
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
                    min_version_22, max_version_23 = _READ_hh(data, pos)
                    pos += 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_18.append(ApiVersionsResponseSupportedFeatureKey(name_19, min_version_22, max_version_23))
                supported_features_16 = items_18
                supported_features_9 = supported_features_16
                if pos != stop_15:
                    raise ValueError
            elif tag_14 == 1:
                finalized_features_epoch_24, = _READ_q(data, pos)
                pos += 8
                finalized_features_epoch_10 = finalized_features_epoch_24
                if pos != stop_15:
                    raise ValueError
            elif tag_14 == 2:
                n_26 = data[pos]
                if n_26 > 127:
                    n_26, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_26 == 0:
                    raise ValueError
                n_26 -= 1
                if n_26 > (end - pos) // 6:
                    raise ValueError
                items_27: list[ApiVersionsResponseFinalizedFeatureKey] = []
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
                    max_version_level_31, min_version_level_32 = _READ_hh(data, pos)
                    pos += 4
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_27.append(ApiVersionsResponseFinalizedFeatureKey(name_28, max_version_level_31, min_version_level_32))
                finalized_features_25 = items_27
                finalized_features_11 = finalized_features_25
                if pos != stop_15:
                    raise ValueError
            elif tag_14 == 3:
                zk_migration_ready_33, = _READ_Z(data, pos)
                pos += 1
                zk_migration_ready_12 = zk_migration_ready_33
                if pos != stop_15:
                    raise ValueError
            else:
                pos = stop_15
        return ApiVersionsResponse(error_code_1, api_keys_2, throttle_time_ms_8, supported_features_9, finalized_features_epoch_10, finalized_features_11, zk_migration_ready_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ApiVersionsResponse, 3, data, start) from None


def encode_v3(message: ApiVersionsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: ApiVersionsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        api_keys_1 = message.api_keys
        n_2 = len(api_keys_1) + 1
        out += (_WRITE_h(message.error_code), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in api_keys_1:
            out.append(_WRITE_hhhx(item_3.api_key, item_3.min_version, item_3.max_version))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.throttle_time_ms))
        tags_4: list[tuple[int, bytes]] = []
        supported_features_5 = message.supported_features
        if supported_features_5 != []:
            payload_6: list[bytes] = []
            supported_features_7 = supported_features_5
            n_8 = len(supported_features_7) + 1
            payload_6.append(UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8))
            for item_9 in supported_features_7:
                name_10 = item_9.name.encode()
                n_11 = len(name_10) + 1
                payload_6 += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), name_10, _WRITE_hhx(item_9.min_version, item_9.max_version))
            tags_4.append((0, b"".join(payload_6)))
        finalized_features_epoch_12 = message.finalized_features_epoch
        if finalized_features_epoch_12 != -1:
            payload_13: list[bytes] = []
            payload_13.append(_WRITE_q(finalized_features_epoch_12))
            tags_4.append((1, b"".join(payload_13)))
        finalized_features_14 = message.finalized_features
        if finalized_features_14 != []:
            payload_15: list[bytes] = []
            finalized_features_16 = finalized_features_14
            n_17 = len(finalized_features_16) + 1
            payload_15.append(UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17))
            for item_18 in finalized_features_16:
                name_19 = item_18.name.encode()
                n_20 = len(name_19) + 1
                payload_15 += (UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20), name_19, _WRITE_hhx(item_18.max_version_level, item_18.min_version_level))
            tags_4.append((2, b"".join(payload_15)))
        zk_migration_ready_21 = message.zk_migration_ready
        if zk_migration_ready_21 != False:
            payload_22: list[bytes] = []
            payload_22.append(_WRITE_Z(zk_migration_ready_21))
            tags_4.append((3, b"".join(payload_22)))
        out.append(write_tags(tags_4))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ApiVersionsResponse, 3, error) from error
