"""Static members (KIP-345): one that comes back without its member id takes its own place.

The new member id is durable before anybody hears of it, in whatever state the group is. Until then the old
one is still good; from then on it is fenced, restarts included. (Kafka stores it only for a stable group, so
that after a crash in mid-rebalance the old process may be let in again.) So the replacement goes alone, as a
deletion does: it waits for the writes on their way, and until it is decided the group's other requests wait.
"""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.journal import Cause
from ringleader.coordinator.groups.member import Member, Protocols
from ringleader.coordinator.groups.outbox import Ticket
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.replies import join_error, sync_error
from ringleader.coordinator.groups.states import State
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import JoinGroupRequest, JoinGroupResponse

_FENCED = int(ErrorCode.FENCED_INSTANCE_ID)
_FIRST_WITH_SKIP_ASSIGNMENT = 9


class Replacement:
    """One JoinGroup without a member id of a group instance id that is a member."""

    __slots__ = ("core", "fresh", "instance_id", "protocols", "rebalances", "request", "ticket")

    def __init__(
        self,
        core: Core,
        rebalances: Rebalances,
        request: JoinGroupRequest,
        protocols: Protocols,
        ticket: Ticket,
        fresh: str,
    ) -> None:
        """`fresh`: the member id that it gets."""
        self.core = core
        self.rebalances = rebalances
        self.request = request
        self.protocols = protocols
        self.ticket = ticket
        self.instance_id = request.group_instance_id or ""
        self.fresh = fresh

    def begin(self, group: Group, now_ms: int) -> None:
        """Store the new member id where the old one is stored, then take the place. Nothing of the group may
        be on its way to the log."""
        value = self._rewritten(group)
        if value is None:
            self._take_place(group, now_ms)
            return
        if len(value) > self.core.settings.group_max_record_bytes:
            self._refuse(group, int(ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        group.exclusive = True

        def decided(error: int, now_ms: int) -> None:
            group.exclusive = False
            if error:
                self._refuse(group, error)
            elif self.instance_id in group.static_members:
                self._take_place(group, now_ms)
            else:  # its session ended in the meantime: it comes again, as a new member
                refusal = join_error(self.ticket.api_version, int(ErrorCode.UNKNOWN_MEMBER_ID), "")
                self.core.answer(self.ticket, refusal)

        self.core.write(group, [(records.group_key(group.group_id), value)], decided)

    def _rewritten(self, group: Group) -> bytes | None:
        """The group's record with the new member id; None if the record does not know this member."""
        if group.record is None:
            return None
        value = records.decode_group_value(group.record)
        for one in value.members:
            if one.group_instance_id == self.instance_id:
                if value.leader == one.member_id:
                    value.leader = self.fresh
                one.member_id = self.fresh
                offered = dict(self.protocols).get(value.protocol or "")
                if offered is not None:
                    one.subscription = offered
                return records.encode_group_value(value)
        return None

    def _refuse(self, group: Group, error: int) -> None:
        """As Kafka: the refusal says in which generation the group is."""
        refusal = join_error(self.ticket.api_version, error, "")
        refusal.generation_id = group.generation
        refusal.protocol_type = group.protocol_type
        refusal.protocol_name = group.protocol or refusal.protocol_name
        self.core.answer(self.ticket, refusal)

    # ---- the new member id is durable ----

    def _take_place(self, group: Group, now_ms: int) -> None:
        old_id = group.static_members[self.instance_id]
        member = group.members[old_id]
        self._fence(group, member)
        leader_before = group.leader or ""
        group.rename(member, self.fresh)
        if group.progress is not None:
            group.progress.rename(old_id, self.fresh)
        self.core.arm_session(member, now_ms)  # its present timeout; the new one counts from the next time on
        request = self.request
        timeout_ms = request.rebalance_timeout_ms
        unchanged = member.protocols == self.protocols
        group.update(member, self.protocols, request.session_timeout_ms, timeout_ms)
        if group.state is State.STABLE and group.elect_protocol() == group.protocol:
            if not unchanged:
                group.subscribed = group.compute_subscribed()
            self.core.answer(self.ticket, self._no_rebalance(group, member, leader_before))
            text = f"static member {self.instance_id!r} is back, in place of {old_id!r}: no rebalance"
            self.core.notice(group.group_id, self.fresh, text, expected=True)
            return
        self.rebalances.park_join(group, member, self.ticket, now_ms)
        cause = Cause.STATIC_MEMBER_REPLACED
        self.rebalances.start(group, cause, self.fresh, request.reason or "", now_ms)

    def _fence(self, group: Group, member: Member) -> None:
        """Whoever waits under the old member id is told that there is a newer one."""
        join_ticket = self.rebalances.unpark_join(group, member)
        if join_ticket is not None:
            refusal = join_error(join_ticket.api_version, _FENCED, member.member_id)
            self.core.answer(join_ticket, refusal)
        sync_ticket = self.rebalances.unpark_sync(member)
        if sync_ticket is not None:
            self.core.answer(sync_ticket, sync_error(_FENCED))

    def _no_rebalance(self, group: Group, member: Member, leader_before: str) -> JoinGroupResponse:
        """The present generation. A leader is told so from v9 on (KIP-814), with the word not to assign; an
        older one is told the leader's former id, so that it takes itself for a follower."""
        success = self.rebalances.join_success(group, member, [], self.ticket.api_version)
        if self.ticket.api_version < _FIRST_WITH_SKIP_ASSIGNMENT:
            success.leader = leader_before
        elif group.leader == member.member_id:
            success.members = self.rebalances.member_list(group)
            success.skip_assignment = True
        return success
