"""How far a group is behind in every partition: committed and end offsets, in bulk, in bounded time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from time import time_ns
from typing import Any, NamedTuple

from ringleader.clients.connection.aside import aside
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.overview import Overview, overview
from ringleader.clients.connection.requests import RawAnswer, Request, in_parts
from ringleader.clients.errors import BrokerError, ClientError, RetriableError, is_retriable
from ringleader.clients.model import LATEST, Node, OffsetReset, TopicPartition
from ringleader.clients.offsets.list_offsets import (
    ListedOffset,
    list_offsets,
    listed_offsets,
)
from ringleader.clients.offsets.requests import fetched_offsets, offset_fetch
from ringleader.clients.reset import reset_time
from ringleader.protocol.errors import MalformedError, error_name
from ringleader.protocol.frames import decode_response
from ringleader.protocol.messages import (
    ListOffsetsResponse,
    OffsetFetchResponse,
)

Offsets = dict[TopicPartition, int]


class Lags(NamedTuple):
    """Topic -> records behind, for each partition. `unknown`: how many could not be learned in time; they
    count as 0. `why`: what was in the way, in words."""

    behind: Mapping[str, Sequence[int]]
    unknown: int
    why: str


async def lags_of(
    cluster: Cluster,
    group_id: str,
    seen: Overview,
    topics: Iterable[str],
    reset: OffsetReset,
    timeout_ms: int,
) -> Lags:
    """The group's lag in all partitions of these topics. `seen`: an overview of them, with replicas.

    A partition without a committed offset counts from where `reset` begins: with "latest" and "none" it is
    not behind, nor is one without a record as late as a duration asks for. Never raises ClientError: what is
    not known when the time is over counts as 0.
    """
    question = _Question(cluster, seen, timeout_ms)
    counts = seen.counts(topics)
    partitions = [(topic, partition) for topic, count in counts.items() for partition in range(count)]
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(question.offsets(partitions, LATEST))
        fetching = group.create_task(question.committed(group_id))
    ends, committed = ending.result(), fetching.result()
    starts: Offsets = {}
    begins = reset_time(reset, time_ns() // 10**6)
    if committed is not None and begins != LATEST:
        starts = await question.offsets([tp for tp in ends if tp not in committed], begins)
    behind = {topic: [0] * count for topic, count in counts.items()}
    known = 0
    for tp, end in ends.items():
        if committed is None:
            break
        begin = committed.get(tp, end if begins == LATEST else starts.get(tp))
        if begin is not None:
            known += 1
            behind[tp[0]][tp[1]] = max(0, end - begin) if begin >= 0 else 0
    return Lags(behind, len(partitions) - known, question.why)


class _Question:
    """One look at a group's lag, until a deadline. `why`: the newest thing that was in the way."""

    def __init__(self, cluster: Cluster, seen: Overview, timeout_ms: int) -> None:
        self._cluster = cluster
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._deadline_s = self._loop.time() + timeout_ms / 1000
        self.why = ""

    def _left_ms(self) -> int:
        return max(1, int((self._deadline_s - self._loop.time()) * 1000))

    async def committed(self, group_id: str) -> Offsets | None:
        """All committed offsets of the group; None if they cannot be learned."""

        async def ask() -> Offsets:
            groups = self._cluster.groups
            node = await groups.coordinator(group_id, deadline_s=self._deadline_s)
            request = offset_fetch(group_id, None, require_stable=False)
            answer: RawAnswer = await groups.send(node, _raw(request), deadline_s=self._deadline_s)
            fetched = await aside(lambda: _fetched(answer))
            if fetched.code:
                text = f"offsets of group {group_id!r}: {error_name(fetched.code)}"
                raise (RetriableError if is_retriable(fetched.code) else BrokerError)(text, fetched.code)
            for tp, code in fetched.errors.items():
                self.why = f"{tp[0]}-{tp[1]}: {error_name(code)}"
            return {tp: one.offset for tp, one in fetched.offsets.items()}

        try:
            async with asyncio.timeout_at(self._deadline_s):
                return await retrying(self._deadline_s, Backoff(50, 500, random.random), ask)
        except TimeoutError:
            self.why = self.why or f"the offsets of group {group_id!r} did not come in time"
        except ClientError as error:
            self.why = str(error)
        return None

    async def offsets(self, partitions: Sequence[TopicPartition], time: int) -> Offsets:
        """The offsets of these partitions at that time, as far as they can be learned."""
        found: Offsets = {}
        refused: set[TopicPartition] = set()
        backoff = Backoff(50, 500, random.random)
        try:
            async with asyncio.timeout_at(self._deadline_s):
                wanted = list(partitions)
                while wanted:
                    await self._round(wanted, time, found, refused)
                    wanted = [tp for tp in wanted if tp not in found and tp not in refused]
                    if wanted:
                        await asyncio.sleep(backoff.next_ms() / 1000)
                        await self._look_again({topic for topic, _ in wanted})
        except TimeoutError:
            self.why = self.why or "a broker did not answer in time"
        return found

    async def _look_again(self, topics: set[str]) -> None:
        try:
            seen = await overview(self._cluster, topics, with_replicas=True, timeout_ms=self._left_ms())
            self._seen = seen._replace(topics={**self._seen.topics, **seen.topics})
        except ClientError as error:
            self.why = str(error)

    async def _round(
        self, wanted: Sequence[TopicPartition], time: int, found: Offsets, refused: set[TopicPartition]
    ) -> None:
        """Ask each leader once."""
        by_leader: dict[Node, list[TopicPartition]] = {}
        for topic, partition in wanted:
            one = self._seen.topics.get(topic)
            if one is None or partition >= len(one.leaders):
                refused.add((topic, partition))  # gone meanwhile
                continue
            node = self._seen.brokers.get(one.leaders[partition])
            if node is None:
                self.why = f"{topic}-{partition} has no leader now"
                continue
            by_leader.setdefault(node, []).append((topic, partition))
        async with asyncio.TaskGroup() as group:
            for node, partitions in by_leader.items():
                group.create_task(self._ask(node, partitions, time, found, refused))

    async def _ask(
        self,
        node: Node,
        partitions: Sequence[TopicPartition],
        time: int,
        found: Offsets,
        refused: set[TopicPartition],
    ) -> None:
        for some in in_parts(partitions):
            try:
                request = list_offsets(dict.fromkeys(some, time), raw=True)
                answer: RawAnswer = await self._cluster.send(node, request, deadline_s=self._deadline_s)
                listed = await aside(partial(_listed, answer))
            except RetriableError as error:
                self.why = str(error)
                return
            except ClientError as error:
                self.why = str(error)
                refused.update(some)
                continue
            for tp, one in listed.items():
                if one.code:
                    self.why = f"{tp[0]}-{tp[1]}: {error_name(one.code)}"
                    if not is_retriable(one.code):
                        refused.add(tp)
                else:
                    found[tp] = one.offset


def _listed(answer: RawAnswer) -> dict[TopicPartition, ListedOffset]:
    return listed_offsets(_decoded(ListOffsetsResponse, answer))


def _raw(request: Request) -> Request:
    return Request(request.message, request.build, request.max_version, raw=True)


def _decoded(message: Any, answer: RawAnswer) -> Any:
    try:
        return decode_response(message, answer.frame, answer.version)[1]
    except MalformedError as error:
        raise BrokerError(f"an answer cannot be read: {error}") from error


def _fetched(answer: RawAnswer) -> Any:
    return fetched_offsets(_decoded(OffsetFetchResponse, answer))
