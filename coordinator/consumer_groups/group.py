"""A group of the consumer protocol: its epochs, its members, and which member holds which partition.

All of it is durable: it is what the group's records say (see `records`), live and after a load alike. The
safety of the protocol rests on one index, partition -> holder, which is derived from the records alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from ringleader.coordinator.consumer_groups import memory
from ringleader.coordinator.consumer_groups.member import (
    ConsumerMember,
    Current,
    Subscription,
    Target,
)
from ringleader.coordinator.consumer_groups.names import is_delegated
from ringleader.coordinator.consumer_groups.topics import Topics

T = TypeVar("T")


class ConsumerGroupState(StrEnum):
    """A group's state, as ConsumerGroupDescribe and ListGroups name it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target is older than what it has to answer to."""
    RECONCILING = "Reconciling"
    """Members are on their way to the target."""
    STABLE = "Stable"


FIRST_EPOCH = 1
"""Of a group without a record of its epoch, as in Kafka from 4.2 on: the first subscription makes it 2."""


class TwoHoldersError(AssertionError):
    """Two members have one partition: the records contradict the protocol."""


class Reader(NamedTuple):
    """A regular expression, and the principal of a member that subscribes by it."""

    pattern: str
    principal: str


@dataclass(slots=True, eq=False)
class Regex:
    """The topics that a regular expression matched (record 16)."""

    topics: frozenset[str]
    version: int
    """Of the topics; see `Topics.names_version`. It counts in one process only."""
    resolved_ms: int
    """Unix time."""
    views: dict[str, frozenset[str]] | None = None
    """By principal, those of the topics that it may see; None: everybody sees all."""

    def seen_by(self, principal: str) -> frozenset[str]:
        """The topics for a member; none for a principal that came later."""
        return self.topics if self.views is None else self.views.get(principal, frozenset())

    def knows(self, principal: str) -> bool:
        """Whether the principal was there when the expression was resolved."""
        return self.views is None or principal in self.views


@dataclass(slots=True, eq=False)
class Dealt:
    """A target that `uniform` dealt out to members that subscribe alike: the next one can go on from it."""

    counts: dict[bytes, int]
    """The partitions of each topic then."""
    left: dict[bytes, set[int]] = field(default_factory=dict)
    """Those of them that no member is to have any more."""

    def aim(self, before: Target, after: Target) -> bool:
        """A member's target is another one; whether the targets are still what this says."""
        for topic_id, some in before.items():
            self.left.setdefault(topic_id, set()).update(some)
        for topic_id, some in after.items():
            left = self.left.get(topic_id, set())
            if not some <= left:
                return False
            left -= some
        return True


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """See the module. Fields are read by all; they are changed by the methods only."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assigned_ms: int = 0
    """Unix time of the last computation of the target; 0: unknown."""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Group instance id -> member id."""
    regexes: dict[str, Regex] = field(default_factory=dict)
    subscribers: Counter[str] = field(default_factory=Counter)
    """Topic name -> number of different sets of names with it that members subscribe to."""
    regex_subscribers: Counter[str] = field(default_factory=Counter)
    readers: Counter[Reader] = field(default_factory=Counter)
    """Number of members with a regular expression, by that and their principal."""
    unresolved: bool = False
    """Whether a reader came for which nothing was resolved since it was asked for last."""
    assignors: Counter[str] = field(default_factory=Counter)
    """Server assignor -> number of members that ask for it."""
    classic_members: int = 0
    classic_protocols: Counter[str] = field(default_factory=Counter)
    """Protocol name -> number of classic members that offer it."""
    checked_version: int = -1
    """The version of the topics that `metadata_hash` was last compared with; -1: not since the load."""
    dealt: Dealt | None = None
    """None: the target did not come about so, or nothing is known of that, as after a load."""
    held_bytes: int = 0
    """Memory that its members hold; see `memory`."""
    _holders: dict[bytes, dict[int, str]] = field(default_factory=dict)
    _names: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    """The members' topic names: members that subscribe alike share one set, which is quick to compare."""
    _alike: Counter[frozenset[str]] = field(default_factory=Counter)
    """The number of members that share it."""

    # ---- what the records change ----

    def member(self, member_id: str) -> ConsumerMember:
        """The member, made if it is missing: records of one member may come in any order in a compacted
        log."""
        found = self.members.get(member_id)
        if found is None:
            found = self.members[member_id] = ConsumerMember(member_id)
            self._count(found, 1)
            self.held_bytes += memory.MEMBER_BYTES + memory.text_bytes(member_id)
        return found

    def subscribe(self, member_id: str, subscription: Subscription) -> None:
        """Record 5: a member describes itself."""
        member = self.member(member_id)
        self._count(member, -1)
        names = self._names.get(subscription.topic_names)
        member.subscription = subscription if names is None else replace(subscription, topic_names=names)
        self._count(member, 1)

    def unsubscribe(self, member_id: str) -> None:
        """The tombstone of record 5: the member is gone, whatever else was known of it."""
        member = self.members.get(member_id)
        if member is None:
            return
        self._count(member, -1)
        self.move(member_id, None)
        self.aim(member_id, None)
        del self.members[member_id]
        self.held_bytes -= memory.MEMBER_BYTES + memory.text_bytes(member_id)

    def aim(self, member_id: str, target: Target | None) -> None:
        """Record 7: the target of a member; None: its tombstone."""
        if target is not None or member_id in self.members:
            member, fresh = self.member(member_id), target or {}
            if self.dealt is not None and not self.dealt.aim(member.target, fresh):
                self.dealt = None
            self.held_bytes -= memory.target_bytes(member.target, member.load)
            member.target, member.load = fresh, sum(map(len, fresh.values()))
            self.held_bytes += memory.target_bytes(fresh, member.load)

    def move(self, member_id: str, current: Current | None, written: bytes = b"") -> None:
        """Record 8: the partitions that a member has; None: its tombstone. `written`: see
        `ConsumerMember`."""
        if current is None and member_id not in self.members:
            return
        member = self.member(member_id)
        member.written = written
        if current is not None and current.holds_as(member.current):  # most members, in most rebalances
            member.current = current
            return
        for topic_id, partitions in member.current.held():
            self._release(topic_id, partitions, member_id)
        self.held_bytes -= memory.current_bytes(member.current)
        member.current = current or Current()
        self.held_bytes += memory.current_bytes(member.current)
        for topic_id, partitions in member.current.held():
            self._holders.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def resolve(self, pattern: str, found: Regex | None) -> None:
        """Record 16: the topics that a regular expression matches; None: its tombstone."""
        former = self.regexes.pop(pattern, None)
        if former is not None:
            self.held_bytes -= memory.regex_bytes(pattern, former.topics, former.views)
        if found is not None:
            self.regexes[pattern] = found
            self.held_bytes += memory.regex_bytes(pattern, found.topics, found.views)

    def _release(self, topic_id: bytes, partitions: Iterable[int], member_id: str) -> None:
        held = self._holders.get(topic_id)
        if held is None:
            return
        for one in partitions:
            if held.get(one) == member_id:
                del held[one]
        if not held:
            del self._holders[topic_id]

    def _count(self, member: ConsumerMember, by: int) -> None:
        described = member.subscription
        self.held_bytes += by * memory.subscription_bytes(described)
        names, alike = described.topic_names, self._alike
        before = names in alike
        _add(alike, names, by)
        if before is not (names in alike):  # else it is one of those that subscribe so
            if by > 0:
                self._names[names] = names
            else:
                del self._names[names]
            for name in names:
                _add(self.subscribers, name, by)
        if described.topic_regex:
            _add(self.regex_subscribers, described.topic_regex, by)
            reader = Reader(described.topic_regex, described.principal)
            if by > 0 and not self.readers[reader]:
                found = self.regexes.get(reader.pattern)
                self.unresolved |= found is None or not found.knows(reader.principal)
            _add(self.readers, reader, by)
        if described.server_assignor is not None:
            _add(self.assignors, described.server_assignor, by)
        if described.classic is not None:
            self.classic_members += by
            for name, _ in described.classic.protocols:
                _add(self.classic_protocols, name, by)
        if described.instance_id is not None:
            if by > 0:
                self.static_members[described.instance_id] = member.member_id
            elif self.static_members.get(described.instance_id) == member.member_id:
                del self.static_members[described.instance_id]

    # ---- what is asked of it ----

    @property
    def exists(self) -> bool:
        """Whether the log has anything of it."""
        return bool(self.epoch > FIRST_EPOCH or self.assignment_epoch or self.members or self.regexes)

    def holder(self, topic_id: bytes, partition: int) -> str | None:
        """The member that has a partition, or has not given it up yet."""
        return self._holders.get(topic_id, {}).get(partition)

    def keeps(self, member: ConsumerMember) -> bool:
        """Whether the member's next step moves no partition: it has none to give up, and others have those
        that it is to get."""
        if member.has_target:
            return True
        current, target = member.current, member.target
        if current.pending_revocation or not current.assigned.keys() <= target.keys():
            return False
        for topic_id, wanted in target.items():
            had, held = current.assigned.get(topic_id, {}), self._holders.get(topic_id, {})
            if not had.keys() <= wanted or not wanted <= held.keys():
                return False
        return True

    def index(self) -> None:
        """Derive the holders from the members again: at the end of a load, when records that were compacted
        away no longer stand between two holders. Raises `TwoHoldersError`."""
        self._holders = {}
        for member in self.members.values():
            for topic_id, partitions in member.current.held():
                held = self._holders.setdefault(topic_id, {})
                for one in partitions:
                    other = held.setdefault(one, member.member_id)
                    if other != member.member_id:
                        raise TwoHoldersError(
                            f"{self.group_id}: partition {one} of topic {topic_id.hex()} has two holders, "
                            f"{other} and {member.member_id}"
                        )

    def topic_names(self, member: ConsumerMember) -> frozenset[str]:
        """The topics to which a member subscribes, by name or by a regular expression that was resolved."""
        described = member.subscription
        regex = self.regexes.get(described.topic_regex) if described.topic_regex else None
        if regex is None:
            return described.topic_names
        seen = regex.seen_by(described.principal)
        return described.topic_names | seen if described.topic_names else seen

    def all_topics(self) -> frozenset[str]:
        """The topics to which any member subscribes. The same object each time where all subscribe alike."""
        return self.names_of_all or frozenset(self.subscribed_topics())

    def subscribed_topics(self) -> Iterator[str]:
        """The topics to which any member subscribes, each once."""
        yield from self.subscribers
        seen = set(self.subscribers)
        for name in self.regex_subscribers:
            regex = self.regexes.get(name)
            for topic in regex.topics if regex is not None else ():
                if topic not in seen:
                    seen.add(topic)
                    yield topic

    @property
    def names_of_all(self) -> frozenset[str] | None:
        """The topics to which every member subscribes, by name; None: they subscribe to different ones."""
        return next(iter(self._alike)) if len(self._alike) == 1 and not self.readers else None

    @property
    def resolved_ms(self) -> int | None:
        """When its regular expressions were resolved last, all of them together; None: none is."""
        return max(one.resolved_ms for one in self.regexes.values()) if self.regexes else None

    def subscribes(self, topic: str) -> bool:
        """Whether any member subscribes to a topic."""
        return topic in self.subscribers or any(
            topic in regex.topics for name, regex in self.regexes.items() if name in self.regex_subscribers
        )

    def growth(
        self, known: ConsumerMember | None, member_id: str, fresh: Subscription, topics: Topics
    ) -> int:
        """How much more memory it holds with a member that subscribes so, in another's place or none. Its
        partitions count, which are the coordinator's choice, as far as the group has not had their topics."""
        if known is not None and fresh == known.subscription:
            return 0
        more = memory.subscription_bytes(fresh)
        if known is None:
            more += memory.MEMBER_BYTES + memory.text_bytes(member_id)
        else:
            more -= memory.subscription_bytes(known.subscription)
        if fresh.topic_names not in self._alike:
            unknown = (name for name in fresh.topic_names if not self.subscribes(name))
            more += memory.assignment_bytes(topics, unknown)
        return more

    def server_assignor(self) -> str | None:
        """As `preferred_assignor`, of those that the coordinator has itself."""
        if not self.assignors:
            return None
        own = {name: votes for name, votes in self.assignors.items() if not is_delegated(name)}
        return _most_wanted(own)

    def preferred_assignor(self) -> str | None:
        """The one that most members ask for, the first by name of several; None: no member asks for any."""
        return _most_wanted(self.assignors)

    @property
    def state(self) -> ConsumerGroupState:
        """Derived from the epochs, as Kafka's."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        for member in self.members.values():
            if not member.current.is_stable_at(self.assignment_epoch):
                return ConsumerGroupState.RECONCILING
        return ConsumerGroupState.STABLE


def _most_wanted(votes: Mapping[str, int]) -> str | None:
    if len(votes) < 2:
        return next(iter(votes), None)
    return min(votes, key=lambda name: (-votes[name], name))


def _add(counter: Counter[T], name: T, by: int) -> None:
    counter[name] += by
    if counter[name] <= 0:
        del counter[name]
