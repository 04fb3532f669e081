"""What becomes of committed offsets: G8, O1, O2, O5 to O9.

Every committed offset is used once. For each place there is a history of what was asked for, in the order of
arrival: commits, and None for deletions. What may be there at some time is the last acknowledged entry or a
later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.outbox import Records
from ringleader.coordinator.groups.states import GroupState
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, TxnOffsetCommitRequest
from tests.simulation.facts import Memory, Place
from tests.simulation.requests import TOPICS, Delete, Fetch

if TYPE_CHECKING:
    from tests.simulation.world import Call

_TOO_LARGE = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
_UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
_REFUSED = -999
"""In a history: what was asked for here was refused for certain."""
_TOPIC_GONE_MS = 12_000
"""Within this time the offsets of a deleted topic are gone: the longest that the store takes, twice."""
_MS_PER_MINUTE = 60_000


class Offsets:
    """Remembers what was committed and deleted where."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.must = memory.must
        self.history: dict[Place, list[int | None]] = {}
        self.acknowledged: dict[Place, int] = {}
        self.stamps: dict[int, tuple[int, int]] = {}  # offset -> Unix time of the commit, own expiry or -1
        self.hidden: set[int] = set()  # offsets of transactions that have not been committed
        self.transactions: dict[int, list[Call]] = {}  # producer -> its commits in the open transaction
        self.ending: dict[int, bool] = {}  # producer -> committed, while its transaction ends
        self._deleting: list[Call] = []
        self._topics_gone: list[tuple[int, dict[Place, int]]] = []
        self._pending: set[tuple[int, Place]] = set()  # durable offsets of open transactions
        self._pending_before: set[Place] = set()

    # ---- requests arrive ----

    def before(self, call: Call) -> None:
        """Note what is asked for."""
        request, facts = call.request, call.facts
        if isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
            self._before_commit(call, request)
        elif isinstance(request, OffsetDeleteRequest):
            for topic in request.topics:
                numbers = [one.partition_index for one in topic.partitions]
                facts.places |= self._deleted(request.group_id, topic.name, numbers)
            self._deleting.append(call)
        elif isinstance(request, Delete):
            for name, count in TOPICS.items():
                facts.places |= self._deleted(request.group_id, name, range(count))
            self._deleting.append(call)

    def _before_commit(self, call: Call, request: Any) -> None:
        world = self.memory.world
        transactional = isinstance(request, TxnOffsetCommitRequest)
        if transactional:
            self.transactions.setdefault(request.producer_id, []).append(call)
        retention_ms = -1 if transactional else request.retention_time_ms
        expires_ms = world.wall_ms() + retention_ms if retention_ms >= 0 else -1
        for topic in request.topics:
            for one in topic.partitions:
                if len(one.committed_metadata or "") > world.settings.offset_metadata_max_bytes:
                    continue  # O6: must not be found anywhere
                place = (request.group_id, topic.name, one.partition_index)
                call.facts.places[place] = self._note(place, one.committed_offset)
                stamp = (world.wall_ms(), expires_ms)
                first = self.stamps.setdefault(one.committed_offset, stamp)
                self.stamps[one.committed_offset] = min(first, stamp)  # it may arrive twice
                if transactional:
                    self.hidden.add(one.committed_offset)

    def _note(self, place: Place, offset: int | None) -> int:
        history = self.history.setdefault(place, [None])
        history.append(offset)
        return len(history) - 1

    def _deleted(self, group_id: str, topic: str, partitions: Sequence[int]) -> dict[Place, int]:
        """Note deletions that may happen; their places in the histories."""
        places = [(group_id, topic, partition) for partition in partitions]
        return {place: self._note(place, None) for place in places}

    def topic_deleted(self, topic: str) -> None:
        """O9: its offsets go, soon."""
        gone = {place: self._note(place, None) for place in list(self.history) if place[1] == topic}
        self._topics_gone.append((self.memory.world.now_ms, gone))

    def transaction_ends(self, producer_id: int, committed: bool) -> None:
        """O7: from now on its offsets may be seen, or never."""
        self.ending[producer_id] = committed
        for call in self.transactions.get(producer_id, ()):
            if committed:
                for place, position in call.facts.places.items():
                    offset = self.history[place][position]
                    self.hidden.discard(-1 if offset is None else offset)

    def transaction_ended(self, producer_id: int, error: int) -> None:
        """The machine says so."""
        if error:
            return
        committed = self.ending.pop(producer_id)
        left = [place for producer, place in self._pending if producer == producer_id]
        self.must(not left, "O7", f"the transaction of {producer_id} ended, but it has offsets in {left}")
        for call in self.transactions.pop(producer_id, ()):
            for place, position in call.facts.places.items():
                if committed and place in call.facts.taken:
                    self._acknowledge(place, position)
        for place in self.history:
            self._check(place, self._durable(place), "O7")

    # ---- answers leave ----

    def answered(self, call: Call, response: Any) -> None:
        """Hold an answer against the histories."""
        request = call.request
        if isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
            self._commit_answered(call, request, response)
        elif isinstance(request, Fetch):
            self._fetch_answered(request, response)
        elif isinstance(request, Delete | OffsetDeleteRequest):
            self._delete_answered(call, response)

    def _acknowledge(self, place: Place, position: int) -> None:
        self.acknowledged[place] = max(self.acknowledged.get(place, 0), position)

    def _refuse(self, place: Place, position: int) -> None:
        self.history[place][position] = _REFUSED

    def _commit_answered(self, call: Call, request: Any, response: Any) -> None:
        plain = isinstance(request, OffsetCommitRequest)
        for topic in response.topics:
            for one in topic.partitions:
                place = (request.group_id, topic.name, one.partition_index)
                position = call.facts.places.get(place)
                if position is None:
                    self.must(one.error_code, "O6", f"{place} was accepted with too much metadata")
                    continue
                if one.error_code:
                    self.must(one.error_code != _TOO_LARGE, "O6", f"{place} was refused without need")
                    self._refuse(place, position)
                    continue
                call.facts.taken.add(place)
                if plain:
                    self._acknowledge(place, position)
                    self._check(place, self._durable(place), "O2")
                else:
                    durable = (request.producer_id, place) in self._pending
                    superseded = self.acknowledged.get(place, 0) > position
                    ended = request.producer_id in self.ending
                    fine = durable or superseded or ended
                    self.must(fine, "O2", f"{place} of a transaction is not durable")

    def _durable(self, place: Place) -> int | None:
        value = self.memory.world.store.durable.get(records.offset_key(*place))
        return None if value is None else records.decode_offset_value(value).offset

    def _check(self, place: Place, offset: int | None, name: str) -> None:
        first = self.acknowledged.get(place, 0)
        allowed = self.history.get(place, [None])[first:]
        self.must(offset not in self.hidden, "O7", f"{place} is {offset}, of a transaction without commit")
        self.must(offset in allowed, name, f"{place} is {offset}, acknowledged or later are {allowed}")

    def _fetch_answered(self, request: Fetch, response: Any) -> None:
        if response.error_code:
            return
        # What one transaction of the store wrote takes effect one by one; an answer may be in between.
        open_places = {place for _, place in self._pending}
        storing = self.memory.world.store.stored_step == self.memory.world.steps
        open_before = self._pending_before if storing else open_places
        for topic in response.topics:
            for one in topic.partitions:
                place = (request.group_id, topic.name, one.partition_index)
                if request.stable:
                    told = one.error_code == _UNSTABLE
                    right = told in (place in open_places, place in open_before)
                    self.must(right, "O7", f"{place} was called unstable: {told}")
                if not one.error_code:
                    found = None if one.committed_offset == -1 else one.committed_offset
                    self._check(place, found, "O1")

    def _delete_answered(self, call: Call, response: Any) -> None:
        """O8: what was deleted stays deleted, but for commits that came later."""
        refused = set()
        if isinstance(call.request, OffsetDeleteRequest):
            refused = {
                (topic.name, one.partition_index)
                for topic in response.topics
                for one in topic.partitions
                if one.error_code
            }
        for place, position in call.facts.places.items():
            if response.error_code or place[1:] in refused:
                self._refuse(place, position)
                continue
            self._acknowledge(place, position)
            self._check(place, self._durable(place), "O8")
        if isinstance(call.request, Delete) and not response.error_code:
            self._check_nothing_left(call.request.group_id)

    def _check_nothing_left(self, group_id: str) -> None:
        for key, value in self.memory.world.store.durable.items():
            named = records.decode_key(key)
            gone = value is None or named is None or named[1] != group_id
            self.must(gone, "O8", f"{group_id} was deleted, its record {named} was not")

    # ---- records ----

    def emitted(self, content: Records) -> None:
        """Whatever goes to the log was asked for."""
        for key, value in content:
            named = records.decode_key(key)
            if named is None:
                continue
            kind, group_id, topic, partition, producer_id = named
            place = (group_id, topic, partition)
            if kind == records.GROUP and value is None:
                group = self.memory.groups().get(group_id)
                empty = group is None or not group.members
                self.must(empty, "O8", f"{group_id} is deleted with members in it")
            elif kind == records.OFFSET and value is not None:
                offset = records.decode_offset_value(value).offset
                self.must(offset in self.history.get(place, ()), "O6", f"{place}: nobody may commit {offset}")
                self.must(offset not in self.hidden, "O7", f"{place}: {offset} before its commit")
            elif kind == records.PENDING_OFFSET and value is not None:
                offset = records.decode_offset_value(value).offset
                self.must(offset in self.history.get(place, ()), "O6", f"{place}: nobody may commit {offset}")
            elif kind == records.OFFSET:
                if not self._is_asked_for(place):
                    self._check_expiry(place)
                if not self._is_deleted_now(place):
                    self._note(place, None)
            elif kind == records.PENDING_OFFSET:
                right = producer_id in self.ending or self._is_asked_for(place)
                self.must(right, "O7", f"{place}: the offset of an open transaction is dropped")

    def _is_deleted_now(self, place: Place) -> bool:
        now = (-1, self.memory.world.steps)
        return any(place in call.facts.places for call in self._deleting if call.answered_step in now)

    def _is_asked_for(self, place: Place) -> bool:
        """Whether somebody deletes this, or its topic."""
        return self._is_deleted_now(place) or any(place in places for _, places in self._topics_gone)

    def _check_expiry(self, place: Place) -> None:
        """O5."""
        world = self.memory.world
        group = self.memory.groups().get(place[0])
        offset = self._durable(place)
        if group is None or offset is None:
            return
        committed_ms, expires_ms = self.stamps[offset]
        starts_ms = committed_ms
        if group.state is GroupState.EMPTY:
            if group.protocol_type and group.state_since_wall_ms >= 0:
                starts_ms = group.state_since_wall_ms
        else:
            unread = _is_unread(group, place[1])
            self.must(unread, "O5", f"{place} expires while {group.state} and subscribed")
        in_use = any(one == place for _, one in self._pending)
        self.must(not in_use, "O5", f"{place} expires in an open transaction")
        age_ms = world.wall_ms() - starts_ms
        whole_ms = world.settings.offsets_retention_minutes * _MS_PER_MINUTE
        over = world.wall_ms() >= expires_ms if expires_ms >= 0 else age_ms >= whole_ms
        self.must(over, "O5", f"{place} expires after {age_ms} ms")

    def storing(self) -> None:
        """The store reports."""
        self._pending_before = {place for _, place in self._pending}

    def landed(self, content: Records) -> None:
        """Keep the list of open transactions' offsets."""
        for key, value in content:
            named = records.decode_key(key)
            if named is not None and named[0] == records.PENDING_OFFSET:
                one = (named[4], (named[1], named[2], named[3]))
                if value is None:
                    self._pending.discard(one)
                else:
                    self._pending.add(one)

    # ---- time ----

    def after_step(self) -> None:
        """O9: what was deleted with its topic is gone by now."""
        world = self.memory.world
        if self._deleting:
            self._deleting = [one for one in self._deleting if one.answered_step in (-1, world.steps)]
        while self._topics_gone and world.now_ms - self._topics_gone[0][0] > _TOPIC_GONE_MS:
            _, places = self._topics_gone.pop(0)
            for place, position in places.items():
                self._acknowledge(place, position)
                self._check(place, self._durable(place), "O9")
                same = [one for one in self._pending if one[1] == place]
                left = [one for one in same if not self._came_after(*one, position)]
                self.must(not left, "O9", f"open transactions still have {left}")

    def _came_after(self, producer_id: int, place: Place, position: int) -> bool:
        calls = self.transactions.get(producer_id, ())
        return any(call.facts.places.get(place, -1) > position for call in calls)

    def crashed(self) -> None:
        """What the process was about to do is forgotten; what it had written may be there."""
        self._deleting.clear()
        self._topics_gone.clear()

    def restarted(self, groups: dict[str, Group]) -> None:
        """O5: a restart changes no clock: groups are empty since when they became so."""
        for group in groups.values():
            if group.state is GroupState.EMPTY and group.record is not None:
                since_ms = records.decode_group_value(group.record).current_state_timestamp
                self.must(group.state_since_wall_ms == since_ms, "O5", f"{group.group_id}: another clock")
        for place in self.history:
            self._check(place, self._durable(place), "O2")


def _is_unread(group: Group, topic: str) -> bool:
    """Whether this is a consumer group at work whose members do not read the topic."""
    if group.state is not GroupState.STABLE or group.protocol_type != "consumer":
        return False
    for member in group.members.values():
        try:
            subscription = Subscription.decode(dict(member.protocols).get(group.protocol or "", b""))
        except MalformedError:
            return False
        if topic in subscription.topics:
            return False
    return True
