"""DeleteGroupsResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.groups import (
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ii = Struct(">ii").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_hx = Struct(">hx").pack
_WRITE_i = Struct(">i").pack
_WRITE_ii = Struct(">ii").pack


def decode_v0(data: bytes, pos: int) -> tuple[DeleteGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteGroupsResponseDeletableGroupResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            items_4.append(DeleteGroupsResponseDeletableGroupResult(group_id_5, error_code_8))
        results_2 = items_4
        return DeleteGroupsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsResponse, 0, data, start) from None


def encode_v0(message: DeleteGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v0(message))


def encode_pieces_v0(message: DeleteGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            group_id_3 = item_2.group_id.encode()
            out += (_WRITE_h(len(group_id_3)), group_id_3, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsResponse, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[DeleteGroupsResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteGroupsResponseDeletableGroupResult] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            items_4.append(DeleteGroupsResponseDeletableGroupResult(group_id_5, error_code_8))
        results_2 = items_4
        return DeleteGroupsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsResponse, 1, data, start) from None


def encode_v1(message: DeleteGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v1(message))


def encode_pieces_v1(message: DeleteGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        out.append(_WRITE_ii(message.throttle_time_ms, len(results_1)))
        for item_2 in results_1:
            group_id_3 = item_2.group_id.encode()
            out += (_WRITE_h(len(group_id_3)), group_id_3, _WRITE_h(item_2.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsResponse, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[DeleteGroupsResponse, int]:
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
        if n_3 > (end - pos) // 4:
            raise ValueError
        items_4: list[DeleteGroupsResponseDeletableGroupResult] = []
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
            group_id_5 = data[pos:stop_7].decode()
            pos = stop_7
            error_code_8, = _READ_h(data, pos)
            pos += 2
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_4.append(DeleteGroupsResponseDeletableGroupResult(group_id_5, error_code_8))
        results_2 = items_4
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DeleteGroupsResponse(throttle_time_ms_1, results_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DeleteGroupsResponse, 2, data, start) from None


def encode_v2(message: DeleteGroupsResponse) -> bytes:
    return b"".join(encode_pieces_v2(message))


def encode_pieces_v2(message: DeleteGroupsResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        results_1 = message.results
        n_2 = len(results_1) + 1
        out += (_WRITE_i(message.throttle_time_ms), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in results_1:
            group_id_4 = item_3.group_id.encode()
            n_5 = len(group_id_4) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), group_id_4, _WRITE_hx(item_3.error_code))
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        out.append(b"\0")
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DeleteGroupsResponse, 2, error) from error
