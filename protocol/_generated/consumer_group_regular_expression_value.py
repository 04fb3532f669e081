"""ConsumerGroupRegularExpressionValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted_modern import (
    ConsumerGroupRegularExpressionValue,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_qq = Struct(">qq").unpack_from
_WRITE_qqx = Struct(">qqx").pack


def decode_v0(data: bytes, pos: int) -> tuple[ConsumerGroupRegularExpressionValue, int]:
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
            topics_4 = data[pos:stop_6].decode()
            pos = stop_6
            items_3.append(topics_4)
        topics_1 = items_3
        version_7, timestamp_8 = _READ_qq(data, pos)
        pos += 16
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return ConsumerGroupRegularExpressionValue(topics_1, version_7, timestamp_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(ConsumerGroupRegularExpressionValue, 0, data, start) from None


def encode_v0(message: ConsumerGroupRegularExpressionValue) -> bytes:
    try:
        out: list[bytes] = []
        topics_1 = message.topics
        n_2 = len(topics_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in topics_1:
            item_4 = item_3.encode()
            n_5 = len(item_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), item_4)
        out.append(_WRITE_qqx(message.version, message.timestamp))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(ConsumerGroupRegularExpressionValue, 0, error) from error
