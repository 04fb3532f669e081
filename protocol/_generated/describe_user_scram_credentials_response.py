"""DescribeUserScramCredentialsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.users import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_bi = Struct(">bi").unpack_from
_READ_h = Struct(">h").unpack_from
_READ_ih = Struct(">ih").unpack_from
_WRITE_bix = Struct(">bix").pack
_WRITE_h = Struct(">h").pack
_WRITE_ih = Struct(">ih").pack


def decode_v0(data: bytes, pos: int) -> tuple[DescribeUserScramCredentialsResponse, int]:
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
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        n_7 -= 1
        if n_7 > (end - pos) // 6:
            raise ValueError
        items_8: list[DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult] = []
        for _ in range(n_7):
            n_10 = data[pos]
            if n_10 > 127:
                n_10, pos = read_uvarint(data, pos)
                if n_10 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_10 == 0:
                raise ValueError
            stop_11 = pos + n_10 - 1
            if stop_11 > end:
                raise ValueError
            user_9 = data[pos:stop_11].decode()
            pos = stop_11
            error_code_12, = _READ_h(data, pos)
            pos += 2
            n_14 = data[pos]
            if n_14 > 127:
                n_14, pos = read_uvarint(data, pos)
                if n_14 > 32768:
                    raise ValueError
            else:
                pos += 1
            error_message_13: str | None = None
            if n_14 > 0:
                stop_15 = pos + n_14 - 1
                if stop_15 > end:
                    raise ValueError
                error_message_13 = data[pos:stop_15].decode()
                pos = stop_15
            n_17 = data[pos]
            if n_17 > 127:
                n_17, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_17 == 0:
                raise ValueError
            n_17 -= 1
            if n_17 > (end - pos) // 6:
                raise ValueError
            items_18: list[DescribeUserScramCredentialsResponseCredentialInfo] = []
            for _ in range(n_17):
                mechanism_19, iterations_20 = _READ_bi(data, pos)
                pos += 5
                if data[pos]:
                    pos = skip_tags(data, pos)
                else:
                    pos += 1
                items_18.append(DescribeUserScramCredentialsResponseCredentialInfo(mechanism_19, iterations_20))
            credential_infos_16 = items_18
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_8.append(DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult(user_9, error_code_12, error_message_13, credential_infos_16))
        results_6 = items_8
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeUserScramCredentialsResponse(throttle_time_ms_1, error_code_2, error_message_3, results_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeUserScramCredentialsResponse, 0, data, start) from None


def encode_v0(message: DescribeUserScramCredentialsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DescribeUserScramCredentialsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        raw_2 = message.error_message
        if raw_2 is None:
            error_message_1 = b""
            n_3 = 0
        else:
            error_message_1 = raw_2.encode()
            n_3 = len(error_message_1) + 1
        results_4 = message.results
        n_5 = len(results_4) + 1
        out += (_WRITE_ih(message.throttle_time_ms, message.error_code), UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), error_message_1, UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5))
        for item_6 in results_4:
            user_7 = item_6.user.encode()
            n_8 = len(user_7) + 1
            raw_10 = item_6.error_message
            if raw_10 is None:
                error_message_9 = b""
                n_11 = 0
            else:
                error_message_9 = raw_10.encode()
                n_11 = len(error_message_9) + 1
            credential_infos_12 = item_6.credential_infos
            n_13 = len(credential_infos_12) + 1
            out += (UVARINT[n_8] if n_8 < 4096 else write_uvarint(n_8), user_7, _WRITE_h(item_6.error_code), UVARINT[n_11] if n_11 < 4096 else write_uvarint(n_11), error_message_9, UVARINT[n_13] if n_13 < 4096 else write_uvarint(n_13))
            for item_14 in credential_infos_12:
                out.append(_WRITE_bix(item_14.mechanism, item_14.iterations))
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            out.append(b"\0")
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeUserScramCredentialsResponse, 0, error) from error
