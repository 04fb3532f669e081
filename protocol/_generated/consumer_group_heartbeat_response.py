"""ConsumerGroupHeartbeatResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_ih = Struct(">ih").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_ih = Struct(">ih").pack
_WRITE_ii = Struct(">ii").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupHeartbeatResponse, int]:
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
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        member_id_6: str | None = None
        if n_7 > 0:
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            member_id_6 = data[pos:stop_8].decode()
            pos = stop_8
        member_epoch_9, heartbeat_interval_ms_10 = _READ_ii(data, pos)
        pos += 8
        assignment_11: ConsumerGroupHeartbeatResponseAssignment | None = None
        pos += 1
        if data[pos - 1] < 128:  # one byte in front, below 0 for null
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            n_13 -= 1
            if n_13 > (end - pos) // 18:
                raise ValueError
            items_14: list[ConsumerGroupHeartbeatResponseTopicPartitions] = []
            for _ in range(n_13):
                topic_id_15, = _READ_U(data, pos)
                pos += 16
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                n_17 -= 1
                if n_17 > (end - pos) // 4:
                    raise ValueError
                partitions_16 = list(unpack_from(">" + f"{n_17}i", data, pos))
                pos += n_17 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_14.append(ConsumerGroupHeartbeatResponseTopicPartitions(topic_id_15, partitions_16))
            topic_partitions_12 = items_14
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            assignment_11 = ConsumerGroupHeartbeatResponseAssignment(topic_partitions_12)
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupHeartbeatResponse(throttle_time_ms_1, error_code_2, error_message_3, member_id_6, member_epoch_9, heartbeat_interval_ms_10, assignment_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupHeartbeatResponse, 0, data, start) from None


def encode_v0(message: ConsumerGroupHeartbeatResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: ConsumerGroupHeartbeatResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        raw_5 = message.member_id
        if raw_5 is None:
            member_id_4 = b""
            n_6 = 0
        else:
            member_id_4 = raw_5.encode()
            n_6 = len(member_id_4) + 1
        assignment_7 = message.assignment
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), member_id_4, _WRITE_ii(message.member_epoch, message.heartbeat_interval_ms))
        if assignment_7 is None:
            out.append(b"\xff")
        else:
            topic_partitions_8 = assignment_7.topic_partitions
            n_9 = len(topic_partitions_8) + 1
            out += (b"\x01", UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
            for item_10 in topic_partitions_8:
                if len(item_10.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                partitions_11 = item_10.partitions
                n_12 = len(partitions_11) + 1
                out += (_WRITE_U(item_10.topic_id), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), pack(">" + f"{len(partitions_11)}i", *partitions_11), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupHeartbeatResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[ConsumerGroupHeartbeatResponse, int]:
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
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        member_id_6: str | None = None
        if n_7 > 0:
            stop_8 = pos + n_7 - 1
            if stop_8 > end:
                raise ValueError
            member_id_6 = data[pos:stop_8].decode()
            pos = stop_8
        member_epoch_9, heartbeat_interval_ms_10 = _READ_ii(data, pos)
        pos += 8
        assignment_11: ConsumerGroupHeartbeatResponseAssignment | None = None
        pos += 1
        if data[pos - 1] < 128:  # one byte in front, below 0 for null
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            n_13 -= 1
            if n_13 > (end - pos) // 18:
                raise ValueError
            items_14: list[ConsumerGroupHeartbeatResponseTopicPartitions] = []
            for _ in range(n_13):
                topic_id_15, = _READ_U(data, pos)
                pos += 16
                n_17 = data[pos]
                if n_17 > 127:
                    n_17, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_17 == 0:
                    raise ValueError
                n_17 -= 1
                if n_17 > (end - pos) // 4:
                    raise ValueError
                partitions_16 = list(unpack_from(">" + f"{n_17}i", data, pos))
                pos += n_17 * 4
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_14.append(ConsumerGroupHeartbeatResponseTopicPartitions(topic_id_15, partitions_16))
            topic_partitions_12 = items_14
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            assignment_11 = ConsumerGroupHeartbeatResponseAssignment(topic_partitions_12)
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupHeartbeatResponse(throttle_time_ms_1, error_code_2, error_message_3, member_id_6, member_epoch_9, heartbeat_interval_ms_10, assignment_11), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupHeartbeatResponse, 1, data, start) from None


def encode_v1(message: ConsumerGroupHeartbeatResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: ConsumerGroupHeartbeatResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        raw_5 = message.member_id
        if raw_5 is None:
            member_id_4 = b""
            n_6 = 0
        else:
            member_id_4 = raw_5.encode()
            n_6 = len(member_id_4) + 1
        assignment_7 = message.assignment
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), member_id_4, _WRITE_ii(message.member_epoch, message.heartbeat_interval_ms))
        if assignment_7 is None:
            out.append(b"\xff")
        else:
            topic_partitions_8 = assignment_7.topic_partitions
            n_9 = len(topic_partitions_8) + 1
            out += (b"\x01", UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
            for item_10 in topic_partitions_8:
                if len(item_10.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                partitions_11 = item_10.partitions
                n_12 = len(partitions_11) + 1
                out += (_WRITE_U(item_10.topic_id), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), pack(">" + f"{len(partitions_11)}i", *partitions_11), b"\0")
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupHeartbeatResponse, 1, error) from error
