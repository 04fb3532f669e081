"""Fetch (1) v4-12: v5 log start offset, v7 sessions, v9 leader epoch, v11 rack, v12 flexible.

There are no sessions: the answer's session id is 0, which is legal, and clients then send full requests.
Readers of committed records get what is before the last stable offset, and which transactions in it were
aborted: they skip the records of those, and markers, themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ringleader.coordinator.server.handlers import Call, LocalServices, Slices, checks
from ringleader.coordinator.server.run_queue import SLICE_ELEMENTS, whole
from ringleader.coordinator.topics.partition import LEADER_EPOCH, Readable, Waiter
from ringleader.coordinator.topics.transactional import before, next_offset
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError

ANSWER_MAX_BYTES = 8 * 1024 * 1024
"""Most bytes of records in one answer, whatever the client and `fetch.max.bytes` allow: an answer is put
together in one turn of the loop. One batch larger than that still comes whole."""
READ_COMMITTED = 1

WITHOUT_A_LOG = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""With these Kafka has not looked, and says that there are no aborted transactions, not that none were asked
for."""


def fetch(services: LocalServices, call: Call, request: kafka.FetchRequest) -> kafka.FetchResponse | None:
    """Answered when there is enough, when an error must be told, or when the wait is over."""
    if request.session_epoch > 0:
        return kafka.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    _Fetch(services, call, request).begin()
    return None


@dataclass(slots=True)
class _FromFile:
    """A part of the answer that must be read from a file."""

    partition: Readable
    offset: int
    max_bytes: int
    end_offset: int | None
    """Where an open transaction begins, for readers of committed records."""
    data: kafka.FetchResponsePartitionData


class _Fetch:
    """One Fetch request in progress."""

    __slots__ = (
        "_call",
        "_files",
        "_found_bytes",
        "_is_long",
        "_partitions",
        "_request",
        "_services",
        "_timer",
        "_topics",
        "_urgent",
        "_waiter",
    )

    def __init__(self, services: LocalServices, call: Call, request: kafka.FetchRequest) -> None:
        self._services = services
        self._topics = services.topics
        self._call = call
        self._request = request
        self._waiter: Waiter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_long = sum(1 + len(topic.partitions) for topic in request.topics) > SLICE_ELEMENTS
        self._start_over()

    def _start_over(self) -> None:
        self._found_bytes = 0
        self._urgent = False
        self._files: list[_FromFile] = []
        self._partitions: list[Readable] = []

    def begin(self) -> None:
        """Look; answer, or wait for more."""
        if self._is_long:
            self._services.run_queue.add(self._look_in_slices(self._first_look))
        else:
            self._topics.budget.run(lambda: self._first_look(whole(self._look())))

    def _look_in_slices(self, then: Callable[[kafka.FetchResponse], int]) -> Slices:
        then((yield from self._look()))

    def _first_look(self, response: kafka.FetchResponse) -> int:
        request = self._request
        if (
            self._urgent
            or self._files
            or self._found_bytes >= request.min_bytes
            or request.max_wait_ms <= 0
            or not self._partitions
        ):
            self._answer(response)
        elif not self._call.done:
            self._call.on_closed = self._stop_waiting
            self._waiter = Waiter(
                request.min_bytes - self._found_bytes,
                self._wake,
                self._partitions,
                stable=request.isolation_level == READ_COMMITTED,
            )
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(request.max_wait_ms / 1000, self._wake)
        return self._found_bytes

    def _wake(self) -> None:
        self._stop_waiting()
        if self._is_long:
            self._start_over()
            self._services.run_queue.add(self._look_in_slices(self._answer))
        else:
            self._topics.budget.run(self._last_look)

    def _last_look(self) -> int:
        if self._call.done:
            return 0
        self._start_over()
        return self._answer(whole(self._look()))

    def _stop_waiting(self) -> None:
        if self._waiter is not None:
            self._waiter.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._waiter = self._timer = None

    def _answer(self, response: kafka.FetchResponse) -> int:
        if self._files:
            self._services.spawn(self._call, self._read_files(response))
        else:
            self._call.answer(response)
        return self._found_bytes

    # ---- looking ----

    def _look(self) -> Slices:
        """The answer as far as it can be told from memory; `_files` are left to read."""
        request = self._request
        left = max(1, min(request.max_bytes, self._services.settings.fetch_max_bytes, ANSWER_MAX_BYTES))
        response = kafka.FetchResponse()
        looked_at = 0
        for topic in request.topics:
            answers = kafka.FetchResponseFetchableTopicResponse(topic.topic)
            response.responses.append(answers)
            may = checks.may_read(self._services, self._call, request, topic.topic)
            for asked in topic.partitions:
                data = kafka.FetchResponsePartitionData(asked.partition, high_watermark=-1, records=b"")
                if request.isolation_level != READ_COMMITTED:
                    data.aborted_transactions = None
                answers.partitions.append(data)
                left -= self._look_at(topic.topic, asked, data, left, may)
                looked_at += 1
                if not looked_at % SLICE_ELEMENTS:
                    yield
        return response

    def _look_at(
        self,
        topic: str,
        asked: kafka.FetchRequestFetchPartition,
        data: kafka.FetchResponsePartitionData,
        left: int,
        may: bool,
    ) -> int:
        """One partition; how many bytes it takes of what the answer may have."""
        try:
            if not may:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            partition = self._topics.readable(topic, asked.partition)
            if asked.current_leader_epoch > LEADER_EPOCH:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
            max_bytes = min(asked.partition_max_bytes, left)
            records = partition.read_tail(asked.fetch_offset, max_bytes)
        except KafkaError as error:
            data.error_code = error.code
            data.aborted_transactions = [] if error.code in WITHOUT_A_LOG else None
            self._urgent = True
            return 0
        self._partitions.append(partition)
        data.high_watermark = data.last_stable_offset = partition.high_watermark
        data.log_start_offset = partition.start_offset
        end_offset = None
        if partition.transactions.open:
            data.last_stable_offset = partition.last_stable_offset
            if data.aborted_transactions is not None:
                end_offset = data.last_stable_offset
                if asked.fetch_offset >= end_offset:
                    return 0
                records = None if records is None else before(records, end_offset)
        if left <= 0:
            # What is there must not be waited for.
            self._urgent = self._urgent or records != b""
            return 0
        if records is None:
            self._files.append(_FromFile(partition, asked.fetch_offset, max_bytes, end_offset, data))
            return max_bytes
        data.records = records
        if data.aborted_transactions is not None and len(partition.transactions):
            _tell_aborted(partition, asked.fetch_offset, data)
        self._found_bytes += len(records)
        return len(records)

    async def _read_files(self, response: kafka.FetchResponse) -> None:
        for part in self._files:
            data = part.data
            try:
                data.records = await self._topics.read(
                    part.partition, part.offset, part.max_bytes, part.end_offset
                )
                if data.aborted_transactions is not None and len(part.partition.transactions):
                    _tell_aborted(part.partition, part.offset, data)
            except KafkaError as error:
                data.error_code = error.code
                data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
                data.aborted_transactions = None
        self._topics.budget.run(lambda: self._hand_over(response))

    def _hand_over(self, response: kafka.FetchResponse) -> int:
        self._call.answer(response)
        return sum(len(part.data.records or b"") for part in self._files)


def _tell_aborted(partition: Readable, offset: int, data: kafka.FetchResponsePartitionData) -> None:
    """The aborted transactions in the records of an answer."""
    if data.records:
        data.aborted_transactions = [
            kafka.FetchResponseAbortedTransaction(producer_id, first)
            for producer_id, first in partition.transactions.aborted(offset, next_offset(data.records))
        ]
