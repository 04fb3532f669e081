"""Keeps the picture up to date: the members' files, the daemon's journal lines, and what it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from demo import account, plan
from demo.picture import Generation, GroupNow, Picture, Tail
from demo.processes import Cast
from demo.screen import Screen
from ringleader.clients.admin import Admin

REFRESH_S = 0.4


class DemoError(Exception):
    """Something that the demo waits for does not come; the text says what."""


class Observer:
    """Refreshes a picture until it is stopped, and lets others wait for what it shows."""

    def __init__(
        self,
        picture: Picture,
        places: plan.Places,
        cast: Cast,
        screen: Screen,
        members: list[str],
        journals: list[str],
    ) -> None:
        """`journals`: processes whose logs tell of generations."""
        self.picture = picture
        self._cast = cast
        self._screen = screen
        self._admin: Admin | None = None
        self._journals = [Tail(places.log(name)) for name in journals]
        self._producer = Tail(places.ledger(plan.PRODUCER))
        self._members: Mapping[str, Tail] = {name: Tail(places.ledger(name)) for name in members}
        self._table: Path = places.table
        self._began = time.monotonic()
        self._changed = asyncio.Condition()
        self._failure: Exception | None = None

    def attach(self, admin: Admin, groups: list[str]) -> None:
        """From now on ask the daemon about these groups, too."""
        self._admin = admin
        self.picture.groups = {name: GroupNow() for name in groups}

    def detach(self) -> None:
        """Ask the daemon no more; the files are still read."""
        self._admin = None

    def say(self, text: str, phase: str | None = None) -> None:
        """Add an event to the picture."""
        self.picture.events.append((time.monotonic() - self._began, text))
        if phase is not None:
            self.picture.phase = phase

    async def run(self) -> None:
        """Refresh until cancelled. A failure is raised where somebody waits."""
        try:
            while True:
                await self.refresh()
                await asyncio.sleep(REFRESH_S)
        except Exception as error:
            self._failure = error
            async with self._changed:
                self._changed.notify_all()

    async def until(self, holds: Callable[[Picture], bool], what: str, timeout_s: float) -> None:
        """Wait until that holds. Raises DemoError after `timeout_s`, or whatever a refresh raised."""

        def over() -> bool:
            return self._failure is not None or holds(self.picture)

        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(over)
        except TimeoutError:
            raise DemoError(f"waited {timeout_s:.0f} s in vain until {what}") from None
        if self._failure is not None:
            raise self._failure

    async def refresh(self) -> None:
        """Bring the picture up to date once."""
        self._cast.check()
        self.picture.elapsed_s = time.monotonic() - self._began
        self._read_ledgers()
        self._read_journal()
        if self._admin is not None:
            for name in list(self.picture.groups):
                await self._ask(self._admin, name)
        self._screen.show(self.picture)
        async with self._changed:
            self._changed.notify_all()

    def _read_ledgers(self) -> None:
        for line in self._producer.new():
            if line["did"] == "produced":
                self.picture.produced += line["to"] - line["from"]
            elif line["did"] == "finished":
                self.picture.producer_done = True
        for name, tail in self._members.items():
            for line in tail.new():
                if line["did"] == "processed":
                    before = self.picture.processed.get(name, 0)
                    self.picture.processed[name] = before + line["to"] - line["from"]
        self.picture.alone = sum(delays.flights for delays in account.table_of(self._table).values())

    def _read_journal(self) -> None:
        for line in (line for journal in self._journals for line in journal.new()):
            if "group_id" in line and "cause" in line and "generation" in line:
                self.picture.generations.append(Generation.from_entry(line, self.picture.elapsed_s))
                self.picture.know({})

    async def _ask(self, admin: Admin, name: str) -> None:
        before = self.picture.of_group(name)[-1:]
        (group,) = await admin.describe_groups([name])
        owners = {member.client_id: sorted(member.assignment.get(plan.TOPIC, ())) for member in group.members}
        self.picture.know({member.member_id: member.client_id for member in group.members})
        lag = {one.partition: one.lag for one in await admin.lag(name) if one.lag is not None}
        known = len(lag) == plan.PARTITIONS
        self.picture.groups[name] = GroupNow(known, group.state, owners, lag)
        # The answer belongs to the newest generation only if no other one came in between.
        self._read_journal()
        if group.state == "Stable" and before and before == self.picture.of_group(name)[-1:]:
            before[0].owners = owners
