"""AddPartitionsToTxnRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
)
from ringleader.protocol.wire import UNLIMITED, UVARINT, read_uvarint, skip_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_qh = Struct(">qh").unpack_from
_READ_qhi = Struct(">qhi").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_qh = Struct(">qh").pack
_WRITE_qhi = Struct(">qhi").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddPartitionsToTxnRequest, int]:
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
        v3_and_below_transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, n_7 = _READ_qhi(data, pos)
        pos += 14
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[AddPartitionsToTxnRequestAddPartitionsToTxnTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 4:
                raise ValueError
            budget -= n_13
            if budget < 0:
                raise ValueError
            partitions_12 = list(unpack_from(">" + f"{n_13}i", data, pos))
            pos += n_13 * 4
            items_8.append(AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name_9, partitions_12))
        v3_and_below_topics_6 = items_8
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id_1, v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, v3_and_below_topics_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddPartitionsToTxnRequest, 0, data, start, budget) from None


def encode_v0(message: AddPartitionsToTxnRequest) -> bytes:
    try:
        out: list[bytes] = []
        v3_and_below_transactional_id_1 = message.v3_and_below_transactional_id.encode()
        v3_and_below_topics_2 = message.v3_and_below_topics
        out += (_WRITE_h(len(v3_and_below_transactional_id_1)), v3_and_below_transactional_id_1, _WRITE_qhi(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, len(v3_and_below_topics_2)))
        for item_3 in v3_and_below_topics_2:
            name_4 = item_3.name.encode()
            partitions_5 = item_3.partitions
            out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partitions_5)), pack(">" + f"{len(partitions_5)}i", *partitions_5))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddPartitionsToTxnRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddPartitionsToTxnRequest, int]:
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
        v3_and_below_transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, n_7 = _READ_qhi(data, pos)
        pos += 14
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[AddPartitionsToTxnRequestAddPartitionsToTxnTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 4:
                raise ValueError
            budget -= n_13
            if budget < 0:
                raise ValueError
            partitions_12 = list(unpack_from(">" + f"{n_13}i", data, pos))
            pos += n_13 * 4
            items_8.append(AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name_9, partitions_12))
        v3_and_below_topics_6 = items_8
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id_1, v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, v3_and_below_topics_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddPartitionsToTxnRequest, 1, data, start, budget) from None


def encode_v1(message: AddPartitionsToTxnRequest) -> bytes:
    try:
        out: list[bytes] = []
        v3_and_below_transactional_id_1 = message.v3_and_below_transactional_id.encode()
        v3_and_below_topics_2 = message.v3_and_below_topics
        out += (_WRITE_h(len(v3_and_below_transactional_id_1)), v3_and_below_transactional_id_1, _WRITE_qhi(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, len(v3_and_below_topics_2)))
        for item_3 in v3_and_below_topics_2:
            name_4 = item_3.name.encode()
            partitions_5 = item_3.partitions
            out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partitions_5)), pack(">" + f"{len(partitions_5)}i", *partitions_5))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddPartitionsToTxnRequest, 1, error) from error


def decode_v2(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddPartitionsToTxnRequest, int]:
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
        v3_and_below_transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, n_7 = _READ_qhi(data, pos)
        pos += 14
        if n_7 < 0:
            raise ValueError
        if n_7 > (end - pos) // 6:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[AddPartitionsToTxnRequestAddPartitionsToTxnTopic] = []
        for _ in range(n_7):
            n_10, = _READ_h(data, pos)
            pos += 2
            if n_10 < 0:
                raise ValueError
            stop_11 = pos + n_10
            if stop_11 > end:
                raise ValueError
            name_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13, = _READ_i(data, pos)
            pos += 4
            if n_13 < 0:
                raise ValueError
            if n_13 > (end - pos) // 4:
                raise ValueError
            budget -= n_13
            if budget < 0:
                raise ValueError
            partitions_12 = list(unpack_from(">" + f"{n_13}i", data, pos))
            pos += n_13 * 4
            items_8.append(AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name_9, partitions_12))
        v3_and_below_topics_6 = items_8
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id_1, v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, v3_and_below_topics_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddPartitionsToTxnRequest, 2, data, start, budget) from None


def encode_v2(message: AddPartitionsToTxnRequest) -> bytes:
    try:
        out: list[bytes] = []
        v3_and_below_transactional_id_1 = message.v3_and_below_transactional_id.encode()
        v3_and_below_topics_2 = message.v3_and_below_topics
        out += (_WRITE_h(len(v3_and_below_transactional_id_1)), v3_and_below_transactional_id_1, _WRITE_qhi(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, len(v3_and_below_topics_2)))
        for item_3 in v3_and_below_topics_2:
            name_4 = item_3.name.encode()
            partitions_5 = item_3.partitions
            out += (_WRITE_h(len(name_4)), name_4, _WRITE_i(len(partitions_5)), pack(">" + f"{len(partitions_5)}i", *partitions_5))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddPartitionsToTxnRequest, 2, error) from error


def decode_v3(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[AddPartitionsToTxnRequest, int]:
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
        v3_and_below_transactional_id_1 = data[pos:stop_3].decode()
        pos = stop_3
        v3_and_below_producer_id_4, v3_and_below_producer_epoch_5 = _READ_qh(data, pos)
        pos += 10
        n_7 = data[pos]
        if n_7 > 127:
            n_7, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_7 == 0:
            raise ValueError
        n_7 -= 1
        if n_7 > (end - pos) // 3:
            raise ValueError
        budget -= n_7 * 24
        if budget < 0:
            raise ValueError
        items_8: list[AddPartitionsToTxnRequestAddPartitionsToTxnTopic] = []
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
            name_9 = data[pos:stop_11].decode()
            pos = stop_11
            n_13 = data[pos]
            if n_13 > 127:
                n_13, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_13 == 0:
                raise ValueError
            n_13 -= 1
            if n_13 > (end - pos) // 4:
                raise ValueError
            budget -= n_13
            if budget < 0:
                raise ValueError
            partitions_12 = list(unpack_from(">" + f"{n_13}i", data, pos))
            pos += n_13 * 4
            if data[pos]:
                budget -= data[pos] * 24
                if budget < 0:
                    raise ValueError
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_8.append(AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name_9, partitions_12))
        v3_and_below_topics_6 = items_8
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return AddPartitionsToTxnRequest(v3_and_below_transactional_id_1, v3_and_below_producer_id_4, v3_and_below_producer_epoch_5, v3_and_below_topics_6), pos
    except (IndexError, ValueError, struct_error):
        raise explain(AddPartitionsToTxnRequest, 3, data, start, budget) from None


def encode_v3(message: AddPartitionsToTxnRequest) -> bytes:
    try:
        out: list[bytes] = []
        v3_and_below_transactional_id_1 = message.v3_and_below_transactional_id.encode()
        n_2 = len(v3_and_below_transactional_id_1) + 1
        v3_and_below_topics_3 = message.v3_and_below_topics
        n_4 = len(v3_and_below_topics_3) + 1
        out += (UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), v3_and_below_transactional_id_1, _WRITE_qh(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch), UVARINT[n_4] if n_4 < 4096 else write_uvarint(n_4))
        for item_5 in v3_and_below_topics_3:
            name_6 = item_5.name.encode()
            n_7 = len(name_6) + 1
            partitions_8 = item_5.partitions
            n_9 = len(partitions_8) + 1
            out += (UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7), name_6, UVARINT[n_9] if n_9 < 4096 else write_uvarint(n_9), pack(">" + f"{len(partitions_8)}i", *partitions_8), b"\0")
        out.append(b"\0")
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(AddPartitionsToTxnRequest, 3, error) from error
