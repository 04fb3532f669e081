"""DescribeAclsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    DescribeAclsResponse,
    DescribeAclsResponseAclDescription,
    DescribeAclsResponseDescribeAclsResource,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bb = Struct(">bb").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_bi = Struct(">bi").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihh = Struct(">ihh").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bb = Struct(">bb").pack
_WRITE_bbx = Struct(">bbx").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_bi = Struct(">bi").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihh = Struct(">ihh").pack


def decode_v1(data: bytes, pos: int) -> tuple[DescribeAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, n_4 = _READ_ihh(data, pos)
        pos += 8
        error_message_3: str | None = None
        if n_4 >= 0:
            stop_5 = pos + n_4
            if stop_5 > end:
                raise ValueError
            error_message_3 = data[pos:stop_5].decode()
            pos = stop_5
        elif n_4 != -1:
            raise ValueError
        n_7, = _READ_i(data, pos)
        pos += 4
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 8:
            raise ValueError
        items_8: list[DescribeAclsResponseDescribeAclsResource] = []
        for _ in range(n_7):
            resource_type_9, n_11 = _READ_bh(data, pos)
            pos += 3
            if n_11 < 0:
                raise ValueError
            stop_12 = pos + n_11
            if stop_12 > end:
                raise ValueError
            resource_name_10 = data[pos:stop_12].decode()
            pos = stop_12
            pattern_type_13, n_15 = _READ_bi(data, pos)
            pos += 5
            if n_15 < 0:
                raise ValueError
            if n_15 > (end - pos) // 6:
                raise ValueError
            items_16: list[DescribeAclsResponseAclDescription] = []
            for _ in range(n_15):
                n_18, = _READ_h(data, pos)
                pos += 2
                if n_18 < 0:
                    raise ValueError
                stop_19 = pos + n_18
                if stop_19 > end:
                    raise ValueError
                principal_17 = data[pos:stop_19].decode()
                pos = stop_19
                n_21, = _READ_h(data, pos)
                pos += 2
                if n_21 < 0:
                    raise ValueError
                stop_22 = pos + n_21
                if stop_22 > end:
                    raise ValueError
                host_20 = data[pos:stop_22].decode()
                pos = stop_22
                operation_23, permission_type_24 = _READ_bb(data, pos)
                pos += 2
                items_16.append(DescribeAclsResponseAclDescription(principal_17, host_20, operation_23, permission_type_24))
            acls_14 = items_16
            items_8.append(DescribeAclsResponseDescribeAclsResource(resource_type_9, resource_name_10, pattern_type_13, acls_14))
        resources_6 = items_8
        return DescribeAclsResponse(throttle_time_ms_1, error_code_2, error_message_3, resources_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsResponse, 1, data, start) from None


def encode_v1(message: DescribeAclsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DescribeAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        resources_3 = message.resources
        out += (_WRITE_ihh(message.throttle_time_ms, message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1, _WRITE_i(len(resources_3)))
        for item_4 in resources_3:
            resource_name_5 = item_4.resource_name.encode()
            acls_6 = item_4.acls
            out += (_WRITE_bh(item_4.resource_type, len(resource_name_5)), resource_name_5, _WRITE_bi(item_4.pattern_type, len(acls_6)))
            for item_7 in acls_6:
                principal_8 = item_7.principal.encode()
                host_9 = item_7.host.encode()
                out += (_WRITE_h(len(principal_8)), principal_8, _WRITE_h(len(host_9)), host_9, _WRITE_bb(item_7.operation, item_7.permission_type))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeAclsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DescribeAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
            if n_4 > 32768:
                raise ValueError
        else:
            pos += 1
        error_message_3: str | None = None
        if n_4 > 0:
            stop_5 = pos + n_4 - 1
            if stop_5 > end:
                raise ValueError
            error_message_3 = data[pos:stop_5].decode()
            pos = stop_5
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        n_7 -= 1
        if n_7 > (end - pos) // 5:
            raise ValueError
        items_8: list[DescribeAclsResponseDescribeAclsResource] = []
        for _ in range(n_7):
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
            pattern_type_13, = _READ_b(data, pos)
            pos += 1
            n_15 = data[pos]
            if n_15 > 127:
                n_15, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_15 == 0:
                raise ValueError
            n_15 -= 1
            if n_15 > (end - pos) // 5:
                raise ValueError
            items_16: list[DescribeAclsResponseAclDescription] = []
            for _ in range(n_15):
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
                principal_17 = data[pos:stop_19].decode()
                pos = stop_19
                n_21 = data[pos]
                if n_21 > 127:
                    n_21, pos = read_uvarint(data, pos)
                    if n_21 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_21 == 0:
                    raise ValueError
                stop_22 = pos + n_21 - 1
                if stop_22 > end:
                    raise ValueError
                host_20 = data[pos:stop_22].decode()
                pos = stop_22
                operation_23, permission_type_24 = _READ_bb(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_16.append(DescribeAclsResponseAclDescription(principal_17, host_20, operation_23, permission_type_24))
            acls_14 = items_16
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_8.append(DescribeAclsResponseDescribeAclsResource(resource_type_9, resource_name_10, pattern_type_13, acls_14))
        resources_6 = items_8
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeAclsResponse(throttle_time_ms_1, error_code_2, error_message_3, resources_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsResponse, 2, data, start) from None


def encode_v2(message: DescribeAclsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DescribeAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        resources_4 = message.resources
        n_5 = len(resources_4) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
        for item_6 in resources_4:
            resource_name_7 = item_6.resource_name.encode()
            n_8 = len(resource_name_7) + 1
            acls_9 = item_6.acls
            n_10 = len(acls_9) + 1
            out += (_WRITE_b(item_6.resource_type), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), resource_name_7, _WRITE_b(item_6.pattern_type), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
            for item_11 in acls_9:
                principal_12 = item_11.principal.encode()
                n_13 = len(principal_12) + 1
                host_14 = item_11.host.encode()
                n_15 = len(host_14) + 1
                out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), principal_12, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), host_14, _WRITE_bbx(item_11.operation, item_11.permission_type))
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
        raise refused(DescribeAclsResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[DescribeAclsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2 = _READ_ih(data, pos)
        pos += 6
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
            if n_4 > 32768:
                raise ValueError
        else:
            pos += 1
        error_message_3: str | None = None
        if n_4 > 0:
            stop_5 = pos + n_4 - 1
            if stop_5 > end:
                raise ValueError
            error_message_3 = data[pos:stop_5].decode()
            pos = stop_5
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        n_7 -= 1
        if n_7 > (end - pos) // 5:
            raise ValueError
        items_8: list[DescribeAclsResponseDescribeAclsResource] = []
        for _ in range(n_7):
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
            pattern_type_13, = _READ_b(data, pos)
            pos += 1
            n_15 = data[pos]
            if n_15 > 127:
                n_15, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_15 == 0:
                raise ValueError
            n_15 -= 1
            if n_15 > (end - pos) // 5:
                raise ValueError
            items_16: list[DescribeAclsResponseAclDescription] = []
            for _ in range(n_15):
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
                principal_17 = data[pos:stop_19].decode()
                pos = stop_19
                n_21 = data[pos]
                if n_21 > 127:
                    n_21, pos = read_uvarint(data, pos)
                    if n_21 > 32768:
                        raise ValueError
                else:
                    pos += 1
                if n_21 == 0:
                    raise ValueError
                stop_22 = pos + n_21 - 1
                if stop_22 > end:
                    raise ValueError
                host_20 = data[pos:stop_22].decode()
                pos = stop_22
                operation_23, permission_type_24 = _READ_bb(data, pos)
                pos += 2
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_16.append(DescribeAclsResponseAclDescription(principal_17, host_20, operation_23, permission_type_24))
            acls_14 = items_16
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_8.append(DescribeAclsResponseDescribeAclsResource(resource_type_9, resource_name_10, pattern_type_13, acls_14))
        resources_6 = items_8
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeAclsResponse(throttle_time_ms_1, error_code_2, error_message_3, resources_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsResponse, 3, data, start) from None


def encode_v3(message: DescribeAclsResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: DescribeAclsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        resources_4 = message.resources
        n_5 = len(resources_4) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
        for item_6 in resources_4:
            resource_name_7 = item_6.resource_name.encode()
            n_8 = len(resource_name_7) + 1
            acls_9 = item_6.acls
            n_10 = len(acls_9) + 1
            out += (_WRITE_b(item_6.resource_type), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), resource_name_7, _WRITE_b(item_6.pattern_type), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
            for item_11 in acls_9:
                principal_12 = item_11.principal.encode()
                n_13 = len(principal_12) + 1
                host_14 = item_11.host.encode()
                n_15 = len(host_14) + 1
                out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), principal_12, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), host_14, _WRITE_bbx(item_11.operation, item_11.permission_type))
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
        raise refused(DescribeAclsResponse, 3, error) from error
