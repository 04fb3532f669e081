"""The coordinator's interface to a store: append, replay, and an honest word about durability."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Protocol

Record = tuple[bytes, bytes | None]
"""Key and value; a None value is a tombstone: it removes what the key had."""

Batch = tuple[int, int, Sequence[Record]]
"""Partition, epoch of its owner, records."""

Row = tuple[int, int, bytes, bytes | None]
"""A stored record: position, epoch, key, value."""


class Failure(Enum):
    """The reason for which a store refused. The value is the text that operators read."""

    DISK_FULL = "the disk is full"
    BUSY = "the database is locked by another program"
    FENCED = "the partition has a newer owner"
    TOO_LARGE = "a record is larger than the store can take"
    CLOSED = "the store is closed"
    IO_ERROR = "the disk reported an error"
    CORRUPT = "the database is damaged"
    FORMAT = "the data was written by something else"
    LOCKED = "another ringleader uses this data directory"
    DEAD = "the thread that writes has ended"
    SILENT = "the store does not answer"
    AWAY = "the cluster does not serve the partition"
    UNFIT = "the cluster is not as it has to be"


FATAL = frozenset(
    {Failure.IO_ERROR, Failure.CORRUPT, Failure.FORMAT, Failure.LOCKED, Failure.SILENT, Failure.DEAD}
)
"""After these nobody knows what the disk holds (a failed sync may have dropped written pages, and a later one
would succeed): the store refuses everything until it is started again, in another process."""


class StorageError(Exception):
    """A store could not do what it was asked. Nothing of the request is in the log, unless `fatal`, or, from
    a store whose appends are not `together`, FENCED or AWAY: then nobody knows until the log is replayed by
    its next owner."""

    def __init__(self, failure: Failure, detail: str = "") -> None:
        super().__init__(f"{failure.value}: {detail}" if detail else failure.value)
        self.failure = failure

    @property
    def fatal(self) -> bool:
        """Whether the store must be started again before it can be trusted."""
        return self.failure in FATAL


class Storage(Protocol):
    """A log of 50 (or as configured) partitions that may forget every record but the last one of each key.

    All methods run on one event loop. An outcome that is not known (a connection was lost, say) is the
    store's own business: it finds out, or fails: fatally, or with AWAY for one partition.
    """

    pipeline: int
    """How many calls of `append` may be under way at once: of all partitions if `together`, else of each."""

    together: bool
    """Whether one call of `append` may hold batches of several partitions, which are appended all or none.
    Else a call holds batches of one partition only, and partitions neither wait for each other nor fail with
    each other."""

    confirmed_reads: bool
    """Whether another process may open a partition at any time, unnoticed: what memory says is then true only
    if an append that was called later succeeds."""

    async def start(self) -> None:
        """Take possession. Raises `StorageError`; then nothing was written."""

    async def open(self, partition: int, epoch: int) -> int:
        """Own a partition from here on, and return the epoch that counts: the one given or, where the store
        gives them out itself, a newer one. Appends under an older one are refused. Opening again begins a new
        ownership. Raises `StorageError`; FENCED when the partition has seen a newer epoch."""

    async def release(self, partition: int) -> None:
        """Give up a partition, when nothing of it is under way; no append until it is opened again. Never
        raises."""

    def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """The content of the partition, which is open, in chunks, positions increasing; at least the last
        record of each key that has no tombstone. Nothing of an owner from before a later one's `open` is
        missing, and nothing that such an owner wrote after it is there. Raises `StorageError`."""

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """Append all batches, all or none, and return the log position of each batch's last record. On return
        they are durable: they outlive a crash of the machine. Raises `StorageError`; FENCED when a batch has
        an older epoch than its partition has seen.

        May be called again before it has returned, `pipeline` calls at most; the log has them in the order
        of the calls. After one that fails, those that were called before it returned fail too: no record is
        in the log without those before it.
        """

    async def probe(self) -> None:
        """After DISK_FULL: return if there is room again. Raises `StorageError`."""

    async def close(self) -> None:
        """Give up possession; waits for appends that are on their way. Never raises; may be called twice."""
