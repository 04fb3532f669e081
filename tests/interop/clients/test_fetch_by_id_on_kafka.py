"""Topics are fetched by their ids (KIP-516), in sessions too, as from Apache Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import ZERO_UUID
from tests.interop.clients.beside import assert_alike, on_both
from tests.support.served import Client, connected
from tests.support.topiclog import batch

VERSIONS = (13, 15, 18)
STRANGE = b"\x07" * 16
PARTITIONS = 2

Place = tuple[str, int, int]
"""Name of an id, partition, offset."""


async def create(client: Client, topic: str) -> bytes:
    """A topic with five records in each partition; its id."""
    created = kafka.CreateTopicsRequestCreatableTopic(topic, PARTITIONS, 1)
    async with asyncio.timeout(60):
        while True:
            made = await client.call(kafka.CreateTopicsRequest(topics=[created], timeout_ms=10_000), 7)
            if not made.topics[0].error_code:
                break
    for partition in range(PARTITIONS):
        data = kafka.ProduceRequestPartitionProduceData(partition, batch(5))
        topics = [kafka.ProduceRequestTopicProduceData(name=topic, partition_data=[data])]
        request = kafka.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
        async with asyncio.timeout(60):
            while (await client.call(request, 9)).responses[0].partition_responses[0].error_code:
                pass
    topic_id: bytes = made.topics[0].topic_id
    return topic_id


async def delete(client: Client, topic: str) -> None:
    """Until it is gone from all that a broker knows."""
    topics = [kafka.DeleteTopicsRequestDeleteTopicState(name=topic)]
    answer = await client.call(kafka.DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)
    assert not answer.responses[0].error_code
    wanted = kafka.MetadataRequest([kafka.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    async with asyncio.timeout(60):
        while not (await client.call(wanted, 9)).topics[0].error_code:
            pass


class Play:
    """A client that fetches in that version, and the answers to it."""

    def __init__(self, client: Client, version: int, found: dict[str, Any]) -> None:
        self._client = client
        self._version = version
        self._found = found
        self.ids = {"zero": ZERO_UUID, "strange": STRANGE}
        self.session = 0

    async def fetch(
        self,
        what: str,
        epoch: int,
        *places: Place,
        session: int | None = None,
        forgets: tuple[tuple[str, int], ...] = (),
        version: int | None = None,
        **more: Any,
    ) -> int:
        """Note the answer. Returns its session id."""
        topic, part = kafka.FetchRequestFetchTopic, kafka.FetchRequestFetchPartition
        request = kafka.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session if session is None else session,
            session_epoch=epoch,
            topics=[
                topic(name, self.ids.get(name, ZERO_UUID), [part(index, -1, offset, -1, -1, 1 << 20)])
                for name, index, offset in places
            ],
            forgotten_topics_data=[
                kafka.FetchRequestForgottenTopic(name, self.ids[name], [index]) for name, index in forgets
            ],
            **more,
        )
        answer = await self._client.call(request, version or self._version)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        key = "none" if not answer.session_id else "its" if answer.session_id == self.session else "another"
        partitions = sorted(
            (
                topic.topic or names[topic.topic_id],
                one.partition_index,
                one.error_code,
                one.high_watermark,
                one.log_start_offset,
                one.aborted_transactions is None,
                len(one.records or b"") // len(batch(5)),
            )
            for topic in answer.responses
            for one in topic.partitions
        )
        self._found[f"{what}, v{self._version}"] = (answer.error_code, key, partitions)
        return int(answer.session_id)

    async def open(self, what: str, *places: Place, **more: Any) -> None:
        """Begin a session, in place of the one before."""
        self.session = await self.fetch(what, 0, *places, **more)
        assert self.session > 0


async def _played(client: Client, version: int, found: dict[str, Any]) -> None:
    play = Play(client, version, found)
    fetch, a, b = play.fetch, f"a{version}", f"b{version}"
    play.ids["a"], play.ids["b"] = await create(client, a), await create(client, b)
    await fetch("without a session", -1, ("a", 0, 0), ("b", 1, 2), ("a", 1, 5), ("a", 7, 0))
    await fetch("ids that no topic has", -1, ("strange", 0, 0), ("a", 0, 0), ("strange", 1, 0))
    await fetch("the zero id", -1, ("zero", 0, 0))
    await fetch("one partition twice", -1, ("a", 0, 5), ("b", 0, 0), ("a", 0, 1))
    await play.open("a session", ("a", 0, 5), ("b", 0, 5), ("strange", 0, 0))
    await fetch("nothing new but an error", 1)
    await fetch("the id forgotten", 2, forgets=(("strange", 0), ("a", 1)))
    await fetch("nothing new", 3)
    await fetch("by name", 4, (a, 0, 0), version=12)
    await fetch("by id after that", 4, ("a", 0, 0))
    await play.open("a session by name", (a, 0, 5), version=12)
    await fetch("by id in a session by name", 1, ("a", 0, 0))
    await fetch("with a wrong epoch, too", 7, ("a", 0, 0))
    await fetch("by name after that", 1, (a, 0, 0), version=12)
    await play.open("a session before the deletion", ("a", 0, 5), ("b", 0, 5))
    await delete(client, a)
    await fetch("a topic that was deleted", 1, ("b", 1, 5))
    await fetch("once more", 2)
    await fetch("another partition of it", 3, ("a", 1, 0))
    await fetch("without a session, a topic that was deleted", -1, ("a", 0, 0), session=0)
    play.ids["new"] = await create(client, a)
    await fetch("a topic that was made again", 4)
    await fetch("a partition named again", 5, ("a", 0, 0))
    await fetch("its new id beside the old one", 6, ("new", 0, 5))
    await fetch("the old id forgotten", 7, forgets=(("a", 0), ("a", 1)))
    await fetch("the new id goes on", 8, ("new", 0, 0))
    await fetch("without a session, a topic that was made again", -1, ("a", 0, 0), ("new", 0, 0), session=0)
    await play.open("a session of nothing that is there", ("strange", 0, 0))
    await fetch("again", 1)
    await fetch("a whole request in its place", 0, ("new", 0, 5))


async def played(host: str, port: int) -> dict[str, Any]:
    """The answer to each step."""
    found: dict[str, Any] = {}
    async with connected(host, port) as client:
        for version in VERSIONS:
            await _played(client, version, found)
    return found


async def test_topics_are_fetched_by_id_as_from_kafka(tmp_path: Path) -> None:
    ours, theirs = await on_both(tmp_path, played)
    assert_alike(ours, theirs)
