"""MetadataRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    MetadataRequest,
    MetadataRequestTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_Z = Struct(">?").unpack_from
_READ_ZZ = Struct(">??").unpack_from
_READ_ZZZ = Struct(">???").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_Z = Struct(">?").pack
_WRITE_ZZZ = Struct(">???").pack
_WRITE_ZZZx = Struct(">???x").pack
_WRITE_ZZx = Struct(">??x").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 2:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[MetadataRequestTopic] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            name_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
        topics_1 = items_3
        return MetadataRequest(topics_1, True, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 0, data, start, budget) from None


def encode_v0(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        raw_1 = message.topics
        if raw_1 is None:
            raise ValueError("topics cannot be null in version 0")
        topics_2 = raw_1
        out.append(_WRITE_i(len(topics_2)))
        for item_3 in topics_2:
            raw_5 = item_3.name
            if raw_5 is None:
                raise ValueError("name cannot be null in version 0")
            name_4 = raw_5.encode()
            out += (_WRITE_h(len(name_4)), name_4)
        if message.allow_auto_topic_creation != True:
            raise ValueError("allow_auto_topic_creation cannot be sent in version 0")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 0")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        return MetadataRequest(topics_1, True, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 1, data, start, budget) from None


def encode_v1(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 1")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.allow_auto_topic_creation != True:
            raise ValueError("allow_auto_topic_creation cannot be sent in version 1")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 1")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 1")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        return MetadataRequest(topics_1, True, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 2, data, start, budget) from None


def encode_v2(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 2")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.allow_auto_topic_creation != True:
            raise ValueError("allow_auto_topic_creation cannot be sent in version 2")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 2")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 2")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        return MetadataRequest(topics_1, True, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 3, data, start, budget) from None


def encode_v3(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 3")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.allow_auto_topic_creation != True:
            raise ValueError("allow_auto_topic_creation cannot be sent in version 3")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 3")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 3")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        allow_auto_topic_creation_7, = _READ_Z(data, pos)
        pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 4, data, start, budget) from None


def encode_v4(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 4")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 4")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 4")
        out.append(_WRITE_Z(message.allow_auto_topic_creation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        allow_auto_topic_creation_7, = _READ_Z(data, pos)
        pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 5, data, start, budget) from None


def encode_v5(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 5")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 5")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 5")
        out.append(_WRITE_Z(message.allow_auto_topic_creation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        allow_auto_topic_creation_7, = _READ_Z(data, pos)
        pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 6, data, start, budget) from None


def encode_v6(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 6")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 6")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 6")
        out.append(_WRITE_Z(message.allow_auto_topic_creation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        allow_auto_topic_creation_7, = _READ_Z(data, pos)
        pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, False, False), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 7, data, start, budget) from None


def encode_v7(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 7")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 7")
        if message.include_topic_authorized_operations:
            raise ValueError("include_topic_authorized_operations cannot be sent in version 7")
        out.append(_WRITE_Z(message.allow_auto_topic_creation))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 7, error) from error


def decode_v8(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 >= 0:
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                n_5, = _READ_h(data, pos)
                pos += 2
                if n_5 < 0:
                    raise ValueError
                stop_6 = pos + n_5
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        elif n_2 != -1:
            raise ValueError
        allow_auto_topic_creation_7, include_cluster_authorized_operations_8, include_topic_authorized_operations_9 = _READ_ZZZ(data, pos)
        pos += 3
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, include_cluster_authorized_operations_8, include_topic_authorized_operations_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 8, data, start, budget) from None


def encode_v8(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(topics_1)))
            for item_2 in topics_1:
                raw_4 = item_2.name
                if raw_4 is None:
                    raise ValueError("name cannot be null in version 8")
                name_3 = raw_4.encode()
                out += (_WRITE_h(len(name_3)), name_3)
        out.append(_WRITE_ZZZ(message.allow_auto_topic_creation, message.include_cluster_authorized_operations, message.include_topic_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 8, error) from error


def decode_v9(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 > 0:
            n_2 -= 1
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
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
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_3.append(MetadataRequestTopic(b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', name_4))
            topics_1 = items_3
        allow_auto_topic_creation_7, include_cluster_authorized_operations_8, include_topic_authorized_operations_9 = _READ_ZZZ(data, pos)
        pos += 3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_7, include_cluster_authorized_operations_8, include_topic_authorized_operations_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 9, data, start, budget) from None


def encode_v9(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\0")
        else:
            n_2 = len(topics_1) + 1
            out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
            for item_3 in topics_1:
                raw_5 = item_3.name
                if raw_5 is None:
                    raise ValueError("name cannot be null in version 9")
                name_4 = raw_5.encode()
                n_6 = len(name_4) + 1
                out += (UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, b"\0")
        out.append(_WRITE_ZZZx(message.allow_auto_topic_creation, message.include_cluster_authorized_operations, message.include_topic_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 9, error) from error


def decode_v10(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 > 0:
            n_2 -= 1
            if n_2 > (end - pos) // 18:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                topic_id_4, = _READ_U(data, pos)
                pos += 16
                n_6 = data[pos]
                if n_6 > 127:
                    n_6, pos = read_uvarint(data, pos)
                    if n_6 > 32768:
                        raise ValueError
                else:
                    pos += 1
                name_5: str | None = None
                if n_6 > 0:
                    stop_7 = pos + n_6 - 1
                    if stop_7 > end:
                        raise ValueError
                    name_5 = data[pos:stop_7].decode()
                    pos = stop_7
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_3.append(MetadataRequestTopic(topic_id_4, name_5))
            topics_1 = items_3
        allow_auto_topic_creation_8, include_cluster_authorized_operations_9, include_topic_authorized_operations_10 = _READ_ZZZ(data, pos)
        pos += 3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_8, include_cluster_authorized_operations_9, include_topic_authorized_operations_10), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 10, data, start, budget) from None


def encode_v10(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\0")
        else:
            n_2 = len(topics_1) + 1
            out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
            for item_3 in topics_1:
                if len(item_3.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                raw_5 = item_3.name
                if raw_5 is None:
                    name_4 = b""
                    n_6 = 0
                else:
                    name_4 = raw_5.encode()
                    n_6 = len(name_4) + 1
                out += (_WRITE_U(item_3.topic_id), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, b"\0")
        out.append(_WRITE_ZZZx(message.allow_auto_topic_creation, message.include_cluster_authorized_operations, message.include_topic_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 10, error) from error


def decode_v11(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 > 0:
            n_2 -= 1
            if n_2 > (end - pos) // 18:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                topic_id_4, = _READ_U(data, pos)
                pos += 16
                n_6 = data[pos]
                if n_6 > 127:
                    n_6, pos = read_uvarint(data, pos)
                    if n_6 > 32768:
                        raise ValueError
                else:
                    pos += 1
                name_5: str | None = None
                if n_6 > 0:
                    stop_7 = pos + n_6 - 1
                    if stop_7 > end:
                        raise ValueError
                    name_5 = data[pos:stop_7].decode()
                    pos = stop_7
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_3.append(MetadataRequestTopic(topic_id_4, name_5))
            topics_1 = items_3
        allow_auto_topic_creation_8, include_topic_authorized_operations_9 = _READ_ZZ(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_8, False, include_topic_authorized_operations_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 11, data, start, budget) from None


def encode_v11(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\0")
        else:
            n_2 = len(topics_1) + 1
            out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
            for item_3 in topics_1:
                if len(item_3.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                raw_5 = item_3.name
                if raw_5 is None:
                    name_4 = b""
                    n_6 = 0
                else:
                    name_4 = raw_5.encode()
                    n_6 = len(name_4) + 1
                out += (_WRITE_U(item_3.topic_id), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, b"\0")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 11")
        out.append(_WRITE_ZZx(message.allow_auto_topic_creation, message.include_topic_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 11, error) from error


def decode_v12(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[MetadataRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topics_1: list[MetadataRequestTopic] | None = None
        if n_2 > 0:
            n_2 -= 1
            if n_2 > (end - pos) // 18:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[MetadataRequestTopic] = []
            for _ in range(n_2):
                topic_id_4, = _READ_U(data, pos)
                pos += 16
                n_6 = data[pos]
                if n_6 > 127:
                    n_6, pos = read_uvarint(data, pos)
                    if n_6 > 32768:
                        raise ValueError
                else:
                    pos += 1
                name_5: str | None = None
                if n_6 > 0:
                    stop_7 = pos + n_6 - 1
                    if stop_7 > end:
                        raise ValueError
                    name_5 = data[pos:stop_7].decode()
                    pos = stop_7
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_3.append(MetadataRequestTopic(topic_id_4, name_5))
            topics_1 = items_3
        allow_auto_topic_creation_8, include_topic_authorized_operations_9 = _READ_ZZ(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataRequest(topics_1, allow_auto_topic_creation_8, False, include_topic_authorized_operations_9), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataRequest, 12, data, start, budget) from None


def encode_v12(message: MetadataRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        if topics_1 is None:
            out.append(b"\0")
        else:
            n_2 = len(topics_1) + 1
            out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
            for item_3 in topics_1:
                if len(item_3.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                raw_5 = item_3.name
                if raw_5 is None:
                    name_4 = b""
                    n_6 = 0
                else:
                    name_4 = raw_5.encode()
                    n_6 = len(name_4) + 1
                out += (_WRITE_U(item_3.topic_id), UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, b"\0")
        if message.include_cluster_authorized_operations:
            raise ValueError("include_cluster_authorized_operations cannot be sent in version 12")
        out.append(_WRITE_ZZx(message.allow_auto_topic_creation, message.include_topic_authorized_operations))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataRequest, 12, error) from error
