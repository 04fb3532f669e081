"""The membership behind a query: GroupMember of the client library, told in the bridge's words."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    MembershipError,
    RebalanceInProgressError,
    RetriableError,
)
from ringleader.clients.membership import Assigned, Lost, Revoked, SyncGroupMember
from ringleader.clients.subscription import partitions_of, sync_consumer_member
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.membership import CommitRefusedError, GroupUnavailableError, Hold, Share
from ringleader.spark_bridge.offsets import TopicPartition
from ringleader.spark_bridge.options import BatchOptions, StreamOptions

logger = logging.getLogger("ringleader.spark")

# In this order of preference: aiokafka offers round-robin only, the others know both.
ASSIGNORS = ("range", "roundrobin")
# One try; the source asks again at the next trigger.
CALL_TIMEOUT_S = 10.0
# Leaving waits so long for the coordinator's answer; the request itself goes out at once.
LEAVE_TIMEOUT_S = 2.0


class ConsumerGroup:
    """One dynamic member of a consumer group, with threads of its own from ``start`` to ``leave``."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._member: SyncGroupMember | None = None
        self._hold: Hold | None = None
        self._had: frozenset[TopicPartition] = frozenset()

    def start(self, hold: Hold) -> None:
        """Join; from now on ``hold`` is told of assignments and revocations. Returns at once."""
        options = self._options
        self._hold = hold
        self._member = sync_consumer_member(
            options.bootstrap,
            options.group_id,
            options.subscribe,
            assignors=ASSIGNORS,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
            on_failed=self._failed,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            request_timeout_ms=options.request_timeout_ms,
            client_id=options.client_id,
        )
        self._member.start()

    def commit(self, offsets: Mapping[TopicPartition, int], generation: int) -> None:
        """Commit next offsets to read, as a member of that generation.

        Raises CommitRefusedError or GroupUnavailableError, and SourceError for what no retry cures.
        """
        member = self._live()
        if member.generation != generation:
            raise CommitRefusedError(
                f"generation {generation} is over, this is generation {member.generation}"
            )
        try:
            member.commit(offsets, timeout_s=CALL_TIMEOUT_S)
        except (CommitFailedError, RebalanceInProgressError, MembershipError) as error:
            raise CommitRefusedError(str(error)) from error
        except RetriableError as error:
            raise GroupUnavailableError(str(error)) from error
        except BrokerError as error:
            raise SourceError(f"offsets cannot be committed: {error}") from error

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's offsets; those without one are left out. Raises GroupUnavailableError, SourceError."""
        try:
            found = self._live().committed(partitions, timeout_s=CALL_TIMEOUT_S)
        except (RetriableError, MembershipError) as error:
            raise GroupUnavailableError(str(error)) from error
        except ClientError as error:
            raise SourceError(f"the group's offsets cannot be had: {error}") from error
        return {tp: place.offset for tp, place in found.items() if place.offset >= 0}

    def leave(self, reason: str) -> None:
        """Leave at once and end all threads. May be called twice, and before ``start``."""
        member, self._member = self._member, None
        if member is not None:
            member.leave(reason, timeout_s=LEAVE_TIMEOUT_S)

    def _live(self) -> SyncGroupMember:
        if self._member is None:
            raise GroupUnavailableError("not a member")
        return self._member

    # -- the member's callbacks, in its thread

    def _assigned(self, assigned: Assigned) -> None:
        assert self._hold is not None
        partitions = frozenset(partitions_of(assigned))
        role = ", leads" if assigned.is_leader else ""
        logger.info(
            "group %s generation %d (%s%s): owns %s; new: %s; gone: %s",
            self._options.group_id,
            assigned.generation,
            assigned.protocol,
            role,
            listed(partitions),
            listed(partitions - self._had),
            listed(self._had - partitions),
        )
        self._had = partitions
        self._hold.assigned(Share(assigned.generation, assigned.member_id, partitions))

    def _revoked(self, revoked: Revoked) -> Future[None]:
        assert self._hold is not None
        given_up = self._hold.revoke()
        if not given_up.done():
            logger.info(
                "group %s rebalances (%s): first the batch in flight", self._options.group_id, revoked.reason
            )
        return given_up

    def _lost(self, lost: Lost) -> None:
        assert self._hold is not None
        logger.warning("group %s took the partitions away: %s", self._options.group_id, lost.reason)
        self._had = frozenset()
        self._hold.lost()

    def _failed(self, error: MembershipError) -> None:
        assert self._hold is not None
        self._hold.failed(SourceError(f"the membership in group {self._options.group_id} ended: {error}"))


def listed(partitions: Iterable[TopicPartition]) -> str:
    """``a-0,2 b-1``: short enough for a log line."""
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return " ".join(f"{topic}-{','.join(numbers)}" for topic, numbers in topics.items()) or "nothing"


def committed_offsets(
    options: BatchOptions, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """A group's offsets without being a member; partitions without one are left out. Raises SourceError."""
    import asyncio

    from ringleader.clients.admin import Admin

    async def ask() -> dict[TopicPartition, int]:
        async with Admin(options.bootstrap) as admin:
            found = await admin.group_offsets(options.group_id or "")
        wanted = set(partitions)
        return {tp: place.offset for tp, place in found.items() if tp in wanted and place.offset >= 0}

    try:
        return asyncio.run(ask())
    except ClientError as error:
        raise SourceError(f"the offsets of group {options.group_id} cannot be had: {error}") from error
