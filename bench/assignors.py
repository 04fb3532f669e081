"""How long a leader computes: our sticky assignors beside those of kafka-python and aiokafka.

Ours are computed nine times, the others once (they take half a minute each). Raises `WorseError` when ours
moves more partitions than another one, or balances worse.
"""

from __future__ import annotations

import contextlib
import gc
import io
import random
import statistics
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bench.libraries import LIBRARIES, Job, Library, Shares
from bench.plan import RINGLEADER, Plan
from bench.report import Goal, print_goals, save, say, table

TOPICS = 10
LIMIT_S = 0.05
MIXED_LIMIT_S = 1.0
HUGE_LIMIT_S = 10.0
FASTER = 300
LINEAR = 1.25
"""Memory for each partition may grow by this much while their number grows by four."""

Result = dict[str, Any]


class WorseError(Exception):
    """Another library moved less, or balanced better."""


class Measured(NamedTuple):
    """CPU seconds of a rebalance, all of its rounds together, and what came of it."""

    seconds: list[float]
    """Computing, each time."""
    whole_s: list[float]
    """The same with the members' bytes decoded, and the answer's encoded."""
    rounds: int
    shares: Shares


def _group(members: int, partitions: int, mixed: bool = False) -> Job:
    counts = {f"topic-{number:02}": partitions // TOPICS for number in range(TOPICS)}
    draw = random.Random(1)
    names = [f"member-{number:05}" for number in range(members)]
    topics = {
        name: sorted(draw.sample(list(counts), TOPICS // 2)) if mixed else list(counts) for name in names
    }
    return Job(topics, counts, {})


def _changes(first: Shares, job: Job) -> dict[str, Job]:
    """One member leaves; another one joins."""
    names = list(job.members)
    staying = {name: job.members[name] for name in names[1:]}
    joining = {**job.members, "member-new": job.members[names[0]]}
    left = {name: share for name, share in first.items() if name in staying}
    return {"one leaves": Job(staying, job.counts, left), "one joins": Job(joining, job.counts, first)}


def _measure(library: Library, job: Job, times: int, cooperative: bool) -> Measured:
    """A cooperative group goes on until nobody has to give up anything."""
    seconds, whole = [], []
    for _ in range(times):
        computing = around = 0.0
        rounds, now = 0, job
        while True:
            joined = library.joined(now)
            gc.collect()
            with contextlib.redirect_stdout(io.StringIO()):
                began = time.process_time()
                members = library.decoded(joined)
                decoded = time.process_time()
                answer = library.assign(now, members)
                assigned = time.process_time()
                library.encoded(answer)
                ended = time.process_time()
            computing += assigned - decoded
            around += (decoded - began) + (ended - assigned)
            shares, rounds = library.shares(answer), rounds + 1
            if not cooperative or not _gives_up(now.owned, shares):
                break
            now = Job(job.members, job.counts, shares, now.generation + 1)
        seconds.append(computing)
        whole.append(computing + around)
    return Measured(seconds, whole, rounds, shares)


def _gives_up(owned: Shares, shares: Shares) -> bool:
    return any(
        set(ps) - set(shares[name].get(topic, ())) for name, own in owned.items() for topic, ps in own.items()
    )


def _moves(job: Job, found: Shares) -> int:
    owner = {(t, p): name for name, own in job.owned.items() for t, ps in own.items() for p in ps}
    return sum(
        owner.get((t, p), name) != name
        for name, share in found.items()
        for t, ps in share.items()
        for p in ps
    )


def _spread(found: Shares) -> int:
    sizes = [sum(map(len, share.values())) for share in found.values()]
    return max(sizes) - min(sizes)


class _Run:
    """The results so far."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.results: list[Result] = []

    def one(self, group: str, what: str, name: str, library: str, job: Job, times: int) -> Shares:
        """Measure it, keep the result, say so; returns the shares at the end."""
        times = times if library == RINGLEADER else 1
        found = _measure(LIBRARIES[name][library], job, times, name.startswith("cooperative"))
        result = {
            "group": group,
            "what": what,
            "assignor": name,
            "library": library,
            "rounds": found.rounds,
            "seconds": statistics.median(found.seconds),
            "slowest_s": max(found.seconds),
            "whole_s": statistics.median(found.whole_s),
            "moves": _moves(job, found.shares),
            "spread": _spread(found.shares),
        }
        self.results.append(result)
        say(f"  {group}, {what}, {name} of {library}: {result['seconds']:.3f} s")
        return found.shares

    def all(self, group: str, name: str, library: str, job: Job, what: str = "", times: int = 0) -> None:
        """A fresh assignment, one that leaves, one that joins. `times` 0: as often as planned."""
        times = times or self.times
        first = self.one(group, f"fresh{what}", name, library, job, times)
        for change, then in _changes(first, job).items():
            self.one(group, f"{change}{what}", name, library, then, times)


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes assignors.json, returns its content."""
    small, large, huge = plan.assignors
    measured = _Run(plan.assignor_times)
    for name, libraries in LIBRARIES.items():
        for library in libraries:
            measured.all(_size(small), name, library, _group(*small))
    for name in LIBRARIES:
        mixed = (large[0] // 2, large[1])
        measured.all(_size(mixed), name, RINGLEADER, _group(*mixed, mixed=True), ", mixed topics")
        measured.all(_size(huge), name, RINGLEADER, _group(*huge), times=1)
    for name, libraries in LIBRARIES.items():
        for library in libraries:
            measured.all(_size(large), name, library, _group(*large))
    results = measured.results
    memory = [_memory(huge[0], huge[1] // part) for part in (4, 2, 1)]
    _no_worse(results)
    _print(results)
    goals = [*_goals(results, _size(large), _size(huge)), _linear(memory)]
    print_goals(goals)
    save(plan.out_dir, "assignors", {"results": results, "memory": memory}, goals)
    return {"results": results, "memory": memory}


def _memory(members: int, partitions: int) -> Result:
    """Peak of what Python allocates while the leader computes a sticky assignment."""
    library, job = LIBRARIES["sticky"][RINGLEADER], _group(members, partitions)
    peaks: Result = {"members": members, "partitions": partitions}
    for what in ("fresh", "one leaves"):
        decoded = library.decoded(library.joined(job))
        gc.collect()
        tracemalloc.start()
        answer = library.assign(job, decoded)
        peaks[what] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        job = _changes(library.shares(answer), job)["one leaves"]
    say(f"  {_size((members, partitions))}: {peaks['fresh'] / 2**20:.0f} MiB at most")
    return peaks


def _size(group: tuple[int, int]) -> str:
    return f"{group[0]:,} x {group[1]:,}"


def _peers(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Each result of ours with each of another library for the same."""
    ours = {(r["group"], r["what"], r["assignor"]): r for r in results if r["library"] == RINGLEADER}
    return [
        (ours[other["group"], other["what"], other["assignor"]], other)
        for other in results
        if other["library"] != RINGLEADER
    ]


def _no_worse(results: Sequence[Result]) -> None:
    for mine, other in _peers(results):
        for what in ("moves", "spread"):
            if mine[what] > other[what]:
                raise WorseError(f"{what}: {mine} beside {other}")


def _goals(results: Sequence[Result], large: str, huge: str) -> list[Goal]:
    """How many times as fast with the large group, at least, and our own limits; the worst of all changes."""
    ratios: dict[tuple[str, str], float] = {}
    for mine, other in _peers(results):
        if mine["group"] == large:
            key, ratio = (mine["assignor"], other["library"]), other["seconds"] / mine["seconds"]
            ratios[key] = min(ratio, ratios.get(key, ratio))
    slowest: dict[tuple[str, float], float] = {}
    for one in results:
        limits = {large: LIMIT_S, huge: HUGE_LIMIT_S}
        limit = MIXED_LIMIT_S if "mixed" in one["what"] else limits.get(one["group"])
        if one["library"] == RINGLEADER and limit is not None:
            mixed = ", mixed topics" if limit == MIXED_LIMIT_S else ""
            named = f"{one['assignor']}, {one['group']}{mixed}: CPU time of the slowest change", limit
            slowest[named] = max(one["seconds"], slowest.get(named, 0.0))
    return [
        *(
            Goal(f"{name}, {large}: times as fast, in any change", library, ratio, FASTER)
            for (name, library), ratio in ratios.items()
        ),
        *(
            Goal(name, f"a limit of {limit:g} s", seconds / limit, 1, is_time=True)
            for (name, limit), seconds in slowest.items()
        ),
    ]


def _linear(memory: Sequence[Mapping[str, int]]) -> Goal:
    each = [max(one["fresh"], one["one leaves"]) / one["partitions"] for one in memory]
    name = f"memory for each of {memory[-1]['partitions']:,} partitions"
    return Goal(name, f"that with {memory[0]['partitions']:,}", each[-1] / each[0], LINEAR, is_time=True)


COLUMNS = (
    "members x partitions",
    "assignor",
    "library",
    "rounds",
    "CPU ms",
    "slowest",
    "with bytes",
    "moves",
    "spread",
)


def cells(one: Result) -> list[object]:
    """A row under `COLUMNS`."""
    return [
        f"{one['group']}, {one['what']}",
        one["assignor"],
        one["library"],
        one["rounds"],
        *(f"{one[key] * 1000:,.1f}" for key in ("seconds", "slowest_s", "whole_s")),
        one["moves"],
        one["spread"],
    ]


def _print(results: Sequence[Result]) -> None:
    table("Assignments, as the leader computes them", COLUMNS, map(cells, results))
