"""DescribeAclsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    DescribeAclsRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bb = Struct(">bb").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bb = Struct(">bb").pack
_WRITE_bbx = Struct(">bbx").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeAclsRequest, int]:
    start = pos
    try:
        end = len(data)
        resource_type_filter_1, n_3 = _READ_bh(data, pos)
        pos += 3
        resource_name_filter_2: str | None = None
        if n_3 >= 0:
            stop_4 = pos + n_3
            if stop_4 > end:
                raise ValueError
            resource_name_filter_2 = data[pos:stop_4].decode()
            pos = stop_4
        elif n_3 != -1:
            raise ValueError
        pattern_type_filter_5, n_7 = _READ_bh(data, pos)
        pos += 3
        principal_filter_6: str | None = None
        if n_7 >= 0:
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            principal_filter_6 = data[pos:stop_8].decode()
            pos = stop_8
        elif n_7 != -1:
            raise ValueError
        n_10, = _READ_h(data, pos)
        pos += 2
        host_filter_9: str | None = None
        if n_10 >= 0:
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            host_filter_9 = data[pos:stop_11].decode()
            pos = stop_11
        elif n_10 != -1:
            raise ValueError
        operation_12, permission_type_13 = _READ_bb(data, pos)
        pos += 2
        return DescribeAclsRequest(resource_type_filter_1, resource_name_filter_2, pattern_type_filter_5, principal_filter_6, host_filter_9, operation_12, permission_type_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsRequest, 1, data, start, budget) from None


def encode_v1(message: DescribeAclsRequest) -> bytes:
    try:
        raw_2 = message.resource_name_filter
        resource_name_filter_1 = b"" if raw_2 is None else raw_2.encode()
        raw_4 = message.principal_filter
        principal_filter_3 = b"" if raw_4 is None else raw_4.encode()
        raw_6 = message.host_filter
        host_filter_5 = b"" if raw_6 is None else raw_6.encode()
        return b"".join((_WRITE_bh(message.resource_type_filter, -1 if raw_2 is None else len(resource_name_filter_1)), resource_name_filter_1, _WRITE_bh(message.pattern_type_filter, -1 if raw_4 is None else len(principal_filter_3)), principal_filter_3, _WRITE_h(-1 if raw_6 is None else len(host_filter_5)), host_filter_5, _WRITE_bb(message.operation, message.permission_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeAclsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeAclsRequest, int]:
    start = pos
    try:
        end = len(data)
        resource_type_filter_1, = _READ_b(data, pos)
        pos += 1
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
            if n_3 > 32768:
                raise ValueError
        else:
            pos += 1
        resource_name_filter_2: str | None = None
        if n_3 > 0:
            stop_4 = pos + n_3 - 1
            if stop_4 > end:
                raise ValueError
            resource_name_filter_2 = data[pos:stop_4].decode()
            pos = stop_4
        pattern_type_filter_5, = _READ_b(data, pos)
        pos += 1
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        principal_filter_6: str | None = None
        if n_7 > 0:
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            principal_filter_6 = data[pos:stop_8].decode()
            pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        host_filter_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            host_filter_9 = data[pos:stop_11].decode()
            pos = stop_11
        operation_12, permission_type_13 = _READ_bb(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeAclsRequest(resource_type_filter_1, resource_name_filter_2, pattern_type_filter_5, principal_filter_6, host_filter_9, operation_12, permission_type_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsRequest, 2, data, start, budget) from None


def encode_v2(message: DescribeAclsRequest) -> bytes:
    try:
        raw_2 = message.resource_name_filter
        if raw_2 is None:
            resource_name_filter_1 = b""
            n_3 = 0
        else:
            resource_name_filter_1 = raw_2.encode()
            n_3 = len(resource_name_filter_1) + 1
        raw_5 = message.principal_filter
        if raw_5 is None:
            principal_filter_4 = b""
            n_6 = 0
        else:
            principal_filter_4 = raw_5.encode()
            n_6 = len(principal_filter_4) + 1
        raw_8 = message.host_filter
        if raw_8 is None:
            host_filter_7 = b""
            n_9 = 0
        else:
            host_filter_7 = raw_8.encode()
            n_9 = len(host_filter_7) + 1
        return b"".join((_WRITE_b(message.resource_type_filter), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), resource_name_filter_1, _WRITE_b(message.pattern_type_filter), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), principal_filter_4, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), host_filter_7, _WRITE_bbx(message.operation, message.permission_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeAclsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeAclsRequest, int]:
    start = pos
    try:
        end = len(data)
        resource_type_filter_1, = _READ_b(data, pos)
        pos += 1
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
            if n_3 > 32768:
                raise ValueError
        else:
            pos += 1
        resource_name_filter_2: str | None = None
        if n_3 > 0:
            stop_4 = pos + n_3 - 1
            if stop_4 > end:
                raise ValueError
            resource_name_filter_2 = data[pos:stop_4].decode()
            pos = stop_4
        pattern_type_filter_5, = _READ_b(data, pos)
        pos += 1
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        principal_filter_6: str | None = None
        if n_7 > 0:
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            principal_filter_6 = data[pos:stop_8].decode()
            pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        host_filter_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            host_filter_9 = data[pos:stop_11].decode()
            pos = stop_11
        operation_12, permission_type_13 = _READ_bb(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeAclsRequest(resource_type_filter_1, resource_name_filter_2, pattern_type_filter_5, principal_filter_6, host_filter_9, operation_12, permission_type_13), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeAclsRequest, 3, data, start, budget) from None


def encode_v3(message: DescribeAclsRequest) -> bytes:
    try:
        raw_2 = message.resource_name_filter
        if raw_2 is None:
            resource_name_filter_1 = b""
            n_3 = 0
        else:
            resource_name_filter_1 = raw_2.encode()
            n_3 = len(resource_name_filter_1) + 1
        raw_5 = message.principal_filter
        if raw_5 is None:
            principal_filter_4 = b""
            n_6 = 0
        else:
            principal_filter_4 = raw_5.encode()
            n_6 = len(principal_filter_4) + 1
        raw_8 = message.host_filter
        if raw_8 is None:
            host_filter_7 = b""
            n_9 = 0
        else:
            host_filter_7 = raw_8.encode()
            n_9 = len(host_filter_7) + 1
        return b"".join((_WRITE_b(message.resource_type_filter), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), resource_name_filter_1, _WRITE_b(message.pattern_type_filter), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), principal_filter_4, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), host_filter_7, _WRITE_bbx(message.operation, message.permission_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeAclsRequest, 3, error) from error
