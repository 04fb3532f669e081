"""DescribeConfigsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_ZZ = Struct(">??").unpack_from
_READ_b = Struct(">b").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_ZZ = Struct(">??").pack
_WRITE_ZZx = Struct(">??x").pack
_WRITE_b = Struct(">b").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeConfigsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 7:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeConfigsRequestDescribeConfigsResource] = []
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
            n_9, = _READ_i(data, pos)
            pos += 4
            configuration_keys_8: list[str] | None = None
            if n_9 >= 0:
                if n_9 > (end - pos) // 2:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[str] = []
                for _ in range(n_9):
                    n_12, = _READ_h(data, pos)
                    pos += 2
                    if n_12 < 0:
                        raise ValueError
                    stop_13 = pos + n_12
                    if stop_13 > end:
                        raise ValueError
                    configuration_keys_11 = data[pos:stop_13].decode()
                    pos = stop_13
                    items_10.append(configuration_keys_11)
                configuration_keys_8 = items_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(DescribeConfigsRequestDescribeConfigsResource(resource_type_4, resource_name_5, configuration_keys_8))
        resources_1 = items_3
        include_synonyms_14, = _READ_Z(data, pos)
        pos += 1
        return DescribeConfigsRequest(resources_1, include_synonyms_14, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsRequest, 1, data, start, budget) from None


def encode_v1(message: DescribeConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        out.append(_WRITE_i(len(resources_1)))
        for item_2 in resources_1:
            resource_name_3 = item_2.resource_name.encode()
            configuration_keys_4 = item_2.configuration_keys
            out += (_WRITE_bh(item_2.resource_type, len(resource_name_3)), resource_name_3)
            if configuration_keys_4 is None:
                out.append(b"\xff\xff\xff\xff")
            else:
                out.append(_WRITE_i(len(configuration_keys_4)))
                for item_5 in configuration_keys_4:
                    item_6 = item_5.encode()
                    out += (_WRITE_h(len(item_6)), item_6)
        if message.include_documentation:
            raise ValueError("include_documentation cannot be sent in version 1")
        out.append(_WRITE_Z(message.include_synonyms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeConfigsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 7:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeConfigsRequestDescribeConfigsResource] = []
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
            n_9, = _READ_i(data, pos)
            pos += 4
            configuration_keys_8: list[str] | None = None
            if n_9 >= 0:
                if n_9 > (end - pos) // 2:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[str] = []
                for _ in range(n_9):
                    n_12, = _READ_h(data, pos)
                    pos += 2
                    if n_12 < 0:
                        raise ValueError
                    stop_13 = pos + n_12
                    if stop_13 > end:
                        raise ValueError
                    configuration_keys_11 = data[pos:stop_13].decode()
                    pos = stop_13
                    items_10.append(configuration_keys_11)
                configuration_keys_8 = items_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(DescribeConfigsRequestDescribeConfigsResource(resource_type_4, resource_name_5, configuration_keys_8))
        resources_1 = items_3
        include_synonyms_14, = _READ_Z(data, pos)
        pos += 1
        return DescribeConfigsRequest(resources_1, include_synonyms_14, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsRequest, 2, data, start, budget) from None


def encode_v2(message: DescribeConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        out.append(_WRITE_i(len(resources_1)))
        for item_2 in resources_1:
            resource_name_3 = item_2.resource_name.encode()
            configuration_keys_4 = item_2.configuration_keys
            out += (_WRITE_bh(item_2.resource_type, len(resource_name_3)), resource_name_3)
            if configuration_keys_4 is None:
                out.append(b"\xff\xff\xff\xff")
            else:
                out.append(_WRITE_i(len(configuration_keys_4)))
                for item_5 in configuration_keys_4:
                    item_6 = item_5.encode()
                    out += (_WRITE_h(len(item_6)), item_6)
        if message.include_documentation:
            raise ValueError("include_documentation cannot be sent in version 2")
        out.append(_WRITE_Z(message.include_synonyms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeConfigsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 7:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeConfigsRequestDescribeConfigsResource] = []
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
            n_9, = _READ_i(data, pos)
            pos += 4
            configuration_keys_8: list[str] | None = None
            if n_9 >= 0:
                if n_9 > (end - pos) // 2:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[str] = []
                for _ in range(n_9):
                    n_12, = _READ_h(data, pos)
                    pos += 2
                    if n_12 < 0:
                        raise ValueError
                    stop_13 = pos + n_12
                    if stop_13 > end:
                        raise ValueError
                    configuration_keys_11 = data[pos:stop_13].decode()
                    pos = stop_13
                    items_10.append(configuration_keys_11)
                configuration_keys_8 = items_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(DescribeConfigsRequestDescribeConfigsResource(resource_type_4, resource_name_5, configuration_keys_8))
        resources_1 = items_3
        include_synonyms_14, include_documentation_15 = _READ_ZZ(data, pos)
        pos += 2
        return DescribeConfigsRequest(resources_1, include_synonyms_14, include_documentation_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsRequest, 3, data, start, budget) from None


def encode_v3(message: DescribeConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        out.append(_WRITE_i(len(resources_1)))
        for item_2 in resources_1:
            resource_name_3 = item_2.resource_name.encode()
            configuration_keys_4 = item_2.configuration_keys
            out += (_WRITE_bh(item_2.resource_type, len(resource_name_3)), resource_name_3)
            if configuration_keys_4 is None:
                out.append(b"\xff\xff\xff\xff")
            else:
                out.append(_WRITE_i(len(configuration_keys_4)))
                for item_5 in configuration_keys_4:
                    item_6 = item_5.encode()
                    out += (_WRITE_h(len(item_6)), item_6)
        out.append(_WRITE_ZZ(message.include_synonyms, message.include_documentation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeConfigsRequest, int]:
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
        if n_2 > (end - pos) // 4:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DescribeConfigsRequestDescribeConfigsResource] = []
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
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            configuration_keys_8: list[str] | None = None
            if n_9 > 0:
                n_9 -= 1
                if n_9 > end - pos:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[str] = []
                for _ in range(n_9):
                    n_12 = data[pos]
                    if n_12 > 127:
                        n_12, pos = read_uvarint(data, pos)
                        if n_12 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_12 == 0:
                        raise ValueError
                    stop_13 = pos + n_12 - 1
                    if stop_13 > end:
                        raise ValueError
                    configuration_keys_11 = data[pos:stop_13].decode()
                    pos = stop_13
                    items_10.append(configuration_keys_11)
                configuration_keys_8 = items_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DescribeConfigsRequestDescribeConfigsResource(resource_type_4, resource_name_5, configuration_keys_8))
        resources_1 = items_3
        include_synonyms_14, include_documentation_15 = _READ_ZZ(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeConfigsRequest(resources_1, include_synonyms_14, include_documentation_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeConfigsRequest, 4, data, start, budget) from None


def encode_v4(message: DescribeConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        n_2 = len(resources_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in resources_1:
            resource_name_4 = item_3.resource_name.encode()
            n_5 = len(resource_name_4) + 1
            configuration_keys_6 = item_3.configuration_keys
            out += (_WRITE_b(item_3.resource_type), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), resource_name_4)
            if configuration_keys_6 is None:
                out.append(b"\0")
            else:
                n_7 = len(configuration_keys_6) + 1
                out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
                for item_8 in configuration_keys_6:
                    item_9 = item_8.encode()
                    n_10 = len(item_9) + 1
                    out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), item_9)
            out.append(b"\0")
        out.append(_WRITE_ZZx(message.include_synonyms, message.include_documentation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeConfigsRequest, 4, error) from error
