"""The answers to members: G1 to G9, G16, G17, G19, and the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from tests.simulation.facts import Generation, Life, Memory
from tests.simulation.oracle import STORE_FULL, holder_of
from tests.simulation.requests import Describe, EndTransaction, ForgetTopic, ListGroups

if TYPE_CHECKING:
    from tests.simulation.world import Call

_OK = int(ErrorCode.NONE)
_FENCED = int(ErrorCode.FENCED_INSTANCE_ID)
_UNKNOWN_MEMBER_ID = int(ErrorCode.UNKNOWN_MEMBER_ID)
_FULL = int(ErrorCode.GROUP_MAX_SIZE_REACHED)
_MEMBER_ID_REQUIRED = int(ErrorCode.MEMBER_ID_REQUIRED)
_WITH_MEMORY = (_OK, _MEMBER_ID_REQUIRED, int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
"""The answers that a JoinGroup which was refused for want of memory could have had else."""
_BY_CODE = {
    _FENCED: "G9",
    _FULL: "G15",
    _MEMBER_ID_REQUIRED: "G14",
    int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL): "G4",
}
_BY_REQUEST = {
    HeartbeatRequest: "G16",
    SyncGroupRequest: "G5",
    OffsetCommitRequest: "G8",
    TxnOffsetCommitRequest: "G8",
    LeaveGroupRequest: "G10",
    JoinGroupRequest: "G17",
}
_LATER: dict[type, frozenset[int]] = {
    # The errors that an accepted request may get: somebody else decides while it waits.
    SyncGroupRequest: frozenset((_OK, _UNKNOWN_MEMBER_ID, _FENCED, int(ErrorCode.REBALANCE_IN_PROGRESS))),
    JoinGroupRequest: frozenset((_OK, _UNKNOWN_MEMBER_ID, _FENCED)),
    OffsetCommitRequest: frozenset((_OK, int(ErrorCode.OFFSET_METADATA_TOO_LARGE))),
    TxnOffsetCommitRequest: frozenset((_OK, int(ErrorCode.OFFSET_METADATA_TOO_LARGE))),
    HeartbeatRequest: frozenset((_OK,)),
}
NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)
_INVALID = (int(ErrorCode.INVALID_GROUP_ID), int(ErrorCode.INVALID_SESSION_TIMEOUT))
_SMALLEST_RECORD_LIMIT = 10_000
"""With less, an assignment or a static member may be too large for the group's record."""
_LOADING_CODES: dict[type, int] = {
    SyncGroupRequest: int(ErrorCode.REBALANCE_IN_PROGRESS),  # Java takes the other one for fatal
    HeartbeatRequest: _OK,
}


class Answers:
    """Remembers what was said, and holds each new answer against it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.must = memory.must
        self.offers: dict[str, list[dict[str, bytes]]] = {}

    # ---- requests arrive ----

    def before(self, call: Call, group: Group | None) -> None:
        """Note what holds when a request arrives."""
        call.facts.fenced = getattr(call.request, "member_id", "") in self.memory.fenced
        if isinstance(call.request, JoinGroupRequest):
            self._before_join(call, call.request, group)
        elif isinstance(call.request, SyncGroupRequest):
            self._before_sync(call, call.request, group)

    def _before_join(self, call: Call, request: JoinGroupRequest, group: Group | None) -> None:
        offer = {one.name: one.metadata for one in reversed(request.protocols)}
        person = self.memory.person(request.member_id)
        if request.group_instance_id is not None:
            person = self.memory.static(request.group_instance_id)
        if person:
            self.offers.setdefault(person, []).append(offer)
        facts = call.facts
        facts.holder = holder_of(group, request.group_instance_id) if not request.member_id else ""
        if group is None or facts.code != _OK:
            return
        member = group.members.get(request.member_id or facts.holder)
        if member is None or [(p.name, p.metadata) for p in request.protocols] != list(member.protocols):
            return
        if facts.holder:
            facts.quiet_restart = group.state is GroupState.STABLE
        elif group.state is GroupState.COMPLETING:
            facts.unchanged = True
        elif group.state is GroupState.STABLE:
            facts.unchanged = group.leader != member.member_id

    def _before_sync(self, call: Call, request: SyncGroupRequest, group: Group | None) -> None:
        if group is None or group.leader != request.member_id or request.generation_id != group.generation:
            return
        refused = call.facts.code != _OK
        if group.state is not GroupState.COMPLETING or refused:
            return
        given = {self.memory.person(one.member_id): one.assignment for one in request.assignments}
        life = self.memory.life(request.group_id)
        life.submissions.setdefault(group.generation, []).append(given)

    # ---- answers leave ----

    def answered(self, call: Call, response: Any) -> None:
        """Hold an answer against everything known."""
        request = call.request
        if isinstance(request, ListGroups):
            listed = isinstance(response, list)
            fits = listed == (call.facts.serving or call.facts.unloaded)
            self.must(fits, "D3", f"groups are listed: {response!r}")
        if isinstance(request, ListGroups | EndTransaction | ForgetTopic):
            return
        if call.facts.unloaded:
            self._check_unloaded(request, response)
            return
        if not call.facts.serving:
            self._check_loading(request, response)
            return
        if isinstance(request, Describe):
            self._described(response)
            return
        self._check_code(call, response)
        self._check_fenced(call, request, response)
        self.memory.learn(request.group_id)
        if isinstance(request, JoinGroupRequest):
            self._join_answered(call, request, response)
        elif isinstance(request, SyncGroupRequest) and response.error_code == _OK:
            self._sync_answered(request, response)
        elif isinstance(request, LeaveGroupRequest):
            self._leave_answered(call, response)

    def _check_unloaded(self, request: Any, response: Any) -> None:
        """D2."""
        code = _codes(request, response)[0]
        fits = code == NOT_COORDINATOR or code in _INVALID
        self.must(fits, "D2", f"{request!r} was told {code} by a shard that moved away")

    def _check_loading(self, request: Any, response: Any) -> None:
        """D3."""
        code = _codes(request, response)[0]
        right = _LOADING_CODES.get(type(request), int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        self.must(code == right or code in _INVALID, "D3", f"{request!r} was told {code} while loading")

    def _check_code(self, call: Call, response: Any) -> None:
        request, right = call.request, call.facts.code
        if right is None:
            return
        codes = _codes(request, response)
        if isinstance(right, list):
            self.must(codes == right, "G10", f"{request!r} was told {codes}, {right} is right")
            return
        for code in codes:
            fits = code == right
            if not fits and code == _FULL and isinstance(request, JoinGroupRequest):
                fits = self.memory.world.has_small_memory and right in _WITH_MEMORY
            if not fits and right == _OK and not isinstance(request, HeartbeatRequest):
                fits = code in _LATER.get(type(request), ()) or code in self._excuses(call)
            name = _BY_CODE.get(right) or _BY_CODE.get(code) or _BY_REQUEST[type(request)]
            if STORE_FULL in (code, right):
                name = "F1"
            self.must(fits, name, f"{request!r} was told {code}, {right} is right in {call.facts.state}")

    def _excuses(self, call: Call) -> set[int]:
        """The errors that a request may get while it waits, by no fault of its own."""
        world, excuses = self.memory.world, set[int]()
        if not isinstance(call.request, JoinGroupRequest | SyncGroupRequest):
            return excuses
        if any(begin >= call.sent_ms for begin, _ in world.full_spans):
            excuses.add(STORE_FULL)
        if world.settings.group_max_record_bytes < _SMALLEST_RECORD_LIMIT or world.has_small_memory:
            excuses.add(int(ErrorCode.UNKNOWN_SERVER_ERROR))
        return excuses

    def _check_fenced(self, call: Call, request: Any, response: Any) -> None:
        """G9: for a replaced member id there is no success any more, whatever it asks for. A commit was taken
        when it came: it may only have waited for the log."""
        if isinstance(request, LeaveGroupRequest):
            return
        commit = isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest)
        if call.facts.fenced if commit else getattr(request, "member_id", "") in self.memory.fenced:
            admin = commit and request.generation_id_or_member_epoch < 0
            good = [code for code in _codes(request, response) if code == _OK]
            self.must(admin or not good, "G9", f"{request!r} of a replaced member was accepted")

    # ---- JoinGroup ----

    def _join_answered(self, call: Call, request: JoinGroupRequest, response: Any) -> None:
        facts = call.facts
        number, member_id = response.generation_id, response.member_id
        if facts.unchanged:
            same = response.error_code == _OK and number == facts.generation
            self.must(same, "G17", f"{request.member_id}, unchanged, was not told its generation once more")
        if response.error_code:
            return
        if request.group_instance_id is not None and not request.member_id:
            self.memory.instances.setdefault(member_id, request.group_instance_id)
            old_id = self.memory.replaces.get(member_id)
            if old_id is not None:
                self.memory.fenced.add(old_id)
        if not request.member_id:
            offer = {one.name: one.metadata for one in reversed(request.protocols)}
            self.offers.setdefault(self.memory.person(member_id), []).append(offer)
        life = self.memory.life(request.group_id)
        if facts.quiet_restart and life.disturbed == facts.disturbed:
            self.must(number == facts.generation, "G19", f"the restart of {member_id} caused a rebalance")
        self._check_leader(life, request, response)

    def _check_leader(self, life: Life, request: JoinGroupRequest, response: Any) -> None:
        number, member_id, leader = response.generation_id, response.member_id, response.leader
        generation = life.generations.get(number)
        if generation is None:
            generation = life.generations[number] = Generation({leader})
        if self.memory.person(leader) in map(self.memory.person, generation.leaders):
            generation.leaders.add(leader)  # the same static member under another id
        self.must(leader in generation.leaders, "G1", f"two leaders in generation {number}")
        is_leader = member_id == leader
        self.must(bool(response.members) == is_leader, "G1", f"list and leadership of {member_id} differ")
        generation.answered.add(self.memory.person(member_id))
        if is_leader:
            self._listed(generation, number, response)
        if generation.listed is not None:
            strangers = generation.answered - set(generation.listed)
            self.must(not strangers, "G3", f"answered, but not in the leader's list: {strangers}")

    def _listed(self, generation: Generation, number: int, response: Any) -> None:
        listed = {one.member_id: one.metadata for one in response.members}
        self.must(response.member_id in listed, "G3", "the leader's list lacks the leader")
        for one in response.members:
            if one.group_instance_id is not None:
                self.memory.instances.setdefault(one.member_id, one.group_instance_id)
        people = {self.memory.person(one): metadata for one, metadata in listed.items()}
        known = generation.listed
        same = known is None or set(known) == set(people)
        self.must(same, "G2", f"generation {number} has two member sets")
        if known is None:
            generation.listed = people
        for member_id, metadata in listed.items():
            self._check_bytes(member_id, response.protocol_name, metadata)

    def _check_bytes(self, member_id: str, protocol: str, metadata: bytes) -> None:
        # A record may still hold what a static member offered before its restart.
        offers = self.offers.get(self.memory.person(member_id))
        if offers is not None:  # else no answer has named this member yet
            known = any(offer.get(protocol) == metadata for offer in offers)
            self.must(known, "G6", f"metadata of {member_id} is not what it sent")

    # ---- SyncGroup ----

    def _sync_answered(self, request: SyncGroupRequest, response: Any) -> None:
        member_id, number = request.member_id, request.generation_id
        life = self.memory.life(request.group_id)
        generation = life.generations.get(number)
        self.must(generation, "G5", f"an assignment of generation {number}, which nobody was told about")
        assert generation is not None
        person, given = self.memory.person(member_id), response.assignment
        sent = life.submissions.get(number, [])
        fitting = [one for one in sent if one.get(person, b"") == given]
        self.must(fitting, "G5", f"{member_id} got {given!r}, the leader sent something else")
        life.submissions[number] = fitting
        if not any(map(_overlaps, sent)):
            self._check_owners(generation, person, given)

    def _check_owners(self, generation: Generation, person: str, given: bytes) -> None:
        for part in _partitions(given):
            owner = generation.owners.setdefault(part, person)
            self.must(owner == person, "G7", f"{part} was given to {owner} and to {person}")

    # ---- LeaveGroup ----

    def _leave_answered(self, call: Call, response: Any) -> None:
        """The member that left last stays away over a restart."""
        request: LeaveGroupRequest = call.request
        if not call.facts.emptied or response.error_code:
            return
        removed = {one.member_id for one in response.members if not one.error_code}
        value = self.memory.world.store.durable.get(records.group_key(request.group_id))
        stored = {one.member_id for one in records.decode_group_value(value).members} if value else set()
        named = (removed if response.members else {request.member_id}) & stored
        self.must(not named, "O2", f"{named} left {request.group_id}, the last to go, and is in its record")

    # ---- the journal, and descriptions ----

    def journal(self, entry: JournalEntry) -> None:
        """One row for each generation; the phases sum to the duration."""
        now = entry.generation
        life = self.memory.life(entry.group_id)
        found: Life | None = life
        while found is not None:  # the oldest incarnation of the group that owes this row
            life = found if now in found.begun - found.rows else life
            found = found.previous
        last = life.last_row
        life.rows.add(now)
        if last is not None:
            self.must(now > last, "J1", f"the row for generation {now} comes after that for {last}")
            missing = life.begun.intersection(range(last + 1, now))
            self.must(not missing, "J1", f"no row for generations {missing}")
            self.must(now == last + 1, "G2", f"generations between {last} and {now} were skipped")
        life.last_row = now
        phases = entry.join_ms + entry.leader_ms + entry.sync_ms
        self.must(phases == entry.duration_ms, "J1", "phases do not sum to the duration")
        self.must(min(entry.join_ms, entry.leader_ms, entry.sync_ms) >= 0, "J1", "a negative phase")

    def _described(self, response: Any) -> None:
        """The group that an operator sees is the one that members sent."""
        if response.group_state != GroupState.STABLE.value:
            return
        for one in response.members:
            self._check_bytes(one.member_id, response.protocol_data, one.member_metadata)


def _codes(request: Any, response: Any) -> list[int]:
    """All error codes of an answer."""
    if isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
        return [one.error_code for topic in response.topics for one in topic.partitions]
    if isinstance(request, LeaveGroupRequest) and response.members and not response.error_code:
        return [one.error_code for one in response.members]
    return [response.error_code]


def _partitions(content: bytes) -> list[tuple[str, int]]:
    try:
        given = Assignment.decode(content).partitions
    except MalformedError:
        return []
    return [(topic, partition) for topic, numbers in given.items() for partition in numbers]


def _overlaps(assignments: dict[str, bytes]) -> bool:
    """Whether the leader itself gave a partition to two members."""
    parts = [part for content in assignments.values() for part in _partitions(content)]
    return len(parts) != len(set(parts))
