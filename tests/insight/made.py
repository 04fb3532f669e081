"""Histories as a watcher would write them, made from a short script, for tests of what reads them.

    with Made(tmp_path / "prod.sqlite") as made:
        orders = made.group("orders", {"orders": 12}, ["app-1", "app-2", "app-3"])
        made.wait(60)
        orders.crash("app-2")
        orders.join("app-4", leader_s=5)
    history = History.open(tmp_path / "prod.sqlite", read_only=True)

Members are called by short names: client id and member id are made of them. All times are the script's own.
`python -m tests.insight.made FILE` writes the big one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from ringleader.insight.history import Away, History
from ringleader.insight.history.history import Output
from ringleader.insight.model import (
    Event,
    EventKind,
    Kind,
)
from tests.insight.made_group import COMMIT_EVERY_S, Group

START_MS = 1_790_000_000_000
"""When a script begins, unless it says otherwise."""


class Made:
    """A script of what happens to the groups of one cluster; written when the block ends."""

    def __init__(
        self,
        path: Path | str,
        *,
        cluster_id: str = "bGVhZGVyLW9mLXJpbmdz",
        address: str = "prod:9092",
        start_ms: int = START_MS,
        exact: bool = False,
    ) -> None:
        """`exact`: as if Ringleader's journal had recorded it; phases, principals and reasons are known
        then."""
        self.path = Path(path)
        self.now_ms = start_ms
        self.exact = exact
        self.groups: dict[str, Group] = {}
        self._of = (cluster_id, address)
        self._outputs: list[Output] = []
        self._numbers = 0

    def group(
        self,
        name: str,
        topics: Mapping[str, int],
        members: Iterable[str] = (),
        *,
        kind: Kind = Kind.CLASSIC,
        protocol: str = "range",
        static: bool = False,
        cooperative: bool = False,
        rate: float = 50.0,
    ) -> Group:
        """A group that reads these topics (name -> partitions), with its first generation. `rate`: records a
        second and partition."""
        made = Group(self, name, dict(topics), kind, protocol, static, cooperative, rate)
        self.groups[name] = made
        first = list(members)
        if first:
            made.join(*first)
        return made

    def wait(self, seconds: float) -> None:
        """Time goes on: groups commit, lag is looked at."""
        until_ms = self.now_ms + round(seconds * 1000)
        step_ms = COMMIT_EVERY_S * 1000
        while self.now_ms + step_ms <= until_ms:
            self.now_ms += step_ms
            for group in self.groups.values():
                group.work()
        self.now_ms = until_ms

    def event(self, kind: EventKind, text: str, group: str = "", member: str = "", reason: str = "") -> None:
        """Something beside rebalances."""
        self.add(Event(f"made-event-{self.number()}", group, self.now_ms, kind, text, member, reason))

    def add(self, *outputs: Output) -> None:
        """Anything else, as inference would say it."""
        self._outputs += outputs

    def number(self) -> int:
        """Another one each time."""
        self._numbers += 1
        return self._numbers

    def write(self) -> None:
        """Write the records so far; may be called again to go on, for tests of live views."""
        outputs, self._outputs = self._outputs, []
        for group in self.groups.values():
            outputs += group.present()
        with History.open(self.path, cluster_id=self._of[0], address=self._of[1]) as history:
            history.record(outputs, read_ms=self.now_ms)

    def answers(self, away: Away | None = None) -> None:
        """From now on the cluster is away, or answers."""
        with History.open(self.path) as history:
            history.tell_away(away)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None:
            self.write()


def incidents(path: Path | str, *, start_ms: int = START_MS, exact: bool = False) -> Path:
    """A small cluster with something of everything: three groups, a quarter of an hour."""
    with Made(path, start_ms=start_ms, exact=exact) as made:
        orders = made.group("orders", {"orders": 12, "refunds": 3}, ["app-1", "app-2", "app-3"])
        billing = made.group(
            "billing", {"invoices": 6}, ["bill-1", "bill-2"], static=True, protocol="cooperative-sticky",
            cooperative=True,
        )  # fmt: skip
        audit = made.group("audit", {"orders": 12}, ["audit-1"], kind=Kind.CONSUMER, protocol="uniform")
        made.wait(60)
        orders.deploy()
        made.wait(60)
        orders.crash("app-2")
        orders.join("app-2", leader_s=5, slowest="app-2")
        made.wait(30)
        billing.fence("bill-1")
        billing.fence("bill-1")
        billing.restart("bill-2")
        orders.stall("app-3")
        made.wait(20)
        orders.join("app-3", join_s=4)
        orders.grow("refunds", 6)
        audit.join("audit-2")
        audit.subscribe("audit-2", "orders", "refunds")
        made.wait(30)
        orders.coordinator_restarts()
        orders.leader_rejoins()
        orders.leave("app-1")
        orders.puzzle()
        billing.remove("bill-2")
        audit.reset()
        made.event(EventKind.TOPIC_CREATED, "topic shipments was created with 3 partitions")
        deleted = made.group("console-consumer-4711", {"orders": 12}, ["console"])
        made.wait(30)
        deleted.delete()
        made.wait(60)
    return Path(path)


def big(path: Path | str, *, groups: int = 200, rebalances: int = 10_000, seed: int = 7) -> Path:
    """Many groups and rebalances of all causes over some days, always the same."""
    draw = random.Random(seed)
    with Made(path) as made:
        for number in range(groups):
            made.group(
                f"team-{number % 12}.service-{number:03}",
                {f"topic-{number % 40}": draw.choice([3, 6, 12, 24])},
                [f"pod-{number}-{one}" for one in range(draw.randint(1, 6))],
                static=number % 5 == 0,
                cooperative=number % 3 == 0,
                protocol="cooperative-sticky" if number % 3 == 0 else "range",
            )
        names = list(made.groups)
        for done in range(groups, rebalances):
            # A few groups have most of the trouble.
            group = made.groups[names[min(int(draw.expovariate(8 / groups)), groups - 1)]]
            _something(draw, group, done)
            made.now_ms += draw.randint(1_000, 60_000)
            if done % 500 == 0:
                made.wait(30)
    return Path(path)


def _something(draw: random.Random, group: Group, number: int) -> None:
    members = list(group.members)
    if len(members) < 2 or (len(members) < 8 and draw.random() < 0.35):
        group.join(f"pod-{number}", leader_s=draw.choice([0.02, 0.02, 0.02, 4.0]))
        return
    one = draw.choice(members)
    draw.choice(
        [
            lambda: group.restart(one),
            lambda: group.restart(one),
            lambda: group.leave(one),
            lambda: group.crash(one),
            lambda: group.stall(one),
            group.leader_rejoins,
            group.puzzle,
            group.coordinator_restarts,
        ]
    )()


if __name__ == "__main__":
    print(big(sys.argv[1]))
