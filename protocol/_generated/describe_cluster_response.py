"""DescribeClusterResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    DescribeClusterResponse,
    DescribeClusterResponseDescribeClusterBroker,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeClusterResponse, int]:
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
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        stop_8 = pos + n_7 - 1
        if stop_8 > end:
            raise ValueError
        cluster_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        controller_id_9, = _READ_i(data, pos)
        pos += 4
        n_11 = data[pos]
        if n_11 > 127:
            n_11, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_11 == 0:
            raise ValueError
        n_11 -= 1
        if n_11 > (end - pos) // 11:
            raise ValueError
        items_12: list[DescribeClusterResponseDescribeClusterBroker] = []
        for _ in range(n_11):
            broker_id_13, = _READ_i(data, pos)
            pos += 4
            n_15 = data[pos]
            if n_15 > 127:
                n_15, pos = read_uvarint(data, pos)
                if n_15 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_15 == 0:
                raise ValueError
            stop_16 = pos + n_15 - 1
            if stop_16 > end:
                raise ValueError
            host_14 = data[pos:stop_16].decode()
            pos = stop_16
            port_17, = _READ_i(data, pos)
            pos += 4
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_18: str | None = None
            if n_19 > 0:
                stop_20 = pos + n_19 - 1
                if stop_20 > end:
                    raise ValueError
                rack_18 = data[pos:stop_20].decode()
                pos = stop_20
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_12.append(DescribeClusterResponseDescribeClusterBroker(broker_id_13, host_14, port_17, rack_18))
        brokers_10 = items_12
        cluster_authorized_operations_21, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClusterResponse(throttle_time_ms_1, error_code_2, error_message_3, 1, cluster_id_6, controller_id_9, brokers_10, cluster_authorized_operations_21), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClusterResponse, 0, data, start) from None


def encode_v0(message: DescribeClusterResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeClusterResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        if message.endpoint_type != 1:
            raise ValueError("endpoint_type cannot be sent in version 0")
        cluster_id_4 = message.cluster_id.encode()
        n_5 = len(cluster_id_4) + 1
        brokers_6 = message.brokers
        n_7 = len(brokers_6) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), cluster_id_4, _WRITE_i(message.controller_id), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
        for item_8 in brokers_6:
            host_9 = item_8.host.encode()
            n_10 = len(host_9) + 1
            raw_12 = item_8.rack
            if raw_12 is None:
                rack_11 = b""
                n_13 = 0
            else:
                rack_11 = raw_12.encode()
                n_13 = len(rack_11) + 1
            out += (_WRITE_i(item_8.broker_id), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), host_9, _WRITE_i(item_8.port), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), rack_11, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_ix(message.cluster_authorized_operations))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClusterResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[DescribeClusterResponse, int]:
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
        endpoint_type_6, = _READ_b(data, pos)
        pos += 1
        n_8 = data[pos]
        if n_8 > 127:
            n_8, pos = read_uvarint(data, pos)
            if n_8 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_8 == 0:
            raise ValueError
        stop_9 = pos + n_8 - 1
        if stop_9 > end:
            raise ValueError
        cluster_id_7 = data[pos:stop_9].decode()
        pos = stop_9
        controller_id_10, = _READ_i(data, pos)
        pos += 4
        n_12 = data[pos]
        if n_12 > 127:
            n_12, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_12 == 0:
            raise ValueError
        n_12 -= 1
        if n_12 > (end - pos) // 11:
            raise ValueError
        items_13: list[DescribeClusterResponseDescribeClusterBroker] = []
        for _ in range(n_12):
            broker_id_14, = _READ_i(data, pos)
            pos += 4
            n_16 = data[pos]
            if n_16 > 127:
                n_16, pos = read_uvarint(data, pos)
                if n_16 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_16 == 0:
                raise ValueError
            stop_17 = pos + n_16 - 1
            if stop_17 > end:
                raise ValueError
            host_15 = data[pos:stop_17].decode()
            pos = stop_17
            port_18, = _READ_i(data, pos)
            pos += 4
            n_20 = data[pos]
            if n_20 > 127:
                n_20, pos = read_uvarint(data, pos)
                if n_20 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_19: str | None = None
            if n_20 > 0:
                stop_21 = pos + n_20 - 1
                if stop_21 > end:
                    raise ValueError
                rack_19 = data[pos:stop_21].decode()
                pos = stop_21
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_13.append(DescribeClusterResponseDescribeClusterBroker(broker_id_14, host_15, port_18, rack_19))
        brokers_11 = items_13
        cluster_authorized_operations_22, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClusterResponse(throttle_time_ms_1, error_code_2, error_message_3, endpoint_type_6, cluster_id_7, controller_id_10, brokers_11, cluster_authorized_operations_22), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClusterResponse, 1, data, start) from None


def encode_v1(message: DescribeClusterResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DescribeClusterResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        cluster_id_4 = message.cluster_id.encode()
        n_5 = len(cluster_id_4) + 1
        brokers_6 = message.brokers
        n_7 = len(brokers_6) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, _WRITE_b(message.endpoint_type), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), cluster_id_4, _WRITE_i(message.controller_id), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
        for item_8 in brokers_6:
            host_9 = item_8.host.encode()
            n_10 = len(host_9) + 1
            raw_12 = item_8.rack
            if raw_12 is None:
                rack_11 = b""
                n_13 = 0
            else:
                rack_11 = raw_12.encode()
                n_13 = len(rack_11) + 1
            out += (_WRITE_i(item_8.broker_id), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), host_9, _WRITE_i(item_8.port), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), rack_11, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_ix(message.cluster_authorized_operations))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClusterResponse, 1, error) from error
