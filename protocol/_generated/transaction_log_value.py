"""TransactionLogValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error
from struct import pack
from struct import unpack_from

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    TransactionLogValue,
    TransactionLogValuePartitionsSchema,
)

_READ_h = Struct(">h").unpack_from
_READ_i = Struct(">i").unpack_from
_READ_qhibi = Struct(">qhibi").unpack_from
_READ_qq = Struct(">qq").unpack_from
_WRITE_h = Struct(">h").pack
_WRITE_i = Struct(">i").pack
_WRITE_qhib = Struct(">qhib").pack
_WRITE_qq = Struct(">qq").pack


def decode_v0(data: bytes, pos: int) -> tuple[TransactionLogValue, int]:
    start = pos
    try:
        end = len(data)
        producer_id_1, producer_epoch_2, transaction_timeout_ms_3, transaction_status_4, n_6 = _READ_qhibi(data, pos)
        pos += 19
        transaction_partitions_5: list[TransactionLogValuePartitionsSchema] | None = None
        if n_6 >= 0:
            if n_6 > (end - pos) // 6:
                raise ValueError
            items_7: list[TransactionLogValuePartitionsSchema] = []
            for _ in range(n_6):
                n_9, = _READ_h(data, pos)
                pos += 2
                if n_9 < 0:
                    raise ValueError
                stop_10 = pos + n_9
                if stop_10 > end:
                    raise ValueError
                topic_8 = data[pos:stop_10].decode()
                pos = stop_10
                n_12, = _READ_i(data, pos)
                pos += 4
                if n_12 < 0:
                    raise ValueError
                if n_12 > (end - pos) // 4:
                    raise ValueError
                partition_ids_11 = list(unpack_from(">" + f"{n_12}i", data, pos))
                pos += n_12 * 4
                items_7.append(TransactionLogValuePartitionsSchema(topic_8, partition_ids_11))
            transaction_partitions_5 = items_7
        elif n_6 != -1:
            raise ValueError
        transaction_last_update_timestamp_ms_13, transaction_start_timestamp_ms_14 = _READ_qq(data, pos)
        pos += 16
        return TransactionLogValue(producer_id_1, producer_epoch_2, transaction_timeout_ms_3, transaction_status_4, transaction_partitions_5, transaction_last_update_timestamp_ms_13, transaction_start_timestamp_ms_14), pos
    except (IndexError, ValueError, struct_error):
        raise explain(TransactionLogValue, 0, data, start) from None


def encode_v0(message: TransactionLogValue) -> bytes:
    try:
        out: list[bytes] = []
        transaction_partitions_1 = message.transaction_partitions
        out.append(_WRITE_qhib(message.producer_id, message.producer_epoch, message.transaction_timeout_ms, message.transaction_status))
        if transaction_partitions_1 is None:
            out.append(b"\xff\xff\xff\xff")
        else:
            out.append(_WRITE_i(len(transaction_partitions_1)))
            for item_2 in transaction_partitions_1:
                topic_3 = item_2.topic.encode()
                partition_ids_4 = item_2.partition_ids
                out += (_WRITE_h(len(topic_3)), topic_3, _WRITE_i(len(partition_ids_4)), pack(">" + f"{len(partition_ids_4)}i", *partition_ids_4))
        out.append(_WRITE_qq(message.transaction_last_update_timestamp_ms, message.transaction_start_timestamp_ms))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(TransactionLogValue, 0, error) from error
