"""AlterUserScramCredentialsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.users import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack


def decode_v0(data: bytes, pos: int) -> tuple[AlterUserScramCredentialsResponse, int]:
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
        if n_3 > (end - pos) // 5:
            raise ValueError
        items_4: list[AlterUserScramCredentialsResponseAlterUserScramCredentialsResult] = []
        for _ in range(n_3):
            n_6 = data[pos]
            if n_6 > 127:
                n_6, pos = read_uvarint(data, pos)
                if n_6 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_6 == 0:
                raise ValueError
            stop_7 = pos + n_6 - 1
            if stop_7 > end:
                raise ValueError
            user_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_9: str | None = None
            if n_10 > 0:
                stop_11 = pos + n_10 - 1
                if stop_11 > end:
                    raise ValueError
                error_message_9 = data[pos:stop_11].decode()
                pos = stop_11
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(AlterUserScramCredentialsResponseAlterUserScramCredentialsResult(user_5, error_code_8, error_message_9))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AlterUserScramCredentialsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterUserScramCredentialsResponse, 0, data, start) from None


def encode_v0(message: AlterUserScramCredentialsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: AlterUserScramCredentialsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            user_4 = item_3.user.encode()
            n_5 = len(user_4) + 1
            raw_7 = item_3.error_message
            if raw_7 is None:
                error_message_6 = b""
                n_8 = 0
            else:
                error_message_6 = raw_7.encode()
                n_8 = len(error_message_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), user_4, _WRITE_h(item_3.error_code), UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), error_message_6, b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterUserScramCredentialsResponse, 0, error) from error
