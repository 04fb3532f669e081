"""A recorded process as a client of our own group machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ringleader.clients.assignors import Assignor, AssignorMember, sticky_user_data
from ringleader.coordinator.groups.shard import Shard
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.replay.readers import Readers
from ringleader.insight.advice.replay.script import Ending, Process, Script
from ringleader.insight.model import TopicPartition
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

_JOIN_VERSION, _SYNC_VERSION, _LEAVE_VERSION = 9, 5, 5


@dataclass(eq=False, slots=True)
class Call:
    """A request: the ticket of `coordinator.machine.Ticket`."""

    client: Client
    api_version: int
    reply: Callable[[Any], None]

    @property
    def client_id(self) -> str:
        return self.client.process.client_id

    @property
    def client_host(self) -> str:
        return self.client.process.host

    @property
    def principal(self) -> str:
        return ""

    @property
    def connection(self) -> object:
        return self.client


class Surroundings(Protocol):
    """The run that a client is part of: the group machine, the policy, the clock, the other clients."""

    group: str
    script: Script
    policy: Policy
    assignor: Assignor
    shard: Shard
    readers: Readers
    now_ms: int
    offers: dict[Client, AssignorMember]
    topic_names: dict[bytes, str]
    """By topic id."""
    heartbeat_ms: int
    """Between two heartbeats of the consumer protocol."""

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something after a delay."""

    def hand_over(self, request: Any, call: Call) -> None:
        """Send a request to the machine."""

    def join_received(self) -> None:
        """A rebalance may begin."""

    def admits(self, client: Client) -> bool:
        """Whether the policy lets one more process begin."""

    def look_at_running(self) -> None:
        """A process has begun or ended."""

    def metadata(self, topics: tuple[str, ...]) -> bytes:
        """The metadata of a member of these topics."""

    def leader_ms(self) -> int:
        """How long the leader computes now."""

    def assign(self, generation: int, member_ids: list[str]) -> None:
        """Compute the shares of these members."""

    def share_of(self, client: Client) -> frozenset[TopicPartition]:
        """Its share of the last assignment."""


class Client:
    """A process at work."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        policy = world.policy
        self.world, self.process = world, process
        self.instance_id = process.instance_id
        if policy.static and self.instance_id is None:
            self.instance_id = f"place-{process.place_number}"
        self.session_ms = policy.session_timeout_ms or process.session_timeout_ms
        self.rebalance_ms = policy.max_poll_interval_ms or process.rebalance_timeout_ms
        self.ids = iter(process.member_ids)
        self.topics = process.topics
        self.member_id = ""
        self.generation = -1
        self.owned: frozenset[TopicPartition] = frozenset()
        self.reads: frozenset[TopicPartition] = frozenset()
        self.up = self.stable = self.silent = False
        self.busy = 0
        self.learns = False
        """It has been planned when it learns of the present rebalance."""
        self.waiting: Call | None = None

    # ---- its life ----

    def begin(self) -> None:
        """The process starts."""
        if self.world.admits(self):
            self.up = True
            self.world.look_at_running()
            self.join()

    def end(self) -> None:
        """The process ends."""
        if not self.up:
            return
        leaves = self.process.ending is Ending.LEAVES
        if self.world.policy.static and self.process.instance_id is None:
            leaves = False
        if self.world.policy.leaves:
            leaves = True
        if not leaves:
            self.beat()
        elif not self.silent and self.member_id:
            self.leave()
        self.up = self.stable = False
        self.waiting = None
        self.read(frozenset())
        self.world.look_at_running()

    def leave(self) -> None:
        """LeaveGroup."""
        identity = LeaveGroupRequestMemberIdentity(
            member_id=self.member_id, group_instance_id=self.instance_id
        )
        request = LeaveGroupRequest(group_id=self.world.group, members=[identity])
        self.world.hand_over(request, Call(self, _LEAVE_VERSION, _discard))

    def fall_silent(self) -> None:
        """Its last heartbeat for now."""
        if self.up:
            self.beat()
            self.silent = True
            self.read(frozenset())

    def wake(self) -> None:
        """It goes on where it was: its next heartbeat tells what happened meanwhile."""
        if not self.up or not self.silent:
            return
        self.silent = False
        self.go_on()

    def go_on(self) -> None:
        """A heartbeat, and what follows of it."""
        code = self.beat()
        if code == 0 and self.stable:
            self.read(self.owned)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.end()
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.forget()
            self.join()
        elif self.waiting is None:
            self.join()

    def get_busy(self) -> None:
        """It processes what it has, and calls poll() later."""
        self.busy += 1

    def give_up(self) -> None:
        """Its own client leaves the group: max.poll.interval.ms is over."""
        if self.up and self.busy and self.member_id and self.instance_id is None:
            self.leave()
            self.forget()

    def get_ready(self) -> None:
        """It calls poll() again."""
        self.busy = max(self.busy - 1, 0)
        if self.up and not self.silent and not self.busy:
            if not self.member_id:
                self.join()
            else:
                self.go_on()

    def forget(self) -> None:
        """It is no member any more."""
        self.member_id, self.generation, self.owned, self.stable = "", -1, frozenset(), False
        self.read(frozenset())

    def read(self, partitions: frozenset[TopicPartition]) -> None:
        """It has these in its hands."""
        if partitions != self.reads:
            self.world.readers.ends(self.reads - partitions)
            self.world.readers.begins(partitions - self.reads)
            self.reads = partitions

    # ---- what it says ----

    def beat(self) -> int:
        """A heartbeat; the error code."""
        if not self.member_id or self.silent:
            return 0
        world = self.world
        return world.shard.heartbeat(
            world.group, self.generation, self.member_id, self.instance_id, world.now_ms
        )

    def learn(self) -> None:
        """Its heartbeat says that a rebalance is on."""
        self.learns = False
        if self.up and self.stable and not self.silent and not self.busy:
            self.go_on()

    def change(self, topics: tuple[str, ...]) -> None:
        """It subscribes to something else."""
        self.topics = topics
        if self.up and not self.silent and not self.busy and self.waiting is None:
            self.join()

    def join(self) -> None:
        """JoinGroup. An eager member gives up what it has."""
        world = self.world
        world.join_received()
        self.stable = False
        if not world.assignor.cooperative:
            self.read(frozenset())
        had = _by_topic(self.owned)
        self.world.offers[self] = AssignorMember(
            self.member_id,
            self.instance_id,
            self.topics,
            had if world.assignor.cooperative else {},
            self.generation,
            None,
            sticky_user_data(had, self.generation),
        )
        metadata = world.metadata(self.topics)
        if world.assignor.cooperative:  # what it owns is in it: so a follower that gave something up is heard
            metadata = Subscription([*self.topics], None, had, self.generation).encode()
        request = JoinGroupRequest(
            group_id=world.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=world.assignor.name, metadata=metadata)],
        )
        self.ask(request, _JOIN_VERSION, self.joined)

    def ask(self, request: Any, version: int, reply: Callable[[Any], None]) -> None:
        """A request that may wait; only the answer to the last one counts."""

        def once(response: Any) -> None:
            if self.waiting is call:
                self.waiting = None
                if self.up and not self.silent:
                    reply(response)

        call = Call(self, version, once)
        self.waiting = call
        self.world.hand_over(request, call)

    def joined(self, response: Any) -> None:
        """The answer to JoinGroup."""
        code = response.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.world.later(0, self.join)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.end()
        elif code:
            if code != ErrorCode.REBALANCE_IN_PROGRESS:
                self.forget()
            self.world.later(100, self.join_if_up)
        else:
            self.member_id, self.generation = response.member_id, response.generation_id
            if response.leader == response.member_id and response.members and not response.skip_assignment:
                member_ids = [one.member_id for one in response.members]
                generation = self.generation
                self.world.later(self.world.leader_ms(), lambda: self.lead(generation, member_ids))
            else:
                self.sync([])

    def join_if_up(self) -> None:
        """Once more."""
        if self.up and not self.silent and self.waiting is None and not self.stable:
            self.join()

    def lead(self, generation: int, member_ids: list[str]) -> None:
        """The leader has computed."""
        if self.up and self.generation == generation and not self.stable:
            self.world.assign(generation, member_ids)
            self.sync(member_ids)

    def sync(self, member_ids: list[str]) -> None:
        """SyncGroup; the shares themselves are kept beside the machine."""
        request = SyncGroupRequest(
            group_id=self.world.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.world.assignor.name,
            assignments=[SyncGroupRequestAssignment(member_id=one, assignment=b"-") for one in member_ids],
        )
        self.ask(request, _SYNC_VERSION, self.synced)

    def synced(self, response: Any) -> None:
        """The answer to SyncGroup."""
        if response.error_code:
            if response.error_code == ErrorCode.FENCED_INSTANCE_ID:
                self.end()
                return
            if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
            self.world.later(1, self.join_if_up)
            return
        share = self.world.share_of(self)
        given_up = self.owned - share
        self.owned = share
        self.stable = True
        self.learns = False
        if not self.silent:
            self.read(share)
        if given_up and self.world.assignor.cooperative and not self.silent:
            self.world.later(1, self.join_again)

    def join_again(self) -> None:
        """A cooperative member has given up what it lost."""
        if self.up and self.stable and not self.silent and not self.busy:
            self.join()


def _discard(response: Any) -> None:
    """Ignore an answer that no client waits for."""


def _by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
