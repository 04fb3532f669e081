"""ShareGroupMemberMetadataValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ShareGroupMemberMetadataValue,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int) -> tuple[ShareGroupMemberMetadataValue, int]:
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
        rack_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            rack_id_1 = data[pos:stop_3].decode()
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
        client_id_4 = data[pos:stop_6].decode()
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
        client_host_7 = data[pos:stop_9].decode()
        pos = stop_9
        n_11 = data[pos]
        if n_11 > 127:
            n_11, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_11 == 0:
            raise ValueError
        n_11 -= 1
        if n_11 > end - pos:
            raise ValueError
        items_12: list[str] = []
        for _ in range(n_11):
            n_14 = data[pos]
            if n_14 > 127:
                n_14, pos = read_uvarint(data, pos)
                if n_14 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_14 == 0:
                raise ValueError
            stop_15 = pos + n_14 - 1
            if stop_15 > end:
                raise ValueError
            subscribed_topic_names_13 = data[pos:stop_15].decode()
            pos = stop_15
            items_12.append(subscribed_topic_names_13)
        subscribed_topic_names_10 = items_12
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ShareGroupMemberMetadataValue(rack_id_1, client_id_4, client_host_7, subscribed_topic_names_10), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ShareGroupMemberMetadataValue, 0, data, start) from None


def encode_v0(message: ShareGroupMemberMetadataValue) -> bytes:
    try:
        out: list[bytes] = []
        raw_2 = message.rack_id
        if raw_2 is None:
            rack_id_1 = b""
            n_3 = 0
        else:
            rack_id_1 = raw_2.encode()
            n_3 = len(rack_id_1) + 1
        client_id_4 = message.client_id.encode()
        n_5 = len(client_id_4) + 1
        client_host_6 = message.client_host.encode()
        n_7 = len(client_host_6) + 1
        subscribed_topic_names_8 = message.subscribed_topic_names
        n_9 = len(subscribed_topic_names_8) + 1
        out += (UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), rack_id_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), client_id_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), client_host_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9))
        for item_10 in subscribed_topic_names_8:
            item_11 = item_10.encode()
            n_12 = len(item_11) + 1
            out += (UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), item_11)
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ShareGroupMemberMetadataValue, 0, error) from error
