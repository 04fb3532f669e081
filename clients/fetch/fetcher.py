"""Fetches ahead of the application: requests to each leader, as much as the buffer may hold.

Each broker gets up to `PURPOSES` requests at a time, each over a connection of its own, for a broker answers
the requests of one connection one after the other: what waits at the end of the log must not hold back what
has more to read. Those that wait ask for the same partitions again and again, so they have a fetch session
(KIP-227).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import AuthenticationError, ClientError, RetriableError
from ringleader.clients.fetch.buffer import HELD_RATIO, Chunk, end_of, holder
from ringleader.clients.fetch.errors import PartitionError
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.session import LOST, FetchSession, Wanted, newest
from ringleader.clients.model import Node, TopicPartition
from ringleader.protocol import native
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name
from ringleader.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
)

logger = logging.getLogger("ringleader.clients.consumer")

PURPOSES = ("fetch", "fetch 2", "fetch 3")
"""The last one never waits at the end of a log."""
RETRY_S = 0.1
REPLICA_S = 300.0
"""The time that a follower named by the leader is read from before the leader is asked again."""
FLOOR_MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How much is fetched, under the Java consumer's names."""

    min_bytes: int
    max_wait_ms: int
    max_bytes: int
    max_partition_bytes: int
    buffer_max_bytes: int
    committed_only: bool
    client_rack: str
    request_timeout_ms: int


@dataclass(slots=True)
class _Requested:
    state: PartitionState
    position_id: int
    offset: int
    epoch: int
    topic_id: bytes


class Fetcher:
    """`want` says that a partition may be fetched again; `on_ready` that it has something to hand out;
    `on_out_of_range` that its position is outside of the log. `run` does the work."""

    def __init__(
        self,
        cluster: Cluster,
        leaders: Leaders,
        settings: FetchSettings,
        on_ready: Callable[[PartitionState], None],
        on_out_of_range: Callable[[PartitionState], None],
    ) -> None:
        self._cluster = cluster
        self._leaders = leaders
        self._settings = settings
        self._on_ready = on_ready
        self._on_out_of_range = on_out_of_range
        self.states: dict[TopicPartition, PartitionState] = {}
        """All assigned partitions."""
        self._fetchable: dict[TopicPartition, PartitionState] = {}
        """The partitions that may be fetched, in the order of requests: one that got records last stands
        last."""
        self._busy: dict[tuple[int, str], int] = {}
        """Requests under way, and how much they may bring."""
        self._sessions: dict[tuple[int, str], FetchSession] = {}
        self._backoffs: dict[int, tuple[Backoff, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None
        self._buffer_full = False
        self._wake = asyncio.Event()
        self.fetches = self.failed_fetches = self.fetched_bytes = 0

    def want(self, state: PartitionState) -> None:
        """It may be fetched, as soon as there is room."""
        if (
            state.topic_partition not in self._fetchable
            and state.wants_more
            and state.buffer.fetched_bytes < self._settings.max_partition_bytes
        ):
            self._fetchable[state.topic_partition] = state
            self._wake.set()

    def wake(self) -> None:
        """Leaders have become known, or partitions are paused: look again what can be fetched."""
        self._wake.set()

    def taken(self, state: PartitionState) -> None:
        """Something of it has left the buffer."""
        self.want(state)
        if self._buffer_full:
            self._wake.set()

    @property
    def buffered_bytes(self) -> int:
        """The bytes of all that was fetched and has not been handed out."""
        return sum(state.buffered_bytes for state in self.states.values())

    async def run(self) -> None:
        """Until cancelled. Raises what went wrong in here."""
        try:
            while self._broken is None:
                self._wake.clear()
                self._buffer_full = False
                wait_s = self._send_all()
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass
            raise self._broken
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- asking ----

    def _send_all(self) -> float | None:
        """Send what can be sent; in how many seconds to look again."""
        now_s = asyncio.get_running_loop().time()
        later: list[float] = []
        by_node: dict[Node, list[PartitionState]] = {}
        for tp, state in list(self._fetchable.items()):
            if self.states.get(tp) is not state or not state.wants_more:
                del self._fetchable[tp]
            elif state.not_before_s > now_s:
                later.append(state.not_before_s)
            elif (node := self._node(state, now_s)) is not None:
                by_node.setdefault(node, []).append(state)
        for node, states in by_node.items():
            not_before_s = self._backoffs.get(node.node_id, (None, 0.0))[1]
            if not_before_s > now_s:
                later.append(not_before_s)
            else:
                self._send(node, states)
        return max(0.0, min(later) - now_s) if later else None

    def _node(self, state: PartitionState, now_s: float) -> Node | None:
        if now_s >= state.replica_until_s:
            state.replica = -1
        if state.replica >= 0 and (replica := self._leaders.broker(state.replica)) is not None:
            return replica
        return self._leaders.node(state.topic_partition)

    def _send(self, node: Node, states: list[PartitionState]) -> None:
        purpose = next((purpose for purpose in PURPOSES if (node.node_id, purpose) not in self._busy), None)
        if purpose is None:
            return
        waits = purpose != PURPOSES[-1]
        if not waits:
            states = [state for state in states if state.behind]
        settings = self._settings
        room = settings.buffer_max_bytes - self.buffered_bytes - sum(self._busy.values())
        if room < settings.max_partition_bytes:
            if self._busy or any(state.ready for state in self.states.values()):
                self._buffer_full = True
                return  # an answer, or the application, makes room
            # The buffered records belong to partitions that are paused: the others must go on.
            room = settings.max_partition_bytes
        max_bytes = min(settings.max_bytes, room, len(states) * settings.max_partition_bytes)
        if not states:
            return
        requested = []
        for state in states:
            del self._fetchable[state.topic_partition]
            state.fetching = True
            requested.append(
                _Requested(
                    state,
                    state.position_id,
                    state.fetch_offset,
                    self._leaders.epoch(state.topic_partition),
                    self._leaders.fetched_id(state.topic_partition),
                )
            )
        self._busy[node.node_id, purpose] = max_bytes
        self.fetches += 1
        task = asyncio.create_task(
            self._fetch(node, purpose, waits, max_bytes, requested), name=f"{purpose} {node}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = error
            self._wake.set()

    async def _fetch(
        self, node: Node, purpose: str, waits: bool, max_bytes: int, requested: list[_Requested]
    ) -> None:
        settings = self._settings
        # A request that never waits asks for records that are there: no two in a row are alike.
        session = FetchSession(offered=waits)
        if waits:
            session = self._sessions.setdefault((node.node_id, purpose), session)
        was_incremental = session.is_incremental
        wanted = {
            one.state.topic_partition: Wanted(
                one.offset, one.epoch, max(settings.max_partition_bytes, one.state.floor_bytes), one.topic_id
            )
            for one in requested
        }
        request = self._request(requested, wanted, session, settings.max_wait_ms if waits else 0, max_bytes)
        timeout_ms = settings.request_timeout_ms + settings.max_wait_ms
        try:
            response = await self._cluster.send(node, request, request_timeout_ms=timeout_ms, purpose=purpose)
            session.answered(wanted, response)
            if was_incremental and response.error_code in LOST:
                logger.debug("%s ends a fetch session: %s", node, error_name(response.error_code))
                self._ask_again(requested)
                return
            if response.error_code:
                raise RetriableError(f"Fetch was answered {error_name(response.error_code)}")
        except AuthenticationError:
            raise  # another try does not cure it: the next request for records raises it
        except ClientError as error:
            session.failed()
            self._failed(node, requested, error)
        else:
            self._backoffs.pop(node.node_id, None)
            self._answered(requested, response, session if was_incremental else None)
        finally:
            del self._busy[node.node_id, purpose]
            self._wake.set()

    def _request(
        self,
        requested: Iterable[_Requested],
        wanted: dict[TopicPartition, Wanted],
        session: FetchSession,
        max_wait_ms: int,
        max_bytes: int,
    ) -> Request:
        settings = self._settings
        floor = max((one.state.floor_bytes for one in requested), default=0)

        def message(version: int) -> FetchRequest:
            request = FetchRequest(
                replica_id=-1,
                max_wait_ms=max_wait_ms,
                min_bytes=settings.min_bytes,
                max_bytes=max(max_bytes, floor),
                isolation_level=int(settings.committed_only),
                rack_id=settings.client_rack,
            )
            session.fill(request, wanted, version)
            return request

        return Request(FetchRequest, message, newest(wanted), keep=_keep_records)

    # ---- answers ----

    def _failed(self, node: Node, requested: list[_Requested], error: ClientError) -> None:
        self.failed_fetches += 1
        now_s = asyncio.get_running_loop().time()
        backoff = self._backoffs.get(node.node_id, (Backoff(50, 1_000, random.random), 0.0))[0]
        self._backoffs[node.node_id] = (backoff, now_s + backoff.next_ms() / 1000)
        logger.log(
            logging.INFO if isinstance(error, RetriableError) else logging.ERROR,
            "cannot fetch from %s: %s",
            node,
            error,
        )
        for one in requested:
            if self._over(one):
                one.state.replica = -1
                self._leaders.stale(one.state.topic_partition)
                self.want(one.state)

    def _ask_again(self, requested: list[_Requested]) -> None:
        for one in requested:
            if self._over(one):
                self.want(one.state)

    def _over(self, one: _Requested) -> bool:
        """The request for it is over; whether its answer is still wanted."""
        state = one.state
        if self.states.get(state.topic_partition) is not state or state.position_id != one.position_id:
            return False
        state.fetching = False
        return True

    def _answered(self, requested: list[_Requested], response: Any, session: FetchSession | None) -> None:
        """`session`: the one of an incremental request."""
        names = {one.topic_id: one.state.topic for one in requested}
        data = {
            (topic.topic or names.get(topic.topic_id), part.partition_index): part
            for topic in response.responses
            for part in topic.partitions
        }
        fed: list[PartitionState] = []
        for one in requested:
            if not self._over(one):
                continue
            part = data.get(one.state.topic_partition)
            if part is None and session is not None:
                one.state.behind = False
                if one.state.high_watermark < 0:
                    # It was given up and taken again since the broker reported its end.
                    session.failed()
            elif part is None:
                one.state.not_before_s = asyncio.get_running_loop().time() + RETRY_S
            elif part.error_code:
                self._refused(one, part)
            elif self._take(one, part):
                fed.append(one.state)
                continue
            self.want(one.state)
        # Those that got records stand behind those that got none.
        for state in fed:
            self.want(state)
            self._on_ready(state)

    def _take(self, one: _Requested, part: FetchResponsePartitionData) -> bool:
        """Take over an answer about one partition; whether there are records."""
        state, settings = one.state, self._settings
        state.high_watermark, state.log_start_offset = part.high_watermark, part.log_start_offset
        stable = settings.committed_only and part.last_stable_offset >= 0
        state.end_offset = part.last_stable_offset if stable else part.high_watermark
        records = part.records or b""
        if part.preferred_read_replica >= 0 and not records:
            now_s = asyncio.get_running_loop().time()
            if state.replica >= 0:  # nobody knows the one that was named before, or it names another, too
                state.not_before_s = now_s + RETRY_S
            state.replica, state.replica_until_s = part.preferred_read_replica, now_s + REPLICA_S
            return False
        if not records:
            state.behind = False
            return False
        self.fetched_bytes += len(records)
        after = end_of(records)
        if after is None and len(records) >= max(state.floor_bytes, settings.max_partition_bytes):
            # A batch that is cut off, from a broker that does not send the first one whole.
            state.floor_bytes = min(2 * len(records), FLOOR_MAX_BYTES)
            if len(records) < FLOOR_MAX_BYTES:
                return False
        if after is not None and after <= one.offset:
            state.not_before_s = asyncio.get_running_loop().time() + RETRY_S
            return False
        state.floor_bytes = 0
        aborted = None
        if settings.committed_only:
            aborted = [(entry.producer_id, entry.first_offset) for entry in part.aborted_transactions or ()]
        state.add(Chunk(records, aborted), after)
        state.fetch_epoch = one.epoch
        state.behind = after is not None and after < state.end_offset
        return True

    def _refused(self, one: _Requested, part: FetchResponsePartitionData) -> None:
        state, code = one.state, part.error_code
        self.failed_fetches += 1
        state.not_before_s = asyncio.get_running_loop().time() + RETRY_S
        from_replica, state.replica = state.replica >= 0, -1
        name = f"{state.topic}-{state.partition}"
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if not from_replica:  # a follower may not know the offset yet
                self._on_out_of_range(state)
        elif code in MOVED:
            logger.info("%s at offset %d: %s", name, one.offset, error_name(code))
            self._leaders.stale(state.topic_partition)
        elif code == ErrorCode.UNKNOWN_SERVER_ERROR or (
            KafkaError(code).retriable and code != ErrorCode.CORRUPT_MESSAGE
        ):
            logger.warning("%s at offset %d: %s; trying again", name, one.offset, error_name(code))
        else:
            why = f"the broker does not serve it: {error_name(code)}"
            state.fail(PartitionError(*state.topic_partition, one.offset, why, code))
            self._on_ready(state)


def _keep_records(response: FetchResponse) -> bool:
    """Whether there are views of the buffer left. Records that take a good part of it stay there, which saves
    a copy; others would hold too much memory, and Python needs bytes."""
    lent = False
    for topic in response.responses:
        for part in topic.partitions:
            records = part.records
            if records is None:
                continue
            if native.compiled is None or len(records) * HELD_RATIO < len(holder(records)):
                part.records = bytes(records)
            else:
                lent = True
    return lent
