"""An exception in a request, before `changes` grew, has changed nothing: whatever line it came from."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ringleader.coordinator import deadlines, groups, machine
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.machine import Answer
from ringleader.protocol import messages as kafka
from tests.support.shares import share

STEPS = 60
TRIES = 40
"""Lines of each step that raise."""
START_MS = 1_700_000_000_000
GROUP = "g"
TRACED = str(Path(groups.__file__).parent), str(deadlines.__file__), str(machine.__file__)
_OPAQUE = (type, GroupSettings)


class InjectedError(Exception):
    """Raised where the program never raises."""


class Ticket:
    """A request in progress."""

    client_id = "c"
    client_host = "/127.0.0.1"
    principal = "User:a"

    def __init__(self, version: int) -> None:
        self.api_version = version
        self.connection = object()


def fingerprint(root: Any) -> Any:
    """Everything that can be reached, but for the counts of changes."""
    seen: dict[int, int] = {}

    def look(found: Any) -> Any:
        if found is None or isinstance(found, int | str | bytes | float | Enum):
            return found
        if callable(found) or isinstance(found, (*_OPAQUE, Iterator)):
            return type(found).__name__
        if id(found) in seen:
            return ("again", seen[id(found)])
        seen[id(found)] = len(seen)
        if isinstance(found, dict):
            return [(look(key), look(value)) for key, value in found.items()]
        if isinstance(found, list | tuple | deque):
            return [look(one) for one in found]
        if isinstance(found, set | frozenset):
            return sorted(map(repr, found))
        slots = [name for kind in type(found).__mro__ for name in getattr(kind, "__slots__", ())]
        names = [*getattr(found, "__dict__", ()), *slots]
        kept = [name for name in names if name not in ("changes", "_begun") and hasattr(found, name)]
        return [(name, look(getattr(found, name))) for name in kept]

    return look(root)


Step = Callable[[Shard], Any]


class World:
    """Members that come, sync, commit and go, as a script that can be run again."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0
        self.steps: list[tuple[Step, bool]] = []
        """The steps, and whether each was a request."""
        self.shard = fresh_shard()
        self.ids: list[str] = [""]
        self.waiting: dict[Any, str] = {}
        for _ in range(STEPS):
            self._request()
            if self.rng.random() < 0.8:
                self._do(_settle, False)
            if self.rng.random() < 0.4:
                self.now += self.rng.choice([10, 3_000, 7_000])
                self._do(partial(Shard.tick, now_ms=self.now), False)
                self._do(_settle, False)

    def _do(self, step: Step, is_request: bool) -> Any:
        self.steps.append((step, is_request))
        outcome = step(self.shard)
        for answer in outcome if isinstance(outcome, list) else []:
            if isinstance(answer, Answer):
                self._learn(answer.response)
        return outcome

    def _learn(self, response: Any) -> None:
        if isinstance(response, kafka.JoinGroupResponse) and response.member_id not in self.ids:
            self.ids.append(response.member_id)

    def _request(self) -> None:
        rng, now = self.rng, self.now
        group = self.shard._groups.get(GROUP)
        generation = rng.choice([-1, 0 if group is None else group.generation])
        request: Any
        member = rng.choice(self.ids[-4:])
        instance = rng.choice([None, None, "i"])
        fate = rng.randint(0, 7)
        version = rng.choice([5, 7])
        if fate <= 2:
            offer = [kafka.JoinGroupRequestProtocol("range", rng.choice([b"a", b"a", b"b"]))]
            member = member if rng.random() < 0.7 else ""
            request = kafka.JoinGroupRequest(GROUP, 10_000, 5_000, member, instance, "consumer", offer)
        elif fate == 3:
            shares = [kafka.SyncGroupRequestAssignment(one, b"share") for one in self.ids]
            if group is not None and group.leader and rng.random() < 0.8:
                member, generation = group.leader, group.generation
            request = kafka.SyncGroupRequest(GROUP, generation, member, None, None, None, shares)
        elif fate == 4:
            request = kafka.HeartbeatRequest(GROUP, generation, member, None)
        elif fate == 5:
            one = kafka.LeaveGroupRequestMemberIdentity(member, rng.choice([None, "i"]))
            request = kafka.LeaveGroupRequest(GROUP, members=[one] if rng.random() < 0.3 else [])
        elif fate == 6:
            name = rng.choice([GROUP, "simple"])
            places = [kafka.OffsetDeleteRequestPartition(0)]
            request = kafka.OffsetDeleteRequest(name, [kafka.OffsetDeleteRequestTopic("t", places)])
        else:
            version = 4
            name = rng.choice([GROUP, "simple", "other"])
            place = kafka.OffsetCommitRequestPartition(0, 7, committed_metadata=rng.choice(["", "m"]))
            topics = [kafka.OffsetCommitRequestTopic(name="t", partitions=[place])]
            retention = rng.choice([-1, 2**63 - 1])
            request = kafka.OffsetCommitRequest(name, generation, member, None, retention, topics)
        ticket = Ticket(version)
        response = self._do(lambda shard: shard.handle(request, ticket, now), True)
        self._learn(response)

    def until(self, number: int) -> Shard:
        """A shard after the first `number` steps."""
        shard = fresh_shard()
        for step, _ in self.steps[:number]:
            step(shard)
        return shard


def fresh_shard() -> Shard:
    numbers = count()
    shard = Shard(0, GroupSettings(), lambda prefix: f"{prefix}-{next(numbers)}")
    shard.loaded(0, START_MS)
    return shard


def _settle(shard: Shard) -> list[Answer]:
    """Everything that was written is durable."""
    box = shard.drain()
    if box.appends:
        shard.durable(box.appends[-1].position, 0)
    return [*box.answers, *shard.drain().answers]


def raising_at(number: int) -> tuple[Callable[..., Any], list[int]]:
    """A tracer that raises at the line of this number; it counts all lines."""
    lines = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(TRACED):
            return None
        if event == "line":
            lines[0] += 1
            if lines[0] == number:
                raise InjectedError
        return trace

    return trace, lines


def run_traced(step: Step, shard: Shard, number: int) -> tuple[int, bool]:
    """How many lines the step has, and whether it raised."""
    trace, lines = raising_at(number)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        step(shard)
    except InjectedError:
        return lines[0], True
    finally:
        sys.settrace(before)
    return lines[0], False


@pytest.mark.timeout(300)
@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(1, whole=3)), indirect=True)
def test_what_is_as_it_was_by_its_count_is_as_it_was(seed: int) -> None:
    world = World(seed)
    rng = random.Random(seed)
    untouched = touched = 0
    for number, (step, is_request) in enumerate(world.steps):
        if not is_request:
            continue
        lines, _ = run_traced(step, world.until(number), 0)
        for line in rng.sample(range(1, lines + 1), min(TRIES, lines)):
            shard = world.until(number)
            before, changes = fingerprint(shard._core), shard.changes
            _, raised = run_traced(step, shard, line)
            assert raised
            if shard.changes == changes:
                assert fingerprint(shard._core) == before, f"step {number}, line {line}"
                untouched += 1
            else:
                touched += 1
    assert untouched > touched / 10, "hardly a request can fail without harm"
    assert touched, "nothing ever changed"
