"""OffsetFetchRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_Z = Struct(">?").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Zx = Struct(">?x").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5, = _READ_i(data, pos)
        pos += 4
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        budget -= n_5 * 24
        if budget < 0:
            raise ValueError
        items_6: list[OffsetFetchRequestTopic] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            name_7 = data[pos:stop_9].decode()
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 4:
                raise ValueError
            budget -= n_11
            if budget < 0:
                raise ValueError
            partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
            pos += n_11 * 4
            items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
        topics_4 = items_6
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 1, data, start, budget) from None


def encode_v1(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        raw_2 = message.topics
        if raw_2 is None:
            raise ValueError("topics cannot be null in version 1")
        topics_3 = raw_2
        out += (_WRITE_h(len(group_id_1)), group_id_1, _WRITE_i(len(topics_3)))
        for item_4 in topics_3:
            name_5 = item_4.name.encode()
            partition_indexes_6 = item_4.partition_indexes
            out += (_WRITE_h(len(name_5)), name_5, _WRITE_i(len(partition_indexes_6)), pack(">" + f"{len(partition_indexes_6)}i", *partition_indexes_6))
        if message.groups:
            raise ValueError("groups cannot be sent in version 1")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 1")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5, = _READ_i(data, pos)
        pos += 4
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 >= 0:
            if n_5 > (end - pos) // 6:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
                n_8, = _READ_h(data, pos)
                pos += 2
                if n_8 < 0:
                    raise ValueError
                stop_9 = pos + n_8
                if stop_9 > end:
                    raise ValueError
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11, = _READ_i(data, pos)
                pos += 4
                if n_11 < 0:
                    raise ValueError
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        elif n_5 != -1:
            raise ValueError
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 2, data, start, budget) from None


def encode_v2(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        topics_2 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1)
        if topics_2 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_2)))
            for item_3 in topics_2:
                name_4 = item_3.name.encode()
                partition_indexes_5 = item_3.partition_indexes
                out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partition_indexes_5)), pack(">" + f"{len(partition_indexes_5)}i", *partition_indexes_5))
        if message.groups:
            raise ValueError("groups cannot be sent in version 2")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 2")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5, = _READ_i(data, pos)
        pos += 4
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 >= 0:
            if n_5 > (end - pos) // 6:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
                n_8, = _READ_h(data, pos)
                pos += 2
                if n_8 < 0:
                    raise ValueError
                stop_9 = pos + n_8
                if stop_9 > end:
                    raise ValueError
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11, = _READ_i(data, pos)
                pos += 4
                if n_11 < 0:
                    raise ValueError
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        elif n_5 != -1:
            raise ValueError
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 3, data, start, budget) from None


def encode_v3(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        topics_2 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1)
        if topics_2 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_2)))
            for item_3 in topics_2:
                name_4 = item_3.name.encode()
                partition_indexes_5 = item_3.partition_indexes
                out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partition_indexes_5)), pack(">" + f"{len(partition_indexes_5)}i", *partition_indexes_5))
        if message.groups:
            raise ValueError("groups cannot be sent in version 3")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 3")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5, = _READ_i(data, pos)
        pos += 4
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 >= 0:
            if n_5 > (end - pos) // 6:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
                n_8, = _READ_h(data, pos)
                pos += 2
                if n_8 < 0:
                    raise ValueError
                stop_9 = pos + n_8
                if stop_9 > end:
                    raise ValueError
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11, = _READ_i(data, pos)
                pos += 4
                if n_11 < 0:
                    raise ValueError
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        elif n_5 != -1:
            raise ValueError
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 4, data, start, budget) from None


def encode_v4(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        topics_2 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1)
        if topics_2 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_2)))
            for item_3 in topics_2:
                name_4 = item_3.name.encode()
                partition_indexes_5 = item_3.partition_indexes
                out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partition_indexes_5)), pack(">" + f"{len(partition_indexes_5)}i", *partition_indexes_5))
        if message.groups:
            raise ValueError("groups cannot be sent in version 4")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 4")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5, = _READ_i(data, pos)
        pos += 4
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 >= 0:
            if n_5 > (end - pos) // 6:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
                n_8, = _READ_h(data, pos)
                pos += 2
                if n_8 < 0:
                    raise ValueError
                stop_9 = pos + n_8
                if stop_9 > end:
                    raise ValueError
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11, = _READ_i(data, pos)
                pos += 4
                if n_11 < 0:
                    raise ValueError
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        elif n_5 != -1:
            raise ValueError
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 5, data, start, budget) from None


def encode_v5(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        topics_2 = message.topics
        out += (_WRITE_h(len(group_id_1)), group_id_1)
        if topics_2 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_2)))
            for item_3 in topics_2:
                name_4 = item_3.name.encode()
                partition_indexes_5 = item_3.partition_indexes
                out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partition_indexes_5)), pack(">" + f"{len(partition_indexes_5)}i", *partition_indexes_5))
        if message.groups:
            raise ValueError("groups cannot be sent in version 5")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 5")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 > 0:
            n_5 -= 1
            if n_5 > (end - pos) // 3:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
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
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11 = data[pos]
                if n_11 > 127:
                    n_11, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_11 == 0:
                    raise ValueError
                n_11 -= 1
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchRequest(group_id_1, topics_4, [], False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 6, data, start, budget) from None


def encode_v6(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        topics_3 = message.topics
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1)
        if topics_3 is None:
            out.append(b"\0")
        else:
            n_4 = len(topics_3) + 1
            out.append(UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4))
            for item_5 in topics_3:
                name_6 = item_5.name.encode()
                n_7 = len(name_6) + 1
                partition_indexes_8 = item_5.partition_indexes
                n_9 = len(partition_indexes_8) + 1
                out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), name_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), pack(">" + f"{len(partition_indexes_8)}i", *partition_indexes_8), b"\0")
        if message.groups:
            raise ValueError("groups cannot be sent in version 6")
        if message.require_stable:
            raise ValueError("require_stable cannot be sent in version 6")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_4: list[OffsetFetchRequestTopic] | None = None
        if n_5 > 0:
            n_5 -= 1
            if n_5 > (end - pos) // 3:
                raise ValueError
            budget -= n_5 * 24
            if budget < 0:
                raise ValueError
            items_6: list[OffsetFetchRequestTopic] = []
            for _ in range(n_5):
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
                name_7 = data[pos:stop_9].decode()
                pos = stop_9
                n_11 = data[pos]
                if n_11 > 127:
                    n_11, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_11 == 0:
                    raise ValueError
                n_11 -= 1
                if n_11 > (end - pos) // 4:
                    raise ValueError
                budget -= n_11
                if budget < 0:
                    raise ValueError
                partition_indexes_10 = list(unpack_from(">" + f"{n_11}i", data, pos))
                pos += n_11 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_6.append(OffsetFetchRequestTopic(name_7, partition_indexes_10))
            topics_4 = items_6
        require_stable_12, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchRequest(group_id_1, topics_4, [], require_stable_12), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 7, data, start, budget) from None


def encode_v7(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        topics_3 = message.topics
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1)
        if topics_3 is None:
            out.append(b"\0")
        else:
            n_4 = len(topics_3) + 1
            out.append(UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4))
            for item_5 in topics_3:
                name_6 = item_5.name.encode()
                n_7 = len(name_6) + 1
                partition_indexes_8 = item_5.partition_indexes
                n_9 = len(partition_indexes_8) + 1
                out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), name_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), pack(">" + f"{len(partition_indexes_8)}i", *partition_indexes_8), b"\0")
        if message.groups:
            raise ValueError("groups cannot be sent in version 7")
        out.append(_WRITE_Zx(message.require_stable))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        if n_2 > (end - pos) // 3:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[OffsetFetchRequestGroup] = []
        for _ in range(n_2):
            n_5 = data[pos]
            if n_5 > 127:
                n_5, pos = read_uvarint(data, pos)
                if n_5 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_5 == 0:
                raise ValueError
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            group_id_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8 = data[pos]
            if n_8 > 127:
                n_8, pos = read_uvarint(data, pos)
            else:
                pos += 1
            topics_7: list[OffsetFetchRequestTopics] | None = None
            if n_8 > 0:
                n_8 -= 1
                if n_8 > (end - pos) // 3:
                    raise ValueError
                budget -= n_8 * 24
                if budget < 0:
                    raise ValueError
                items_9: list[OffsetFetchRequestTopics] = []
                for _ in range(n_8):
                    n_11 = data[pos]
                    if n_11 > 127:
                        n_11, pos = read_uvarint(data, pos)
                        if n_11 > 32768:
                            raise ValueError
                    else:
                        pos += 1
                    if n_11 == 0:
                        raise ValueError
                    stop_12 = pos + n_11 - 1
                    if stop_12 > end:
                        raise ValueError
                    name_10 = data[pos:stop_12].decode()
                    pos = stop_12
                    n_14 = data[pos]
                    if n_14 > 127:
                        n_14, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_14 == 0:
                        raise ValueError
                    n_14 -= 1
                    if n_14 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_14
                    if budget < 0:
                        raise ValueError
                    partition_indexes_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                    pos += n_14 * 4
                    if data[pos]:
                        budget -= data[pos] * 24
                        if budget < 0:
                            raise ValueError
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_9.append(OffsetFetchRequestTopics(name_10, partition_indexes_13))
                topics_7 = items_9
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(OffsetFetchRequestGroup(group_id_4, None, -1, topics_7))
        groups_1 = items_3
        require_stable_15, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchRequest('', [], groups_1, require_stable_15), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 8, data, start, budget) from None


def encode_v8(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.group_id:
            raise ValueError("group_id cannot be sent in version 8")
        if message.topics:
            raise ValueError("topics cannot be sent in version 8")
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            topics_6 = item_3.topics
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4)
            if topics_6 is None:
                out.append(b"\0")
            else:
                n_7 = len(topics_6) + 1
                out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
                for item_8 in topics_6:
                    name_9 = item_8.name.encode()
                    n_10 = len(name_9) + 1
                    partition_indexes_11 = item_8.partition_indexes
                    n_12 = len(partition_indexes_11) + 1
                    out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), name_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), pack(">" + f"{len(partition_indexes_11)}i", *partition_indexes_11), b"\0")
            out.append(b"\0")
        out.append(_WRITE_Zx(message.require_stable))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[OffsetFetchRequest, int]:
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
        items_3: list[OffsetFetchRequestGroup] = []
        for _ in range(n_2):
            n_5 = data[pos]
            if n_5 > 127:
                n_5, pos = read_uvarint(data, pos)
                if n_5 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_5 == 0:
                raise ValueError
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            group_id_4 = data[pos:stop_6].decode()
            pos = stop_6
            n_8 = data[pos]
            if n_8 > 127:
                n_8, pos = read_uvarint(data, pos)
                if n_8 > 32768:
                    raise ValueError
            else:
                pos += 1
            member_id_7: str | None = None
            if n_8 > 0:
                stop_9 = pos + n_8 - 1
                if stop_9 > end:
                    raise ValueError
                member_id_7 = data[pos:stop_9].decode()
                pos = stop_9
            member_epoch_10, = _READ_i(data, pos)
            pos += 4
            n_12 = data[pos]
            if n_12 > 127:
                n_12, pos = read_uvarint(data, pos)
            else:
                pos += 1
            topics_11: list[OffsetFetchRequestTopics] | None = None
            if n_12 > 0:
                n_12 -= 1
                if n_12 > (end - pos) // 3:
                    raise ValueError
                budget -= n_12 * 24
                if budget < 0:
                    raise ValueError
                items_13: list[OffsetFetchRequestTopics] = []
                for _ in range(n_12):
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
                    name_14 = data[pos:stop_16].decode()
                    pos = stop_16
                    n_18 = data[pos]
                    if n_18 > 127:
                        n_18, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_18 == 0:
                        raise ValueError
                    n_18 -= 1
                    if n_18 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_18
                    if budget < 0:
                        raise ValueError
                    partition_indexes_17 = list(unpack_from(">" + f"{n_18}i", data, pos))
                    pos += n_18 * 4
                    if data[pos]:
                        budget -= data[pos] * 24
                        if budget < 0:
                            raise ValueError
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_13.append(OffsetFetchRequestTopics(name_14, partition_indexes_17))
                topics_11 = items_13
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(OffsetFetchRequestGroup(group_id_4, member_id_7, member_epoch_10, topics_11))
        groups_1 = items_3
        require_stable_19, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return OffsetFetchRequest('', [], groups_1, require_stable_19), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetFetchRequest, 9, data, start, budget) from None


def encode_v9(message: OffsetFetchRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.group_id:
            raise ValueError("group_id cannot be sent in version 9")
        if message.topics:
            raise ValueError("topics cannot be sent in version 9")
        groups_1 = message.groups
        n_2 = len(groups_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in groups_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            raw_7 = item_3.member_id
            if raw_7 is None:
                member_id_6 = b""
                n_8 = 0
            else:
                member_id_6 = raw_7.encode()
                n_8 = len(member_id_6) + 1
            topics_9 = item_3.topics
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), member_id_6, _WRITE_i(item_3.member_epoch))
            if topics_9 is None:
                out.append(b"\0")
            else:
                n_10 = len(topics_9) + 1
                out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                for item_11 in topics_9:
                    name_12 = item_11.name.encode()
                    n_13 = len(name_12) + 1
                    partition_indexes_14 = item_11.partition_indexes
                    n_15 = len(partition_indexes_14) + 1
                    out += (UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13), name_12, UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), pack(">" + f"{len(partition_indexes_14)}i", *partition_indexes_14), b"\0")
            out.append(b"\0")
        out.append(_WRITE_Zx(message.require_stable))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetFetchRequest, 9, error) from error
