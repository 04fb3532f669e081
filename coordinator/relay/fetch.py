"""Fetch (1) v4-18: record batches come from the leaders of their partitions as they are.

Where all partitions have one leader, its answer leaves in the memory in which it came, under another
correlation id. Where they have several, it is put together from theirs as soon as one has records; the
requests to the others stay open, and their answers go into the client's next one.

The node that is shown as leader tells a consumer with a rack which node of its rack it is to ask (KIP-392).
That node sends the rack to the leaders, and reads from the followers that they name; a client without a rack,
or with another, is served by leaders.

From v13 on clients name topics by their ids, and so do the requests to brokers: no record of a topic that was
made again under the same name comes to a client that does not know it.

There are no fetch sessions (the session id of an answer is 0). A broker that led until just now may be asked,
and its records are the leader's; but only the leader may answer that an offset is out of range: a follower
that lags answers the same, and the client would go on elsewhere (`auto.offset.reset`).
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ringleader.clients.connection.requests import RawAnswer
from ringleader.clients.errors import BrokerError, ClientError, ConnectionLostError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.nearby import Topics
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.relay.topic_ids import (
    failed_partition,
    give_names,
    ids_of,
    place_of,
    without_name,
)
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import decode_response
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION

ANSWER_MAX_BYTES = 2 * 1024 * 1024
"""Most bytes of records that one answer is to have, whatever the client allows: a client that does not read
keeps them here. One batch larger than that still comes whole."""
CONSUMER = -1
NO_SESSION = -1
"""The session epoch of a Fetch without a session."""
UNKNOWN = -1
LEADERS_VERSION = 10
"""The highest version of Fetch that only the leader answers to a consumer; from 11 on followers do, too
(KIP-392)."""
LEFT_S = 10.0
"""A request that a client left at a broker for longer than this beyond its wait is sent again."""

_HEAD = struct.Struct(">ii").pack


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Fetch(services, relay)
    return {1: relay.handler(services, family.fetch)}


class Watermarks(NamedTuple):
    """The last answer about a partition; -1: none."""

    high: int = -1
    last_stable: int = -1
    log_start: int = -1


class Parked:
    """A request that waits at a broker for records, perhaps longer than the client's request."""

    __slots__ = ("first", "requested", "task", "until_s")

    def __init__(
        self, requested: object, task: asyncio.Task[kafka.FetchResponse], until_s: float, first: bool
    ) -> None:
        self.requested = requested
        """The contents, to recognize the same request."""
        self.task = task
        self.until_s = until_s
        """When the broker answers at the latest."""
        self.first = first
        """This client has no answer yet about some of its partitions."""


class _Fetch:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    async def fetch(self, call: Call, request: kafka.FetchRequest) -> Message | None:
        """Answered when there is enough, when there is an error, or when the wait is over."""
        if request.session_epoch > 0:
            return kafka.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        unknown = (
            await give_names(self._relay.topology, request) if call.api_version >= TOPIC_IDS_VERSION else []
        )
        requested = [(topic.topic, topic.partitions) for topic in request.topics]
        may = partial(checks.may_read, self._services, call, request)
        parts, missing = await self._relay.by_leader(requested, lambda entry: entry.partition, may)
        ids = ids_of(request)
        answered = [
            (topic, failed_partition(entry.partition, without_name(self._relay.topology, ids[topic], code)))
            for topic, entry, code in missing
        ]
        if self._relay.nearby.serves(request):
            parts = self._relay.nearby.parts(parts)
        elif request.rack_id:
            parts, elsewhere = self._in_their_rack(call, request.rack_id, parts, ids)
            answered += elsewhere
        if len(parts) != 1 or answered or unknown:
            await _Several(self._services, self._relay, call, request).fetch(parts, answered, unknown)
            return None
        [(broker, topics)] = parts.items()
        return await self._from_one(call, request, broker, topics)

    def _in_their_rack(
        self, call: Call, rack: str, parts: Mapping[Node, Topics], ids: Mapping[str, bytes]
    ) -> tuple[dict[Node, Topics], list[tuple[str, kafka.FetchResponsePartitionData]]]:
        """Partitions to ask for here, and answers that name a node of that rack for the others. Only the node
        that is shown as leader names one, as only a leader does: no client is sent about."""
        stand_ins = self._relay.stand_ins(self._services, call)
        here: dict[Node, Topics] = {}
        elsewhere = []
        for broker, topics in parts.items():
            for name, entries in topics.items():
                topic = self._relay.topology.describe(name)
                for entry in entries:
                    index, node = entry.partition, UNKNOWN
                    shown = stand_ins.leader(broker.node_id, name, index)
                    if topic is not None and index < topic.partitions and shown == self._services.node_id:
                        brokers, offline = topic.replicas[index], topic.offline[index]
                        node = stand_ins.in_rack(rack, brokers, offline, broker.node_id, shown)
                    if node == UNKNOWN:
                        here.setdefault(broker, {}).setdefault(name, []).append(entry)
                        continue
                    place = place_of(name, ids[name], index)
                    known = self._relay.upstreams(call).watermarks.get(place, Watermarks())
                    answer = nothing_new(index, known)
                    answer.preferred_read_replica = node
                    elsewhere.append((name, answer))
        return here, elsewhere

    async def _from_one(
        self, call: Call, request: kafka.FetchRequest, broker: Node, topics: Topics
    ) -> Message | None:
        relay = self._relay
        message = part_of(relay, request, topics, request.max_wait_ms, 1)
        try:
            answer, response, unchanged = await ask(
                self._services, relay, call, broker, message, waiting=False
            )
        except ClientError as error:
            return failed(relay, broker, message, error)
        if not names_brokers(response) and unchanged and answer.version == call.api_version:
            call.finish(_HEAD(len(answer.frame), call.correlation_id), memoryview(answer.frame)[4:])
        else:
            call.answer(response)
        relay.upstreams(call).release()
        return None


class _Several:
    """One Fetch of partitions that several brokers lead, or about which no broker is asked."""

    def __init__(self, services: Services, relay: Relay, call: Call, request: kafka.FetchRequest) -> None:
        self._services = services
        self._relay = relay
        self._call = call
        self._request = request
        self._ids = ids_of(request)
        self._upstreams = relay.upstreams(call)
        self._now_s = asyncio.get_running_loop().time
        self._until_s = self._now_s() + max(0, request.max_wait_ms) / 1000
        self._shares = 1
        self._found: dict[str, list[kafka.FetchResponsePartitionData]] = {
            topic.topic: [] for topic in request.topics
        }
        self._urgent = False
        self._throttle_ms = 0

    async def fetch(
        self,
        parts: Mapping[Node, Topics],
        answered: Sequence[tuple[str, kafka.FetchResponsePartitionData]],
        unknown: Sequence[kafka.FetchResponseFetchableTopicResponse],
    ) -> None:
        """Answers. `answered`: partitions that no broker is asked about; `unknown`: the answers about topics
        without a name."""
        self._urgent = bool(unknown)
        self._shares = max(1, len(parts))
        upstreams = self._upstreams
        upstreams.watermarks = {
            key: upstreams.watermarks[key]
            for topic in self._request.topics
            for entry in topic.partitions
            if (key := place_of(topic.topic, topic.topic_id, entry.partition)) in upstreams.watermarks
        }
        for topic, answer in answered:
            self._urgent = True
            self._found[topic].append(answer)
        for broker, topics in parts.items():
            self._ask(broker, topics)
        waiting = await self._wait(parts)
        for broker in waiting:
            upstreams.want(broker, False)
            for topic, entries in parts[broker].items():
                for entry in entries:
                    place = place_of(topic, self._ids[topic], entry.partition)
                    known = upstreams.watermarks.get(place, Watermarks())
                    self._found[topic].append(nothing_new(entry.partition, known))
        response = kafka.FetchResponseFetchableTopicResponse
        responses = [response(name, self._ids[name], found) for name, found in self._found.items()]
        self._call.answer(kafka.FetchResponse(self._throttle_ms, responses=[*responses, *unknown]))
        upstreams.release()

    def _ask(self, broker: Node, topics: Topics) -> None:
        """Ask that broker, unless the same request waits there already."""
        upstreams = self._upstreams
        requested = (
            self._call.api_version,
            self._request.isolation_level,
            tuple(
                (topic, self._ids[topic], one.partition, one.fetch_offset, one.current_leader_epoch)
                for topic, entries in topics.items()
                for one in entries
            ),
        )
        parked = upstreams.parked.get(broker)
        if parked is not None:
            if parked.requested == requested and self._now_s() < parked.until_s + LEFT_S:
                upstreams.want(broker, True)
                return
            parked.task.cancel()
            upstreams.drop(broker)
        first = any(
            place_of(topic, self._ids[topic], one.partition) not in upstreams.watermarks
            for topic, entries in topics.items()
            for one in entries
        )
        until_s = self._now_s() if first or self._urgent else self._until_s
        wait_ms = max(0, math.ceil((until_s - self._now_s()) * 1000))
        message = part_of(self._relay, self._request, topics, wait_ms, self._shares)
        task = asyncio.get_running_loop().create_task(self._answer(broker, message))
        upstreams.parked[broker] = Parked(requested, task, until_s, first)

    async def _answer(self, broker: Node, message: kafka.FetchRequest) -> kafka.FetchResponse:
        """A broker's answer about the partitions that it leads; a failed connection is an error of each."""
        relay = self._relay
        try:
            _, response, _ = await ask(self._services, relay, self._call, broker, message, waiting=True)
        except ClientError as error:
            return failed(relay, broker, message, error)
        return response

    async def _wait(self, parts: Mapping[Node, Topics]) -> list[Node]:
        """Until there are records, an error or no more time. Brokers that have not answered; one that was
        never asked about these partitions before is waited for in any case."""
        upstreams = self._upstreams
        waiting = set(parts)
        while waiting:
            tasks = {upstreams.parked[broker].task: broker for broker in waiting}
            first = any(upstreams.parked[broker].first for broker in waiting)
            left_s = 0.0 if self._urgent else max(0.0, self._until_s - self._now_s())
            done, _ = await asyncio.wait(
                tasks, timeout=None if first else left_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                break
            for task in done:
                broker = tasks[task]
                del upstreams.parked[broker]
                response = task.result()
                if self._has_news(response) or self._urgent or self._now_s() >= self._until_s:
                    waiting.remove(broker)
                    self._throttle_ms = max(self._throttle_ms, response.throttle_time_ms)
                    for topic in response.responses:
                        self._found[topic.topic] += topic.partitions
                else:
                    self._ask(broker, parts[broker])  # it has nothing yet
        return [broker for broker in parts if broker in waiting]

    def _has_news(self, response: kafka.FetchResponse) -> bool:
        """Learn from a broker's answer. Returns whether there are records or errors in it, or a follower in
        place of records: the client asks once more, and that one is asked."""
        news = names_brokers(response)
        watermarks = self._upstreams.watermarks
        for topic in response.responses:
            for one in topic.partitions:
                if one.error_code:
                    news = True
                else:
                    seen = Watermarks(one.high_watermark, one.last_stable_offset, one.log_start_offset)
                    watermarks[place_of(topic.topic, topic.topic_id, one.partition_index)] = seen
                    news = news or bool(one.records)
        self._urgent = self._urgent or news
        return news


# ---- requests to brokers ----


def part_of(
    relay: Relay, request: kafka.FetchRequest, topics: Topics, wait_ms: int, shares: int
) -> kafka.FetchRequest:
    """The request to one broker: without a session, and with a rack where a follower is sought. `shares`: the
    number of brokers among which the client's bytes are divided."""
    ids = ids_of(request)
    most = max(1, min(request.max_bytes, relay.settings.fetch_max_bytes, ANSWER_MAX_BYTES) // shares)
    return kafka.FetchRequest(
        replica_id=CONSUMER,
        max_wait_ms=wait_ms,
        min_bytes=-(-request.min_bytes // shares),
        max_bytes=most,
        isolation_level=request.isolation_level,
        session_id=0,
        session_epoch=NO_SESSION,
        topics=[kafka.FetchRequestFetchTopic(name, ids[name], entries) for name, entries in topics.items()],
        rack_id=relay.nearby.rack(request, topics),
    )


def patience_s(relay: Relay, message: kafka.FetchRequest) -> float:
    """Time for an answer; a broker that takes longer is taken for dead."""
    return (max(0, message.max_wait_ms) + relay.cluster.request_timeout_ms) / 1000


async def ask(
    services: Services, relay: Relay, call: Call, broker: Node, message: kafka.FetchRequest, *, waiting: bool
) -> tuple[RawAnswer, kafka.FetchResponse, bool]:
    """A broker's answer, as it came and read, and whether both say the same; `waiting`: see
    `Upstreams.connection`. Raises ClientError."""
    connection = await relay.upstreams(call).connection(broker, waiting)
    timeout_s = patience_s(relay, message)

    async def answered(newest: int | None) -> RawAnswer:
        asking = await request_for(services, call, message, newest, raw=True)
        answer: RawAnswer = await connection.ask(asking, timeout_s, request_timeout_s=timeout_s)
        return answer

    answer = await answered(None)
    response = read(relay, answer, message)
    changed = relay.nearby.learn(broker, message, response)
    if answer.version > LEADERS_VERSION and is_out_of_range(response):
        for topic in message.topics:
            for entry in topic.partitions:
                entry.last_fetched_epoch = UNKNOWN  # that version cannot carry it
        of_leader = await answered(LEADERS_VERSION)
        confirmed = read(relay, of_leader, message)
        learned = relay.nearby.learn(broker, message, confirmed)
        if answer.version < TOPIC_IDS_VERSION:
            return of_leader, confirmed, not learned
        changed = keep_confirmed(response, confirmed) or changed
    return answer, response, not changed


# ---- answers ----


def is_out_of_range(response: kafka.FetchResponse) -> bool:
    """Whether an offset is, by the answer."""
    out = ErrorCode.OFFSET_OUT_OF_RANGE
    return any(one.error_code == out for topic in response.responses for one in topic.partitions)


def keep_confirmed(response: kafka.FetchResponse, confirmed: kafka.FetchResponse) -> bool:
    """`confirmed` came from a leader, by name: of a topic that was made again perhaps, so none of its records
    count. Whether an offset is out of range in `response` alone; now the client looks for the leader."""
    out, changed = ErrorCode.OFFSET_OUT_OF_RANGE, False
    sure = {
        (topic.topic, one.partition_index)
        for topic in confirmed.responses
        for one in topic.partitions
        if one.error_code == out
    }
    for topic in response.responses:
        for one in topic.partitions:
            if one.error_code == out and (topic.topic, one.partition_index) not in sure:
                one.error_code, changed = ErrorCode.NOT_LEADER_OR_FOLLOWER, True
    return changed


def read(relay: Relay, answer: RawAnswer, message: kafka.FetchRequest) -> kafka.FetchResponse:
    """The answer to the message, its records as views of it, its topics with names and, where the message has
    them, ids. Raises ConnectionLostError for one that cannot be read."""
    try:
        response = decode_response(kafka.FetchResponse, answer.frame, answer.version)[1]
    except MalformedError as error:
        raise ConnectionLostError(f"an answer to Fetch cannot be read: {error}") from error
    if response.error_code:
        raise BrokerError("a broker refused a Fetch", response.error_code)
    ids = ids_of(message)
    names = {topic_id: name for name, topic_id in ids.items()}
    for topic in response.responses:
        try:
            if answer.version >= TOPIC_IDS_VERSION:
                topic.topic = names[topic.topic_id]
            else:
                topic.topic_id = ids[topic.topic]
        except KeyError:
            raise ConnectionLostError("an answer to Fetch is about a topic that was not asked for") from None
        for one in topic.partitions:
            if one.error_code:
                relay.look_at(topic.topic, one.error_code)
    return response


def names_brokers(response: kafka.FetchResponse) -> bool:
    """Whether brokers were named in it; now they are not."""
    named = bool(response.node_endpoints)
    response.node_endpoints = []
    for topic in response.responses:
        for one in topic.partitions:
            if one.preferred_read_replica != UNKNOWN or one.current_leader.leader_id != UNKNOWN:
                named = True
                one.preferred_read_replica = UNKNOWN
                one.current_leader = kafka.FetchResponseLeaderIdAndEpoch()
    return named


def failed(
    relay: Relay, broker: Node, message: kafka.FetchRequest, error: ClientError
) -> kafka.FetchResponse:
    """No answer: the client looks for the leaders again, as this node does."""
    topics = {topic.topic: topic.partitions for topic in message.topics}
    relay.topology.suspect(topics)
    relay.nearby.failed(broker, topics)
    code = code_of(error, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    response = kafka.FetchResponseFetchableTopicResponse
    return kafka.FetchResponse(
        responses=[
            response(
                topic.topic, topic.topic_id, [failed_partition(p.partition, code) for p in topic.partitions]
            )
            for topic in message.topics
        ]
    )


def nothing_new(partition: int, known: Watermarks) -> kafka.FetchResponsePartitionData:
    """An answer without records."""
    return kafka.FetchResponsePartitionData(
        partition,
        high_watermark=known.high,
        last_stable_offset=known.last_stable,
        log_start_offset=known.log_start,
        aborted_transactions=None,
        records=b"",
    )
