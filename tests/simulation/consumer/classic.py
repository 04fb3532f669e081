"""A member of the classic protocol as a client is one, in a group of either protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from tests.simulation.consumer.world import World

Owned = frozenset[tuple[bytes, int]]

SESSION_TIMEOUT_MS = 30_000
REBALANCE_TIMEOUT_MS = 20_000
LOST = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION))


class ClassicMember:
    """One process. Its owner is the world, which asks it for its next request from time to time."""

    def __init__(self, world: World, instance_id: str | None, topics: frozenset[str]) -> None:
        self.world = world
        self.instance_id = instance_id
        self.topics = self._joined_with = topics
        self.session_timeout_ms = SESSION_TIMEOUT_MS
        self.principal = "User:ANONYMOUS"
        self.serial = 0
        self.member_id = ""
        self.epoch = -1
        """Its generation; -1: none."""
        self.owned: Owned = frozenset()
        self.waits = False
        self.departed = False
        self._joins = True
        self._syncs = False
        self._plan: list[SyncGroupRequestAssignment] = []
        self.leads = False
        self.seen_version = -1
        """The version of the topics that its last plan as a leader was made for."""

    def __repr__(self) -> str:
        return f"classic {self.member_id} at {self.epoch}"

    @property
    def is_settled(self) -> bool:
        """Whether it has nothing to do but heartbeats."""
        return self.does == "stay" and self.topics == self._joined_with

    @property
    def does(self) -> str:
        """Its next request, but for its own wish to join: to "join", to "sync" or to "stay"."""
        return "join" if self._joins else "sync" if self._syncs else "stay"

    def subscribe(self, topics: frozenset[str]) -> None:
        """Other topics: it joins again when it has nothing else to do."""
        self.topics = topics

    def leave(self) -> LeaveGroupRequest:
        """It goes."""
        self.departed, self.owned = True, frozenset()
        leaving = LeaveGroupRequestMemberIdentity(self.member_id)
        return LeaveGroupRequest(self.world.group_id, members=[leaving])

    def request(self) -> JoinGroupRequest | SyncGroupRequest | HeartbeatRequest:
        """Its next request."""
        # A leader watches the topics, too.
        stale = self.leads and self.seen_version != self.world.topics.version
        if self._joins or (not self._syncs and (stale or self.topics != self._joined_with)):
            return self._join()
        if self._syncs:
            request = SyncGroupRequest(self.world.group_id, self.epoch, self.member_id, self.instance_id)
            request.assignments = self._plan
            return request
        return HeartbeatRequest(self.world.group_id, self.epoch, self.member_id, self.instance_id)

    def _join(self) -> JoinGroupRequest:
        if not self.world.cooperative:
            self.owned = frozenset()
        self._joins, self._joined_with = True, self.topics
        metadata = Subscription(sorted(self.topics), None, self._named(self.owned), self.epoch).encode()
        return JoinGroupRequest(
            self.world.group_id,
            self.session_timeout_ms,
            REBALANCE_TIMEOUT_MS,
            self.member_id,
            self.instance_id,
            "consumer",
            [JoinGroupRequestProtocol(name, metadata) for name in self.world.rng.sample(["a", "b"], 2)],
        )

    def _named(self, owned: Owned) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for topic_id, partition in sorted(owned):
            topic = self.world.topics.of_id(topic_id)
            if topic is not None:
                found.setdefault(topic.name, []).append(partition)
        return found

    def failed(self) -> None:
        """No answer came: it asks again."""
        self._joins = self._joins or self._syncs

    def answered(self, response: Any, ids: Mapping[str, bytes]) -> None:
        """The client acts on an answer. `ids`: the topics as they were when it asked."""
        code = response.error_code
        if code in LOST:
            self.owned, self.epoch, self._joins, self._syncs = frozenset(), -1, True, False
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.departed, self.owned = True, frozenset()
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._joins, self._syncs = True, False
        elif code:
            self.failed()
        elif isinstance(response, JoinGroupResponse):
            self._joined(response)
        elif isinstance(response, SyncGroupResponse):
            self._synced(response, ids)
        else:
            assert isinstance(response, HeartbeatResponse)

    def _joined(self, response: JoinGroupResponse) -> None:
        self.member_id, self.epoch = response.member_id, response.generation_id
        self._joins, self._syncs, self._plan = False, True, []
        self.leads = response.leader == response.member_id
        if self.leads:
            self.seen_version = self.world.topics.version
            self._plan = [] if response.skip_assignment else self._assign(response.members)

    def _synced(self, response: SyncGroupResponse, ids: Mapping[str, bytes]) -> None:
        self._syncs = False
        given = Assignment.decode(response.assignment).partitions if response.assignment else {}
        assigned = frozenset(
            (ids[name], partition)
            for name, partitions in given.items()
            if name in ids
            for partition in partitions
        )
        self._joins = self.world.cooperative and not self.owned <= assigned
        self.owned = assigned

    # ---- the leader of a classic group ----

    def _assign(self, members: list[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
        """As the cooperative assignors do: what a member has to give up goes to nobody before it did."""
        subscriptions = {one.member_id: Subscription.decode(one.metadata) for one in members}
        shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in subscriptions}
        latest = sorted(subscriptions, key=lambda one: subscriptions[one].generation)
        for name in sorted({name for one in subscriptions.values() for name in one.topics}):
            topic = self.world.topics.named(name)
            if topic is None:
                continue
            owners = {
                partition: member_id
                for member_id in latest
                for partition in subscriptions[member_id].owned_partitions.get(name, ())
            }
            subscribers = [
                member_id for member_id in sorted(subscriptions) if name in subscriptions[member_id].topics
            ]
            most = -(-topic.partitions // len(subscribers))
            shared: dict[str, list[int]] = {member_id: [] for member_id in subscribers}
            for partition, owner in sorted(owners.items()):
                if owner in shared and len(shared[owner]) < most and partition < topic.partitions:
                    shared[owner].append(partition)
            for partition in sorted(set(range(topic.partitions)).difference(owners)):
                least = min(subscribers, key=lambda one: (len(shared[one]), one))
                shared[least].append(partition)
            for member_id, partitions in shared.items():
                if partitions:
                    shares[member_id][name] = partitions
        return [SyncGroupRequestAssignment(one, Assignment(some).encode()) for one, some in shares.items()]
