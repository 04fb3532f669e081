"""Actors that are not members: a liar that sends what it likes with ids that it learned, and an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.simulation.requests import (
    TOPICS,
    Delete,
    Describe,
    Fetch,
    ListGroups,
    commit_request,
    delete_request,
    spoiled,
)
from tests.support.extremes import extremes_of

if TYPE_CHECKING:
    from tests.simulation.world import World

_CLIENT_IDS = (
    None,
    "",
    "liar",
    "liar",
    "liar",
    "\ufffd" * 11_000,
    "x" * 40_000,
    "\x00\x1b[2J\r\n",
    "\ufffd" * 8_000,
)
"""Values in the header: a client id that is no UTF-8 arrives as three times its length."""
OPERATORS_VERSION = 8
_FIRST_STATIC = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3, LeaveGroupRequest: 3}


class Liar:
    """Wrong generation, wrong member id, another's instance id, foreign entries, garbage, too much."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.on = True

    def start(self) -> None:
        """One lie, then the next."""
        if not self.on:
            return
        rng = self.world.rng
        self.world.later(rng.randint(100, 4_000), self.start)
        request = self._lie()
        version = rng.randint(0, 9)
        if getattr(request, "group_instance_id", None) is not None:
            version = max(version, _FIRST_STATIC.get(type(request), 7))
        if rng.random() < 0.3:
            request = spoiled(self.world, request, version)
        call = self.world.send(self, request, version, rng.choice(_CLIENT_IDS), _nothing)
        call.client_host = rng.choice(("/127.0.0.1", "/0:0:0:0:0:0:0:1%eth0", "", "/" + "\ufffd" * 300))
        if rng.random() < 0.5:
            self.world.later(rng.randint(0, 3_000), lambda: self.world.close(call))

    def admits(self, request: Any) -> bool:
        """Lies arrive."""
        return True

    def stop(self) -> None:
        """No more lies."""
        self.on = False

    def _lie(self) -> Any:
        rng, world = self.world.rng, self.world
        victim = rng.choice(world.workers)
        group = rng.choice([victim.group, victim.group, victim.group, "nobody", ""])
        member_id = rng.choice([victim.member_id, victim.member_id, "ghost", ""])
        instance_id = rng.choice([None, None, victim.instance_id, "i-nobody"])
        if rng.random() < 0.3:
            instance_id = rng.choice(world.workers).instance_id
        generation = victim.generation + rng.choice([0, 0, 0, 1, -1, 1_000])
        kind = rng.randint(0, 6)
        if kind == 0:
            return self._join(victim, group, member_id, instance_id)
        if kind == 1:
            if rng.random() < 0.4:  # it is right but for the protocol, perhaps
                group, member_id, instance_id = victim.group, victim.member_id, victim.instance_id
                generation = victim.generation
            some = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"stolen")]
            return SyncGroupRequest(
                group_id=group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type=rng.choice([None, "consumer", "connect"]),
                protocol_name=rng.choice([None, None, "range", "odd"]),
                assignments=rng.choice([[], some]),
            )
        if kind == 2:
            return HeartbeatRequest(
                group_id=group,
                generation_id=generation,
                member_id=member_id,
                group_instance_id=instance_id,
            )
        if kind == 3:
            named = [LeaveGroupRequestMemberIdentity(member_id="ghost", group_instance_id=instance_id)]
            if rng.random() < 0.3:
                named.append(LeaveGroupRequestMemberIdentity(member_id=member_id))
            return LeaveGroupRequest(group_id=group, member_id="ghost", members=named)
        offset = world.checks.fresh_offset()
        place = ("t", rng.randrange(TOPICS["t"]), offset, "")
        return commit_request(group or "nobody", generation, member_id, [place], instance_id)

    def _join(self, victim: Any, group: str, member_id: str, instance_id: str | None) -> JoinGroupRequest:
        rng = self.world.rng
        odd = JoinGroupRequestProtocol("odd", b"")
        twice = [JoinGroupRequestProtocol("range", b"first"), JoinGroupRequestProtocol("range", b"second")]
        huge = [JoinGroupRequestProtocol("range", bytes(5_000))]
        offers = [[], victim.protocols, victim.protocols, [odd], twice, huge]
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=rng.choice([0, 1_000, 2_000, 2_000_000]),
            rebalance_timeout_ms=rng.choice([-1, 0, 1_000, 5_000]),
            member_id=member_id,
            # Without a member id it would be a rightful replacement: that is the twins' part.
            group_instance_id=instance_id if member_id else None,
            protocol_type=rng.choice(["consumer", "consumer", "connect", ""]),
            protocols=rng.choice(offers),
        )


class Operator:
    """Fetches, resets and deletes offsets, removes members, deletes groups and topics, looks around."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.on = True

    def start(self) -> None:
        """One thing, then the next."""
        if not self.on:
            return
        rng = self.world.rng
        # Now and then one thing right after the other, while the first is on its way to the disk.
        delay_ms = rng.choice([0, 1, 5, rng.randint(100, 3_000), rng.randint(100, 3_000)])
        self.world.later(delay_ms, self.start)
        self._do(rng.choice(("g", "h", "simple", "simple")), rng.random())

    def _do(self, group: str, fate: float) -> None:
        rng, world = self.world.rng, self.world
        if fate < 0.45:
            self._send(Fetch(group, rng.random() < 0.5))
        elif fate < 0.65:
            topic = rng.choice(list(TOPICS))
            place = (topic, rng.randrange(TOPICS[topic]), world.checks.fresh_offset(), "")
            request = commit_request(group, -1, "", [place])
            if rng.random() < 0.3 and not world.keep_offsets:
                request.retention_time_ms = rng.choice((1_000, 5_000, *extremes_of("int64", 5_000)))
            elif rng.random() < 0.3:
                request = spoiled(world, request, OPERATORS_VERSION)
            self._send(request)
        elif fate < 0.75:
            topic = rng.choice(list(TOPICS))
            self._send(delete_request(group, topic, rng.sample(range(TOPICS[topic]), rng.randint(1, 2))))
        elif fate < 0.83:
            self._send(Delete(group))
        elif fate < 0.85:
            world.delete_topic(rng.choice(list(TOPICS)))
        elif fate < 0.88:
            victims = rng.sample(world.workers, min(2, len(world.workers)))
            self._remove(group, [one.instance_id for one in victims if one.instance_id is not None])
        elif fate < 0.96:
            self._send(Describe(group))
        else:
            world.ask(self, ListGroups(rng.randrange(len(world.partitions))), _nothing)

    def _remove(self, group: str, instance_ids: list[str]) -> None:
        """Admin removal of static members (KIP-345), as `kafka-consumer-groups` does it."""
        named = [LeaveGroupRequestMemberIdentity(group_instance_id=one) for one in instance_ids]
        named.append(LeaveGroupRequestMemberIdentity(group_instance_id="i-nobody"))
        self._send(LeaveGroupRequest(group_id=group, members=named))

    def admits(self, request: Any) -> bool:
        """Operators may do all this."""
        return True

    def stop(self) -> None:
        """No more."""
        self.on = False

    def _send(self, request: Any) -> None:
        version = 5 if isinstance(request, LeaveGroupRequest) else OPERATORS_VERSION
        if getattr(request, "retention_time_ms", -1) >= 0:
            version = 4
        self.world.send(self, request, version, None, _nothing)


def _nothing(response: Any) -> None:
    """The answer does not matter to who asked."""
