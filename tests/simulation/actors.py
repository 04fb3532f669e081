"""Who comes to the coordinator: workers that follow the protocol (and vanish, pause, change), a liar, an
operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

_NAMES = ("range", "roundrobin", "sticky")
TOPIC = "t"


class Fetch:
    """Stands for an OffsetFetch in `Call.request`."""

    def __init__(self, group_id: str, stable: bool) -> None:
        self.group_id = group_id
        self.stable = stable


class Delete:
    """Stands for a DeleteGroups in `Call.request`."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class Actor:
    """Hands its requests to the shard."""

    world: World

    def hand_over(self, shard: Shard, call: Call) -> Any:
        """The shard's immediate answer, or None."""
        request, now_ms = call.request, self.world.now_ms
        if isinstance(request, Fetch):
            return shard.fetch_offsets(request.group_id, [(TOPIC, range(4))], request.stable, call, now_ms)
        if isinstance(request, Delete):
            return shard.delete_group(request.group_id, call, now_ms)
        return shard.handle(request, call, now_ms)


def commit_request(
    group: str, generation: int, member_id: str, partition: int, offset: int
) -> OffsetCommitRequest:
    """A commit of one partition."""
    one = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[one])],
    )


class Worker(Actor):
    """A member that does what a good client does, and now and then what happens to good clients."""

    def __init__(self, world: World, name: str, group: str) -> None:
        rng = world.rng
        self.world, self.name, self.group = world, name, group
        self.version = rng.choice([0, 2, 3, 4, 5, 7, 9])
        self.session_ms = rng.choice([1_000, 3_000, 10_000])
        self.rebalance_ms = rng.choice([1_000, 5_000, 20_000])
        # Shorter than the rebalance timeout, or members would learn too late of each rebalance, for ever.
        self.interval_ms = min(self.session_ms, self.rebalance_ms) // 3
        self.protocols = self._offer()
        self.member_id = ""
        self.generation = -1
        self.members: list[str] = []
        self.stable = False
        self.alive = True
        self.paused = False
        self.commits = 0
        self.waiting: Call | None = None
        self.life = 0  # events of an earlier life are void

    def _offer(self) -> list[JoinGroupRequestProtocol]:
        rng = self.world.rng
        names = ["range", *rng.sample(_NAMES[1:], rng.randint(0, 2))]
        rng.shuffle(names)
        raw = rng.random() < 0.1
        return [
            JoinGroupRequestProtocol(
                name=name,
                metadata=rng.randbytes(rng.randint(0, 8))
                if raw
                else Subscription([TOPIC], user_data=rng.randbytes(3)).encode(1),
            )
            for name in names
        ]

    # ---- what it does ----

    def start(self) -> None:
        """Begin to be a member."""
        self.join()
        self._misfortune()

    def calm_down(self) -> None:
        """No more misfortunes; whoever is down comes back."""
        self.paused = False
        self.life += 1
        if self.alive:
            self.member_id, self.generation, self.stable = "", -1, False
            self.later(self.world.rng.randint(0, 2_000), self.join)

    def later(self, delay_ms: int, what: Any) -> None:
        """Do something later in this life."""
        life = self.life

        def act() -> None:
            if self.alive and life == self.life:
                what()

        self.world.later(delay_ms, act)

    def _send(self, request: Any, version: int, on_answer: Any) -> Call:
        life = self.life

        def reply(response: Any) -> None:
            if self.alive and not self.paused and life == self.life:
                on_answer(response)

        return self.world.send(self, request, version, self.name, reply)

    def join(self) -> None:
        """Send JoinGroup; if it stays unanswered for long, once more over another connection."""
        if self.paused:
            return
        self.stable = False
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=self.protocols,
            reason="because",
        )
        call = self._send(request, self.version, self._joined)
        self.waiting = call
        if self.world.rng.random() < 0.3:
            self.later(self.world.rng.randint(1_000, 40_000), lambda: self._give_up(call, self.join))
        else:
            self.later(self.rebalance_ms + 60_000, lambda: self._give_up(call, self.join))

    def _give_up(self, call: Call, again: Any) -> None:
        if self.waiting is not call:
            return
        if self.world.rng.random() < 0.5:
            self.world.close(call)
        again()

    def _joined(self, response: Any) -> None:
        self.waiting = None
        rng = self.world.rng
        if response is None:
            self.later(rng.randint(10, 500), self.join)
            return
        code = response.error_code
        if code == ErrorCode.NONE:
            self.member_id, self.generation = response.member_id, response.generation_id
            self.members = [one.member_id for one in response.members]
            self.later(self.interval_ms, lambda generation=self.generation: self.heartbeat(generation))
            if not self.world.faults or rng.random() > 0.1:  # some never sync
                self.later(rng.choice([0, 0, 5, 800]), self.sync)
            return
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.join()
            return
        if code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.member_id, self.generation = "", -1
        slow = code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self.later(rng.randint(2_000, 9_000) if slow else rng.randint(50, 500), self.join)

    def sync(self) -> None:
        """Send SyncGroup; as leader with an assignment for (nearly) everybody."""
        if self.paused:
            return
        rng = self.world.rng
        assignments = []
        for member in self.members:
            if self.world.faults and rng.random() < 0.05:
                continue
            content = f"{member}@{self.generation}#{rng.randint(0, 9)}".encode()
            assignments.append(SyncGroupRequestAssignment(member_id=member, assignment=content))
        if self.members and rng.random() < 0.1:
            assignments.append(SyncGroupRequestAssignment(member_id="stranger", assignment=b"x"))
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
        )
        call = self._send(request, rng.choice([0, 3, 5]), self._synced)
        self.waiting = call
        again = self.sync if rng.random() < 0.5 else self.join
        self.later(rng.randint(3_000, 60_000), lambda: self._give_up(call, again))

    def _synced(self, response: Any) -> None:
        self.waiting = None
        if response is None:
            self.later(100, self.join)
        elif response.error_code == ErrorCode.NONE:
            self.stable = True
        else:
            self._rejoin_after(response.error_code)

    def _rejoin_after(self, code: int) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NOT_COORDINATOR):
            self.member_id, self.generation = "", -1
        self.later(self.world.rng.randint(0, 300), self.join)

    def heartbeat(self, generation: int) -> None:
        """A heartbeat, and the next one after the interval, for as long as this generation is its own."""
        if self.paused or generation != self.generation:
            return
        request = HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=self.member_id)
        self._send(request, 3, lambda response: self._beaten(generation, response))
        self.later(self.interval_ms, lambda: self.heartbeat(generation))
        if self.stable and self.world.rng.random() < 0.4:
            self.commit()

    def _beaten(self, generation: int, response: Any) -> None:
        if generation != self.generation or not self.stable or response is None:
            return
        if response.error_code not in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            self._rejoin_after(response.error_code)

    def commit(self) -> None:
        """Commit one partition; every offset is used once."""
        self.commits += 1
        partition = self.world.rng.randint(0, 3)
        offset = self.world.checks.fresh_offset()
        request = commit_request(self.group, self.generation, self.member_id, partition, offset)
        self._send(request, self.world.rng.choice([2, 5, 8, 9]), lambda response: None)

    # ---- what happens to it ----

    def _misfortune(self) -> None:
        if not self.world.faults:
            return
        rng = self.world.rng
        self.later(rng.randint(2_000, 30_000), self._misfortune)
        fate = rng.random()
        if fate < 0.15:  # dies without a word; another instance may come later
            self.life += 1
            if rng.random() < 0.8:
                self.member_id, self.generation, self.stable = "", -1, False
                self.later(rng.randint(0, 20_000), self.start)
            else:
                self.alive = False
        elif fate < 0.3:  # a long pause, then it goes on with what it believes
            self.paused = True
            self.later(rng.randint(500, 25_000), self._wake)
        elif fate < 0.45 and self.member_id:
            one = LeaveGroupRequestMemberIdentity(member_id=self.member_id, reason="enough")
            request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=[one])
            self._send(request, rng.choice([0, 2, 3, 5]), lambda response: None)
            self.member_id, self.generation, self.stable = "", -1, False
            self.later(rng.randint(0, 10_000), self.join)
        elif fate < 0.6:
            self.protocols = self._offer()
            self.join()
        elif fate < 0.75:
            self.join()  # unchanged: a leader asks for a rebalance, a follower for its answer

    def _wake(self) -> None:
        self.paused = False
        if self.world.rng.random() < 0.5 and self.generation >= 0:
            self.commit()
            self.heartbeat(self.generation)
        else:
            self.join()


class Liar(Actor):
    """Sends what it likes, with ids and generations that it heard of."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.on = True

    def start(self) -> None:
        """One lie, then the next."""
        if not self.on:
            return
        rng = self.world.rng
        self.world.later(rng.randint(200, 6_000), self.start)
        call = self.world.send(self, self._lie(), rng.randint(0, 9), "liar", lambda response: None)
        if rng.random() < 0.5:
            self.world.later(rng.randint(0, 3_000), lambda: self.world.close(call))

    def stop(self) -> None:
        """No more lies."""
        self.on = False

    def _lie(self) -> Any:
        rng, world = self.world.rng, self.world
        victim = rng.choice(world.workers)
        group = rng.choice([victim.group, victim.group, "nobody"])
        member_id = rng.choice([victim.member_id, "ghost", ""])
        generation = victim.generation + rng.choice([0, 0, 0, 1, -1, 1_000])
        kind = rng.randint(0, 5)
        if kind == 0:
            protocols = rng.choice([[], victim.protocols, [JoinGroupRequestProtocol("odd", b"")]])
            return JoinGroupRequest(
                group_id=group,
                session_timeout_ms=rng.choice([0, 1_000, 2_000]),
                rebalance_timeout_ms=rng.choice([-1, 0, 1_000, 5_000]),
                member_id=member_id,
                protocol_type=rng.choice(["consumer", "connect", ""]),
                protocols=protocols,
            )
        if kind == 1:
            some = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"stolen")]
            return SyncGroupRequest(
                group_id=group,
                generation_id=generation,
                member_id=member_id,
                protocol_type=rng.choice([None, "consumer", "connect"]),
                assignments=rng.choice([[], some]),
            )
        if kind == 2:
            return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        if kind == 3 and rng.random() < 0.2:
            one = LeaveGroupRequestMemberIdentity(member_id=member_id)
            return LeaveGroupRequest(group_id=group, member_id=member_id, members=[one])
        offset = world.checks.fresh_offset()
        return commit_request(group, generation, member_id, rng.randint(0, 3), offset)


class Admin(Actor):
    """Fetches, resets and deletes offsets, deletes groups and topics, looks around."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.on = True

    def start(self) -> None:
        """One thing, then the next."""
        if not self.on:
            return
        rng, world = self.world.rng, self.world
        # Now and then one thing right after the other, while the first is on its way to the disk.
        world.later(rng.choice([0, 1, 5, rng.randint(100, 4_000), rng.randint(100, 4_000)]), self.start)
        group = rng.choice(("g", "h", "simple", "simple"))
        fate = rng.random()
        if fate < 0.5:
            self._send(Fetch(group, rng.random() < 0.5))
        elif fate < 0.7:
            offset = world.checks.fresh_offset()
            self._send(commit_request(group, -1, "", rng.randint(0, 3), offset))
        elif fate < 0.8:
            partitions = [OffsetDeleteRequestPartition(partition_index=rng.randint(0, 3))]
            topics = [OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)]
            self._send(OffsetDeleteRequest(group_id=group, topics=topics))
        elif fate < 0.9:
            self._send(Delete(group))
        elif fate < 0.92 and world.serving:
            world.checks.topic_deleted()
            world.shard.topic_deleted(TOPIC, world.now_ms)
        elif world.serving:
            self._look(group)

    def _look(self, group: str) -> None:
        described = self.world.shard.describe(group, 5)
        assert described.group_id == group
        listed = {one.group_id for one in self.world.shard.list_groups()}
        assert described.group_state == "Dead" or group in listed

    def stop(self) -> None:
        """No more."""
        self.on = False

    def _send(self, request: Any) -> None:
        self.world.send(self, request, 8, None, lambda response: None)
