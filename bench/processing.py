"""`consumer.process` with 100 handlers that wait 50 ms, on 4 partitions, and plain tasks that only wait: at
most 2,000 a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from bench.plan import Plan
from bench.processes import Pins, daemon, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader import GroupConsumer, Producer, Record

PARTITIONS, HANDLERS, HANDLER_S = 4, 100, 0.05
PLAIN, PROCESS = "plain tasks", "consumer.process"
BOUND = 0.95
COLUMNS = ("", "records a second")
KEYS = 5_000
"""Enough keys that hardly ever two records in hand have the same one."""


async def _fill(bootstrap: str, records: int) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(records):
            await producer.send("work", b"x", key=b"%d" % (number % KEYS))


async def _plain_rate(records: int) -> float:
    """The same waiting without a consumer."""
    left = records

    async def work() -> None:
        nonlocal left
        while left:
            left -= 1
            await asyncio.sleep(HANDLER_S)

    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(HANDLERS):
            tasks.create_task(work())
    return records / (time.perf_counter() - began_s)


async def _rate(bootstrap: str, group: str, records: int) -> float:
    """Records a second, from the first handler's beginning to the last one's end."""
    done, began_s, ended_s = 0, 0.0, 0.0
    over = asyncio.Event()

    async def handler(_record: Record) -> None:
        nonlocal done, began_s, ended_s
        began_s = began_s or time.perf_counter()
        await asyncio.sleep(HANDLER_S)
        done, ended_s = done + 1, time.perf_counter()
        if done == records:
            over.set()

    async with GroupConsumer(bootstrap, group, ["work"], auto_offset_reset="earliest") as consumer:
        work = asyncio.create_task(consumer.process(handler, concurrency=HANDLERS))
        await over.wait()
        await consumer.stop()
        await work
    return records / (ended_s - began_s)


def rows_of(medians: Mapping[str, float]) -> list[list[str]]:
    """The rows of the table."""
    return [[name, f"{rate:,.0f}"] for name, rate in medians.items()]


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes processing.json, returns its content."""
    records = max(2 * HANDLERS, plan.consumed_records // 40)
    with (
        work_dir(plan.data_dir) as directory,
        daemon(directory, Pins.choose().server, topics=[f"work:{PARTITIONS}"]) as server,
    ):
        asyncio.run(_fill(server.bootstrap, records))
        rates: dict[str, list[float]] = {PLAIN: [], PROCESS: []}
        for number in range(plan.rounds):
            rates[PLAIN].append(asyncio.run(_plain_rate(records)))
            rates[PROCESS].append(asyncio.run(_rate(server.bootstrap, f"group-{number}", records)))
    medians = {name: median(found) for name, found in rates.items()}
    goals = [Goal("records that wait, a second", PLAIN, medians[PROCESS] / medians[PLAIN], BOUND)]
    say(f"  {records:,} records in {PARTITIONS} partitions, {HANDLERS} handlers of {HANDLER_S * 1000:g} ms")
    table("Handlers that wait", COLUMNS, rows_of(medians))
    print_goals(goals)
    whole = {"records": records, "rates": rates, "medians": medians}
    save(plan.out_dir, "processing", whole, goals)
    return whole
