"""How long a leader computes: our sticky assignors beside those of kafka-python and aiokafka."""

from __future__ import annotations

import contextlib
import gc
import io
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from aiokafka.structs import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse

from bench.plan import RINGLEADER, Plan
from bench.report import Goal, print_goals, save, say, table
from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    STICKY,
    Assignor,
    AssignorMember,
    sticky_user_data,
)

KAFKA_PYTHON, AIOKAFKA = "kafka-python", "aiokafka"
TOPICS = 10
Shares = Mapping[str, Mapping[str, Sequence[int]]]
"""Member id -> topic -> partitions."""

Info = JoinGroupResponse.JoinGroupResponseMember


class Job(NamedTuple):
    """One assignment: members by name with their topics, and what each owns."""

    members: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]
    owned: Shares


class _Cluster:
    """Metadata as the other libraries ask for it."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        return set(self._counts)


def _ours(assignor: Assignor) -> Callable[[Job], Shares]:
    def assign(job: Job) -> Shares:
        eager = not assignor.cooperative
        members = [
            AssignorMember(
                name,
                topics=topics,
                owned={} if eager else job.owned.get(name, {}),
                generation=1 if name in job.owned else -1,
                user_data=sticky_user_data(job.owned.get(name, {}), 1 if name in job.owned else -1),
            )
            for name, topics in job.members.items()
        ]
        return assignor.assign(members, job.counts)

    return assign


def _kafka_python(kind: Any) -> Callable[[Job], Shares]:
    def assign(job: Job) -> Shares:
        infos = []
        for name, topics in job.members.items():
            assignor = kind()
            if name in job.owned:
                own = job.owned[name]
                assignor.member_assignment = [TopicPartition(t, p) for t, ps in own.items() for p in ps]
                assignor.generation = 1
            infos.append(Info(member_id=name, group_instance_id=None, metadata=assignor.metadata(topics)))
        found = kind().assign(_Cluster(job.counts), infos)
        return {name: dict(one.assigned_partitions) for name, one in found.items()}

    return assign


def _aiokafka(job: Job) -> Shares:
    members = {}
    for name, topics in job.members.items():
        own = job.owned.get(name)
        had = None if own is None else [TopicPartition(t, p) for t, ps in own.items() for p in ps]
        members[name] = AiokafkaSticky._metadata(topics, had, -1 if own is None else 1)
    found = AiokafkaSticky.assign(_Cluster(job.counts), members)
    return {name: dict(one.assignment) for name, one in found.items()}


LIBRARIES: dict[str, dict[str, Callable[[Job], Shares]]] = {
    "sticky": {
        RINGLEADER: _ours(STICKY),
        KAFKA_PYTHON: _kafka_python(StickyPartitionAssignor),
        AIOKAFKA: _aiokafka,
    },
    "cooperative-sticky": {
        RINGLEADER: _ours(COOPERATIVE_STICKY),
        KAFKA_PYTHON: _kafka_python(CooperativeStickyAssignor),
    },
}


def _group(members: int, partitions: int, mixed: bool = False) -> Job:
    counts = {f"topic-{number:02}": partitions // TOPICS for number in range(TOPICS)}
    draw = random.Random(1)
    names = [f"member-{number:05}" for number in range(members)]
    topics = {
        name: sorted(draw.sample(list(counts), TOPICS // 2)) if mixed else list(counts) for name in names
    }
    return Job(topics, counts, {})


def _timed(assign: Callable[[Job], Shares], job: Job) -> tuple[float, Shares]:
    gc.collect()
    with contextlib.redirect_stdout(io.StringIO()):
        began = time.process_time()
        found = assign(job)
        return time.process_time() - began, found


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


def _changes(first: Shares, job: Job) -> dict[str, Job]:
    """One member leaves; another one joins."""
    names = list(job.members)
    staying = {name: job.members[name] for name in names[1:]}
    joining = {**job.members, "member-new": job.members[names[0]]}
    left = {name: share for name, share in first.items() if name in staying}
    return {"one leaves": Job(staying, job.counts, left), "one joins": Job(joining, job.counts, first)}


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes assignors.json, returns its content."""
    small, large, huge = plan.assignors
    results: list[dict[str, Any]] = []

    def measure(what: str, name: str, library: str, job: Job, size: str) -> Shares:
        seconds, found = _timed(LIBRARIES[name][library], job)
        results.append(
            {
                "group": size,
                "what": what,
                "assignor": name,
                "library": library,
                "seconds": seconds,
                "moves": _moves(job, found),
                "spread": _spread(found),
            }
        )
        say(f"  {size}, {what}, {name} of {library}: {seconds:.3f} s")
        return found

    for name, libraries in LIBRARIES.items():
        for library in libraries:
            job = _group(*small)
            first = measure("fresh", name, library, job, _size(small))
            for what, change in _changes(first, job).items():
                measure(what, name, library, change, _size(small))
    for name, libraries in LIBRARIES.items():
        for library in libraries:
            job = _group(*large)
            first = measure("fresh", name, library, job, _size(large))
            if library == RINGLEADER:
                for what, change in _changes(first, job).items():
                    measure(what, name, library, change, _size(large))
    mixed = _group(large[0] // 2, large[1], mixed=True)
    first = measure("fresh, mixed topics", "sticky", RINGLEADER, mixed, _size((large[0] // 2, large[1])))
    for what, change in _changes(first, mixed).items():
        measure(f"{what}, mixed topics", "sticky", RINGLEADER, change, _size((large[0] // 2, large[1])))
    measure("fresh", "sticky", RINGLEADER, _group(*huge), _size(huge))
    rows = [
        [
            one["group"],
            one["what"],
            one["assignor"],
            one["library"],
            f"{one['seconds'] * 1000:,.1f}",
            one["moves"],
            one["spread"],
        ]
        for one in results
    ]
    columns = ["members x partitions", "", "assignor", "library", "CPU ms", "moves", "spread"]
    table("Assignments, as the leader computes them", columns, rows)
    goals = _goals(results, _size(large))
    print_goals(goals)
    save(plan.out_dir, "assignors", {"results": results}, goals)
    return {"results": results}


def _size(group: tuple[int, int]) -> str:
    return f"{group[0]:,} x {group[1]:,}"


def _goals(results: Sequence[Mapping[str, Any]], size: str) -> list[Goal]:
    """How many times faster, fresh assignments of the large group."""
    seconds = {
        (one["assignor"], one["library"]): one["seconds"]
        for one in results
        if one["group"] == size and one["what"] == "fresh"
    }
    return [
        Goal(f"{name}, {size}: times as fast", library, other / seconds[name, RINGLEADER], 300)
        for (name, library), other in seconds.items()
        if library != RINGLEADER
    ]
