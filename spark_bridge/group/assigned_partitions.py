"""The group behind a query with ``assign``: no membership, only the group's offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.group.membership import (
    CommitRefusedError,
    GroupUnavailableError,
    MemberCommit,
    Ownership,
)
from ringleader.spark_bridge.network.coordinator import GroupCoordinator, NoCoordinatorError
from ringleader.spark_bridge.values import Committed

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

# One try; the source asks again at the next trigger.
CALL_TIMEOUT_S = 10.0


class AssignedPartitions:
    """A ``Group`` without members: the partitions are those of the option, for good. Commits are taken by
    the coordinator while the group has no members."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._coordinator = GroupCoordinator(options.coordinators, options.group_id, CALL_TIMEOUT_S)
        self._looked = False

    def empty(self) -> bool:
        """Whether the group has no member. Raises GroupUnavailableError."""
        return not self.others()

    def start(self, ownership: Ownership, alone: bool) -> None:
        """The partitions are here at once."""
        ownership.assigned(0, 0, "assign", self._options.assign)

    def grow(self, member_count: int) -> None:
        """There are no members."""

    def rebalance(self, reason: str) -> None:
        """There is nothing to deal out."""

    def commit(
        self, parts: Sequence[MemberCommit]
    ) -> list[CommitRefusedError | GroupUnavailableError | None]:
        """Commit. Raises SourceError for what no retry cures: the group has members by now, say."""
        return [self._commit(part) for part in parts]

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The group's offsets. Raises GroupUnavailableError; SourceError when the group has members."""
        if not self._looked and (others := self.others()):
            raise SourceError(
                f"group {self._options.group_id} has members ({', '.join(others[:3])}): a stream with "
                "'assign' joins no group, and commits for one only while nobody is in it. Stop them, take "
                "'subscribe' to read beside them, or give this query a kafka.group.id of its own."
            )
        self._looked = True
        try:
            return self._coordinator.fetch(partitions)
        except NoCoordinatorError as error:
            raise GroupUnavailableError(str(error)) from error

    def stable(self) -> bool:
        """Nothing moves."""
        return True

    def newest_generation(self) -> int:
        """There is one."""
        return 0

    def others(self) -> list[str]:
        """The group's members, in words. Raises GroupUnavailableError."""
        try:
            group, _ = self._coordinator.describe()
        except NoCoordinatorError as error:
            raise GroupUnavailableError(str(error)) from error
        return [f"{member.client_id} on {member.client_host}" for member in group.members]

    def leave(self, reason: str, for_good: bool = False) -> None:
        """Close connections."""
        self._coordinator.close()

    def _commit(self, part: MemberCommit) -> GroupUnavailableError | None:
        try:
            self._coordinator.commit(part.offsets, part.token)
        except NoCoordinatorError as error:
            return GroupUnavailableError(str(error), error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return None
