"""ConsumerGroupHeartbeatRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ConsumerGroupHeartbeatRequest, int]:
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
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        stop_6 = pos + n_5 - 1
        if stop_6 > end:
            raise ValueError
        member_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        member_epoch_7, = _READ_i(data, pos)
        pos += 4
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        instance_id_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        n_12 = data[pos]
        if n_12 > 127:
            n_12, pos = read_uvarint(data, pos)
            if n_12 > 32768:
                raise ValueError
        else:
            pos += 1
        rack_id_11: str | None = None
        if n_12 > 0:
            stop_13 = pos + n_12 - 1
            if stop_13 > end:
                raise ValueError
            rack_id_11 = data[pos:stop_13].decode()
            pos = stop_13
        rebalance_timeout_ms_14, = _READ_i(data, pos)
        pos += 4
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        subscribed_topic_names_15: list[str] | None = None
        if n_16 > 0:
            n_16 -= 1
            if n_16 > end - pos:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[str] = []
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
                subscribed_topic_names_18 = data[pos:stop_20].decode()
                pos = stop_20
                items_17.append(subscribed_topic_names_18)
            subscribed_topic_names_15 = items_17
        n_22 = data[pos]
        if n_22 > 127:
            n_22, pos = read_uvarint(data, pos)
            if n_22 > 32768:
                raise ValueError
        else:
            pos += 1
        server_assignor_21: str | None = None
        if n_22 > 0:
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            server_assignor_21 = data[pos:stop_23].decode()
            pos = stop_23
        n_25 = data[pos]
        if n_25 > 127:
            n_25, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topic_partitions_24: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None
        if n_25 > 0:
            n_25 -= 1
            if n_25 > (end - pos) // 18:
                raise ValueError
            budget -= n_25 * 24
            if budget < 0:
                raise ValueError
            items_26: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
            for _ in range(n_25):
                topic_id_27, = _READ_U(data, pos)
                pos += 16
                n_29 = data[pos]
                if n_29 > 127:
                    n_29, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_29 == 0:
                    raise ValueError
                n_29 -= 1
                if n_29 > (end - pos) // 4:
                    raise ValueError
                budget -= n_29
                if budget < 0:
                    raise ValueError
                partitions_28 = list(unpack_from(">" + f"{n_29}i", data, pos))
                pos += n_29 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_26.append(ConsumerGroupHeartbeatRequestTopicPartitions(topic_id_27, partitions_28))
            topic_partitions_24 = items_26
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupHeartbeatRequest(group_id_1, member_id_4, member_epoch_7, instance_id_8, rack_id_11, rebalance_timeout_ms_14, subscribed_topic_names_15, None, server_assignor_21, topic_partitions_24), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupHeartbeatRequest, 0, data, start, budget) from None


def encode_v0(message: ConsumerGroupHeartbeatRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        member_id_3 = message.member_id.encode()
        n_4 = len(member_id_3) + 1
        raw_6 = message.instance_id
        if raw_6 is None:
            instance_id_5 = b""
            n_7 = 0
        else:
            instance_id_5 = raw_6.encode()
            n_7 = len(instance_id_5) + 1
        raw_9 = message.rack_id
        if raw_9 is None:
            rack_id_8 = b""
            n_10 = 0
        else:
            rack_id_8 = raw_9.encode()
            n_10 = len(rack_id_8) + 1
        subscribed_topic_names_11 = message.subscribed_topic_names
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, _WRITE_i(message.member_epoch), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), instance_id_5, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), rack_id_8, _WRITE_i(message.rebalance_timeout_ms))
        if subscribed_topic_names_11 is None:
            out.append(b"\0")
        else:
            n_12 = len(subscribed_topic_names_11) + 1
            out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
            for item_13 in subscribed_topic_names_11:
                item_14 = item_13.encode()
                n_15 = len(item_14) + 1
                out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), item_14)
        if message.subscribed_topic_regex is not None:
            raise ValueError("subscribed_topic_regex cannot be sent in version 0")
        raw_17 = message.server_assignor
        if raw_17 is None:
            server_assignor_16 = b""
            n_18 = 0
        else:
            server_assignor_16 = raw_17.encode()
            n_18 = len(server_assignor_16) + 1
        topic_partitions_19 = message.topic_partitions
        out += (UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), server_assignor_16)
        if topic_partitions_19 is None:
            out.append(b"\0")
        else:
            n_20 = len(topic_partitions_19) + 1
            out.append(UVARINT[n_20] if n_20 < 4096 else write_uvarint(n_20))
            for item_21 in topic_partitions_19:
                if len(item_21.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                partitions_22 = item_21.partitions
                n_23 = len(partitions_22) + 1
                out += (_WRITE_U(item_21.topic_id), UVARINT[n_23] if n_23 < 4096 else write_uvarint(n_23), pack(">" + f"{len(partitions_22)}i", *partitions_22), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupHeartbeatRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[ConsumerGroupHeartbeatRequest, int]:
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
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        stop_6 = pos + n_5 - 1
        if stop_6 > end:
            raise ValueError
        member_id_4 = data[pos:stop_6].decode()
        pos = stop_6
        member_epoch_7, = _READ_i(data, pos)
        pos += 4
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
            if n_9 > 32768:
                raise ValueError
        else:
            pos += 1
        instance_id_8: str | None = None
        if n_9 > 0:
            stop_10 = pos + n_9 - 1
            if stop_10 > end:
                raise ValueError
            instance_id_8 = data[pos:stop_10].decode()
            pos = stop_10
        n_12 = data[pos]
        if n_12 > 127:
            n_12, pos = read_uvarint(data, pos)
            if n_12 > 32768:
                raise ValueError
        else:
            pos += 1
        rack_id_11: str | None = None
        if n_12 > 0:
            stop_13 = pos + n_12 - 1
            if stop_13 > end:
                raise ValueError
            rack_id_11 = data[pos:stop_13].decode()
            pos = stop_13
        rebalance_timeout_ms_14, = _READ_i(data, pos)
        pos += 4
        n_16 = data[pos]
        if n_16 > 127:
            n_16, pos = read_uvarint(data, pos)
        else:
            pos += 1
        subscribed_topic_names_15: list[str] | None = None
        if n_16 > 0:
            n_16 -= 1
            if n_16 > end - pos:
                raise ValueError
            budget -= n_16 * 24
            if budget < 0:
                raise ValueError
            items_17: list[str] = []
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
                subscribed_topic_names_18 = data[pos:stop_20].decode()
                pos = stop_20
                items_17.append(subscribed_topic_names_18)
            subscribed_topic_names_15 = items_17
        n_22 = data[pos]
        if n_22 > 127:
            n_22, pos = read_uvarint(data, pos)
            if n_22 > 32768:
                raise ValueError
        else:
            pos += 1
        subscribed_topic_regex_21: str | None = None
        if n_22 > 0:
            stop_23 = pos + n_22 - 1
            if stop_23 > end:
                raise ValueError
            subscribed_topic_regex_21 = data[pos:stop_23].decode()
            pos = stop_23
        n_25 = data[pos]
        if n_25 > 127:
            n_25, pos = read_uvarint(data, pos)
            if n_25 > 32768:
                raise ValueError
        else:
            pos += 1
        server_assignor_24: str | None = None
        if n_25 > 0:
            stop_26 = pos + n_25 - 1
            if stop_26 > end:
                raise ValueError
            server_assignor_24 = data[pos:stop_26].decode()
            pos = stop_26
        n_28 = data[pos]
        if n_28 > 127:
            n_28, pos = read_uvarint(data, pos)
        else:
            pos += 1
        topic_partitions_27: list[ConsumerGroupHeartbeatRequestTopicPartitions] | None = None
        if n_28 > 0:
            n_28 -= 1
            if n_28 > (end - pos) // 18:
                raise ValueError
            budget -= n_28 * 24
            if budget < 0:
                raise ValueError
            items_29: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
            for _ in range(n_28):
                topic_id_30, = _READ_U(data, pos)
                pos += 16
                n_32 = data[pos]
                if n_32 > 127:
                    n_32, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                if n_32 == 0:
                    raise ValueError
                n_32 -= 1
                if n_32 > (end - pos) // 4:
                    raise ValueError
                budget -= n_32
                if budget < 0:
                    raise ValueError
                partitions_31 = list(unpack_from(">" + f"{n_32}i", data, pos))
                pos += n_32 * 4
                if data[pos]:
                    budget -= data[pos] * 24
                    if budget < 0:
                        raise ValueError
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_29.append(ConsumerGroupHeartbeatRequestTopicPartitions(topic_id_30, partitions_31))
            topic_partitions_27 = items_29
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupHeartbeatRequest(group_id_1, member_id_4, member_epoch_7, instance_id_8, rack_id_11, rebalance_timeout_ms_14, subscribed_topic_names_15, subscribed_topic_regex_21, server_assignor_24, topic_partitions_27), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupHeartbeatRequest, 1, data, start, budget) from None


def encode_v1(message: ConsumerGroupHeartbeatRequest) -> bytes:
    try:
        out: list[bytes] = []
        group_id_1 = message.group_id.encode()
        n_2 = len(group_id_1) + 1
        member_id_3 = message.member_id.encode()
        n_4 = len(member_id_3) + 1
        raw_6 = message.instance_id
        if raw_6 is None:
            instance_id_5 = b""
            n_7 = 0
        else:
            instance_id_5 = raw_6.encode()
            n_7 = len(instance_id_5) + 1
        raw_9 = message.rack_id
        if raw_9 is None:
            rack_id_8 = b""
            n_10 = 0
        else:
            rack_id_8 = raw_9.encode()
            n_10 = len(rack_id_8) + 1
        subscribed_topic_names_11 = message.subscribed_topic_names
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), group_id_1, UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), member_id_3, _WRITE_i(message.member_epoch), UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), instance_id_5, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), rack_id_8, _WRITE_i(message.rebalance_timeout_ms))
        if subscribed_topic_names_11 is None:
            out.append(b"\0")
        else:
            n_12 = len(subscribed_topic_names_11) + 1
            out.append(UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
            for item_13 in subscribed_topic_names_11:
                item_14 = item_13.encode()
                n_15 = len(item_14) + 1
                out += (UVARINT[n_15] if n_15 < 4096 else write_uvarint(n_15), item_14)
        raw_17 = message.subscribed_topic_regex
        if raw_17 is None:
            subscribed_topic_regex_16 = b""
            n_18 = 0
        else:
            subscribed_topic_regex_16 = raw_17.encode()
            n_18 = len(subscribed_topic_regex_16) + 1
        raw_20 = message.server_assignor
        if raw_20 is None:
            server_assignor_19 = b""
            n_21 = 0
        else:
            server_assignor_19 = raw_20.encode()
            n_21 = len(server_assignor_19) + 1
        topic_partitions_22 = message.topic_partitions
        out += (UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), subscribed_topic_regex_16, UVARINT[n_21] if n_21 < 4096 else write_uvarint(n_21), server_assignor_19)
        if topic_partitions_22 is None:
            out.append(b"\0")
        else:
            n_23 = len(topic_partitions_22) + 1
            out.append(UVARINT[n_23] if n_23 < 4096 else write_uvarint(n_23))
            for item_24 in topic_partitions_22:
                if len(item_24.topic_id) != 16:
                    raise ValueError("topic_id is not 16 bytes")
                partitions_25 = item_24.partitions
                n_26 = len(partitions_25) + 1
                out += (_WRITE_U(item_24.topic_id), UVARINT[n_26] if n_26 < 4096 else write_uvarint(n_26), pack(">" + f"{len(partitions_25)}i", *partitions_25), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupHeartbeatRequest, 1, error) from error
