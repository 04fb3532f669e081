"""AddOffsetsToTxnRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_qh = Struct(">qh").unpack_from
_READ_qhh = Struct(">qhh").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_qh = Struct(">qh").pack
_WRITE_qhh = Struct(">qhh").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddOffsetsToTxnRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        producer_id_4, producer_epoch_5, n_7 = _READ_qhh(data, pos)
        pos += 12
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        group_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        return AddOffsetsToTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, group_id_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddOffsetsToTxnRequest, 0, data, start, budget) from None


def encode_v0(message: AddOffsetsToTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhh(message.producer_id, message.producer_epoch, len(group_id_2)), group_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddOffsetsToTxnRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddOffsetsToTxnRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        producer_id_4, producer_epoch_5, n_7 = _READ_qhh(data, pos)
        pos += 12
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        group_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        return AddOffsetsToTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, group_id_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddOffsetsToTxnRequest, 1, data, start, budget) from None


def encode_v1(message: AddOffsetsToTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhh(message.producer_id, message.producer_epoch, len(group_id_2)), group_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddOffsetsToTxnRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddOffsetsToTxnRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        if n_2 < 0:
            raise ValueError
        stop_3 = pos + n_2
        if stop_3 > end:
            raise ValueError
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        producer_id_4, producer_epoch_5, n_7 = _READ_qhh(data, pos)
        pos += 12
        if n_7 < 0:
            raise ValueError
        stop_8 = pos + n_7
        if stop_8 > end:
            raise ValueError
        group_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        return AddOffsetsToTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, group_id_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddOffsetsToTxnRequest, 2, data, start, budget) from None


def encode_v2(message: AddOffsetsToTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        group_id_2 = message.group_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhh(message.producer_id, message.producer_epoch, len(group_id_2)), group_id_2))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddOffsetsToTxnRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddOffsetsToTxnRequest, int]:
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
        transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        producer_id_4, producer_epoch_5 = _READ_qh(data, pos)
        pos += 10
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
            if n_7 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        stop_8 = pos + n_7 - 1
        if stop_8 > end:
            raise ValueError
        group_id_6 = data[pos:stop_8].decode()
        pos = stop_8
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AddOffsetsToTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, group_id_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddOffsetsToTxnRequest, 3, data, start, budget) from None


def encode_v3(message: AddOffsetsToTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        n_2 = len(transactional_id_1) + 1
        group_id_3 = message.group_id.encode()
        n_4 = len(group_id_3) + 1
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), transactional_id_1, _WRITE_qh(message.producer_id, message.producer_epoch), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4), group_id_3, b"\0"))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddOffsetsToTxnRequest, 3, error) from error
