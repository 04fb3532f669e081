"""The members of a group, and how long they stay: G2 to G4, G9 to G15, G17. Groups are compared between
steps; a member that came or went must have had a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
)
from tests.simulation.check_durable import Durable
from tests.simulation.facts import GroupSeen, Memory, Seen

if TYPE_CHECKING:
    from tests.simulation.partition import Partition
    from tests.simulation.world import Call

_SLACK_MS = 30_000
"""The ms that a slow or failing store, and a process that stands still, may add to a bound."""
_LONGEST_WAIT_MS = 35_000
"""The longest rebalance timeout and what may come before it: first delays, sessions of the absent."""
_ACCEPTED = (int(ErrorCode.NONE), int(ErrorCode.REBALANCE_IN_PROGRESS))
_FULL = int(ErrorCode.GROUP_MAX_SIZE_REACHED)
_AT_WORK = (GroupState.COMPLETING, GroupState.STABLE)


class Members:
    """Remembers the groups of the last step, and when each member was last active."""

    def __init__(self, memory: Memory, durable: Durable) -> None:
        self.memory = memory
        self.durable = durable
        self.must = memory.must
        self.contacts: dict[str, tuple[int, int]] = {}
        """Member id -> when its session last began, for certain; session timeout then."""
        self.heard: dict[str, int] = {}
        """Member id -> the latest time at which its session can have begun."""
        self.first: dict[str, int] = {}  # member id -> since when it is a member
        self.given_out: dict[str, tuple[int, int]] = {}
        """Member id -> when it expires: not before, not after. It may have waited for a record."""
        self.synced: dict[str, tuple[int, int, int]] = {}  # group -> generation, since, rebalance timeout
        self.awaited: dict[str, int] = {}  # group -> when its record was on its way last

    # ---- contact with members ----

    def before(self, call: Call, group: Group | None) -> None:
        """A request keeps its member alive, if it is accepted."""
        request, facts = call.request, call.facts
        member_id = getattr(request, "member_id", "") or facts.holder
        if member_id:
            self.heard[member_id] = self.memory.world.now_ms
        sign = isinstance(request, OffsetCommitRequest) and request.generation_id_or_member_epoch >= 0
        if sign and facts.code == 0 and group is not None:
            self._contact(group, member_id)

    def answered(self, call: Call, response: Any) -> None:
        """An answer starts a session, or gives out a member id."""
        request, now_ms = call.request, self.memory.world.now_ms
        member_id = getattr(request, "member_id", "")
        if isinstance(request, JoinGroupRequest):
            member_id = response.member_id
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                timeout_ms = request.session_timeout_ms
                self.given_out[member_id] = (call.sent_ms + timeout_ms, now_ms + timeout_ms)
        if member_id:
            self.heard[member_id] = now_ms
        group = self.memory.group(getattr(request, "group_id", ""))
        if group is None or not call.facts.serving:
            return
        heartbeat = isinstance(request, HeartbeatRequest) and response.error_code in _ACCEPTED
        # A session begins when the machine hears of its member, also if the answer waits for the log.
        if heartbeat and not call.parked:
            self._contact(group, member_id)

    def _contact(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self.contacts[member_id] = (self.memory.world.now_ms, member.session_timeout_ms)
            self.heard[member_id] = self.memory.world.now_ms

    # ---- after each step ----

    def after_step(self, groups: dict[str, Group]) -> None:
        """Compare with the last step."""
        for group_id in groups:
            self.memory.learn(group_id)
        for group_id, before in self.memory.seen.items():
            if not self.memory.world.partition(group_id).serving:
                continue
            if group_id not in groups or before.life is not self.memory.life(group_id):
                removed = [one for one, seen in before.members.items() if not seen.is_new]
                self.must(not removed, "O8", f"{group_id} is gone with its members {removed}")
        after = {}
        for group in groups.values():
            known = self.memory.seen.get(group.group_id)
            life = self.memory.life(group.group_id)
            if known is None or known.life is not life:
                known = GroupSeen(GroupState.EMPTY, 0, self.memory.world.now_ms, 0, 0, {}, set())
            now = after[group.group_id] = self._look(group, known)
            now.life = life
            self._check_group(group, known, now)
            if group.state is GroupState.EMPTY:
                life.emptied = max(life.emptied, group.generation)
                if group.generation:
                    life.begun.add(group.generation)
        self.memory.seen = after
        self._check_parked()

    def _look(self, group: Group, before: GroupSeen) -> GroupSeen:
        now_ms = self.memory.world.now_ms
        members = {
            member_id: Seen(
                member.group_instance_id,
                member.awaiting_join,
                member.awaiting_sync,
                member.is_new,
                member_id in group.owing_sync,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
            )
            for member_id, member in group.members.items()
        }
        since_ms, shortest_ms, longest_ms = before.since_ms, before.shortest_ms, before.longest_ms
        timeout_ms = _rebalance_timeout_ms(group)
        if (before.state, before.generation) != (group.state, group.generation):
            since_ms, shortest_ms, longest_ms = now_ms, timeout_ms, timeout_ms
        shortest_ms, longest_ms = min(shortest_ms, timeout_ms), max(longest_ms, timeout_ms)
        pending = set(group.given_out)
        return GroupSeen(group.state, group.generation, since_ms, shortest_ms, longest_ms, members, pending)

    def _check_group(self, group: Group, before: GroupSeen, now: GroupSeen) -> None:
        for member_id, seen in before.members.items():
            if member_id not in now.members:
                self._removed(group, before, now, member_id, seen)
            elif seen.awaiting_join or seen.awaiting_sync:
                self.heard[member_id] = self.memory.world.now_ms
        come = [member_id for member_id in now.members if member_id not in before.members]
        if come:
            self._come(group, before, come)
        changed = (before.state, before.generation) != (now.state, now.generation)
        if changed and now.state is GroupState.PREPARING:
            now.from_empty = before.state is GroupState.EMPTY
        now.collecting_ms = now.since_ms
        if not changed:
            now.from_empty, now.collecting_ms = before.from_empty, before.collecting_ms
        if before.state is GroupState.COMPLETING and now.state is GroupState.STABLE:
            for member_id in now.members:
                if member_id in before.members and before.members[member_id].awaiting_sync:
                    self._contact(group, member_id)
        if changed and now.state in _AT_WORK and self._is_new_generation(group):
            self._completed(group, before)
        elif before.state in _AT_WORK and now.state in _AT_WORK:
            had, has = (sorted(map(self.memory.person, one.members)) for one in (before, now))
            self.must(had == has, "G2", f"{group.group_id} {now.generation}: {had}, then {has}")
        elif now.generation != before.generation:
            self._passed(group)
        self._check_instances(group)
        self._check_pending(group, before)
        self._check_phases(group, now)
        self._check_silence(group, now)

    # ---- who went ----

    def _removed(self, group: Group, before: GroupSeen, now: GroupSeen, member_id: str, seen: Seen) -> None:
        static = seen.instance_id is not None
        if static and any(one.instance_id == seen.instance_id for one in now.members.values()):
            was_requested = any(
                isinstance(call.request, JoinGroupRequest)
                and not call.request.member_id
                and call.request.group_instance_id == seen.instance_id
                for call in self.memory.open_calls
            )
            self.must(was_requested, "G9", f"{member_id} was replaced, and nobody asked for it")
            return
        self.memory.life(group.group_id).disturbed += 1
        now_ms = self.memory.world.now_ms
        if self._left(group.group_id, member_id, seen) or (seen.is_new and self._gave_up()):
            return
        no_time = any(one.rebalance_timeout_ms <= 0 for one in before.members.values())
        if no_time or now.generation - before.generation > 1:
            return  # several phases may have ended in one step
        awaited = before.state is GroupState.PREPARING and not static and not seen.awaiting_join
        if awaited and now_ms - before.since_ms >= before.shortest_ms:
            return
        generation, since_ms, timeout_ms = self.synced.get(group.group_id, (-1, 0, 0))
        owed = seen.owes_sync and before.state in _AT_WORK and before.generation == generation
        owed = owed and now_ms - since_ms >= timeout_ms
        if owed or self._was_silent(member_id, seen):
            waits = self._owes_answers(group.group_id)
            self.must(not waits, "G11", f"{member_id} is out, the record of {group.group_id} is on its way")
            return
        silent_ms = now_ms - self.contacts.get(member_id, (0, 0))[0]
        self.must(
            False,
            "G10" if static and not (seen.awaiting_join or seen.awaiting_sync) else "G11",
            f"{member_id} is out of {group.group_id} for no reason: {seen}, {before.state} for "
            f"{now_ms - before.since_ms} of {before.shortest_ms} ms, heard of {silent_ms} ms ago",
        )

    def _owes_answers(self, group_id: str) -> bool:
        """Whether answers to its members wait for the log: then they are not silent, we are."""
        world = self.memory.world
        return self.durable.since(world.partition(group_id).number, group_id) < world.steps

    def _left(self, group_id: str, member_id: str, seen: Seen) -> bool:
        """Whether a LeaveGroup names it, or it was rejected by a full group."""
        for call in self.memory.open_calls:
            request = call.request
            if request.group_id != group_id:
                continue
            if isinstance(request, LeaveGroupRequest):
                named: set[tuple[str, str | None]]
                named = {(request.member_id, None)} if call.api_version < 3 else set()
                named |= {(one.member_id, one.group_instance_id) for one in request.members}
                ways = {(member_id, None), (member_id, seen.instance_id), ("", seen.instance_id)}
                if named & (ways - {("", None)}):
                    return True
            elif _FULL in (call.code, call.facts.code):
                own = seen.instance_id is not None and seen.instance_id == request.group_instance_id
                if request.member_id == member_id or (own and not request.member_id):
                    return True
        return False

    def _was_silent(self, member_id: str, seen: Seen) -> bool:
        """Whether its session was over, or it had waited too long for its first join phase."""
        now_ms = self.memory.world.now_ms
        since_ms, timeout_ms = self.contacts.get(member_id, (0, 0))
        if seen.is_new:  # parked or not; by a heartbeat it chooses its own session (Kafka behaviour)
            longest_ms = self.memory.world.settings.new_member_join_timeout_ms
            over = now_ms - self.first.get(member_id, now_ms) >= longest_ms
            return over or (member_id in self.contacts and now_ms - since_ms >= timeout_ms)
        if seen.awaiting_join or seen.awaiting_sync:
            return False  # it waits for us
        return now_ms - since_ms >= timeout_ms

    def _gave_up(self) -> bool:
        """Whether the group's new members were sent away, since the store is full."""
        world = self.memory.world
        return world.full_step == world.steps

    # ---- who came ----

    def _come(self, group: Group, before: GroupSeen, come: list[str]) -> None:
        """G17: each new member has a JoinGroup of its own."""
        joins = [
            call.request
            for call in self.memory.open_calls
            if isinstance(call.request, JoinGroupRequest) and call.request.group_id == group.group_id
        ]
        named = {request.member_id for request in joins}
        anonymous = sum(not request.member_id for request in joins)
        for member_id in come:
            self.first[member_id] = self.heard[member_id] = self.memory.world.now_ms
            instance_id = group.members[member_id].group_instance_id
            for one in before.members.values():
                if instance_id is not None and one.instance_id == instance_id:
                    own_ms = group.members[member_id].session_timeout_ms
                    self.contacts[member_id] = (self.memory.world.now_ms, own_ms)
            if member_id not in named:
                anonymous -= 1
        self.must(anonymous >= 0, "G17", f"{come} came to {group.group_id}, nobody asked for that many")

    # ---- a join phase is over ----

    def _passed(self, group: Group) -> None:
        """A generation began and ended in one step."""
        life = self.memory.life(group.group_id)
        for member_id in group.members:
            self.heard[member_id] = self.memory.world.now_ms
        if group.state is GroupState.PREPARING:
            self.must(group.generation > life.highest, "G2", f"{group.generation} of {group.group_id} again")
            life.highest = life.current = group.generation

    def _is_new_generation(self, group: Group) -> bool:
        return self.memory.life(group.group_id).current != group.generation

    def _completed(self, group: Group, before: GroupSeen) -> None:
        memory, now_ms = self.memory, self.memory.world.now_ms
        life = memory.life(group.group_id)
        number = group.generation
        last = max(life.highest, life.emptied)
        self.must(number > last, "G2", f"generation {number} of {group.group_id} after {last}")
        life.begun.add(number)
        life.highest = life.current = number
        life.crashed_since = False
        self.synced[group.group_id] = (number, now_ms, _rebalance_timeout_ms(group))
        joined = 0
        joining = {call.request.member_id for call in memory.open_calls}
        for member_id, member in group.members.items():
            seen = before.members.get(member_id)
            here = seen is None or seen.awaiting_join or member_id in joining
            static = member.group_instance_id is not None
            joined += here
            self.must(here or static, "G11", f"{member_id} did not rejoin and is in generation {number}")
            self._contact(group, member_id)
        limit = memory.world.settings.group_max_size
        self.must(joined <= limit, "G15", f"{joined} members joined {group.group_id}, the limit is {limit}")
        generation = life.generations.get(number)
        if generation is not None and generation.listed is not None and group.state is GroupState.COMPLETING:
            count = len(generation.listed)
            self.must(count == len(group.members), "G3", f"{count} listed of {len(group.members)} members")
        early = now_ms - before.since_ms < before.shortest_ms and before.state is GroupState.PREPARING
        awaited = before.pending & set(group.given_out)
        if early and not before.from_empty:
            self.must(not awaited, "G14", f"{awaited} had an id, and were not waited for: {before}")
        self._check_vote(group)

    def _check_vote(self, group: Group) -> None:
        """G4: most first preferences among what all offer; of equals, what the leader likes best."""
        offers = {one: [name for name, _ in m.protocols] for one, m in group.members.items()}
        common = set.intersection(*map(set, offers.values()))
        votes = [next((name for name in offer if name in common), "") for offer in offers.values()]
        best = max(votes.count(name) for name in votes)
        leader = offers[group.leader or ""]
        right = next((name for name in leader if name in common and votes.count(name) == best), None)
        self.must(group.protocol == right, "G4", f"{group.protocol} was chosen of {offers}, not {right}")

    # ---- what always holds ----

    def _check_instances(self, group: Group) -> None:
        instances = [m.group_instance_id for m in group.members.values() if m.group_instance_id is not None]
        twice = len(instances) != len(set(instances))
        back = self.memory.fenced.intersection(group.members)
        self.must(not back, "G9", f"{back} of {group.group_id} was replaced and is back")
        self.must(not twice, "G9", f"{group.group_id} has an instance id twice: {list(group.members)}")

    def _check_pending(self, group: Group, before: GroupSeen) -> None:
        now_ms, limit = self.memory.world.now_ms, self.memory.world.settings.group_max_pending_members
        self.must(len(group.given_out) <= limit, "G14", "too many member ids are given out")
        for member_id in group.given_out:
            due_ms = self.given_out.get(member_id, (0, now_ms))[1]
            late = now_ms > due_ms + self.memory.world.held_ms(due_ms)
            self.must(not late, "G14", f"{member_id} was given out and should have expired at {due_ms}")
        for member_id in before.pending - set(group.given_out) - set(group.members):
            early = now_ms < self.given_out.get(member_id, (0, 0))[0]
            named = any(
                call.request.member_id == member_id
                or any(one.member_id == member_id for one in getattr(call.request, "members", ()))
                for call in self.memory.open_calls
            )
            deleted = group.state is GroupState.EMPTY or before.state is GroupState.EMPTY
            fine = not early or named or deleted or self._gave_up()
            self.must(fine, "G14", f"{member_id} was given out and forgotten before its time")

    def _check_phases(self, group: Group, now: GroupSeen) -> None:
        """G11, G13: both phases end within the rebalance timeout, whatever members do."""
        now_ms = self.memory.world.now_ms
        if group.state is GroupState.PREPARING:
            if not any(seen.awaiting_join for seen in now.members.values()):
                now.collecting_ms = now_ms  # only absent static members: it goes on until somebody comes
            lasts_ms = now_ms - now.collecting_ms - self.memory.world.held_ms(now.collecting_ms)
            longest = max(now.longest_ms, self.memory.world.settings.group_initial_rebalance_delay_ms)
            self.must(lasts_ms <= longest + _SLACK_MS, "G11", f"collecting JoinGroups for {lasts_ms} ms")
        elif group.state in _AT_WORK:
            generation, since_ms, timeout_ms = self.synced.get(group.group_id, (-1, 0, 0))
            if generation != group.generation:
                return  # from the log: nobody owes a sync
            owed = bool(group.owing_sync)
            if self._owes_answers(group.group_id):
                self.awaited[group.group_id] = now_ms  # it may begin again
            since_ms = max(since_ms, self.awaited.get(group.group_id, 0))
            lasts_ms = now_ms - since_ms - self.memory.world.held_ms(since_ms)
            self.must(not owed or lasts_ms <= max(timeout_ms, 1), "G13", f"syncs miss for {lasts_ms} ms")
            late = group.state is GroupState.COMPLETING and lasts_ms > max(timeout_ms, 0) + _SLACK_MS
            self.must(not late, "G13", f"no assignment for {lasts_ms} ms")

    def _check_silence(self, group: Group, now: GroupSeen) -> None:
        """G11, the other way round: sessions do end."""
        now_ms = self.memory.world.now_ms
        silent = self.memory.world.partition(group.group_id).log_is_silent()
        if silent or self._owes_answers(group.group_id):
            self.heard |= dict.fromkeys(now.members, now_ms)
        for member_id, seen in now.members.items():
            if seen.is_new or seen.awaiting_join or seen.awaiting_sync:
                continue
            heard_ms = self.heard.get(member_id, now_ms)
            silent_ms = now_ms - heard_ms - self.memory.world.held_ms(heard_ms)
            over = silent_ms > seen.session_timeout_ms
            self.must(not over, "G11", f"{member_id} has been silent for {silent_ms} ms")

    def _check_parked(self) -> None:
        world = self.memory.world
        for partition in world.partitions:
            for call in partition.calls:
                age_ms = world.now_ms - call.sent_ms - world.held_ms(call.sent_ms)
                late = age_ms > _LONGEST_WAIT_MS + _SLACK_MS
                self.must(not late, "G12", f"{call.request!r} is unanswered for {age_ms} ms")
                break  # they are in order of arrival: the first is the oldest

    def all_full(self, partition: Partition) -> None:
        """Nobody could keep a session alive by JoinGroup while the store was full, or perhaps by anything
        while the log was silent: all are full now."""
        world = self.memory.world
        for group_id, group in self.memory.groups().items():
            if world.partition(group_id) is partition:
                self.heard |= dict.fromkeys(group.members, world.now_ms)

    # ---- lives of shards ----

    def ended(self, partition: Partition) -> None:
        """State that was only live is gone."""
        world = self.memory.world
        for group_id in [one for one in self.synced if world.partition(one) is partition]:
            del self.synced[group_id]
        seen = self.memory.seen
        for group_id in [one for one in seen if world.partition(one) is partition]:
            for member_id in seen.pop(group_id).pending:
                self.given_out.pop(member_id, None)

    def loaded(self, groups: dict[str, Group]) -> None:
        """Sessions are full, the last synced generation is back."""
        for group_id in groups:
            self.memory.learn(group_id)  # a place that was taken, though no answer has said so
        for group in groups.values():
            life = self.memory.life_of_log(group.group_id, group)
            life.crashed_since, life.last_row = True, None
            life.begun.clear()  # rows that were on their way are lost
            life.current = group.generation
            # A number that was not reserved was in no answer.
            floor = self.memory.world.store.durable.get(records.reserved_key(group.group_id))
            life.highest = min(life.highest, records.decode_reserved_value(floor) if floor else 0)
            # The number of an empty group is in no answer; it counts when it is durable.
            life.emptied = min(life.emptied, group.generation)
            known = group.generation <= life.highest or not group.members
            self.must(known, "G2", f"generation {group.generation} from nowhere")
            for member_id in group.members:
                self._contact(group, member_id)
            self._check_record(group)
            seen = self.memory.seen[group.group_id] = self._look(
                group, GroupSeen(GroupState.EMPTY, -1, self.memory.world.now_ms, 0, 0, {}, set())
            )
            seen.life = life

    def _check_record(self, group: Group) -> None:
        stored = [] if group.synced is None else group.synced.members
        same = {one.member_id for one in stored} == set(group.members)
        self.must(same, "O3", f"{group.group_id} was loaded with members {list(group.members)}")


def _rebalance_timeout_ms(group: Group) -> int:
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
