"""CreateTopicsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iZ = Struct(">i?").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iZ = Struct(">i?").pack
_WRITE_iZx = Struct(">i?x").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ihi = Struct(">ihi").pack
_WRITE_ii = Struct(">ii").pack


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 16:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8, n_10 = _READ_ihi(data, pos)
            pos += 10
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 8:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, n_14 = _READ_ii(data, pos)
                pos += 8
                if n_14 < 0:
                    raise ValueError
                if n_14 > (end - pos) // 4:
                    raise ValueError
                budget -= n_14
                if budget < 0:
                    raise ValueError
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 4:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                n_22, = _READ_h(data, pos)
                pos += 2
                value_21: str | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 2, data, start, budget) from None


def encode_v2(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            assignments_4 = item_2.assignments
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_ihi(item_2.num_partitions, item_2.replication_factor, len(assignments_4)))
            for item_5 in assignments_4:
                broker_ids_6 = item_5.broker_ids
                out += (_WRITE_ii(item_5.partition_index, len(broker_ids_6)), pack(">" + f"{len(broker_ids_6)}i", *broker_ids_6))
            configs_7 = item_2.configs
            out.append(_WRITE_i(len(configs_7)))
            for item_8 in configs_7:
                name_9 = item_8.name.encode()
                raw_11 = item_8.value
                value_10 = b"" if raw_11 is None else raw_11.encode()
                out += (_WRITE_h(len(name_9)), name_9, _WRITE_h(-1 if raw_11 is None else len(value_10)), value_10)
        out.append(_WRITE_iZ(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 16:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8, n_10 = _READ_ihi(data, pos)
            pos += 10
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 8:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, n_14 = _READ_ii(data, pos)
                pos += 8
                if n_14 < 0:
                    raise ValueError
                if n_14 > (end - pos) // 4:
                    raise ValueError
                budget -= n_14
                if budget < 0:
                    raise ValueError
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 4:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                n_22, = _READ_h(data, pos)
                pos += 2
                value_21: str | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 3, data, start, budget) from None


def encode_v3(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            assignments_4 = item_2.assignments
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_ihi(item_2.num_partitions, item_2.replication_factor, len(assignments_4)))
            for item_5 in assignments_4:
                broker_ids_6 = item_5.broker_ids
                out += (_WRITE_ii(item_5.partition_index, len(broker_ids_6)), pack(">" + f"{len(broker_ids_6)}i", *broker_ids_6))
            configs_7 = item_2.configs
            out.append(_WRITE_i(len(configs_7)))
            for item_8 in configs_7:
                name_9 = item_8.name.encode()
                raw_11 = item_8.value
                value_10 = b"" if raw_11 is None else raw_11.encode()
                out += (_WRITE_h(len(name_9)), name_9, _WRITE_h(-1 if raw_11 is None else len(value_10)), value_10)
        out.append(_WRITE_iZ(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 16:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8, n_10 = _READ_ihi(data, pos)
            pos += 10
            if n_10 < 0:
                raise ValueError
            if n_10 > (end - pos) // 8:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, n_14 = _READ_ii(data, pos)
                pos += 8
                if n_14 < 0:
                    raise ValueError
                if n_14 > (end - pos) // 4:
                    raise ValueError
                budget -= n_14
                if budget < 0:
                    raise ValueError
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
            n_16, = _READ_i(data, pos)
            pos += 4
            if n_16 < 0:
                raise ValueError
            if n_16 > (end - pos) // 4:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                n_22, = _READ_h(data, pos)
                pos += 2
                value_21: str | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 4, data, start, budget) from None


def encode_v4(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        out.append(_WRITE_i(len(topics_1)))
        for item_2 in topics_1:
            name_3 = item_2.name.encode()
            assignments_4 = item_2.assignments
            out += (_WRITE_h(len(name_3)), name_3, _WRITE_ihi(item_2.num_partitions, item_2.replication_factor, len(assignments_4)))
            for item_5 in assignments_4:
                broker_ids_6 = item_5.broker_ids
                out += (_WRITE_ii(item_5.partition_index, len(broker_ids_6)), pack(">" + f"{len(broker_ids_6)}i", *broker_ids_6))
            configs_7 = item_2.configs
            out.append(_WRITE_i(len(configs_7)))
            for item_8 in configs_7:
                name_9 = item_8.name.encode()
                raw_11 = item_8.value
                value_10 = b"" if raw_11 is None else raw_11.encode()
                out += (_WRITE_h(len(name_9)), name_9, _WRITE_h(-1 if raw_11 is None else len(value_10)), value_10)
        out.append(_WRITE_iZ(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 4, error) from error


def decode_v5(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
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
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8 = _READ_ih(data, pos)
            pos += 6
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 6:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, = _READ_i(data, pos)
                pos += 4
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
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
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
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                value_21: str | None = None
                if n_22 > 0:
                    stop_23 = pos + n_22 - 1
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 5, data, start, budget) from None


def encode_v5(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            assignments_6 = item_3.assignments
            n_7 = len(assignments_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_ih(item_3.num_partitions, item_3.replication_factor), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in assignments_6:
                broker_ids_9 = item_8.broker_ids
                n_10 = len(broker_ids_9) + 1
                out += (_WRITE_i(item_8.partition_index), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(broker_ids_9)}i", *broker_ids_9), b"\0")
            configs_11 = item_3.configs
            n_12 = len(configs_11) + 1
            out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
            for item_13 in configs_11:
                name_14 = item_13.name.encode()
                n_15 = len(name_14) + 1
                raw_17 = item_13.value
                if raw_17 is None:
                    value_16 = b""
                    n_18 = 0
                else:
                    value_16 = raw_17.encode()
                    n_18 = len(value_16) + 1
                out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), name_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), value_16, b"\0")
            out.append(b"\0")
        out.append(_WRITE_iZx(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 5, error) from error


def decode_v6(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
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
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8 = _READ_ih(data, pos)
            pos += 6
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 6:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, = _READ_i(data, pos)
                pos += 4
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
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
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
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                value_21: str | None = None
                if n_22 > 0:
                    stop_23 = pos + n_22 - 1
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 6, data, start, budget) from None


def encode_v6(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            assignments_6 = item_3.assignments
            n_7 = len(assignments_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_ih(item_3.num_partitions, item_3.replication_factor), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in assignments_6:
                broker_ids_9 = item_8.broker_ids
                n_10 = len(broker_ids_9) + 1
                out += (_WRITE_i(item_8.partition_index), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(broker_ids_9)}i", *broker_ids_9), b"\0")
            configs_11 = item_3.configs
            n_12 = len(configs_11) + 1
            out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
            for item_13 in configs_11:
                name_14 = item_13.name.encode()
                n_15 = len(name_14) + 1
                raw_17 = item_13.value
                if raw_17 is None:
                    value_16 = b""
                    n_18 = 0
                else:
                    value_16 = raw_17.encode()
                    n_18 = len(value_16) + 1
                out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), name_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), value_16, b"\0")
            out.append(b"\0")
        out.append(_WRITE_iZx(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 6, error) from error


def decode_v7(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[CreateTopicsRequest, int]:
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
        if n_2 > (end - pos) // 10:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[CreateTopicsRequestCreatableTopic] = []
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
            num_partitions_7, replication_factor_8 = _READ_ih(data, pos)
            pos += 6
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            n_10 -= 1
            if n_10 > (end - pos) // 6:
                raise ValueError
            budget -= n_10 * 24
            if budget < 0:
                raise ValueError
            items_11: list[CreateTopicsRequestCreatableReplicaAssignment] = []
            for _ in range(n_10):
                partition_index_12, = _READ_i(data, pos)
                pos += 4
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
                broker_ids_13 = list(unpack_from(">" + f"{n_14}i", data, pos))
                pos += n_14 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_11.append(CreateTopicsRequestCreatableReplicaAssignment(partition_index_12, broker_ids_13))
            assignments_9 = items_11
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
            items_17: list[CreateTopicsRequestCreatableTopicConfig] = []
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
                    if n_22 > 32768:
                        raise ValueError
                else:
                    pos += 1
                value_21: str | None = None
                if n_22 > 0:
                    stop_23 = pos + n_22 - 1
                    if stop_23 > end:
                        raise ValueError
                    value_21 = data[pos:stop_23].decode()
                    pos = stop_23
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_17.append(CreateTopicsRequestCreatableTopicConfig(name_18, value_21))
            configs_15 = items_17
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(CreateTopicsRequestCreatableTopic(name_4, num_partitions_7, replication_factor_8, assignments_9, configs_15))
        topics_1 = items_3
        timeout_ms_24, validate_only_25 = _READ_iZ(data, pos)
        pos += 5
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return CreateTopicsRequest(topics_1, timeout_ms_24, validate_only_25), pos
    except (IndexError, ValueError, struct_error):
        raise explain(CreateTopicsRequest, 7, data, start, budget) from None


def encode_v7(message: CreateTopicsRequest) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            assignments_6 = item_3.assignments
            n_7 = len(assignments_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_ih(item_3.num_partitions, item_3.replication_factor), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in assignments_6:
                broker_ids_9 = item_8.broker_ids
                n_10 = len(broker_ids_9) + 1
                out += (_WRITE_i(item_8.partition_index), UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), pack(">" + f"{len(broker_ids_9)}i", *broker_ids_9), b"\0")
            configs_11 = item_3.configs
            n_12 = len(configs_11) + 1
            out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
            for item_13 in configs_11:
                name_14 = item_13.name.encode()
                n_15 = len(name_14) + 1
                raw_17 = item_13.value
                if raw_17 is None:
                    value_16 = b""
                    n_18 = 0
                else:
                    value_16 = raw_17.encode()
                    n_18 = len(value_16) + 1
                out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), name_14, UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), value_16, b"\0")
            out.append(b"\0")
        out.append(_WRITE_iZx(message.timeout_ms, message.validate_only))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(CreateTopicsRequest, 7, error) from error
