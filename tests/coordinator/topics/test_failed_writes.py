"""A disk that takes a part of what is written: nothing of it is there, and nothing that was written since is
taken back. And what is on its way is not there yet."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.topics import Topics, appender
from ringleader.protocol.errors import KafkaError
from tests.support.served import WAIT_S, until
from tests.support.tables import turns
from tests.support.topiclog import everything, killed, produced, topic_log

Write = Callable[[int, list[bytes], int], None]


class Gates:
    """Each write of the disk waits for one; `failing` says which of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *failing: int) -> None:
        self._real: Write = vars(appender)["pwrite_all"]
        self._failing = failing
        self.entered = 0
        self._gates = [threading.Event() for _ in range(8)]
        monkeypatch.setattr(appender, "pwrite_all", self._write)

    def _write(self, descriptor: int, parts: list[bytes], position: int) -> None:
        number, self.entered = self.entered, self.entered + 1
        assert self._gates[number].wait(WAIT_S)
        if number in self._failing:
            self._real(descriptor, parts[:1], position)  # all of the first batch gets there
            raise OSError(errno.ENOSPC, "no space left")
        self._real(descriptor, parts, position)

    async def open(self, number: int) -> None:
        """Let that write go on, which has to come."""
        await until(lambda: self.entered > number)
        self._gates[number].set()


def begun(append: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(append)


async def gated(topics: Topics, monkeypatch: pytest.MonkeyPatch, *failing: int) -> Gates:
    await topics.create("orders", 2)
    return Gates(monkeypatch, *failing)


async def one_written_two_refused(topics: Topics, gates: Gates) -> None:
    """Batches of one producer; the second write fails."""
    first = begun(topics.append("orders", 0, produced(7, 0, 10)))
    await gates.open(0)
    await first
    refused = [begun(topics.append("orders", 0, produced(7, number, 10))) for number in (10, 20)]
    await gates.open(1)
    for one in refused:
        with pytest.raises(KafkaError):
            await one


async def test_what_was_written_of_a_failed_write_is_gone_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with topic_log(tmp_path / "live") as topics:
        gates = await gated(topics, monkeypatch, 1)
        await one_written_two_refused(topics, gates)
        other = begun(topics.append("orders", 1, produced(8, 0, 1)))
        await gates.open(2)
        await other
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left) as topics:
        assert (await everything(topics, "orders")).offsets == list(range(10))
        again = begun(topics.append("orders", 0, produced(7, 10, 10)))
        await gates.open(3)
        assert (await again).base_offset == 10


async def test_the_report_of_a_write_that_was_taken_back_takes_back_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with topic_log(tmp_path) as topics:
        gates = await gated(topics, monkeypatch, 0)
        first = begun(topics.append("orders", 0, produced(7, 0, 10)))
        await until(lambda: gates.entered == 1)
        other = begun(topics.append("orders", 1, produced(8, 0, 1)))
        second = begun(topics.append("orders", 0, produced(7, 10, 10)))
        await turns()
        await gates.open(0)
        for one in (first, second):
            with pytest.raises(KafkaError):
                await one
        again = begun(topics.append("orders", 0, produced(7, 0, 10)))
        await turns()
        await gates.open(1)  # after which the second one is reported, too
        await other
        await gates.open(2)
        assert (await again).base_offset == 0
        assert (await everything(topics, "orders")).offsets == list(range(10))


async def test_a_batch_that_comes_again_while_it_is_written_is_there_when_the_first_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with topic_log(tmp_path) as topics:
        gates = await gated(topics, monkeypatch)
        both = [begun(topics.append("orders", 0, produced(7, 0, 10))) for _ in range(2)]
        await until(lambda: gates.entered == 1)
        await turns()
        assert not any(one.done() for one in both)
        await gates.open(0)
        assert [one.base_offset for one in await asyncio.gather(*both)] == [0, 0]
        assert (await everything(topics, "orders")).offsets == list(range(10))


async def test_a_file_that_a_failed_write_took_back_leaves_no_producers_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what its producer sends again would be taken for a duplicate, and be nowhere."""
    async with topic_log(tmp_path / "live") as topics:
        await topics.create("orders", 1, {"segment.bytes": str(len(produced(7, 10, 10)))})
        gates = Gates(monkeypatch, 1)
        await one_written_two_refused(topics, gates)
        for number in range(2):
            other = begun(topics.append("orders", 0, produced(8, number * 10, 10)))
            await gates.open(2 + number)
            await other
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left) as topics:
        again = begun(topics.append("orders", 0, produced(7, 10, 10)))
        await gates.open(4)
        assert (await again).base_offset == 30
