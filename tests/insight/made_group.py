"""A group of a made history: what happens to it, as inference would say it (`tests.insight.made`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ringleader.insight.history.history import Output
from ringleader.insight.model import (
    Cause,
    Commit,
    Confidence,
    Departure,
    DepartureFinding,
    EventKind,
    GroupState,
    Kind,
    Lag,
    Member,
    MemberSpan,
    Move,
    Outcome,
    Ownership,
    Rebalance,
    TopicPartition,
)

if TYPE_CHECKING:
    from tests.insight.made import Made

SESSION_MS = 45_000
POLL_MS = 300_000
COMMIT_EVERY_S = 10


class Group:
    """One group of the script. Each method that changes its members is one rebalance (two with cooperative
    assignors, where partitions change hands)."""

    def __init__(
        self,
        made: Made,
        name: str,
        topics: dict[str, int],
        kind: Kind,
        protocol: str,
        static: bool,
        cooperative: bool,
        rate: float,
    ) -> None:
        self.name = name
        self.topics = topics
        self.generation = 0
        self.members: dict[str, Member] = {}
        """By short name."""
        self._made = made
        self._kind = kind
        self._protocol = protocol
        self._static = static
        self._cooperative = cooperative
        self._rate = rate
        self._since_ms: dict[str, int] = {}
        """Member id -> when it joined."""
        self._owned: dict[TopicPartition, Ownership] = {}
        self._offsets: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._changed_ms = made.now_ms
        self._last: tuple[Member, ...] = ()

    # ---- what happens ----

    def join(self, *names: str, leader_s: float = 0.02, join_s: float = 0.2, slowest: str = "") -> Rebalance:
        """New members. `slowest`: whom the join phase waited for."""
        for name in names:
            self._arrives(name)
        ids = tuple(self.members[name].member_id for name in names)
        says = f"{len(ids)} new member ids: {', '.join(self.members[name].name for name in names)}"
        return self._rebalance(
            Cause.MEMBER_JOINED, ids, [says], join_s=join_s, leader_s=leader_s, slowest=slowest or names[-1]
        )

    def leave(self, *names: str) -> Rebalance:
        """They say good-bye."""
        departed = self._go(names, Departure.LEFT, 400, "its last commit was 0.4 s before it was gone")
        return self._rebalance(
            Cause.MEMBER_LEFT, tuple(departed), ["its partitions stood still for 0.4 s"], departed
        )

    def crash(self, *names: str) -> Rebalance:
        """They are silent until their sessions end."""
        says = "its partitions stood still for 45.3 s, its session timeout is 45.0 s"
        departed = self._go(names, Departure.SESSION_EXPIRED, SESSION_MS + 300, says)
        self._made.now_ms += SESSION_MS
        return self._rebalance(
            Cause.SESSION_EXPIRED,
            tuple(departed),
            [says],
            departed,
            confidence=Confidence.CERTAIN,
            idle_ms=SESSION_MS,
        )

    def stall(self, *names: str) -> Rebalance:
        """Their poll loops take longer than max.poll.interval.ms."""
        says = "its partitions stood still for 300.5 s, its rebalance timeout is 300.0 s"
        departed = self._go(names, Departure.POLL_INTERVAL_EXCEEDED, POLL_MS + 500, says)
        self._made.now_ms += POLL_MS
        return self._rebalance(
            Cause.POLL_INTERVAL_EXCEEDED, tuple(departed), [says], departed, idle_ms=POLL_MS
        )

    def restart(self, name: str) -> Rebalance:
        """A pod is replaced: its old id goes, and a new one comes from the same host."""
        old = self.members[name]
        departed = self._go(
            [name], Departure.RESTARTED, 1_200, "the same client id came again from the same host"
        )
        self._arrives(name, old.host)
        new = self.members[name].member_id
        cause = Cause.STATIC_MEMBER_REPLACED if self._static else Cause.MEMBER_RESTARTED
        says = f"{old.member_id} went and {new} came, both {old.name}"
        return self._rebalance(cause, (old.member_id, new), [says], departed)

    def deploy(self, *, pause_s: float = 5) -> list[Rebalance]:
        """All members restart, one after the other."""
        done = []
        for name in list(self.members):
            done.append(self.restart(name))
            self._made.wait(pause_s)
        return done

    def subscribe(self, name: str, *topics: str) -> Rebalance:
        """A member has another subscription from now on."""
        member = self.members[name]
        says = f"the subscription of {member.name} was {', '.join(member.topics)}, is {', '.join(topics)}"
        self.members[name] = member._replace(topics=topics)
        return self._rebalance(Cause.MEMBER_CHANGED, (member.member_id,), [says])

    def grow(self, topic: str, partitions: int) -> Rebalance:
        """The topic gets more partitions."""
        says = f"topic {topic} has {partitions} partitions, had {self.topics[topic]}"
        self._made.event(EventKind.PARTITIONS_ADDED, says)
        self.topics[topic] = partitions
        return self._rebalance(Cause.TOPICS_CHANGED, (), [says], confidence=Confidence.CERTAIN)

    def fence(self, name: str) -> Rebalance:
        """Another process comes with the same instance id."""
        old = self.members[name]
        departed = self._go([name], Departure.FENCED, None, "another process came with its instance id")
        self._arrives(name, "/10.0.9.9")
        ids = (old.member_id, self.members[name].member_id)
        return self._rebalance(
            Cause.INSTANCE_FENCED, ids, ["two hosts use one instance id in turn"], departed
        )

    def leader_rejoins(self, *, leader_s: float = 0.02) -> Rebalance:
        """The leader joins again; nothing shows why."""
        says = "the same members with the same subscriptions: the leader asked; the log does not show why"
        return self._rebalance(
            Cause.LEADER_REJOINED, (self.leader,), [says], leader_s=leader_s, confidence=Confidence.POSSIBLE
        )

    def coordinator_restarts(self, away_s: float = 20) -> Rebalance:
        """The broker is away for a while."""
        self._made.event(EventKind.COORDINATOR_AWAY, "broker 1, coordinator of 17 groups, does not answer")
        self._made.now_ms += round(away_s * 1000)
        self._made.event(EventKind.COORDINATOR_BACK, f"broker 1 answers again after {away_s:.0f} s")
        return self._rebalance(
            Cause.COORDINATOR_CHANGED, (), ["the leader epoch of its partition went from 4 to 5"]
        )

    def remove(self, name: str) -> Rebalance:
        """An operator takes a member out."""
        departed = self._go([name], Departure.REMOVED, 200, "the reason of its LeaveGroup says so")
        return self._rebalance(
            Cause.MEMBER_REMOVED, tuple(departed), ["an admin client sent LeaveGroup"], departed
        )

    def puzzle(self) -> Rebalance:
        """Nothing shows why."""
        says = "nothing that was read shows why: watching while it moves (DescribeGroups) would have"
        return self._rebalance(Cause.UNKNOWN, (), [says], confidence=Confidence.UNKNOWN)

    def reset(self, to: int = 0) -> None:
        """Committed offsets go back."""
        for tp in self._offsets:
            self._offsets[tp] = to
        self._made.event(
            EventKind.OFFSETS_RESET, f"{len(self._offsets)} partitions went back to offset {to}", self.name
        )
        self._commit(self._offsets)

    def delete(self) -> None:
        """All members leave, and the group is deleted."""
        if self.members:
            self.leave(*self.members)
        self._made.event(EventKind.GROUP_DELETED, f"group {self.name} was deleted", self.name)
        self._made.add(self._state("Dead"))
        del self._made.groups[self.name]

    def work(self) -> None:
        """Records arrive, are read and committed; where nobody reads, lag grows."""
        for tp in self._ends:
            self._ends[tp] += round(self._rate * COMMIT_EVERY_S)
        committed = {}
        for tp, owner in self._owned.items():
            # Some partitions are always a little behind.
            behind = (tp[1] * 37 + len(owner.topic)) % 90
            committed[tp] = self._offsets[tp] = max(self._offsets.get(tp, 0), self._ends[tp] - behind)
        self._commit(committed)
        if self._made.now_ms % 30_000 < COMMIT_EVERY_S * 1000:
            self._made.add(
                *(
                    Lag(self.name, *tp, self._made.now_ms, end, self._offsets.get(tp))
                    for tp, end in self._ends.items()
                )
            )

    # ---- how it is ----

    @property
    def leader(self) -> str:
        """Member id of the first member; "" for none."""
        return next((one.member_id for one in self.members.values()), "")

    def present(self) -> Iterator[Output]:
        """The facts that still hold."""
        yield self._state("Stable" if self.members else "Empty")
        for member in self.members.values():
            yield MemberSpan(self.name, member, self._since_ms[member.member_id], None, None, None)
        yield from self._owned.values()

    def _state(self, state: str) -> GroupState:
        members = () if state == "Dead" else tuple(self.members.values())
        return GroupState(
            self.name,
            self._kind,
            state,
            self.generation,
            "consumer",
            self._protocol if members else "",
            self.leader if members else "",
            members,
            self._changed_ms,
        )

    # ---- inside ----

    def _arrives(self, name: str, host: str = "") -> None:
        number = self._made.number()
        self.members[name] = Member(
            member_id=f"{name}-{number:08x}-feed-4dad-beef-{number * 7919 % 2**48:012x}",
            client_id=name,
            host=host or f"/10.0.{number // 250 % 250}.{number % 250 + 1}",
            instance_id=name if self._static else None,
            topics=tuple(sorted(self.topics)),
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=POLL_MS,
        )

    def _go(
        self, names: Iterable[str], why: Departure, silent_ms: int | None, evidence: str
    ) -> dict[str, DepartureFinding]:
        confidence = Confidence.EXACT if self._made.exact else Confidence.LIKELY
        members = [self.members.pop(name) for name in names]
        return {one.member_id: DepartureFinding(why, confidence, silent_ms, (evidence,)) for one in members}

    def _rebalance(
        self,
        cause: Cause,
        cause_members: tuple[str, ...],
        evidence: list[str],
        departed: Mapping[str, DepartureFinding] | None = None,
        *,
        join_s: float = 0.2,
        leader_s: float = 0.02,
        slowest: str = "",
        confidence: Confidence = Confidence.LIKELY,
        idle_ms: int = 0,
    ) -> Rebalance:
        made, departed = self._made, departed or {}
        before = self._last
        began_ms = made.now_ms
        sync_ms = 12
        lasted_ms = round(join_s * 1000) + round(leader_s * 1000) + sync_ms
        made.now_ms += lasted_ms
        self.generation += 1
        self._changed_ms = made.now_ms
        self._share_out()
        after = {one.member_id: one for one in self.members.values()}
        joined = tuple(one for one in after if one not in {member.member_id for member in before})
        heirs = {tp: one.member_id for one in after.values() for tp in one.assigned}
        held = {tp: one.member_id for tp, one in self._owned.items()}
        # Eager members give everything up, cooperative ones what changes hands.
        idle = [tp for tp in held if not self._cooperative or held[tp] != heirs.get(tp)]
        moves = tuple(
            Move(
                *tp,
                held.get(tp),
                heirs.get(tp),
                (lasted_ms + (idle_ms if held.get(tp) in departed else 0)) if tp in held else None,
            )
            for tp in sorted({*held, *heirs})
            if held.get(tp) != heirs.get(tp)
        )
        number = made.number()
        rebalance = Rebalance(
            id=f"{'journal' if made.exact else 'offsets'}-{number % (1 if made.exact else 50)}-{number}",
            group=self.name,
            kind=self._kind,
            generation=self.generation,
            at_ms=made.now_ms,
            cause=cause,
            confidence=Confidence.EXACT if made.exact else confidence,
            evidence=tuple(evidence),
            cause_members=cause_members,
            reason="consumer pool grew" if made.exact and cause is Cause.MEMBER_JOINED else "",
            outcome=Outcome.STABLE if after else Outcome.EMPTY,
            protocol_type="consumer",
            protocol=self._protocol if after else "",
            leader=self.leader,
            members=tuple(after.values()),
            joined=joined,
            left=departed,
            before=before,
            began_ms=began_ms,
            join_ms=round(join_s * 1000),
            join_last_member=self.members[slowest].member_id if slowest in self.members else "",
            leader_ms=round(leader_s * 1000),
            sync_ms=sync_ms if made.exact else None,
            moves=moves,
            unowned_ms=lasted_ms * len(idle)
            + idle_ms * sum(held[tp] in departed and tp in heirs for tp in held),
            first_commit_ms=made.now_ms + 900 if heirs else None,
            last_commit_ms=began_ms - idle_ms - 400 if before else None,
            principals=dict.fromkeys((*after, *departed), "User:app") if made.exact else {},
        )
        made.add(rebalance)
        self._spans(rebalance, before)
        return rebalance

    def _share_out(self) -> None:
        """Range within each topic."""
        shares: dict[str, list[TopicPartition]] = {name: [] for name in self.members}
        for topic, count in sorted(self.topics.items()):
            readers = [name for name, one in self.members.items() if topic in one.topics]
            for partition in range(count if readers else 0):
                shares[readers[partition * len(readers) // count]].append((topic, partition))
        for name, share in shares.items():
            self.members[name] = self.members[name]._replace(assigned=tuple(share))

    def _spans(self, rebalance: Rebalance, before: tuple[Member, ...]) -> None:
        made, at_ms = self._made, rebalance.at_ms
        for one in before:
            if one.member_id in rebalance.left:
                since_ms = self._since_ms.pop(one.member_id)
                departure = rebalance.left[one.member_id]
                member = one._replace(assigned=())
                made.add(MemberSpan(self.name, member, since_ms, at_ms, departure, rebalance.id))
        for member_id in rebalance.joined:
            self._since_ms[member_id] = at_ms
        heirs = {tp: one.member_id for one in rebalance.members for tp in one.assigned}
        assert rebalance.began_ms is not None
        for tp, span in list(self._owned.items()):
            if heirs.get(tp) != span.member_id or not self._cooperative:
                made.add(span._replace(until_ms=rebalance.began_ms))
                del self._owned[tp]
        for tp, member_id in heirs.items():
            if tp not in self._owned:
                self._owned[tp] = Ownership(self.name, *tp, member_id, at_ms, None, rebalance.id)
                self._ends.setdefault(tp, 10_000 + tp[1])
        self._last = rebalance.members

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._made.add(*(Commit(self.name, *tp, self._made.now_ms, offset) for tp, offset in offsets.items()))
