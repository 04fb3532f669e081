"""DeleteTopicsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_Ux = Struct(">16sx").pack
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ix = Struct(">ix").pack


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            topic_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topic_names_4)
        topic_names_1 = items_3
        timeout_ms_7, = _READ_i(data, pos)
        pos += 4
        return DeleteTopicsRequest([], topic_names_1, timeout_ms_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 1, data, start, budget) from None


def encode_v1(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 1")
        topic_names_1 = message.topic_names
        out.append(_WRITE_i(len(topic_names_1)))
        for item_2 in topic_names_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        out.append(_WRITE_i(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            topic_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topic_names_4)
        topic_names_1 = items_3
        timeout_ms_7, = _READ_i(data, pos)
        pos += 4
        return DeleteTopicsRequest([], topic_names_1, timeout_ms_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 2, data, start, budget) from None


def encode_v2(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 2")
        topic_names_1 = message.topic_names
        out.append(_WRITE_i(len(topic_names_1)))
        for item_2 in topic_names_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        out.append(_WRITE_i(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        items_3: list[str] = []
        for _ in range(n_2):
            n_5, = _READ_h(data, pos)
            pos += 2
            if n_5 < 0:
                raise ValueError
            stop_6 = pos + n_5
            if stop_6 > end:
                raise ValueError
            topic_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topic_names_4)
        topic_names_1 = items_3
        timeout_ms_7, = _READ_i(data, pos)
        pos += 4
        return DeleteTopicsRequest([], topic_names_1, timeout_ms_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 3, data, start, budget) from None


def encode_v3(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 3")
        topic_names_1 = message.topic_names
        out.append(_WRITE_i(len(topic_names_1)))
        for item_2 in topic_names_1:
            item_3 = item_2.encode()
            out += (_WRITE_h(len(item_3)), item_3)
        out.append(_WRITE_i(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        if n_2 > end - pos:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
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
            topic_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topic_names_4)
        topic_names_1 = items_3
        timeout_ms_7, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsRequest([], topic_names_1, timeout_ms_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 4, data, start, budget) from None


def encode_v4(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 4")
        topic_names_1 = message.topic_names
        n_2 = len(topic_names_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topic_names_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_ix(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        if n_2 > end - pos:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[str] = []
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
            topic_names_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topic_names_4)
        topic_names_1 = items_3
        timeout_ms_7, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsRequest([], topic_names_1, timeout_ms_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 5, data, start, budget) from None


def encode_v5(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        if message.topics:
            raise ValueError("topics cannot be sent in version 5")
        topic_names_1 = message.topic_names
        n_2 = len(topic_names_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topic_names_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_ix(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DeleteTopicsRequest, int]:
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
        if n_2 > (end - pos) // 18:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[DeleteTopicsRequestDeleteTopicState] = []
        for _ in range(n_2):
            n_5 = data[pos]
            if n_5 > 127:
                n_5, pos = read_uvarint(data, pos)
                if n_5 > 32768:
                    raise ValueError
            else:
                pos += 1
            name_4: str | None = None
            if n_5 > 0:
                stop_6 = pos + n_5 - 1
                if stop_6 > end:
                    raise ValueError
                name_4 = data[pos:stop_6].decode()
                pos = stop_6
            topic_id_7, = _READ_U(data, pos)
            pos += 16
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(DeleteTopicsRequestDeleteTopicState(name_4, topic_id_7))
        topics_1 = items_3
        timeout_ms_8, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteTopicsRequest(topics_1, [], timeout_ms_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteTopicsRequest, 6, data, start, budget) from None


def encode_v6(message: DeleteTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            raw_5 = item_3.name
            if raw_5 is None:
                name_4 = b""
                n_6 = 0
            else:
                name_4 = raw_5.encode()
                n_6 = len(name_4) + 1
            if len(item_3.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            out += (UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), name_4, _WRITE_Ux(item_3.topic_id))
        out.append(_WRITE_ix(message.timeout_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteTopicsRequest, 6, error) from error
