"""Transactions that consume, transform and produce, judged as Elle judges a database's: from what each read
and wrote, and from what readers of committed records saw.

A group's committed offset of a partition is a register whose versions are its offsets: a transaction reads
the version at which it began, and writes the one at which it ended. A partition of the topic that is written
is a list: who was appended first, its readers saw. From both follows who came before whom; nobody came before
itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.chaos.checks import Spans
from tests.chaos.history import FAILED, OK, Process

Register = tuple[str, str]
"""A group, and a partition that it reads, as "records:0"."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One of them, as the process that made it knows it. `end`: "ok" (committed), "failed" (aborted),
    "unknown" or "open"."""

    name: str
    client: str
    began_s: float
    ended_s: float
    end: str
    reads: Mapping[Register, int]
    """The version at which it began."""
    writes: Mapping[Register, int]
    appends: Mapping[str, Spans]
    """By partition that it wrote to: the offsets of the records that it read for that, half-open."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A record that a reader of committed records was given. `source`: which record it was made of."""

    reader: str
    log: str
    offset: int
    transaction: str
    source: int


def transactions_of(processes: Iterable[Process]) -> list[Transaction]:
    """Calls named "transaction"."""
    return [
        Transaction(
            call.request["name"],
            one.client,
            call.began_s,
            call.ended_s,
            call.end,
            {(call.request["group"], place): offset for place, offset in call.request["reads"].items()},
            {(call.request["group"], place): offset for place, offset in call.request["writes"].items()},
            {log: [(start, end) for start, end in spans] for log, spans in call.request["appends"].items()},
        )
        for one in processes
        for call in one.calls
        if call.what == "transaction"
    ]


def seen_of(processes: Iterable[Process]) -> list[Seen]:
    """Lines "seen"."""
    return [
        Seen(one.client, line["log"], offset, transaction, source)
        for one in processes
        for line in one.lines
        if line["did"] == "seen"
        for offset, transaction, source in line["records"]
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """Violations by their kind, in words."""

    aborted_reads: list[str]
    """A record of a transaction that was aborted, or of none, was seen."""
    torn: list[str]
    """Of a committed transaction some records were passed over by readers, or were never written."""
    doubled: list[str]
    """One record counts twice, or readers saw two contents of one place."""
    lost_updates: list[str]
    """Two committed transactions began at the same version of a register."""
    cycles: list[str]
    """Transactions each of which came before the next one, and the last before the first."""


def judge(transactions: Sequence[Transaction], seen: Iterable[Seen]) -> Found:
    """All of it."""
    by_name = {one.name: one for one in transactions}
    logs, doubled = _logs(seen)
    aborted = _aborted_reads(by_name, logs)
    committed = _committed(transactions, logs)
    return Found(
        aborted,
        _torn(committed, logs),
        doubled + _twice(logs),
        _lost_updates(committed),
        _cycles(committed, logs),
    )


_Log = dict[int, tuple[str, int]]
"""By offset: the transaction, and the record that was read for it."""


def _logs(seen: Iterable[Seen]) -> tuple[dict[str, _Log], list[str]]:
    logs: dict[str, _Log] = defaultdict(dict)
    found = []
    for one in seen:
        before = logs[one.log].setdefault(one.offset, (one.transaction, one.source))
        if before != (one.transaction, one.source):
            found.append(
                f"{one.log}, offset {one.offset}: {one.reader} saw {one.transaction}, others {before[0]}"
            )
    return {log: dict(sorted(records.items())) for log, records in logs.items()}, found


def _aborted_reads(by_name: Mapping[str, Transaction], logs: Mapping[str, _Log]) -> list[str]:
    found = []
    for log, records in logs.items():
        for offset, (name, _source) in records.items():
            made = by_name.get(name)
            if made is None:
                found.append(f"{log}, offset {offset} was seen, of {name!r}, which nobody began")
            elif made.end == FAILED:
                found.append(
                    f"{log}, offset {offset} was seen, of {name}, which {made.client} was told to be aborted"
                )
    return found


def _committed(transactions: Iterable[Transaction], logs: Mapping[str, _Log]) -> list[Transaction]:
    """Those whose commit is known: it was acknowledged, or somebody saw what they wrote."""
    seen = {name for records in logs.values() for name, _ in records.values()}
    candidates = [one for one in transactions if one.end != FAILED]
    return [one for one in candidates if one.end == OK or one.name in seen]


def _torn(committed: Iterable[Transaction], logs: Mapping[str, _Log]) -> list[str]:
    found = []
    # Sources come in their order in each partition that is written: what is behind the last may come yet.
    last = {log: max(source for _, source in records.values()) for log, records in logs.items() if records}
    there = {(log, *record) for log, records in logs.items() for record in records.values()}
    for one in committed:
        for log, spans in one.appends.items():
            missing = [
                source
                for start, end in spans
                for source in range(start, min(end, last.get(log, -1)))
                if (log, one.name, source) not in there
            ]
            if missing:
                found.append(f"{one.name} was committed, and readers of {log} passed over its {missing[0]}")
        for (group, place), end in one.writes.items():
            written = sum(end - start for spans in one.appends.values() for start, end in spans)
            passed = sum(one.writes[register] - one.reads.get(register, 0) for register in one.writes)
            if written != passed:
                found.append(
                    f"{one.name} moved {group} {place} to {end}, over {passed} records in all, and wrote "
                    f"{written}"
                )
                break
    return found


def _twice(logs: Mapping[str, _Log]) -> list[str]:
    found = []
    for log, records in logs.items():
        first: dict[int, tuple[int, str]] = {}
        for offset, (name, source) in records.items():
            at, other = first.setdefault(source, (offset, name))
            if at != offset:
                found.append(
                    f"{log}: record {source} is there twice: at {at} of {other}, at {offset} of {name}"
                )
    return found


def _by_version(
    committed: Iterable[Transaction],
) -> tuple[dict[tuple[Register, int], list[Transaction]], dict[tuple[Register, int], list[Transaction]]]:
    read: dict[tuple[Register, int], list[Transaction]] = defaultdict(list)
    written: dict[tuple[Register, int], list[Transaction]] = defaultdict(list)
    for one in committed:
        for register, version in one.reads.items():
            if register in one.writes:
                read[register, version].append(one)
        for register, version in one.writes.items():
            written[register, version].append(one)
    return read, written


def _lost_updates(committed: Iterable[Transaction]) -> list[str]:
    read, _ = _by_version(committed)
    return [
        f"{group} {place}: {' and '.join(sorted(one.name for one in ones))} all went on from {version}"
        for ((group, place), version), ones in sorted(read.items())
        if len(ones) > 1
    ]


def _edges(committed: Sequence[Transaction], logs: Mapping[str, _Log]) -> Iterator[tuple[str, str, str]]:
    """The order of pairs of transactions, and its reason."""
    read, written = _by_version(committed)
    for (register, version), writers in written.items():
        for writer in writers:
            for reader in read.get((register, version), []):
                if reader is not writer:
                    yield writer.name, reader.name, f"wrote {version} of {register[1]}, which was read by"
    versions: dict[Register, set[int]] = defaultdict(set)
    for register, version in written:
        versions[register].add(version)
    for register, found in versions.items():
        for earlier, later in pairwise(sorted(found)):
            for one in written[register, earlier]:
                for other in written[register, later]:
                    yield one.name, other.name, f"wrote {earlier} of {register[1]}, before {later} of"
    for (register, version), readers in read.items():
        # The next version replaced the version that it read.
        later_versions = sorted(one for one in versions[register] if one > version)
        for reader in readers:
            for writer in written[register, later_versions[0]] if later_versions else []:
                if writer is not reader:
                    yield (
                        reader.name,
                        writer.name,
                        f"read {version} of {register[1]}, which was overwritten by",
                    )
    names = {one.name for one in committed}
    for log, records in logs.items():
        order = [name for name, _ in records.values() if name in names]
        for one_name, other_name in pairwise(order):
            if one_name != other_name:
                yield one_name, other_name, f"stands in {log} before"
    processes: dict[str, list[Transaction]] = defaultdict(list)
    for made in sorted(committed, key=lambda made: made.began_s):
        processes[made.client].append(made)
    for process, ones in processes.items():
        for made, following in pairwise(ones):
            yield made.name, following.name, f"was made by {process} before"


def _cycles(committed: Sequence[Transaction], logs: Mapping[str, _Log]) -> list[str]:
    after: dict[str, dict[str, str]] = defaultdict(dict)
    for one, other, why in _edges(committed, logs):
        after[one].setdefault(other, why)
    found = []
    for circle in _circles(after):
        steps = [f"{one} {after[one][other]}" for one, other in pairwise([*circle, circle[0]])]
        found.append(f"{', '.join(steps)} {circle[0]}")
    return found


def _circles(after: Mapping[str, Mapping[str, str]]) -> Iterator[list[str]]:
    """A shortest way round in each set of names that come before each other."""
    for names in _components(after):
        if len(names) > 1:
            begin = min(names)
            ways: dict[str, str] = {}
            front = [begin]
            while begin not in ways:
                reached = []
                for one in front:
                    for other in after.get(one, {}):
                        if other in names and other not in ways:
                            ways[other] = one
                            reached.append(other)
                front = reached
            circle = [begin]
            while (before := ways[circle[-1]]) != begin:
                circle.append(before)
            yield [begin, *reversed(circle[1:])]


def _components(after: Mapping[str, Mapping[str, str]]) -> Iterator[set[str]]:
    """Tarjan's strongly connected components, without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in list(after):
        if root in number:
            continue
        work = [(root, iter(after.get(root, {})))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, others = work[-1]
            for other in others:
                if other not in number:
                    number[other] = lowest[other] = len(number)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(after.get(other, {}))))
                    break
                if other in on_stack:
                    lowest[name] = min(lowest[name], number[other])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == number[name]:
                    names = set()
                    while name not in names:
                        names.add(top := stack.pop())
                        on_stack.discard(top)
                    yield names
