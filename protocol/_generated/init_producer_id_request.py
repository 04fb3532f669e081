"""InitProducerIdRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    InitProducerIdRequest,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_iqh = Struct(">iqh").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_iqhx = Struct(">iqhx").pack
_WRITE_ix = Struct(">ix").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[InitProducerIdRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        transaction_timeout_ms_4, = _READ_i(data, pos)
        pos += 4
        return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_4, -1, -1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdRequest, 0, data, start, budget) from None


def encode_v0(message: InitProducerIdRequest) -> bytes:
    try:
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        if message.producer_id != -1:
            raise ValueError("producer_id cannot be sent in version 0")
        if message.producer_epoch != -1:
            raise ValueError("producer_epoch cannot be sent in version 0")
        return b"".join((_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_i(message.transaction_timeout_ms)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[InitProducerIdRequest, int]:
    start = pos
    try:
        end = len(data)
        n_2, = _READ_h(data, pos)
        pos += 2
        transactional_id_1: str | None = None
        if n_2 >= 0:
            stop_3 = pos + n_2
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        elif n_2 != -1:
            raise ValueError
        transaction_timeout_ms_4, = _READ_i(data, pos)
        pos += 4
        return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_4, -1, -1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdRequest, 1, data, start, budget) from None


def encode_v1(message: InitProducerIdRequest) -> bytes:
    try:
        raw_2 = message.transactional_id
        transactional_id_1 = b"" if raw_2 is None else raw_2.encode()
        if message.producer_id != -1:
            raise ValueError("producer_id cannot be sent in version 1")
        if message.producer_epoch != -1:
            raise ValueError("producer_epoch cannot be sent in version 1")
        return b"".join((_WRITE_h(-1 if raw_2 is None else len(transactional_id_1)), transactional_id_1, _WRITE_i(message.transaction_timeout_ms)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[InitProducerIdRequest, int]:
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
        transactional_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        transaction_timeout_ms_4, = _READ_i(data, pos)
        pos += 4
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_4, -1, -1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdRequest, 2, data, start, budget) from None


def encode_v2(message: InitProducerIdRequest) -> bytes:
    try:
        raw_2 = message.transactional_id
        if raw_2 is None:
            transactional_id_1 = b""
            n_3 = 0
        else:
            transactional_id_1 = raw_2.encode()
            n_3 = len(transactional_id_1) + 1
        if message.producer_id != -1:
            raise ValueError("producer_id cannot be sent in version 2")
        if message.producer_epoch != -1:
            raise ValueError("producer_epoch cannot be sent in version 2")
        return b"".join((UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), transactional_id_1, _WRITE_ix(message.transaction_timeout_ms)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[InitProducerIdRequest, int]:
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
        transactional_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        transaction_timeout_ms_4, producer_id_5, producer_epoch_6 = _READ_iqh(data, pos)
        pos += 14
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_4, producer_id_5, producer_epoch_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdRequest, 3, data, start, budget) from None


def encode_v3(message: InitProducerIdRequest) -> bytes:
    try:
        raw_2 = message.transactional_id
        if raw_2 is None:
            transactional_id_1 = b""
            n_3 = 0
        else:
            transactional_id_1 = raw_2.encode()
            n_3 = len(transactional_id_1) + 1
        return b"".join((UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), transactional_id_1, _WRITE_iqhx(message.transaction_timeout_ms, message.producer_id, message.producer_epoch)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdRequest, 3, error) from error


def decode_v4(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[InitProducerIdRequest, int]:
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
        transactional_id_1: str | None = None
        if n_2 > 0:
            stop_3 = pos + n_2 - 1
            if stop_3 > end:
                raise ValueError
            transactional_id_1 = data[pos:stop_3].decode()
            pos = stop_3
        transaction_timeout_ms_4, producer_id_5, producer_epoch_6 = _READ_iqh(data, pos)
        pos += 14
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return InitProducerIdRequest(transactional_id_1, transaction_timeout_ms_4, producer_id_5, producer_epoch_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(InitProducerIdRequest, 4, data, start, budget) from None


def encode_v4(message: InitProducerIdRequest) -> bytes:
    try:
        raw_2 = message.transactional_id
        if raw_2 is None:
            transactional_id_1 = b""
            n_3 = 0
        else:
            transactional_id_1 = raw_2.encode()
            n_3 = len(transactional_id_1) + 1
        return b"".join((UVARINT[n_3] if n_3 < 4096 else write_uvarint(n_3), transactional_id_1, _WRITE_iqhx(message.transaction_timeout_ms, message.producer_id, message.producer_epoch)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(InitProducerIdRequest, 4, error) from error
