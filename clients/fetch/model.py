"""Plain values of `GroupConsumer`: its settings, a batch of records, its counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple, cast

from ringleader.clients.checks import MAX_INT64, check_bounds, check_fields, fits
from ringleader.clients.errors import RetriableError
from ringleader.clients.fetch.buffer import Part, apart
from ringleader.clients.fetch.errors import (
    CorruptRecordError,
    DeserializerUnavailableError,
    PartitionError,
    RecordDeserializationError,
    UnreadRecordError,
)
from ringleader.clients.fetch.fetcher import FetchSettings
from ringleader.clients.fetch.partition_state import Handed
from ringleader.clients.metrics import MemberMetrics, ProcessMetrics
from ringleader.clients.model import Deserializer, Isolation, OffsetReset, Offsets, TopicPartition
from ringleader.clients.reset import check_reset
from ringleader.clients.with_context import SerializationContext, WithContext
from ringleader.protocol.columns import Columns
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import NO_TIMESTAMP, BatchHeader, Headers

TimestampType = Literal["create", "log_append"]


class Record(NamedTuple):
    """One record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """Unix time; -1: none."""
    timestamp_type: TimestampType | None
    """The source of a record's time: "create", the producer's (or what it gave), or "log_append", the
    broker's, by the topic's `message.timestamp.type` (CreateTime, LogAppendTime). None when there is no
    time."""
    key: Any
    """Bytes or None; with `key_deserializer` what that made of it."""
    value: Any
    """Bytes or None; with `value_deserializer` what that made of it."""
    headers: Headers
    """Pairs of name and value (bytes or None), in their order; names may be there more than once."""


class Batch:
    """Records of one partition in the order of their offsets, at least one.

    Iterate over it for records, or take whole columns: `values`, `keys`, `offsets`, `timestamps_ms`,
    `headers`. Nothing is decoded before it is looked at, unless the consumer has deserializers: `len` costs
    nothing, `values` alone is the fastest look. The checksums were compared and the data inflated before the
    batch was handed out, so a look can only meet what a producer wrote wrongly. If that is in its first
    records, the look raises CorruptRecordError; else the batch ends before it. Either way it is raised
    again when records are asked for, until `seek`: nothing of it is passed.
    """

    __slots__ = (
        "__weakref__",
        "_columns",
        "_count",
        "_handed",
        "_keys",
        "_parts",
        "_raw_values",
        "_records",
        "_types",
        "_values",
        "high_watermark",
        "lag",
        "next_offset",
        "partition",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        parts: Sequence[Part],
        next_offset: int,
        high_watermark: int,
        lag: int,
        handed: Handed | None = None,
    ) -> None:
        """`handed`: called at each look at it."""
        self.topic = topic
        self.partition = partition
        self.next_offset = next_offset
        """The position to commit when the batch is processed. Not always the last offset plus one: behind the
        batch there may be transaction markers, aborted records, or holes that compaction left."""
        self.high_watermark = high_watermark
        """The end of the log when the records were fetched."""
        self.lag = lag
        """How many offsets were left behind this batch then; for readers of committed records those before
        the first open transaction."""
        self._parts = parts
        self._count = sum(part.length for part in parts)
        self._handed = handed
        self._types: list[TimestampType | None] = []
        self._columns: Columns | None = None
        self._raw_values: list[bytes | None] | None = None
        self._keys: list[Any] | None = None
        self._values: list[Any] | None = None
        self._records: list[Record] | None = None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Batch of {self._count} records of {self.topic}-{self.partition} before {self.next_offset}>"

    def __getstate__(self) -> object:
        self._decoded()  # what is sent to another process is this batch, not all that it came with
        state = super().__getstate__()
        assert isinstance(state, tuple)
        return state[0], state[1] | {"_handed": None}

    def __iter__(self) -> Iterator[Record]:
        parts = self._parts
        one_by_one = self._one_by_one(parts) if self._records is None else None
        return iter(self.records) if one_by_one is None else one_by_one

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def record(self) -> Record:
        """The first record: the only one, if it came from `getone`."""
        return next(iter(self))

    @property
    def records(self) -> list[Record]:
        """All records."""
        parts = self._parts
        if self._records is None:
            one_by_one = self._one_by_one(parts)
            self._records = self._rows() if one_by_one is None else list(one_by_one)
            self._parts = ()
        return self._records

    @property
    def offsets(self) -> list[int]:
        """The offset of each record."""
        parts = self._parts
        if self._columns is not None:
            return self._columns.offsets
        if self._records is not None:
            return [record.offset for record in self._records]
        return [offset for part in parts for offset in part.rows.offsets(part.first, part.length)]

    @property
    def timestamps_ms(self) -> list[int]:
        """The time of each record: Unix time; -1: none."""
        return self._decoded().timestamps_ms

    @property
    def headers(self) -> list[Headers]:
        """The headers of each record."""
        return self._decoded().headers

    @property
    def keys(self) -> list[Any]:
        """The key of each record, deserialized if the consumer has a `key_deserializer`."""
        return self._decoded().keys if self._keys is None else self._keys

    @property
    def values(self) -> list[Any]:
        """The value of each record, deserialized if the consumer has a `value_deserializer`."""
        return self._bytes() if self._values is None else self._values

    @property
    def raw(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Key and value of each record as they came, before any deserializer."""
        columns = self._decoded()
        return zip(columns.keys, columns.values, strict=True)

    def deserialize(self, key: Deserializer | None, value: Deserializer | None) -> PartitionError | None:
        """Make keys and values of their bytes, before the batch is handed out. A record that a deserializer
        refuses, or that cannot be decoded, is returned, and the batch ends before it: perhaps it is empty
        then. Other exceptions than `Exception` come through. Those that wait: see `deserialized`."""
        try:
            columns = self._decoded()
        except CorruptRecordError as error:
            self._end_at(0, error)
            return error
        keys, refused = self._made("key", key, columns.keys)
        values, refused_too = self._made("value", value, columns.values[: len(keys)])
        refused = refused_too or refused
        if refused is not None:
            self._end_at(len(values), refused)
        self._keys = None if key is None else keys[: len(values)]
        self._values = None if value is None else values
        return refused or (None if self._handed is None else self._handed.error)

    def end_before(self, row: int) -> None:
        """Only this number of its records are handed out; there are more."""
        columns = self._decoded()
        self._count, self.next_offset = row, columns.offsets[row]
        columns.cut(0, row)
        self._types = self._types[:row]
        self._raw_values = None if self._raw_values is None else self._raw_values[:row]
        self._keys = None if self._keys is None else self._keys[:row]
        self._values = None if self._values is None else self._values[:row]
        self._records = None if self._records is None else self._records[:row]

    @property
    def stands(self) -> bool:
        """Whether its partition has only gone on since it was handed out."""
        return self._handed is None or self._handed.stands

    def let_go(self) -> None:
        """The application has gone on, and keeps this batch: hold no more than is in it."""
        if self._parts:
            self._parts = apart(self._parts)

    # ---- decoding: more than one thread may look, each then does the same ----

    def _decoded(self) -> Columns:
        parts = self._parts
        if self._columns is not None:
            return self._columns
        columns, types = Columns(), []
        if self._records is not None:
            for record in self._records:
                columns.keys.append(record.key)
                columns.values.append(record.value)
                columns.offsets.append(record.offset)
                columns.timestamps_ms.append(record.timestamp_ms)
                columns.headers.append(record.headers)
                columns.append_time.append(record.timestamp_type == "log_append")
                types.append(record.timestamp_type)
            self._types, self._columns = types, columns
            return columns
        for number, part in enumerate(parts):
            try:
                part.rows.read(part.first, part.length, columns)
            except MalformedError as error:
                self._unreadable(number, error)
                break
            types += [_timestamp_type(part.rows.header)] * part.length
        self._types, self._columns, self._parts = types, columns, ()
        self._looked()
        return columns

    def _bytes(self) -> list[bytes | None]:
        parts = self._parts
        if self._columns is not None:
            return self._columns.values
        if self._raw_values is None and self._records is not None:
            self._raw_values = [record.value for record in self._records]
        if self._raw_values is None:
            values: list[bytes | None] = []
            for number, part in enumerate(parts):
                try:
                    values += part.rows.values(part.first, part.length)
                except MalformedError as error:
                    self._unreadable(number, error)
                    break
            self._raw_values = values
            self._looked()
        return self._raw_values

    def _one_by_one(self, parts: Sequence[Part]) -> Iterator[Record] | None:
        """All records without columns in between, each made when its turn comes, where that can be."""
        if self._columns is not None:
            return None
        made: list[Iterator[Record]] = []
        for part in parts:
            kind = _timestamp_type(part.rows.header)
            found = part.rows.tuples(part.first, part.length, Record, self.topic, self.partition, kind)
            if found is None:
                return None
            made.append(found)
        self._looked()
        return chain.from_iterable(made)

    def _looked(self) -> None:
        if self._handed is not None:
            self._handed.looked = True

    def _unreadable(self, number: int, why: MalformedError) -> None:
        """The part of that number cannot be decoded. Raises CorruptRecordError if it is the first one; else
        the batch ends before it."""
        part = self._parts[number]
        offset, after = part.rows.offset_of(part.first), part.rows.header.next_offset
        error = CorruptRecordError(*self.topic_partition, offset, after, why.reason)
        handed = self._handed
        if handed is not None:
            handed.error = error
        if number == 0:
            raise error
        before = self._parts[:number]
        self._parts = before
        self._end_at(sum(part.length for part in before), error)
        if handed is not None:
            handed.unreadable_at = offset

    def _end_at(self, count: int, error: PartitionError) -> None:
        """Only this number of its records are handed out: the one behind them has that error."""
        assert error.offset is not None
        self._count, self.next_offset = count, error.offset
        if self._columns is not None:
            self._columns.cut(0, count)
            self._types = self._types[:count]
        if self._raw_values is not None:
            self._raw_values = self._raw_values[:count]

    def _rows(self) -> list[Record]:
        columns = self._decoded()
        rows = zip(
            repeat(self.topic),
            repeat(self.partition),
            columns.offsets,
            columns.timestamps_ms,
            self._types,
            columns.keys if self._keys is None else self._keys,
            columns.values if self._values is None else self._values,
            columns.headers,
            strict=False,
        )
        # As Record._make does it, without a call of Python's for each.
        return list(map(tuple.__new__, repeat(Record), rows))

    def _made(
        self, origin: Literal["key", "value"], deserializer: Deserializer | None, column: list[bytes | None]
    ) -> tuple[list[Any], UnreadRecordError | None]:
        """A column after the deserializer, up to the first value that it refuses."""
        if deserializer is None:
            return column, None
        made: list[Any] = []
        try:
            if isinstance(deserializer, WithContext):
                for data, headers in zip(column, self._decoded().headers, strict=False):
                    context = SerializationContext(self.topic, origin, list(headers))
                    made.append(None if data is None else deserializer.call(data, context))
            else:
                for data in column:
                    made.append(None if data is None else deserializer(data))  # noqa: PERF401 - how far it came
        except Exception as error:
            columns, row = self._decoded(), len(made)
            if row == len(column):
                raise  # of a signal handler, behind the last record
            offset, key, value = columns.offsets[row], columns.keys[row], columns.values[row]
            retriable = isinstance(error, RetriableError)
            kind = DeserializerUnavailableError if retriable else RecordDeserializationError
            refused = kind(
                *self.topic_partition,
                offset,
                origin,
                key,
                value,
                error,
                columns.headers[row],
                columns.timestamps_ms[row],
            )
            refused.__cause__ = error
            return made, refused
        return made, None


Processed = Offsets | Batch | Sequence[Batch]
"""The argument of a consumer's `commit`."""


def next_offsets(processed: Processed) -> Offsets:
    """The offsets to commit when these batches are processed; offsets as they are."""
    given = [processed] if isinstance(processed, Batch) else processed
    if isinstance(given, Mapping) or not fits(given, Sequence[Batch]):
        return cast("Offsets", given)
    return {batch.topic_partition: batch.next_offset for batch in given}


def _timestamp_type(header: BatchHeader) -> TimestampType | None:
    if header.is_log_append_time:
        return "log_append"
    return None if header.max_timestamp == NO_TIMESTAMP else "create"


@dataclass(frozen=True, slots=True)
class FetchMetrics:
    """Counters since the start. The Java consumer's name, if there is one, in brackets."""

    client_id: str
    records: int
    """Handed out [records-consumed-total]."""
    batches: int
    """Handed out."""
    fetches: int
    """Fetch requests [fetch-total]."""
    failed_fetches: int
    """Fetch requests, and partitions in their answers, that failed and are tried again."""
    fetched_bytes: int
    """Bytes of records, as compressed as they came [bytes-consumed-total]."""
    buffered_bytes: int
    """The bytes of all that was fetched ahead and has not been handed out."""
    lags: Mapping[TopicPartition, int]
    """Offsets between position and end, as of each partition's last answer [records-lag]."""


@dataclass(frozen=True, slots=True)
class ConsumerMetrics(FetchMetrics):
    """The same of a consumer in a group."""

    member: MemberMetrics
    """Those of the membership."""
    processing: ProcessMetrics | None = None
    """Those of `process`; None if it was never called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How a consumer behaves, under the Java consumer's names. Raises ValueError for what cannot work."""

    auto_offset_reset: OffsetReset = "latest"
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    isolation_level: Isolation = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    max_partition_fetch_bytes: int = 1024 * 1024
    buffer_max_bytes: int = 64 * 1024 * 1024
    """The records that are fetched ahead, of all partitions together, and inflated, in memory; soft, for a
    batch that is larger still comes whole."""
    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    """Called with each record's key before it is handed out, where records are asked for."""
    value_deserializer: Deserializer | None = None
    """Called with each record's value before it is handed out, where records are asked for."""
    client_rack: str | None = None
    metadata_max_age_ms: int = 30_000
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        check_fields(self)
        check_reset(self.auto_offset_reset)
        check_bounds(self, "auto_commit_interval_ms", "max_poll_records", "max_poll_interval_ms", least=1)
        check_bounds(self, "fetch_max_bytes", "max_partition_fetch_bytes", "request_timeout_ms", least=1)
        check_bounds(self, "buffer_max_bytes", "metadata_max_age_ms", least=1, most=MAX_INT64)
        check_bounds(self, "fetch_min_bytes", "fetch_max_wait_ms")

    @property
    def awaits(self) -> bool:
        """Whether a deserializer may wait."""
        both = self.key_deserializer, self.value_deserializer
        return any(isinstance(one, WithContext) and one.awaits for one in both)

    @property
    def committed_only(self) -> bool:
        """Whether aborted transactions are left out."""
        return self.isolation_level == "read_committed"

    def fetching(self) -> FetchSettings:
        """The fetcher's part."""
        return FetchSettings(
            min_bytes=self.fetch_min_bytes,
            max_wait_ms=self.fetch_max_wait_ms,
            max_bytes=self.fetch_max_bytes,
            max_partition_bytes=self.max_partition_fetch_bytes,
            buffer_max_bytes=self.buffer_max_bytes,
            committed_only=self.committed_only,
            client_rack=self.client_rack or "",
            request_timeout_ms=self.request_timeout_ms,
        )
