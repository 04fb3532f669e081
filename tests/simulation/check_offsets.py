"""The rules for committed offsets: G8, O1, O2, O5 to O9.

Every committed offset is used once. For each place there is a history of what was asked for, in the order of
arrival: commits, and None for deletions. The entry at any time is the last acknowledged one or a later one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.machine import Records
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, TxnOffsetCommitRequest
from tests.simulation.facts import Memory, Place
from tests.simulation.requests import TOPICS, Delete, Fetch

if TYPE_CHECKING:
    from tests.simulation.partition import Partition
    from tests.simulation.world import Call

_TOO_LARGE = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
_UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
_REFUSED = -999
"""In a history: what was asked for here was refused for certain."""
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
        self._topics: dict[str, dict[Place, int]] = {}  # topics that go -> where that stands in the histories
        self._pending: set[tuple[int, Place]] = set()  # durable offsets of open transactions
        self._pending_landed: set[int] = set()  # offsets that have been durable in a transaction
        self._emptied: dict[tuple[str, bytes], int] = {}  # group, a record without members -> Unix time

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
        elif isinstance(request, Fetch):
            facts.open = self._open_places()

    def _open_places(self) -> set[Place]:
        """The places of offsets in open transactions, those included that are on their way."""
        found = set()
        for key, value in self.memory.world.store.promised.items():
            named = records.decode_key(key) if value is not None else None
            if named is not None and named[0] == records.UNCOMMITTED_OFFSET:
                found.add((named[1], named[2], named[3]))
        return found

    def _before_commit(self, call: Call, request: Any) -> None:
        world = self.memory.world
        transactional = isinstance(request, TxnOffsetCommitRequest)
        if transactional:
            self.transactions.setdefault(request.producer_id, []).append(call)
        retention_ms = -1 if transactional else request.retention_time_ms
        expires_ms = self._now(request.group_id) + retention_ms if retention_ms >= 0 else -1
        for topic in request.topics:
            for one in topic.partitions:
                if len(one.committed_metadata or "") > world.settings.offset_metadata_max_bytes:
                    continue  # O6: must not be found anywhere
                place = (request.group_id, topic.name, one.partition_index)
                call.facts.places[place] = self._note(place, one.committed_offset)
                stamp = (self._now(request.group_id), expires_ms)
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

    def _now(self, group_id: str) -> int:
        """Unix time, as far as the shard can know it: it may not have been informed yet of a change, or only
        have what a clock shows that has jumped."""
        world = self.memory.world
        return min(world.true_ms(), world.now_ms + max(world.partition(group_id).wall_ahead_ms))

    def topic_goes(self, topic: str) -> None:
        """O9: its offsets go."""
        places = [place for place in self.history if place[1] == topic]
        self._topics[topic] = {place: self._note(place, None) for place in places}

    def topic_deleted(self, topic: str) -> None:
        """O9: all machines say so, and nobody may have committed meanwhile."""
        for place, position in self._topics.pop(topic).items():
            self._acknowledge(place, position)
            self._check(place, self._durable(place), "O9")
        left = [one for one in self._pending if one[1][1] == topic]
        left_plain = [
            place for place in self.history if place[1] == topic and self._durable(place) is not None
        ]
        self.must(
            not left and not left_plain, "O9", f"of {topic} are left {left_plain}, in transactions {left}"
        )

    def transaction_ends(self, producer_id: int, committed: bool) -> None:
        """O7: from now on its offsets may be seen, or never."""
        self.ending[producer_id] = committed
        for call in self.transactions.get(producer_id, ()):
            if committed:
                for place, position in call.facts.places.items():
                    offset = self.history[place][position]
                    self.hidden.discard(-1 if offset is None else offset)

    def transaction_ended(self, producer_id: int) -> None:
        """The machines say so."""
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
            self._fetch_answered(call, request, response)
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
                    durable = self.history[place][position] in self._pending_landed
                    self.must(durable, "O2", f"{place} of a transaction is not durable")

    def _durable(self, place: Place) -> int | None:
        return _offset(self.memory.world.store.durable, place)

    def _check(self, place: Place, offset: int | None, name: str) -> None:
        first = self.acknowledged.get(place, 0)
        allowed = self.history.get(place, [None])[first:]
        self.must(offset not in self.hidden, "O7", f"{place} is {offset}, of a transaction without commit")
        self.must(offset in allowed, name, f"{place} is {offset}, acknowledged or later are {allowed}")

    def _fetch_answered(self, call: Call, request: Fetch, response: Any) -> None:
        if response.error_code:
            return
        for topic in response.topics:
            for one in topic.partitions:
                place = (request.group_id, topic.name, one.partition_index)
                if request.stable:
                    unstable = one.error_code == _UNSTABLE
                    right = unstable == (place in call.facts.open)
                    self.must(right, "O7", f"{place} was called unstable: {unstable}")
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

    # ---- records ----

    def emitted(self, content: Records) -> None:
        """Every record that goes to the log was asked for."""
        for key, value in content:
            named = records.decode_key(key)
            if named is None:
                continue
            kind, group_id, topic, partition, producer_id = named
            place = (group_id, topic, partition)
            if kind == records.GROUP:
                self._group_written(group_id, value)
            if kind == records.GROUP and value is None:
                group = self.memory.group(group_id)
                empty = group is None or not group.members
                self.must(empty, "O8", f"{group_id} is deleted with members in it")
            elif kind == records.OFFSET and value is not None:
                offset = records.decode_offset_value(value).offset
                self.must(offset in self.history.get(place, ()), "O6", f"{place}: nobody may commit {offset}")
                self.must(offset not in self.hidden, "O7", f"{place}: {offset} before its commit")
            elif kind == records.UNCOMMITTED_OFFSET and value is not None:
                offset = records.decode_offset_value(value).offset
                self.must(offset in self.history.get(place, ()), "O6", f"{place}: nobody may commit {offset}")
            elif kind == records.OFFSET:
                if not self._is_being_deleted(place):
                    self._check_expiry(place)
                if not self._is_deleted_now(place):
                    self._note(place, None)
            elif kind == records.UNCOMMITTED_OFFSET:
                right = producer_id in self.ending or self._is_being_deleted(place)
                self.must(right, "O7", f"{place}: the offset of an open transaction is dropped")

    def _is_deleted_now(self, place: Place) -> bool:
        return any(place in call.facts.places for call in self._deleting)

    def _is_being_deleted(self, place: Place) -> bool:
        """Whether somebody deletes this, or its topic."""
        return self._is_deleted_now(place) or place[1] in self._topics

    def _group_written(self, group_id: str, value: bytes | None) -> None:
        """Since when the group is empty, if this record lands."""
        if value is not None and not records.decode_group_value(value).members:
            self._emptied.setdefault((group_id, value), self._now(group_id))

    def _check_expiry(self, place: Place) -> None:
        """O5, in true time."""
        world = self.memory.world
        group = self.memory.group(place[0])
        offset = _offset(world.store.promised, place)
        if group is None or offset is None:
            return
        committed_ms, expires_ms = self.stamps[offset]
        starts_ms = committed_ms
        if group.state is GroupState.EMPTY:
            if group.protocol_type:
                value = world.store.promised.get(records.group_key(place[0])) or b""
                starts_ms = self._emptied.get((place[0], value), committed_ms)
        else:
            unread = _is_unread(group, place[1])
            self.must(unread, "O5", f"{place} expires while {group.state} and subscribed")
        in_use = place in self._open_places()
        self.must(not in_use, "O5", f"{place} expires in an open transaction")
        # A clock that was set back for good counts when the shard has been informed since of all that it
        # still counts.
        true_ms = max(world.true_ms(), world.now_ms + min(world.partition(place[0]).wall_ahead_ms))
        age_ms = true_ms - starts_ms
        whole_ms = world.settings.offsets_retention_minutes * _MS_PER_MINUTE
        over = true_ms >= expires_ms if expires_ms >= 0 else age_ms >= whole_ms
        self.must(over, "O5", f"{place} expires after {age_ms} ms")

    def landed(self, content: Records) -> None:
        """Keep the list of open transactions' offsets."""
        for key, value in content:
            named = records.decode_key(key)
            if named is not None and named[0] == records.UNCOMMITTED_OFFSET:
                one = (named[4], (named[1], named[2], named[3]))
                if value is None:
                    self._pending.discard(one)
                else:
                    self._pending.add(one)
                    self._pending_landed.add(records.decode_offset_value(value).offset)

    # ---- time ----

    def after_step(self) -> None:
        """A deletion takes effect when it comes, or never."""
        self._deleting.clear()

    def loaded(self, partition: Partition) -> None:
        """O5: a restart changes no clock: groups are empty since when they became so."""
        for group in partition.shard._groups.values():
            value = group.synced
            if group.state is GroupState.EMPTY and value is not None:
                same = group.state_since_ms == value.current_state_timestamp
                self.must(same, "O5", f"{group.group_id}: another clock")
        for place in self.history:
            self._check(place, self._durable(place), "O2")


def _offset(content: Mapping[bytes, bytes | None], place: Place) -> int | None:
    value = content.get(records.offset_key(*place))
    return None if value is None else records.decode_offset_value(value).offset


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
