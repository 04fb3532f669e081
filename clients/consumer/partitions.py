"""`PartitionConsumer`: reads the partitions that it is given, without a group."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from ringleader.clients.checks import MAX_INT32, in_range, seconds, wire_text
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.consumer.arguments import consumer_settings
from ringleader.clients.consumer.base import (
    LOOKUP_TIMEOUT_S,
    BaseConsumer,
)
from ringleader.clients.errors import BrokerError, RetriableError, is_retriable
from ringleader.clients.fetch.model import ConsumerSettings, FetchMetrics
from ringleader.clients.fetch.positions import Committed
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.clients.options import PartitionConsumerOptions, check_client
from ringleader.protocol.errors import ErrorCode, error_name


class PartitionConsumer(BaseConsumer):
    """A consumer of partitions that the application chooses: `async with PartitionConsumer(...) as consumer`,
    then `async for batch in consumer`. No group shares them out, and nothing is committed.

    One task asks for records at a time; the other methods may be called from any task of the same loop.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        partitions: Iterable[TopicPartition | str] = (),
        *,
        settings: ConsumerSettings | None = None,
        **options: Unpack[PartitionConsumerOptions],
    ) -> None:
        """Does not connect yet. Raises TypeError for an option that there is not, ValueError for values that
        cannot work.

        `partitions`: ("orders", 3), or "orders" for all that the topic has at the start; later `assign` takes
        others. `options`: the fields of `ConsumerSettings` but those of commits. Where `seek` has not set
        otherwise, reading begins where `auto_offset_reset` says.
        """
        call = "PartitionConsumer()"
        check_client(call, bootstrap, options, PartitionConsumerOptions)
        settings, _ = consumer_settings(call, settings, options)
        self._wanted = _checked(partitions)
        super().__init__("a consumer of partitions", bootstrap, settings, options)
        self._cluster: Cluster | None = None

    def _committed(self) -> Committed:
        return _nothing_committed

    async def _begin(self, cluster: Cluster, reader: Reader, timeout_s: float) -> None:
        self._cluster = cluster
        self._take(reader, await self._found(cluster, self._wanted, timeout_s))

    async def assign(
        self, partitions: Iterable[TopicPartition | str], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> None:
        """Read these from now on, and no others. Partitions that stay are read on as if nothing had happened.
        Raises BrokerError for a topic that does not exist, RetriableError when it cannot be looked up in
        time."""
        reader, wanted = self._running(), _checked(partitions)
        assert self._cluster is not None
        self._take(reader, await self._found(self._cluster, wanted, seconds(timeout_s)))

    def metrics(self) -> FetchMetrics:
        """The current counters."""
        return FetchMetrics(**self._figures())

    @staticmethod
    def _take(reader: Reader, partitions: set[TopicPartition]) -> None:
        reader.drop([one for one in reader.states if one not in partitions])
        added = sorted(partitions - set(reader.states))
        reader.add(added)
        reader.release(added)

    async def _found(
        self, cluster: Cluster, wanted: Sequence[TopicPartition | str], timeout_s: float
    ) -> set[TopicPartition]:
        topics = {one if isinstance(one, str) else one[0] for one in wanted}

        deadline_s = asyncio.get_running_loop().time() + timeout_s

        async def look() -> dict[str, int]:
            metadata = await cluster.metadata(topics, deadline_s=deadline_s)
            self._baseline.note(metadata, topics)
            for name in sorted(topics):
                topic = metadata.topics.get(name)
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
                if code:
                    again = is_retriable(code) and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    raise (RetriableError if again else BrokerError)(
                        f"topic {name!r}: {error_name(code)}", code
                    )
            return metadata.partition_counts(topics)

        counts = await retrying(deadline_s, Backoff(50, 1_000, random.random), look) if topics else {}
        found: set[TopicPartition] = set()
        for one in wanted:
            if isinstance(one, str):
                found.update((one, number) for number in range(counts[one]))
            elif one[1] < counts[one[0]]:
                found.add(one)
            else:
                text = f"topic {one[0]!r} has no partition {one[1]}: it has {counts[one[0]]}"
                raise BrokerError(text, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found


def _checked(partitions: Iterable[TopicPartition | str]) -> list[TopicPartition | str]:
    listed: list[TopicPartition | str] = [partitions] if isinstance(partitions, str) else list(partitions)
    for one in listed:
        whole = isinstance(one, str) and bool(one)
        if not whole and not (
            isinstance(one, tuple)
            and len(one) == 2
            and isinstance(one[0], str)
            and type(one[1]) is int
            and one[1] >= 0
        ):
            raise ValueError(f"a partition is ('topic', number), or 'topic' for all of them, not {one!r}")
        wire_text("the name of a topic", one if isinstance(one, str) else one[0])
        in_range("a partition", 0 if isinstance(one, str) else one[1], 0, MAX_INT32)
    return listed


async def _nothing_committed(
    _partitions: Iterable[TopicPartition],
) -> Mapping[TopicPartition, OffsetAndMetadata]:
    return {}
