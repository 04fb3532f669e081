"""DeleteAclsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    DeleteAclsRequest,
    DeleteAclsRequestDeleteAclsFilter,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bb = Struct(">bb").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bb = Struct(">bb").pack
_WRITE_bbx = Struct(">bbx").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteAclsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DeleteAclsRequestDeleteAclsFilter] = []
        for _ in range(n_2):
            resource_type_filter_4, n_6 = _READ_bh(data, pos)
            pos += 3
            resource_name_filter_5: str | None = None
            if n_6 >= 0:
                stop_7 = pos + n_6
                if stop_7 > end:
                    raise ValueError
                resource_name_filter_5 = data[pos:stop_7].decode()
                pos = stop_7
            elif n_6 != -1:
                raise ValueError
            pattern_type_filter_8, n_10 = _READ_bh(data, pos)
            pos += 3
            principal_filter_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                principal_filter_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            n_13, = _READ_h(data, pos)
            pos += 2
            host_filter_12: str | None = None
            if n_13 >= 0:
                stop_14 = pos + n_13
                if stop_14 > end:
                    raise ValueError
                host_filter_12 = data[pos:stop_14].decode()
                pos = stop_14
            elif n_13 != -1:
                raise ValueError
            operation_15, permission_type_16 = _READ_bb(data, pos)
            pos += 2
            items_3.append(DeleteAclsRequestDeleteAclsFilter(resource_type_filter_4, resource_name_filter_5, pattern_type_filter_8, principal_filter_9, host_filter_12, operation_15, permission_type_16))
        filters_1 = items_3
        return DeleteAclsRequest(filters_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsRequest, 1, data, start, budget) from None


def encode_v1(message: DeleteAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        filters_1 = message.filters
        out.append(_WRITE_i(len(filters_1)))
        for item_2 in filters_1:
            raw_4 = item_2.resource_name_filter
            resource_name_filter_3 = b"" if raw_4 is None else raw_4.encode()
            raw_6 = item_2.principal_filter
            principal_filter_5 = b"" if raw_6 is None else raw_6.encode()
            raw_8 = item_2.host_filter
            host_filter_7 = b"" if raw_8 is None else raw_8.encode()
            out += (_WRITE_bh(item_2.resource_type_filter, -1 if raw_4 is None else len(resource_name_filter_3)), resource_name_filter_3, _WRITE_bh(item_2.pattern_type_filter, -1 if raw_6 is None else len(principal_filter_5)), principal_filter_5, _WRITE_h(-1 if raw_8 is None else len(host_filter_7)), host_filter_7, _WRITE_bb(item_2.operation, item_2.permission_type))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteAclsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteAclsRequest, int]:
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
        if n_2 > (end - pos) // 8:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DeleteAclsRequestDeleteAclsFilter] = []
        for _ in range(n_2):
            resource_type_filter_4, = _READ_b(data, pos)
            pos += 1
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            resource_name_filter_5: str | None = None
            if n_6 > 0:
                stop_7 = pos + n_6 - 1
                if stop_7 > end:
                    raise ValueError
                resource_name_filter_5 = data[pos:stop_7].decode()
                pos = stop_7
            pattern_type_filter_8, = _READ_b(data, pos)
            pos += 1
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            principal_filter_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                principal_filter_9 = data[pos:stop_11].decode()
                pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
                if n_13 > 32768:
                    raise ValueError
            else:
                pos += 1
            host_filter_12: str | None = None
            if n_13 > 0:
                stop_14 = pos + n_13 - 1
                if stop_14 > end:
                    raise ValueError
                host_filter_12 = data[pos:stop_14].decode()
                pos = stop_14
            operation_15, permission_type_16 = _READ_bb(data, pos)
            pos += 2
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DeleteAclsRequestDeleteAclsFilter(resource_type_filter_4, resource_name_filter_5, pattern_type_filter_8, principal_filter_9, host_filter_12, operation_15, permission_type_16))
        filters_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteAclsRequest(filters_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsRequest, 2, data, start, budget) from None


def encode_v2(message: DeleteAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        filters_1 = message.filters
        n_2 = len(filters_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in filters_1:
            raw_5 = item_3.resource_name_filter
            if raw_5 is None:
                resource_name_filter_4 = b""
                n_6 = 0
            else:
                resource_name_filter_4 = raw_5.encode()
                n_6 = len(resource_name_filter_4) + 1
            raw_8 = item_3.principal_filter
            if raw_8 is None:
                principal_filter_7 = b""
                n_9 = 0
            else:
                principal_filter_7 = raw_8.encode()
                n_9 = len(principal_filter_7) + 1
            raw_11 = item_3.host_filter
            if raw_11 is None:
                host_filter_10 = b""
                n_12 = 0
            else:
                host_filter_10 = raw_11.encode()
                n_12 = len(host_filter_10) + 1
            out += (_WRITE_b(item_3.resource_type_filter), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), resource_name_filter_4, _WRITE_b(item_3.pattern_type_filter), UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), principal_filter_7, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), host_filter_10, _WRITE_bbx(item_3.operation, item_3.permission_type))
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteAclsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteAclsRequest, int]:
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
        if n_2 > (end - pos) // 8:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DeleteAclsRequestDeleteAclsFilter] = []
        for _ in range(n_2):
            resource_type_filter_4, = _READ_b(data, pos)
            pos += 1
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            resource_name_filter_5: str | None = None
            if n_6 > 0:
                stop_7 = pos + n_6 - 1
                if stop_7 > end:
                    raise ValueError
                resource_name_filter_5 = data[pos:stop_7].decode()
                pos = stop_7
            pattern_type_filter_8, = _READ_b(data, pos)
            pos += 1
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            principal_filter_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                principal_filter_9 = data[pos:stop_11].decode()
                pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
                if n_13 > 32768:
                    raise ValueError
            else:
                pos += 1
            host_filter_12: str | None = None
            if n_13 > 0:
                stop_14 = pos + n_13 - 1
                if stop_14 > end:
                    raise ValueError
                host_filter_12 = data[pos:stop_14].decode()
                pos = stop_14
            operation_15, permission_type_16 = _READ_bb(data, pos)
            pos += 2
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DeleteAclsRequestDeleteAclsFilter(resource_type_filter_4, resource_name_filter_5, pattern_type_filter_8, principal_filter_9, host_filter_12, operation_15, permission_type_16))
        filters_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteAclsRequest(filters_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteAclsRequest, 3, data, start, budget) from None


def encode_v3(message: DeleteAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        filters_1 = message.filters
        n_2 = len(filters_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in filters_1:
            raw_5 = item_3.resource_name_filter
            if raw_5 is None:
                resource_name_filter_4 = b""
                n_6 = 0
            else:
                resource_name_filter_4 = raw_5.encode()
                n_6 = len(resource_name_filter_4) + 1
            raw_8 = item_3.principal_filter
            if raw_8 is None:
                principal_filter_7 = b""
                n_9 = 0
            else:
                principal_filter_7 = raw_8.encode()
                n_9 = len(principal_filter_7) + 1
            raw_11 = item_3.host_filter
            if raw_11 is None:
                host_filter_10 = b""
                n_12 = 0
            else:
                host_filter_10 = raw_11.encode()
                n_12 = len(host_filter_10) + 1
            out += (_WRITE_b(item_3.resource_type_filter), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), resource_name_filter_4, _WRITE_b(item_3.pattern_type_filter), UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), principal_filter_7, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), host_filter_10, _WRITE_bbx(item_3.operation, item_3.permission_type))
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteAclsRequest, 3, error) from error
