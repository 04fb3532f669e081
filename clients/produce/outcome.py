"""The outcomes of the records of a batch: futures that share what became of the batch.

A record costs one small object, which knows its batch and its place in it; a confirmed batch costs one entry
for all of its records. Only an outcome that somebody waits for gets an `asyncio.Future` of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleader.clients.errors import ClientError
from ringleader.clients.produce.model import RecordMetadata
from ringleader.protocol import native

_new: Any = tuple.__new__
"""As `RecordMetadata._make`, in half the time."""


class Written(NamedTuple):
    """Where a confirmed batch was written. `Place` finds the record's part of it."""

    kind: type[RecordMetadata]
    topic: str
    partition: int
    base_offset: int
    """-1: not known."""
    times_ms: list[int] | int
    """Unix time of each record, or what the broker gave to all."""


def record_metadata(written: Written, index: int) -> RecordMetadata:
    """Of one of the batch's records."""
    kind, topic, partition, base, times_ms = written
    time_ms = times_ms if isinstance(times_ms, int) else times_ms[index]
    found: RecordMetadata = _new(kind, (topic, partition, base if base < 0 else base + index, time_ms))
    return found


class Fate:
    """The end of a batch: written, or failed. Belongs to one event loop."""

    __slots__ = ("_error", "_futures", "_partition", "_topic", "_written", "batch", "loop", "times_ms")

    def __init__(self, loop: asyncio.AbstractEventLoop, topic: str, partition: int) -> None:
        self.loop = loop
        self.times_ms: list[int] = []
        """Of its records."""
        self._topic, self._partition = topic, partition
        self._written: Written | None = None
        self.batch: list[Any] = [None, self]
        """Outcomes are made of it: first what was `Written`, when every record of it was and no outcome has
        another end."""
        self._error: ClientError | None = None
        self._futures: dict[int, asyncio.Future[RecordMetadata]] = {}
        """By index: of outcomes that are waited for, were cancelled, or are not all outcomes of one batch."""

    def end(
        self, first: int, count: int, base_offset: int, append_ms: int, error: ClientError | None
    ) -> None:
        """`count` records from that index on were written, or have failed. `append_ms`: the broker's time
        for them; negative: they have their own."""
        whole = count == len(self.times_ms)
        own_ms = self.times_ms if whole else self.times_ms[first:]
        place = self._topic, self._partition, base_offset
        written = Written(RecordMetadata, *place, own_ms if append_ms < 0 else append_ms)
        if not whole:
            for index in range(first, first + count):
                self._tell(self.future(index), written, index - first, error)
            return
        self._written, self._error = written, error
        futures = self._futures
        self._futures = {index: found for index, found in futures.items() if found.cancelled()}
        if error is None and not self._futures:
            self.batch[0] = written
        for index, found in futures.items():
            self._tell(found, written, index, error)

    @staticmethod
    def _tell(
        future: asyncio.Future[RecordMetadata], written: Written, index: int, error: ClientError | None
    ) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(record_metadata(written, index))
        else:
            future.set_exception(error)
            future.exception()  # it is in the log, if the application does not ask for it

    def known(self, index: int) -> asyncio.Future[RecordMetadata] | None:
        """The outcome of a record if it has one of its own."""
        return self._futures.get(index)

    def ended(self) -> bool:
        """Whether it is known of all records."""
        return self._written is not None

    def result(self, index: int) -> RecordMetadata:
        """Of a record, when all are known. Raises its error, or InvalidStateError."""
        if self._error is not None:
            raise self._error.with_traceback(None)  # else it would grow with each record of the batch
        if self._written is None:
            raise asyncio.InvalidStateError("Result is not ready.")
        return record_metadata(self._written, index)

    def exception(self) -> ClientError | None:
        """Of all records, when they are known. Raises InvalidStateError."""
        if not self.ended():
            raise asyncio.InvalidStateError("Exception is not set.")
        return self._error

    def future(self, index: int) -> asyncio.Future[RecordMetadata]:
        """The outcome of a record, as one that can be waited for."""
        future = self._futures.get(index)
        if future is None:
            future = self.loop.create_future()
            if self._written is not None:
                self._tell(future, self._written, index, self._error)
            else:
                self._futures[index] = future
        return future


class Place:
    """A record's place in its batch: what `_native.c` has under the same name."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: list[Any], index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def _fate(self) -> Fate:
        found: Fate = self._batch[1]
        return found

    def done(self) -> bool:
        return self._batch[0] is not None or self._done()

    def result(self) -> RecordMetadata:
        written = self._batch[0]
        return self._result() if written is None else record_metadata(written, self._index)

    def _done(self) -> bool:
        raise NotImplementedError

    def _result(self) -> RecordMetadata:
        raise NotImplementedError


def _of_future(name: str) -> Any:
    """An attribute that asyncio asks a future for, under a name of its own. One by one: with a `__getattr__`
    all that is asked of an outcome would take twice as long."""
    return property(lambda self: getattr(self._fate.future(self._index), name))


class Outcome(Place):
    """The outcome of one record, with what an `asyncio.Future` can be asked: `await` it, `done`, `result`,
    `exception`, `add_done_callback`, `cancel`. One that is cancelled leaves the record on its way."""

    __slots__ = ()
    _asyncio_future_blocking = False
    """By this asyncio knows a future."""

    def _done(self) -> bool:
        future = self._fate.known(self._index)
        return self._fate.ended() if future is None else future.done()

    def _result(self) -> RecordMetadata:
        future = self._fate.known(self._index)
        return self._fate.result(self._index) if future is None else future.result()

    def exception(self) -> BaseException | None:
        """The error; None for a record that was written. Raises InvalidStateError before it is known, and
        CancelledError."""
        future = self._fate.known(self._index)
        return self._fate.exception() if future is None else future.exception()

    def cancelled(self) -> bool:
        """Whether `cancel` came first."""
        future = self._fate.known(self._index)
        return future is not None and future.cancelled()

    def cancel(self, msg: Any = None) -> bool:
        """Nobody wants to know it any more; false if it is known."""
        return not self.done() and self._fate.future(self._index).cancel(msg)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The producer's."""
        return self._fate.loop

    def add_done_callback(self, fn: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Call it in the producer's loop, with this outcome, when it is known."""
        self._fate.future(self._index).add_done_callback(_OutcomeCallback(fn, self), context=context)

    def remove_done_callback(self, fn: Callable[[Any], object]) -> int:
        """Do not call it; how many times it would have been."""
        future = self._fate.known(self._index)
        return 0 if future is None else future.remove_done_callback(_OutcomeCallback(fn, self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            yield from self._fate.future(self._index)
        return self.result()

    __iter__ = __await__

    _make_cancelled_error = _of_future("_make_cancelled_error")
    _cancel_message = _of_future("_cancel_message")
    _source_traceback = _of_future("_source_traceback")

    def __repr__(self) -> str:
        return f"<Outcome {'known' if self.done() else 'pending'}>"


if not TYPE_CHECKING and native.compiled is not None:
    # Into the compiled class: the garbage collector counts the objects of any class written in Python.
    for _name, _what in vars(Outcome).items():
        if _name not in ("__module__", "__slots__"):
            setattr(native.compiled.Place, _name, _what)
    Outcome = native.compiled.Place


@dataclass(frozen=True, slots=True)
class _OutcomeCallback:
    """Calls `callback` with the outcome, not with the future beneath it. Equal to another of the same
    callback and outcome, so that it can be removed."""

    callback: Callable[[Any], object]
    outcome: Outcome

    def __call__(self, _future: object) -> None:
        self.callback(self.outcome)
