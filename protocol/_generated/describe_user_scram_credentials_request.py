"""DescribeUserScramCredentialsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.users import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequestUserName,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint



def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeUserScramCredentialsRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2 = data[pos]
        if n_2 > 127:
            n_2, pos = read_uvarint(data, pos)
        else:
            pos += 1
        users_1: list[DescribeUserScramCredentialsRequestUserName] | None = None
        if n_2 > 0:
            n_2 -= 1
            if n_2 > (end - pos) // 2:
                raise ValueError
            budget -= n_2 * 24
            if budget < 0:
                raise ValueError
            items_3: list[DescribeUserScramCredentialsRequestUserName] = []
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
                items_3.append(DescribeUserScramCredentialsRequestUserName(name_4))
            users_1 = items_3
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeUserScramCredentialsRequest(users_1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeUserScramCredentialsRequest, 0, data, start, budget) from None


def encode_v0(message: DescribeUserScramCredentialsRequest) -> bytes:
    try:
        out: list[bytes] = []
        users_1 = message.users
        if users_1 is None:
            out.append(b"\0")
        else:
            n_2 = len(users_1) + 1
            out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
            for item_3 in users_1:
                name_4 = item_3.name.encode()
                n_5 = len(name_4) + 1
                out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeUserScramCredentialsRequest, 0, error) from error
