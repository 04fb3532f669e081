"""FindCoordinatorResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_hih = Struct(">hih").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihh = Struct(">ihh").unpack_from
_WRITE_hih = Struct(">hih").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihh = Struct(">ihh").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
    start = pos
    try:
        end = len(data)
        error_code_1, node_id_2, n_4 = _READ_hih(data, pos)
        pos += 8
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        host_3 = data[pos:stop_5].decode()
        pos = stop_5
        port_6, = _READ_i(data, pos)
        pos += 4
        return FindCoordinatorResponse(0, error_code_1, '', node_id_2, host_3, port_6, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorResponse, 0, data, start) from None


def encode_v0(message: FindCoordinatorResponse) -> bytes:
    try:
        host_1 = message.host.encode()
        if message.coordinators:
            raise ValueError("coordinators cannot be sent in version 0")
        return b"".join((_WRITE_hih(message.error_code, message.node_id, len(host_1)), host_1, _WRITE_i(message.port)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
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
        node_id_6, n_8 = _READ_ih(data, pos)
        pos += 6
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        host_7 = data[pos:stop_9].decode()
        pos = stop_9
        port_10, = _READ_i(data, pos)
        pos += 4
        return FindCoordinatorResponse(throttle_time_ms_1, error_code_2, error_message_3, node_id_6, host_7, port_10, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorResponse, 1, data, start) from None


def encode_v1(message: FindCoordinatorResponse) -> bytes:
    try:
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        host_3 = message.host.encode()
        if message.coordinators:
            raise ValueError("coordinators cannot be sent in version 1")
        return b"".join((_WRITE_ihh(message.throttle_time_ms, message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1, _WRITE_ih(message.node_id, len(host_3)), host_3, _WRITE_i(message.port)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
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
        node_id_6, n_8 = _READ_ih(data, pos)
        pos += 6
        if n_8 < 0:
            raise ValueError
        stop_9 = pos + n_8
        if stop_9 > end:
            raise ValueError
        host_7 = data[pos:stop_9].decode()
        pos = stop_9
        port_10, = _READ_i(data, pos)
        pos += 4
        return FindCoordinatorResponse(throttle_time_ms_1, error_code_2, error_message_3, node_id_6, host_7, port_10, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorResponse, 2, data, start) from None


def encode_v2(message: FindCoordinatorResponse) -> bytes:
    try:
        raw_2 = message.error_message
        error_message_1 = b"" if raw_2 is None else raw_2.encode()
        host_3 = message.host.encode()
        if message.coordinators:
            raise ValueError("coordinators cannot be sent in version 2")
        return b"".join((_WRITE_ihh(message.throttle_time_ms, message.error_code, -1 if raw_2 is None else len(error_message_1)), error_message_1, _WRITE_ih(message.node_id, len(host_3)), host_3, _WRITE_i(message.port)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
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
        node_id_6, = _READ_i(data, pos)
        pos += 4
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
        host_7 = data[pos:stop_9].decode()
        pos = stop_9
        port_10, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return FindCoordinatorResponse(throttle_time_ms_1, error_code_2, error_message_3, node_id_6, host_7, port_10, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorResponse, 3, data, start) from None


def encode_v3(message: FindCoordinatorResponse) -> bytes:
    try:
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        host_4 = message.host.encode()
        n_5 = len(host_4) + 1
        if message.coordinators:
            raise ValueError("coordinators cannot be sent in version 3")
        return b"".join((_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, _WRITE_i(message.node_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), host_4, _WRITE_ix(message.port)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
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
        if n_3 > (end - pos) // 14:
            raise ValueError
        items_4: list[FindCoordinatorResponseCoordinator] = []
        for _ in range(n_3):
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
            key_5 = data[pos:stop_7].decode()
            pos = stop_7
            node_id_8, = _READ_i(data, pos)
            pos += 4
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
            host_9 = data[pos:stop_11].decode()
            pos = stop_11
            port_12, error_code_13 = _READ_ih(data, pos)
            pos += 6
            n_15 = data[pos]
            if n_15 > 127:
                n_15, pos = read_uvarint(data, pos)
                if n_15 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_14: str | None = None
            if n_15 > 0:
                stop_16 = pos + n_15 - 1
                if stop_16 > end:
                    raise ValueError
                error_message_14 = data[pos:stop_16].decode()
                pos = stop_16
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(FindCoordinatorResponseCoordinator(key_5, node_id_8, host_9, port_12, error_code_13, error_message_14))
        coordinators_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return FindCoordinatorResponse(throttle_time_ms_1, 0, '', 0, '', 0, coordinators_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorResponse, 4, data, start) from None


def encode_v4(message: FindCoordinatorResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: FindCoordinatorResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.error_code != 0:
            raise ValueError("error_code cannot be sent in version 4")
        if message.node_id != 0:
            raise ValueError("node_id cannot be sent in version 4")
        if message.host:
            raise ValueError("host cannot be sent in version 4")
        if message.port != 0:
            raise ValueError("port cannot be sent in version 4")
        coordinators_1 = message.coordinators
        n_2 = len(coordinators_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in coordinators_1:
            key_4 = item_3.key.encode()
            n_5 = len(key_4) + 1
            host_6 = item_3.host.encode()
            n_7 = len(host_6) + 1
            raw_9 = item_3.error_message
            if raw_9 is None:
                error_message_8 = b""
                n_10 = 0
            else:
                error_message_8 = raw_9.encode()
                n_10 = len(error_message_8) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), key_4, _WRITE_i(item_3.node_id), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), host_6, _WRITE_ih(item_3.port, item_3.error_code), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), error_message_8, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorResponse, 4, error) from error
