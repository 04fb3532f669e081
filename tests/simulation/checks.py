"""The invariants (names as in the reliability notes: G groups, O offsets, J journal), checked after every
step.

What is checked is what an outside observer can hold against the machine: requests, answers, the log, and a
look at the groups between two steps. Nothing here shares code with the machine but the record formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.journal import Departure, JournalEntry
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.states import State
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    SyncGroupRequest,
)
from tests.simulation.actors import Delete, Fetch
from tests.simulation.facts import Facts, Generation, Life, ViolationError

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

_SLACK_MS = 25_000
"""What a slow or failing store may add to a bound."""
_PARTITIONS = range(4)


class Checks:
    """Watches one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lives: dict[str, Life] = {}
        self.offers: dict[str, list[dict[str, bytes]]] = {}
        self.contacts: dict[str, tuple[int, int]] = {}  # member id -> (time, session timeout then)
        self.history: dict[
            tuple[str, int], list[int | None]
        ] = {}  # (group, partition) -> offsets, None: deleted
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.recent: dict[str, list[JournalEntry]] = {}
        self.since: dict[
            str, tuple[State, int, int]
        ] = {}  # group -> state, since when, rebalance timeout then
        self.seen: dict[str, dict[str, tuple[Member, bool]]] = {}
        self.rebuilt_at = -1
        self._offset = 0

    def must(self, condition: Any, name: str, text: str) -> None:
        """Raise unless the condition holds."""
        if not condition:
            world = self.world
            raise ViolationError(
                f"{name}: {text} (seed {world.seed}, {world.now_ms} ms, step {world.steps}; "
                f"again: python -m tests.simulation --seed {world.seed})"
            )

    def fresh_offset(self) -> int:
        """Every committed offset is used once, so that a fetch tells which commit it saw."""
        self._offset += 1
        return self._offset

    def life(self, group_id: str) -> Life:
        """The present incarnation of a group: deleted and made again, it is another object and starts
        clean."""
        group = self._groups().get(group_id)
        known = self.lives.get(group_id)
        if known is None or (group is not None and known.group is not group):
            known = self.lives[group_id] = Life(group)
        return known

    def _groups(self) -> dict[str, Group]:
        return self.world.shard._groups if self.world.serving else {}

    # ---- requests arrive ----

    def before(self, call: Call) -> Facts:
        """Note what holds when the request arrives."""
        request = call.request
        group = self._groups().get(request.group_id)
        facts = Facts()
        if group is not None:
            facts.state = group.state
            facts.gated = bool(group.exclusive or group.blocked)
            facts.generation = group.generation
        if isinstance(request, JoinGroupRequest):
            self._before_join(request, group, facts)
        elif isinstance(request, SyncGroupRequest):
            self._before_sync(request, group)
        elif isinstance(request, HeartbeatRequest) and group is not None:
            member = group.members.get(request.member_id)
            facts.valid = member is not None and request.generation_id == group.generation
        elif isinstance(request, OffsetCommitRequest):
            self._before_commit(request, group, facts)
        elif isinstance(request, OffsetDeleteRequest):
            partitions = [one.partition_index for one in request.topics[0].partitions]
            facts.deleted = self._deleted(request.group_id, partitions)
        elif isinstance(request, Delete):
            facts.deleted = self._deleted(request.group_id, _PARTITIONS)
        return facts

    def _before_join(self, request: JoinGroupRequest, group: Group | None, facts: Facts) -> None:
        offer = {one.name: one.metadata for one in reversed(request.protocols)}
        if request.member_id:
            self.offers.setdefault(request.member_id, []).append(offer)
        member = group.members.get(request.member_id) if group is not None else None
        if group is None or member is None or group.state is not State.STABLE:
            return
        same = [(p.name, p.metadata) for p in request.protocols] == list(member.protocols)
        in_bounds = request.session_timeout_ms >= 1_000 and request.protocol_type == group.protocol_type
        facts.unchanged_follower = same and in_bounds and group.leader != member.member_id

    def _before_sync(self, request: SyncGroupRequest, group: Group | None) -> None:
        if group is None or group.state is not State.COMPLETING:
            return
        if request.member_id == group.leader and request.generation_id == group.generation:
            generation = self.life(request.group_id).generations.get(group.generation)
            if generation is not None:
                given = {one.member_id: one.assignment for one in request.assignments}
                generation.submissions.append(given)

    def _before_commit(self, request: OffsetCommitRequest, group: Group | None, facts: Facts) -> None:
        epoch = request.generation_id_or_member_epoch
        if group is None or (group.state is State.EMPTY):
            facts.allowed = epoch < 0
        else:
            member = group.members.get(request.member_id)
            current = member is not None and epoch == group.generation
            facts.allowed = current and group.state is not State.COMPLETING
        for one in request.topics[0].partitions:
            self.history.setdefault((request.group_id, one.partition_index), [None]).append(
                one.committed_offset
            )

    def topic_deleted(self) -> None:
        """The topic is about to be deleted."""
        for group_id, partition in list(self.history):
            self._deleted(group_id, [partition])

    def _deleted(self, group_id: str, partitions: Sequence[int]) -> dict[tuple[str, int], int]:
        """Note a deletion that may happen; its places in the histories."""
        found = {}
        for partition in partitions:
            history = self.history.setdefault((group_id, partition), [None])
            history.append(None)
            found[group_id, partition] = len(history) - 1
        return found

    # ---- answers ----

    def answered(self, call: Call, response: Any) -> None:
        """Hold an answer against everything known."""
        if response is None:
            return
        request = call.request
        if isinstance(request, JoinGroupRequest):
            self._join_answered(call, request, response)
        elif isinstance(request, SyncGroupRequest):
            self._sync_answered(request, response)
        elif isinstance(request, HeartbeatRequest):
            self._heartbeat_answered(call, request, response)
        elif isinstance(request, OffsetCommitRequest):
            self._commit_answered(call, request, response)
        elif isinstance(request, Fetch):
            self._fetch_answered(request, response)
        elif isinstance(request, Delete | OffsetDeleteRequest):
            self._delete_answered(call, response)

    def _join_answered(self, call: Call, request: JoinGroupRequest, response: Any) -> None:
        if call.facts.unchanged_follower and not call.facts.gated:
            same = response.error_code == 0 and response.generation_id == call.facts.generation
            self.must(same, "G17", "an unchanged follower gets its generation once more")
        if response.error_code:
            return
        number, member_id = response.generation_id, response.member_id
        if not request.member_id:
            self.offers.setdefault(member_id, []).append({p.name: p.metadata for p in request.protocols})
        life = self.life(request.group_id)
        generation = life.generations.setdefault(number, Generation(response.leader))
        self.must(generation.leader == response.leader, "G1", f"two leaders in generation {number}")
        is_leader = member_id == response.leader
        self.must(bool(response.members) == is_leader, "G1", f"list and leadership of {member_id} differ")
        generation.answered.add(member_id)
        if is_leader:
            listed = {one.member_id: one.metadata for one in response.members}
            self.must(member_id in listed, "G3", "the leader's list lacks the leader")
            known = generation.listed
            self.must(known is None or known == listed, "G2", f"generation {number} with two member sets")
            generation.listed = listed
            self._check_bytes(listed, response.protocol_name)
        if generation.listed is not None:
            strangers = generation.answered - set(generation.listed)
            self.must(not strangers, "G3", f"answered, but not in the leader's list: {strangers}")
        floor = self.world.durable.get(records.floor_key(request.group_id))
        reserved = records.decode_floor_value(floor) if floor else 0
        self.must(reserved >= number, "O2", f"generation {number} was answered, {reserved} is reserved")

    def _check_bytes(self, listed: dict[str, bytes], protocol: str) -> None:
        for member_id, metadata in listed.items():
            offers = self.offers.get(member_id)
            if offers is not None:
                known = any(offer.get(protocol) == metadata for offer in offers)
                self.must(known, "G6", f"metadata of {member_id} is not what it sent")

    def _sync_answered(self, request: SyncGroupRequest, response: Any) -> None:
        if response.error_code:
            return
        member_id, number = request.member_id, request.generation_id
        generation = self.life(request.group_id).generations.get(number)
        self.must(generation, "G5", f"an assignment of generation {number}, which nobody was told about")
        assert generation is not None
        fitting = [s for s in generation.submissions if s.get(member_id, b"") == response.assignment]
        self.must(fitting, "G5", f"{member_id} got {response.assignment!r}, the leader sent something else")
        generation.submissions = fitting
        value = self.world.durable.get(records.group_key(request.group_id))
        self.must(value, "O2", "an assignment was answered without a record")
        assert value is not None
        record = records.decode_group_value(value)
        stored = {one.member_id: one.assignment for one in record.members}
        durable = record.generation == number and stored.get(member_id) == response.assignment
        self.must(durable, "O2", f"the assignment of {member_id} in generation {number} is not durable")

    def _heartbeat_answered(self, call: Call, request: HeartbeatRequest, response: Any) -> None:
        facts, code = call.facts, response.error_code
        preparing = facts.state is State.PREPARING
        if code == ErrorCode.NONE:
            self.must(facts.valid and not preparing, "G16", "a heartbeat was accepted that is not current")
        if code == ErrorCode.REBALANCE_IN_PROGRESS or (facts.valid and preparing):
            right = facts.valid and preparing and code == ErrorCode.REBALANCE_IN_PROGRESS
            self.must(right, "G16", f"a heartbeat was told {code} in {facts.state}")
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self._contact(request.group_id, request.member_id)

    def _contact(self, group_id: str, member_id: str) -> None:
        group = self._groups().get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if member is not None:
            self.contacts[member_id] = (self.world.now_ms, member.session_timeout_ms)

    def _commit_answered(self, call: Call, request: OffsetCommitRequest, response: Any) -> None:
        for one in response.topics[0].partitions:
            if one.error_code:
                continue
            self.must(call.facts.allowed or call.facts.gated, "G8", "a commit was accepted from an outsider")
            place = (request.group_id, one.partition_index)
            offset = request.topics[0].partitions[0].committed_offset
            position = self.history[place].index(offset)
            self.acknowledged[place] = max(self.acknowledged.get(place, 0), position)
            self._check_offset(place, self._durable_offset(place), "O2")

    def _durable_offset(self, place: tuple[str, int]) -> int | None:
        value = self.world.durable.get(records.offset_key(place[0], "t", place[1]))
        return None if value is None else records.decode_offset_value(value).offset

    def _check_offset(self, place: tuple[str, int], offset: int | None, name: str) -> None:
        history = self.history.get(place, [None])
        allowed = history[self.acknowledged.get(place, 0) :]
        self.must(offset in allowed, name, f"{place} is {offset}, acknowledged or later are {allowed}")

    def _fetch_answered(self, request: Fetch, response: Any) -> None:
        if response.error_code:
            return
        for one in response.topics[0].partitions:
            found = None if one.committed_offset == -1 else one.committed_offset
            self._check_offset((request.group_id, one.partition_index), found, "O1")

    def _delete_answered(self, call: Call, response: Any) -> None:
        """O8: what was deleted stays deleted, but for commits that came later."""
        refused = response.error_code
        if not refused and isinstance(call.request, OffsetDeleteRequest):
            refused = response.topics[0].partitions[0].error_code
        if refused:
            return
        for place, position in call.facts.deleted.items():
            self.acknowledged[place] = max(self.acknowledged.get(place, 0), position)
            self._check_offset(place, self._durable_offset(place), "O8")

    def journal(self, entry: JournalEntry) -> None:
        """One row for each generation; the phases sum to the duration."""
        life = self.life(entry.group_id)
        self.must(entry.generation not in life.rows, "J1", f"two rows for generation {entry.generation}")
        life.rows.add(entry.generation)
        phases = entry.join_ms + entry.leader_ms + entry.sync_ms
        self.must(phases == entry.duration_ms, "J1", "phases do not sum to the duration")
        self.must(min(entry.join_ms, entry.leader_ms, entry.sync_ms) >= 0, "J1", "a negative phase")
        self.recent.setdefault(entry.group_id, []).append(entry)
        del self.recent[entry.group_id][:-3]

    # ---- after each step ----

    def after_step(self) -> None:
        """Everything that must hold between two steps."""
        if not self.world.serving:
            return
        groups = self._groups()
        for group_id in [one for one in self.lives if one not in groups]:
            del self.lives[group_id]  # deleted: what comes next starts clean
        for group in groups.values():
            self.life(group.group_id)
            self._check_group(group)
        self._check_removals(groups)
        self._check_parked()
        if self.rebuilt_at != self.world.log_version:
            self.rebuilt_at = self.world.log_version
            self._check_rebuilt(groups)

    def _check_group(self, group: Group) -> None:
        settings = self.world.settings
        version = self.world.log_version
        limit = settings.group_max_pending_members
        self.must(len(group.pending) <= limit, "G14", "too many given-out member ids")
        if group.state in (State.COMPLETING, State.STABLE):
            self.must(len(group.members) <= settings.group_max_size, "G15", "the group is above its size")
        awaiting = sum(member.awaiting_join for member in group.members.values())
        self.must(awaiting == group.awaiting_joins, "G17", "the count of waiting members is wrong")
        self._check_duration(group)
        if group.state is State.COMPLETING:
            self._check_completed(group)
        # The record changes rarely; members of a stable group are looked at now and then all the same.
        if group.state is State.STABLE and (self.world.steps % 16 == 0 or self.rebuilt_at != version):
            self._check_stable(group)

    def _check_duration(self, group: Group) -> None:
        """G11, G13: both phases of a rebalance end within the rebalance timeout, whatever members do."""
        now_ms = self.world.now_ms
        known = self.since.get(group.group_id)
        if known is None or known[:2] != (group.state, group.generation):
            self.since[group.group_id] = (group.state, group.generation, now_ms, group.rebalance_timeout_ms)
            return
        lasts_ms = now_ms - known[2]
        if group.state is State.PREPARING:
            longest = max(known[3], self.world.settings.group_initial_rebalance_delay_ms) + _SLACK_MS
            self.must(lasts_ms <= longest, "G11", f"collecting JoinGroups for {lasts_ms} ms")
        elif group.state in (State.COMPLETING, State.STABLE) and group.pending_sync:
            self.must(lasts_ms <= max(known[3], 0), "G13", f"syncs are missing for {lasts_ms} ms")

    def _check_completed(self, group: Group) -> None:
        life = self.life(group.group_id)
        if life.current == group.generation:
            return
        self.must(group.generation > life.highest, "G2", f"{group.generation} after {life.highest}")
        if life.current and not life.crashed_since:
            self.must(life.current in life.rows, "J1", f"no row for generation {life.current}")
        life.highest = life.current = group.generation
        life.crashed_since = False
        for member_id in group.members:
            self._contact(group.group_id, member_id)
        offers = [[name for name, _ in m.protocols] for m in group.members.values()]
        common = set(offers[0]).intersection(*offers)
        votes = [next(name for name in offer if name in common) for offer in offers]
        best = max(votes.count(name) for name in votes)
        won = group.protocol in common and votes.count(group.protocol or "") == best
        self.must(won, "G4", f"{group.protocol} chosen of {offers}")

    def _check_stable(self, group: Group) -> None:
        assert group.record is not None
        record = records.decode_group_value(group.record)
        stored = {m.member_id: (m.subscription, m.assignment) for m in record.members}
        live = {m.member_id: (m.metadata(group.protocol), m.assignment) for m in group.members.values()}
        same = stored == live and record.generation == group.generation and record.leader == group.leader
        self.must(same, "O3", f"stable group {group.group_id} is not what its record says")

    def _check_removals(self, groups: dict[str, Group]) -> None:
        for group_id, before in self.seen.items():
            group = groups.get(group_id)
            if group is None:
                continue
            for member_id, (member, waits) in before.items():
                if member_id not in group.members:
                    self._check_removal(group, member, waits)
        self.seen = {
            group_id: {
                member_id: (member, member.lives_without_heartbeat)
                for member_id, member in group.members.items()
            }
            for group_id, group in groups.items()
        }

    def _check_removal(self, group: Group, member: Member, waited: bool) -> None:
        why = group.departed.get(member.member_id)
        if why is None and group.progress is not None:
            why = group.progress.left.get(member.member_id)
        for entry in self.recent.get(group.group_id, []):
            why = why or entry.left.get(member.member_id)
        if why is Departure.SESSION_EXPIRED:
            self.must(not waited, "G11", f"{member.member_id} was expired while it waited for an answer")
            time_ms, session_ms = self.contacts.get(member.member_id, (0, 0))
            silent_ms = self.world.now_ms - time_ms
            self.must(silent_ms >= session_ms, "G11", f"{member.member_id} expired after {silent_ms} ms")

    def _check_parked(self) -> None:
        for call in self.world.calls:
            age_ms = self.world.now_ms - call.sent_ms
            self.must(age_ms <= 33_000 + _SLACK_MS, "G12", f"{call.request!r} is unanswered for {age_ms} ms")
            return  # they are in order of arrival: the first is the oldest

    def _check_rebuilt(self, groups: dict[str, Group]) -> None:
        again = self.world.new_shard()
        # What a compaction leaves of the log must do; the whole log now and then.
        whole = self.world.log_version % 16 == 0
        for key, value in self.world.log if whole else self.world.durable.items():
            if whole or value is not None:
                again.replay(key, value)
        rebuilt = _durable_state(again._core.loading)
        self.must(_durable_state(groups) == rebuilt, "O3", "live durable state differs from the rebuilt one")

    # ---- crashes and the end ----

    def crashed(self) -> None:
        """The process died; what was only live is gone."""
        self.seen.clear()
        self.since.clear()
        self.recent.clear()

    def restarted(self) -> None:
        """Another process serves: sessions are full, the last synced generation is back."""
        for group in self._groups().values():
            life = self.lives.setdefault(group.group_id, Life(group))
            life.group = group
            life.crashed_since = True
            life.current = group.generation
            self.must(
                group.generation <= life.highest or not group.members, "G2", "a generation from nowhere"
            )
            for member_id in group.members:
                self._contact(group.group_id, member_id)

    def settled(self) -> None:
        """G18: after the faults, every group with live members is stable, and has just these."""
        world = self.world
        for group_id in ("g", "h"):
            workers = [one for one in world.workers if one.alive and one.group == group_id]
            if not workers or world.settings.group_max_record_bytes < 1_000:
                continue
            group = self._groups().get(group_id)
            self.must(group is not None and group.state is State.STABLE, "G18", f"{group_id} did not settle")
            assert group is not None
            stable = {one.member_id for one in workers if one.stable}
            self.must(set(group.members) == stable, "G18", f"members {list(group.members)}, stable {stable}")
            # After a crash members are known with their elected protocol only (as in Kafka), so that whoever
            # does not
            # offer just that one is refused until they have rejoined.
            fitting = [one for one in workers if group.protocol in {offer.name for offer in one.protocols}]
            expected = min(len(fitting), world.settings.group_max_size)
            self.must(len(stable) == expected, "G18", f"{len(stable)} of {expected} workers are in")


def _durable_state(groups: dict[str, Group]) -> dict[str, Any]:
    return {
        group_id: (group.record, group.floor, group.offsets)
        for group_id, group in groups.items()
        if group.record or group.floor or group.offsets
    }
