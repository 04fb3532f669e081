"""Offsets under names of the application's own, with no topic behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.errors import BrokerError, RetriableError
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, member

PLACES: dict[TopicPartition, int] = {
    ("invoices of 2026", 0): 1,
    ("bucket/key#7", 1_000_000): 2**53,
    ("Rechnungen für Müller ☃", 2**31 - 1): 0,
    ("t", 3): 5,
}


@pytest.fixture
def open_minded() -> Iterator[Coordinator]:
    """A coordinator with a topic, whose groups may have six offsets under names of their own."""
    with Coordinator(topics={"t": 4}, group_max_own_offsets=6) as found:
        yield found


async def test_offsets_of_any_name_are_kept(open_minded: Coordinator) -> None:
    async with member(open_minded, auto_commit_interval_ms=3_600_000) as one:
        await one.wait_assigned(PATIENCE_S)
        await one.commit(PLACES)
        one.store({("more/work", 0): 9})
    open_minded.restart()
    async with member(open_minded) as two:
        await two.wait_assigned(PATIENCE_S)
        expected = {place: OffsetAndMetadata(offset) for place, offset in PLACES.items()}
        assert await two.committed() == expected | {("more/work", 0): OffsetAndMetadata(9)}
        assert await two.committed([("bucket/key#7", 1_000_000), ("other", 0)]) == {
            ("bucket/key#7", 1_000_000): OffsetAndMetadata(2**53)
        }
        with pytest.raises(RetriableError, match=r"t-4: UNKNOWN_TOPIC_OR_PARTITION"):
            await two.commit({("t", 4): 1, ("other", 4): 2}, timeout_s=0.2)
        assert ("other", 4) in await two.committed()
        with pytest.raises(BrokerError, match=r"one-more-0: POLICY_VIOLATION"):
            await two.commit({("one-more", 0): 1})
        with pytest.raises(RetriableError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await two.commit({("n" * 250, 0): 1}, timeout_s=0.2)
        await two.commit({("t", 3): 6})
    async with Admin(open_minded.bootstrap) as admin:
        (group,) = await admin.describe_groups(["jobs"])
        assert group.state == "Empty"


async def test_consumers_have_topics_only(coordinator: Coordinator) -> None:
    async with member(coordinator, protocol_type="consumer") as one:
        await one.wait_assigned(PATIENCE_S)
        with pytest.raises(RetriableError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await one.commit({("bucket/key#7", 0): 1}, timeout_s=0.2)


async def test_none_has_them_if_that_is_set() -> None:
    with Coordinator(group_max_own_offsets=0) as strict:
        async with member(strict) as one:
            await one.wait_assigned(PATIENCE_S)
            with pytest.raises(RetriableError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                await one.commit({("bucket/key#7", 0): 1}, timeout_s=0.2)
