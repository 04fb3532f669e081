"""Targets that members compute (`server_assignor` is `client:NAME`): who is asked, for how long, and what
happens if no good answer comes.

A computation is given to the member whose heartbeat is at hand when the target is due, if it can lead: so
none waits for a leader's interval. The others have to wait until it has answered, failed or gone, or another
group epoch began. At the end of the time an assignor of the coordinator computes.

The task of a large group is long work (see `targets`): it is given to the first member that can lead and
whose heartbeat comes when it is made. The look at what its leader has computed is long work, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ringleader.coordinator.consumer_groups import delegation
from ringleader.coordinator.consumer_groups.assignors.model import Work
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import ConsumerMember, Subscription
from ringleader.coordinator.consumer_groups.names import PREFIX
from ringleader.coordinator.consumer_groups.requests import is_full
from ringleader.coordinator.consumer_groups.target import AssignorError, Made, aimed, check, question
from ringleader.coordinator.deadlines import NEVER
from ringleader.coordinator.groups.configs import HEARTBEAT
from ringleader.coordinator.groups.core import Part
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.journal.entries import IncidentKind
from ringleader.protocol.errors import shortened
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
)

Task = ConsumerGroupHeartbeatResponseLeaderTask


class Fallback(Enum):
    """The next step where there is neither a target nor a task."""

    WAIT = 0
    """A member computes, or one that can is awaited."""
    COMPUTE = 1
    """An assignor of the coordinator is to compute."""


@dataclass(slots=True, eq=False, repr=False)
class Delegation(GroupDeadline):
    """The deadline of a group's computation, and who is at it."""

    epoch: int = 0
    """The group epoch that it is of."""
    leader: str = ""
    """The member that computes; empty: none yet."""
    task: Task | None = None
    """Of that epoch and of the members that there are, until the group has its target."""
    until_ms: int = NEVER
    """When the coordinator computes itself, even if another leader is asked meanwhile."""
    failed: set[str] = field(default_factory=set)
    """Members that gave no good answer when they were asked last, and have not joined again."""
    last_failure: tuple[str, str] = ("", "")
    """The last of them since the group had a target, and its reason."""


class Delegations(Part):
    """The delegated computations of one shard."""

    def target(
        self,
        group: Group,
        consumer: ConsumerGroup,
        assignor: str,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest | None,
        now_ms: int,
    ) -> Work[Made | Task | Fallback]:
        """The target of the group epoch, which is due: from this heartbeat's answer to an earlier task; else
        a task for the member, or what is to be done without one. `request`: None of a classic member. It is
        to go on only as long as the group is in that epoch."""
        self.core.begin_change()
        current = group.delegation
        if current is None:
            current = group.delegation = Delegation(group.group_id, Kind.CONSUMER_LEADER)
        if current.epoch != consumer.epoch:
            current.epoch, current.leader, current.task = consumer.epoch, "", None
        if request is not None and current.leader == member.member_id:
            answer = request.computed_target
            if answer is not None and answer.group_epoch == consumer.epoch:
                current.leader = ""
                try:
                    return (yield from self._made(consumer, answer))
                except AssignorError as error:
                    text = f"its answer as the leader is not taken: {error}"
                    self._failed(group, consumer, member.member_id, text, now_ms)
            elif is_full(request):
                # It does not know whether the last request arrived: the answer may be lost.
                current.leader = ""
        if current.leader:
            return Fallback.WAIT
        return (yield from self._elect(group, consumer, current, assignor, member, now_ms))

    def _made(
        self, consumer: ConsumerGroup, answer: ConsumerGroupHeartbeatRequestComputedTarget
    ) -> Work[Made]:
        members, counts, _ = yield from question(consumer, self.core.topics)
        shares = yield from delegation.shares(answer, members, counts)
        yield from check(shares, members, counts)
        return Made((yield from aimed(consumer.group_id, members, shares)))

    def _failed(self, group: Group, consumer: ConsumerGroup, leader: str, text: str, now_ms: int) -> None:
        current = group.delegation
        assert current is not None
        self.core.reports.notice(group, leader, shortened(text), now_ms)
        current.last_failure = leader, text
        if leader in consumer.members:
            current.failed.add(leader)
        current.leader = ""

    def _elect(
        self,
        group: Group,
        consumer: ConsumerGroup,
        current: Delegation,
        assignor: str,
        member: ConsumerMember,
        now_ms: int,
    ) -> Work[Task | Fallback]:
        bound_ms = self.core.settings.group_consumer_leader_timeout_ms
        if not any(_can_lead(one, assignor, current) for one in consumer.members.values()):
            why = f"no member can compute {assignor}"
            return self._fall_back(group, why, member.member_id, now_ms)
        if current.until_ms == NEVER:
            current.until_ms = now_ms + self.core.config(group.group_id, HEARTBEAT) + bound_ms
        self.core.arm(current, current.until_ms)
        if not _can_lead(member, assignor, current):
            return Fallback.WAIT
        if current.task is None or PREFIX + current.task.assignor != assignor:
            there, most_bytes = set(consumer.members), self.core.settings.group_max_record_bytes
            made = yield from delegation.task(consumer, self.core.topics, assignor, most_bytes)
            if made is None:
                text = f"the task of {assignor} is larger than group.max.record.bytes"
                return self._fall_back(group, text, member.member_id, now_ms)
            if not there <= consumer.members.keys():
                return Fallback.WAIT  # a static member is back under another id
            current.task = made
        if group.computing is consumer:
            return Fallback.WAIT  # the heartbeat was answered long ago: the next one gets the task
        current.leader = member.member_id
        self.core.arm(current, min(current.until_ms, now_ms + bound_ms))
        return current.task

    def _fall_back(self, group: Group, why: str, member_id: str, now_ms: int) -> Fallback:
        """`member_id`: of the member that was asked, unless another one failed before."""
        consumer, current = group.consumer, group.delegation
        assert consumer is not None
        assert current is not None
        text = f"{why}: the coordinator's own assignor computes"
        self.core.reports.notice(group, member_id, text, now_ms)
        failed, failure = current.last_failure
        member_id = failed or member_id
        member = consumer.members.get(member_id)
        described = Subscription() if member is None else member.subscription
        self.core.reports.incident(
            group.group_id,
            IncidentKind.ASSIGNOR_FELL_BACK,
            None,
            now_ms,
            member_id=member_id,
            client_id=described.client_id,
            client_host=described.client_host,
            group_instance_id=described.instance_id,
            reason=shortened(f"{why}; {failure}" if failed else why),
        )
        return Fallback.COMPUTE

    def overdue(self, group: Group, current: Delegation, now_ms: int) -> bool:
        """Its time is over; whether the coordinator has to compute."""
        consumer = group.consumer
        if consumer is None or not consumer.members or consumer.assignment_epoch >= consumer.epoch:
            self.done(group)
            return False
        leader = current.leader
        if leader:
            self._failed(group, consumer, leader, "it did not answer in time as the leader", now_ms)
        self.core.begin_change()
        why = "no member has computed the assignment"
        self._fall_back(group, why, leader, now_ms)
        return True

    def heard(self, group: Group, member_id: str, request: ConsumerGroupHeartbeatRequest) -> None:
        """A member that failed may be asked again once it joins again, or answers after all."""
        current = group.delegation
        if current is None or member_id not in current.failed:
            return
        if request.member_epoch == 0 or request.computed_target is not None:
            self.core.begin_change()
            current.failed.discard(member_id)

    def left(self, group: Group, member_id: str) -> None:
        """A member is gone: if it was to compute, another one may."""
        current = group.delegation
        if current is not None:
            self.core.begin_change()
            current.failed.discard(member_id)
            current.task = None
            if current.leader == member_id:
                current.leader = ""

    def done(self, group: Group) -> None:
        """The group has its target, or none is asked for any more."""
        current = group.delegation
        if current is not None:
            self.core.begin_change()
            current.leader, current.until_ms, current.last_failure = "", NEVER, ("", "")
            current.task = None
            self.core.deadlines.cancel(current)


def _can_lead(member: ConsumerMember, assignor: str, current: Delegation) -> bool:
    described = member.subscription
    is_able = described.server_assignor == assignor and described.leader_user_data is not None
    return is_able and not member.is_away and member.member_id not in current.failed
