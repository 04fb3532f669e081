"""DescribeGroups, ListGroups, DeleteGroups for the groups of one shard."""

from __future__ import annotations

from collections.abc import Sequence

from ringleader.coordinator.groups.core import STORE_FULL, Part
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.journal.entries import IncidentKind
from ringleader.coordinator.machine import Phase, Ticket
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened
from ringleader.protocol.messages import (
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
    ListGroupsResponseListedGroup,
)

_NONE = int(ErrorCode.NONE)
_FIRST_WITH_GROUP_ID_NOT_FOUND = 6
CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"
"""Types of groups in ListGroups v5 (KIP-848)."""


class AdminHandler(Part):
    """Answers operators' questions about the groups of one shard."""

    def describe(
        self, group_id: str, version: int, ticket: Ticket
    ) -> DescribeGroupsResponseDescribedGroup | None:
        """One group as it is now; None while its record is on the way to the log. Missing: state Dead, and
        from v6 on GROUP_ID_NOT_FOUND."""
        core = self.core
        if core.refusal:
            return DescribeGroupsResponseDescribedGroup(error_code=core.refusal, group_id=group_id)
        group = core.find(group_id)
        if group is None or group.consumer is not None:
            ending = "not found." if group is None else "is not a classic group."
            return core.reply(ticket, _missing(group_id, version, ending), core.position_of(group_id))
        stable = group.state is GroupState.STABLE
        described = DescribeGroupsResponseDescribedGroup(
            error_code=_NONE,
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            # Only a stable group has a protocol that means anything (Kafka behaviour).
            protocol_data=(group.protocol or "") if stable else "",
            members=[
                DescribeGroupsResponseDescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol) if stable else b"",
                    member_assignment=member.assignment,
                )
                for member in group.members.values()
            ],
        )
        return core.reply(ticket, described, group.position)

    def list_groups(
        self, states: Sequence[str], types: Sequence[str], ticket: Ticket
    ) -> list[ListGroupsResponseListedGroup] | None:
        """All groups in order of creation; None while a group's record is on the way to the log. Filters
        (KIP-518, KIP-848): compared without case; no filter = all. While loading: raises
        KafkaError(COORDINATOR_LOAD_IN_PROGRESS)."""
        if self.core.phase is Phase.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        wanted = {state.strip().lower() for state in states}
        wanted_types = {one.lower() for one in types}
        if types and wanted_types.isdisjoint((CLASSIC_TYPE, CONSUMER_TYPE)):
            return []
        found = [
            listed
            for group in self.core.groups.values()
            if not group.is_absent
            for listed in (_listed(group),)
            if not wanted or listed.group_state.lower() in wanted
            if not types or listed.group_type in wanted_types
        ]
        return self.core.reply(ticket, found, self.core.position)

    def delete(
        self, group_id: str, ticket: Ticket, now_ms: int
    ) -> DeleteGroupsResponseDeletableGroupResult | None:
        """Delete an empty group; None while it waits for the tombstones. A later group of that name starts
        clean (O8)."""
        core = self.core
        group = core.find(group_id)
        error: ErrorCode | int = core.refusal
        if not error and group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not error and group is not None and not group.is_empty:
            error = ErrorCode.NON_EMPTY_GROUP
        elif not error and core.full:
            error = STORE_FULL
        result = DeleteGroupsResponseDeletableGroupResult(group_id=group_id, error_code=int(error))
        if error or group is None:
            return core.reply(ticket, result, core.position_of(group_id))
        position = core.delete(group)
        core.reports.incident(group_id, IncidentKind.GROUP_DELETED, ticket, now_ms)
        return core.reply(ticket, result, position)


def _listed(group: Group) -> ListGroupsResponseListedGroup:
    if group.consumer is not None:
        return ListGroupsResponseListedGroup(
            group_id=group.group_id,
            protocol_type=CONSUMER_TYPE,
            group_state=group.consumer.state.value,
            group_type=CONSUMER_TYPE,
        )
    return ListGroupsResponseListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC_TYPE,
    )


def _missing(group_id: str, version: int, ending: str) -> DescribeGroupsResponseDescribedGroup:
    """v6 says that there is no such group (KIP-1043); before, it looks like a dead one."""
    found = DescribeGroupsResponseDescribedGroup(
        error_code=_NONE, group_id=group_id, group_state=GroupState.DEAD.value
    )
    if version >= _FIRST_WITH_GROUP_ID_NOT_FOUND:
        found.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
        found.error_message = shortened(f"Group {group_id} {ending}")
    return found
