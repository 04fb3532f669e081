"""A run from its beginning to its histories: everybody starts, faults come as drawn, everything is consumed,
all stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.chaos.account import processed_of, produced_of
from tests.chaos.asking import until
from tests.chaos.checks import skipped
from tests.chaos.clients.common import PARTITIONS
from tests.chaos.history import OK, Process
from tests.chaos.plan import CHURN, LIBRARIES, MEMBERS, NODES, RAW_GROUPS, SPARK, Plan
from tests.chaos.processes import Processes
from tests.chaos.rebalances import Struck, reasons
from tests.chaos.schedule import KILL, STOP, Fault, draw
from tests.chaos.targets import RINGLEADER, Target, Victim

Say = Callable[[str], None]

FORM_S = 300.0
"""All groups stand and work within so long."""
CONSUMED_S = 180.0
"""After the last fault every record is processed within so long."""
LOOK_S = 1.0


class RunError(Exception):
    """The run could not be made; one sentence says why."""


@dataclass(slots=True)
class Result:
    """What a run left."""

    histories: dict[str, Process] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)
    settled_s: float = 0.0
    ended_s: float = 0.0
    complaints: list[str] = field(default_factory=list)
    """What ended by itself, did not stop, did not heal, or logged a traceback."""
    why: dict[tuple[str, int], str] = field(default_factory=dict)
    """Of rebalances, as the nodes' logs tell it."""


class Director:
    """Of one run. `directory`: where histories and logs go."""

    def __init__(self, plan: Plan, target: Target, directory: Path, say: Say) -> None:
        self._plan, self._target, self._directory, self._say = plan, target, directory, say
        self._result = Result()
        self._members = {
            f"{library}-{number}": library
            for library in plan.libraries
            for number in range(1, plan.members + 1)
        }
        self._producers = [f"producer-{number}" for number in range(1, plan.producers + 1)]
        self._readers = {f"reader-{number}": address for number, address in enumerate(target.addresses, 1)}

    def run(self) -> Result:
        """The whole of it. Raises `RunError`, `TimeoutError`."""
        result = self._result
        with Processes(self._directory) as cast:
            self._target.await_healthy(RAW_GROUPS)
            self._start(cast)
            self._form(cast)
            result.settled_s = time.monotonic()
            self._say(
                f"all groups stand; {'rolling restart' if self._plan.rolling else 'faults'} from now on"
            )
            if self._plan.rolling:
                self._roll(cast)
            else:
                self._strike(cast)
            result.ended_s = time.monotonic()
            self._end(cast)
            result.histories = {name: cast.read(name) for name in self._names()}
            result.complaints += [*cast.complaints, *self._target.complaints()]
            for node in self._target.nodes.values():
                result.why |= reasons(node.log())
        return result

    def _names(self) -> list[str]:
        spark = [SPARK] if self._plan.spark else []
        return ["committer", CHURN, *self._readers, *self._members, *self._producers, *spark]

    # ---- its beginning ----

    def _start(self, cast: Processes) -> None:
        target, plan = self._target, self._plan
        places = ["--bootstrap", target.bootstrap, "--brokers", target.brokers, "--seed", str(plan.seed)]

        def groups(names: Sequence[str]) -> list[str]:
            return [word for name in names for word in ("--group", name)]

        for number, (name, library) in enumerate(self._members.items()):
            # Every other one of ours takes its records straight from the brokers.
            straight = ["--straight"] if library == "ours" and number % 2 else []
            cast.start(name, f"{MEMBERS}.{LIBRARIES[library]}", *places, "--group", library, *straight)
        cast.start("committer", f"{MEMBERS}.committer", *places, *groups(RAW_GROUPS))
        cast.start(CHURN, f"{MEMBERS}.churn", *places, "--group", CHURN)
        for name, address in self._readers.items():
            alone = ["--bootstrap", address, "--brokers", target.brokers]
            cast.start(name, f"{MEMBERS}.reader", *alone, *groups(plan.groups))
        for number, name in enumerate(self._producers):
            # One asks whom the groups ask, the next one the brokers.
            straight = ["--straight"] if number % 2 else []
            cast.start(name, f"{MEMBERS}.producer", *places, *straight, "--per-second", str(plan.per_second))
        if plan.spark:
            cast.start(SPARK, f"{MEMBERS}.spark", *places, "--group", SPARK)

    def _form(self, cast: Processes) -> None:
        """Until every group works and none has rebalanced for a while."""
        until_s = time.monotonic() + FORM_S
        while missing := self._missing(cast):
            cast.check()
            if cast.complaints:
                raise RunError(f"the run did not begin: {'; '.join(cast.complaints)}")
            if time.monotonic() > until_s:
                raise RunError(f"after {FORM_S:.0f} s there is no work of {', '.join(missing)}")
            time.sleep(LOOK_S)

    def _missing(self, cast: Processes) -> list[str]:
        missing = []
        processed: dict[str, set[int]] = {group: set() for group in self._plan.consuming_groups}
        latest = 0.0
        whose = {**self._members, **({SPARK: SPARK} if self._plan.spark else {})}
        for name, group in whose.items():
            for line in cast.read(name).lines:
                if line["did"] == "processed":
                    processed[group].add(line["partition"])
                elif line["did"] == "generation":
                    latest = max(latest, line["t"])
            if not any(line["did"] == "processed" for line in cast.read(name).lines):
                missing.append(name)
        missing += [group for group, found in processed.items() if len(found) < PARTITIONS]
        acked = {call.asked["group"] for call in cast.read("committer").calls if call.end == OK}
        missing += sorted(set(RAW_GROUPS) - acked)
        if not missing and time.monotonic() - latest < self._plan.quiet_s:
            return ["groups that stay as they are"]
        return missing

    # ---- faults ----

    def _strike(self, cast: Processes) -> None:
        plan = self._plan
        faults = draw(
            plan.seed,
            plan.faults,
            longest_pause_s=plan.longest_pause_s,
            layers=2 if self._target.kind == RINGLEADER else 1,
        )
        with ThreadPoolExecutor(2) as pool:
            for one, following in pairwise([*faults, None]):
                assert one is not None
                if one.together:
                    continue  # it came with the one before
                time.sleep(one.after_s)  # the next fault is due then, whatever happens meanwhile
                both = [one] if following is None or not following.together else [one, following]
                victims = [self._victim(fault) for fault in both]
                for outcome in [
                    pool.submit(self._break, fault, victim)
                    for fault, victim in zip(both, victims, strict=True)
                    if victim is not None
                ]:
                    outcome.result()
                self._heal(cast)

    def _victim(self, fault: Fault) -> Victim | None:
        found: list[Victim | None] = [None]

        def known() -> bool:
            found[0] = self._target.victim(fault, self._plan.groups)
            return found[0] is not None

        try:
            until(known, f"the {fault.victim}")
        except TimeoutError as error:
            self._complain(f"fault {fault.number}: {error}")
        return found[0]

    def _break(self, fault: Fault, victim: Victim) -> None:
        began_s = time.monotonic()
        self._say(f"{fault.number}. {fault}: {victim.name}")
        ways = {KILL: (victim.kill, victim.start), STOP: (victim.stop, victim.start)}
        down, up = ways.get(fault.how, (victim.pause, victim.resume))
        self._do(fault, down)
        time.sleep(fault.seconds)  # so long it is paused or down; nothing is waited for
        self._do(fault, up)
        ended_s = time.monotonic()
        self._result.struck.append(
            Struck(fault.number, victim.layer, fault.victim, fault.how, victim.name, began_s, ended_s)
        )

    def _do(self, fault: Fault, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:  # a process that does not stop or start is a finding, not the run's end
            self._complain(f"fault {fault.number}: {str(error).splitlines()[0]}")

    def _complain(self, why: str) -> None:
        self._say(why)
        self._result.complaints.append(why)

    def _heal(self, cast: Processes) -> None:
        try:
            self._target.await_healthy(RAW_GROUPS)
        except TimeoutError as error:
            self._complain(str(error))
        for why in self._target.revive():
            self._complain(why)
        cast.check()

    def _roll(self, cast: Processes) -> None:
        target = self._target
        ids = sorted(target.cluster.brokers if target.cluster is not None else target.nodes)
        nodes = self._plan.rolling == NODES
        for number, node_id in enumerate(ids * self._plan.rolls, 1):
            victim = target.node(node_id) if nodes else target.broker(node_id)
            fault = Fault(number, victim.layer, STOP, self._plan.quiet_s, 0.0, 0, 0)
            time.sleep(fault.after_s)  # load goes on between two restarts
            self._break(fault, victim)
            self._heal(cast)

    # ---- its end ----

    def _end(self, cast: Processes) -> None:
        self._say("no more faults: everything is to be consumed")
        cast.stop(self._producers)
        until_s = time.monotonic() + CONSUMED_S
        while self._left(cast) and time.monotonic() < until_s:
            cast.check()
            time.sleep(LOOK_S)
        others = [name for name in self._names() if name not in self._producers]
        cast.stop([name for name in others if name in self._readers or name in ("committer", CHURN)])
        cast.stop(others)

    def _left(self, cast: Processes) -> bool:
        produced = produced_of([cast.read(name) for name in self._producers])
        members = {name: cast.read(name) for name in (*self._members, *([SPARK] if self._plan.spark else []))}
        return bool(skipped(produced, processed_of(members.values(), self._plan.consuming_groups)))
