"""HeartbeatRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    HeartbeatRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[HeartbeatRequest, int]:
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
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        return HeartbeatRequest(group_id_1, generation_id_4, member_id_5, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(HeartbeatRequest, 0, data, start, budget) from None


def encode_v0(message: HeartbeatRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 0")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(HeartbeatRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[HeartbeatRequest, int]:
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
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        return HeartbeatRequest(group_id_1, generation_id_4, member_id_5, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(HeartbeatRequest, 1, data, start, budget) from None


def encode_v1(message: HeartbeatRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 1")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(HeartbeatRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[HeartbeatRequest, int]:
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
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        return HeartbeatRequest(group_id_1, generation_id_4, member_id_5, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(HeartbeatRequest, 2, data, start, budget) from None


def encode_v2(message: HeartbeatRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 2")
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(HeartbeatRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[HeartbeatRequest, int]:
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
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_id_4, n_6 = _READ_ih(data, pos)
        pos += 6
        if n_6 < 0:
            raise ValueError
        stop_7 = pos + n_6
        if stop_7 > end:
            raise ValueError
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9, = _READ_h(data, pos)
        pos += 2
        group_instance_id_8: str | None = None
        if n_9 >= 0:
            stop_10 = pos + n_9
            if stop_10 > end:
                raise ValueError
            group_instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        elif n_9 != -1:
            raise ValueError
        return HeartbeatRequest(group_id_1, generation_id_4, member_id_5, group_instance_id_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(HeartbeatRequest, 3, data, start, budget) from None


def encode_v3(message: HeartbeatRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        raw_4 = message.group_instance_id
        group_instance_id_3 = b"" if raw_4 is None else raw_4.encode()
        return b"".join((_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.generation_id, len(member_id_2)), member_id_2, _WRITE_h(-1 if raw_4 is None else len(group_instance_id_3)), group_instance_id_3))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(HeartbeatRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[HeartbeatRequest, int]:
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
        group_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        generation_id_4, = _READ_i(data, pos)
        pos += 4
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
        member_id_5 = data[pos:stop_7].decode()
        pos = stop_7
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            group_instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return HeartbeatRequest(group_id_1, generation_id_4, member_id_5, group_instance_id_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(HeartbeatRequest, 4, data, start, budget) from None


def encode_v4(message: HeartbeatRequest) -> bytes:
    try:
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        member_id_3 = message.member_id.encode()
        n_4 = len(member_id_3) + 1
        raw_6 = message.group_instance_id
        if raw_6 is None:
            group_instance_id_5 = b""
            n_7 = 0
        else:
            group_instance_id_5 = raw_6.encode()
            n_7 = len(group_instance_id_5) + 1
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_i(message.generation_id), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(HeartbeatRequest, 4, error) from error
