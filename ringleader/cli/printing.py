"""The work of ``ringleader consume``: it reads and prints records, and ends when its options say so."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
import time
from dataclasses import dataclass
from typing import NamedTuple

from ringleader.cli.asking import TIMEOUT_MS
from ringleader.cli.common import complain
from ringleader.cli.records_out import Writer
from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.consumer import GroupConsumer, PartitionConsumer
from ringleader.clients.fetch.errors import NotAssignedError
from ringleader.clients.fetch.model import Batch
from ringleader.clients.group.settings import GroupProtocol
from ringleader.clients.model import Isolation, TopicPartition
from ringleader.clients.options import CoordinatorOptions, PartitionConsumerOptions

STEP_S = 0.2
"""How often it is looked whether there is nothing more to wait for."""
MAX_POLL_RECORDS = 2_000


class Place(NamedTuple):
    """Where to begin or end: ``earliest``, ``latest``, ``offset``, ``last`` (their number), ``time`` (Unix
    ms)."""

    kind: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class ConsumeOptions:
    """The options of the command."""

    topics: list[str]
    group: str | None
    group_protocol: GroupProtocol
    begin: Place
    until: Place | None
    partitions: list[int]
    max_records: int | None
    timeout_s: float | None
    writer: Writer
    isolation_level: Isolation
    bootstrap: str
    coordinators: str | None
    security: ClientSecurity
    coordinator_security: ClientSecurity


class Printer:
    """Reads, prints, and knows when it is over."""

    def __init__(self, options: ConsumeOptions) -> None:
        self._options = options
        self._ends: dict[TopicPartition, int] = {}
        """Where to end, of the partitions for which it is known."""
        self._left = options.max_records

    async def run(self) -> None:
        """Print until it is over, or until SIGTERM. Raises ClientError; BrokenPipeError when the reader
        of standard output has gone."""
        printing = asyncio.create_task(self._run())
        reader_left = _reader_left()
        # A member leaves its group, as on Ctrl-C: the others need not wait for its session to end.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, printing.cancel)
        try:
            await asyncio.wait([printing, reader_left], return_when=asyncio.FIRST_COMPLETED)
        finally:
            printing.cancel()
            await asyncio.wait([printing])
        if not printing.cancelled():
            printing.result()
        elif reader_left.done():
            raise BrokenPipeError

    async def _run(self) -> None:
        consumer = await self._consumer()
        try:
            await consumer.start(timeout_s=TIMEOUT_MS / 1000)
            if not isinstance(consumer, GroupConsumer):
                await self._begin(consumer)
            elif self._options.until is not None:
                await consumer.wait_assigned()
            await self._print_all(consumer)
            if isinstance(consumer, GroupConsumer):
                # The last batch has been printed, and no other one is wanted.
                await consumer.commit(timeout_s=TIMEOUT_MS / 1000)
        finally:
            await consumer.stop(timeout_s=TIMEOUT_MS / 1000)

    async def _consumer(self) -> GroupConsumer | PartitionConsumer:
        settings = self._options
        options: PartitionConsumerOptions = {
            "client_id": "ringleader-consume",
            "tls": settings.security.tls,
            "sasl": settings.security.sasl,
            "max_poll_records": MAX_POLL_RECORDS,
            "isolation_level": settings.isolation_level,
            "auto_offset_reset": "latest" if settings.begin.kind == "latest" else "earliest",
        }
        if settings.group is None:
            wanted = [(topic, number) for topic in settings.topics for number in settings.partitions]
            return PartitionConsumer(settings.bootstrap, wanted or settings.topics, **options)
        # A group waits for a topic that is to come. A caller that gives a name wants to see its records.
        async with Admin(
            settings.bootstrap, timeout_ms=TIMEOUT_MS, tls=settings.security.tls, sasl=settings.security.sasl
        ) as admin:
            await admin.describe_topics(settings.topics)
        coordinators: CoordinatorOptions = {}
        if settings.coordinators is not None:
            coordinators = {
                "coordinator_bootstrap": settings.coordinators,
                "coordinator_tls": settings.coordinator_security.tls,
                "coordinator_sasl": settings.coordinator_security.sasl,
            }
        return GroupConsumer(
            settings.bootstrap,
            settings.group,
            settings.topics,
            group_protocol=settings.group_protocol,
            **options,
            **coordinators,
        )

    # ---- where to begin and to end ----

    async def _begin(self, consumer: PartitionConsumer) -> None:
        partitions = consumer.assignment()
        starts, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        begins = await self._offsets(consumer, self._options.begin, starts, ends)
        for partition, offset in begins.items():
            consumer.seek(partition, offset)
        if self._options.until is not None:
            self._ends = await self._offsets(consumer, self._options.until, starts, ends)

    async def _offsets(
        self,
        consumer: PartitionConsumer,
        place: Place,
        starts: dict[TopicPartition, int],
        ends: dict[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """The current offset of the place in each partition."""
        if place.kind == "earliest":
            return starts
        if place.kind == "latest":
            return ends
        if place.kind == "last":
            return {one: max(starts[one], end - place.number) for one, end in ends.items()}
        if place.kind == "time":
            found = await consumer.offsets_for_times(dict.fromkeys(ends, place.number))
            return {one: end if (at := found[one]) is None else at[0] for one, end in ends.items()}
        offsets = {one: min(max(starts[one], place.number), end) for one, end in ends.items()}
        for (topic, number), offset in offsets.items():
            if offset != place.number:
                start, end = starts[topic, number], ends[topic, number]
                complain(
                    f"{topic}-{number} has offsets {start} to {end}: {offset} is taken for {place.number}."
                )
        return offsets

    async def _over(self, consumer: GroupConsumer | PartitionConsumer) -> bool:
        """Whether all has been printed that was asked for."""
        if self._left == 0:
            return True
        if self._options.until is None:
            return False
        partitions = consumer.assignment()
        if new := [one for one in partitions if one not in self._ends]:
            self._ends |= await consumer.end_offsets(new)
        over = True
        for partition in partitions:
            try:
                reached = await consumer.position(partition) >= self._ends[partition]
            except NotAssignedError:
                return False
            if reached:
                consumer.pause(partition)
            over = over and reached
        return over

    # ---- printing ----

    async def _print_all(self, consumer: GroupConsumer | PartitionConsumer) -> None:
        settings = self._options
        last_s = time.monotonic()
        while not await self._over(consumer):
            wait_s = None if settings.timeout_s is None else last_s + settings.timeout_s - time.monotonic()
            if wait_s is not None and wait_s <= 0:
                return
            if settings.until is not None:
                wait_s = STEP_S if wait_s is None else min(wait_s, STEP_S)
            limit = MAX_POLL_RECORDS if self._left is None else min(self._left, MAX_POLL_RECORDS)
            batches = await consumer.getmany(limit, wait_s)
            if batches:
                last_s = time.monotonic()
                self._print(batches)

    def _print(self, batches: list[Batch]) -> None:
        write, out = self._options.writer, []
        for batch in batches:
            end = self._ends.get((batch.topic, batch.partition))
            out += [
                write(record)
                for record in batch
                if self._options.group is not None or end is None or record.offset < end
            ]
        if self._left is not None:
            self._left -= len(out)
        sys.stdout.buffer.write(b"".join(out))
        sys.stdout.buffer.flush()


def _reader_left() -> asyncio.Future[None]:
    """Done when standard output is a pipe whose reader has gone, which else the next write would show."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    output = sys.stdout.fileno()

    def on_hang_up() -> None:
        loop.remove_reader(output)
        if not found.done():
            found.set_result(None)

    if stat.S_ISFIFO(os.fstat(output).st_mode):
        loop.add_reader(output, on_hang_up)
    return found
