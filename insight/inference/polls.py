"""DescribeGroups of a group while it was moving: the only trace of a rebalance's phases."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleader.insight.inference.facts import Described

MOVING = frozenset(("PreparingRebalance", "CompletingRebalance"))
_NEAR_MS = 2_500
"""Polls nearer to each other than this show when something happened between them."""


@dataclass
class Polls:
    """Since the group's last record."""

    state: str = ""
    rest_ms: int | None = None
    """When it was last seen at rest,"""
    moving_ms: int | None = None
    """first seen moving,"""
    completing_ms: int | None = None
    """first seen waiting for its leader,"""
    settled_ms: int | None = None
    """first seen at rest again."""
    first_ms: int | None = None
    """First seen at all,"""
    last_ms: int | None = None
    """and last."""
    there: dict[str, int] = field(default_factory=dict)
    """When each member was last seen,"""
    missing: dict[str, int] = field(default_factory=dict)
    """and first missed."""
    names: dict[str, str] = field(default_factory=dict)
    """Member id -> client id and host, of those that were seen."""

    def see(self, fact: Described) -> None:
        """An answer."""
        at_ms, self.state, self.last_ms = fact.at_ms, fact.state, fact.at_ms
        self.first_ms = self.first_ms or at_ms
        if fact.state in MOVING:
            if self.settled_ms is not None:
                self.rest_ms, self.moving_ms, self.completing_ms = self.settled_ms, None, None
                self.settled_ms = None
            if self.moving_ms is None:
                self.moving_ms = at_ms
            if fact.state == "CompletingRebalance":
                self.completing_ms = self.completing_ms or at_ms
            else:
                self.completing_ms = None  # it began again
        elif self.moving_ms is None:
            self.rest_ms = at_ms
        elif self.settled_ms is None:
            self.settled_ms = at_ms  # the record of its end may come later than this answer
        now = {one.member_id for one in fact.members}
        for one in fact.members:
            self.there[one.member_id] = at_ms
            self.missing.pop(one.member_id, None)
            self.names[one.member_id] = f"{one.client_id}@{one.host.lstrip('/')}"
        for member_id in self.there:
            if member_id not in now:
                self.missing.setdefault(member_id, at_ms)

    def missing_since_ms(self, member_id: str) -> int | None:
        """When it was first missed: a member that no poll saw was gone before the first of them."""
        return self.missing.get(member_id) if member_id in self.there else self.first_ms

    def end(self, at_ms: int) -> Polls:
        """A record has come, with what polls saw. Returns the beginning of the time until the next one."""
        if self.settled_ms is not None and at_ms > self.settled_ms + _NEAR_MS:
            self.moving_ms = self.completing_ms = None  # that was another rebalance, which left no record
        after = Polls()
        after.state = self.state
        if self.state not in MOVING:
            after.rest_ms = self.last_ms
        return after

    @property
    def began_ms(self) -> int | None:
        """When the rebalance began: between two polls that are near, or when it was first seen."""
        if self.moving_ms is None:
            return None
        if self.rest_ms is not None and self.moving_ms - self.rest_ms <= _NEAR_MS:
            return (self.rest_ms + self.moving_ms) // 2
        return self.moving_ms
