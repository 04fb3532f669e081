"""FindCoordinatorRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    FindCoordinatorRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_h = Struct(">h").unpack_from
_WRITE_b = Struct(">b").pack
_WRITE_bx = Struct(">bx").pack
_WRITE_h = Struct(">h").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FindCoordinatorRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        key_1 = data[pos:stop_3].decode()
        pos = stop_3
        return FindCoordinatorRequest(key_1, 0, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorRequest, 0, data, start, budget) from None


def encode_v0(message: FindCoordinatorRequest) -> bytes:
    try:
        key_1 = message.key.encode()
        if message.key_type != 0:
            raise ValueError("key_type cannot be sent in version 0")
        if message.coordinator_keys:
            raise ValueError("coordinator_keys cannot be sent in version 0")
        return b"".join((_WRITE_h(len(key_1)), key_1))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FindCoordinatorRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        key_1 = data[pos:stop_3].decode()
        pos = stop_3
        key_type_4, = _READ_b(data, pos)
        pos += 1
        return FindCoordinatorRequest(key_1, key_type_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorRequest, 1, data, start, budget) from None


def encode_v1(message: FindCoordinatorRequest) -> bytes:
    try:
        key_1 = message.key.encode()
        if message.coordinator_keys:
            raise ValueError("coordinator_keys cannot be sent in version 1")
        return b"".join((_WRITE_h(len(key_1)), key_1, _WRITE_b(message.key_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FindCoordinatorRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        key_1 = data[pos:stop_3].decode()
        pos = stop_3
        key_type_4, = _READ_b(data, pos)
        pos += 1
        return FindCoordinatorRequest(key_1, key_type_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorRequest, 2, data, start, budget) from None


def encode_v2(message: FindCoordinatorRequest) -> bytes:
    try:
        key_1 = message.key.encode()
        if message.coordinator_keys:
            raise ValueError("coordinator_keys cannot be sent in version 2")
        return b"".join((_WRITE_h(len(key_1)), key_1, _WRITE_b(message.key_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FindCoordinatorRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
            if n_2 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_2 == 0:
            raise ValueError
        stop_3 = pos + n_2 - 1
        if stop_3 > end:
            raise ValueError
        key_1 = data[pos:stop_3].decode()
        pos = stop_3
        key_type_4, = _READ_b(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return FindCoordinatorRequest(key_1, key_type_4, []), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorRequest, 3, data, start, budget) from None


def encode_v3(message: FindCoordinatorRequest) -> bytes:
    try:
        key_1 = message.key.encode()
        n_2 = len(key_1) + 1
        if message.coordinator_keys:
            raise ValueError("coordinator_keys cannot be sent in version 3")
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), key_1, _WRITE_bx(message.key_type)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[FindCoordinatorRequest, int]:
    start = pos
    try:
        end = len(data)
        key_type_1, = _READ_b(data, pos)
        pos += 1
        n_3 = data[pos]
        if n_3 > 127:
            n_3, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_3 == 0:
            raise ValueError
        n_3 -= 1
        if n_3 > end - pos:
            raise ValueError
        budget -= n_3 * 24
        if budget < 0:
            raise ValueError
        items_4: list[str] = []
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
            coordinator_keys_5 = data[pos:stop_7].decode()
            pos = stop_7
            items_4.append(coordinator_keys_5)
        coordinator_keys_2 = items_4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return FindCoordinatorRequest('', key_type_1, coordinator_keys_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FindCoordinatorRequest, 4, data, start, budget) from None


def encode_v4(message: FindCoordinatorRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.key:
            raise ValueError("key cannot be sent in version 4")
        coordinator_keys_1 = message.coordinator_keys
        n_2 = len(coordinator_keys_1) + 1
        out += (_WRITE_b(message.key_type), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in coordinator_keys_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FindCoordinatorRequest, 4, error) from error
