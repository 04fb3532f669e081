"""MetadataResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.topics import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_UZ = Struct(">16s?").unpack_from
_READ_Z = Struct(">?").unpack_from
_READ_Zi = Struct(">?i").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_hh = Struct(">hh").unpack_from
_READ_hiii = Struct(">hiii").unpack_from
_READ_hiiii = Struct(">hiiii").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_UZ = Struct(">16s?").pack
_WRITE_Z = Struct(">?").pack
_WRITE_Zi = Struct(">?i").pack
_WRITE_h = Struct(">h").pack
_WRITE_hh = Struct(">hh").pack
_WRITE_hiii = Struct(">hiii").pack
_WRITE_hiiii = Struct(">hiiii").pack
_WRITE_i = Struct(">i").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 10:
            raise ValueError
        items_3: list[MetadataResponseBroker] = []
        for _ in range(n_2):
            node_id_4, n_6 = _READ_ih(data, pos)
            pos += 6
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            host_5 = data[pos:stop_7].decode()
            pos = stop_7
            port_8, = _READ_i(data, pos)
            pos += 4
            items_3.append(MetadataResponseBroker(node_id_4, host_5, port_8, None))
        brokers_1 = items_3
        n_10, = _READ_i(data, pos)
        pos += 4
        if n_10 < 0:
            raise ValueError
        if n_10 > (end - pos) // 8:
            raise ValueError
        items_11: list[MetadataResponseTopic] = []
        for _ in range(n_10):
            error_code_12, n_14 = _READ_hh(data, pos)
            pos += 4
            if n_14 < 0:
                raise ValueError
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            name_13 = data[pos:stop_15].decode()
            pos = stop_15
            n_17, = _READ_i(data, pos)
            pos += 4
            if n_17 < 0:
                raise ValueError
            if n_17 > (end - pos) // 18:
                raise ValueError
            items_18: list[MetadataResponsePartition] = []
            for _ in range(n_17):
                error_code_19, partition_index_20, leader_id_21, n_23 = _READ_hiii(data, pos)
                pos += 14
                if n_23 < 0:
                    raise ValueError
                if n_23 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_22 = list(unpack_from(">" + f"{n_23}i", data, pos))
                pos += n_23 * 4
                n_25, = _READ_i(data, pos)
                pos += 4
                if n_25 < 0:
                    raise ValueError
                if n_25 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_24 = list(unpack_from(">" + f"{n_25}i", data, pos))
                pos += n_25 * 4
                items_18.append(MetadataResponsePartition(error_code_19, partition_index_20, leader_id_21, -1, replica_nodes_22, isr_nodes_24, []))
            partitions_16 = items_18
            items_11.append(MetadataResponseTopic(error_code_12, name_13, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', False, partitions_16, -2147483648))
        topics_9 = items_11
        return MetadataResponse(0, brokers_1, None, -1, topics_9, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 0, data, start) from None


def encode_v0(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_i(len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_i(item_2.port))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        topics_4 = message.topics
        out.append(_WRITE_i(len(topics_4)))
        for item_5 in topics_4:
            raw_7 = item_5.name
            if raw_7 is None:
                raise ValueError("name cannot be null in version 0")
            name_6 = raw_7.encode()
            partitions_8 = item_5.partitions
            out += (_WRITE_hh(item_5.error_code, len(name_6)), name_6, _WRITE_i(len(partitions_8)))
            for item_9 in partitions_8:
                replica_nodes_10 = item_9.replica_nodes
                isr_nodes_11 = item_9.isr_nodes
                out += (_WRITE_hiii(item_9.error_code, item_9.partition_index, item_9.leader_id, len(replica_nodes_10)), pack(">" + f"{len(replica_nodes_10)}i", *replica_nodes_10), _WRITE_i(len(isr_nodes_11)), pack(">" + f"{len(isr_nodes_11)}i", *isr_nodes_11))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_5.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 12:
            raise ValueError
        items_3: list[MetadataResponseBroker] = []
        for _ in range(n_2):
            node_id_4, n_6 = _READ_ih(data, pos)
            pos += 6
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            host_5 = data[pos:stop_7].decode()
            pos = stop_7
            port_8, n_10 = _READ_ih(data, pos)
            pos += 6
            rack_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                rack_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            items_3.append(MetadataResponseBroker(node_id_4, host_5, port_8, rack_9))
        brokers_1 = items_3
        controller_id_12, n_14 = _READ_ii(data, pos)
        pos += 8
        if n_14 < 0:
            raise ValueError
        if n_14 > (end - pos) // 9:
            raise ValueError
        items_15: list[MetadataResponseTopic] = []
        for _ in range(n_14):
            error_code_16, n_18 = _READ_hh(data, pos)
            pos += 4
            if n_18 < 0:
                raise ValueError
            stop_19 = pos + n_18
            if stop_19 > end:
                raise ValueError
            name_17 = data[pos:stop_19].decode()
            pos = stop_19
            is_internal_20, n_22 = _READ_Zi(data, pos)
            pos += 5
            if n_22 < 0:
                raise ValueError
            if n_22 > (end - pos) // 18:
                raise ValueError
            items_23: list[MetadataResponsePartition] = []
            for _ in range(n_22):
                error_code_24, partition_index_25, leader_id_26, n_28 = _READ_hiii(data, pos)
                pos += 14
                if n_28 < 0:
                    raise ValueError
                if n_28 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_27 = list(unpack_from(">" + f"{n_28}i", data, pos))
                pos += n_28 * 4
                n_30, = _READ_i(data, pos)
                pos += 4
                if n_30 < 0:
                    raise ValueError
                if n_30 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_29 = list(unpack_from(">" + f"{n_30}i", data, pos))
                pos += n_30 * 4
                items_23.append(MetadataResponsePartition(error_code_24, partition_index_25, leader_id_26, -1, replica_nodes_27, isr_nodes_29, []))
            partitions_21 = items_23
            items_15.append(MetadataResponseTopic(error_code_16, name_17, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_20, partitions_21, -2147483648))
        topics_13 = items_15
        return MetadataResponse(0, brokers_1, None, controller_id_12, topics_13, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 1, data, start) from None


def encode_v1(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_i(len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        topics_6 = message.topics
        out.append(_WRITE_ii(message.controller_id, len(topics_6)))
        for item_7 in topics_6:
            raw_9 = item_7.name
            if raw_9 is None:
                raise ValueError("name cannot be null in version 1")
            name_8 = raw_9.encode()
            partitions_10 = item_7.partitions
            out += (_WRITE_hh(item_7.error_code, len(name_8)), name_8, _WRITE_Zi(item_7.is_internal, len(partitions_10)))
            for item_11 in partitions_10:
                replica_nodes_12 = item_11.replica_nodes
                isr_nodes_13 = item_11.isr_nodes
                out += (_WRITE_hiii(item_11.error_code, item_11.partition_index, item_11.leader_id, len(replica_nodes_12)), pack(">" + f"{len(replica_nodes_12)}i", *replica_nodes_12), _WRITE_i(len(isr_nodes_13)), pack(">" + f"{len(isr_nodes_13)}i", *isr_nodes_13))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_7.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 1")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 1")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_i(data, pos)
        pos += 4
        if n_2 < 0:
            raise ValueError
        if n_2 > (end - pos) // 12:
            raise ValueError
        items_3: list[MetadataResponseBroker] = []
        for _ in range(n_2):
            node_id_4, n_6 = _READ_ih(data, pos)
            pos += 6
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            host_5 = data[pos:stop_7].decode()
            pos = stop_7
            port_8, n_10 = _READ_ih(data, pos)
            pos += 6
            rack_9: str | None = None
            if n_10 >= 0:
                stop_11 = pos + n_10
                if stop_11 > end:
                    raise ValueError
                rack_9 = data[pos:stop_11].decode()
                pos = stop_11
            elif n_10 != -1:
                raise ValueError
            items_3.append(MetadataResponseBroker(node_id_4, host_5, port_8, rack_9))
        brokers_1 = items_3
        n_13, = _READ_h(data, pos)
        pos += 2
        cluster_id_12: str | None = None
        if n_13 >= 0:
            stop_14 = pos + n_13
            if stop_14 > end:
                raise ValueError
            cluster_id_12 = data[pos:stop_14].decode()
            pos = stop_14
        elif n_13 != -1:
            raise ValueError
        controller_id_15, n_17 = _READ_ii(data, pos)
        pos += 8
        if n_17 < 0:
            raise ValueError
        if n_17 > (end - pos) // 9:
            raise ValueError
        items_18: list[MetadataResponseTopic] = []
        for _ in range(n_17):
            error_code_19, n_21 = _READ_hh(data, pos)
            pos += 4
            if n_21 < 0:
                raise ValueError
            stop_22 = pos + n_21
            if stop_22 > end:
                raise ValueError
            name_20 = data[pos:stop_22].decode()
            pos = stop_22
            is_internal_23, n_25 = _READ_Zi(data, pos)
            pos += 5
            if n_25 < 0:
                raise ValueError
            if n_25 > (end - pos) // 18:
                raise ValueError
            items_26: list[MetadataResponsePartition] = []
            for _ in range(n_25):
                error_code_27, partition_index_28, leader_id_29, n_31 = _READ_hiii(data, pos)
                pos += 14
                if n_31 < 0:
                    raise ValueError
                if n_31 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_30 = list(unpack_from(">" + f"{n_31}i", data, pos))
                pos += n_31 * 4
                n_33, = _READ_i(data, pos)
                pos += 4
                if n_33 < 0:
                    raise ValueError
                if n_33 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_32 = list(unpack_from(">" + f"{n_33}i", data, pos))
                pos += n_33 * 4
                items_26.append(MetadataResponsePartition(error_code_27, partition_index_28, leader_id_29, -1, replica_nodes_30, isr_nodes_32, []))
            partitions_24 = items_26
            items_18.append(MetadataResponseTopic(error_code_19, name_20, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_23, partitions_24, -2147483648))
        topics_16 = items_18
        return MetadataResponse(0, brokers_1, cluster_id_12, controller_id_15, topics_16, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 2, data, start) from None


def encode_v2(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_i(len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 2")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                out += (_WRITE_hiii(item_13.error_code, item_13.partition_index, item_13.leader_id, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 2")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 2")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 9:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 18:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, n_32 = _READ_hiii(data, pos)
                pos += 14
                if n_32 < 0:
                    raise ValueError
                if n_32 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_31 = list(unpack_from(">" + f"{n_32}i", data, pos))
                pos += n_32 * 4
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                if n_34 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, -1, replica_nodes_31, isr_nodes_33, []))
            partitions_25 = items_27
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, -2147483648))
        topics_17 = items_19
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 3, data, start) from None


def encode_v3(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v3(message))


def encode_pieces_v3(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 3")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                out += (_WRITE_hiii(item_13.error_code, item_13.partition_index, item_13.leader_id, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 3")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 3")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 9:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 18:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, n_32 = _READ_hiii(data, pos)
                pos += 14
                if n_32 < 0:
                    raise ValueError
                if n_32 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_31 = list(unpack_from(">" + f"{n_32}i", data, pos))
                pos += n_32 * 4
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                if n_34 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, -1, replica_nodes_31, isr_nodes_33, []))
            partitions_25 = items_27
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, -2147483648))
        topics_17 = items_19
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 4, data, start) from None


def encode_v4(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 4")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                out += (_WRITE_hiii(item_13.error_code, item_13.partition_index, item_13.leader_id, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 4")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 4")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 9:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 22:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, n_32 = _READ_hiii(data, pos)
                pos += 14
                if n_32 < 0:
                    raise ValueError
                if n_32 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_31 = list(unpack_from(">" + f"{n_32}i", data, pos))
                pos += n_32 * 4
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                if n_34 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                n_36, = _READ_i(data, pos)
                pos += 4
                if n_36 < 0:
                    raise ValueError
                if n_36 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_35 = list(unpack_from(">" + f"{n_36}i", data, pos))
                pos += n_36 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, -1, replica_nodes_31, isr_nodes_33, offline_replicas_35))
            partitions_25 = items_27
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, -2147483648))
        topics_17 = items_19
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 5, data, start) from None


def encode_v5(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 5")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                offline_replicas_16 = item_13.offline_replicas
                out += (_WRITE_hiii(item_13.error_code, item_13.partition_index, item_13.leader_id, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15), _WRITE_i(len(offline_replicas_16)), pack(">" + f"{len(offline_replicas_16)}i", *offline_replicas_16))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 5")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 5")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 9:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 22:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, n_32 = _READ_hiii(data, pos)
                pos += 14
                if n_32 < 0:
                    raise ValueError
                if n_32 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_31 = list(unpack_from(">" + f"{n_32}i", data, pos))
                pos += n_32 * 4
                n_34, = _READ_i(data, pos)
                pos += 4
                if n_34 < 0:
                    raise ValueError
                if n_34 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                n_36, = _READ_i(data, pos)
                pos += 4
                if n_36 < 0:
                    raise ValueError
                if n_36 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_35 = list(unpack_from(">" + f"{n_36}i", data, pos))
                pos += n_36 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, -1, replica_nodes_31, isr_nodes_33, offline_replicas_35))
            partitions_25 = items_27
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, -2147483648))
        topics_17 = items_19
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 6, data, start) from None


def encode_v6(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 6")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                offline_replicas_16 = item_13.offline_replicas
                out += (_WRITE_hiii(item_13.error_code, item_13.partition_index, item_13.leader_id, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15), _WRITE_i(len(offline_replicas_16)), pack(">" + f"{len(offline_replicas_16)}i", *offline_replicas_16))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 6")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 6")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 9:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 26:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, leader_epoch_31, n_33 = _READ_hiiii(data, pos)
                pos += 18
                if n_33 < 0:
                    raise ValueError
                if n_33 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_32 = list(unpack_from(">" + f"{n_33}i", data, pos))
                pos += n_33 * 4
                n_35, = _READ_i(data, pos)
                pos += 4
                if n_35 < 0:
                    raise ValueError
                if n_35 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_34 = list(unpack_from(">" + f"{n_35}i", data, pos))
                pos += n_35 * 4
                n_37, = _READ_i(data, pos)
                pos += 4
                if n_37 < 0:
                    raise ValueError
                if n_37 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_36 = list(unpack_from(">" + f"{n_37}i", data, pos))
                pos += n_37 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, leader_epoch_31, replica_nodes_32, isr_nodes_34, offline_replicas_36))
            partitions_25 = items_27
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, -2147483648))
        topics_17 = items_19
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 7, data, start) from None


def encode_v7(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 7")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                offline_replicas_16 = item_13.offline_replicas
                out += (_WRITE_hiiii(item_13.error_code, item_13.partition_index, item_13.leader_id, item_13.leader_epoch, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15), _WRITE_i(len(offline_replicas_16)), pack(">" + f"{len(offline_replicas_16)}i", *offline_replicas_16))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if item_9.topic_authorized_operations != -2147483648:
                raise ValueError("topic_authorized_operations cannot be sent in version 7")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 7")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 7, error) from error


def decode_v8(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 12:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, n_7 = _READ_ih(data, pos)
            pos += 6
            if n_7 < 0:
                raise ValueError
            stop_8 = pos + n_7
            if stop_8 > end:
                raise ValueError
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, n_11 = _READ_ih(data, pos)
            pos += 6
            rack_10: str | None = None
            if n_11 >= 0:
                stop_12 = pos + n_11
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            elif n_11 != -1:
                raise ValueError
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14, = _READ_h(data, pos)
        pos += 2
        cluster_id_13: str | None = None
        if n_14 >= 0:
            stop_15 = pos + n_14
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        elif n_14 != -1:
            raise ValueError
        controller_id_16, n_18 = _READ_ii(data, pos)
        pos += 8
        if n_18 < 0:
            raise ValueError
        if n_18 > (end - pos) // 13:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, n_22 = _READ_hh(data, pos)
            pos += 4
            if n_22 < 0:
                raise ValueError
            stop_23 = pos + n_22
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, n_26 = _READ_Zi(data, pos)
            pos += 5
            if n_26 < 0:
                raise ValueError
            if n_26 > (end - pos) // 26:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, leader_epoch_31, n_33 = _READ_hiiii(data, pos)
                pos += 18
                if n_33 < 0:
                    raise ValueError
                if n_33 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_32 = list(unpack_from(">" + f"{n_33}i", data, pos))
                pos += n_33 * 4
                n_35, = _READ_i(data, pos)
                pos += 4
                if n_35 < 0:
                    raise ValueError
                if n_35 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_34 = list(unpack_from(">" + f"{n_35}i", data, pos))
                pos += n_35 * 4
                n_37, = _READ_i(data, pos)
                pos += 4
                if n_37 < 0:
                    raise ValueError
                if n_37 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_36 = list(unpack_from(">" + f"{n_37}i", data, pos))
                pos += n_37 * 4
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, leader_epoch_31, replica_nodes_32, isr_nodes_34, offline_replicas_36))
            partitions_25 = items_27
            topic_authorized_operations_38, = _READ_i(data, pos)
            pos += 4
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, topic_authorized_operations_38))
        topics_17 = items_19
        cluster_authorized_operations_39, = _READ_i(data, pos)
        pos += 4
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, cluster_authorized_operations_39), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 8, data, start) from None


def encode_v8(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v8(message))


def encode_pieces_v8(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        out.append(_WRITE_ii(message.throttle_time_ms, len(brokers_1)))
        for item_2 in brokers_1:
            host_3 = item_2.host.encode()
            raw_5 = item_2.rack
            rack_4 = b"" if raw_5 is None else raw_5.encode()
            out += (_WRITE_ih(item_2.node_id, len(host_3)), host_3, _WRITE_ih(item_2.port, -1 if raw_5 is None else len(rack_4)), rack_4)
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_7 = message.cluster_id
        cluster_id_6 = b"" if raw_7 is None else raw_7.encode()
        topics_8 = message.topics
        out += (_WRITE_h(-1 if raw_7 is None else len(cluster_id_6)), cluster_id_6, _WRITE_ii(message.controller_id, len(topics_8)))
        for item_9 in topics_8:
            raw_11 = item_9.name
            if raw_11 is None:
                raise ValueError("name cannot be null in version 8")
            name_10 = raw_11.encode()
            partitions_12 = item_9.partitions
            out += (_WRITE_hh(item_9.error_code, len(name_10)), name_10, _WRITE_Zi(item_9.is_internal, len(partitions_12)))
            for item_13 in partitions_12:
                replica_nodes_14 = item_13.replica_nodes
                isr_nodes_15 = item_13.isr_nodes
                offline_replicas_16 = item_13.offline_replicas
                out += (_WRITE_hiiii(item_13.error_code, item_13.partition_index, item_13.leader_id, item_13.leader_epoch, len(replica_nodes_14)), pack(">" + f"{len(replica_nodes_14)}i", *replica_nodes_14), _WRITE_i(len(isr_nodes_15)), pack(">" + f"{len(isr_nodes_15)}i", *isr_nodes_15), _WRITE_i(len(offline_replicas_16)), pack(">" + f"{len(offline_replicas_16)}i", *offline_replicas_16))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_i(item_9.topic_authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_i(message.cluster_authorized_operations))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 8, error) from error


def decode_v9(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
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
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, = _READ_i(data, pos)
            pos += 4
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
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, = _READ_i(data, pos)
            pos += 4
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        cluster_id_13: str | None = None
        if n_14 > 0:
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        controller_id_16, = _READ_i(data, pos)
        pos += 4
        n_18 = data[pos]
        if n_18 > 127:
            n_18, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_18 == 0:
            raise ValueError
        n_18 -= 1
        if n_18 > (end - pos) // 10:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, = _READ_h(data, pos)
            pos += 2
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
                if n_22 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            is_internal_24, = _READ_Z(data, pos)
            pos += 1
            n_26 = data[pos]
            if n_26 > 127:
                n_26, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_26 == 0:
                raise ValueError
            n_26 -= 1
            if n_26 > (end - pos) // 18:
                raise ValueError
            items_27: list[MetadataResponsePartition] = []
            for _ in range(n_26):
                error_code_28, partition_index_29, leader_id_30, leader_epoch_31 = _READ_hiii(data, pos)
                pos += 14
                n_33 = data[pos]
                if n_33 > 127:
                    n_33, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_33 == 0:
                    raise ValueError
                n_33 -= 1
                if n_33 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_32 = list(unpack_from(">" + f"{n_33}i", data, pos))
                pos += n_33 * 4
                n_35 = data[pos]
                if n_35 > 127:
                    n_35, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_35 == 0:
                    raise ValueError
                n_35 -= 1
                if n_35 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_34 = list(unpack_from(">" + f"{n_35}i", data, pos))
                pos += n_35 * 4
                n_37 = data[pos]
                if n_37 > 127:
                    n_37, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_37 == 0:
                    raise ValueError
                n_37 -= 1
                if n_37 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_36 = list(unpack_from(">" + f"{n_37}i", data, pos))
                pos += n_37 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_27.append(MetadataResponsePartition(error_code_28, partition_index_29, leader_id_30, leader_epoch_31, replica_nodes_32, isr_nodes_34, offline_replicas_36))
            partitions_25 = items_27
            topic_authorized_operations_38, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(MetadataResponseTopic(error_code_20, name_21, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', is_internal_24, partitions_25, topic_authorized_operations_38))
        topics_17 = items_19
        cluster_authorized_operations_39, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, cluster_authorized_operations_39), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 9, data, start) from None


def encode_v9(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v9(message))


def encode_pieces_v9(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        n_2 = len(brokers_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in brokers_1:
            host_4 = item_3.host.encode()
            n_5 = len(host_4) + 1
            raw_7 = item_3.rack
            if raw_7 is None:
                rack_6 = b""
                n_8 = 0
            else:
                rack_6 = raw_7.encode()
                n_8 = len(rack_6) + 1
            out += (_WRITE_i(item_3.node_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), host_4, _WRITE_i(item_3.port), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), rack_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_10 = message.cluster_id
        if raw_10 is None:
            cluster_id_9 = b""
            n_11 = 0
        else:
            cluster_id_9 = raw_10.encode()
            n_11 = len(cluster_id_9) + 1
        topics_12 = message.topics
        n_13 = len(topics_12) + 1
        out += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), cluster_id_9, _WRITE_i(message.controller_id), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
        for item_14 in topics_12:
            raw_16 = item_14.name
            if raw_16 is None:
                raise ValueError("name cannot be null in version 9")
            name_15 = raw_16.encode()
            n_17 = len(name_15) + 1
            partitions_18 = item_14.partitions
            n_19 = len(partitions_18) + 1
            out += (_WRITE_h(item_14.error_code), UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), name_15, _WRITE_Z(item_14.is_internal), UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19))
            for item_20 in partitions_18:
                replica_nodes_21 = item_20.replica_nodes
                n_22 = len(replica_nodes_21) + 1
                isr_nodes_23 = item_20.isr_nodes
                n_24 = len(isr_nodes_23) + 1
                offline_replicas_25 = item_20.offline_replicas
                n_26 = len(offline_replicas_25) + 1
                out += (_WRITE_hiii(item_20.error_code, item_20.partition_index, item_20.leader_id, item_20.leader_epoch), UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), pack(">" + f"{len(replica_nodes_21)}i", *replica_nodes_21), UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), pack(">" + f"{len(isr_nodes_23)}i", *isr_nodes_23), UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), pack(">" + f"{len(offline_replicas_25)}i", *offline_replicas_25), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_14.topic_authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_ix(message.cluster_authorized_operations))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 9, error) from error


def decode_v10(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
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
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, = _READ_i(data, pos)
            pos += 4
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
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, = _READ_i(data, pos)
            pos += 4
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        cluster_id_13: str | None = None
        if n_14 > 0:
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        controller_id_16, = _READ_i(data, pos)
        pos += 4
        n_18 = data[pos]
        if n_18 > 127:
            n_18, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_18 == 0:
            raise ValueError
        n_18 -= 1
        if n_18 > (end - pos) // 26:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, = _READ_h(data, pos)
            pos += 2
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
                if n_22 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            topic_id_24, is_internal_25 = _READ_UZ(data, pos)
            pos += 17
            n_27 = data[pos]
            if n_27 > 127:
                n_27, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_27 == 0:
                raise ValueError
            n_27 -= 1
            if n_27 > (end - pos) // 18:
                raise ValueError
            items_28: list[MetadataResponsePartition] = []
            for _ in range(n_27):
                error_code_29, partition_index_30, leader_id_31, leader_epoch_32 = _READ_hiii(data, pos)
                pos += 14
                n_34 = data[pos]
                if n_34 > 127:
                    n_34, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_34 == 0:
                    raise ValueError
                n_34 -= 1
                if n_34 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                n_36 = data[pos]
                if n_36 > 127:
                    n_36, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_36 == 0:
                    raise ValueError
                n_36 -= 1
                if n_36 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_35 = list(unpack_from(">" + f"{n_36}i", data, pos))
                pos += n_36 * 4
                n_38 = data[pos]
                if n_38 > 127:
                    n_38, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_38 == 0:
                    raise ValueError
                n_38 -= 1
                if n_38 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_37 = list(unpack_from(">" + f"{n_38}i", data, pos))
                pos += n_38 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_28.append(MetadataResponsePartition(error_code_29, partition_index_30, leader_id_31, leader_epoch_32, replica_nodes_33, isr_nodes_35, offline_replicas_37))
            partitions_26 = items_28
            topic_authorized_operations_39, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(MetadataResponseTopic(error_code_20, name_21, topic_id_24, is_internal_25, partitions_26, topic_authorized_operations_39))
        topics_17 = items_19
        cluster_authorized_operations_40, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, cluster_authorized_operations_40), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 10, data, start) from None


def encode_v10(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v10(message))


def encode_pieces_v10(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        n_2 = len(brokers_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in brokers_1:
            host_4 = item_3.host.encode()
            n_5 = len(host_4) + 1
            raw_7 = item_3.rack
            if raw_7 is None:
                rack_6 = b""
                n_8 = 0
            else:
                rack_6 = raw_7.encode()
                n_8 = len(rack_6) + 1
            out += (_WRITE_i(item_3.node_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), host_4, _WRITE_i(item_3.port), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), rack_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_10 = message.cluster_id
        if raw_10 is None:
            cluster_id_9 = b""
            n_11 = 0
        else:
            cluster_id_9 = raw_10.encode()
            n_11 = len(cluster_id_9) + 1
        topics_12 = message.topics
        n_13 = len(topics_12) + 1
        out += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), cluster_id_9, _WRITE_i(message.controller_id), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
        for item_14 in topics_12:
            raw_16 = item_14.name
            if raw_16 is None:
                raise ValueError("name cannot be null in version 10")
            name_15 = raw_16.encode()
            n_17 = len(name_15) + 1
            if len(item_14.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_18 = item_14.partitions
            n_19 = len(partitions_18) + 1
            out += (_WRITE_h(item_14.error_code), UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), name_15, _WRITE_UZ(item_14.topic_id, item_14.is_internal), UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19))
            for item_20 in partitions_18:
                replica_nodes_21 = item_20.replica_nodes
                n_22 = len(replica_nodes_21) + 1
                isr_nodes_23 = item_20.isr_nodes
                n_24 = len(isr_nodes_23) + 1
                offline_replicas_25 = item_20.offline_replicas
                n_26 = len(offline_replicas_25) + 1
                out += (_WRITE_hiii(item_20.error_code, item_20.partition_index, item_20.leader_id, item_20.leader_epoch), UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), pack(">" + f"{len(replica_nodes_21)}i", *replica_nodes_21), UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), pack(">" + f"{len(isr_nodes_23)}i", *isr_nodes_23), UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), pack(">" + f"{len(offline_replicas_25)}i", *offline_replicas_25), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_14.topic_authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(_WRITE_ix(message.cluster_authorized_operations))
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 10, error) from error


def decode_v11(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
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
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, = _READ_i(data, pos)
            pos += 4
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
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, = _READ_i(data, pos)
            pos += 4
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        cluster_id_13: str | None = None
        if n_14 > 0:
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        controller_id_16, = _READ_i(data, pos)
        pos += 4
        n_18 = data[pos]
        if n_18 > 127:
            n_18, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_18 == 0:
            raise ValueError
        n_18 -= 1
        if n_18 > (end - pos) // 26:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, = _READ_h(data, pos)
            pos += 2
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
                if n_22 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_22 == 0:
                raise ValueError
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            name_21 = data[pos:stop_23].decode()
            pos = stop_23
            topic_id_24, is_internal_25 = _READ_UZ(data, pos)
            pos += 17
            n_27 = data[pos]
            if n_27 > 127:
                n_27, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_27 == 0:
                raise ValueError
            n_27 -= 1
            if n_27 > (end - pos) // 18:
                raise ValueError
            items_28: list[MetadataResponsePartition] = []
            for _ in range(n_27):
                error_code_29, partition_index_30, leader_id_31, leader_epoch_32 = _READ_hiii(data, pos)
                pos += 14
                n_34 = data[pos]
                if n_34 > 127:
                    n_34, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_34 == 0:
                    raise ValueError
                n_34 -= 1
                if n_34 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                n_36 = data[pos]
                if n_36 > 127:
                    n_36, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_36 == 0:
                    raise ValueError
                n_36 -= 1
                if n_36 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_35 = list(unpack_from(">" + f"{n_36}i", data, pos))
                pos += n_36 * 4
                n_38 = data[pos]
                if n_38 > 127:
                    n_38, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_38 == 0:
                    raise ValueError
                n_38 -= 1
                if n_38 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_37 = list(unpack_from(">" + f"{n_38}i", data, pos))
                pos += n_38 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_28.append(MetadataResponsePartition(error_code_29, partition_index_30, leader_id_31, leader_epoch_32, replica_nodes_33, isr_nodes_35, offline_replicas_37))
            partitions_26 = items_28
            topic_authorized_operations_39, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(MetadataResponseTopic(error_code_20, name_21, topic_id_24, is_internal_25, partitions_26, topic_authorized_operations_39))
        topics_17 = items_19
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 11, data, start) from None


def encode_v11(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v11(message))


def encode_pieces_v11(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        n_2 = len(brokers_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in brokers_1:
            host_4 = item_3.host.encode()
            n_5 = len(host_4) + 1
            raw_7 = item_3.rack
            if raw_7 is None:
                rack_6 = b""
                n_8 = 0
            else:
                rack_6 = raw_7.encode()
                n_8 = len(rack_6) + 1
            out += (_WRITE_i(item_3.node_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), host_4, _WRITE_i(item_3.port), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), rack_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_10 = message.cluster_id
        if raw_10 is None:
            cluster_id_9 = b""
            n_11 = 0
        else:
            cluster_id_9 = raw_10.encode()
            n_11 = len(cluster_id_9) + 1
        topics_12 = message.topics
        n_13 = len(topics_12) + 1
        out += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), cluster_id_9, _WRITE_i(message.controller_id), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
        for item_14 in topics_12:
            raw_16 = item_14.name
            if raw_16 is None:
                raise ValueError("name cannot be null in version 11")
            name_15 = raw_16.encode()
            n_17 = len(name_15) + 1
            if len(item_14.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_18 = item_14.partitions
            n_19 = len(partitions_18) + 1
            out += (_WRITE_h(item_14.error_code), UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), name_15, _WRITE_UZ(item_14.topic_id, item_14.is_internal), UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19))
            for item_20 in partitions_18:
                replica_nodes_21 = item_20.replica_nodes
                n_22 = len(replica_nodes_21) + 1
                isr_nodes_23 = item_20.isr_nodes
                n_24 = len(isr_nodes_23) + 1
                offline_replicas_25 = item_20.offline_replicas
                n_26 = len(offline_replicas_25) + 1
                out += (_WRITE_hiii(item_20.error_code, item_20.partition_index, item_20.leader_id, item_20.leader_epoch), UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), pack(">" + f"{len(replica_nodes_21)}i", *replica_nodes_21), UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), pack(">" + f"{len(isr_nodes_23)}i", *isr_nodes_23), UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), pack(">" + f"{len(offline_replicas_25)}i", *offline_replicas_25), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_14.topic_authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 11")
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 11, error) from error


def decode_v12(data: bytes, pos: int) -> tuple[MetadataResponse, int]:
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
        if n_3 > (end - pos) // 11:
            raise ValueError
        items_4: list[MetadataResponseBroker] = []
        for _ in range(n_3):
            node_id_5, = _READ_i(data, pos)
            pos += 4
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
            host_6 = data[pos:stop_8].decode()
            pos = stop_8
            port_9, = _READ_i(data, pos)
            pos += 4
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
                if n_11 > 32768:
                    raise ValueError
            else:
                pos += 1
            rack_10: str | None = None
            if n_11 > 0:
                stop_12 = pos + n_11 - 1
                if stop_12 > end:
                    raise ValueError
                rack_10 = data[pos:stop_12].decode()
                pos = stop_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(MetadataResponseBroker(node_id_5, host_6, port_9, rack_10))
        brokers_2 = items_4
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
            if n_14 > 32768:
                raise ValueError
        else:
            pos += 1
        cluster_id_13: str | None = None
        if n_14 > 0:
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            cluster_id_13 = data[pos:stop_15].decode()
            pos = stop_15
        controller_id_16, = _READ_i(data, pos)
        pos += 4
        n_18 = data[pos]
        if n_18 > 127:
            n_18, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_18 == 0:
            raise ValueError
        n_18 -= 1
        if n_18 > (end - pos) // 26:
            raise ValueError
        items_19: list[MetadataResponseTopic] = []
        for _ in range(n_18):
            error_code_20, = _READ_h(data, pos)
            pos += 2
            n_22 = data[pos]
            if n_22 > 127:
                n_22, pos = read_uvarint(data, pos)
                if n_22 > 32768:
                    raise ValueError
            else:
                pos += 1
            name_21: str | None = None
            if n_22 > 0:
                stop_23 = pos + n_22 - 1
                if stop_23 > end:
                    raise ValueError
                name_21 = data[pos:stop_23].decode()
                pos = stop_23
            topic_id_24, is_internal_25 = _READ_UZ(data, pos)
            pos += 17
            n_27 = data[pos]
            if n_27 > 127:
                n_27, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_27 == 0:
                raise ValueError
            n_27 -= 1
            if n_27 > (end - pos) // 18:
                raise ValueError
            items_28: list[MetadataResponsePartition] = []
            for _ in range(n_27):
                error_code_29, partition_index_30, leader_id_31, leader_epoch_32 = _READ_hiii(data, pos)
                pos += 14
                n_34 = data[pos]
                if n_34 > 127:
                    n_34, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_34 == 0:
                    raise ValueError
                n_34 -= 1
                if n_34 > (end - pos) // 4:
                    raise ValueError
                replica_nodes_33 = list(unpack_from(">" + f"{n_34}i", data, pos))
                pos += n_34 * 4
                n_36 = data[pos]
                if n_36 > 127:
                    n_36, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_36 == 0:
                    raise ValueError
                n_36 -= 1
                if n_36 > (end - pos) // 4:
                    raise ValueError
                isr_nodes_35 = list(unpack_from(">" + f"{n_36}i", data, pos))
                pos += n_36 * 4
                n_38 = data[pos]
                if n_38 > 127:
                    n_38, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_38 == 0:
                    raise ValueError
                n_38 -= 1
                if n_38 > (end - pos) // 4:
                    raise ValueError
                offline_replicas_37 = list(unpack_from(">" + f"{n_38}i", data, pos))
                pos += n_38 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_28.append(MetadataResponsePartition(error_code_29, partition_index_30, leader_id_31, leader_epoch_32, replica_nodes_33, isr_nodes_35, offline_replicas_37))
            partitions_26 = items_28
            topic_authorized_operations_39, = _READ_i(data, pos)
            pos += 4
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_19.append(MetadataResponseTopic(error_code_20, name_21, topic_id_24, is_internal_25, partitions_26, topic_authorized_operations_39))
        topics_17 = items_19
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return MetadataResponse(throttle_time_ms_1, brokers_2, cluster_id_13, controller_id_16, topics_17, -2147483648), pos
    except (IndexError, ValueError, struct_error):
        raise explain(MetadataResponse, 12, data, start) from None


def encode_v12(message: MetadataResponse) -> bytes:
    return b"".join(encode_pieces_v12(message))


def encode_pieces_v12(message: MetadataResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        brokers_1 = message.brokers
        n_2 = len(brokers_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in brokers_1:
            host_4 = item_3.host.encode()
            n_5 = len(host_4) + 1
            raw_7 = item_3.rack
            if raw_7 is None:
                rack_6 = b""
                n_8 = 0
            else:
                rack_6 = raw_7.encode()
                n_8 = len(rack_6) + 1
            out += (_WRITE_i(item_3.node_id), UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), host_4, _WRITE_i(item_3.port), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), rack_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        raw_10 = message.cluster_id
        if raw_10 is None:
            cluster_id_9 = b""
            n_11 = 0
        else:
            cluster_id_9 = raw_10.encode()
            n_11 = len(cluster_id_9) + 1
        topics_12 = message.topics
        n_13 = len(topics_12) + 1
        out += (UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), cluster_id_9, _WRITE_i(message.controller_id), UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
        for item_14 in topics_12:
            raw_16 = item_14.name
            if raw_16 is None:
                name_15 = b""
                n_17 = 0
            else:
                name_15 = raw_16.encode()
                n_17 = len(name_15) + 1
            if len(item_14.topic_id) != 16:
                raise ValueError("topic_id is not 16 bytes")
            partitions_18 = item_14.partitions
            n_19 = len(partitions_18) + 1
            out += (_WRITE_h(item_14.error_code), UVARINT[n_17] if n_17 < 4096 else write_uvarint(n_17), name_15, _WRITE_UZ(item_14.topic_id, item_14.is_internal), UVARINT[n_19] if n_19 < 4096 else write_uvarint(n_19))
            for item_20 in partitions_18:
                replica_nodes_21 = item_20.replica_nodes
                n_22 = len(replica_nodes_21) + 1
                isr_nodes_23 = item_20.isr_nodes
                n_24 = len(isr_nodes_23) + 1
                offline_replicas_25 = item_20.offline_replicas
                n_26 = len(offline_replicas_25) + 1
                out += (_WRITE_hiii(item_20.error_code, item_20.partition_index, item_20.leader_id, item_20.leader_epoch), UVARINT[n_22] if n_22 < 4096 else write_uvarint(n_22), pack(">" + f"{len(replica_nodes_21)}i", *replica_nodes_21), UVARINT[n_24] if n_24 < 4096 else write_uvarint(n_24), pack(">" + f"{len(isr_nodes_23)}i", *isr_nodes_23), UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), pack(">" + f"{len(offline_replicas_25)}i", *offline_replicas_25), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(_WRITE_ix(item_14.topic_authorized_operations))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        if message.cluster_authorized_operations != -2147483648:
            raise ValueError("cluster_authorized_operations cannot be sent in version 12")
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(MetadataResponse, 12, error) from error
