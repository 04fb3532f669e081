"""JoinGroup, v0 to v9: who may come in, and what a known member's JoinGroup means (KIP-62, 134, 345, 389,
394, 559).

The order of the checks is Kafka's; the first hit wins.
"""

from __future__ import annotations

from ringleader.coordinator.groups import records, static
from ringleader.coordinator.groups.changes import end_consumer
from ringleader.coordinator.groups.core import STORE_FULL
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import GivenOutId, Member
from ringleader.coordinator.groups.memory import member_bytes
from ringleader.coordinator.groups.mixed import MixedHandler
from ringleader.coordinator.groups.rebalance import Membership, Rebalances
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.groups.vote import Protocols
from ringleader.coordinator.journal.entries import Cause, Departure, IncidentKind
from ringleader.coordinator.machine import NOTHING, Phase, Ticket
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import JoinGroupRequest, JoinGroupResponse
from ringleader.protocol.refusals import join_refusal

_FIRST_WITH_REBALANCE_TIMEOUT = 1
_FIRST_WITH_MEMBER_ID_REQUIRED = 4
_REPORTED = frozenset(
    (
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
)
"""Refusals that an operator will ask about."""
_MAX_ID_PREFIX_CHARS = 4_096  # member ids are persisted: keep them well below the longest string of a record


class JoinHandler(Membership):
    """Handles JoinGroup for one shard."""

    def __init__(self, rebalances: Rebalances, mixed: MixedHandler) -> None:
        super().__init__(rebalances)
        self._mixed = mixed

    def join(self, request: JoinGroupRequest, ticket: Ticket, now_ms: int) -> JoinGroupResponse | None:
        """The answer; None while it waits for the join phase or for a record."""
        core = self.core
        response, position = self._answer(request, ticket, now_ms)
        if response is None:
            return None
        if response.error_code == ErrorCode.FENCED_INSTANCE_ID:
            core.reports.fenced_instance(request, ticket, now_ms)
        # An answer that needs no confirmed ownership must not ask for it.
        elif response.error_code in _REPORTED and not (position is None and core.out.confirms):
            core.reports.incident(
                request.group_id,
                IncidentKind.JOIN_REFUSED,
                ticket,
                now_ms,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                error=response.error_code,
            )
        return response if position is None else core.reply(ticket, response, position)

    def _answer(
        self, request: JoinGroupRequest, ticket: Ticket, now_ms: int
    ) -> tuple[JoinGroupResponse | None, int | None]:
        """The answer and the position that it depends on; None: no state of a group is behind it."""
        version, core = ticket.api_version, self.core
        error = self._refuse(request)
        if error is not None:
            code, echoed = error
            return join_refusal(version, int(code), echoed), None
        protocols = _without_duplicates(request)
        if self._is_too_much(request, protocols, ticket):
            return join_refusal(version, int(ErrorCode.POLICY_VIOLATION), request.member_id), None
        group = core.find(request.group_id)
        if group is not None and group.consumer is not None:
            if group.consumer.members:
                timeout_ms = rebalance_timeout_ms(request, version)
                member_id = request.member_id or core.ids(_id_prefix(request, ticket))
                joined = self._mixed.join(group, request, protocols, timeout_ms, ticket, member_id, now_ms)
                return joined, group.position
            if core.full:
                return join_refusal(version, STORE_FULL, ""), None
            end_consumer(core, group)
            group = core.find(request.group_id)
        if group is None:
            if request.member_id:
                refusal = join_refusal(version, int(ErrorCode.UNKNOWN_MEMBER_ID), request.member_id)
                return refusal, core.position_of(request.group_id)
            if core.full:
                return join_refusal(version, STORE_FULL, ""), None
            held = _held_bytes(request, _id_prefix(request, ticket), protocols, ticket)
            if not core.has_memory(Group(request.group_id), "", now_ms, members=held):
                return _no_memory(version), core.position_of(request.group_id)
            group = core.find_or_add(request.group_id)
            if group is None:
                return join_refusal(version, int(ErrorCode.POLICY_VIOLATION), ""), NOTHING
            # The first JoinGroup makes the group, even if it is answered with an error (Kafka behaviour).
            core.create(group, now_ms)
        return self._join(group, request, protocols, ticket, now_ms), group.position

    # ---- checks that need no group ----

    def _refuse(self, request: JoinGroupRequest) -> tuple[ErrorCode, str] | None:
        """(error, member id to echo), or None."""
        core = self.core
        settings = core.settings
        if not request.group_id or len(request.group_id.encode()) > records.MAX_STRING_BYTES:
            return ErrorCode.INVALID_GROUP_ID, request.member_id
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id
        if core.phase is Phase.LOADING:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ""
        if core.phase is Phase.UNLOADED:
            return ErrorCode.NOT_COORDINATOR, ""
        return None

    def _is_too_much(self, request: JoinGroupRequest, protocols: Protocols, ticket: Ticket) -> bool:
        """Whether the group's record could not hold it. A client id that is no UTF-8 is three times as long
        as text."""
        size = longest = max(len(request.protocol_type), len(request.group_instance_id or ""))
        longest = max(longest, len(ticket.client_id or ""))
        for name, metadata in protocols:
            size += len(name) + len(metadata)
            longest = max(longest, len(name))
        # A character takes at most four bytes in a record.
        too_long = longest * 4 > records.MAX_STRING_BYTES
        return too_long or size > self.core.settings.member_max_metadata_bytes

    # ---- a group that exists ----

    def _join(
        self, group: Group, request: JoinGroupRequest, protocols: Protocols, ticket: Ticket, now_ms: int
    ) -> JoinGroupResponse | None:
        version, member_id, instance_id = ticket.api_version, request.member_id, request.group_instance_id
        comes_back = not member_id and instance_id in group.static_members
        if self.core.full:
            return join_refusal(version, STORE_FULL, member_id)
        # A member that comes back takes its own place, not another one. (Kafka refuses it in a full group.)
        place = group.static_members[instance_id or ""] if comes_back else member_id
        if not self._has_room(group, place):
            self._turn_away(group, place, now_ms)
            return join_refusal(version, int(ErrorCode.GROUP_MAX_SIZE_REACHED), "")
        if not group.supports(request.protocol_type, protocols):
            return join_refusal(version, int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL), member_id)
        if comes_back:
            fresh = self.core.ids(_id_prefix(request, ticket))
            return static.replace(
                self.core, self.rebalances, group, request, protocols, ticket, fresh, now_ms
            )
        if not member_id:
            return self._join_anew(group, request, protocols, ticket, now_ms)
        given_out = group.given_out.get(member_id)
        if given_out is not None:
            if instance_id is not None:  # it took its id as a dynamic member
                return join_refusal(version, int(ErrorCode.UNKNOWN_SERVER_ERROR), "")
            more = _held_bytes(request, member_id, protocols, ticket) - given_out.held_bytes
            if not self.core.has_memory(group, member_id, now_ms, members=more):
                self._turn_away(group, member_id, now_ms)
                return _no_memory(version)
            self._add(group, request, member_id, protocols, ticket, now_ms)
            return None
        error = group.check_member(member_id, request.group_instance_id)
        if error:
            return join_refusal(version, error, member_id)
        return self._rejoin(group, request, group.members[member_id], protocols, ticket, now_ms)

    def _join_anew(
        self, group: Group, request: JoinGroupRequest, protocols: Protocols, ticket: Ticket, now_ms: int
    ) -> JoinGroupResponse | None:
        """Without a member id, and not in place of another member."""
        core, version = self.core, ticket.api_version
        fresh = core.ids(_id_prefix(request, ticket))
        held = _held_bytes(request, fresh, protocols, ticket)
        if request.group_instance_id is not None:
            error = static.take_over(core, group, request, protocols, fresh, held, now_ms)
            if error:
                return static.refusal(group, version, error)
        elif not core.has_memory(group, "", now_ms, members=held):
            return _no_memory(version)
        elif version >= _FIRST_WITH_MEMBER_ID_REQUIRED:
            return self._give_out_id(group, request, fresh, ticket, now_ms)
        self._add(group, request, fresh, protocols, ticket, now_ms)
        return None

    def _has_room(self, group: Group, member_id: str) -> bool:
        """KIP-389. While preparing, those who came first stay; the late ones of a group above its size go.
        Static members that are away keep their places. (Kafka gives these away, and grows above its size when
        they come back.)"""
        most = self.core.settings.group_max_size
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING:
            if member is not None:
                return member.awaiting_join or group.awaiting_joins < most
            if group.awaiting_joins + len(group.static_members) < most:
                return True
            return group.awaiting_joins + group.static_members_away < most
        return member is not None or len(group.members) < most

    def _turn_away(self, group: Group, member_id: str, now_ms: int) -> None:
        self.core.begin_change()
        member = group.members.get(member_id)
        if member is not None:
            self.rebalances.remove(group, member, Departure.GROUP_FULL, now_ms)
        elif not self.core.take_back(group, member_id):
            return
        # Kafka leaves the phase to its timer here; no other member is waited for, so it may end.
        self.rebalances.try_complete(group, now_ms)

    def _give_out_id(
        self, group: Group, request: JoinGroupRequest, fresh: str, ticket: Ticket, now_ms: int
    ) -> JoinGroupResponse:
        """KIP-394: the client comes back with the id; until then the group's state is not touched."""
        if len(group.given_out) >= self.core.settings.group_max_pending_members:
            return join_refusal(ticket.api_version, int(ErrorCode.GROUP_MAX_SIZE_REACHED), "")
        self.core.begin_change()
        given_out = GivenOutId(group.group_id, fresh)
        group.give_out(given_out)
        self.core.arm(given_out, now_ms + request.session_timeout_ms)
        return join_refusal(ticket.api_version, int(ErrorCode.MEMBER_ID_REQUIRED), fresh)

    def _add(
        self,
        group: Group,
        request: JoinGroupRequest,
        member_id: str,
        protocols: Protocols,
        ticket: Ticket,
        now_ms: int,
    ) -> None:
        member = Member(
            group.group_id,
            member_id,
            request.group_instance_id,
            ticket.client_id or "",
            ticket.client_host,
            request.session_timeout_ms,
            rebalance_timeout_ms(request, ticket.api_version),
            protocols,
            principal=ticket.principal,
        )
        member.is_new = True
        self.core.begin_change()
        if group.state is GroupState.PREPARING and group.previous is GroupState.EMPTY:
            group.new_member_added = True
        self.core.take_back(group, member_id)
        group.add(member, request.protocol_type)
        self.rebalances.park_join(group, member, ticket, now_ms)
        # Not its session timeout: it cannot heartbeat yet, and many clients drop a JoinGroup after a while
        # and come again (KAFKA-7610).
        self.core.arm(member, now_ms + self.core.settings.new_member_join_timeout_ms)
        self.rebalances.start(group, Cause.MEMBER_JOINED, member_id, request.reason or "", now_ms)

    def _rejoin(
        self,
        group: Group,
        request: JoinGroupRequest,
        member: Member,
        protocols: Protocols,
        ticket: Ticket,
        now_ms: int,
    ) -> JoinGroupResponse | None:
        """A known member. Unchanged, it gets its present generation once more (its answer may have been
        lost); only a leader asks for a rebalance by coming unchanged."""
        state = group.state
        if state is GroupState.EMPTY:
            return join_refusal(ticket.api_version, int(ErrorCode.UNKNOWN_MEMBER_ID), member.member_id)
        instance_id, client_id = member.group_instance_id, member.client_id
        more = member_bytes(member.member_id, instance_id, client_id, protocols) - member.held_bytes
        if not self.core.has_memory(group, member.member_id, now_ms, members=more):
            return _no_memory(ticket.api_version)
        self.core.begin_change()
        member.principal = ticket.principal
        is_leader = group.leader == member.member_id
        unchanged = member.protocols == protocols
        if state is GroupState.COMPLETING and unchanged:
            members = self.rebalances.member_list(group) if is_leader else []
            return self.rebalances.join_success(group, member, members, ticket.api_version)
        if state is GroupState.STABLE and unchanged and not is_leader:
            return self.rebalances.join_success(group, member, [], ticket.api_version)
        timeout_ms = rebalance_timeout_ms(request, ticket.api_version)
        group.update(member, protocols, request.session_timeout_ms, timeout_ms)
        self.rebalances.park_join(group, member, ticket, now_ms)
        cause = Cause.MEMBER_CHANGED if not unchanged else Cause.LEADER_REJOINED
        self.rebalances.start(group, cause, member.member_id, request.reason or "", now_ms)
        return None


def rebalance_timeout_ms(request: JoinGroupRequest, version: int) -> int:
    """v0 has none: it is the session timeout then (KIP-62)."""
    if version < _FIRST_WITH_REBALANCE_TIMEOUT:
        return request.session_timeout_ms
    return request.rebalance_timeout_ms


def _id_prefix(request: JoinGroupRequest, ticket: Ticket) -> str:
    prefix = request.group_instance_id if request.group_instance_id is not None else ticket.client_id
    return (prefix or "")[:_MAX_ID_PREFIX_CHARS]


def _held_bytes(request: JoinGroupRequest, member_id: str, protocols: Protocols, ticket: Ticket) -> int:
    """Bytes that it counts as a new member."""
    return member_bytes(member_id, request.group_instance_id, ticket.client_id or "", protocols)


def _no_memory(version: int) -> JoinGroupResponse:
    """Not a word about what it offers: it may come in when others have gone."""
    return join_refusal(version, int(ErrorCode.GROUP_MAX_SIZE_REACHED), "")


def _without_duplicates(request: JoinGroupRequest) -> Protocols:
    """The offer with unique names, the first of each: Kafka counts a repeated name twice, and the group never
    gets out of its join phase."""
    offer: dict[str, bytes] = {}
    for protocol in request.protocols:
        offer.setdefault(protocol.name, protocol.metadata)
    return tuple(offer.items())
