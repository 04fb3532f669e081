"""The errors of `GroupConsumer` about a partition, besides those of its membership."""

from __future__ import annotations

from typing import Literal

from ringleader.clients.errors import ClientError, RetriableError
from ringleader.protocol.records import Headers


class PartitionError(ClientError):
    """One partition cannot be read on from `offset`. The others can: ask again to go on with them. It is
    raised again, when it is the partition's turn, until `seek` or the loss of the partition."""

    def __init__(
        self, topic: str, partition: int, offset: int | None, why: str, code: int | None = None
    ) -> None:
        at = "" if offset is None else f" at offset {offset}"
        super().__init__(f"{topic}-{partition}{at}: {why}", code)
        self.topic = topic
        self.partition = partition
        self.offset = offset


class NoOffsetError(PartitionError):
    """The group has no committed offset for the partition, and `auto_offset_reset` is "none"."""


class OffsetGoneError(PartitionError):
    """The position is outside of what the log holds, and `auto_offset_reset` is "none" (Kafka's
    OFFSET_OUT_OF_RANGE). `created_again`: the topic was deleted and created again."""

    def __init__(
        self, topic: str, partition: int, offset: int | None, why: str, *, created_again: bool = False
    ) -> None:
        super().__init__(topic, partition, offset, why)
        self.created_again = created_again


class LogTruncatedError(PartitionError):
    """Records that were read before are not in the log any more: a leader was elected that did not have them
    (KIP-320), and `auto_offset_reset` is "none". `end_offset`: where the two histories part, if known."""

    def __init__(self, topic: str, partition: int, offset: int, end_offset: int | None) -> None:
        where = "" if end_offset is None else f"; the histories part at offset {end_offset}"
        super().__init__(topic, partition, offset, f"records before this position are gone{where}")
        self.end_offset = end_offset


class CorruptRecordError(PartitionError):
    """A batch that cannot be read: wrong checksum, broken compression, impossible lengths.

    `skip` it, or `seek` to `next_offset`, to go on behind it; records of the batch are lost to this consumer
    then.
    """

    def __init__(self, topic: str, partition: int, offset: int, next_offset: int, why: str) -> None:
        super().__init__(topic, partition, offset, f"{why}; seek to {next_offset} to go on behind it")
        self.next_offset = next_offset


class ConsumerClosedError(ClientError):
    """The consumer was not started, or has been closed."""


class NotAssignedError(ClientError):
    """The partition does not belong to this consumer now."""


class UnreadRecordError(PartitionError):
    """A record that a deserializer (`origin`: "key" or "value") did not read; what it raised is the
    `__cause__`. `key` and `value` are the record's bytes; `headers` and `timestamp_ms` (-1: none) as in a
    `Record`.

    Raised by the call that asks for records; those before it were handed out. `skip` it, or `seek` to
    `next_offset`, to go on with the next one; the next call that asks for records asks the deserializer
    again.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        origin: Literal["key", "value"],
        key: bytes | None,
        value: bytes | None,
        why: BaseException,
        headers: Headers = (),
        timestamp_ms: int = -1,
    ) -> None:
        text = f"the {origin} cannot be deserialized{self._hint(why, offset + 1)}"
        super().__init__(topic, partition, offset, text)
        self.next_offset = offset + 1
        self.origin = origin
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_ms = timestamp_ms

    @staticmethod
    def _hint(why: BaseException, next_offset: int) -> str:
        return f": {why!r}; seek to {next_offset} to go on behind it"


class RecordDeserializationError(UnreadRecordError):
    """`key_deserializer` or `value_deserializer` refused the record at `offset`: it raised something else
    than RetriableError."""


class DeserializerUnavailableError(UnreadRecordError, RetriableError):
    """`key_deserializer` or `value_deserializer` raised RetriableError, or took longer than its `timeout_s`:
    nothing is known to be wrong with the record at `offset`. Ask again."""

    @staticmethod
    def _hint(why: BaseException, next_offset: int) -> str:
        return f" now: {why!r}; ask again"
