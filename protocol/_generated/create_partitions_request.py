"""CreatePartitionsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iZ = Struct(">i?").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iZ = Struct(">i?").pack
_WRITE_iZx = Struct(">i?x").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreatePartitionsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreatePartitionsRequestCreatePartitionsTopic] = []
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
            count_7, n_9 = _READ_ii(data, pos)
            pos += 8
            assignments_8: list[CreatePartitionsRequestCreatePartitionsAssignment] | None = None
            if n_9 >= 0:
                if n_9 > (end - pos) // 4:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[CreatePartitionsRequestCreatePartitionsAssignment] = []
                for _ in range(n_9):
                    n_12, = _READ_i(data, pos)
                    pos += 4
                    if n_12 < 0:
                        raise ValueError
                    if n_12 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_12
                    if budget < 0:
                        raise ValueError
                    broker_ids_11 = list(unpack_from(">" + f"{n_12}i", data, pos))
                    pos += n_12 * 4
                    items_10.append(CreatePartitionsRequestCreatePartitionsAssignment(broker_ids_11))
                assignments_8 = items_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(CreatePartitionsRequestCreatePartitionsTopic(name_4, count_7, assignments_8))
        topics_1 = items_3
        timeout_ms_13, validate_only_14 = _READ_iZ(data, pos)
        pos += 5
        return CreatePartitionsRequest(topics_1, timeout_ms_13, validate_only_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsRequest, 0, data, start, budget) from None


def encode_v0(message: CreatePartitionsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            assignments_4 = item_2.assignments
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(item_2.count))
            if assignments_4 is None:
                out.append(b"\xff\xff\xff\xff")
            else:
                out.append(_WRITE_i(len(assignments_4)))
                for item_5 in assignments_4:
                    broker_ids_6 = item_5.broker_ids
                    out += (_WRITE_i(len(broker_ids_6)), pack(">" + f"{len(broker_ids_6)}i", *broker_ids_6))
        out.append(_WRITE_iZ(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreatePartitionsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreatePartitionsRequestCreatePartitionsTopic] = []
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
            count_7, n_9 = _READ_ii(data, pos)
            pos += 8
            assignments_8: list[CreatePartitionsRequestCreatePartitionsAssignment] | None = None
            if n_9 >= 0:
                if n_9 > (end - pos) // 4:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[CreatePartitionsRequestCreatePartitionsAssignment] = []
                for _ in range(n_9):
                    n_12, = _READ_i(data, pos)
                    pos += 4
                    if n_12 < 0:
                        raise ValueError
                    if n_12 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_12
                    if budget < 0:
                        raise ValueError
                    broker_ids_11 = list(unpack_from(">" + f"{n_12}i", data, pos))
                    pos += n_12 * 4
                    items_10.append(CreatePartitionsRequestCreatePartitionsAssignment(broker_ids_11))
                assignments_8 = items_10
            elif n_9 != -1:
                raise ValueError
            items_3.append(CreatePartitionsRequestCreatePartitionsTopic(name_4, count_7, assignments_8))
        topics_1 = items_3
        timeout_ms_13, validate_only_14 = _READ_iZ(data, pos)
        pos += 5
        return CreatePartitionsRequest(topics_1, timeout_ms_13, validate_only_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsRequest, 1, data, start, budget) from None


def encode_v1(message: CreatePartitionsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            assignments_4 = item_2.assignments
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_i(item_2.count))
            if assignments_4 is None:
                out.append(b"\xff\xff\xff\xff")
            else:
                out.append(_WRITE_i(len(assignments_4)))
                for item_5 in assignments_4:
                    broker_ids_6 = item_5.broker_ids
                    out += (_WRITE_i(len(broker_ids_6)), pack(">" + f"{len(broker_ids_6)}i", *broker_ids_6))
        out.append(_WRITE_iZ(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreatePartitionsRequest, int]:
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
        if n_2 > (end - pos) // 7:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreatePartitionsRequestCreatePartitionsTopic] = []
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
            count_7, = _READ_i(data, pos)
            pos += 4
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            assignments_8: list[CreatePartitionsRequestCreatePartitionsAssignment] | None = None
            if n_9 > 0:
                n_9 -= 1
                if n_9 > (end - pos) // 2:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[CreatePartitionsRequestCreatePartitionsAssignment] = []
                for _ in range(n_9):
                    n_12 = data[pos]
                    if n_12 > 127:
                        n_12, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_12 == 0:
                        raise ValueError
                    n_12 -= 1
                    if n_12 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_12
                    if budget < 0:
                        raise ValueError
                    broker_ids_11 = list(unpack_from(">" + f"{n_12}i", data, pos))
                    pos += n_12 * 4
                    if data[pos]:
                        budget -= data[pos] * 24
                        if budget < 0:
                            raise ValueError
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_10.append(CreatePartitionsRequestCreatePartitionsAssignment(broker_ids_11))
                assignments_8 = items_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(CreatePartitionsRequestCreatePartitionsTopic(name_4, count_7, assignments_8))
        topics_1 = items_3
        timeout_ms_13, validate_only_14 = _READ_iZ(data, pos)
        pos += 5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreatePartitionsRequest(topics_1, timeout_ms_13, validate_only_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsRequest, 2, data, start, budget) from None


def encode_v2(message: CreatePartitionsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            assignments_6 = item_3.assignments
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_i(item_3.count))
            if assignments_6 is None:
                out.append(b"\0")
            else:
                n_7 = len(assignments_6) + 1
                out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
                for item_8 in assignments_6:
                    broker_ids_9 = item_8.broker_ids
                    n_10 = len(broker_ids_9) + 1
                    out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(broker_ids_9)}i", *broker_ids_9), b"\0")
            out.append(b"\0")
        out.append(_WRITE_iZx(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreatePartitionsRequest, int]:
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
        if n_2 > (end - pos) // 7:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreatePartitionsRequestCreatePartitionsTopic] = []
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
            count_7, = _READ_i(data, pos)
            pos += 4
            n_9 = data[pos]
            if n_9 > 127:
                n_9, pos = read_uvarint(data, pos)
            else:
                pos += 1
            assignments_8: list[CreatePartitionsRequestCreatePartitionsAssignment] | None = None
            if n_9 > 0:
                n_9 -= 1
                if n_9 > (end - pos) // 2:
                    raise ValueError
                budget -= n_9 * 24
                if budget < 0:
                    raise ValueError
                items_10: list[CreatePartitionsRequestCreatePartitionsAssignment] = []
                for _ in range(n_9):
                    n_12 = data[pos]
                    if n_12 > 127:
                        n_12, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_12 == 0:
                        raise ValueError
                    n_12 -= 1
                    if n_12 > (end - pos) // 4:
                        raise ValueError
                    budget -= n_12
                    if budget < 0:
                        raise ValueError
                    broker_ids_11 = list(unpack_from(">" + f"{n_12}i", data, pos))
                    pos += n_12 * 4
                    if data[pos]:
                        budget -= data[pos] * 24
                        if budget < 0:
                            raise ValueError
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    items_10.append(CreatePartitionsRequestCreatePartitionsAssignment(broker_ids_11))
                assignments_8 = items_10
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(CreatePartitionsRequestCreatePartitionsTopic(name_4, count_7, assignments_8))
        topics_1 = items_3
        timeout_ms_13, validate_only_14 = _READ_iZ(data, pos)
        pos += 5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreatePartitionsRequest(topics_1, timeout_ms_13, validate_only_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreatePartitionsRequest, 3, data, start, budget) from None


def encode_v3(message: CreatePartitionsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            assignments_6 = item_3.assignments
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_i(item_3.count))
            if assignments_6 is None:
                out.append(b"\0")
            else:
                n_7 = len(assignments_6) + 1
                out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
                for item_8 in assignments_6:
                    broker_ids_9 = item_8.broker_ids
                    n_10 = len(broker_ids_9) + 1
                    out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(broker_ids_9)}i", *broker_ids_9), b"\0")
            out.append(b"\0")
        out.append(_WRITE_iZx(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreatePartitionsRequest, 3, error) from error
