"""DeleteAclsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
    DeleteAclsResponseDeleteAclsMatchingAcl,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bb = Struct(">bb").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bb = Struct(">bb").pack
_WRITE_bbx = Struct(">bbx").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v1(data: bytes, pos: int) -> tuple[DeleteAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 8:
            raise ValueError
        items_4: list[DeleteAclsResponseDeleteAclsFilterResult] = []
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
            n_10, = _READ_i(data, pos)
            pos += 4
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 14:
                raise ValueError
            items_11: list[DeleteAclsResponseDeleteAclsMatchingAcl] = []
            for _ in range(n_10):
                error_code_12, n_14 = _READ_hh(data, pos)
                pos += 4
                error_message_13: str | None = None
                if n_14 >= 0:
                    stop_15 = pos + n_14
                    if stop_15 > end:
                        raise ValueError
                    error_message_13 = data[pos:stop_15].decode()
                    pos = stop_15
                elif n_14 != -1:
                    raise ValueError
                resource_type_16, n_18 = _READ_bh(data, pos)
                pos += 3
                if n_18 < 0:
                    raise ValueError
                stop_19 = pos + n_18
                if stop_19 > end:
                    raise ValueError
                resource_name_17 = data[pos:stop_19].decode()
                pos = stop_19
                pattern_type_20, n_22 = _READ_bh(data, pos)
                pos += 3
                if n_22 < 0:
                    raise ValueError
                stop_23 = pos + n_22
                if stop_23 > end:
                    raise ValueError
                principal_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25, = _READ_h(data, pos)
                pos += 2
                if n_25 < 0:
                    raise ValueError
                stop_26 = pos + n_25
                if stop_26 > end:
                    raise ValueError
                host_24 = data[pos:stop_26].decode()
                pos = stop_26
                operation_27, permission_type_28 = _READ_bb(data, pos)
                pos += 2
                items_11.append(DeleteAclsResponseDeleteAclsMatchingAcl(error_code_12, error_message_13, resource_type_16, resource_name_17, pattern_type_20, principal_21, host_24, operation_27, permission_type_28))
            matching_acls_9 = items_11
            items_4.append(DeleteAclsResponseDeleteAclsFilterResult(error_code_5, error_message_6, matching_acls_9))
        filter_results_2 = items_4
        return DeleteAclsResponse(throttle_time_ms_1, filter_results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsResponse, 1, data, start) from None


def encode_v1(message: DeleteAclsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DeleteAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        filter_results_1 = message.filter_results
        out.append(_WRITE_ii(message.throttle_time_ms, len(filter_results_1)))
        for item_2 in filter_results_1:
            raw_4 = item_2.error_message
            error_message_3 = b"" if raw_4 is None else raw_4.encode()
            matching_acls_5 = item_2.matching_acls
            out += (_WRITE_hh(item_2.error_code, -1 if raw_4 is None else len(error_message_3)), error_message_3, _WRITE_i(len(matching_acls_5)))
            for item_6 in matching_acls_5:
                raw_8 = item_6.error_message
                error_message_7 = b"" if raw_8 is None else raw_8.encode()
                resource_name_9 = item_6.resource_name.encode()
                principal_10 = item_6.principal.encode()
                host_11 = item_6.host.encode()
                out += (_WRITE_hh(item_6.error_code, -1 if raw_8 is None else len(error_message_7)), error_message_7, _WRITE_bh(item_6.resource_type, len(resource_name_9)), resource_name_9, _WRITE_bh(item_6.pattern_type, len(principal_10)), principal_10, _WRITE_h(len(host_11)), host_11, _WRITE_bb(item_6.operation, item_6.permission_type))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteAclsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DeleteAclsResponse, int]:
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
        items_4: list[DeleteAclsResponseDeleteAclsFilterResult] = []
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
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 11:
                raise ValueError
            items_11: list[DeleteAclsResponseDeleteAclsMatchingAcl] = []
            for _ in range(n_10):
                error_code_12, = _READ_h(data, pos)
                pos += 2
                n_14 = data[pos]
                if n_14 > 127:
                    n_14, pos = read_uvarint(data, pos)
                    if n_14 > 32768:
                        raise ValueError
                else:
                    pos += 1
                error_message_13: str | None = None
                if n_14 > 0:
                    stop_15 = pos + n_14 - 1
                    if stop_15 > end:
                        raise ValueError
                    error_message_13 = data[pos:stop_15].decode()
                    pos = stop_15
                resource_type_16, = _READ_b(data, pos)
                pos += 1
                n_18 = data[pos]
                if n_18 > 127:
                    n_18, pos = read_uvarint(data, pos)
                    if n_18 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_18 == 0:
                    raise ValueError
                stop_19 = pos + n_18 - 1
                if stop_19 > end:
                    raise ValueError
                resource_name_17 = data[pos:stop_19].decode()
                pos = stop_19
                pattern_type_20, = _READ_b(data, pos)
                pos += 1
                n_22 = data[pos]
                if n_22 > 127:
                    n_22, pos = read_uvarint(data, pos)
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_22 == 0:
                    raise ValueError
                stop_23 = pos + n_22 - 1
                if stop_23 > end:
                    raise ValueError
                principal_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25 = data[pos]
                if n_25 > 127:
                    n_25, pos = read_uvarint(data, pos)
                    if n_25 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_25 == 0:
                    raise ValueError
                stop_26 = pos + n_25 - 1
                if stop_26 > end:
                    raise ValueError
                host_24 = data[pos:stop_26].decode()
                pos = stop_26
                operation_27, permission_type_28 = _READ_bb(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(DeleteAclsResponseDeleteAclsMatchingAcl(error_code_12, error_message_13, resource_type_16, resource_name_17, pattern_type_20, principal_21, host_24, operation_27, permission_type_28))
            matching_acls_9 = items_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteAclsResponseDeleteAclsFilterResult(error_code_5, error_message_6, matching_acls_9))
        filter_results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteAclsResponse(throttle_time_ms_1, filter_results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsResponse, 2, data, start) from None


def encode_v2(message: DeleteAclsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DeleteAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        filter_results_1 = message.filter_results
        n_2 = len(filter_results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in filter_results_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            matching_acls_7 = item_3.matching_acls
            n_8 = len(matching_acls_7) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8))
            for item_9 in matching_acls_7:
                raw_11 = item_9.error_message
                if raw_11 is None:
                    error_message_10 = b""
                    n_12 = 0
                else:
                    error_message_10 = raw_11.encode()
                    n_12 = len(error_message_10) + 1
                resource_name_13 = item_9.resource_name.encode()
                n_14 = len(resource_name_13) + 1
                principal_15 = item_9.principal.encode()
                n_16 = len(principal_15) + 1
                host_17 = item_9.host.encode()
                n_18 = len(host_17) + 1
                out += (_WRITE_h(item_9.error_code), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), error_message_10, _WRITE_b(item_9.resource_type), UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), resource_name_13, _WRITE_b(item_9.pattern_type), UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), principal_15, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), host_17, _WRITE_bbx(item_9.operation, item_9.permission_type))
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
        raise refused(DeleteAclsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[DeleteAclsResponse, int]:
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
        items_4: list[DeleteAclsResponseDeleteAclsFilterResult] = []
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
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 11:
                raise ValueError
            items_11: list[DeleteAclsResponseDeleteAclsMatchingAcl] = []
            for _ in range(n_10):
                error_code_12, = _READ_h(data, pos)
                pos += 2
                n_14 = data[pos]
                if n_14 > 127:
                    n_14, pos = read_uvarint(data, pos)
                    if n_14 > 32768:
                        raise ValueError
                else:
                    pos += 1
                error_message_13: str | None = None
                if n_14 > 0:
                    stop_15 = pos + n_14 - 1
                    if stop_15 > end:
                        raise ValueError
                    error_message_13 = data[pos:stop_15].decode()
                    pos = stop_15
                resource_type_16, = _READ_b(data, pos)
                pos += 1
                n_18 = data[pos]
                if n_18 > 127:
                    n_18, pos = read_uvarint(data, pos)
                    if n_18 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_18 == 0:
                    raise ValueError
                stop_19 = pos + n_18 - 1
                if stop_19 > end:
                    raise ValueError
                resource_name_17 = data[pos:stop_19].decode()
                pos = stop_19
                pattern_type_20, = _READ_b(data, pos)
                pos += 1
                n_22 = data[pos]
                if n_22 > 127:
                    n_22, pos = read_uvarint(data, pos)
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_22 == 0:
                    raise ValueError
                stop_23 = pos + n_22 - 1
                if stop_23 > end:
                    raise ValueError
                principal_21 = data[pos:stop_23].decode()
                pos = stop_23
                n_25 = data[pos]
                if n_25 > 127:
                    n_25, pos = read_uvarint(data, pos)
                    if n_25 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_25 == 0:
                    raise ValueError
                stop_26 = pos + n_25 - 1
                if stop_26 > end:
                    raise ValueError
                host_24 = data[pos:stop_26].decode()
                pos = stop_26
                operation_27, permission_type_28 = _READ_bb(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(DeleteAclsResponseDeleteAclsMatchingAcl(error_code_12, error_message_13, resource_type_16, resource_name_17, pattern_type_20, principal_21, host_24, operation_27, permission_type_28))
            matching_acls_9 = items_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteAclsResponseDeleteAclsFilterResult(error_code_5, error_message_6, matching_acls_9))
        filter_results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteAclsResponse(throttle_time_ms_1, filter_results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsResponse, 3, data, start) from None


def encode_v3(message: DeleteAclsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: DeleteAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        filter_results_1 = message.filter_results
        n_2 = len(filter_results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in filter_results_1:
            raw_5 = item_3.error_message
            if raw_5 is None:
                error_message_4 = b""
                n_6 = 0
            else:
                error_message_4 = raw_5.encode()
                n_6 = len(error_message_4) + 1
            matching_acls_7 = item_3.matching_acls
            n_8 = len(matching_acls_7) + 1
            out += (_WRITE_h(item_3.error_code), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), error_message_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8))
            for item_9 in matching_acls_7:
                raw_11 = item_9.error_message
                if raw_11 is None:
                    error_message_10 = b""
                    n_12 = 0
                else:
                    error_message_10 = raw_11.encode()
                    n_12 = len(error_message_10) + 1
                resource_name_13 = item_9.resource_name.encode()
                n_14 = len(resource_name_13) + 1
                principal_15 = item_9.principal.encode()
                n_16 = len(principal_15) + 1
                host_17 = item_9.host.encode()
                n_18 = len(host_17) + 1
                out += (_WRITE_h(item_9.error_code), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), error_message_10, _WRITE_b(item_9.resource_type), UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), resource_name_13, _WRITE_b(item_9.pattern_type), UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), principal_15, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), host_17, _WRITE_bbx(item_9.operation, item_9.permission_type))
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
        raise refused(DeleteAclsResponse, 3, error) from error
