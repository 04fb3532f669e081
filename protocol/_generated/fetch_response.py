"""FetchResponse: written by ringleader.protocol.codegen from its declaration; do not edit."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.data import (
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)
from ringleader.protocol.wire import PIECE_ITEMS, UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_ihi = Struct(">ihi").unpack_from
_READ_ihii = Struct(">ihii").unpack_from
_READ_ihqqi = Struct(">ihqqi").unpack_from
_READ_ihqqq = Struct(">ihqqq").unpack_from
_READ_ihqqqi = Struct(">ihqqqi").unpack_from
_READ_ii = Struct(">ii").unpack_from
_READ_iq = Struct(">iq").unpack_from
_READ_qi = Struct(">qi").unpack_from
_READ_qq = Struct(">qq").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_ihi = Struct(">ihi").pack
_WRITE_ihii = Struct(">ihii").pack
_WRITE_ihqq = Struct(">ihqq").pack
_WRITE_ihqqq = Struct(">ihqqq").pack
_WRITE_ii = Struct(">ii").pack
_WRITE_iix = Struct(">iix").pack
_WRITE_iqx = Struct(">iqx").pack
_WRITE_qix = Struct(">qix").pack
_WRITE_qq = Struct(">qq").pack
_WRITE_qqx = Struct(">qqx").pack


def decode_v4(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = str(data[pos:stop_7], "utf-8")
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 30:
                raise ValueError
            items_10: list[FetchResponsePartitionData] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, n_16 = _READ_ihqqi(data, pos)
                pos += 26
                aborted_transactions_15: list[FetchResponseAbortedTransaction] | None = None
                if n_16 >= 0:
                    if n_16 > (end - pos) // 16:
                        raise ValueError
                    items_17: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_16):
                        producer_id_18, first_offset_19 = _READ_qq(data, pos)
                        pos += 16
                        items_17.append(FetchResponseAbortedTransaction(producer_id_18, first_offset_19))
                    aborted_transactions_15 = items_17
                elif n_16 != -1:
                    raise ValueError
                n_21, = _READ_i(data, pos)
                pos += 4
                records_20: bytes | None = None
                if n_21 >= 0:
                    stop_22 = pos + n_21
                    if stop_22 > end:
                        raise ValueError
                    records_20 = data[pos:stop_22]
                    pos = stop_22
                elif n_21 != -1:
                    raise ValueError
                items_10.append(FetchResponsePartitionData(partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, -1, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_15, -1, records_20))
            partitions_8 = items_10
            items_4.append(FetchResponseFetchableTopicResponse(topic_5, partitions_8))
        responses_2 = items_4
        return FetchResponse(throttle_time_ms_1, 0, 0, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 4, data, start) from None


def encode_v4(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v4(message))


def encode_pieces_v4(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.session_id != 0:
            raise ValueError("session_id cannot be sent in version 4")
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 4")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 4")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 4")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 4")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 4, error) from error


def decode_v5(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = str(data[pos:stop_7], "utf-8")
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 38:
                raise ValueError
            items_10: list[FetchResponsePartitionData] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, log_start_offset_15, n_17 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_16: list[FetchResponseAbortedTransaction] | None = None
                if n_17 >= 0:
                    if n_17 > (end - pos) // 16:
                        raise ValueError
                    items_18: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_17):
                        producer_id_19, first_offset_20 = _READ_qq(data, pos)
                        pos += 16
                        items_18.append(FetchResponseAbortedTransaction(producer_id_19, first_offset_20))
                    aborted_transactions_16 = items_18
                elif n_17 != -1:
                    raise ValueError
                n_22, = _READ_i(data, pos)
                pos += 4
                records_21: bytes | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    records_21 = data[pos:stop_23]
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_10.append(FetchResponsePartitionData(partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, log_start_offset_15, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_16, -1, records_21))
            partitions_8 = items_10
            items_4.append(FetchResponseFetchableTopicResponse(topic_5, partitions_8))
        responses_2 = items_4
        return FetchResponse(throttle_time_ms_1, 0, 0, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 5, data, start) from None


def encode_v5(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v5(message))


def encode_pieces_v5(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.session_id != 0:
            raise ValueError("session_id cannot be sent in version 5")
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 5")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 5")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 5")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 5")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 5, error) from error


def decode_v6(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, n_3 = _READ_ii(data, pos)
        pos += 8
        if n_3 < 0:
            raise ValueError
        if n_3 > (end - pos) // 6:
            raise ValueError
        items_4: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_3):
            n_6, = _READ_h(data, pos)
            pos += 2
            if n_6 < 0:
                raise ValueError
            stop_7 = pos + n_6
            if stop_7 > end:
                raise ValueError
            topic_5 = str(data[pos:stop_7], "utf-8")
            pos = stop_7
            n_9, = _READ_i(data, pos)
            pos += 4
            if n_9 < 0:
                raise ValueError
            if n_9 > (end - pos) // 38:
                raise ValueError
            items_10: list[FetchResponsePartitionData] = []
            for _ in range(n_9):
                partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, log_start_offset_15, n_17 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_16: list[FetchResponseAbortedTransaction] | None = None
                if n_17 >= 0:
                    if n_17 > (end - pos) // 16:
                        raise ValueError
                    items_18: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_17):
                        producer_id_19, first_offset_20 = _READ_qq(data, pos)
                        pos += 16
                        items_18.append(FetchResponseAbortedTransaction(producer_id_19, first_offset_20))
                    aborted_transactions_16 = items_18
                elif n_17 != -1:
                    raise ValueError
                n_22, = _READ_i(data, pos)
                pos += 4
                records_21: bytes | None = None
                if n_22 >= 0:
                    stop_23 = pos + n_22
                    if stop_23 > end:
                        raise ValueError
                    records_21 = data[pos:stop_23]
                    pos = stop_23
                elif n_22 != -1:
                    raise ValueError
                items_10.append(FetchResponsePartitionData(partition_index_11, error_code_12, high_watermark_13, last_stable_offset_14, log_start_offset_15, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_16, -1, records_21))
            partitions_8 = items_10
            items_4.append(FetchResponseFetchableTopicResponse(topic_5, partitions_8))
        responses_2 = items_4
        return FetchResponse(throttle_time_ms_1, 0, 0, responses_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 6, data, start) from None


def encode_v6(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v6(message))


def encode_pieces_v6(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        if message.session_id != 0:
            raise ValueError("session_id cannot be sent in version 6")
        responses_1 = message.responses
        out.append(_WRITE_ii(message.throttle_time_ms, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 6")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 6")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 6")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 6")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 6, error) from error


def decode_v7(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3, n_5 = _READ_ihii(data, pos)
        pos += 14
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 38:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, n_19 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_18: list[FetchResponseAbortedTransaction] | None = None
                if n_19 >= 0:
                    if n_19 > (end - pos) // 16:
                        raise ValueError
                    items_20: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_19):
                        producer_id_21, first_offset_22 = _READ_qq(data, pos)
                        pos += 16
                        items_20.append(FetchResponseAbortedTransaction(producer_id_21, first_offset_22))
                    aborted_transactions_18 = items_20
                elif n_19 != -1:
                    raise ValueError
                n_24, = _READ_i(data, pos)
                pos += 4
                records_23: bytes | None = None
                if n_24 >= 0:
                    stop_25 = pos + n_24
                    if stop_25 > end:
                        raise ValueError
                    records_23 = data[pos:stop_25]
                    pos = stop_25
                elif n_24 != -1:
                    raise ValueError
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_18, -1, records_23))
            partitions_10 = items_12
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 7, data, start) from None


def encode_v7(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v7(message))


def encode_pieces_v7(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ihii(message.throttle_time_ms, message.error_code, message.session_id, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 7")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 7")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 7")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 7")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 7, error) from error


def decode_v8(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3, n_5 = _READ_ihii(data, pos)
        pos += 14
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 38:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, n_19 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_18: list[FetchResponseAbortedTransaction] | None = None
                if n_19 >= 0:
                    if n_19 > (end - pos) // 16:
                        raise ValueError
                    items_20: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_19):
                        producer_id_21, first_offset_22 = _READ_qq(data, pos)
                        pos += 16
                        items_20.append(FetchResponseAbortedTransaction(producer_id_21, first_offset_22))
                    aborted_transactions_18 = items_20
                elif n_19 != -1:
                    raise ValueError
                n_24, = _READ_i(data, pos)
                pos += 4
                records_23: bytes | None = None
                if n_24 >= 0:
                    stop_25 = pos + n_24
                    if stop_25 > end:
                        raise ValueError
                    records_23 = data[pos:stop_25]
                    pos = stop_25
                elif n_24 != -1:
                    raise ValueError
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_18, -1, records_23))
            partitions_10 = items_12
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 8, data, start) from None


def encode_v8(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v8(message))


def encode_pieces_v8(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ihii(message.throttle_time_ms, message.error_code, message.session_id, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 8")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 8")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 8")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 8")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 8, error) from error


def decode_v9(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3, n_5 = _READ_ihii(data, pos)
        pos += 14
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 38:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, n_19 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_18: list[FetchResponseAbortedTransaction] | None = None
                if n_19 >= 0:
                    if n_19 > (end - pos) // 16:
                        raise ValueError
                    items_20: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_19):
                        producer_id_21, first_offset_22 = _READ_qq(data, pos)
                        pos += 16
                        items_20.append(FetchResponseAbortedTransaction(producer_id_21, first_offset_22))
                    aborted_transactions_18 = items_20
                elif n_19 != -1:
                    raise ValueError
                n_24, = _READ_i(data, pos)
                pos += 4
                records_23: bytes | None = None
                if n_24 >= 0:
                    stop_25 = pos + n_24
                    if stop_25 > end:
                        raise ValueError
                    records_23 = data[pos:stop_25]
                    pos = stop_25
                elif n_24 != -1:
                    raise ValueError
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_18, -1, records_23))
            partitions_10 = items_12
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 9, data, start) from None


def encode_v9(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v9(message))


def encode_pieces_v9(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ihii(message.throttle_time_ms, message.error_code, message.session_id, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 9")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 9")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 9")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 9")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 9, error) from error


def decode_v10(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3, n_5 = _READ_ihii(data, pos)
        pos += 14
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 38:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, n_19 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_18: list[FetchResponseAbortedTransaction] | None = None
                if n_19 >= 0:
                    if n_19 > (end - pos) // 16:
                        raise ValueError
                    items_20: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_19):
                        producer_id_21, first_offset_22 = _READ_qq(data, pos)
                        pos += 16
                        items_20.append(FetchResponseAbortedTransaction(producer_id_21, first_offset_22))
                    aborted_transactions_18 = items_20
                elif n_19 != -1:
                    raise ValueError
                n_24, = _READ_i(data, pos)
                pos += 4
                records_23: bytes | None = None
                if n_24 >= 0:
                    stop_25 = pos + n_24
                    if stop_25 > end:
                        raise ValueError
                    records_23 = data[pos:stop_25]
                    pos = stop_25
                elif n_24 != -1:
                    raise ValueError
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_18, -1, records_23))
            partitions_10 = items_12
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 10, data, start) from None


def encode_v10(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v10(message))


def encode_pieces_v10(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ihii(message.throttle_time_ms, message.error_code, message.session_id, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 10")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 10")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 10")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                if item_5.preferred_read_replica != -1:
                    raise ValueError("preferred_read_replica cannot be sent in version 10")
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_i(-1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 10, error) from error


def decode_v11(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3, n_5 = _READ_ihii(data, pos)
        pos += 14
        if n_5 < 0:
            raise ValueError
        if n_5 > (end - pos) // 6:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8, = _READ_h(data, pos)
            pos += 2
            if n_8 < 0:
                raise ValueError
            stop_9 = pos + n_8
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11, = _READ_i(data, pos)
            pos += 4
            if n_11 < 0:
                raise ValueError
            if n_11 > (end - pos) // 42:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, n_19 = _READ_ihqqqi(data, pos)
                pos += 34
                aborted_transactions_18: list[FetchResponseAbortedTransaction] | None = None
                if n_19 >= 0:
                    if n_19 > (end - pos) // 16:
                        raise ValueError
                    items_20: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_19):
                        producer_id_21, first_offset_22 = _READ_qq(data, pos)
                        pos += 16
                        items_20.append(FetchResponseAbortedTransaction(producer_id_21, first_offset_22))
                    aborted_transactions_18 = items_20
                elif n_19 != -1:
                    raise ValueError
                preferred_read_replica_23, n_25 = _READ_ii(data, pos)
                pos += 8
                records_24: bytes | None = None
                if n_25 >= 0:
                    stop_26 = pos + n_25
                    if stop_26 > end:
                        raise ValueError
                    records_24 = data[pos:stop_26]
                    pos = stop_26
                elif n_25 != -1:
                    raise ValueError
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, FetchResponseEpochEndOffset(), FetchResponseLeaderIdAndEpoch(), FetchResponseSnapshotId(), aborted_transactions_18, preferred_read_replica_23, records_24))
            partitions_10 = items_12
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 11, data, start) from None


def encode_v11(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v11(message))


def encode_pieces_v11(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        out.append(_WRITE_ihii(message.throttle_time_ms, message.error_code, message.session_id, len(responses_1)))
        for item_2 in responses_1:
            topic_3 = item_2.topic.encode()
            partitions_4 = item_2.partitions
            out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partitions_4)))
            for item_5 in partitions_4:
                if item_5.diverging_epoch != FetchResponseEpochEndOffset():
                    raise ValueError("diverging_epoch cannot be sent in version 11")
                if item_5.current_leader != FetchResponseLeaderIdAndEpoch():
                    raise ValueError("current_leader cannot be sent in version 11")
                if item_5.snapshot_id != FetchResponseSnapshotId():
                    raise ValueError("snapshot_id cannot be sent in version 11")
                aborted_transactions_6 = item_5.aborted_transactions
                out.append(_WRITE_ihqqq(item_5.partition_index, item_5.error_code, item_5.high_watermark, item_5.last_stable_offset, item_5.log_start_offset))
                if aborted_transactions_6 is None:
                    out.append(b"\xff\xff\xff\xff")
                else:
                    out.append(_WRITE_i(len(aborted_transactions_6)))
                    for item_7 in aborted_transactions_6:
                        out.append(_WRITE_qq(item_7.producer_id, item_7.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                raw_9 = item_5.records
                records_8 = b"" if raw_9 is None else raw_9
                out += (_WRITE_ii(item_5.preferred_read_replica, -1 if raw_9 is None else len(records_8)), records_8)
                if len(out) > PIECE_ITEMS:
                    yield b"".join(out)
                    out = []
            if len(out) > PIECE_ITEMS:
                yield b"".join(out)
                out = []
        yield b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(FetchResponse, 11, error) from error


def decode_v12(data: bytes, pos: int) -> tuple[FetchResponse, int]:
    start = pos
    try:
        end = len(data)
        throttle_time_ms_1, error_code_2, session_id_3 = _READ_ihi(data, pos)
        pos += 10
        n_5 = data[pos]
        if n_5 > 127:
            n_5, pos = read_uvarint(data, pos)
        else:
            pos += 1
        if n_5 == 0:
            raise ValueError
        n_5 -= 1
        if n_5 > (end - pos) // 3:
            raise ValueError
        items_6: list[FetchResponseFetchableTopicResponse] = []
        for _ in range(n_5):
            n_8 = data[pos]
            if n_8 > 127:
                n_8, pos = read_uvarint(data, pos)
                if n_8 > 32768:
                    raise ValueError
            else:
                pos += 1
            if n_8 == 0:
                raise ValueError
            stop_9 = pos + n_8 - 1
            if stop_9 > end:
                raise ValueError
            topic_7 = str(data[pos:stop_9], "utf-8")
            pos = stop_9
            n_11 = data[pos]
            if n_11 > 127:
                n_11, pos = read_uvarint(data, pos)
            else:
                pos += 1
            if n_11 == 0:
                raise ValueError
            n_11 -= 1
            if n_11 > (end - pos) // 37:
                raise ValueError
            items_12: list[FetchResponsePartitionData] = []
            for _ in range(n_11):
                partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17 = _READ_ihqqq(data, pos)
                pos += 30
                n_22 = data[pos]
                if n_22 > 127:
                    n_22, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                aborted_transactions_21: list[FetchResponseAbortedTransaction] | None = None
                if n_22 > 0:
                    n_22 -= 1
                    if n_22 > (end - pos) // 17:
                        raise ValueError
                    items_23: list[FetchResponseAbortedTransaction] = []
                    for _ in range(n_22):
                        producer_id_24, first_offset_25 = _READ_qq(data, pos)
                        pos += 16
                        if data[pos]:
                            pos = skip_tags(data, pos)
                        else:
                            pos += 1
                        items_23.append(FetchResponseAbortedTransaction(producer_id_24, first_offset_25))
                    aborted_transactions_21 = items_23
                preferred_read_replica_26, = _READ_i(data, pos)
                pos += 4
                n_28 = data[pos]
                if n_28 > 127:
                    n_28, pos = read_uvarint(data, pos)
                else:
                    pos += 1
                records_27: bytes | None = None
                if n_28 > 0:
                    stop_29 = pos + n_28 - 1
                    if stop_29 > end:
                        raise ValueError
                    records_27 = data[pos:stop_29]
                    pos = stop_29
                diverging_epoch_18 = FetchResponseEpochEndOffset()
                current_leader_19 = FetchResponseLeaderIdAndEpoch()
                snapshot_id_20 = FetchResponseSnapshotId()
                count_30, pos = read_uvarint(data, pos)
                if count_30 > (end - pos) // 2:
                    raise ValueError
                for _ in range(count_30):
                    tag_31, pos = read_uvarint(data, pos)
                    stop_32, pos = read_uvarint(data, pos)
                    stop_32 += pos
                    if stop_32 > end:
                        raise ValueError
                    if tag_31 == 0:
                        epoch_33, end_offset_34 = _READ_iq(data, pos)
                        pos += 12
                        if data[pos]:
                            pos = skip_tags(data, pos)
                        else:
                            pos += 1
                        diverging_epoch_35 = FetchResponseEpochEndOffset(epoch_33, end_offset_34)
                        diverging_epoch_18 = diverging_epoch_35
                        if pos != stop_32:
                            raise ValueError
                    elif tag_31 == 1:
                        leader_id_36, leader_epoch_37 = _READ_ii(data, pos)
                        pos += 8
                        if data[pos]:
                            pos = skip_tags(data, pos)
                        else:
                            pos += 1
                        current_leader_38 = FetchResponseLeaderIdAndEpoch(leader_id_36, leader_epoch_37)
                        current_leader_19 = current_leader_38
                        if pos != stop_32:
                            raise ValueError
                    elif tag_31 == 2:
                        end_offset_39, epoch_40 = _READ_qi(data, pos)
                        pos += 12
                        if data[pos]:
                            pos = skip_tags(data, pos)
                        else:
                            pos += 1
                        snapshot_id_41 = FetchResponseSnapshotId(end_offset_39, epoch_40)
                        snapshot_id_20 = snapshot_id_41
                        if pos != stop_32:
                            raise ValueError
                    else:
                        pos = stop_32
                items_12.append(FetchResponsePartitionData(partition_index_13, error_code_14, high_watermark_15, last_stable_offset_16, log_start_offset_17, diverging_epoch_18, current_leader_19, snapshot_id_20, aborted_transactions_21, preferred_read_replica_26, records_27))
            partitions_10 = items_12
            if data[pos]:
                pos = skip_tags(data, pos)
            else:
                pos += 1
            items_6.append(FetchResponseFetchableTopicResponse(topic_7, partitions_10))
        responses_4 = items_6
        if data[pos]:
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return FetchResponse(throttle_time_ms_1, error_code_2, session_id_3, responses_4), pos
    except (IndexError, ValueError, struct_error):
        raise explain(FetchResponse, 12, data, start) from None


def encode_v12(message: FetchResponse) -> bytes:
    return b"".join(encode_pieces_v12(message))


def encode_pieces_v12(message: FetchResponse) -> Iterator[bytes]:
    try:
        out: list[bytes] = []
        responses_1 = message.responses
        n_2 = len(responses_1) + 1
        out += (_WRITE_ihi(message.throttle_time_ms, message.error_code, message.session_id), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2))
        for item_3 in responses_1:
            topic_4 = item_3.topic.encode()
            n_5 = len(topic_4) + 1
            partitions_6 = item_3.partitions
            n_7 = len(partitions_6) + 1
            out += (UVARINT[n_5] if n_5 < 4096 else write_uvarint(n_5), topic_4, UVARINT[n_7] if n_7 < 4096 else write_uvarint(n_7))
            for item_8 in partitions_6:
                aborted_transactions_9 = item_8.aborted_transactions
                out.append(_WRITE_ihqqq(item_8.partition_index, item_8.error_code, item_8.high_watermark, item_8.last_stable_offset, item_8.log_start_offset))
                if aborted_transactions_9 is None:
                    out.append(b"\0")
                else:
                    n_10 = len(aborted_transactions_9) + 1
                    out.append(UVARINT[n_10] if n_10 < 4096 else write_uvarint(n_10))
                    for item_11 in aborted_transactions_9:
                        out.append(_WRITE_qqx(item_11.producer_id, item_11.first_offset))
                        if len(out) > PIECE_ITEMS:
                            yield b"".join(out)
                            out = []
                raw_13 = item_8.records
                if raw_13 is None:
                    records_12 = b""
                    n_14 = 0
                else:
                    records_12 = raw_13
                    n_14 = len(records_12) + 1
                out += (_WRITE_i(item_8.preferred_read_replica), UVARINT[n_14] if n_14 < 4096 else write_uvarint(n_14), records_12)
                tags_15: list[tuple[int, bytes]] = []
                diverging_epoch_16 = item_8.diverging_epoch
                if diverging_epoch_16 != FetchResponseEpochEndOffset():
                    payload_17: list[bytes] = []
                    diverging_epoch_18 = diverging_epoch_16
                    payload_17.append(_WRITE_iqx(diverging_epoch_18.epoch, diverging_epoch_18.end_offset))
                    tags_15.append((0, b"".join(payload_17)))
                current_leader_19 = item_8.current_leader
                if current_leader_19 != FetchResponseLeaderIdAndEpoch():
                    payload_20: list[bytes] = []
                    current_leader_21 = current_leader_19
                    payload_20.append(_WRITE_iix(current_leader_21.leader_id, current_leader_21.leader_epoch))
                    tags_15.append((1, b"".join(payload_20)))
                snapshot_id_22 = item_8.snapshot_id
                if snapshot_id_22 != FetchResponseSnapshotId():
                    payload_23: list[bytes] = []
                    snapshot_id_24 = snapshot_id_22
                    payload_23.append(_WRITE_qix(snapshot_id_24.end_offset, snapshot_id_24.epoch))
                    tags_15.append((2, b"".join(payload_23)))
                out.append(write_tags(tags_15))
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
        raise refused(FetchResponse, 12, error) from error
