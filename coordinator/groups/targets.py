"""Targets of the groups of the consumer protocol of a shard: when one is due, and who computes it.

The assignors of the coordinator compute a small group's target within the request. That of a large one is
long work: the members have it some heartbeats later, and meanwhile the other groups' heartbeats come between
its steps. The same holds for a target that a member computes: its task, and the look at its answer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TypeVar

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, Dealt
from ringleader.coordinator.consumer_groups.member import ConsumerMember
from ringleader.coordinator.consumer_groups.names import is_delegated
from ringleader.coordinator.consumer_groups.target import AssignorError, Made, aim, compute
from ringleader.coordinator.groups.changes import Changes
from ringleader.coordinator.groups.configs import ASSIGNMENT
from ringleader.coordinator.groups.core import Core, Part
from ringleader.coordinator.groups.delegated import Delegation, Delegations, Fallback, Task
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.long_work import in_steps
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest

T = TypeVar("T")

SOON_MS = 500
"""When a member is to ask again while the target is computed in steps."""
STEPS = 5
"""Such a computation does that part of what may be done at once in each of its steps."""


def is_due(core: Core, consumer: ConsumerGroup, now_ms: int) -> bool:
    """Whether the target is of an earlier epoch, and old enough for the next one."""
    if consumer.assignment_epoch >= consumer.epoch:
        return False
    unix_ms = core.unix_time.stamp_ms(now_ms)
    interval_ms = core.config(consumer.group_id, ASSIGNMENT)
    return not (interval_ms and consumer.assigned_ms <= unix_ms < consumer.assigned_ms + interval_ms)


class Targets(Part):
    """Begins group epochs, and gets their targets."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.delegations = Delegations(core)

    def begin_epoch(self, changes: Changes, news: bool) -> None:
        """Begin another group epoch if what the target depends on changed. `news`: a member says so."""
        consumer, name, topics = changes.consumer, changes.consumer.group_id, self.core.topics
        if news or consumer.checked_version != topics.version:
            found = topics.metadata_hash(consumer.all_topics())
            if news or found != consumer.metadata_hash:
                changes.add(records.group_epoch(name, consumer.epoch + 1, found))
            consumer.checked_version = topics.version

    def aim(
        self,
        changes: Changes,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest | None,
        now_ms: int,
    ) -> Task | None:
        """Get the target if it is of an earlier epoch and old enough. The task, if the member is to compute
        it. Raises `AssignorError`."""
        consumer = changes.consumer
        if not is_due(self.core, consumer, now_ms) or self.is_computing(changes.group):
            return None
        assignor = consumer.preferred_assignor()
        if assignor is None or not is_delegated(assignor):
            self._compute(changes, now_ms, member.member_id)
            return None
        self._begin(changes)
        work = self.delegations.target(changes.group, consumer, assignor, member, request, now_ms)
        steps = self._in_steps(work)
        try:
            next(steps)
        except StopIteration as stop:
            found = stop.value
        else:
            rest = self._led(changes.group, consumer, consumer.epoch, steps)
            self._go_on(changes.group, consumer, rest, now_ms)
            return None
        if found is Fallback.COMPUTE:
            self._compute(changes, now_ms, member.member_id)
        elif isinstance(found, Made):
            self._install(changes, consumer.epoch, found, now_ms)
        return found if isinstance(found, Task) else None

    def _led(
        self,
        group: Group,
        consumer: ConsumerGroup,
        epoch: int,
        steps: Generator[None, None, Made | Task | Fallback],
    ) -> Iterator[None]:
        """The rest of the work on a target that members compute. If the group begins another epoch, it is
        worth nothing any more."""
        found: Made | Task | Fallback = Fallback.WAIT
        while self._is_of(group, consumer) and consumer.epoch == epoch:
            try:
                next(steps)
            except StopIteration as stop:
                found = stop.value
                break
            yield
        self._end(group, consumer, epoch, found if isinstance(found, Made) else None)
        if found is Fallback.COMPUTE:
            self._compute_alone(group, self.core.work.now_ms)
        elif not isinstance(found, Made) and group.delegation is not None:
            self._wait_on(group.delegation, self.core.work.now_ms)

    def _wait_on(self, waits: Delegation, now_ms: int) -> None:
        """Long work has brought no target; its time may have ended meanwhile."""
        if waits.until_ms > now_ms:
            self.core.arm(waits, waits.until_ms)
        else:
            self.leader_fired(waits, now_ms)

    def is_computing(self, group: Group) -> bool:
        """Whether the target is computed in steps."""
        return group.computing is not None and group.computing is group.consumer

    def interval_ms(self, group: Group) -> int:
        """When a member is to send its next heartbeat."""
        interval_ms = self.core.beats(group.group_id)[1]
        return min(SOON_MS, interval_ms) if self.is_computing(group) else interval_ms

    def _begin(self, changes: Changes) -> None:
        """The first target comes later: the epoch before assigns nothing, so that members may be in
        one."""
        consumer = changes.consumer
        if not consumer.assignment_epoch:
            changes.add(records.target_epoch(consumer.group_id, consumer.epoch - 1, 0))

    # ---- the coordinator computes ----

    def _compute(self, changes: Changes, now_ms: int, first: str = "") -> None:
        """Compute the target, or begin to. `first`: see `compute`. Raises `AssignorError`."""
        group, consumer = changes.group, changes.consumer
        steps = self._in_steps(self._work(group, consumer, first))
        try:
            next(steps)
        except StopIteration as stop:
            self._install(changes, consumer.epoch, stop.value, now_ms)
            return
        self._begin(changes)
        self.delegations.done(group)
        self._go_on(group, consumer, self._rest(group, consumer, consumer.epoch, steps), now_ms)

    def _compute_alone(self, group: Group, now_ms: int) -> None:
        """Likewise, outside of a request."""
        changes = Changes(self.core, group)
        try:
            self._compute(changes, now_ms)
        except AssignorError as error:
            self.core.reports.notice(group, "", str(error), now_ms)
        changes.write()

    def _go_on(self, group: Group, consumer: ConsumerGroup, rest: Iterator[None], now_ms: int) -> None:
        """The rest of the work is done in steps."""
        self.core.begin_change()
        group.computing = consumer
        self.core.begin_work(rest, now_ms)

    def _work(self, group: Group, consumer: ConsumerGroup, first: str = "") -> Generator[int, None, Made]:
        assignor = ASSIGNORS[self.core.assignor(consumer)]
        return compute(consumer, self.core.topics, assignor, group.rates, first)

    def _in_steps(self, work: Generator[int, None, T], *, begun: bool = False) -> Generator[None, None, T]:
        """The first step is as long as a request may be; `begun`: it is a later one."""
        at_once = self.core.settings.assigned_at_once
        each = at_once // STEPS
        return in_steps(work, each if begun else at_once, each)

    def _rest(
        self,
        group: Group,
        consumer: ConsumerGroup,
        epoch: int,
        steps: Generator[None, None, Made],
    ) -> Iterator[None]:
        """The computation of an epoch's target goes on. If the group has begun another epoch meanwhile, it
        begins again, once: the second result is taken as the target of its epoch, however soon another one
        follows."""
        core = self.core
        made: Made | None
        try:
            made = yield from steps
            if self._is_of(group, consumer) and consumer.epoch != epoch:
                epoch = consumer.epoch
                made = yield from self._in_steps(self._work(group, consumer), begun=True)
        except AssignorError as error:
            made = None
            core.reports.notice(group, "", str(error), core.work.now_ms)
        self._end(group, consumer, epoch, made if self._is_of(group, consumer) else None)

    def _end(self, group: Group, consumer: ConsumerGroup, epoch: int, made: Made | None) -> None:
        """The work in steps is over. `made`: the target of that epoch, if it has brought one."""
        self.core.begin_change()
        if group.computing is consumer:
            group.computing = None
        if made is not None:
            changes = Changes(self.core, group)
            self._install(changes, epoch, made, self.core.work.now_ms)
            changes.write()

    def _is_of(self, group: Group, consumer: ConsumerGroup) -> bool:
        """Whether it is still the group, and has members."""
        return group.consumer is consumer and bool(consumer.members)

    def _install(self, changes: Changes, epoch: int, made: Made, now_ms: int) -> None:
        """It is the target of that epoch. Members that are gone by now get nothing; a static one that is back
        under another id gets what its former self was to get."""
        consumer, name = changes.consumer, changes.consumer.group_id
        here = consumer.members
        fits = [one for one in made.aimed if one.member.member_id in here]
        for one in made.aimed if len(fits) < len(made.aimed) else ():
            back = consumer.static_members.get(one.member.instance_id or "")
            if one.member.member_id not in here and back is not None:
                fits.append(aim(name, replace(one.member, member_id=back), one.wanted))
        consumer.dealt = None
        changes.aim(fits)
        if made.dealt is not None:
            consumer.dealt = Dealt(made.dealt)
        changes.add(records.target_epoch(name, epoch, self.core.unix_time.stamp_ms(now_ms)))
        self.delegations.done(changes.group)

    def leader_fired(self, deadline: Delegation, now_ms: int) -> None:
        """The member that was to compute a target has not done so in time."""
        group = self.core.groups.get(deadline.group_id or "")
        if group is None or group.delegation is not deadline:
            return
        # While its answer is looked at, or a task made, that is awaited, too: see `_led`.
        if not self.is_computing(group) and self.delegations.overdue(group, deadline, now_ms):
            self._compute_alone(group, now_ms)
