"""A run from its beginning to its histories: everybody starts, faults come, everything is consumed, all
stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.chaos.asking import until
from tests.chaos.checks import skipped
from tests.chaos.clients.common import PARTITIONS
from tests.chaos.company import MEMBERS, Company, groups_of
from tests.chaos.facts import processed_of, produced_of
from tests.chaos.history import OK, Process
from tests.chaos.processes import Processes
from tests.chaos.rebalances import Struck, reasons
from tests.chaos.schedule import KILL, STOP, Fault
from tests.chaos.targets import Target, Victim

Say = Callable[[str], None]

FORM_S = 300.0
"""All groups stand and work within so long."""
CONSUMED_S = 180.0
"""After the last fault every record is processed within so long."""
LOOK_S = 1.0
LIVES = 4
"""So often a process that ends by itself is one that does so on purpose."""
AWAITED_GROUPS = 8
"""This many groups of those that commit all the time have to be there before a run goes on."""


class RunError(Exception):
    """The run could not be made; one sentence says why."""


@dataclass(slots=True)
class Result:
    """The files that a run left."""

    histories: dict[str, Process] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)
    settled_s: float = 0.0
    ended_s: float = 0.0
    complaints: list[str] = field(default_factory=list)
    """Processes that ended by themselves, did not stop, did not heal, or logged a traceback."""
    why: dict[tuple[str, int], str] = field(default_factory=dict)
    """Of rebalances, as the nodes' logs tell it."""


class Strikes(Protocol):
    """The faults of a run."""

    says: str

    def strike(self, director: Director) -> None:
        """All of them, from the first to the last."""


class Director:
    """Of one run. `cast`: runs its processes."""

    def __init__(self, company: Company, target: Target, cast: Processes, say: Say, strikes: Strikes) -> None:
        self.company, self.target, self.cast, self.say = company, target, cast, say
        self.result = Result()
        self._strikes = strikes
        self._places: dict[str, str] = {}
        """In whose place each process is that was started for one that ended."""

    def run(self) -> Result:
        """The whole of it. Raises `RunError`, `TimeoutError`."""
        result = self.result
        self.target.await_healthy(self.awaited_groups)
        for role in self.company.roles:
            self._start(role.name, role.name)
        self._form()
        result.settled_s = time.monotonic()
        self.say(f"all groups stand; {self._strikes.says} from now on")
        self._strikes.strike(self)
        result.ended_s = time.monotonic()
        self._end()
        result.histories = {name: self.cast.read(name) for name in self.names()}
        result.complaints += [*self.cast.complaints, *self.target.complaints()]
        for node in self.target.nodes.values():
            result.why |= reasons(node.log())
        return result

    @property
    def awaited_groups(self) -> Sequence[str]:
        """Groups whose coordinator has to answer before anything goes on."""
        return (self.company.committing or self.company.groups)[:AWAITED_GROUPS]

    def names(self) -> list[str]:
        """All processes so far."""
        return [*(role.name for role in self.company.roles), *self._places]

    def members(self) -> list[str]:
        """Those of them that process records for a group."""
        works = groups_of(self.company.roles)
        return [name for name in self.names() if self._places.get(name, name) in works]

    # ---- its beginning ----

    def _start(self, name: str, role_name: str, *, calm: bool = False) -> None:
        role = next(role for role in self.company.roles if role.name == role_name)
        places = ["--bootstrap", role.bootstrap or self.target.bootstrap, "--brokers", self.target.brokers]
        places += ["--seed", str(self.company.seed)]
        own = [*role.arguments, *(["--misbehaves", ""] if calm else [])]
        places += ["--identity", role_name]
        self.cast.start(name, f"{MEMBERS}.{role.program}", *places, *own)

    def replace_departed(self) -> None:
        """Start another process in the place of each that may end by itself and has ended."""
        exits = {role.name for role in self.company.roles if role.exits}
        for name in [name for name in self.names() if self._places.get(name, name) in exits]:
            if self.cast.forget(name):
                self.replace(name)

    def replace(self, name: str) -> None:
        """Another process in the place of one that has ended; its history is another one."""
        place = self._places.get(name, name)
        life = sum(of == place for of in self._places.values()) + 2
        fresh = f"{place}.{life}"
        self._places[fresh] = place
        # Each that left without a word keeps its partitions for a session: at last one has to stay.
        self._start(fresh, place, calm=life > LIVES)

    def _form(self) -> None:
        """Until every group works and none has rebalanced for a while."""
        until_s = time.monotonic() + FORM_S
        while missing := self._missing():
            self.replace_departed()
            self.cast.check()
            if self.cast.complaints:
                raise RunError(f"the run did not begin: {'; '.join(self.cast.complaints)}")
            if time.monotonic() > until_s:
                raise RunError(f"after {FORM_S:.0f} s there is no work of {', '.join(missing)}")
            time.sleep(LOOK_S)

    def _missing(self) -> list[str]:
        missing = []
        company = self.company
        processed: dict[str, set[int]] = {group: set() for group in company.consuming}
        latest = 0.0
        for name, group in groups_of(company.roles).items():
            lives = [name, *(fresh for fresh, place in self._places.items() if place == name)]
            found = [line for one in lives for line in self.cast.read(one).lines]
            for line in found:
                if line["did"] == "processed":
                    processed[group].add(line["partition"])
                elif line["did"] == "generation" and group in company.stable:
                    latest = max(latest, line["t"])
            if not any(line["did"] == "processed" for line in found):
                missing.append(name)
        missing += [group for group, found in processed.items() if len(found) < PARTITIONS]
        if company.committing:
            acked = {call.request["group"] for call in self.cast.read("committer").calls if call.end == OK}
            missing += sorted(set(company.committing) - acked)
        if not missing and time.monotonic() - latest < company.quiet_s:
            return ["groups that stay as they are"]
        return missing

    # ---- what strikes ask of it ----

    def victim(self, fault: Fault) -> Victim | None:
        """The victim that it strikes, as soon as that is known; None, with a complaint, if it is not."""
        found: list[Victim | None] = [None]

        def known() -> bool:
            found[0] = self.target.victim(fault, self.company.groups)
            return found[0] is not None

        try:
            until(known, f"the {fault.victim}")
        except TimeoutError as error:
            self.complain(f"fault {fault.number}: {error}")
        return found[0]

    def break_one(self, fault: Fault, victim: Victim) -> None:
        """A process is killed, stopped or paused, and comes back."""
        began_s = time.monotonic()
        self.say(f"{fault.number}. {fault}: {victim.name}")
        ways = {KILL: (victim.kill, victim.start), STOP: (victim.stop, victim.start)}
        down, up = ways.get(fault.how, (victim.pause, victim.resume))
        self.do(fault.number, down)
        time.sleep(fault.seconds)  # so long it is paused or down; nothing is waited for
        self.do(fault.number, up)
        self.result.struck.append(
            Struck(
                fault.number,
                victim.layer,
                fault.victim,
                fault.how,
                victim.name,
                began_s,
                time.monotonic(),
            )
        )

    def do(self, number: int, step: Callable[[], object]) -> None:
        """A step of a fault. An exception that it raises is a finding, not the run's end: a process that does
        not stop."""
        try:
            step()
        except Exception as error:
            self.complain(f"fault {number}: {(str(error) or type(error).__name__).splitlines()[0]}")

    def complain(self, why: str) -> None:
        """Of what no fault excuses."""
        self.say(why)
        self.result.complaints.append(why)

    def heal(self) -> None:
        """Wait until all is well again, and start what ended by itself."""
        try:
            self.target.await_healthy(self.awaited_groups)
        except TimeoutError as error:
            self.complain(str(error))
        for why in self.target.revive():
            self.complain(why)
        self.replace_departed()
        self.cast.check()

    # ---- its end ----

    def _end(self) -> None:
        self.say("no more faults: everything is to be consumed")
        company = self.company
        self.cast.stop([role.name for role in company.roles if role.produces])
        until_s = time.monotonic() + CONSUMED_S
        while self._left() and time.monotonic() < until_s:
            self.replace_departed()
            self.cast.check()
            time.sleep(LOOK_S)
        exits = {role.name for role in company.roles if role.exits}
        self.cast.stop([role.name for role in company.roles if role.ends_early])
        for name in self.names():
            if self._places.get(name, name) in exits:
                self.cast.forget(name)
        self.cast.stop([name for name in self.names() if name not in self.cast.stopped])

    def _left(self) -> bool:
        company = self.company
        produced = produced_of([self.cast.read(role.name) for role in company.roles if role.produces])
        members = [self.cast.read(name) for name in self.members()]
        return bool(skipped(produced, processed_of(members, company.consuming)))
