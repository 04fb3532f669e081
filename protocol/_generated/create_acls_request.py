"""CreateAclsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.acls import (
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
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


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateAclsRequest, int]:
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
        items_3: list[CreateAclsRequestAclCreation] = []
        for _ in range(n_2):
            resource_type_4, n_6 = _READ_bh(data, pos)
            pos += 3
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            resource_name_5 = data[pos:stop_7].decode()
            pos = stop_7
            resource_pattern_type_8, n_10 = _READ_bh(data, pos)
            pos += 3
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            principal_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_h(data, pos)
            pos += 2
            if n_13 < 0:
                raise ValueError
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            host_12 = data[pos:stop_14].decode()
            pos = stop_14
            operation_15, permission_type_16 = _READ_bb(data, pos)
            pos += 2
            items_3.append(CreateAclsRequestAclCreation(resource_type_4, resource_name_5, resource_pattern_type_8, principal_9, host_12, operation_15, permission_type_16))
        creations_1 = items_3
        return CreateAclsRequest(creations_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsRequest, 1, data, start, budget) from None


def encode_v1(message: CreateAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        creations_1 = message.creations
        out.append(_WRITE_i(len(creations_1)))
        for item_2 in creations_1:
            resource_name_3 = item_2.resource_name.encode()
            principal_4 = item_2.principal.encode()
            host_5 = item_2.host.encode()
            out += (_WRITE_bh(item_2.resource_type, len(resource_name_3)), resource_name_3, _WRITE_bh(item_2.resource_pattern_type, len(principal_4)), principal_4, _WRITE_h(len(host_5)), host_5, _WRITE_bb(item_2.operation, item_2.permission_type))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateAclsRequest, int]:
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
        items_3: list[CreateAclsRequestAclCreation] = []
        for _ in range(n_2):
            resource_type_4, = _READ_b(data, pos)
            pos += 1
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
            resource_name_5 = data[pos:stop_7].decode()
            pos = stop_7
            resource_pattern_type_8, = _READ_b(data, pos)
            pos += 1
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            principal_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
                if n_13 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            stop_14 = pos + n_13 - 1
            if stop_14 > end:
                raise ValueError
            host_12 = data[pos:stop_14].decode()
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
            items_3.append(CreateAclsRequestAclCreation(resource_type_4, resource_name_5, resource_pattern_type_8, principal_9, host_12, operation_15, permission_type_16))
        creations_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateAclsRequest(creations_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsRequest, 2, data, start, budget) from None


def encode_v2(message: CreateAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        creations_1 = message.creations
        n_2 = len(creations_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in creations_1:
            resource_name_4 = item_3.resource_name.encode()
            n_5 = len(resource_name_4) + 1
            principal_6 = item_3.principal.encode()
            n_7 = len(principal_6) + 1
            host_8 = item_3.host.encode()
            n_9 = len(host_8) + 1
            out += (_WRITE_b(item_3.resource_type), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), resource_name_4, _WRITE_b(item_3.resource_pattern_type), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), principal_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), host_8, _WRITE_bbx(item_3.operation, item_3.permission_type))
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateAclsRequest, int]:
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
        items_3: list[CreateAclsRequestAclCreation] = []
        for _ in range(n_2):
            resource_type_4, = _READ_b(data, pos)
            pos += 1
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
            resource_name_5 = data[pos:stop_7].decode()
            pos = stop_7
            resource_pattern_type_8, = _READ_b(data, pos)
            pos += 1
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            principal_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
                if n_13 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            stop_14 = pos + n_13 - 1
            if stop_14 > end:
                raise ValueError
            host_12 = data[pos:stop_14].decode()
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
            items_3.append(CreateAclsRequestAclCreation(resource_type_4, resource_name_5, resource_pattern_type_8, principal_9, host_12, operation_15, permission_type_16))
        creations_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateAclsRequest(creations_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateAclsRequest, 3, data, start, budget) from None


def encode_v3(message: CreateAclsRequest) -> bytes:
    try:
        out: list[bytes] = []
        creations_1 = message.creations
        n_2 = len(creations_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in creations_1:
            resource_name_4 = item_3.resource_name.encode()
            n_5 = len(resource_name_4) + 1
            principal_6 = item_3.principal.encode()
            n_7 = len(principal_6) + 1
            host_8 = item_3.host.encode()
            n_9 = len(host_8) + 1
            out += (_WRITE_b(item_3.resource_type), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), resource_name_4, _WRITE_b(item_3.resource_pattern_type), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), principal_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), host_8, _WRITE_bbx(item_3.operation, item_3.permission_type))
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateAclsRequest, 3, error) from error
