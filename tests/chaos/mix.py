"""Scenarios as a run: who takes part, which faults come, what has to hold. Several are mixed into one: all
work, all faults, and the promises that hold in each of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.chaos import scenario as schema
from tests.chaos.company import RESULTS, Company, Gathering
from tests.chaos.scenario import Scenario
from tests.chaos.timeline import Timeline

PRODUCERS, PER_SECOND = 2, 60.0
QUIET_S = 4.0


@dataclass(frozen=True)
class Mix:
    """Scenarios by name, on one kind of target."""

    scenarios: Mapping[str, Scenario]
    target: str
    seed: int

    @property
    def checks(self) -> Sequence[str]:
        """The checks of the run."""
        return sorted(set.intersection(*(set(one.checks) for one in self.scenarios.values())))

    @property
    def failing_disk(self) -> bool:
        """Whether the daemon's disk is one that fails."""
        return any(isinstance(fault, schema.Disk) for one in self.scenarios.values() for fault in one.faults)

    @property
    def topics(self) -> Sequence[str]:
        """That clients use."""
        moves = any(isinstance(work, schema.Transactions) for work in self._work())
        return ["records", RESULTS] if moves else ["records"]

    def _work(self) -> list[schema.Work]:
        """Of each kind once: as the first scenario that has it says."""
        found: dict[str, schema.Work] = {}
        for one in self.scenarios.values():
            for work in one.work:
                key = work.library if isinstance(work, schema.Consumers) else work.kind
                found.setdefault(key, work)
        return list(found.values())

    def company(self, addresses: Sequence[str]) -> Company:
        """The processes of the run, in front of nodes at these addresses."""
        gathering = Gathering(self.seed, addresses)
        work = self._work()
        for one in work:
            _gather(gathering, one)
        if any(isinstance(one, schema.Consumers | schema.Transactions) for one in work):
            gathering.producers(PRODUCERS, PER_SECOND, straight=self.target == "ringleader")
        return gathering.company(QUIET_S)

    def timeline(self) -> Timeline:
        """Its faults."""
        ones = list(self.scenarios.values())
        return Timeline([one.faults for one in ones], max(one.calm_s for one in ones), self.seed)


def _gather(gathering: Gathering, work: schema.Work) -> None:
    if isinstance(work, schema.Consumers):
        own = ["--every", str(work.every_s), *(["--static"] if work.static else [])]
        own += [] if work.library in ("aiokafka", "spark") else ["--protocol", work.protocol]
        own += ["--batch-s", str(work.batch_s)] if work.batch_s else []
        gathering.consumers(
            work.library,
            work.members,
            own,
            straight=work.straight,
            first=["--misbehaves", work.misbehaves] if work.misbehaves else [],
            exits=work.misbehaves == "exits",
            stays=not work.misbehaves and work.library != "spark",
        )
    elif isinstance(work, schema.Commits):
        groups = [f"raw-{number}" for number in range(work.groups)]
        own = ["--rest", str(work.every_s), "--every", str(work.every_s)]
        own += ["--partitions", str(work.partitions), "--metadata-bytes", str(work.metadata_bytes)]
        gathering.commits(groups, own)
    elif isinstance(work, schema.Churn):
        gathering.churn(["--session-ms", str(work.session_ms)])
    else:
        own = ["--records", str(work.records), "--aborts", str(work.aborts)]
        gathering.transactions(work.members, own)


def drawn(
    known: Mapping[str, Scenario], target: str, seed: int, count: int, size: int, *, spark: bool
) -> list[Mix]:
    """`count` mixes of `size` scenarios each, none twice as long as there are others."""
    dice = random.Random(seed)
    fit = [name for name, one in known.items() if target in one.targets and (spark or not needs_spark(one))]
    deck: list[str] = []
    mixes = []
    for number in range(count):
        names: list[str] = []
        while len(names) < size:
            if not deck:
                deck = dice.sample(fit, len(fit))
            name = deck.pop()
            if name in names:
                continue
            if known[name].alone:
                if not names:
                    names = [name]
                    break
                deck.insert(0, name)
                if all(known[one].alone for one in deck):
                    break
                continue
            names.append(name)
        mixes.append(Mix({name: known[name] for name in names}, target, seed + number))
    return mixes


def needs_spark(one: Scenario) -> bool:
    """Whether a Spark query takes part."""
    return any(isinstance(work, schema.Consumers) and work.library == "spark" for work in one.work)
