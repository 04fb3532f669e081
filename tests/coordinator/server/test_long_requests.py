"""Long work for one client holds up no other: it is refused, or worked on in slices."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator import run_queue
from ringleader.coordinator.server.handlers import data, topics
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.protocol.errors import KafkaError
from ringleader.protocol.frames import decode_response, encode_request, response_class
from ringleader.protocol.messages import (
    DescribeGroupsRequest,
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ringleader.protocol.schema import Message
from tests.support.groupclient import Member, form
from tests.support.served import Client, Served, serving, until

PARTITIONS = 8_000
TOPICS = {f"topic-{number}": PARTITIONS for number in range(5)}
LEAST_TURNS = 3
"""Heartbeats of another connection that are answered while one of these requests is worked on. A loop that is
held answers one before and one after it."""


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are many turns, however fast the machine."""
    monkeypatch.setattr(run_queue, "TURN_S", 0.0005)


async def long_call(client: Client, request: Message, version: int, bystander: Client, member: Member) -> Any:
    """The answer to a long request, after a look at whether others were served until its first bytes came."""
    client.send(request, version)
    head = asyncio.ensure_future(client.reader.readexactly(4))
    answered = 0
    while not head.done():
        assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
        answered += 1
    assert answered > LEAST_TURNS
    body = await client.reader.readexactly(int.from_bytes(head.result(), "big"))
    kind = response_class(request.API_KEY)
    assert kind is not None
    return decode_response(kind, body, version)[1]


def commit_of(count: int) -> OffsetCommitRequest:
    """For that many partitions of each topic, by nobody's member."""
    return OffsetCommitRequest(
        group_id="many",
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=index, committed_metadata=""
                    )
                    for index in range(count)
                ],
            )
            for name in TOPICS
        ],
    )


async def test_a_long_commit_and_its_long_answers() -> None:
    async with serving() as served, served.connect() as client, served.connect() as bystander:
        served.topics.partitions.update(TOPICS)
        member = await form(bystander, "bystanders")
        for _ in range(2):
            answer = await long_call(client, commit_of(3_000), 8, bystander, member)
            assert [len(topic.partitions) for topic in answer.topics] == [3_000] * 5
            assert {one.error_code for topic in answer.topics for one in topic.partitions} == {0}
        named = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(range(PARTITIONS))) for name in TOPICS
        ]
        for wanted in (None, named):
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="many", topics=wanted)])
            [group] = (await long_call(client, request, 8, bystander, member)).groups
            assert (group.error_code, [topic.name for topic in group.topics]) == (0, list(TOPICS))
            for topic in group.topics:
                offsets = [one.committed_offset for one in topic.partitions]
                assert offsets == [*range(3_000), *[-1] * (len(offsets) - 3_000)]
                assert len(offsets) == (3_000 if wanted is None else PARTITIONS)


async def test_a_long_commit_with_entries_that_are_refused() -> None:
    async with serving() as served, served.connect() as client:
        served.topics.partitions.update(dict.fromkeys(TOPICS, 1_000))
        answer = await client.call(commit_of(2_000), 8)
        for topic in answer.topics:
            codes = {one.partition_index: one.error_code for one in topic.partitions}
            assert codes == {index: 0 if index < 1_000 else 3 for index in range(2_000)}
        assert [topic.name for topic in answer.topics] == list(TOPICS)


class Catalogue:
    """Topics, as far as Metadata and ListOffsets ask for them."""

    def __init__(self) -> None:
        self._topics = {
            name: TopicInfo(name=name, id=uuid.uuid4().bytes, partitions=count, configs={})
            for name, count in TOPICS.items()
        }

    def all(self) -> list[TopicInfo]:
        """As `Topics.all`."""
        return list(self._topics.values())

    def describe(self, name: str) -> TopicInfo | None:
        """As `Topics.describe`."""
        return self._topics.get(name)

    def describe_id(self, topic_id: bytes) -> TopicInfo | None:
        """As `Topics.describe_id`."""
        return next((info for info in self._topics.values() if info.id == topic_id), None)

    def partition(self, name: str, index: int) -> Any:
        """As `Topics.partition`, of which none is there."""
        raise KafkaError(3)

    readable = partition


def more(services: Services) -> dict[int, Handler]:
    """Handlers of topics and records."""
    own: Any = replace(services, topics=Catalogue())
    return {**data.register(own), **topics.register(own)}


LONG = {
    "Metadata of all": (MetadataRequest(topics=None), 8),
    "Metadata by name": (
        MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPICS]),
        9,
    ),
    "ListOffsets": (
        ListOffsetsRequest(
            topics=[
                ListOffsetsRequestListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsRequestListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(PARTITIONS)
                    ],
                )
                for name in TOPICS
            ]
        ),
        6,
    ),
}


@pytest.mark.parametrize(("request_", "version"), LONG.values(), ids=LONG.keys())
async def test_long_answers(request_: Any, version: int) -> None:
    async with serving(handlers=more) as served, served.connect() as client, served.connect() as bystander:
        member = await form(bystander, "bystanders")
        answer = await long_call(client, request_, version, bystander, member)
        assert [len(topic.partitions) for topic in answer.topics] == [PARTITIONS] * 5


async def test_a_peer_that_goes_away_during_a_long_answer_harms_nobody() -> None:
    async with serving(handlers=more) as served, served.connect() as bystander:
        member = await form(bystander, "bystanders")
        for _ in range(5):
            async with served.connect() as client:
                client.send(MetadataRequest(topics=None), 8)
                assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
        async with served.connect() as client:
            assert len((await client.call(MetadataRequest(topics=None), 8)).topics) == 5
        assert [line for line in served.log if line["level"] == "error"] == []


async def test_requests_behind_a_long_one_keep_their_order() -> None:
    async with serving(handlers=more) as served, served.connect() as client:
        numbers = [client.send(MetadataRequest(topics=None), 8) for _ in range(3)]
        for number in numbers:
            assert (await client.receive(MetadataRequest, 8))[0] == number


def empty_topics(count: int) -> bytes:
    """A frame of an OffsetFetch for topics without name and partitions, 3 bytes each."""
    topics = [OffsetFetchRequestTopics()] * count
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    return encode_request(request, 8, 1, "client")


async def _refused(served: Served, frame: bytes) -> bool:
    async with served.connect() as client:
        client.writer.write(frame)
        return await client.rest() == b""


async def test_too_many_elements_are_refused() -> None:
    """1.4 million topics in 4 MiB took three seconds."""
    async with serving() as served, served.connect() as bystander:
        member = await form(bystander, "bystanders")
        for count in (20_000, 100_000, 600_000):
            assert await _refused(served, empty_topics(count))
            assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
        lines = served.events("connection closed")
        assert ["more elements" in line["reason"] for line in lines] == [True] * 3
        async with served.connect() as client:
            client.writer.write(empty_topics(19_990))
            assert await client.frame()


async def test_many_short_requests_in_one_read_give_way() -> None:
    count = 1_000
    request = encode_request(DescribeGroupsRequest(groups=[f"g{number}" for number in range(9)]), 5, 1, "")
    async with serving() as served, served.connect() as client, served.connect() as bystander:
        member = await form(bystander, "bystanders")
        route = served.server.routes[DescribeGroupsRequest.API_KEY]
        client.writer.write(request * count)
        await until(lambda: route.requests > 0)
        assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
        assert 0 < route.requests < count
        for _ in range(count):
            await client.frame()
        assert route.requests == count
