"""OffsetCommitValue: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.persisted import (
    OffsetCommitValue,
)
from ringleader.protocol.wire import UVARINT, read_uvarint, skip_tags, write_tags, write_uvarint

_READ_U = Struct(">16s").unpack_from
_READ_q = Struct(">q").unpack_from
_READ_qh = Struct(">qh").unpack_from
_READ_qi = Struct(">qi").unpack_from
_READ_qih = Struct(">qih").unpack_from
_READ_qq = Struct(">qq").unpack_from
_WRITE_U = Struct(">16s").pack
_WRITE_q = Struct(">q").pack
_WRITE_qh = Struct(">qh").pack
_WRITE_qi = Struct(">qi").pack
_WRITE_qih = Struct(">qih").pack
_WRITE_qq = Struct(">qq").pack


def decode_v0(data: bytes, pos: int) -> tuple[OffsetCommitValue, int]:
    start = pos
    try:
        end = len(data)
        offset_1, n_3 = _READ_qh(data, pos)
        pos += 10
        if n_3 < 0:
            raise ValueError
        stop_4 = pos + n_3
        if stop_4 > end:
            raise ValueError
        metadata_2 = data[pos:stop_4].decode()
        pos = stop_4
        commit_timestamp_5, = _READ_q(data, pos)
        pos += 8
        return OffsetCommitValue(offset_1, -1, metadata_2, commit_timestamp_5, -1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitValue, 0, data, start) from None


def encode_v0(message: OffsetCommitValue) -> bytes:
    try:
        metadata_1 = message.metadata.encode()
        return b"".join((_WRITE_qh(message.offset, len(metadata_1)), metadata_1, _WRITE_q(message.commit_timestamp)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitValue, 0, error) from error


def decode_v1(data: bytes, pos: int) -> tuple[OffsetCommitValue, int]:
    start = pos
    try:
        end = len(data)
        offset_1, n_3 = _READ_qh(data, pos)
        pos += 10
        if n_3 < 0:
            raise ValueError
        stop_4 = pos + n_3
        if stop_4 > end:
            raise ValueError
        metadata_2 = data[pos:stop_4].decode()
        pos = stop_4
        commit_timestamp_5, expire_timestamp_6 = _READ_qq(data, pos)
        pos += 16
        return OffsetCommitValue(offset_1, -1, metadata_2, commit_timestamp_5, expire_timestamp_6, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitValue, 1, data, start) from None


def encode_v1(message: OffsetCommitValue) -> bytes:
    try:
        metadata_1 = message.metadata.encode()
        return b"".join((_WRITE_qh(message.offset, len(metadata_1)), metadata_1, _WRITE_qq(message.commit_timestamp, message.expire_timestamp)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitValue, 1, error) from error


def decode_v2(data: bytes, pos: int) -> tuple[OffsetCommitValue, int]:
    start = pos
    try:
        end = len(data)
        offset_1, n_3 = _READ_qh(data, pos)
        pos += 10
        if n_3 < 0:
            raise ValueError
        stop_4 = pos + n_3
        if stop_4 > end:
            raise ValueError
        metadata_2 = data[pos:stop_4].decode()
        pos = stop_4
        commit_timestamp_5, = _READ_q(data, pos)
        pos += 8
        return OffsetCommitValue(offset_1, -1, metadata_2, commit_timestamp_5, -1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitValue, 2, data, start) from None


def encode_v2(message: OffsetCommitValue) -> bytes:
    try:
        metadata_1 = message.metadata.encode()
        return b"".join((_WRITE_qh(message.offset, len(metadata_1)), metadata_1, _WRITE_q(message.commit_timestamp)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitValue, 2, error) from error


def decode_v3(data: bytes, pos: int) -> tuple[OffsetCommitValue, int]:
    start = pos
    try:
        end = len(data)
        offset_1, leader_epoch_2, n_4 = _READ_qih(data, pos)
        pos += 14
        if n_4 < 0:
            raise ValueError
        stop_5 = pos + n_4
        if stop_5 > end:
            raise ValueError
        metadata_3 = data[pos:stop_5].decode()
        pos = stop_5
        commit_timestamp_6, = _READ_q(data, pos)
        pos += 8
        return OffsetCommitValue(offset_1, leader_epoch_2, metadata_3, commit_timestamp_6, -1, b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitValue, 3, data, start) from None


def encode_v3(message: OffsetCommitValue) -> bytes:
    try:
        metadata_1 = message.metadata.encode()
        return b"".join((_WRITE_qih(message.offset, message.leader_epoch, len(metadata_1)), metadata_1, _WRITE_q(message.commit_timestamp)))
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitValue, 3, error) from error


def decode_v4(data: bytes, pos: int) -> tuple[OffsetCommitValue, int]:
    start = pos
    try:
        end = len(data)
        offset_1, leader_epoch_2 = _READ_qi(data, pos)
        pos += 12
        n_4 = data[pos]
        if n_4 > 127:
            n_4, pos = read_uvarint(data, pos)
            if n_4 > 32768:
                raise ValueError
        else:
            pos += 1
        if n_4 == 0:
            raise ValueError
        stop_5 = pos + n_4 - 1
        if stop_5 > end:
            raise ValueError
        metadata_3 = data[pos:stop_5].decode()
        pos = stop_5
        commit_timestamp_6, = _READ_q(data, pos)
        pos += 8
        topic_id_7 = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
        count_8, pos = read_uvarint(data, pos)
        if count_8 > (end - pos) // 2:
            raise ValueError
        for _ in range(count_8):
            tag_9, pos = read_uvarint(data, pos)
            stop_10, pos = read_uvarint(data, pos)
            stop_10 += pos
            if stop_10 > end:
                raise ValueError
            if tag_9 == 0:
                topic_id_11, = _READ_U(data, pos)
                pos += 16
                topic_id_7 = topic_id_11
                if pos != stop_10:
                    raise ValueError
            else:
                pos = stop_10
        return OffsetCommitValue(offset_1, leader_epoch_2, metadata_3, commit_timestamp_6, -1, topic_id_7), pos
    except (IndexError, ValueError, struct_error):
        raise explain(OffsetCommitValue, 4, data, start) from None


def encode_v4(message: OffsetCommitValue) -> bytes:
    try:
        out: list[bytes] = []
        metadata_1 = message.metadata.encode()
        n_2 = len(metadata_1) + 1
        out += (_WRITE_qi(message.offset, message.leader_epoch), UVARINT[n_2] if n_2 < 4096 else write_uvarint(n_2), metadata_1, _WRITE_q(message.commit_timestamp))
        tags_3: list[tuple[int, bytes]] = []
        topic_id_4 = message.topic_id
        if topic_id_4 != b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00':
            payload_5: list[bytes] = []
            if len(topic_id_4) != 16:
                raise ValueError("topic_id is not 16 bytes")
            payload_5.append(_WRITE_U(topic_id_4))
            tags_3.append((0, b"".join(payload_5)))
        out.append(write_tags(tags_3))
        return b"".join(out)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(OffsetCommitValue, 4, error) from error
