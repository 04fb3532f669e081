"""Every field of every request at its extremes, sent by who else is in order: a live member of a group, a
producer with an open transaction. So what is at its extreme comes to where it is used."""

from __future__ import annotations

import asyncio
import copy
import itertools
import random
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crc32c import crc32c

from ringleader.coordinator.server.handlers.checks import METADATA_BY_ID_VERSION
from ringleader.protocol import messages as kafka
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import decode_response, encode_request, request_class, response_class
from ringleader.protocol.schema import Message
from tests.protocol.test_refusals import codes as codes_of
from tests.support.extremes import decent, extremes_of, places, spoil_some, spoiled
from tests.support.served import Client, connected
from tests.support.shares import WHOLE
from tests.support.topiclog import produced

PATIENCE_S = 0.25
"""A request that waits for others, or for time to pass, is left then."""
ANSWER_S = 20.0
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
"""A fresh transactional id is asked for again: the broker makes its topic of transactions, or the answer was
about the one before."""
WAITS = (kafka.JoinGroupRequest, kafka.SyncGroupRequest, kafka.FetchRequest)
INITS = kafka.InitProducerIdRequest
AT_ONCE = 16
TOPIC = "orders"

GROUP, MEMBER, INSTANCE, TRANSACTION = "the-group", "the-member", "the-instance", "the-transaction"
OF_CONSUMERS = "of-consumers"
TOPIC_ID = b"the-topic's-id.."
GENERATION, PRODUCER, EPOCH = 7_654_321, 9_876_543_210, 23_456
"""These stand for what the sender has when it sends."""
RECORDS = produced(PRODUCER, 0, epoch=EPOCH, transactional=True)
SUBSCRIPTION = Subscription([]).encode(1)
MADE_UP = [(0, 0, 0), (2**63 - 1, 0, 0), (2**63 - 1, 32_767, 2**31 - 1), (1, 32_767, 2**31 - 1), (-2, -1, -1)]
"""Producer ids, epochs and sequences."""

NAMED: Mapping[str, Any] = {
    "topic": TOPIC,
    "topics": TOPIC,
    "name": TOPIC,
    "resource_name": TOPIC,
    "group": GROUP,
    "groups": GROUP,
    "group_id": GROUP,
    "group_ids": OF_CONSUMERS,
    "key": GROUP,
    "coordinator_keys": GROUP,
    "groups_names": GROUP,
    "member_id": MEMBER,
    "group_instance_id": INSTANCE,
    "generation_id": GENERATION,
    "generation_id_or_member_epoch": GENERATION,
    "protocol_name": "range",
    "transactional_id": TRANSACTION,
    "v3_and_below_transactional_id": TRANSACTION,
    "producer_id": PRODUCER,
    "producer_epoch": EPOCH,
    "v3_and_below_producer_id": PRODUCER,
    "v3_and_below_producer_epoch": EPOCH,
    "records": RECORDS,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
    "resource_pattern_type": 3,
    "pattern_type": 3,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
    "states_filter": "Stable",
    "types_filter": "classic",
    "endpoint_type": 1,
    "broker_ids": 1,
}
"""The values for the fields of these names."""
OF_KIND: Mapping[type[Message], Mapping[str, Any]] = {
    kafka.FetchRequest: {"topic_id": TOPIC_ID},
    kafka.ProduceRequest: {"topic_id": TOPIC_ID},
    kafka.JoinGroupRequest: {"name": "range", "metadata": SUBSCRIPTION},
    kafka.DeleteRecordsRequest: {"partition_index": 1},
    kafka.AlterClientQuotasRequest: {"key": "producer_byte_rate", "value": 1e12, "entity_name": "somebody"},
    kafka.AlterUserScramCredentialsRequest: {"salt": b"salt" * 5, "salted_password": bytes(32)},
    kafka.CreatePartitionsRequest: {"validate_only": True, "count": 3},
}
"""The same, in requests of one kind. The first partition keeps its records."""
CONFIG = {"name": "retention.ms", "value": "604800000", "config_operation": 0}
"""The entries for the configurations of a request."""
MADE = (kafka.CreateTopicsRequest, kafka.DeleteTopicsRequest)
"""Topics are made and deleted under names of their own."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Of a batch."""
CRC_AT, CRC_START = 17, 21
INTEGERS = {"b": "int8", "h": "int16", "i": "int32", "I": "uint32", "q": "int64"}


@dataclass(frozen=True, slots=True)
class Probe:
    """One request. `whole`: nothing in it is at an extreme."""

    label: str
    request: Message
    version: int
    whole: bool = False
    extreme: str = ""
    """The field at an extreme, and which extreme, in any version."""


async def served_apis(host: str, port: int) -> list[tuple[type[Message], int]]:
    """The APIs that it advertises, with each version."""
    async with connected(host, port) as client:
        found = await client.call(kafka.ApiVersionsRequest("name", "1"), 3)
    return [
        (kind, version)
        for one in found.api_keys
        if (kind := request_class(one.api_key)) is not None
        for version in range(
            max(one.min_version, kind.MIN_VERSION), min(one.max_version, kind.MAX_VERSION) + 1
        )
    ]


def bases(kind: type[Message], version: int) -> list[Any]:
    """Requests as decent clients send them, in each way that one kind has."""
    named = {**NAMED, **OF_KIND.get(kind, {})}
    if kind in MADE:
        named["name"] = named["topic_names"] = f"made-{version}"
    base: Any = decent(kind, version, named)
    for place in places(base, version):
        if "configs" in place.path and isinstance(place.path[-1], str) and place.path[-1] in CONFIG:
            place.put(base, CONFIG[place.path[-1]])
    others = [copy.deepcopy(base) for _ in range(3)]
    if kind is kafka.InitProducerIdRequest:
        for other, transactional_id in zip(others, (None, TRANSACTION), strict=False):
            other.transactional_id, other.producer_id, other.producer_epoch = transactional_id, -1, -1
        return [base, *others[:2]]
    if kind is kafka.ProduceRequest:
        others[0].transactional_id = None
        others[0].topic_data[0].partition_data[0].records = produced(-1, -1, epoch=-1)
        return [base, others[0]]
    if kind is kafka.CreateTopicsRequest:
        base.topics[0].assignments = []
        topic = others[0].topics[0]
        topic.num_partitions = topic.replication_factor = -1
        return [base, others[0]]
    if kind is kafka.ConsumerGroupHeartbeatRequest:
        for joins in (base, others[0]):
            joins.group_id, joins.member_epoch, joins.rebalance_timeout_ms = OF_CONSUMERS, 0, 30_000
            joins.topic_partitions, joins.subscribed_topic_regex = [], None
            joins.instance_id, joins.server_assignor = None, "range"
        others[0].member_epoch = -1
        return [base, others[0]]
    if kind is kafka.AlterUserScramCredentialsRequest:
        base.deletions = []
        return [base, *others[:1]]
    if kind is kafka.MetadataRequest and version >= METADATA_BY_ID_VERSION:
        others[0].topics[0].name = None
        return [base, others[0]]
    return [base]


def sweep(apis: Sequence[tuple[type[Message], int]]) -> Iterator[Probe]:
    """All of them as they are, and with one field at an extreme."""
    for kind, version in apis:
        for number, base in enumerate(bases(kind, version)):
            label = f"{kind.__name__} v{version} ({number})"
            yield Probe(label, base, version, whole=True)
            for change, request in spoiled(base, version):
                yield Probe(f"{label}: {change}", request, version, extreme=f"({number}): {change}")
        if kind is kafka.ProduceRequest:
            for change, records in _spoiled_batches():
                request = bases(kind, version)[0]
                request.topic_data[0].partition_data[0].records = records
                yield Probe(f"{kind.__name__} v{version}: {change}", request, version, extreme=change)


def drawn(apis: Sequence[tuple[type[Message], int]], rng: random.Random, combined: int) -> list[Probe]:
    """Each extreme in one version of those that have it (all of them in `make nightly`) and all requests
    without any, in any order; then as many `combinations`."""
    alike: dict[tuple[type[Message], str], list[Probe]] = {}
    for one in sweep(apis):
        alike.setdefault((type(one.request), one.extreme), []).append(one)
    probes = []
    for found in alike.values():
        probes += found if found[0].whole or WHOLE else [rng.choice(found)]
    rng.shuffle(probes)
    return [*probes, *combinations(apis, rng, combined)]


def _spoiled_batches() -> Iterator[tuple[str, bytes]]:
    for producer_id, epoch, sequence in MADE_UP:
        made = produced(producer_id, sequence, epoch=epoch, transactional=producer_id % 2 == 0)
        yield f"producer {(producer_id, epoch, sequence)}", made
    values = HEADER.unpack_from(RECORDS)
    for number, (code, value) in enumerate(zip(HEADER.format[1:], values, strict=True)):
        for extreme in extremes_of(INTEGERS[code], value):
            batch = bytearray(RECORDS)
            HEADER.pack_into(batch, 0, *values[:number], extreme, *values[number + 1 :])
            if code != "I":
                _sum_up(batch)
            yield f"field {number} of the batch is {extreme}", bytes(batch)


def _sum_up(batch: bytearray) -> None:
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CRC_START:])))


def combinations(
    apis: Sequence[tuple[type[Message], int]], rng: random.Random, count: int
) -> Iterator[Probe]:
    """`count` requests with several fields at an extreme."""
    for _ in range(count):
        kind, version = rng.choice(apis)
        request = copy.deepcopy(rng.choice(bases(kind, version)))
        if kind is kafka.AlterClientQuotasRequest:
            request.validate_only = True
        change = spoil_some(rng, request, version, 5)
        if kind is kafka.AlterClientQuotasRequest and not request.validate_only:
            continue  # its quota may be everybody's, and next to nothing
        yield Probe(f"{kind.__name__} v{version}: {change}", request, version)


MAY_BE_REFUSED: Mapping[type[Message], set[ErrorCode]] = {
    kafka.InitProducerIdRequest: {ErrorCode.CONCURRENT_TRANSACTIONS},
    kafka.MetadataRequest: {ErrorCode.UNKNOWN_TOPIC_ID},
    kafka.OffsetCommitRequest: {ErrorCode.UNKNOWN_TOPIC_ID},
    kafka.OffsetFetchRequest: {ErrorCode.UNKNOWN_TOPIC_ID},
    kafka.CreateTopicsRequest: {ErrorCode.TOPIC_ALREADY_EXISTS},
    kafka.DeleteTopicsRequest: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    kafka.CreatePartitionsRequest: {ErrorCode.INVALID_PARTITIONS},
    kafka.DeleteGroupsRequest: {ErrorCode.NON_EMPTY_GROUP},
    kafka.ConsumerGroupHeartbeatRequest: {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID},
    kafka.ConsumerGroupDescribeRequest: {ErrorCode.GROUP_ID_NOT_FOUND},
    kafka.AlterUserScramCredentialsRequest: {ErrorCode.DUPLICATE_RESOURCE},
    kafka.DescribeUserScramCredentialsRequest: {ErrorCode.RESOURCE_NOT_FOUND},
    kafka.SaslAuthenticateRequest: {ErrorCode.ILLEGAL_SASL_STATE},
    kafka.GetTelemetrySubscriptionsRequest: {ErrorCode.THROTTLING_QUOTA_EXCEEDED},
    kafka.PushTelemetryRequest: {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_RECORD,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    },
}
"""Errors of requests without an extreme, which all the same come to where it would be used."""


@dataclass
class Found:
    """The results of the requests so far."""

    sent: int = 0
    left: int = 0
    closed: list[tuple[str, int]] = field(default_factory=list)
    """The requests that were sent, and from which port."""
    wrong: list[str] = field(default_factory=list)
    refused: dict[type[Message], set[int]] = field(default_factory=dict)
    """The errors that requests without an extreme were answered with."""
    names: Iterator[int] = field(default_factory=itertools.count)
    """Each is used once, in a name that nobody else has."""

    def check(self, may_be_refused: Mapping[type[Message], set[ErrorCode]] = MAY_BE_REFUSED) -> None:
        """Raises AssertionError unless all is well, and requests came to where they are looked at."""
        print(f"{self.sent} sent, {len(self.closed)} closed, {self.left} left")
        assert self.wrong == []
        for kind, codes in self.refused.items():
            assert codes <= may_be_refused.get(kind, set()), f"{kind.__name__} is refused: {codes}"
        assert len(self.closed) < self.sent / 10, "hardly anything is answered"


class Sender:
    """One client: a member of its group and a producer in its transaction, as often as either is needed."""

    def __init__(self, host: str, port: int, number: int, found: Found) -> None:
        self._host, self._port = host, port
        self._found = found
        self._client: Client | None = None
        self._instance = f"instance-{number}" if number % 2 else None
        self._group = self._transaction = self._member = ""
        self._generation = self._producer = self._epoch = -1
        self._topic_id = b""

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = Client(*await asyncio.open_connection(self._host, self._port))
        return self._client

    async def close(self) -> None:
        """Hang up."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(self, probe: Probe) -> None:
        """One request: answered, or its connection closed."""
        if getattr(probe.request, "acks", -1) == 0:
            return  # it has no answer
        request = copy.deepcopy(probe.request)
        await self._fill_in(request, probe.version)
        try:
            frame = encode_request(request, probe.version, 7, "sweeper")
        except ValueError:
            return  # no client can send it
        client = await self._connected()
        waits = isinstance(request, WAITS)
        found = self._found
        found.sent += 1
        client.writer.write(frame)
        try:
            async with asyncio.timeout(PATIENCE_S if waits else ANSWER_S):
                size = int.from_bytes(await client.reader.readexactly(4), "big")
                answer = await client.reader.readexactly(size)
        except TimeoutError:
            found.left += 1
            if not waits:
                found.wrong.append(f"{probe.label}: no answer")
            await self.close()
        except (asyncio.IncompleteReadError, ConnectionError):
            found.closed.append((probe.label, client.writer.get_extra_info("sockname")[1]))
            await self.close()
        else:
            self._look_at(probe, answer)

    def _look_at(self, probe: Probe, answer: bytes) -> None:
        kind = response_class(probe.request.API_KEY)
        assert kind is not None
        number, response = decode_response(kind, answer, probe.version)
        codes = set(codes_of(response))
        if number != 7:
            self._found.wrong.append(f"{probe.label}: an answer to another request")
        if probe.whole and codes - {0}:
            self._found.refused.setdefault(type(probe.request), set()).update(codes - {0})

    # ---- who it is ----

    async def _fill_in(self, request: Message, version: int) -> None:
        """The real value in the place of its placeholder."""
        values = [(place, place.get(request)) for place in places(request, version)]
        stands = {value for _, value in values if isinstance(value, str | int | bytes)}
        if stands & {GROUP, MEMBER, GENERATION, INSTANCE}:
            await self._be_member()
        if stands & {TRANSACTION, PRODUCER, EPOCH} or any(RECORDS[:-1] in one for one in _bytes(stands)):
            await self._begin(is_open=not isinstance(request, INITS) or self._found.sent % 2 == 0)
        texts = {
            GROUP: self._group,
            MEMBER: self._member,
            INSTANCE: self._instance,
            TRANSACTION: self._transaction,
        }
        numbers = {GENERATION: self._generation, PRODUCER: self._producer, EPOCH: self._epoch}
        numbers |= {number + 1: value + 1 for number, value in numbers.items()}
        for place, value in values:
            if isinstance(value, str) and value in texts:
                place.put(request, texts[value])
            elif isinstance(value, int) and value in numbers:
                place.put(request, numbers[value])
            elif value == TOPIC_ID and place.spec.type == "uuid":
                place.put(request, await self._id_of_topic())
            elif isinstance(value, bytes) and place.spec.type == "records":
                place.put(request, self._records(value))

    async def _id_of_topic(self) -> bytes:
        if not self._topic_id:
            wanted = kafka.MetadataRequest([kafka.MetadataRequestTopic(name=TOPIC)])
            found = await (await self._connected()).call(wanted, 12)
            self._topic_id = found.topics[0].topic_id
        return self._topic_id

    def _records(self, value: bytes) -> bytes:
        """A batch, and what is left of one, with its producer; the checksum is right again."""
        size = len(RECORDS)
        return b"".join(self._batch(value[start : start + size]) for start in range(0, len(value), size))

    def _batch(self, value: bytes) -> bytes:
        if len(value) < HEADER.size:
            return value
        fields = list(HEADER.unpack_from(value))
        fields[9] = {PRODUCER: self._producer, PRODUCER + 1: self._producer + 1}.get(fields[9], fields[9])
        fields[10] = {EPOCH: self._epoch, EPOCH + 1: self._epoch + 1}.get(fields[10], fields[10])
        batch = bytearray(value)
        HEADER.pack_into(batch, 0, *fields)
        if fields[4] == crc32c(value[CRC_START:]):
            _sum_up(batch)
        return bytes(batch)

    async def _be_member(self) -> None:
        client = await self._connected()
        if self._member:
            beat = kafka.HeartbeatRequest(self._group, self._generation, self._member, self._instance)
            if (await client.call(beat, 3)).error_code == 0:
                return
        self._group = f"group-{next(self._found.names)}"
        join = kafka.JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            group_instance_id=self._instance,
            protocol_type="consumer",
            protocols=[kafka.JoinGroupRequestProtocol("range", SUBSCRIPTION)],
        )
        joined = await client.call(join, 5)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            join.member_id = joined.member_id
            joined = await client.call(join, 5)
        assert joined.error_code == 0
        self._member, self._generation = joined.member_id, joined.generation_id
        sync = kafka.SyncGroupRequest(
            self._group,
            self._generation,
            self._member,
            group_instance_id=self._instance,
            assignments=[kafka.SyncGroupRequestAssignment(self._member, b"mine")],
        )
        assert (await client.call(sync, 3)).error_code == 0

    async def _begin(self, *, is_open: bool) -> None:
        """A producer; if it is open, with a transaction that has a partition, and a group's offsets."""
        client = await self._connected()
        began = kafka.InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._transaction:
            began = await client.call(kafka.InitProducerIdRequest(self._transaction, 60_000), 1)
        if began.error_code:
            self._transaction = f"transaction-{next(self._found.names)}"
            async with asyncio.timeout(ANSWER_S):
                while began.error_code in NOT_YET:
                    began = await client.call(kafka.InitProducerIdRequest(self._transaction, 60_000), 1)
        assert began.error_code == 0, (self._transaction, began)
        self._producer, self._epoch = began.producer_id, began.producer_epoch
        if not is_open:
            return
        topic = kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic(TOPIC, [0])
        producer = (self._transaction, self._producer, self._epoch)
        added = await client.call(kafka.AddPartitionsToTxnRequest(*producer, [topic]), 1)
        assert set(codes_of(added)) == {0}
        added = await client.call(kafka.AddOffsetsToTxnRequest(*producer, self._group or "nobodys"), 1)
        assert added.error_code == 0


def _bytes(values: set[Any]) -> Iterator[bytes]:
    return (one for one in values if isinstance(one, bytes))


async def send_all(host: str, port: int, probes: Sequence[Probe], found: Found) -> None:
    """All of these, some at once."""
    left = iter(probes)

    async def some(number: int) -> None:
        sender = Sender(host, port, number, found)
        try:
            for one in left:
                await sender.ask(one)
        finally:
            await sender.close()

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(some(number))
