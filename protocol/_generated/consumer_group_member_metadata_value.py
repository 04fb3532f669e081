"""ConsumerGroupMemberMetadataValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMemberMetadataValueClassicMemberMetadata,
    ConsumerGroupMemberMetadataValueClassicProtocol,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_i = Struct(">i").unpack_from
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupMemberMetadataValue, int]:
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
        instance_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            instance_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
            if n_5 > 32768:
                raise ValueError
        else:
            pos += 1
        rack_id_4: str | None = None
        if n_5 > 0:
            stop_6 = pos + n_5 - 1
            if stop_6 > end:
                raise ValueError
            rack_id_4 = data[pos:stop_6].decode()
            pos = stop_6
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
        client_id_7 = data[pos:stop_9].decode()
        pos = stop_9
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
        client_host_10 = data[pos:stop_12].decode()
        pos = stop_12
        n_14 = data[pos]
        if n_14 > 127:
            n_14, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_14 == 0:
            raise ValueError
        n_14 -= 1
        if n_14 > end - pos:
            raise ValueError
        items_15: list[str] = []
        for _ in range(n_14):
            n_17 = data[pos]
            if n_17 > 127:
                n_17, pos = read_uvarint(data, pos)
                if n_17 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_17 == 0:
                raise ValueError
            stop_18 = pos + n_17 - 1
            if stop_18 > end:
                raise ValueError
            subscribed_topic_names_16 = data[pos:stop_18].decode()
            pos = stop_18
            items_15.append(subscribed_topic_names_16)
        subscribed_topic_names_13 = items_15
        n_20 = data[pos]
        if n_20 > 127:
            n_20, pos = read_uvarint(data, pos)
            if n_20 > 32768:
                raise ValueError
        else:
            pos += 1
        subscribed_topic_regex_19: str | None = None
        if n_20 > 0:
            stop_21 = pos + n_20 - 1
            if stop_21 > end:
                raise ValueError
            subscribed_topic_regex_19 = data[pos:stop_21].decode()
            pos = stop_21
        rebalance_timeout_ms_22, = _READ_i(data, pos)
        pos += 4
        n_24 = data[pos]
        if n_24 > 127:
            n_24, pos = read_uvarint(data, pos)
            if n_24 > 32768:
                raise ValueError
        else:
            pos += 1
        server_assignor_23: str | None = None
        if n_24 > 0:
            stop_25 = pos + n_24 - 1
            if stop_25 > end:
                raise ValueError
            server_assignor_23 = data[pos:stop_25].decode()
            pos = stop_25
        classic_member_metadata_26 = None
        count_27, pos = read_uvarint(data, pos)
        if count_27 > (end - pos) // 2:
            raise ValueError
        for _ in range(count_27):
            tag_28, pos = read_uvarint(data, pos)
            stop_29, pos = read_uvarint(data, pos)
            stop_29 += pos
            if stop_29 > end:
                raise ValueError
            if tag_28 == 0:
                classic_member_metadata_30: ConsumerGroupMemberMetadataValueClassicMemberMetadata | None = None
                present_31, pos = read_uvarint(data, pos)
                if present_31:  # a varint in front, 0 for null
                    session_timeout_ms_32, = _READ_i(data, pos)
                    pos += 4
                    n_34 = data[pos]
                    if n_34 > 127:
                        n_34, pos = read_uvarint(data, pos)
                    else:
                        pos += 1
                    if n_34 == 0:
                        raise ValueError
                    n_34 -= 1
                    if n_34 > (end - pos) // 3:
                        raise ValueError
                    items_35: list[ConsumerGroupMemberMetadataValueClassicProtocol] = []
                    for _ in range(n_34):
                        n_37 = data[pos]
                        if n_37 > 127:
                            n_37, pos = read_uvarint(data, pos)
                            if n_37 > 32768:
                                raise ValueError
                        else:
                            pos += 1
                        if n_37 == 0:
                            raise ValueError
                        stop_38 = pos + n_37 - 1
                        if stop_38 > end:
                            raise ValueError
                        name_36 = data[pos:stop_38].decode()
                        pos = stop_38
                        n_40 = data[pos]
                        if n_40 > 127:
                            n_40, pos = read_uvarint(data, pos)
                        else:
                            pos += 1
                        if n_40 == 0:
                            raise ValueError
                        stop_41 = pos + n_40 - 1
                        if stop_41 > end:
                            raise ValueError
                        metadata_39 = data[pos:stop_41]
                        pos = stop_41
                        if data[pos]:
                            pos = skip_tags(data, pos)
                        else:
                            pos += 1
                        items_35.append(ConsumerGroupMemberMetadataValueClassicProtocol(name_36, metadata_39))
                    supported_protocols_33 = items_35
                    if data[pos]:
                        pos = skip_tags(data, pos)
                    else:
                        pos += 1
                    classic_member_metadata_30 = ConsumerGroupMemberMetadataValueClassicMemberMetadata(session_timeout_ms_32, supported_protocols_33)
                classic_member_metadata_26 = classic_member_metadata_30
                if pos != stop_29:
                    raise ValueError
            else:
                pos = stop_29
        return ConsumerGroupMemberMetadataValue(instance_id_1, rack_id_4, client_id_7, client_host_10, subscribed_topic_names_13, subscribed_topic_regex_19, rebalance_timeout_ms_22, server_assignor_23, classic_member_metadata_26), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupMemberMetadataValue, 0, data, start) from None


def encode_v0(message: ConsumerGroupMemberMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.instance_id
        if raw_2 is None:
            instance_id_1 = b""
            n_3 = 0
        else:
            instance_id_1 = raw_2.encode()
            n_3 = len(instance_id_1) + 1
        raw_5 = message.rack_id
        if raw_5 is None:
            rack_id_4 = b""
            n_6 = 0
        else:
            rack_id_4 = raw_5.encode()
            n_6 = len(rack_id_4) + 1
        client_id_7 = message.client_id.encode()
        n_8 = len(client_id_7) + 1
        client_host_9 = message.client_host.encode()
        n_10 = len(client_host_9) + 1
        subscribed_topic_names_11 = message.subscribed_topic_names
        n_12 = len(subscribed_topic_names_11) + 1
        out += (UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), instance_id_1, UVARINT[n_6] if n_6 < 4096 else write_uvarint(n_6), rack_id_4, UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), client_id_7, UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), client_host_9, UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12))
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
        out += (UVARINT[n_18] if n_18 < 4096 else write_uvarint(n_18), subscribed_topic_regex_16, _WRITE_i(message.rebalance_timeout_ms), UVARINT[n_21] if n_21 < 4096 else write_uvarint(n_21), server_assignor_19)
        tags_22: list[tuple[int, bytes]] = []
        classic_member_metadata_23 = message.classic_member_metadata
        if classic_member_metadata_23 is not None:
            payload_24: list[bytes] = []
            classic_member_metadata_25 = classic_member_metadata_23
            supported_protocols_26 = classic_member_metadata_25.supported_protocols
            n_27 = len(supported_protocols_26) + 1
            payload_24 += (b"\x01", _WRITE_i(classic_member_metadata_25.session_timeout_ms), UVARINT[n_27] if n_27 < 4096 else write_uvarint(n_27))
            for item_28 in supported_protocols_26:
                name_29 = item_28.name.encode()
                n_30 = len(name_29) + 1
                metadata_31 = item_28.metadata
                n_32 = len(metadata_31) + 1
                payload_24 += (UVARINT[n_30] if n_30 < 4096 else write_uvarint(n_30), name_29, UVARINT[n_32] if n_32 < 4096 else write_uvarint(n_32), metadata_31, b"\0")
            payload_24.append(b"\0")
            tags_22.append((0, b"".join(payload_24)))
        out.append(write_tags(tags_22))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupMemberMetadataValue, 0, error) from error
