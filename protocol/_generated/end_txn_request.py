"""EndTxnRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    EndTxnRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_qhZ = Struct(">qh?").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_qhZ = Struct(">qh?").pack
_WRITE_qhZx = Struct(">qh?x").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[EndTxnRequest, int]:
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
        producer_id_4, producer_epoch_5, committed_6 = _READ_qhZ(data, pos)
        pos += 11
        return EndTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, committed_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnRequest, 0, data, start, budget) from None


def encode_v0(message: EndTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhZ(message.producer_id, message.producer_epoch, message.committed)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[EndTxnRequest, int]:
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
        producer_id_4, producer_epoch_5, committed_6 = _READ_qhZ(data, pos)
        pos += 11
        return EndTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, committed_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnRequest, 1, data, start, budget) from None


def encode_v1(message: EndTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhZ(message.producer_id, message.producer_epoch, message.committed)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[EndTxnRequest, int]:
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
        producer_id_4, producer_epoch_5, committed_6 = _READ_qhZ(data, pos)
        pos += 11
        return EndTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, committed_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnRequest, 2, data, start, budget) from None


def encode_v2(message: EndTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        return b"".join((_WRITE_h(len(transactional_id_1)), transactional_id_1, _WRITE_qhZ(message.producer_id, message.producer_epoch, message.committed)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[EndTxnRequest, int]:
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
        producer_id_4, producer_epoch_5, committed_6 = _READ_qhZ(data, pos)
        pos += 11
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return EndTxnRequest(transactional_id_1, producer_id_4, producer_epoch_5, committed_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(EndTxnRequest, 3, data, start, budget) from None


def encode_v3(message: EndTxnRequest) -> bytes:
    try:
        transactional_id_1 = message.transactional_id.encode()
        n_2 = len(transactional_id_1) + 1
        return b"".join((UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), transactional_id_1, _WRITE_qhZx(message.producer_id, message.producer_epoch, message.committed)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(EndTxnRequest, 3, error) from error
