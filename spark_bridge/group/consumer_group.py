"""The membership behind a query: members of the client library, in the bridge's words."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    MembershipError,
    MembershipUnsupportedError,
    RebalanceInProgressError,
    RetriableError,
)
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.membership import Assigned, Lost, Revoked, SyncGroupMember
from ringleader.clients.group.subscription import partitions_of, sync_consumer_member
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.group.membership import (
    CommitRefusedError,
    GroupUnavailableError,
    MemberCommit,
    Ownership,
)
from ringleader.spark_bridge.group.rebalances import Rebalances
from ringleader.spark_bridge.network.coordinator import Described, GroupCoordinator
from ringleader.spark_bridge.values import Committed, CommitToken

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

logger = logging.getLogger("ringleader.spark")

# One try; the source asks again at the next trigger.
CALL_TIMEOUT_S = 10.0
# Leaving waits this time for the coordinator's answer; the request itself goes out at once.
LEAVE_TIMEOUT_S = 2.0

Outcome = CommitRefusedError | GroupUnavailableError | None


class ConsumerGroup:
    """The members of one query, with threads of their own from ``start`` to ``leave``."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._members: list[SyncGroupMember] = []
        self._ownership = Ownership()
        self._rebalances = Rebalances(options.group_id, 1)
        self._pool: ThreadPoolExecutor | None = None
        self._left = False
        self._coordinator = GroupCoordinator(options.coordinators, options.group_id, CALL_TIMEOUT_S)
        self._consumer_protocol = options.group_protocol == "consumer"

    def empty(self) -> bool:
        """Before ``start``: whether the group has no member. Raises GroupUnavailableError."""
        return not self._describe().group.members

    def start(self, ownership: Ownership, alone: bool) -> None:
        """Join with as many members as ``ownership`` counts. Returns at once.

        ``alone``: one member, of the consumer protocol where that may be: its coordinator assigns at once,
        where that of the classic one waits for more members of a new group
        (group.initial.rebalance.delay.ms).
        """
        self._ownership = ownership
        if alone and self._options.chooses_protocol:
            self._consumer_protocol = self._offered()
        self._rebalances = Rebalances(
            self._options.group_id, ownership.member_count, together=not self._consumer_protocol
        )
        self._members = [self._member(index) for index in range(ownership.member_count)]
        if ownership.member_count > 1:
            self._pool = ThreadPoolExecutor(ownership.member_count, "ringleader-commit")
        for member in self._members:
            member.start()

    def grow(self, member_count: int) -> None:
        """Join with more members: ``member_count`` in all."""
        added = range(self._ownership.member_count, member_count)
        self._ownership.grow(member_count)
        self._rebalances.grow(member_count)
        pool, self._pool = self._pool, ThreadPoolExecutor(member_count, "ringleader-commit")
        if pool is not None:
            pool.shutdown(wait=False)
        self._members += [self._member(index) for index in added]
        for index in added:
            self._members[index].start()

    def rebalance(self, reason: str) -> None:
        """Rebalance when a member of this query leads the group; other leaders look for themselves. In the
        consumer protocol, ask the coordinator what is new."""
        for member in self._members:
            if member.is_leader or self._consumer_protocol:
                member.rejoin(reason)

    def commit(self, parts: Sequence[MemberCommit]) -> list[Outcome]:
        """Commit each part by its member, all at the same time. Returns the outcome of each; None: committed.

        Raises SourceError for an error that no retry cures.
        """
        if self._pool is None or len(parts) == 1:
            return [self._commit(part) for part in parts]
        return list(self._pool.map(self._commit, parts))

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The group's offsets; those without one are left out. Raises GroupUnavailableError, SourceError."""
        if not self._members:
            raise GroupUnavailableError("not a member")
        try:
            found = self._members[0].committed(partitions, timeout_s=CALL_TIMEOUT_S)
        except (RetriableError, MembershipError) as error:
            raise GroupUnavailableError(str(error)) from error
        except ClientError as error:
            raise SourceError(f"the group's offsets cannot be had: {error}") from error
        return {
            tp: Committed(position.offset, CommitToken.of(position.metadata))
            for tp, position in found.items()
            if position.offset >= 0
        }

    def stable(self) -> bool:
        """Whether all members of this query are in one generation with nothing under way."""
        machines = [member.machine for member in self._members]
        if not all(machine.state.phase is Phase.STABLE for machine in machines):
            return False
        if self._consumer_protocol:
            return self._reconciled()
        generations = {machine.state.generation for machine in machines}
        known = {self._ownership.generation(index) for index in range(len(machines))}
        return len(generations) == 1 and generations == known

    def newest_generation(self) -> int:
        """The newest that a member is in; -1: none yet."""
        return max((member.generation for member in self._members), default=-1)

    def others(self) -> list[str]:
        """The members that are not of this query, in words. Raises GroupUnavailableError."""
        ours = {member.member_id for member in self._members}
        return [
            f"{member.client_id} on {member.client_host}"
            for member in self._describe().group.members
            if member.member_id not in ours
        ]

    def _describe(self) -> Described:
        try:
            return self._coordinator.describe()
        except SourceError as error:
            raise GroupUnavailableError(str(error)) from error

    def _offered(self) -> bool:
        """Whether the coordinator serves the consumer protocol, and the group is not of the classic one: an
        empty group is of either."""
        try:
            group, served = self._describe()
        except GroupUnavailableError:
            return False
        return served and (group.group_type == "consumer" or not group.members)

    def _reconciled(self) -> bool:
        """Consumer protocol: whether all members of the group have what they are to have, and those of this
        query know it. A member that was killed counts until its session ends."""
        owned = self._ownership.members()
        for member in self._members:
            held = member.machine.state.held
            if held is None or owned.get(member.member_id) != partitions_of(held):
                return False
        try:
            group, _ = self._describe()
        except GroupUnavailableError as error:
            logger.debug("the group cannot be described now: %s", error)
            return False
        # By what each has, not by its epoch alone: that may have come since, with a share that comes next.
        given = {
            member.member_id: sorted(
                (topic, number) for topic, numbers in member.assignment.items() for number in numbers
            )
            for member in group.members
        }
        epochs = {member.member_id: member.member_epoch for member in group.members}
        known = all(
            epochs.get(member.member_id) == member.generation
            and given[member.member_id] == owned[member.member_id]
            for member in self._members
        )
        return group.state == "Stable" and known

    def leave(self, reason: str, for_good: bool = False) -> None:
        """End all threads, leaving at once. Static members stay in the group until their session ends
        unless it is ``for_good``. May be called twice, and before ``start``."""
        members, self._members = self._members, []
        self._left = True
        self._coordinator.close()
        if self._options.group_instance_id is None or for_good:
            _at_once([partial(member.leave, reason, timeout_s=LEAVE_TIMEOUT_S) for member in members])
        else:
            _at_once([partial(member.stop, timeout_s=LEAVE_TIMEOUT_S) for member in members])
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    # -- one member

    def _member(self, index: int) -> SyncGroupMember:
        options, member_count = self._options, self._ownership.member_count
        instance = options.group_instance_id
        settings = _connection(options)
        if options.subscribe_pattern is not None:
            settings["pattern"] = options.subscribe_pattern
        else:
            settings["topics"] = options.subscribe
        if self._consumer_protocol:
            settings["group_protocol"] = "consumer"
            settings["group_remote_assignor"] = options.group_remote_assignor
        else:
            settings["assignors"] = options.strategy
            settings["weight"] = options.weight or 1.0
            settings["session_timeout_ms"] = options.session_timeout_ms
            settings["heartbeat_interval_ms"] = options.heartbeat_interval_ms
        return sync_consumer_member(
            options.bootstrap,
            options.group_id,
            auto_offset_reset="latest" if options.starting_offsets == "latest" else "earliest",
            rack=options.client_rack,
            group_instance_id=instance if instance is None or member_count == 1 else f"{instance}-{index}",
            on_assigned=partial(self._assigned, index),
            on_revoked=partial(self._revoked, index),
            on_lost=partial(self._lost, index),
            on_failed=self._failed,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            request_timeout_ms=options.request_timeout_ms,
            metadata_max_age_ms=options.metadata_max_age_ms,
            client_id=options.client_id,
            **settings,
        )

    def _commit(self, part: MemberCommit) -> Outcome:
        if part.index >= len(self._members):
            return GroupUnavailableError("not a member")
        try:
            member = self._members[part.index]
            metadata = part.token.text() if part.token is not None else ""
            offsets = {tp: OffsetAndMetadata(offset, metadata) for tp, offset in part.offsets.items()}
            member.commit(offsets, generation=part.generation, timeout_s=CALL_TIMEOUT_S)
        except (CommitFailedError, RebalanceInProgressError, MembershipError) as error:
            return CommitRefusedError(str(error))
        except RetriableError as error:
            return GroupUnavailableError(str(error), error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        except BrokerError as error:
            raise SourceError(f"offsets cannot be committed: {error}") from error
        return None

    # -- the members' callbacks, in their threads

    def _assigned(self, index: int, assigned: Assigned) -> None:
        partitions = frozenset(partitions_of(assigned))
        protocol = assigned.protocol or "assigned by the coordinator"
        self._rebalances.assigned(index, assigned.generation, protocol, assigned.is_leader, partitions)
        if self._options.weight is not None and assigned.protocol != "weighted":
            logger.warning(
                "group %s uses the assignor %s, as a member does not know weighted: the weight does not "
                "count",
                self._options.group_id,
                assigned.protocol,
            )
        self._ownership.assigned(index, assigned.generation, assigned.member_id, partitions)

    def _revoked(self, index: int, revoked: Revoked) -> Future[None]:
        partitions = frozenset(partitions_of(revoked)) if revoked.partial else None
        began_s = time.monotonic()
        given_up = self._ownership.revoke(index, revoked.generation, partitions)
        if not self._left:
            self._rebalances.revoked(revoked.reason)
        if not given_up.done():
            given_up.add_done_callback(lambda _: self._rebalances.waited(time.monotonic() - began_s))
        return given_up

    def _lost(self, index: int, lost: Lost) -> None:
        moved = frozenset(partitions_of(lost))
        self._rebalances.lost(index, moved, lost.reason)
        self._ownership.lost(index, moved if lost.partial else None)

    def _failed(self, error: MembershipError) -> None:
        self._ownership.failed(SourceError(_sentence(self._options, error, self._consumer_protocol)))


def _sentence(options: StreamOptions, error: MembershipError, consumer_protocol: bool) -> str:
    """The error that ended a membership, and its remedy."""
    text = f"the membership in group {options.group_id} ended: {error}"
    if isinstance(error, FencedInstanceIdError):
        return (
            f"{text}. Another query or process runs with kafka.group.instance.id "
            f"{options.group_instance_id}: only one may at a time. Stop the other one, or give each its own."
        )
    if consumer_protocol and error.code == ErrorCode.UNSUPPORTED_ASSIGNOR:
        return f"{text}. Set kafka.group.remote.assignor to one that it has, or leave it out."
    if consumer_protocol and isinstance(error, MembershipUnsupportedError | InconsistentGroupProtocolError):
        return f"{text}. Set kafka.group.protocol=classic."
    if isinstance(error, InconsistentGroupProtocolError):
        return (
            f"{text}. This query offers {', '.join(options.strategy)}; every member of a group has to know "
            "one assignor in common. Set kafka.partition.assignment.strategy to what the others use, for "
            "example range,roundrobin beside aiokafka or kafka-python with their defaults."
        )
    return text


def _connection(options: StreamOptions) -> dict[str, Any]:
    """How members reach brokers and coordinators."""
    found = _security("", options.security)
    if options.coordinator_bootstrap is not None:
        found["coordinator_bootstrap"] = options.coordinator_bootstrap
        found |= _security("coordinator_", options.coordinators.security)
    return found


def _security(prefix: str, properties: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    tls = sasl = None
    if properties:
        from ringleader.clients.connection.security import security_from_properties

        security = security_from_properties(dict(properties))
        tls, sasl = security.tls, security.sasl
    return {f"{prefix}tls": tls, f"{prefix}sasl": sasl}


def _at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Make these calls, which block, side by side."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls[1:]]
    for thread in threads:
        thread.start()
    for call in calls[:1]:
        call()
    for thread in threads:
        thread.join()
