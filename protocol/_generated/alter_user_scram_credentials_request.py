"""AlterUserScramCredentialsRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialDeletion,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_b = Struct(">b").unpack_from
_READ_bi = Struct(">bi").unpack_from
_WRITE_bi = Struct(">bi").pack
_WRITE_bx = Struct(">bx").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AlterUserScramCredentialsRequest, int]:
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
        if n_2 > (end - pos) // 3:
            raise ValueError
        budget -= n_2 * 24
        if budget < 0:
            raise ValueError
        items_3: list[AlterUserScramCredentialsRequestScramCredentialDeletion] = []
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
            mechanism_7, = _READ_b(data, pos)
            pos += 1
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_3.append(AlterUserScramCredentialsRequestScramCredentialDeletion(name_4, mechanism_7))
        deletions_1 = items_3
        n_9 = data[pos]
        if n_9 > 127:
            n_9, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_9 == 0:
            raise ValueError
        n_9 -= 1
        if n_9 > (end - pos) // 9:
            raise ValueError
        budget -= n_9 * 24
        if budget < 0:
            raise ValueError
        items_10: list[AlterUserScramCredentialsRequestScramCredentialUpsertion] = []
        for _ in range(n_9):
            n_12 = data[pos]
            if n_12 > 127:
                n_12, pos = read_uvarint(data, pos)
                if n_12 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_12 == 0:
                raise ValueError
            stop_13 = pos + n_12 - 1
            if stop_13 > end:
                raise ValueError
            name_11 = data[pos:stop_13].decode()
            pos = stop_13
            mechanism_14, iterations_15 = _READ_bi(data, pos)
            pos += 5
            n_17 = data[pos]
            if n_17 > 127:
                n_17, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_17 == 0:
                raise ValueError
            stop_18 = pos + n_17 - 1
            if stop_18 > end:
                raise ValueError
            salt_16 = data[pos:stop_18]
            pos = stop_18
            n_20 = data[pos]
            if n_20 > 127:
                n_20, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_20 == 0:
                raise ValueError
            stop_21 = pos + n_20 - 1
            if stop_21 > end:
                raise ValueError
            salted_password_19 = data[pos:stop_21]
            pos = stop_21
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_10.append(AlterUserScramCredentialsRequestScramCredentialUpsertion(name_11, mechanism_14, iterations_15, salt_16, salted_password_19))
        upsertions_8 = items_10
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AlterUserScramCredentialsRequest(deletions_1, upsertions_8), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AlterUserScramCredentialsRequest, 0, data, start, budget) from None


def encode_v0(message: AlterUserScramCredentialsRequest) -> bytes:
    try:
        out: list[bytes] = []
        deletions_1 = message.deletions
        n_2 = len(deletions_1) + 1
        out.append(UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in deletions_1:
            name_4 = item_3.name.encode()
            n_5 = len(name_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), name_4, _WRITE_bx(item_3.mechanism))
        upsertions_6 = message.upsertions
        n_7 = len(upsertions_6) + 1
        out.append(UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
        for item_8 in upsertions_6:
            name_9 = item_8.name.encode()
            n_10 = len(name_9) + 1
            salt_11 = item_8.salt
            n_12 = len(salt_11) + 1
            salted_password_13 = item_8.salted_password
            n_14 = len(salted_password_13) + 1
            out += (UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10), name_9, _WRITE_bi(item_8.mechanism, item_8.iterations), UVARINT[n_12] if n_12 < 4096 else write_uvarint(n_12), salt_11, UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), salted_password_13, b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AlterUserScramCredentialsRequest, 0, error) from error
