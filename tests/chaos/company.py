"""All processes that take part in a run: which there are, their arguments, and which groups they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MEMBERS = "tests.chaos.clients"
PROGRAMS = {"ours": "ours", "librdkafka": "librdkafka", "aiokafka": "aio", "spark": "spark"}
"""By the library that a group's members use."""
CHURN, SPARK, MOVERS, RESULTS = "churn", "spark", "movers", "results"


@dataclass(frozen=True, slots=True)
class Role:
    """One process. `group`: which of the groups that process every record it works for, if any."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    group: str = ""
    bootstrap: str = ""
    """The addresses that it asks, where they are not everybody's."""
    produces: bool = False
    ends_early: bool = False
    """When the run ends it stops before the members of groups do."""
    exits: bool = False
    """It may end by itself: then another one takes its place."""


@dataclass(frozen=True)
class Company:
    """Of one run."""

    seed: int
    roles: tuple[Role, ...]
    groups: tuple[str, ...]
    """All. Faults choose among them."""
    committing: tuple[str, ...] = ()
    """Groups that commit all the time, each commit with a token."""
    consuming: tuple[str, ...] = ()
    """Groups that have to process every record."""
    stable: tuple[str, ...] = ()
    """Groups whose members stay: they have no reason of their own to rebalance."""
    topics: tuple[str, ...] = ("records",)
    quiet_s: float = 5.0
    """So long no group may have rebalanced before the first fault."""

    @property
    def exact(self) -> tuple[str, ...]:
        """Groups whose commits all have a token."""
        return (*self.committing, *((CHURN,) if CHURN in self.groups else ()))


@dataclass(slots=True)
class Gathering:
    """A company while it is put together. `addresses`: of the nodes, which readers ask one by one."""

    seed: int
    addresses: Sequence[str]
    roles: list[Role] = field(default_factory=list)
    committing: list[str] = field(default_factory=list)
    consuming: list[str] = field(default_factory=list)
    stable: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    """Groups that are none of these."""
    topics: list[str] = field(default_factory=lambda: ["records"])

    def consumers(
        self,
        library: str,
        members: int,
        arguments: Iterable[str] = (),
        *,
        straight: bool = False,
        first: Iterable[str] = (),
        exits: bool = False,
        stays: bool = True,
    ) -> None:
        """A group of one library's members. `first`: arguments of the first of them only; `stays`: they have
        no reason to rebalance; `straight`: every other one reads from the brokers."""
        for number in range(1, members + 1):
            own = [*arguments, *(first if number == 1 else ())]
            own += ["--straight"] if straight and number % 2 == 0 else []
            name = SPARK if library == SPARK else f"{library}-{number}"
            self.roles.append(
                Role(
                    name,
                    PROGRAMS[library],
                    ("--group", library, *own),
                    group=library,
                    exits=exits and number == 1,
                )
            )
        self.consuming.append(library)
        (self.stable if stays else self.more).append(library)

    def commits(self, groups: Sequence[str], arguments: Iterable[str] = ()) -> None:
        """A process that commits in these."""
        self.roles.append(Role("committer", "committer", (*_named(groups), *arguments), ends_early=True))
        self.committing += groups
        self.stable += groups

    def churn(self, arguments: Iterable[str] = ()) -> None:
        """Members that come and go."""
        self.roles.append(Role(CHURN, "churn", ("--group", CHURN, *arguments), ends_early=True))
        self.more.append(CHURN)

    def transactions(self, members: int, arguments: Iterable[str]) -> None:
        """Members that move records, and who reads what they wrote."""
        for number in range(1, members + 1):
            name = f"mover-{number}"
            own = ("--group", MOVERS, *arguments)
            self.roles.append(Role(name, "mover", own, exits=True))
        self.roles.append(Role("auditor", "auditor", ("--group", RESULTS), group=RESULTS))
        self.consuming.append(RESULTS)
        self.more.append(MOVERS)
        self.topics.append(RESULTS)

    def producers(self, count: int, per_second: float, *, straight: bool) -> None:
        """Each other one asks the brokers, if `straight`."""
        for number in range(1, count + 1):
            own = ["--per-second", str(per_second)]
            own += ["--straight"] if straight and number % 2 == 0 else []
            self.roles.append(Role(f"producer-{number}", "producer", tuple(own), produces=True))

    def company(self, quiet_s: float) -> Company:
        """All of them, and readers of the offsets of all groups."""
        groups = [*self.committing, *(group for group in self.consuming if group != RESULTS), *self.more]
        groups = list(dict.fromkeys(groups))
        readers = [
            Role(f"reader-{number}", "reader", tuple(_named(groups)), bootstrap=address, ends_early=True)
            for number, address in enumerate(self.addresses, 1)
        ]
        return Company(
            self.seed,
            (*self.roles, *readers),
            tuple(groups),
            tuple(self.committing),
            tuple(self.consuming),
            tuple(self.stable),
            tuple(self.topics),
            quiet_s,
        )


def _named(groups: Iterable[str]) -> list[str]:
    return [word for group in groups for word in ("--group", group)]


def groups_of(roles: Iterable[Role]) -> Mapping[str, str]:
    """The processes that work for each group that processes every record."""
    return {role.name: role.group for role in roles if role.group}
