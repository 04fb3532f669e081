"""The work of ``ringleader produce``: it writes the records of its input, shows its progress, and prints a
sum."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ringleader.cli.common import WRONG_INPUT, complain, fail
from ringleader.cli.records_in import Reader, lines
from ringleader.clients.errors import ClientError
from ringleader.clients.produce.producer import Producer
from ringleader.clients.produce.rows import Row, RowList

LINGER_S = 0.1
"""Rows are written when no more have come for this time."""
PROGRESS_S = 0.2
SHOWN_PARTITIONS = 6
INTERRUPTED = "ringleader: It ends when what is on its way has been written; Ctrl-C again ends it at once.\n"


def typed() -> bool:
    """Whether a person types at a terminal. A shell may have closed standard input (``<&-``)."""
    return sys.stdin is not None and sys.stdin.isatty()


class WrongLineError(Exception):
    """A line that is no record."""


class _Interrupts:
    """Ctrl-C ends the reading at once, but not the writing in its middle: what was written would be unknown.
    A second one does."""

    def __init__(self) -> None:
        self._allowed = self._interrupted = False
        self._before: Any = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._received)

    def __exit__(self, *_error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _received(self, _number: int, _frame: FrameType | None) -> None:
        if self._allowed or self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        # Not by print: it may be what was interrupted.
        os.write(sys.stderr.fileno(), INTERRUPTED.encode())

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Ctrl-C counts in here, and one from before."""
        self._allowed = True
        try:
            if self._interrupted:
                raise KeyboardInterrupt
            yield
        finally:
            self._allowed = False


class Writing:
    """Writes, shows how far it is, and says at the end what was written."""

    def __init__(self, topic: str, producer: Producer) -> None:
        self._topic = topic
        self._producer = producer
        self._began_s = self._shown_s = time.monotonic()
        self._interrupts = _Interrupts()
        # Beside what a person types a moving line would only disturb.
        self._shows = sys.stderr.isatty() and not typed()

    def rows(self, descriptor: int, reader: Reader, limit_bytes: int) -> Iterator[list[Row]]:
        """Records of lines; [] when what was read may be written now. Raises WrongLineError."""
        number = 0
        try:
            for some in lines(descriptor, LINGER_S, limit_bytes):
                found: list[Row] = []
                for line in some:
                    number += 1
                    try:
                        row = reader(line)
                    except ValueError as error:
                        yield found
                        raise WrongLineError(f"line {number}: {error}") from None
                    if row is not None:
                        found.append(row)
                yield found
        except OSError as error:
            raise WrongLineError(f"the input cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise WrongLineError(f"line {number + 1}: {error}") from None

    def written_to_the_end(self, parts: Iterator[list[Row]]) -> None:
        """Write all, wait for the answers, and say so. Ends the command when that does not work."""
        try:
            with self._interrupts:
                stopped = self._write(parts)
                self._producer.flush()
            if stopped is not None:
                raise stopped
        except WrongLineError as error:
            self._end_progress()
            fail(f"{error}. {self._sentence()}", WRONG_INPUT)
        except KeyboardInterrupt:
            self._end_progress()
            complain(self._sentence())
            raise
        except ClientError as error:
            self._end_progress()
            fail(f"{str(error).rstrip('.')}. {self._sentence() if self._producer.rows else ''}".rstrip())
        self._end_progress()
        print(self._sentence())

    def _write(self, parts: Iterator[list[Row]]) -> WrongLineError | KeyboardInterrupt | None:
        """The error that ended the reading early, if any: rows that were read before are written all the
        same."""
        while True:
            try:
                with self._interrupts.allowed():
                    rows = next(parts, None)
            except (WrongLineError, KeyboardInterrupt) as stopped:
                return stopped
            if rows is None:
                return None
            if rows:
                self._producer.write(self._topic, RowList(rows))
                self._show_progress()
            else:
                self._producer.flush()

    def _sentence(self) -> str:
        """``Wrote 3 records to orders: partition 0 offsets 4 to 6.``"""
        written = sorted(self._producer.written().items())
        count = sum(found.records for _, found in written)
        lost = self._producer.rows - count
        text = f"Wrote {count:,} record{'' if count == 1 else 's'} to {self._topic}"
        if lost:
            text = f"Wrote {count:,} of {self._producer.rows:,} records to {self._topic}"
        if len(written) > SHOWN_PARTITIONS:
            return f"{text}, in {len(written)} partitions."
        places = []
        for (_, partition), found in written:
            first, last = found.first_offset, found.last_offset
            offsets = (
                "" if first < 0 else f" offset {first}" if first == last else f" offsets {first} to {last}"
            )
            places.append(f"partition {partition}{offsets}")
        return f"{text}: {', '.join(places)}." if places else f"{text}."

    def _show_progress(self) -> None:
        now_s = time.monotonic()
        if self._shows and now_s - self._shown_s >= PROGRESS_S:
            self._shown_s = now_s
            rate = self._producer.rows / (now_s - self._began_s)
            print(f"\r{self._producer.rows:,} records, {rate:,.0f} a second \033[K", end="", file=sys.stderr)

    def _end_progress(self) -> None:
        if self._shown_s > self._began_s:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
