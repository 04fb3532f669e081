"""Fetch (1) v4-18: v5 log start offset, v7 sessions, v9 leader epoch, v11 rack, v12 flexible, v13 topic ids.
The fields of v14-18 are for brokers that follow, and about leaders elsewhere.

A client may keep the partitions of its requests here, in a session (see `fetch_sessions`).
Readers of committed records get what is before the last stable offset, and which transactions in it were
aborted: they skip the records of those, and markers, themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices, whole
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.handlers.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    Cached,
    FetchSession,
    FetchSessions,
    Key,
    bytes_of,
    next_epoch,
)
from ringleader.coordinator.server.services import LocalServices
from ringleader.coordinator.topics.partition import LEADER_EPOCH, Readable, Waiter
from ringleader.coordinator.topics.transactional import before, next_offset
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION

ANSWER_MAX_BYTES = 8 * 1024 * 1024
"""Most bytes of records in one answer, whatever the client and `fetch.max.bytes` allow: an answer is put
together in one turn of the loop. One batch larger than that still comes whole, if it is the first."""
READ_COMMITTED = 1

WITHOUT_A_LOG = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
"""With these Kafka has not looked, and says that there are no aborted transactions, not that none were asked
for."""


def fetch(
    services: LocalServices, sessions: FetchSessions, call: Call, request: kafka.FetchRequest
) -> kafka.FetchResponse | None:
    """Answered when there is enough, when there is an error, or when the wait is over."""
    session = None
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        try:
            session = sessions.proceed(
                request.session_id, request.session_epoch, by_id=call.api_version >= TOPIC_IDS_VERSION
            )
        except KafkaError as error:
            return kafka.FetchResponse(error_code=error.code)
    elif request.session_id != NO_SESSION:
        sessions.close(request.session_id)
    _Fetch(services, sessions, session, call, request).begin()
    return None


@dataclass(slots=True)
class _FromFile:
    """A part of the answer that must be read from a file."""

    partition: Readable
    offset: int
    max_bytes: int
    at_least_one: bool
    """Whether one batch comes even if it is larger than `max_bytes`."""
    end_offset: int | None
    """Where an open transaction begins, for readers of committed records."""
    data: kafka.FetchResponsePartitionData


_News = list[tuple[Key, Cached, kafka.FetchResponsePartitionData]]
"""Partitions of a session in an answer, each with its key and its last answer."""

_Looking = Generator[_FromFile | None, None, None]
"""Gives way to others at each None; what else it yields must be read before it goes on."""


class _Fetch:
    """One Fetch request in progress."""

    __slots__ = (
        "_by_id",
        "_cached",
        "_cached_bytes",
        "_call",
        "_found_bytes",
        "_is_long",
        "_may",
        "_names",
        "_news",
        "_partitions",
        "_request",
        "_requested",
        "_response",
        "_services",
        "_session",
        "_sessions",
        "_taken",
        "_timer",
        "_topics",
        "_urgent",
        "_waiter",
    )

    def __init__(
        self,
        services: LocalServices,
        sessions: FetchSessions,
        session: FetchSession | None,
        call: Call,
        request: kafka.FetchRequest,
    ) -> None:
        self._services = services
        self._topics = services.topics
        self._sessions = sessions
        self._session = session
        """That of an incremental request."""
        self._call = call
        self._by_id = call.api_version >= TOPIC_IDS_VERSION
        self._names: dict[bytes, str] = {}
        """Of topics that are asked for by id: those that had it when they were first looked at."""
        self._request = request
        self._waiter: Waiter | None = None
        self._timer: asyncio.TimerHandle | None = None
        number = sum(1 + len(topic.partitions) for topic in request.topics)
        if session is not None:
            number += len(session.partitions)
            number += sum(1 + len(topic.partitions) for topic in request.forgotten_topics_data)
        self._is_long = number > SLICE_ELEMENTS
        self._requested: dict[Key, kafka.FetchRequestFetchPartition] = {}
        """Each partition once, where it is first named, as it is named last: as in Kafka."""
        self._may: dict[str, bool] = {}
        """Of each topic whether its records may be read."""
        self._taken = 0
        """Of the call, for the answer in the making."""
        self._start_over()

    def _start_over(self) -> None:
        self._found_bytes = 0
        self._urgent = False
        self._partitions: list[Readable] = []
        self._forget()

    def _forget(self) -> None:
        """The answer so far, and what it means for the session."""
        self._response = kafka.FetchResponse()
        self._news: _News = []
        self._cached: dict[Key, Cached] = {}
        self._cached_bytes = 0

    def _take(self, more_bytes: int) -> None:
        if more_bytes:
            self._taken += more_bytes
            self._call.takes(more_bytes)

    def begin(self) -> None:
        """Look; answer, or wait for more."""
        self._run(self._first_looked)

    def _run(self, then: Callable[[], object]) -> None:
        if self._is_long:
            self._services.run_queue.add(self._looked(then))
        else:
            self._services.run_queue.at_once(lambda: self._at_once(then), self._call.connection)

    def _at_once(self, then: Callable[[], object]) -> None:
        if not self._call.done:
            whole(self._looked(then))

    def _looked(self, then: Callable[[], object]) -> Slices:
        """Look, and then do that; if a file must be read, a coroutine goes on from there, and answers."""
        self._start_over()
        if not self._requested:
            try:
                yield from self._read_request()
            except KafkaError as error:
                self._call.answer(kafka.FetchResponse(error_code=error.code))
                return
        looking = self._look()
        for wanted in looking:
            if wanted is not None:
                self._services.spawn(self._call, self._read_files(looking, wanted))
                return
            yield
        then()

    def _first_looked(self) -> None:
        request = self._request
        if (
            self._urgent
            or self._found_bytes >= request.min_bytes
            or request.max_wait_ms <= 0
            or not self._partitions
        ):
            self._answer()
        elif not self._call.done:
            self._call.on_closed = self._stop_waiting
            self._waiter = Waiter(
                request.min_bytes - self._found_bytes,
                self._wake,
                self._partitions,
                stable=request.isolation_level == READ_COMMITTED,
            )
            self._take(-self._taken)
            self._forget()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(request.max_wait_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._stop_waiting()
        self._run(self._answer)

    def _stop_waiting(self) -> None:
        if self._waiter is not None:
            self._waiter.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._waiter = self._timer = None

    def _answer(self) -> int:
        """Answer, unless the call is done. The session keeps what the client learns by that."""
        session, response = self._session, self._response
        if self._call.done:
            return 0
        if session is not None:
            response.session_id = session.id
            if session.epoch != next_epoch(self._request.session_epoch):
                # Another request came with the same epoch, and the ones after it.
                response.error_code, response.responses = ErrorCode.INVALID_FETCH_SESSION_EPOCH, []
                self._news = []
            for key, cached, data in self._news:
                cached.answered(data)
                if data.records:
                    session.rotate(key)
        elif self._request.session_epoch == INITIAL_EPOCH:
            response.session_id = self._sessions.create(
                self._cached,
                self._cached_bytes,
                privileged=self._request.follower >= 0,
                by_id=self._by_id,
            )
        self._call.withheld = partial(_withheld, self._sessions, session, self._news, response)
        self._call.answer(response)
        return self._found_bytes

    # ---- looking ----

    def _read_request(self) -> Slices:
        """Find what is asked for. Raises KafkaError for a session that ends by it."""
        number = 0
        for topic in self._request.topics:
            name = topic.topic_id if self._by_id else topic.topic
            for requested in topic.partitions:
                self._requested[name, requested.partition] = requested
                number += 1
                if not number % SLICE_ELEMENTS:
                    yield
        session = self._session
        if session is None:
            return
        more_bytes = 0
        for key, requested in self._requested.items():
            more_bytes += session.ask(key, requested)
            number += 1
            if not number % SLICE_ELEMENTS:
                yield
        for forgotten in self._request.forgotten_topics_data:
            name = forgotten.topic_id if self._by_id else forgotten.topic
            for index in forgotten.partitions:
                more_bytes -= session.forget((name, index))
                number += 1
                if not number % SLICE_ELEMENTS:
                    yield
        if self._sessions.used(session, more_bytes):
            self._requested = {key: cached.requested for key, cached in session.partitions.items()}
        else:
            self._session = None

    def _look(self) -> _Looking:
        """Put the answer together, of what is in memory and of what is read meanwhile. As in Kafka's
        `ReplicaManager.readFromLog` what each partition gives is taken off what the answer may have, and
        only the first one that gives any may give more than it may: one batch."""
        request, session = self._request, self._session
        left = max(0, min(request.max_bytes, self._services.settings.fetch_max_bytes, ANSWER_MAX_BYTES))
        answers = None
        for number, (key, requested) in enumerate(self._requested.items(), 1):
            topic, index = key
            if not number % SLICE_ELEMENTS:
                self._take(SLICE_ELEMENTS * HELD_ENTRY_BYTES)
                yield None
            cached = None if session is None else session.partitions.get(key)
            name = self._name(topic, cached)
            if cached is not None and self._is_as_before(key, name, requested, cached):
                continue
            data = kafka.FetchResponsePartitionData(index, high_watermark=-1, records=b"")
            if request.isolation_level != READ_COMMITTED:
                data.aborted_transactions = None
            wanted = self._look_at(key, name, requested, data, left)
            if wanted is not None:
                yield wanted
            if cached is not None:
                if not cached.is_new(data):
                    continue
                self._news.append((key, cached, data))
            elif request.session_epoch == INITIAL_EPOCH:
                self._cached[key] = Cached(name, requested, data.high_watermark, data.log_start_offset)
                self._cached_bytes += bytes_of(key)
            if answers is None or topic not in (answers.topic, answers.topic_id):
                answers = kafka.FetchResponseFetchableTopicResponse()
                if isinstance(topic, bytes):
                    answers.topic_id = topic
                else:
                    answers.topic = topic
                self._response.responses.append(answers)
            answers.partitions.append(data)
            size = len(data.records or b"")
            left -= size
            self._found_bytes += size
            self._take(size)

    def _name(self, topic: str | bytes, cached: Cached | None) -> str | None:
        """The name of a topic; None: no topic has that id. As in Kafka a session keeps what it found."""
        if isinstance(topic, str):
            return topic
        if cached is not None and cached.name is not None:
            return cached.name
        name = self._names.get(topic)
        if name is None and (info := self._topics.describe_id(topic)) is not None:
            name = self._names[topic] = info.name
        if cached is not None:
            cached.name = name
        return name

    def _found(self, key: Key, name: str | None) -> Readable:
        """Raises KafkaError: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, and
        INCONSISTENT_TOPIC_ID where another topic has got the name."""
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._may_read(name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic, index = key
        partition = self._topics.readable(name, index)
        if isinstance(topic, bytes):
            info = self._topics.describe(name)
            if info is None or info.id != topic:
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        return partition

    def _is_as_before(
        self, key: Key, name: str | None, requested: kafka.FetchRequestFetchPartition, cached: Cached
    ) -> bool:
        """Whether the client waits at the end of the partition, and knows all about it: the usual case of a
        session, without an entry of an answer."""
        try:
            partition = self._found(key, name)
        except KafkaError:
            return False
        if (
            not requested.fetch_offset == partition.high_watermark == cached.high_watermark
            or partition.start_offset != cached.start_offset
            or requested.current_leader_epoch > LEADER_EPOCH
        ):
            return False
        self._partitions.append(partition)
        return True

    def _look_at(
        self,
        key: Key,
        name: str | None,
        requested: kafka.FetchRequestFetchPartition,
        data: kafka.FetchResponsePartitionData,
        left: int,
    ) -> _FromFile | None:
        """One partition; what is to be read of it."""
        max_bytes, at_least_one = min(requested.partition_max_bytes, left), not self._found_bytes
        try:
            partition = self._found(key, name)
            if requested.current_leader_epoch > LEADER_EPOCH:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
            records = partition.read_tail(requested.fetch_offset, max_bytes)
            if requested.partition_max_bytes < 0 and records != b"":
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, which looks no earlier
        except KafkaError as error:
            data.error_code = error.code
            data.aborted_transactions = [] if error.code in WITHOUT_A_LOG else None
            self._urgent = True
            return None
        self._partitions.append(partition)
        data.high_watermark = data.last_stable_offset = partition.high_watermark
        data.log_start_offset = partition.start_offset
        end_offset = None
        if partition.transactions.open:
            data.last_stable_offset = partition.last_stable_offset
            if data.aborted_transactions is not None:
                end_offset = data.last_stable_offset
                if requested.fetch_offset >= end_offset:
                    return None
                records = None if records is None else before(records, end_offset)
        if not at_least_one and (max_bytes <= 0 or len(records or b"") > max_bytes):
            # Records that are there must not be waited for.
            self._urgent = self._urgent or records != b""
            return None
        if records is None:
            return _FromFile(partition, requested.fetch_offset, max_bytes, at_least_one, end_offset, data)
        data.records = records
        _tell_aborted(partition, requested.fetch_offset, data)
        return None

    def _may_read(self, topic: str) -> bool:
        found = self._may.get(topic)
        if found is None:
            found = self._may[topic] = checks.may_read(self._services, self._call, self._request, topic)
        return found

    # ---- files ----

    async def _read_files(self, looking: _Looking, first: _FromFile) -> None:
        """Go on looking, where this is to be read first; then answer with what there is."""
        for wanted in chain([first], looking):
            if wanted is None:
                await self._services.run_queue.pause()
            else:
                await self._read(wanted)
        self._services.run_queue.at_once(self._answer, self._call.connection)

    async def _read(self, part: _FromFile) -> None:
        data = part.data
        try:
            data.records = await self._topics.read(
                part.partition, part.offset, part.max_bytes, part.end_offset, at_least_one=part.at_least_one
            )
            _tell_aborted(part.partition, part.offset, data)
        except KafkaError as error:
            data.error_code = error.code
            data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
            data.aborted_transactions = None


def _withheld(
    sessions: FetchSessions, session: FetchSession | None, news: _News, refused: kafka.FetchResponse
) -> kafka.FetchResponse:
    """A quota withholds the answer: the client learns nothing, and no session is made. As in Kafka's
    `getThrottledResponse` the answer without partitions belongs to the session."""
    response = kafka.FetchResponse()
    if session is None:
        sessions.close(refused.session_id)
        return response
    for _, cached, _ in news:
        cached.high_watermark = -1
    response.error_code, response.session_id = refused.error_code, refused.session_id
    return response


def _tell_aborted(partition: Readable, offset: int, data: kafka.FetchResponsePartitionData) -> None:
    """The aborted transactions in the records of an answer, for readers of committed ones."""
    if data.records and data.aborted_transactions is not None and len(partition.transactions):
        data.aborted_transactions = [
            kafka.FetchResponseAbortedTransaction(producer_id, first)
            for producer_id, first in partition.transactions.aborted(offset, next_offset(data.records))
        ]
