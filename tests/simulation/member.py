"""Members that follow the protocol, each in the versions of its own client, and what happens to them: they
die, pause, come back, change their minds, take an id and vanish, lead badly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.simulation.requests import TOPICS, commit_request, spoiled
from tests.support.extremes import extremes_of

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

_NAMES = ("range", "roundrobin", "sticky")
PROTOCOL_TYPE = "consumer"
_KEEPS_ID = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Errors after which a client joins again under the member id that it has."""
_GOES_ON = (ErrorCode.NONE, *_KEEPS_ID[2:])
"""Answers to a heartbeat that change nothing: the next one may find its coordinator."""


class Worker:
    """One process of a consumer."""

    def __init__(self, world: World, name: str, group: str, instance_id: str | None) -> None:
        rng = world.rng
        self.world, self.name, self.group, self.instance_id = world, name, group, instance_id
        static = instance_id is not None
        self.client_id = rng.choice((name, name, name, None, "", "\ufffd" * 200, f"{name}\x1b[31m\r\n"))
        self.join_version = rng.randint(5, 9) if static else rng.randint(0, 9)
        self.sync_version = rng.randint(3, 5) if static else rng.randint(0, 5)
        self.leave_version = rng.randint(3, 5) if static else rng.randint(0, 5)
        self.commit_version = rng.randint(7, 9) if static else rng.randint(2, 9)
        self.session_ms = rng.choice([1_000, 3_000, 10_000])
        self.rebalance_ms = rng.choice([1_000, 5_000, 20_000])
        patience_ms = self.session_ms if self.join_version == 0 else min(self.session_ms, self.rebalance_ms)
        # Shorter than the rebalance timeout, or members would learn too late of each rebalance, for ever.
        self.interval_ms = patience_ms // 3
        self.protocols = self.offer()
        self.member_id = ""
        self.generation = -1
        self.protocol_name: str | None = None
        self.members: list[str] = []
        self.assigns = False
        self.stable = False
        self.alive = True
        self.paused = False
        self.waiting: Call | None = None
        self.life = 0  # events of an earlier life do not count

    def offer(self) -> list[JoinGroupRequestProtocol]:
        """Protocols with metadata that nobody else sends; now and then not what the type promises."""
        rng = self.world.rng
        names = ["range", *rng.sample(_NAMES[1:], rng.randint(0, 2))]
        rng.shuffle(names)
        garbage = self.world.faults and rng.random() < 0.08
        topics = rng.choice([["t"], ["t", "u"], ["t", "u"]])
        return [
            JoinGroupRequestProtocol(
                name=name,
                metadata=rng.randbytes(rng.randint(0, 8))
                if garbage
                else Subscription(topics, user_data=rng.randbytes(3)).encode(1),
            )
            for name in names
        ]

    # ---- what it does ----

    def start(self) -> None:
        """Begin to be a member."""
        self.join()
        self._misfortune()

    def calm_down(self) -> None:
        """No more misfortunes; a member that is down comes back, one that waits for an answer asks again."""
        rng = self.world.rng
        if not self.alive:
            return
        if self.paused or self.waiting is not None or not self.stable or rng.random() < 0.3:
            self.life += 1
            self.paused = False
            if rng.random() < 0.5:
                self._forget()
            self.later(rng.randint(0, 2_000), self.join)

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something later in this life."""
        life = self.life

        def act() -> None:
            if self.alive and life == self.life:
                what()

        self.world.later(delay_ms, act)

    def _forget(self) -> None:
        self.member_id, self.generation, self.stable = "", -1, False

    def _send(self, request: Any, version: int, on_answer: Callable[[Any], None]) -> Call:
        life = self.life

        def reply(response: Any) -> None:
            if self.alive and not self.paused and life == self.life:
                on_answer(response)

        return self.world.send(self, request, version, self.client_id, reply)

    def _ask(self, request: Any, version: int, on_answer: Callable[[Any], None]) -> Call:
        """Send JoinGroup or SyncGroup: only the answer to the last one counts."""

        def answered(response: Any) -> None:
            if self.waiting is call:
                self.waiting = None
                on_answer(response)

        call = self.waiting = self._send(request, version, answered)
        return call

    def join(self) -> None:
        """Send JoinGroup; if it stays unanswered for long, once more over another connection."""
        if self.paused:
            return
        rng = self.world.rng
        self.stable = False
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms if self.join_version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=self.protocols,
            reason="because" if self.join_version >= 8 else None,
        )
        call = self._ask(request, self.join_version, self._joined)
        soon = self.world.faults and rng.random() < 0.3
        wait_ms = rng.randint(1_000, 30_000) if soon else self.rebalance_ms + 25_000
        self.later(wait_ms, lambda: self._give_up(call, self.join))

    def _give_up(self, call: Call, again: Callable[[], None]) -> None:
        if self.waiting is not call:
            return
        if self.world.rng.random() < 0.5:
            self.world.close(call)
        again()

    def _joined(self, response: Any) -> None:
        rng = self.world.rng
        if response is None:
            self.later(rng.randint(10, 500), self.join)
            return
        code = response.error_code
        if code == ErrorCode.NONE:
            self._in_generation(response)
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            if self.world.faults and rng.random() < 0.06:  # takes an id and never comes back
                self.alive = False
                return
            self.member_id = response.member_id
            self.join()
        else:
            if code == ErrorCode.FENCED_INSTANCE_ID:
                self._fenced()
            elif code not in _KEEPS_ID:
                self._forget()
            slow = code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self.later(rng.randint(2_000, 9_000) if slow else rng.randint(50, 500), self.join)

    def _in_generation(self, response: Any) -> None:
        rng = self.world.rng
        self.member_id, self.generation = response.member_id, response.generation_id
        self.protocol_name = response.protocol_name
        self.members = [one.member_id for one in response.members]
        self.assigns = bool(self.members) and not response.skip_assignment
        fate = rng.random() if self.world.faults else 1.0
        if fate < 0.04:  # dies before its sync
            self.life += 1
            self._forget()
            self.later(rng.randint(0, 15_000), self.join)
            return
        self.later(self.interval_ms, partial(self.heartbeat, self.generation))
        if fate > 0.1:  # else it beats but never syncs
            self.later(rng.choice([0, 0, 5, 800]), self.sync)

    def sync(self) -> None:
        """Send SyncGroup; as leader with an assignment for (nearly) everybody."""
        if self.paused or self.generation < 0:
            return
        rng = self.world.rng
        named = self.sync_version >= 5
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE if named else None,
            protocol_name=(self.protocol_name or None) if named and self.join_version >= 7 else None,
            assignments=self._assignments() if self.assigns else [],
        )
        call = self._ask(request, self.sync_version, self._synced)
        again = self.sync if rng.random() < 0.5 else self.join
        self.later(rng.randint(3_000, 30_000), lambda: self._give_up(call, again))

    def _assignments(self) -> list[SyncGroupRequestAssignment]:
        rng, members = self.world.rng, self.members
        shares: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        place = 0
        for topic, count in TOPICS.items():
            for partition in range(count):
                shares[members[place % len(members)]].setdefault(topic, []).append(partition)
                place += 1
        crooked = rng.random() if self.world.faults else 1.0
        if crooked < 0.05:  # one partition to everybody
            for share in shares.values():
                share["t"] = [0]
        entries = []
        for member, share in shares.items():
            if 0.05 < crooked < 0.15 and rng.random() < 0.4:
                continue  # forgets somebody
            note = f"{member}@{self.generation}#{rng.randint(0, 9)}".encode()
            padding = bytes(200) if 0.15 < crooked < 0.2 else b""
            content = Assignment(share, note + padding).encode(0)
            entries.append(SyncGroupRequestAssignment(member_id=member, assignment=content))
        if crooked < 0.3 or not self.world.faults:
            entries.append(SyncGroupRequestAssignment(member_id="stranger", assignment=b"x"))
        return entries

    def _synced(self, response: Any) -> None:
        if response is None:
            self.later(100, self.join)
        elif response.error_code == ErrorCode.NONE:
            self.stable = True
            if self.world.faults and self.world.rng.random() < 0.08:  # cooperative: gave up some, comes again
                self.protocols = self.offer()
                self.later(0, self.join)
        else:
            self._rejoin_after(response.error_code)

    def _rejoin_after(self, code: int) -> None:
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._fenced()
        elif code not in _KEEPS_ID:
            self._forget()
        self.later(self.world.rng.randint(0, 300), self.join)

    def _fenced(self) -> None:
        """Somebody else has its instance id: a client gives up."""
        self.alive = False

    def heartbeat(self, generation: int) -> None:
        """A heartbeat, and the next one after the interval, for as long as this generation is its own."""
        if self.paused or generation != self.generation:
            return
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        if self.world.faults and self.world.rng.random() < 0.05:
            self._send(spoiled(self.world, request, 3), 3, lambda response: None)
        self._send(request, 3, lambda response: self._beaten(generation, response))
        self.later(self.interval_ms, lambda: self.heartbeat(generation))
        if self.stable and self.world.faults and self.world.rng.random() < 0.4:
            self.commit()

    def _beaten(self, generation: int, response: Any) -> None:
        if generation != self.generation or not self.stable or response is None:
            return
        if response.error_code not in _GOES_ON:
            self.stable = False
            self._rejoin_after(response.error_code)

    def commit(self) -> None:
        """Commit some partitions; every offset is used once. Some have more metadata than is allowed."""
        rng = self.world.rng
        offsets: list[tuple[str, int, int, str]] = []
        for _ in range(rng.choice([1, 1, 1, 3])):
            topic = rng.choice(["t", "t", "u"])
            metadata = rng.choice(["", "", "", "short", "x" * 101])
            place = topic, rng.randrange(TOPICS[topic])
            if place not in [one[:2] for one in offsets]:
                offsets.append((*place, self.world.checks.fresh_offset(), metadata))
        request = commit_request(self.group, self.generation, self.member_id, offsets, self.instance_id)
        if self.commit_version <= 4 and rng.random() < 0.2:
            request.retention_time_ms = rng.choice([5_000, 86_400_000, *extremes_of("int64", 5_000)])
            if self.world.keep_offsets:
                request.retention_time_ms = -1
        elif rng.random() < 0.1:
            request = spoiled(self.world, request, self.commit_version)
        self._send(request, self.commit_version, lambda response: None)

    def admits(self, request: Any) -> bool:
        """Nobody stands between a member and the coordinator."""
        return True

    # ---- what happens to it ----

    def _misfortune(self) -> None:
        if not self.world.faults:
            return
        rng = self.world.rng
        self.later(rng.randint(2_000, 25_000), self._misfortune)
        fate = rng.random()
        if fate < 0.2:  # dies without a word; most come back
            self._die()
        elif fate < 0.35:  # a long pause, then it goes on with what it believes
            self.paused = True
            self.later(rng.randint(500, 20_000), self._wake)
        elif fate < 0.45 and self.member_id:
            self._leave()
        elif fate < 0.6:
            self.protocols = self.offer()
            self.join()
        elif fate < 0.75:
            self.join()  # unchanged: a leader asks for a rebalance, a follower for its answer

    def _die(self) -> None:
        rng = self.world.rng
        self.life += 1
        if rng.random() < 0.15:
            self.alive = False
            return
        self._forget()
        if rng.random() < 0.3:
            self.protocols = self.offer()
        # A static member may be back before anybody has missed it.
        self.later(rng.choice([rng.randint(0, 900), rng.randint(0, 15_000)]), self.start)

    def _leave(self) -> None:
        rng = self.world.rng
        one = LeaveGroupRequestMemberIdentity(member_id=self.member_id, reason="enough")
        if self.instance_id is not None and rng.random() < 0.5:
            one.group_instance_id = self.instance_id
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=[one])
        self._send(request, self.leave_version, lambda response: None)
        self._forget()
        self.later(rng.randint(0, 8_000), self.join)

    def _wake(self) -> None:
        self.paused = False
        if self.world.rng.random() < 0.5 and self.generation >= 0:
            self.commit()
            self.heartbeat(self.generation)
        else:
            self.join()
