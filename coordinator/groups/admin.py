"""DescribeGroups, ListGroups, DeleteGroups for the groups of one shard."""

from __future__ import annotations

from collections.abc import Sequence

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Call, Core, Phase
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import phase_error
from ringleader.coordinator.groups.outbox import Ticket
from ringleader.coordinator.groups.states import State
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
    ListGroupsResponseListedGroup,
)

_NONE = int(ErrorCode.NONE)
_FIRST_WITH_GROUP_ID_NOT_FOUND = 6
GROUP_TYPE = "classic"
"""Type of all our groups in ListGroups v5 (KIP-848)."""


class Admin:
    """Answers operators' questions about the groups of one shard."""

    __slots__ = ("core",)

    def __init__(self, core: Core) -> None:
        self.core = core

    def describe(self, group_id: str, version: int) -> DescribeGroupsResponseDescribedGroup:
        """One group as it is now."""
        error = phase_error(self.core.phase)
        if error:
            return DescribeGroupsResponseDescribedGroup(error_code=error, group_id=group_id)
        group = self.core.find(group_id)
        if group is None:
            return _missing(group_id, version)
        stable = group.state is State.STABLE
        return DescribeGroupsResponseDescribedGroup(
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

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[ListGroupsResponseListedGroup]:
        """Groups in order of creation. Raises `KafkaError` while loading."""
        if self.core.phase is Phase.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        wanted = {state.strip().lower() for state in states}
        if types and GROUP_TYPE not in {one.lower() for one in types}:
            return []
        return [
            ListGroupsResponseListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=GROUP_TYPE,
            )
            for group in self.core.groups.values()
            if not group.is_void and (not wanted or group.state.value.lower() in wanted)
        ]

    def delete(
        self, group_id: str, ticket: Ticket, now_ms: int
    ) -> DeleteGroupsResponseDeletableGroupResult | None:
        """Delete an empty group. It goes alone, after the writes on their way: what comes later starts clean
        (O8)."""
        core = self.core
        error = phase_error(core.phase)
        if error:
            return _result(group_id, error)

        def run(now_ms: int) -> None:
            error = self._delete_now(group_id, ticket)
            if error is not None:
                core.answer(ticket, _result(group_id, int(error)))

        def refuse(error: int) -> None:
            core.answer(ticket, _result(group_id, error))

        core.submit(core.find(group_id), Call(True, run, refuse), now_ms)
        return None

    def _delete_now(self, group_id: str, ticket: Ticket) -> ErrorCode | int | None:
        """The error; None while it waits for the tombstones."""
        group = self.core.find(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        content = records.group_tombstones(group)
        if not content:
            self._forget_pending(group)
            self.core.forget_if_void(group)
            return ErrorCode.NONE
        group.exclusive = True

        def decided(error: int, now_ms: int) -> None:
            group.exclusive = False
            if not error:
                self._forget_pending(group)
            self.core.answer(ticket, _result(group_id, error))

        self.core.write(group, content, decided)
        return None

    def _forget_pending(self, group: Group) -> None:
        for member_id in list(group.pending):
            self.core.drop_pending(group, member_id)


def _missing(group_id: str, version: int) -> DescribeGroupsResponseDescribedGroup:
    """v6 says that there is no such group (KIP-1043); before, it looks like a dead one."""
    found = DescribeGroupsResponseDescribedGroup(
        error_code=_NONE, group_id=group_id, group_state=State.DEAD.value
    )
    if version >= _FIRST_WITH_GROUP_ID_NOT_FOUND:
        found.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
        found.error_message = f"Group {group_id} not found."
    return found


def _result(group_id: str, error: int) -> DeleteGroupsResponseDeletableGroupResult:
    return DeleteGroupsResponseDeletableGroupResult(group_id=group_id, error_code=error)
