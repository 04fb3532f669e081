"""Fetch sessions (KIP-227) are kept as by Apache Kafka, and its clients use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.interop.clients.beside import assert_alike, on_both
from tests.support.served import Client, connected
from tests.support.topiclog import batch

LOWEST, HIGHEST = -(2**31), 2**31 - 1
BATCH = batch(5, size=100)
VERSIONS = (7, 12)
IN_NO_CACHE = (LOWEST, HIGHEST)
"""Kafka divides the ids among caches, and none has these: it answers UNKNOWN_SERVER_ERROR, and this daemon
that there is no such session."""

Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Play:
    """A client of one session, and what it was answered."""

    def __init__(self, client: Client, version: int) -> None:
        self._client = client
        self._version = version
        self.session = 0
        self.found: dict[str, Any] = {}

    async def fetch(
        self,
        name: str,
        epoch: int,
        *places: Place,
        session: int | None = None,
        forgets: tuple[tuple[str, int], ...] = (),
        limit: int = HIGHEST,
    ) -> int:
        """Note the answer under that name. Returns its session id."""
        part = kafka.FetchRequestFetchPartition
        request = kafka.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=limit,
            session_id=self.session if session is None else session,
            session_epoch=epoch,
            topics=[
                kafka.FetchRequestFetchTopic(
                    topic, partitions=[part(index, -1, offset, partition_max_bytes=10**6)]
                )
                for topic, index, offset in places
            ],
            forgotten_topics_data=[
                kafka.FetchRequestForgottenTopic(topic, partitions=[index]) for topic, index in forgets
            ],
        )
        answer = await self._client.call(request, self._version)
        key = "none" if not answer.session_id else "its" if answer.session_id == self.session else "another"
        # Kafka answers partitions that it has not looked at last; here each stands where it is asked for.
        partitions = sorted(
            (
                topic.topic,
                one.partition_index,
                one.error_code,
                one.high_watermark,
                one.log_start_offset,
                len(one.records or b"") // len(BATCH),
            )
            for topic in answer.responses
            for one in topic.partitions
        )
        self.found[f"{name}, v{self._version}"] = (answer.error_code, key, partitions)
        return int(answer.session_id)

    async def open(self, name: str, *places: Place) -> None:
        """Begin a session, in place of the one before."""
        self.session = await self.fetch(name, 0, *places)
        assert self.session > 0


async def _append(client: Client, topic: str, partition: int) -> None:
    data = kafka.ProduceRequestPartitionProduceData(partition, BATCH)
    request = kafka.ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[kafka.ProduceRequestTopicProduceData(topic, partition_data=[data])],
    )
    async with asyncio.timeout(60):
        while (await client.call(request, 9)).responses[0].partition_responses[0].error_code:
            pass


async def _create(client: Client, topic: str, partitions: int) -> None:
    created = kafka.CreateTopicsRequestCreatableTopic(topic, partitions, 1)
    made = await client.call(kafka.CreateTopicsRequest(topics=[created], timeout_ms=10_000), 7)
    assert not made.topics[0].error_code
    for index in range(partitions):
        await _append(client, topic, index)


async def _delete_records(client: Client, topic: str, partition: int, offset: int) -> None:
    one = kafka.DeleteRecordsRequestDeleteRecordsPartition(partition, offset)
    request = kafka.DeleteRecordsRequest(
        topics=[kafka.DeleteRecordsRequestDeleteRecordsTopic(topic, [one])], timeout_ms=10_000
    )
    answer = await client.call(request, 2)
    assert not answer.topics[0].partitions[0].error_code


async def _played(client: Client, version: int) -> dict[str, Any]:
    a, b = f"a{version}", f"b{version}"
    await _create(client, a, 3)
    play = Play(client, version)
    fetch = play.fetch
    await play.open("begin", (a, 0, 5), (a, 1, 5), (a, 2, 0), (b, 0, 0))
    await fetch("what is not read, and an error", 1)
    await fetch("all of it read", 2, (a, 2, 5))
    await fetch("an error alone", 3)
    await fetch("a topic that is not there forgotten", 4, forgets=((b, 0),))
    await _append(client, a, 1)
    await fetch("new records", 5)
    await fetch("new records again", 6)
    await fetch("an offset behind the end", 7, (a, 1, 10), (a, 0, 6))
    await fetch("and again", 8)
    await fetch("an offset that is there", 9, (a, 0, 5))
    await fetch("nothing new after an error", 10)
    await fetch("the epoch before", 10)
    await fetch("the epoch after the next", 12)
    for epoch in (LOWEST, -2, HIGHEST):
        await fetch(f"epoch {epoch}", epoch)
        for key in (0, -1):
            await fetch(f"session {key}, epoch {epoch}", epoch, (a, 0, 0), session=key)
        for key in IN_NO_CACHE:
            await fetch(f"in no cache: {key}, epoch {epoch}", epoch, (a, 0, 0), session=key)
    await _delete_records(client, a, 0, 3)
    await fetch("a start that moved", 11)
    await fetch("and has been answered", 12)
    await fetch("a partition forgotten and named again", 13, (a, 2, 5), forgets=((a, 2), (a, 7), ("none", 0)))
    await _append(client, a, 2)
    await fetch("a partition that was forgotten", 14)
    await fetch("a partition added", 15, (a, 2, 0))
    await fetch("a partition named twice", 16, (a, 2, 0), (a, 2, 5))
    await fetch("all forgotten", 17, forgets=((a, 0), (a, 1), (a, 2)))
    await fetch("after that", 18)
    await play.open("begin again", (a, 0, 5))
    before = play.session
    await fetch("a whole request in its place", 0, (a, 1, 0))
    await fetch("the one that was there", 1, session=before)
    await play.open("and again a new one", (a, 0, 5))
    await fetch("the end", -1, (a, 0, 3))
    await fetch("behind the end", 1)
    await fetch("a session of nothing", 0)
    await play.open("in turns", (a, 0, 3), (a, 1, 0), (a, 2, 0))
    for epoch in range(1, 6):
        await fetch(f"in turns, {epoch}", epoch, limit=1)
    return play.found


async def played(host: str, port: int) -> dict[str, Any]:
    """The answer to each step."""
    found: dict[str, Any] = {}
    async with connected(host, port) as client:
        for version in VERSIONS:
            found |= await _played(client, version)
    return found


async def test_sessions_are_kept_as_by_kafka(tmp_path: Path) -> None:
    ours, theirs = await on_both(tmp_path, played)
    for name in [name for name in ours if name.startswith("in no cache")]:
        assert theirs.pop(name)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert ours.pop(name) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "none", [])
    assert_alike(ours, theirs)
