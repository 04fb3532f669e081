"""Dead letters: written by `process` with their reason, and written back by ``ringleader groups redrive``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ringleader import DeadLetter, GroupConsumer, Producer, Record, Retry, SyncProducer, dead_letters
from ringleader.cli.redrive import Redrive
from ringleader.testing.coordinator import Coordinator
from tests.support.command import Done, run_command
from tests.support.consuming import consumer, until

COUNT = 12
DEAD = "t.dead"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 2, DEAD: 3}, auto_create_topics_enable=False) as started:
        yield started


def redrive(coordinator: Coordinator, *arguments: str) -> Done:
    return run_command(coordinator.bootstrap, "groups", "redrive", DEAD, *arguments)


def moved(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


async def bury(coordinator: Coordinator, policy: DeadLetter) -> None:
    """Put records into `t`, every third of which becomes a dead letter."""
    async with Producer(coordinator.bootstrap) as producer:
        for number in range(COUNT):
            given: Any = {
                "key": b"k%d" % number,
                "headers": [("trace", b"%d" % number)],
                "timestamp_ms": number,
            }
            await producer.send_and_wait("t", b"%d" % number, **given)

    async def handler(record: Record) -> None:
        if int(record.value) % 3 == 0:
            raise ValueError(f"not {record.value!r}")

    failures = {ValueError: Retry(times=1, backoff_ms=1, then=policy)}
    async with consumer(coordinator) as one:
        task = asyncio.create_task(one.process(handler, failures=failures))
        await until(
            lambda: (figures := one.metrics().processing) is not None and figures.records_done == COUNT
        )
        task.cancel()
        await asyncio.wait((task,))


async def test_dead_letters_say_why_and_go_back_once(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        await bury(coordinator, dead_letters(producer, DEAD))
    letters = coordinator.records(DEAD)
    for letter in letters:
        headers = dict(letter.headers)
        assert headers.pop("dead-letter.offset") is not None
        assert headers.pop("dead-letter.partition") in (b"0", b"1")
        assert headers == {
            "trace": letter.value,
            "dead-letter.topic": b"t",
            "dead-letter.timestamp-ms": letter.value,
            "dead-letter.error": b"builtins.ValueError",
            "dead-letter.message": f"not {letter.value!r}".encode(),
            "dead-letter.tries": b"2",
        }
    wanted = {"topic": DEAD, "group": f"redrive-{DEAD}", "written": {"t": 4}, "left": 0}
    assert moved(redrive(coordinator, "--json", "--dry-run")) == {**wanted, "dry_run": True}
    assert moved(redrive(coordinator, "--json")) == {**wanted, "dry_run": False}
    back = coordinator.records("t")
    assert len(back) == COUNT + 4
    for letter in letters:
        twice = [(one.key, one.headers) for one in back if one.value == letter.value]
        assert twice == [(letter.key, [("trace", letter.value)])] * 2
    assert redrive(coordinator).out == f"Wrote 0 dead letters of {DEAD}.\n"


async def test_they_go_to_another_topic_and_others_stay(coordinator: Coordinator) -> None:
    coordinator.create_topic("again", 1)
    coordinator.produce(DEAD, b"no letter")
    with SyncProducer(coordinator.bootstrap) as producer:
        await bury(coordinator, dead_letters(producer, DEAD))
    done = redrive(coordinator, "--to", "again")
    assert (done.code, done.out) == (
        0, f"Wrote 4 dead letters of {DEAD}: 4 to again. 1 records there are no dead letters.\n"
    )  # fmt: skip
    assert {one.value for one in coordinator.records("again")} == {b"0", b"3", b"6", b"9"}
    assert "4 to t" in redrive(coordinator, "--group", "another").out


async def test_letters_that_come_meanwhile_are_those_of_the_next_call(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.produce(DEAD, b"first", headers=HEADERS, partition=0)
    coordinator.faults.delay("Fetch", 3_600)
    ends_of = GroupConsumer.end_offsets

    async def end_offsets(self: GroupConsumer, partitions: Any) -> Any:
        found = await ends_of(self, partitions)
        if coordinator.faults.seen("OffsetCommit"):
            return found
        coordinator.produce(DEAD, b"second", headers=HEADERS, partition=0)  # read with the first
        coordinator.faults.clear()
        coordinator.faults.disconnect()
        return found

    monkeypatch.setattr(GroupConsumer, "end_offsets", end_offsets)
    for number in (1, 2):
        work = Redrive(DEAD, None, "g", dry_run=False)
        await work.run(coordinator.bootstrap, None)
        assert work.written == {"t": 1}
        assert len(coordinator.records("t")) == number


def test_a_topic_that_is_not_there(coordinator: Coordinator) -> None:
    done = run_command(coordinator.bootstrap, "groups", "redrive", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert "There is no topic nowhere" in done.err


def test_a_topic_to_write_to_that_is_not_there(coordinator: Coordinator) -> None:
    coordinator.produce(DEAD, b"v", headers=HEADERS)
    done = redrive(coordinator, "--to", "nowhere")
    assert done.code == 1
    assert "0 records were written before" in done.err
    assert "Traceback" not in done.err
    coordinator.create_topic("nowhere", 1)
    assert "1 to nowhere" in redrive(coordinator, "--to", "nowhere").out


HEADERS = [("dead-letter.topic", b"t"), ("dead-letter.partition", b"0"), ("dead-letter.offset", b"3")]
