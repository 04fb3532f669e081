"""The programs of examples/, run as their users run them, against a coordinator of the test."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader import PartitionConsumer, TopicPartition
from ringleader.clients.admin import Admin
from ringleader.testing import Coordinator
from tests.support.schema_registry import SchemaRegistry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_S = 60.0
# So many that a hash of the members' names hardly ever gives all of them to one of two.
TENANTS = [f"tenant-{number}" for number in range(40)]
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


class Program:
    """One that runs, and its lines of output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._news:
                self.lines.append(line.decode().rstrip())
                self._news.notify_all()

    async def until(self, true: Callable[[list[str]], object]) -> None:
        """Wait for what it prints."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(lambda: true(self.lines))
        except TimeoutError:
            raise AssertionError(self.lines) from None

    async def end(self, signum: signal.Signals) -> int:
        """Send a signal: the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signum)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.shield(self._reading)
                return await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"it goes on after signal {signum}: {self.lines}") from None


@contextlib.asynccontextmanager
async def running(*command: str, **variables: str) -> AsyncIterator[Program]:
    """A program with these arguments, in the folder of the examples."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=EXAMPLES,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"} | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    program = Program(process)
    try:
        yield program
    finally:
        await program.end(signal.SIGKILL)


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """One with a topic, and something in it."""
    with Coordinator(topics={"orders": 6}) as found:
        found.produce("orders", b"10 books", b"2 pens", key=b"ada", partition=5)
        found.produce("orders", b"1 lamp", key=b"bob")
        yield found


async def fetched_json(url: str) -> Any:
    def ask() -> Any:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    return await asyncio.to_thread(ask)


async def until_it_answers(url: str, wanted: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await fetched_json(url) != wanted:  # noqa: ASYNC110 (another process counts)
            await asyncio.sleep(0.05)


async def committed(coordinator: Coordinator, group: str) -> dict[TopicPartition, int]:
    async with Admin(coordinator.bootstrap) as admin:
        return {place: at.offset for place, at in (await admin.group_offsets(group)).items()}


def address(program: Program) -> str:
    return next(found[0] for line in program.lines if (found := ADDRESS.search(line)))


async def test_a_web_application_reads_while_it_answers(coordinator: Coordinator) -> None:
    command = ["-m", "uvicorn", "--port", "0", "web_worker:app"]
    async with running(*command, BOOTSTRAP=coordinator.bootstrap) as program:
        await program.until(lambda lines: any(ADDRESS.search(line) for line in lines))
        url = address(program)
        await until_it_answers(f"{url}/totals", {"ada": 2, "bob": 1})
        assert await fetched_json(f"{url}/health") == {"reading": True}
        assert await program.end(signal.SIGINT) in (0, -signal.SIGINT), program.lines
    assert not [line for line in program.lines if "Traceback" in line]
    counts = await committed(coordinator, "totals")
    assert (counts["orders", 0], counts["orders", 5]) == (1, 2)


async def test_threads_hand_records_on_while_a_server_answers(coordinator: Coordinator) -> None:
    async with running("wsgi_worker.py", coordinator.bootstrap) as program:
        await program.until(lambda lines: any(ADDRESS.search(line) for line in lines))
        await until_it_answers(address(program), {"ada": 2, "bob": 1})
        assert await program.end(signal.SIGINT) == 0, program.lines
    counts = await committed(coordinator, "tasks")
    assert (counts["orders", 0], counts["orders", 5]) == (1, 2)


async def invoices(coordinator: Coordinator) -> list[bytes]:
    """The invoices that readers of committed records see."""
    found: list[bytes] = []
    async with PartitionConsumer(
        coordinator.bootstrap, ["invoices"], auto_offset_reset="earliest", isolation_level="read_committed"
    ) as reader:
        for place, end in (await reader.end_offsets(reader.assignment())).items():
            while await reader.position(place) < end:
                found += [one.value for batch in await reader.getmany(timeout_s=1) for one in batch]
    return sorted(found)


async def test_each_order_has_one_invoice_after_a_crash(coordinator: Coordinator) -> None:
    coordinator.create_topic("invoices", 6)
    orders = [b"%03d" % number for number in range(300)]
    for number, order in enumerate(orders):
        coordinator.produce("orders", order, partition=number % 6)
    command = ["invoices.py", coordinator.bootstrap]
    async with running(*command, "1") as first:
        await first.until(lambda lines: any(line.startswith("invoices:") for line in lines))
        await first.end(signal.SIGKILL)
    more = [b"%03d" % number for number in range(300, 600)]
    for number, order in enumerate(more):
        coordinator.produce("orders", order, partition=number % 6)
    coordinator.advance_clock(60)  # the session of the first is over
    wanted = sorted(b"invoice: " + order for order in [*orders, *more, b"10 books", b"2 pens", b"1 lamp"])
    async with running(*command, "1"):
        async with asyncio.timeout(PATIENCE_S):
            while len(await invoices(coordinator)) < len(wanted):  # noqa: ASYNC110 (another process writes)
                await asyncio.sleep(0.05)
        assert await invoices(coordinator) == wanted


def mine(program: Program) -> set[str]:
    """The tenants that it says it has."""
    newest = next((line for line in reversed(program.lines) if line.startswith("mine")), "mine")
    return set(newest.split()[1:])


async def test_orders_have_a_schema(coordinator: Coordinator) -> None:
    with SchemaRegistry() as registry:
        async with running("avro_orders.py", coordinator.bootstrap, registry.url) as program:
            await program.until(lambda lines: {"10 book", "1 lamp"} <= set(lines))
            assert await program.end(signal.SIGINT) == 0, program.lines
    assert list(registry.subjects) == ["avro-orders-value"]


async def test_tenants_have_one_owner_each(coordinator: Coordinator) -> None:
    command = ["tenants.py", coordinator.bootstrap, *TENANTS]
    async with running(*command) as first:
        await first.until(lambda _: mine(first) == set(TENANTS))
        async with running(*command) as second:
            await second.until(lambda lines: any(line.startswith("mine") for line in lines))
            await first.until(lambda _: mine(first) | mine(second) == set(TENANTS) != mine(first))
            assert not mine(first) & mine(second)
            assert await second.end(signal.SIGINT) == 0, second.lines
            await first.until(lambda _: mine(first) == set(TENANTS))


async def test_one_works_and_the_other_stands_by_until_it_dies(coordinator: Coordinator) -> None:
    command = ["own_assignor.py", coordinator.bootstrap, "orders"]
    async with running(*command) as first:
        await first.until({"works", "did 10 books", "did 2 pens", "did 1 lamp"}.issubset)
        async with running(*command) as second:
            await second.until(lambda lines: "stands by" in lines)
            coordinator.produce("orders", b"3 chairs", partition=2)
            await first.until(lambda lines: "did 3 chairs" in lines)
            assert await first.end(signal.SIGKILL) == -signal.SIGKILL
            await second.until(lambda lines: "works" in lines)
            coordinator.produce("orders", b"4 tables", partition=3)
            await second.until(lambda lines: "did 4 tables" in lines)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_spark_job_goes_on_where_it_stopped(spark: Any, coordinator: Coordinator, tmp_path: Path) -> None:
    found = importlib.util.spec_from_file_location("spark_job", EXAMPLES / "spark_job.py")
    assert found is not None
    assert found.loader is not None
    job = importlib.util.module_from_spec(found)
    found.loader.exec_module(job)
    assert job.run(spark, coordinator.bootstrap, str(tmp_path)) == 3
    coordinator.produce("orders", b"3 chairs", partition=2)
    assert job.run(spark, coordinator.bootstrap, str(tmp_path)) == 1
    rows = spark.read.parquet(str(tmp_path / "orders")).select("value").collect()
    assert sorted(row.value for row in rows) == ["1 lamp", "10 books", "2 pens", "3 chairs"]


def test_an_application_s_own_tests(tmp_path: Path) -> None:
    file = tmp_path / "test_orders.py"
    file.write_text((EXAMPLES / "test_orders.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", file.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_every_example_is_on_the_page() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert [file.name for file in sorted(EXAMPLES.glob("*.py")) if f"]({file.name})" not in page] == []
