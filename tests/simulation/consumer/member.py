"""A member of the consumer protocol as a client is one: it revokes, acknowledges and receives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleader.clients.assignors import ASSIGNORS
from ringleader.clients.group.leading import tasks
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseLeaderTask,
)

if TYPE_CHECKING:
    from tests.simulation.consumer.world import World

Owned = frozenset[tuple[bytes, int]]

FENCED = frozenset((ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND))
REBALANCE_TIMEOUT_MS = 20_000


class ModelMember:
    """One process. Its owner is the world, which calls `beat` from time to time."""

    def __init__(self, world: World, number: int, instance_id: str | None, topics: frozenset[str]) -> None:
        self.world = world
        self.instance_id = instance_id
        self.topics = topics
        self.regex: str | None = None
        """An expression that it subscribes by, besides."""
        self.had_regex = instance_id is not None
        """Whether it has to say that it has none: a former life of a static member may have had one."""
        self.principal = "User:ANONYMOUS"
        self.serial = 0
        self.member_id = f"m{number}"
        self.epoch = 0
        self.owned: Owned = frozenset()
        self.to_revoke: Owned = frozenset()
        self.wanted: Owned | None = None
        """The last assignment that it received; None: none since it joined."""
        self.waits = False
        self.says_all = True
        self.reported: Owned | None = None
        self.departed = False
        self.assignor: str | None = None
        """The server assignor that it names."""
        self.leads = False
        """Whether it can compute for the group."""
        self.lies = self.dawdles = False
        self.computed: ConsumerGroupHeartbeatRequestComputedTarget | None = None
        self.computed_at_ms = 0

    def __repr__(self) -> str:
        return f"{self.member_id} at {self.epoch}"

    def rejoin(self) -> None:
        """It lost its place: its partitions are not its any more."""
        self.epoch, self.owned, self.to_revoke, self.wanted = 0, frozenset(), frozenset(), None
        self.says_all, self.reported = True, None

    def subscribe(self, topics: frozenset[str]) -> None:
        """Other topics, from the next heartbeat on."""
        self.topics = topics
        self.says_all = True

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """Its next heartbeat."""
        request = ConsumerGroupHeartbeatRequest(self.world.group_id, self.member_id, self.epoch)
        request.instance_id = self.instance_id
        if self.epoch == 0:
            self.owned = self.to_revoke = frozenset()
        if self.says_all or self.epoch == 0:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = sorted(self.topics)
            request.subscribed_topic_regex = self.regex or ("" if self.had_regex else None)
            self.had_regex = self.had_regex or self.regex is not None
            request.server_assignor = self.assignor
            request.leader_user_data = b"" if self.leads else None
        if self.says_all or self.owned != self.reported:
            by_topic: dict[bytes, list[int]] = {}
            for topic_id, partition in sorted(self.owned):
                by_topic.setdefault(topic_id, []).append(partition)
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=one, partitions=some)
                for one, some in by_topic.items()
            ]
            self.reported = self.owned
        self.says_all = False
        if self.computed is not None and self.world.now_ms >= self.computed_at_ms:
            request.computed_target, self.computed = self.computed, None
        return request

    def leave(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """It goes."""
        self.departed, self.owned, self.to_revoke = True, frozenset(), frozenset()
        return ConsumerGroupHeartbeatRequest(
            self.world.group_id, self.member_id, epoch, instance_id=self.instance_id
        )

    def failed(self) -> None:
        """No answer came: it says all again."""
        self.says_all, self.reported = True, None

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """The client acts on an answer."""
        code = response.error_code
        if code in FENCED:
            self.rejoin()
        elif code:
            self.failed()
        else:
            self.epoch = response.member_epoch
            if response.leader_task is not None:
                self.lead(response.leader_task)
            if response.assignment is not None:
                self.wanted = frozenset(
                    (one.topic_id, partition)
                    for one in response.assignment.topic_partitions
                    for partition in one.partitions
                )
                self.to_revoke = self.owned - self.wanted
                if not self.to_revoke:
                    self.owned = self.wanted

    def lead(self, task: ConsumerGroupHeartbeatResponseLeaderTask) -> None:
        """Compute for the group, or lie, or take too long."""
        world = self.world
        members, counts = tasks.read(task)
        self.computed = tasks.compute(task, ASSIGNORS[task.assignor], members, counts, None)
        self.computed_at_ms = world.now_ms + (world.rng.choice([0, 4_000, 60_000]) if self.dawdles else 0)
        if self.lies:
            world.rng.choice([_leave_out, _give_twice, _invent, _cut_off, _misdate, _fail])(self.computed)

    def revoke(self) -> None:
        """The application gave back what it has to, and takes what is new; the next heartbeat says so."""
        if self.to_revoke and self.wanted is not None:
            self.owned, self.to_revoke = self.wanted, frozenset()


def _leave_out(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    if target.members:
        target.members.pop()


def _give_twice(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    for one in target.members[1:]:
        one.share += target.members[0].share


def _invent(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    target.members.append(ConsumerGroupHeartbeatRequestComputedMember("stranger", []))
    for one in target.members:
        one.share += [len(target.topic_ids), 1, 77]
    target.topic_ids.append(bytes(16))


def _cut_off(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    for one in target.members:
        one.share = one.share[:-1]


def _misdate(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    target.group_epoch += 1


def _fail(target: ConsumerGroupHeartbeatRequestComputedTarget) -> None:
    target.error, target.members = "it raised", []
