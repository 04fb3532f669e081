"""The observations of tests of real clients: the events of each member, and how often the group
rebalances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ringleader.clients.admin import Admin
from ringleader.clients.descriptions import GroupDescription
from tests.support.daemon import Daemon
from tests.support.members import Board


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a member."""

    name: str
    """The member's."""
    kind: str
    """assigned, revoked, lost, committed (in the revoke callback), failed."""
    partitions: tuple[int, ...] = ()
    """Those that came or went."""
    generation: int = -1
    member_id: str = ""
    error: str = ""
    """Class name of the exception, when there was one."""


class WatchBoard(Board):
    """A board that also keeps the events of the members, in order, and the values they read."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.values: dict[str, list[str]] = {}

    def happens(self, event: Event) -> None:
        """From any thread: that happened."""
        self._post(lambda: self.events.append(event))

    def reads(self, name: str, values: Sequence[str]) -> None:
        """From any thread: `name` has read records with these values."""
        self._post(lambda: self.values.setdefault(name, []).extend(values))

    def of(self, name: str, *kinds: str) -> list[Event]:
        """The member's events of these kinds."""
        return [event for event in self.events if event.name == name and event.kind in kinds]

    async def until_happens(self, name: str, kind: str, count: int = 1) -> Event:
        """Wait for the member's event number `count` of a kind."""
        await self.until(lambda _: len(self.of(name, kind)) >= count)
        return self.of(name, kind)[count - 1]

    async def until_read(self, total: int) -> None:
        """Wait until the members together have received `count` records, counting repeats."""
        await self.until(lambda now: sum(map(len, now.got.values())) >= total)


def rebalances(daemon: Daemon, group: str) -> list[int]:
    """The generations that the daemon's log says the group went through, one entry for each rebalance."""
    found = re.findall(rf"group '?{re.escape(group)}'? generation (\d+)", daemon.log())
    return [int(generation) for generation in found]


def read_by_all(board: WatchBoard) -> list[tuple[int, int]]:
    """Every record that any member received, with repeats."""
    return sorted(place for got in board.got.values() for place in got)


async def described(bootstrap: str, group: str) -> GroupDescription:
    """The group as the coordinator describes it."""
    async with Admin(bootstrap) as admin:
        (found,) = await admin.describe_groups([group])
    return found


def shares(group: GroupDescription) -> dict[str, dict[str, list[int]]]:
    """Member id -> assignment."""
    return {member.member_id: dict(member.assignment) for member in group.members}
