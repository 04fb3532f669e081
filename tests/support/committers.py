"""Clients that commit as fast as they are answered, and remember what was acknowledged to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.rawclient import AsyncRawConnection, ConnectionClosedError, RawConnection

COMMIT_VERSION, FETCH_VERSION = 7, 5
PATIENCE_S = 60.0


@dataclass(slots=True)
class Committer:
    """Commits 1, 2, 3, ... for one partition. Offsets are -1 as long as there is none."""

    group_id: str
    partition: int
    topic: str
    member_id: str = ""
    generation: int = -1
    metadata: str = ""
    acknowledged: int = -1
    attempted: int = -1

    def request(self, offset: int) -> OffsetCommitRequest:
        """The commit of `offset`."""
        partition = OffsetCommitRequestPartition(
            partition_index=self.partition, committed_offset=offset, committed_metadata=self.metadata
        )
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )


async def commit_until_cut_off(
    bootstrap: str, committers: Sequence[Committer], enough: int, cut: asyncio.Event
) -> None:
    """All commit at once, each on its connection, until the server is gone.

    `cut` is set when `enough` commits have been acknowledged: then it is time to kill the server. Raises
    `AssertionError` when a commit is refused or the server stays on.
    """
    acknowledged = 0
    last = max(one.attempted for one in committers)

    async def commit(one: Committer) -> None:
        nonlocal acknowledged
        offset = last
        try:
            connection = await AsyncRawConnection.connect(bootstrap)
        except ConnectionRefusedError:
            return  # the server was killed while the last ones came
        try:
            while True:
                offset += 1
                one.attempted = offset
                answer = await connection.call(one.request(offset), COMMIT_VERSION)
                code = answer.topics[0].partitions[0].error_code
                assert code == 0, f"commit of {offset}: {error_name(code)}"
                one.acknowledged = offset
                acknowledged += 1
                if acknowledged == enough:
                    cut.set()
        except ConnectionClosedError:
            pass
        finally:
            await connection.close()

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        for one in committers:
            tasks.create_task(commit(one))


def committed(bootstrap: str, committers: Sequence[Committer]) -> list[int]:
    """The offset that the server reports as committed, for each committer; -1 where there is nothing."""
    found = []
    with RawConnection(bootstrap) as connection:
        for one in committers:
            topics = [OffsetFetchRequestTopic(name=one.topic, partition_indexes=[one.partition])]
            answer = connection.call(OffsetFetchRequest(group_id=one.group_id, topics=topics), FETCH_VERSION)
            assert answer.error_code == 0
            found.append(answer.topics[0].partitions[0].committed_offset)
    return found
