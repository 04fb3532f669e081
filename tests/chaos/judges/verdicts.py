"""The judges together, over the histories of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.build import NoGoError
from tests.chaos.facts import Check, commits_of, reads_of
from tests.chaos.history import Process
from tests.chaos.judges.ownership import claims, two_at_once
from tests.chaos.judges.registers import not_linearizable
from tests.chaos.judges.transactions import judge, seen_of, transactions_of

REGISTERS, OWNERS = "registers", "owners"
ABORTED, TORN, DOUBLED, LOST, CYCLES = "aborted reads", "torn", "doubled", "lost updates", "cycles"
TRANSACTIONS = (ABORTED, TORN, DOUBLED, LOST, CYCLES)

SENTENCES = {
    REGISTERS: "Porcupine finds an order for each committed offset",
    OWNERS: "no partition has two confirmed owners at one time",
    ABORTED: "nothing of an aborted transaction is seen",
    TORN: "a committed transaction is seen as a whole",
    DOUBLED: "no record counts twice",
    LOST: "no transaction overwrites another unread",
    CYCLES: "no transaction comes before itself",
}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """`open`: what could not be judged, and why."""

    checks: list[Check] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def verdicts(processes: Iterable[Process]) -> Verdicts:
    """All judges. Registers are those whose commits all have tokens: else a library may commit more by
    itself."""
    histories = list(processes)
    found = Verdicts()
    commits, reads = commits_of(histories), reads_of(histories)
    untold = {one.place for one in commits if not one.token}
    written = {one.place for one in commits} - untold
    exact = [one for one in commits if one.place in written]
    checked_reads = [one for one in reads if one.place in written]
    try:
        illegal, undecided = not_linearizable(exact, checked_reads)
    except NoGoError as error:
        found.open.append(f"{SENTENCES[REGISTERS]}: {str(error).splitlines()[0]}")
    else:
        found.checks.append(Check(SENTENCES[REGISTERS], len(exact) + len(checked_reads), illegal))
        found.open.extend(undecided)
    had = claims(histories)
    found.checks.append(Check(SENTENCES[OWNERS], len(had), two_at_once(had)))
    transactions, seen = transactions_of(histories), seen_of(histories)
    if transactions or seen:
        judged = judge(transactions, seen)
        kinds = (
            (ABORTED, judged.aborted_reads, len(seen)),
            (TORN, judged.torn, len(transactions)),
            (DOUBLED, judged.doubled, len(seen)),
            (LOST, judged.lost_updates, len(transactions)),
            (CYCLES, judged.cycles, len(transactions)),
        )
        found.checks.extend(Check(SENTENCES[kind], facts, why) for kind, why, facts in kinds)
    return found
