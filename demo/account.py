"""The account: what was produced against what the members say they processed, from their own files alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.flights import Delays
from demo.ledger import read

Lines = list[dict[str, Any]]


@dataclass(frozen=True, order=True)
class Claim:
    """A member says that it processed offsets `start` to `end` - 1 of one partition at time `t`."""

    t: float
    member: str
    start: int
    end: int


@dataclass(frozen=True)
class Twice:
    """A range that was processed more than once: by whom, in order of time, and why."""

    partition: int
    start: int
    end: int
    members: tuple[str, ...]
    why: str

    @property
    def records(self) -> int:
        """How many records it covers."""
        return self.end - self.start


@dataclass
class Account:
    """The result. Ranges are half-open; `missing` and `unknown` must be empty."""

    produced: int = 0
    once: int = 0
    missing: list[tuple[int, int, int]] = field(default_factory=list)
    """Produced, but in no member's file: (partition, from, to)."""
    unknown: list[tuple[int, int, int]] = field(default_factory=list)
    """In a member's file, but never acknowledged to the producer: (partition, from, to)."""
    twice: list[Twice] = field(default_factory=list)
    by_member: dict[str, int] = field(default_factory=dict)
    """Records that each member processed, repeats included."""

    @property
    def processed(self) -> int:
        """Records that were produced and processed at least once."""
        return self.once + self.repeated

    @property
    def repeated(self) -> int:
        """Records that were processed more than once."""
        return sum(found.records for found in self.twice)

    @property
    def lost(self) -> int:
        """Records that no member processed."""
        return sum(end - start for _, start, end in self.missing)


def take(producer: Lines, members: Mapping[str, Lines], killed: Iterable[str] = ()) -> Account:
    """Hold the members' ledgers against the producer's; `killed` names members that were killed."""
    account = Account()
    claims: dict[int, list[Claim]] = defaultdict(list)
    for name, lines in members.items():
        account.by_member[name] = 0
        for line in lines:
            if line["did"] == "processed":
                claims[line["partition"]].append(Claim(line["t"], name, line["from"], line["to"]))
                account.by_member[name] += line["to"] - line["from"]
    produced: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in producer:
        if line["did"] == "produced":
            produced[line["partition"]].append((line["from"], line["to"]))
            account.produced += line["to"] - line["from"]
    reasons = _Reasons(members, frozenset(killed))
    for partition in sorted(produced.keys() | claims.keys()):
        _sweep(account, partition, produced[partition], claims[partition], reasons)
    return account


def _sweep(
    account: Account,
    partition: int,
    produced: list[tuple[int, int]],
    claims: list[Claim],
    reasons: _Reasons,
) -> None:
    """Walk one partition from edge to edge of all ranges; between two edges nothing changes."""
    edges: dict[int, list[tuple[int, Claim | None]]] = defaultdict(list)
    for start, end in produced:
        edges[start].append((1, None))
        edges[end].append((-1, None))
    for claim in claims:
        edges[claim.start].append((1, claim))
        edges[claim.end].append((-1, claim))
    there, open_claims, last = 0, list[Claim](), 0
    for edge in sorted(edges):
        if edge > last:
            _piece(account, (partition, last, edge), there > 0, sorted(open_claims), reasons)
        for step, opened in edges[edge]:
            if opened is None:
                there += step
            elif step > 0:
                open_claims.append(opened)
            else:
                open_claims.remove(opened)
        last = edge


def _piece(
    account: Account, piece: tuple[int, int, int], there: bool, claims: list[Claim], reasons: _Reasons
) -> None:
    partition, start, end = piece
    if not there:
        if claims:
            account.unknown.append(piece)
    elif not claims:
        account.missing.append(piece)
    elif len(claims) == 1:
        account.once += end - start
    else:
        members = tuple(claim.member for claim in claims)
        why = reasons.of(partition, end, claims[0])
        before = account.twice[-1] if account.twice else None
        if before and (before.partition, before.end, before.members, before.why) == (
            partition,
            start,
            members,
            why,
        ):
            account.twice[-1] = Twice(partition, before.start, end, members, why)
        else:
            account.twice.append(Twice(partition, start, end, members, why))


class _Reasons:
    """The reasons why the first member's work on a range did not count, read from that member's own file."""

    def __init__(self, members: Mapping[str, Lines], killed: frozenset[str]) -> None:
        self._members = members
        self._killed = killed

    def of(self, partition: int, end: int, first: Claim) -> str:
        """One clause, for the reader of the account."""
        later = [line for line in self._members[first.member] if line["t"] >= first.t]
        for line in later:
            covered = line.get("offsets", {}).get(str(partition), 0) >= end
            if line["did"] == "committed" and covered:
                return f"{first.member} had committed it: the group's offset was not used"
            if line["did"] == "refused" and covered:
                return f"{first.member} processed it; the partition moved before its commit ({line['error']})"
        if first.member in self._killed:
            return f"{first.member} was killed after processing it, before its commit"
        return f"{first.member} processed it; the partition moved before its batch was committed"


def table_of(path: Path) -> dict[str, Delays]:
    """The delay table that the Spark query of group two wrote; empty when it wrote none."""
    if not path.exists():
        return {}
    carriers = json.loads(path.read_text(encoding="utf-8"))["carriers"]
    return {
        name: Delays(row["flights"], row["cancelled"], row["mean_delay"])
        for name, row in sorted(carriers.items())
    }


def ledgers(paths: Mapping[str, Path]) -> dict[str, Lines]:
    """The lines of each member's ledger."""
    return {name: read(path) for name, path in paths.items()}
