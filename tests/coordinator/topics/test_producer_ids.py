"""Producer ids that a client made up: its records are appended, and nothing is learned from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.coordinator.topics.catalog import BELIEVED_PRODUCER_IDS
from ringleader.coordinator.topics.disk import write_number
from ringleader.coordinator.topics.log import PRODUCER_IDS_FILE
from ringleader.protocol.wire import INT64_MAX
from tests.support.topiclog import killed, produced, topic_log

GIVEN = 1_000


@pytest.mark.parametrize("made_up", [GIVEN, GIVEN + 1, BELIEVED_PRODUCER_IDS, INT64_MAX - 1, INT64_MAX])
async def test_a_made_up_id_is_not_remembered(tmp_path: Path, made_up: int) -> None:
    async with topic_log(tmp_path, given_ids=GIVEN) as topics:
        await topics.create("orders", 1)
        batch = produced(made_up, 7, epoch=32_767)
        for expected in range(2):  # the owner of the id could not have sent the batch before
            assert (await topics.append("orders", 0, batch)).base_offset == expected
        given = {await topics.new_producer_id() for _ in range(3)}
        assert given == {GIVEN, GIVEN + 1, GIVEN + 2}
    for _ in range(2):
        async with topic_log(tmp_path) as topics:
            fresh = await topics.new_producer_id()
            assert fresh not in given | {made_up}
            assert fresh < BELIEVED_PRODUCER_IDS
            given.add(fresh)


async def test_a_producer_with_an_id_that_was_made_up_before_is_not_fenced(tmp_path: Path) -> None:
    async with topic_log(tmp_path, given_ids=GIVEN) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(GIVEN, 7, epoch=32_767))
        own = await topics.new_producer_id()
        assert own == GIVEN
        for offset in (1, 1):  # remembered from here on: the second one is a duplicate
            assert (await topics.append("orders", 0, produced(own, 0))).base_offset == offset


@pytest.mark.parametrize("made_up", [BELIEVED_PRODUCER_IDS, INT64_MAX])
async def test_a_start_after_a_crash_learns_no_made_up_id(tmp_path: Path, made_up: int) -> None:
    """It reads the records, where no index vouches for them."""
    async with topic_log(tmp_path / "live", given_ids=GIVEN) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(made_up, 7, epoch=32_767))
        given = await topics.new_producer_id()
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left) as topics:
        assert given < await topics.new_producer_id() < BELIEVED_PRODUCER_IDS
        assert made_up not in topics.partition("orders", 0).producers


@pytest.mark.parametrize("stored", [INT64_MAX - 5, INT64_MAX, INT64_MAX + 1, INT64_MAX + GIVEN])
async def test_a_directory_that_believed_a_made_up_id_heals(
    tmp_path: Path, stored: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with topic_log(tmp_path, given_ids=GIVEN) as topics:
        await topics.create("orders", 1)
        for made_up in (BELIEVED_PRODUCER_IDS, INT64_MAX):
            await topics.append("orders", 0, produced(made_up, 0, epoch=32_767))
    write_number(tmp_path / PRODUCER_IDS_FILE, stored)
    given: list[int] = []
    for _ in range(3):
        async with topic_log(tmp_path) as topics:
            given += [await topics.new_producer_id() for _ in range(2)]
    assert len(set(given)) == 6
    assert all(BELIEVED_PRODUCER_IDS <= one < INT64_MAX - BELIEVED_PRODUCER_IDS // 2 for one in given)
    assert caplog.text.count("producer ids go on at another number") == 1
