"""Regular expressions of groups of the consumer protocol (KIP-848): when they are resolved, and what comes
of it. As in Kafka (GroupMetadataManager.maybeUpdateRegularExpressions, 4.3), all expressions of a group are
resolved together, at a heartbeat, so that one change of topics is one rebalance.

The names are matched outside of the machine: it hands out a question, and is called with the answer. Other
than in Kafka, where the member whose heartbeat it was decides for all, each principal has the topics that it
may see itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ringleader.coordinator.consumer_groups import memory, patterns, records
from ringleader.coordinator.consumer_groups.automaton import PatternError
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, Reader, Regex
from ringleader.coordinator.consumer_groups.member import Subscription
from ringleader.coordinator.groups.changes import Changes
from ringleader.coordinator.groups.core import Part
from ringleader.coordinator.groups.group import Group
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened

LEAST_MS = 10_000
"""Between two times that the expressions of a group are resolved: Kafka's own, no setting."""
REFRESH_MS = 600_000
"""They are resolved again after this time: Kafka's `group.consumer.regex.refresh.interval.ms`."""
TOPICS_MAX = 10_000
"""Topics that the expressions of a group match, one by one: writing an answer is one event."""
NAMED_MAX = 10
"""Topics that a line of the log names."""


class PatternsAsked(NamedTuple):
    """Which topics do these expressions match? The answer: `Shard.resolved`."""

    group_id: str
    number: int
    readers: dict[Reader, frozenset[str]]
    """With the hosts of their members, in Java's form."""


@dataclass(slots=True)
class Resolution:
    """The last question of a group."""

    number: int = 0
    waits: bool = False
    asked_ms: int = 0
    version: int = -1
    """`Topics.names_version` that the last answer is of; -1: there was none since the load."""
    failed_ms: int | None = None
    """When the last one was that was of no use, if none of use came since."""


class Patterns(Part):
    """The regular expressions of the groups of one shard."""

    def check(self, consumer: ConsumerGroup, pattern: str) -> None:
        """Raises `KafkaError` for one that cannot be taken; one that a member has is not looked at."""
        if not pattern or pattern in consumer.regex_subscribers:
            return
        try:
            if len(consumer.regex_subscribers) >= patterns.PATTERNS_MAX:
                raise PatternError(f"its group has {patterns.PATTERNS_MAX} others")
            patterns.compiled(pattern)
        except PatternError as error:
            text = f"SubscribedTopicRegex `{shortened(pattern)}` is not a valid regular expression: {error}."
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from error

    def subscribed(self, changes: Changes, before: Subscription, fresh: Subscription) -> bool:
        """After a member described itself. Whether that changes at once which topics it reads: an expression
        that is not resolved yet will only when it is."""
        old, new = Reader(before.topic_regex, before.principal), Reader(fresh.topic_regex, fresh.principal)
        if old == new:
            return False
        consumer = changes.consumer
        found = consumer.regexes.get(new.pattern)
        self.forget(changes, old.pattern)
        if old.pattern == new.pattern:
            return found is not None and found.seen_by(old.principal) != found.seen_by(new.principal)
        return not new.pattern or (found is not None and found.knows(new.principal))

    def forget(self, changes: Changes, pattern: str) -> None:
        """Delete what an expression matched, if no member has it any more."""
        consumer = changes.consumer
        if pattern in consumer.regexes and pattern not in consumer.regex_subscribers:
            changes.add((records.key(records.REGEX, consumer.group_id, pattern), None))

    def look(self, group: Group, last_ms: int | None, now_ms: int) -> None:
        """Ask, if it is time for that. To be called when all records of a heartbeat are written. `last_ms`:
        `ConsumerGroup.resolved_ms` before them."""
        consumer = group.consumer
        if consumer is None or not consumer.readers:
            return
        current = group.resolution
        if current is None:
            current = group.resolution = Resolution()
        if current.waits and now_ms < current.asked_ms + REFRESH_MS:
            return
        if current.failed_ms is not None and now_ms <= current.failed_ms + LEAST_MS:
            return
        unix_ms = self.core.unix_time.stamp_ms(now_ms)
        if last_ms is not None and last_ms <= unix_ms <= last_ms + LEAST_MS:
            return
        is_old = last_ms is None or not last_ms <= unix_ms <= last_ms + REFRESH_MS
        if consumer.unresolved or is_old or current.version < self.core.topics.names_version:
            self._ask(group, consumer, current, now_ms)

    def _ask(self, group: Group, consumer: ConsumerGroup, current: Resolution, now_ms: int) -> None:
        self.core.begin_change()
        current.number, current.waits, current.asked_ms = current.number + 1, True, now_ms
        consumer.unresolved = False
        hosts: dict[Reader, set[str]] = {}
        for member in consumer.members.values():
            described = member.subscription
            if described.topic_regex:
                reader = Reader(described.topic_regex, described.principal)
                hosts.setdefault(reader, set()).add(described.client_host)
        readers = {reader: frozenset(some) for reader, some in hosts.items()}
        requested = PatternsAsked(group.group_id, current.number, readers)
        self.core.out.report(lambda _: requested, group.position, now_ms)

    def resolved(self, group_id: str, number: int, found: Mapping[str, Regex], now_ms: int) -> None:
        """The answer to a question: by expression, what it matches. One that is missing could not be resolved
        and stays as it was; without any it is asked again, later."""
        group = self.core.groups.get(group_id)
        current = None if group is None else group.resolution
        if group is None or current is None or not current.waits or current.number != number:
            return
        self.core.begin_change()
        current.waits = False
        unix_ms = self.core.unix_time.stamp_ms(now_ms)
        consumer = group.consumer or ConsumerGroup(group_id)
        fresh = {
            pattern: _merged(one, consumer.regexes.get(pattern, _NOTHING), unix_ms)
            for pattern, one in found.items()
            if pattern in consumer.regex_subscribers
        }
        written = None
        if fresh and not self.core.refusal and not self.core.full:
            written = self._records(group, consumer, fresh, now_ms)
        if written is None:
            current.failed_ms = now_ms
            consumer.unresolved = True
            return
        current.failed_ms = None
        current.version = min(one.version for one in fresh.values())
        self._write(group, consumer, fresh, written, now_ms)

    def _records(
        self, group: Group, consumer: ConsumerGroup, fresh: Mapping[str, Regex], now_ms: int
    ) -> list[records.Record] | None:
        """None: there is no room for them, in memory or in a record."""
        count = sum(len(one.topics) for one in fresh.values())
        if count > TOPICS_MAX:
            text = f"its regular expressions match {count:,} topics, more than {TOPICS_MAX:,}"
            self.core.reports.notice(group, "", text, now_ms)
            return None
        more, names = 0, set[str]()
        for pattern, one in fresh.items():
            old = consumer.regexes.get(pattern, _NOTHING)
            if one.topics is not old.topics or one.views is not old.views:
                more += memory.regex_bytes(pattern, one.topics, one.views)
                more -= memory.regex_bytes(pattern, old.topics, old.views)
                names.update(name for name in one.topics - old.topics if not consumer.subscribes(name))
        more += memory.assignment_bytes(self.core.topics, names)
        if not self.core.has_memory(group, "", now_ms, consumer=more):
            return None
        written = [records.regex(group.group_id, pattern, one) for pattern, one in fresh.items()]
        for pattern, (_, value) in zip(fresh, written, strict=True):
            size = len(value or b"")
            if size > self.core.settings.group_max_record_bytes:
                count = len(fresh[pattern].topics)
                text = f"{_named(pattern)} matches {count:,} topics: a record of {size:,} bytes, more than "
                self.core.reports.notice(group, "", f"{text}group.max.record.bytes", now_ms)
                return None
        return written

    def _write(
        self,
        group: Group,
        consumer: ConsumerGroup,
        fresh: Mapping[str, Regex],
        written: list[records.Record],
        now_ms: int,
    ) -> None:
        seen: dict[tuple[int, int], tuple[frozenset[str], frozenset[str]]] = {}
        for pattern, one in fresh.items():
            old = consumer.regexes.get(pattern, _NOTHING)
            for reader in (reader for named, reader in consumer.readers if named == pattern):
                before, after = old.seen_by(reader), one.seen_by(reader)
                seen[id(before), id(after)] = before, after  # many principals see the same
            if old.topics is not one.topics:
                self._tell(group, pattern, old.topics, one.topics, now_ms)
        is_news = any(before != after for before, after in seen.values())
        changes = Changes(self.core, group)
        changes.add(*written)
        hashed = self.core.topics.metadata_hash(consumer.all_topics())
        if is_news or hashed != consumer.metadata_hash or self._leaves(consumer, fresh):
            changes.add(records.group_epoch(group.group_id, consumer.epoch + 1, hashed))
        consumer.checked_version = self.core.topics.version
        changes.write()

    def _leaves(self, consumer: ConsumerGroup, fresh: Mapping[str, Regex]) -> bool:
        """Whether a member with one of these expressions is to have partitions of a topic that it read by its
        former one only: nobody would get them. (Kafka 4.3 leaves them so.)"""
        by_id = self.core.topics.of_id
        for member in consumer.members.values():
            if member.subscription.topic_regex in fresh and member.target:
                names = consumer.topic_names(member)
                if any((one := by_id(topic_id)) and one.name not in names for topic_id in member.target):
                    return True
        return False

    def _tell(
        self, group: Group, pattern: str, before: frozenset[str], after: frozenset[str], now_ms: int
    ) -> None:
        text = f"{_named(pattern)} matches {len(after):,} topics"
        for what, some in (("new", after - before), ("no longer", before - after)):
            if some:
                text += f", {what}: {shortened(', '.join(sorted(some)[:NAMED_MAX]))}"
                text += f" and {len(some) - NAMED_MAX:,} more" if len(some) > NAMED_MAX else ""
        self.core.reports.notice(group, "", text, now_ms)


_NOTHING = Regex(frozenset(), 0, 0)


def _merged(fresh: Regex, old: Regex, unix_ms: int) -> Regex:
    """The fresh result, in the sets of the old one where they are the same: most results change nothing."""
    topics = old.topics if fresh.topics == old.topics else fresh.topics
    views = old.views if fresh.views == old.views else fresh.views
    return replace(fresh, topics=topics, views=views, resolved_ms=unix_ms)


def _named(pattern: str) -> str:
    return f"regular expression {shortened(pattern)}"
