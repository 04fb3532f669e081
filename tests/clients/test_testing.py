"""The coordinator for tests."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ringleader import SyncPartitionConsumer, SyncProducer
from ringleader.clients.admin import Admin
from ringleader.testing.coordinator import Coordinator


async def topics_of(bootstrap: str) -> dict[str, int]:
    async with Admin(bootstrap) as admin:
        return {topic.name: len(topic.partitions) for topic in await admin.list_topics()}


def test_it_comes_with_topics_and_leaves_nothing_behind() -> None:
    others = set(threading.enumerate())  # a fixture of the whole session may have one, too
    with Coordinator(topics={"a": 2}) as coordinator:
        coordinator.create_topic("b", 3)
        assert asyncio.run(topics_of(coordinator.bootstrap)) == {"a": 2, "b": 3}
        directory = coordinator.data_dir
        assert directory.is_dir()
    assert not directory.exists()
    assert not [t for t in set(threading.enumerate()) - others if t.name == "ringleader coordinator"]
    coordinator.stop()


def test_a_restart_keeps_port_and_state() -> None:
    with Coordinator() as coordinator:
        coordinator.create_topic("kept", 2)
        before = coordinator.bootstrap
        coordinator.restart()
        assert coordinator.bootstrap == before
        assert asyncio.run(topics_of(before)) == {"kept": 2}


def test_a_data_dir_of_the_users_stays(tmp_path: Path) -> None:
    with Coordinator(data_dir=tmp_path) as coordinator:
        coordinator.create_topic("kept")
    with Coordinator(data_dir=tmp_path) as coordinator:
        assert asyncio.run(topics_of(coordinator.bootstrap)) == {"kept": 1}


def test_several_at_a_time() -> None:
    with Coordinator(topics={"a": 1}) as one, Coordinator(topics={"b": 1}) as two:
        assert asyncio.run(topics_of(one.bootstrap)) == {"a": 1}
        assert asyncio.run(topics_of(two.bootstrap)) == {"b": 1}


def test_a_failure_to_start_is_raised(tmp_path: Path) -> None:
    with Coordinator(data_dir=tmp_path), pytest.raises(OSError, match=str(tmp_path)):
        Coordinator(data_dir=tmp_path).start()
    with pytest.raises(ValueError, match="group_max_size"):
        Coordinator(group_max_size="many").start()


def test_the_environment_does_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGLEADER_GROUP_INITIAL_REBALANCE_DELAY_MS", "1234")
    with Coordinator() as coordinator:
        assert coordinator.node.settings.group_initial_rebalance_delay_ms == 0


async def test_the_fixture(ringleader_coordinator: Coordinator) -> None:
    ringleader_coordinator.create_topic("t")
    assert await topics_of(ringleader_coordinator.bootstrap) == {"t": 1}


def test_records_are_put_in() -> None:
    with Coordinator(topics={"a": 2}) as coordinator:
        assert coordinator.produce("a", b"one", None, key=b"k", partition=1) == 0
        assert coordinator.produce("a", b"two", partition=1) == 2
        where = (coordinator.bootstrap, ["a"])
        with SyncPartitionConsumer(*where, auto_offset_reset="earliest") as consumer:
            found: list[tuple[int, int, bytes | None, bytes | None]] = []
            while len(found) < 3:
                for batch in consumer.getmany(timeout_s=20):
                    found += [(batch.partition, one.offset, one.key, one.value) for one in batch.records]
    assert found == [(1, 0, b"k", b"one"), (1, 1, b"k", None), (1, 2, None, b"two")]


@pytest.mark.timeout(60)
def test_records_that_were_aborted_are_left_out() -> None:
    """Also where a topic has no others."""
    with Coordinator(topics={"none": 1, "one": 1}) as coordinator:
        with SyncProducer(coordinator.bootstrap, transactional_id="x") as producer:
            for topic, committed in (("none", False), ("one", True), ("one", False)):
                producer.begin_transaction()
                producer.send_and_wait(topic, b"%d" % committed)
                producer.commit_transaction() if committed else producer.abort_transaction()
        assert coordinator.records("none") == []
        assert [one.value for one in coordinator.records("one")] == [b"1"]
