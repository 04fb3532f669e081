"""IncrementalAlterConfigsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestAlterableConfig,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_b = Struct(">b").unpack_from
_READ_bh = Struct(">bh").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Z = Struct(">?").pack
_WRITE_Zx = Struct(">?x").pack
_WRITE_b = Struct(">b").pack
_WRITE_bh = Struct(">bh").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[IncrementalAlterConfigsRequest, int]:
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
        items_3: list[IncrementalAlterConfigsRequestAlterConfigsResource] = []
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
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 5:
                raise ValueError
            budget -= n_9 * 24
            if budget < 0:
                raise ValueError
            items_10: list[IncrementalAlterConfigsRequestAlterableConfig] = []
            for _ in range(n_9):
                n_12, = _READ_h(data, pos)
                pos += 2
                if n_12 < 0:
                    raise ValueError
                stop_13 = pos + n_12
                if stop_13 > end:
                    raise ValueError
                name_11 = data[pos:stop_13].decode()
                pos = stop_13
                config_operation_14, n_16 = _READ_bh(data, pos)
                pos += 3
                value_15: str | None = None
                if n_16 >= 0:
                    stop_17 = pos + n_16
                    if stop_17 > end:
                        raise ValueError
                    value_15 = data[pos:stop_17].decode()
                    pos = stop_17
                elif n_16 != -1:
                    raise ValueError
                items_10.append(IncrementalAlterConfigsRequestAlterableConfig(name_11, config_operation_14, value_15))
            configs_8 = items_10
            items_3.append(IncrementalAlterConfigsRequestAlterConfigsResource(resource_type_4, resource_name_5, configs_8))
        resources_1 = items_3
        validate_only_18, = _READ_Z(data, pos)
        pos += 1
        return IncrementalAlterConfigsRequest(resources_1, validate_only_18), pos
    except (IndexError, ValueError, struct_error):
        raise explain(IncrementalAlterConfigsRequest, 0, data, start, budget) from None


def encode_v0(message: IncrementalAlterConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        out.append(_WRITE_i(len(resources_1)))
        for item_2 in resources_1:
            resource_name_3 = item_2.resource_name.encode()
            configs_4 = item_2.configs
            out += (_WRITE_bh(item_2.resource_type, len(resource_name_3)), resource_name_3, _WRITE_i(len(configs_4)))
            for item_5 in configs_4:
                name_6 = item_5.name.encode()
                raw_8 = item_5.value
                value_7 = b"" if raw_8 is None else raw_8.encode()
                out += (_WRITE_h(len(name_6)), name_6, _WRITE_bh(item_5.config_operation, -1 if raw_8 is None else len(value_7)), value_7)
        out.append(_WRITE_Z(message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(IncrementalAlterConfigsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[IncrementalAlterConfigsRequest, int]:
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
        items_3: list[IncrementalAlterConfigsRequestAlterConfigsResource] = []
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
            if n_9 == 0:
                raise ValueError
            n_9 -= 1
            if n_9 > (end - pos) // 4:
                raise ValueError
            budget -= n_9 * 24
            if budget < 0:
                raise ValueError
            items_10: list[IncrementalAlterConfigsRequestAlterableConfig] = []
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
                name_11 = data[pos:stop_13].decode()
                pos = stop_13
                config_operation_14, = _READ_b(data, pos)
                pos += 1
                n_16 = data[pos]
                if n_16 > 127:
                    n_16, pos = read_uvarint(data, pos)
                    if n_16 > 32768:
                        raise ValueError
                else:
                    pos += 1
                value_15: str | None = None
                if n_16 > 0:
                    stop_17 = pos + n_16 - 1
                    if stop_17 > end:
                        raise ValueError
                    value_15 = data[pos:stop_17].decode()
                    pos = stop_17
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_10.append(IncrementalAlterConfigsRequestAlterableConfig(name_11, config_operation_14, value_15))
            configs_8 = items_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(IncrementalAlterConfigsRequestAlterConfigsResource(resource_type_4, resource_name_5, configs_8))
        resources_1 = items_3
        validate_only_18, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return IncrementalAlterConfigsRequest(resources_1, validate_only_18), pos
    except (IndexError, ValueError, struct_error):
        raise explain(IncrementalAlterConfigsRequest, 1, data, start, budget) from None


def encode_v1(message: IncrementalAlterConfigsRequest) -> bytes:
    try:
        out: list[bytes] = []
        resources_1 = message.resources
        n_2 = len(resources_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in resources_1:
            resource_name_4 = item_3.resource_name.encode()
            n_5 = len(resource_name_4) + 1
            configs_6 = item_3.configs
            n_7 = len(configs_6) + 1
            out += (_WRITE_b(item_3.resource_type), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), resource_name_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in configs_6:
                name_9 = item_8.name.encode()
                n_10 = len(name_9) + 1
                raw_12 = item_8.value
                if raw_12 is None:
                    value_11 = b""
                    n_13 = 0
                else:
                    value_11 = raw_12.encode()
                    n_13 = len(value_11) + 1
                out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), name_9, _WRITE_b(item_8.config_operation), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), value_11, b"\0")
            out.append(b"\0")
        out.append(_WRITE_Zx(message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(IncrementalAlterConfigsRequest, 1, error) from error
