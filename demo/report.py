"""The end of the demo: generations, delay table, account, and the checks that make its exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo import plan
from demo.account import Account, Twice
from demo.flights import Delays
from demo.picture import Picture
from demo.screen import owners_text

# At most this many ranges of repeated records are listed.
TWICE_LISTED = 12


@dataclass(frozen=True)
class Check:
    """One thing that must be so."""

    what: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Verdict:
    """The outcome. `table` is None when the demo ran without Spark."""

    account: Account
    picture: Picture
    expected: dict[str, Delays]
    table: dict[str, Delays] | None
    calm: Sequence[Check] = ()
    """Faults under the group that it did not notice."""
    players: plan.Players = plan.PLAYERS["classic"]

    @property
    def passed(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks())

    def checks(self) -> Iterator[Check]:
        """Every check with what was found."""
        taken = self.account
        yield Check(
            "everything was produced",
            taken.produced == self.picture.total and not taken.unknown,
            f"{taken.produced:,} of {self.picture.total:,} records acknowledged",
        )
        yield Check(
            "every record was processed",
            taken.lost == 0,
            f"{taken.processed:,} at least once, {taken.lost:,} never",
        )
        idle = sorted(name for name, count in taken.by_member.items() if count == 0)
        yield Check(
            "every member processed something", not idle, "idle: " + ", ".join(idle) if idle else "none idle"
        )
        yield self._generation("the join made a new generation", "member joined", self.players.newcomer)
        yield self._generation("the kill made a new generation", "session expired", self.players.victim)
        yield from self.calm
        if self.table is not None:
            different = sorted(
                name
                for name in self.expected.keys() | self.table.keys()
                if self.expected.get(name) != self.table.get(name)
            )
            detail = (
                f"different: {', '.join(different)}"
                if different
                else f"{len(self.table)} carriers, all equal"
            )
            yield Check("Spark's delay table equals the one computed from the CSV", not different, detail)

    def _generation(self, what: str, cause: str, client: str) -> Check:
        found = self.picture.generation_because(plan.SHARED_GROUP, cause, client)
        if found is None:
            return Check(what, False, "no such generation")
        return Check(what, True, f"generation {found.number}: {found.why}")

    def print(self, console: Console, out: Path) -> None:
        """Print all of it."""

        def show(title: str, table: Table) -> None:
            console.print()
            console.print(Text(title, "bold"))
            console.print(table)

        show("Generations: why each began, and who owned which partitions", self._generations())
        if self.table is not None:
            show(
                "Departures from New York City in 2013, kept by the lone Spark query",
                self._delays(self.table),
            )
        show("The account, from the members' own files", self._account())
        if self.account.twice:
            show("Processed twice: by whom, and why", self._twice())
        console.print()
        for check in self.checks():
            sign, colour = ("ok  ", "green") if check.holds else ("FAIL", "red")
            console.print(Text.assemble((sign, f"bold {colour}"), f" {check.what}: {check.detail}"))
        console.print(f"What every process wrote down is in {out}", highlight=False)
        console.print(f"Took {self.picture.elapsed_s:.0f} s.", highlight=False)

    def _generations(self) -> Table:
        table = Table()
        for name in ("s", "group", "generation", "why", "took ms", "owners"):
            table.add_column(name, justify="right" if name in ("s", "took ms", "generation") else "left")
        for one in self.picture.generations:
            row = (
                f"{one.at_s:.0f}",
                one.group,
                str(one.number),
                one.why,
                str(one.took_ms),
                owners_text(one.owners),
            )
            table.add_row(*row)
        return table

    def _delays(self, found: dict[str, Delays]) -> Table:
        table = Table()
        table.add_column("carrier")
        for name in ("flights", "cancelled", "mean delay, min", "from the CSV"):
            table.add_column(name, justify="right")
        for name in sorted(self.expected.keys() | found.keys()):
            mine, theirs = found.get(name), self.expected.get(name)
            flown, cancelled = (f"{mine.flights:,}", f"{mine.cancelled:,}") if mine else ("-", "-")
            table.add_row(name, flown, cancelled, _minutes(mine), _minutes(theirs))
        return table

    def _account(self) -> Table:
        taken = self.account
        table = Table()
        table.add_column("")
        table.add_column("records", justify="right")
        table.add_row("produced", f"{taken.produced:,}")
        table.add_row("processed at least once", f"{taken.processed:,}")
        table.add_row("processed twice", f"{taken.repeated:,}")
        for name, count in sorted(taken.by_member.items()):
            table.add_row(f"  by {name}", f"{count:,}")
        for partition, start, end in taken.missing[:TWICE_LISTED]:
            table.add_row(
                Text(f"MISSING: partition {partition}, {start} to {end - 1}", "red"), f"{end - start:,}"
            )
        for partition, start, end in taken.unknown[:TWICE_LISTED]:
            table.add_row(
                Text(f"UNKNOWN: partition {partition}, {start} to {end - 1}", "red"), f"{end - start:,}"
            )
        return table

    def _twice(self) -> Table:
        table = Table()
        for name in ("partition", "offsets", "records", "by", "why"):
            table.add_column(name, justify="right" if name in ("partition", "records") else "left")
        ordered = sorted(self.account.twice, key=lambda found: -found.records)
        for found in ordered[:TWICE_LISTED]:
            table.add_row(*_twice_row(found))
        if rest := ordered[TWICE_LISTED:]:
            table.add_row(
                "", "", f"{sum(found.records for found in rest):,}", f"{len(rest)} smaller ranges", ""
            )
        return table


def _twice_row(found: Twice) -> tuple[str, ...]:
    offsets = f"{found.start} to {found.end - 1}"
    return str(found.partition), offsets, f"{found.records:,}", ", then ".join(found.members), found.why


def _minutes(delays: Delays | None) -> str:
    return "-" if delays is None or delays.mean_delay is None else f"{delays.mean_delay:.4f}"
