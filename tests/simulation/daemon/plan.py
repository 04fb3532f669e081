"""The plan of a run: a list of events in order of time, drawn by the seed, with a form in JSON; and how a
plan that fails becomes a short one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

FAULTY_MS = 40_000
"""After that nothing goes wrong any more."""
CONSUMERS = 4
WORKERS = 3
_LOST = ("*", "JoinGroup", "SyncGroup", "OffsetCommit", "OffsetCommit", "Produce", "CreatePartitions")
_CLIENT_OF = {"Produce": "producer", "CreatePartitions": "operator"}


@dataclass(frozen=True)
class Event:
    """`do` to `client`, if it is about one, for `ms`, if it lasts; `what` and `count` say more."""

    at_ms: int
    do: str
    client: str = ""
    ms: int = 0
    what: str = ""
    count: int = 0


Plan = list[Event]


def to_json(plan: Plan) -> str:
    """One line."""
    return json.dumps([{k: v for k, v in asdict(one).items() if v or k == "at_ms"} for one in plan])


def from_json(text: str) -> Plan:
    """The plan that `to_json` was given."""
    return [Event(**one) for one in json.loads(text)]


def draw(seed: int) -> Plan:
    """Members come first; then everything in any order."""
    rng = random.Random(f"plan {seed}")
    consumers = [f"consumer-{n}" for n in range(rng.randint(2, CONSUMERS))]
    workers = [f"worker-{n}" for n in range(rng.randint(1, WORKERS))]
    members = consumers + workers
    clients = [*members, "producer", "operator"]
    plan = [Event(rng.randint(1_000, 8_000), "join", name) for name in members]
    plan += [
        Event(rng.randint(1_000, FAULTY_MS), "produce", count=rng.randint(1, 60))
        for _ in range(rng.randint(4, 10))
    ]

    def some(most: int, make: Callable[[int], Event]) -> None:
        made = [make(rng.randint(2_000, FAULTY_MS)) for _ in range(rng.randint(0, most))]
        plan.extend(made)

    def lasts(*choices: int) -> int:
        return int(rng.choice(choices) * rng.uniform(0.5, 1.0))

    def lost(at: int, api: str) -> Event:
        return Event(at, "lose", _CLIENT_OF.get(api) or rng.choice(members), what=api)

    def full(at: int) -> Event:
        plan.append(Event(at + rng.randint(0, 400), "produce", count=rng.randint(1, 20)))
        return Event(at, "full disk", ms=lasts(1_000, 5_000))

    # A group goes through this on any day.
    some(2, lambda at: Event(at, "grow", count=rng.randint(1, 2)))
    some(2, lambda at: Event(at, "create", count=rng.randint(1, 3)))
    some(2, lambda at: Event(at, "join", rng.choice(members)))
    some(2, lambda at: Event(at, "stop", rng.choice(members)))
    some(2, lambda at: Event(at, "stall", rng.choice(members), lasts(1_000, 5_000, 12_000)))
    # This goes wrong with clients and their network.
    some(2, lambda at: Event(at, "kill", rng.choice(members)))
    some(3, lambda at: Event(at, "pause", rng.choice(clients), lasts(500, 4_000, 15_000)))
    some(4, lambda at: Event(at, "reset", rng.choice(clients)))
    some(4, lambda at: lost(at, rng.choice(_LOST)))
    some(
        3, lambda at: Event(at, "late", rng.choice(clients), lasts(2_000, 8_000), count=rng.choice((20, 300)))
    )
    some(2, lambda at: Event(at, "single", rng.choice(clients), lasts(500, 2_000)))
    some(3, lambda at: Event(at, "hole", rng.choice(clients), lasts(500, 3_000, 20_000)))
    some(3, lambda at: Event(at, "mute", rng.choice([*consumers, *clients])))
    # And with the daemon.
    some(2, lambda at: Event(at, "restart"))
    some(2, lambda at: Event(at, "crash", ms=lasts(500, 4_000)))
    some(2, lambda at: Event(at, "freeze", ms=lasts(200, 2_000, 8_000)))
    some(2, lambda at: Event(at, "slow disk", ms=lasts(1_000, 5_000)))
    some(2, full)
    some(6, lambda at: replace(full(at), ms=lasts(10, 60, 250)))
    some(1, lambda at: Event(at, "append fails", what=rng.choice(("before", "after"))))
    some(1, lambda at: Event(at, "sync fails"))
    some(2, lambda at: Event(at, "wall clock", ms=rng.choice((-3_600_000, -2_000, 5_000, 86_400_000))))
    return sorted(plan, key=lambda event: event.at_ms)


def shrunk(plan: Plan, fails: Callable[[Plan], Any]) -> Plan:
    """A part of a plan that fails as well: no half, no quarter, ... and at last no single event of it can be
    left out."""
    size = max(1, len(plan) // 2)
    while True:
        at, less = 0, False
        while at < len(plan):
            shorter = plan[:at] + plan[at + size :]
            if fails(shorter):
                plan, less = shorter, True
            else:
                at += size
        if size == 1 and not less:
            return plan
        size = max(1, size // 2)
