"""JoinGroupRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iih = Struct(">iih").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iih = Struct(">iih").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, n_6 = _READ_ih(data, pos)
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
        if n_9 < 0:
            raise ValueError
        stop_10 = pos + n_9
        if stop_10 > end:
            raise ValueError
        protocol_type_8 = data[pos:stop_10].decode()
        pos = stop_10
        n_12, = _READ_i(data, pos)
        pos += 4
        if n_12 < 0:
            raise ValueError
        if n_12 > (end - pos) // 6:
            raise ValueError
        budget -= n_12 * 24
        if budget < 0:
            raise ValueError
        items_13: list[JoinGroupRequestProtocol] = []
        for _ in range(n_12):
            n_15, = _READ_h(data, pos)
            pos += 2
            if n_15 < 0:
                raise ValueError
            stop_16 = pos + n_15
            if stop_16 > end:
                raise ValueError
            name_14 = data[pos:stop_16].decode()
            pos = stop_16
            n_18, = _READ_i(data, pos)
            pos += 4
            if n_18 < 0:
                raise ValueError
            stop_19 = pos + n_18
            if stop_19 > end:
                raise ValueError
            metadata_17 = data[pos:stop_19]
            pos = stop_19
            items_13.append(JoinGroupRequestProtocol(name_14, metadata_17))
        protocols_11 = items_13
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, -1, member_id_5, None, protocol_type_8, protocols_11, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 0, data, start, budget) from None


def encode_v0(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 0")
        protocol_type_3 = message.protocol_type.encode()
        protocols_4 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_ih(message.session_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(len(protocol_type_3)), protocol_type_3, _WRITE_i(len(protocols_4)))
        for item_5 in protocols_4:
            name_6 = item_5.name.encode()
            metadata_7 = item_5.metadata
            out += (_WRITE_h(len(name_6)), name_6, _WRITE_i(len(metadata_7)), metadata_7)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5, n_7 = _READ_iih(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        protocol_type_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        budget -= n_13 * 24
        if budget < 0:
            raise ValueError
        items_14: list[JoinGroupRequestProtocol] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            name_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupRequestProtocol(name_15, metadata_18))
        protocols_12 = items_14
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, None, protocol_type_9, protocols_12, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 1, data, start, budget) from None


def encode_v1(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 1")
        protocol_type_3 = message.protocol_type.encode()
        protocols_4 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(len(protocol_type_3)), protocol_type_3, _WRITE_i(len(protocols_4)))
        for item_5 in protocols_4:
            name_6 = item_5.name.encode()
            metadata_7 = item_5.metadata
            out += (_WRITE_h(len(name_6)), name_6, _WRITE_i(len(metadata_7)), metadata_7)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5, n_7 = _READ_iih(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        protocol_type_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        budget -= n_13 * 24
        if budget < 0:
            raise ValueError
        items_14: list[JoinGroupRequestProtocol] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            name_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupRequestProtocol(name_15, metadata_18))
        protocols_12 = items_14
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, None, protocol_type_9, protocols_12, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 2, data, start, budget) from None


def encode_v2(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 2")
        protocol_type_3 = message.protocol_type.encode()
        protocols_4 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(len(protocol_type_3)), protocol_type_3, _WRITE_i(len(protocols_4)))
        for item_5 in protocols_4:
            name_6 = item_5.name.encode()
            metadata_7 = item_5.metadata
            out += (_WRITE_h(len(name_6)), name_6, _WRITE_i(len(metadata_7)), metadata_7)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5, n_7 = _READ_iih(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        protocol_type_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        budget -= n_13 * 24
        if budget < 0:
            raise ValueError
        items_14: list[JoinGroupRequestProtocol] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            name_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupRequestProtocol(name_15, metadata_18))
        protocols_12 = items_14
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, None, protocol_type_9, protocols_12, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 3, data, start, budget) from None


def encode_v3(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 3")
        protocol_type_3 = message.protocol_type.encode()
        protocols_4 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(len(protocol_type_3)), protocol_type_3, _WRITE_i(len(protocols_4)))
        for item_5 in protocols_4:
            name_6 = item_5.name.encode()
            metadata_7 = item_5.metadata
            out += (_WRITE_h(len(name_6)), name_6, _WRITE_i(len(metadata_7)), metadata_7)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5, n_7 = _READ_iih(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        if n_10 < 0:
            raise ValueError
        stop_11 = pos + n_10
        if stop_11 > end:
            raise ValueError
        protocol_type_9 = data[pos:stop_11].decode()
        pos = stop_11
        n_13, = _READ_i(data, pos)
        pos += 4
        if n_13 < 0:
            raise ValueError
        if n_13 > (end - pos) // 6:
            raise ValueError
        budget -= n_13 * 24
        if budget < 0:
            raise ValueError
        items_14: list[JoinGroupRequestProtocol] = []
        for _ in range(n_13):
            n_16, = _READ_h(data, pos)
            pos += 2
            if n_16 < 0:
                raise ValueError
            stop_17 = pos + n_16
            if stop_17 > end:
                raise ValueError
            name_15 = data[pos:stop_17].decode()
            pos = stop_17
            n_19, = _READ_i(data, pos)
            pos += 4
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            metadata_18 = data[pos:stop_20]
            pos = stop_20
            items_14.append(JoinGroupRequestProtocol(name_15, metadata_18))
        protocols_12 = items_14
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, None, protocol_type_9, protocols_12, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 4, data, start, budget) from None


def encode_v4(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        if message.group_instance_id is not None:
            raise ValueError("group_instance_id cannot be sent in version 4")
        protocol_type_3 = message.protocol_type.encode()
        protocols_4 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(len(protocol_type_3)), protocol_type_3, _WRITE_i(len(protocols_4)))
        for item_5 in protocols_4:
            name_6 = item_5.name.encode()
            metadata_7 = item_5.metadata
            out += (_WRITE_h(len(name_6)), name_6, _WRITE_i(len(metadata_7)), metadata_7)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5, n_7 = _READ_iih(data, pos)
        pos += 10
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10, = _READ_h(data, pos)
        pos += 2
        group_instance_id_9: str | None = None
        if n_10 >= 0:
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            group_instance_id_9 = data[pos:stop_11].decode()
            pos = stop_11
        elif n_10 != -1:
            raise ValueError
        n_13, = _READ_h(data, pos)
        pos += 2
        if n_13 < 0:
            raise ValueError
        stop_14 = pos + n_13
        if stop_14 > end:
            raise ValueError
        protocol_type_12 = data[pos:stop_14].decode()
        pos = stop_14
        n_16, = _READ_i(data, pos)
        pos += 4
        if n_16 < 0:
            raise ValueError
        if n_16 > (end - pos) // 6:
            raise ValueError
        budget -= n_16 * 24
        if budget < 0:
            raise ValueError
        items_17: list[JoinGroupRequestProtocol] = []
        for _ in range(n_16):
            n_19, = _READ_h(data, pos)
            pos += 2
            if n_19 < 0:
                raise ValueError
            stop_20 = pos + n_19
            if stop_20 > end:
                raise ValueError
            name_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22, = _READ_i(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            metadata_21 = data[pos:stop_23]
            pos = stop_23
            items_17.append(JoinGroupRequestProtocol(name_18, metadata_21))
        protocols_15 = items_17
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, group_instance_id_9, protocol_type_12, protocols_15, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 5, data, start, budget) from None


def encode_v5(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        member_id_2 = message.member_id.encode()
        raw_4 = message.group_instance_id
        group_instance_id_3 = b"" if raw_4 is None else raw_4.encode()
        protocol_type_5 = message.protocol_type.encode()
        protocols_6 = message.protocols
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(member_id_2)), member_id_2, _WRITE_h(-1 if raw_4 is None else len(group_instance_id_3)), group_instance_id_3, _WRITE_h(len(protocol_type_5)), protocol_type_5, _WRITE_i(len(protocols_6)))
        for item_7 in protocols_6:
            name_8 = item_7.name.encode()
            metadata_9 = item_7.metadata
            out += (_WRITE_h(len(name_8)), name_8, _WRITE_i(len(metadata_9)), metadata_9)
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5 = _READ_ii(data, pos)
        pos += 8
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
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            group_instance_id_9 = data[pos:stop_11].decode()
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
        protocol_type_12 = data[pos:stop_14].decode()
        pos = stop_14
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_16 == 0:
            raise ValueError
        n_16 -= 1
        if n_16 > (end - pos) // 3:
            raise ValueError
        budget -= n_16 * 24
        if budget < 0:
            raise ValueError
        items_17: list[JoinGroupRequestProtocol] = []
        for _ in range(n_16):
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            stop_20 = pos + n_19 - 1
            if stop_20 > end:
                raise ValueError
            name_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            metadata_21 = data[pos:stop_23]
            pos = stop_23
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_17.append(JoinGroupRequestProtocol(name_18, metadata_21))
        protocols_15 = items_17
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, group_instance_id_9, protocol_type_12, protocols_15, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 6, data, start, budget) from None


def encode_v6(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
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
        protocol_type_8 = message.protocol_type.encode()
        n_9 = len(protocol_type_8) + 1
        protocols_10 = message.protocols
        n_11 = len(protocols_10) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_ii(message.session_timeout_ms, message.rebalance_timeout_ms), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), protocol_type_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11))
        for item_12 in protocols_10:
            name_13 = item_12.name.encode()
            n_14 = len(name_13) + 1
            metadata_15 = item_12.metadata
            n_16 = len(metadata_15) + 1
            out += (UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), name_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_15, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5 = _READ_ii(data, pos)
        pos += 8
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
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            group_instance_id_9 = data[pos:stop_11].decode()
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
        protocol_type_12 = data[pos:stop_14].decode()
        pos = stop_14
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_16 == 0:
            raise ValueError
        n_16 -= 1
        if n_16 > (end - pos) // 3:
            raise ValueError
        budget -= n_16 * 24
        if budget < 0:
            raise ValueError
        items_17: list[JoinGroupRequestProtocol] = []
        for _ in range(n_16):
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            stop_20 = pos + n_19 - 1
            if stop_20 > end:
                raise ValueError
            name_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            metadata_21 = data[pos:stop_23]
            pos = stop_23
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_17.append(JoinGroupRequestProtocol(name_18, metadata_21))
        protocols_15 = items_17
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, group_instance_id_9, protocol_type_12, protocols_15, None), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 7, data, start, budget) from None


def encode_v7(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
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
        protocol_type_8 = message.protocol_type.encode()
        n_9 = len(protocol_type_8) + 1
        protocols_10 = message.protocols
        n_11 = len(protocols_10) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_ii(message.session_timeout_ms, message.rebalance_timeout_ms), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), protocol_type_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11))
        for item_12 in protocols_10:
            name_13 = item_12.name.encode()
            n_14 = len(name_13) + 1
            metadata_15 = item_12.metadata
            n_16 = len(metadata_15) + 1
            out += (UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), name_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_15, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5 = _READ_ii(data, pos)
        pos += 8
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
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            group_instance_id_9 = data[pos:stop_11].decode()
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
        protocol_type_12 = data[pos:stop_14].decode()
        pos = stop_14
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_16 == 0:
            raise ValueError
        n_16 -= 1
        if n_16 > (end - pos) // 3:
            raise ValueError
        budget -= n_16 * 24
        if budget < 0:
            raise ValueError
        items_17: list[JoinGroupRequestProtocol] = []
        for _ in range(n_16):
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            stop_20 = pos + n_19 - 1
            if stop_20 > end:
                raise ValueError
            name_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            metadata_21 = data[pos:stop_23]
            pos = stop_23
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_17.append(JoinGroupRequestProtocol(name_18, metadata_21))
        protocols_15 = items_17
        n_25 = data[pos]
        if n_25 > 127:
            n_25, pos = read_uvarint(data, pos)
            if n_25 > 32768:
                raise ValueError
        else:
            pos += 1
        reason_24: str | None = None
        if n_25 > 0:
            stop_26 = pos + n_25 - 1
            if stop_26 > end:
                raise ValueError
            reason_24 = data[pos:stop_26].decode()
            pos = stop_26
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, group_instance_id_9, protocol_type_12, protocols_15, reason_24), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 8, data, start, budget) from None


def encode_v8(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
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
        protocol_type_8 = message.protocol_type.encode()
        n_9 = len(protocol_type_8) + 1
        protocols_10 = message.protocols
        n_11 = len(protocols_10) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_ii(message.session_timeout_ms, message.rebalance_timeout_ms), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), protocol_type_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11))
        for item_12 in protocols_10:
            name_13 = item_12.name.encode()
            n_14 = len(name_13) + 1
            metadata_15 = item_12.metadata
            n_16 = len(metadata_15) + 1
            out += (UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), name_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_15, b"\0")
        raw_18 = message.reason
        if raw_18 is None:
            reason_17 = b""
            n_19 = 0
        else:
            reason_17 = raw_18.encode()
            n_19 = len(reason_17) + 1
        out += (UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19), reason_17, b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[JoinGroupRequest, int]:
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
        session_timeout_ms_4, rebalance_timeout_ms_5 = _READ_ii(data, pos)
        pos += 8
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
        member_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        n_10 = data[pos]
        if n_10 > 127:
            n_10, pos = read_uvarint(data, pos)
            if n_10 > 32768:
                raise ValueError
        else:
            pos += 1
        group_instance_id_9: str | None = None
        if n_10 > 0:
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            group_instance_id_9 = data[pos:stop_11].decode()
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
        protocol_type_12 = data[pos:stop_14].decode()
        pos = stop_14
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_16 == 0:
            raise ValueError
        n_16 -= 1
        if n_16 > (end - pos) // 3:
            raise ValueError
        budget -= n_16 * 24
        if budget < 0:
            raise ValueError
        items_17: list[JoinGroupRequestProtocol] = []
        for _ in range(n_16):
            n_19 = data[pos]
            if n_19 > 127:
                n_19, pos = read_uvarint(data, pos)
                if n_19 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_19 == 0:
                raise ValueError
            stop_20 = pos + n_19 - 1
            if stop_20 > end:
                raise ValueError
            name_18 = data[pos:stop_20].decode()
            pos = stop_20
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            metadata_21 = data[pos:stop_23]
            pos = stop_23
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_17.append(JoinGroupRequestProtocol(name_18, metadata_21))
        protocols_15 = items_17
        n_25 = data[pos]
        if n_25 > 127:
            n_25, pos = read_uvarint(data, pos)
            if n_25 > 32768:
                raise ValueError
        else:
            pos += 1
        reason_24: str | None = None
        if n_25 > 0:
            stop_26 = pos + n_25 - 1
            if stop_26 > end:
                raise ValueError
            reason_24 = data[pos:stop_26].decode()
            pos = stop_26
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return JoinGroupRequest(group_id_1, session_timeout_ms_4, rebalance_timeout_ms_5, member_id_6, group_instance_id_9, protocol_type_12, protocols_15, reason_24), pos
    except (IndexError, ValueError, struct_error):
        raise explain(JoinGroupRequest, 9, data, start, budget) from None


def encode_v9(message: JoinGroupRequest) -> bytes:
    try:
        out: list[bytes] = []
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
        protocol_type_8 = message.protocol_type.encode()
        n_9 = len(protocol_type_8) + 1
        protocols_10 = message.protocols
        n_11 = len(protocols_10) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, _WRITE_ii(message.session_timeout_ms, message.rebalance_timeout_ms), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), group_instance_id_5, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), protocol_type_8, UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11))
        for item_12 in protocols_10:
            name_13 = item_12.name.encode()
            n_14 = len(name_13) + 1
            metadata_15 = item_12.metadata
            n_16 = len(metadata_15) + 1
            out += (UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), name_13, UVARINT[n_16] if n_16 < 4096 else write_uvarint(n_16), metadata_15, b"\0")
        raw_18 = message.reason
        if raw_18 is None:
            reason_17 = b""
            n_19 = 0
        else:
            reason_17 = raw_18.encode()
            n_19 = len(reason_17) + 1
        out += (UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19), reason_17, b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(JoinGroupRequest, 9, error) from error
