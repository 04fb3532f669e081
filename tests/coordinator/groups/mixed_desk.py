"""A shard with members of both protocols, whose log has everything at once."""

from __future__ import annotations

from typing import Any

from ringleader.coordinator.consumer_groups import records as consumer_records
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.coordinator.groups.test_consumer import Desk, Ticket, partitions

SETTINGS = GroupSettings(group_consumer_assignment_interval_ms=0)
SESSION_MS, REBALANCE_MS = 10_000, 30_000
OFFER = ("range",)


class MixedDesk(Desk):
    """With the requests of classic members."""

    def send(self, request: Any, version: int) -> Ticket:
        """A request whose answer may come later: see `answers`."""
        ticket = Ticket(version)
        response = self.shard.handle(request, ticket, self.now_ms)
        if response is not None:
            self.answers[ticket] = response
        self.answers |= self._settle()
        return ticket

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.shard.tick(self.now_ms)
        self.answers |= self._settle()

    def ask(self, request: Any, version: int = 1) -> Any:
        return self.answers.pop(self.send(request, version))

    def join_request(self, member: str, owned: list[int] | None = None, **more: Any) -> JoinGroupRequest:
        metadata = more.pop("metadata", None)
        if metadata is None:
            topics = more.pop("topics", ["orders"])
            metadata = Subscription(topics, owned_partitions={"orders": owned} if owned else {}).encode()
        names = more.pop("names", OFFER)
        request = JoinGroupRequest("g", SESSION_MS, REBALANCE_MS, member, protocol_type="consumer")
        request.protocols = [JoinGroupRequestProtocol(name, metadata) for name in names]
        for name, value in more.items():
            setattr(request, name, value)
        return request

    def joins(
        self, member: str, owned: list[int] | None = None, version: int = 9, **more: Any
    ) -> JoinGroupResponse:
        response: JoinGroupResponse = self.ask(self.join_request(member, owned, **more), version)
        return response

    def syncs(self, member: str, generation: int, **more: Any) -> SyncGroupResponse:
        request = SyncGroupRequest("g", generation, member)
        for name, value in more.items():
            setattr(request, name, value)
        response: SyncGroupResponse = self.ask(request, 5)
        return response

    def has(self, member: str, generation: int) -> list[int]:
        """The partitions that SyncGroup gives the member."""
        response = self.syncs(member, generation)
        assert response.error_code == 0
        return Assignment.decode(response.assignment).partitions.get("orders", [])

    def beats(self, member: str, generation: int, instance_id: str | None = None) -> int:
        request = HeartbeatRequest("g", generation, member, instance_id)
        code = self.shard.heartbeat("g", generation, member, instance_id, self.now_ms)
        return code if code >= 0 else int(self.ask(request, 4).error_code)

    def leaves(self, *members: str, instance_id: str | None = None) -> list[int]:
        leaving = [LeaveGroupRequestMemberIdentity(one, instance_id) for one in members]
        return [one.error_code for one in self.ask(LeaveGroupRequest("g", members=leaving), 5).members]

    def classic_group(
        self,
        *members: str,
        share: dict[str, list[int]] | None = None,
        user_data: bytes | None = None,
        **more: Any,
    ) -> dict[str, str]:
        """A classic group of these members, in generation 1, synced; their ids by name. `user_data`: of each
        assignment."""
        ids: dict[str, str] = {}
        waiting = {}
        for name in members:
            instance_id = name if name.startswith("static") else None
            request = self.join_request("", group_instance_id=instance_id, **more)
            if instance_id is None:
                request.member_id = ids[name] = self.ask(request, 9).member_id
            waiting[name] = self.send(request, 9)
        self.wait(self.settings.group_initial_rebalance_delay_ms)
        while any(one not in self.answers for one in waiting.values()):
            self.wait(self.settings.group_initial_rebalance_delay_ms)
        joined = {name: self.answers.pop(ticket) for name, ticket in waiting.items()}
        ids |= {name: response.member_id for name, response in joined.items()}
        if share is None:
            share = {name: list(range(4))[place :: len(members)] for place, name in enumerate(members)}
        given = [
            SyncGroupRequestAssignment(
                ids[name], Assignment({"orders": some} if some else {}, user_data).encode()
            )
            for name, some in share.items()
        ]
        leader = next(one for one in joined.values() if one.leader == one.member_id)
        generation = leader.generation_id
        assert self.syncs(leader.member_id, generation, assignments=given).error_code == 0
        for name in members:
            self.syncs(ids[name], generation)
        return ids

    def _load(self) -> Any:
        self.answers: dict[Ticket, Any] = {}
        count = iter(range(1_000_000))
        shard = super()._load()
        shard._core.ids = lambda prefix: f"{prefix}-{self.now_ms}-{next(count)}"
        return shard

    def kinds(self, start: int = 0) -> list[str]:
        """The types of the records since a place in the log; `-` behind the type of a tombstone."""
        found = []
        for key, value in self.log[start:]:
            kind = int.from_bytes(key[:2], "big")
            if kind in (records.GROUP, *consumer_records.KINDS):
                found.append(f"{kind}{'' if value is not None else '-'}")
        return found


def with_settings(**more: Any) -> MixedDesk:
    return MixedDesk(SETTINGS.model_copy(update=more))


def behind(desk: MixedDesk, member: str, generation: int) -> None:
    assert desk.beats(member, generation) == ErrorCode.REBALANCE_IN_PROGRESS


def mixed_group(desk: MixedDesk) -> str:
    """A group of the member `new` and a classic one, whose id this is, both stable in generation 2."""
    member_id = desk.classic_group("a")["a"]
    desk.beat("new", 0)
    joined = desk.joins(member_id, [0, 1, 2, 3])
    kept = desk.has(member_id, joined.generation_id)
    assert desk.joins(member_id, kept).generation_id == 2
    assert desk.has(member_id, 2) == kept
    assert len(partitions(desk.beat("new", 2)) or []) == 2
    assert desk.listed() == [("g", "Stable", "consumer")]
    return member_id
