"""Members that subscribe by regular expressions, in some of the worlds: the shard's questions are answered
step by step, and late, while topics come and go and principals may see others than before.

C13  A topic that a member reads by an expression matches it as a whole, and its principal could see it at
     some time while the last answer was made; what the index of expressions and readers says is what the
     members say.
C8   also: once nothing changes, each member reads what it names, and what is there, matches and is seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.consumer_groups.group import ConsumerGroup, Reader
from ringleader.coordinator.groups.patterns import PatternsAsked
from ringleader.coordinator.runtime import patterns
from tests.simulation.consumer.member import ModelMember

if TYPE_CHECKING:
    from tests.simulation.consumer.world import World

EXPRESSIONS = ("a", "[ab]", "b|c", ".*", ".", "z+", "(a|c)?")
PRINCIPALS = ("User:ada", "User:bob")
AT_ONCE = 20
"""Steps of an answer while nothing goes wrong."""


class Rights:
    """Which principal may see which topic; as `patterns.Sight`."""

    is_open = False
    names_hosts = False

    def __init__(self) -> None:
        self.hidden: set[tuple[str, str]] = set()
        """Principal and topic."""

    def sees(self, principal: str, host: str, topic: str) -> bool:
        """Whether it may describe it."""
        return (principal, topic) not in self.hidden


class Answer:
    """One that is being made, and what may be in it."""

    def __init__(
        self, request: PatternsAsked, steps: Generator[None, None, Any], rights: Rights | None
    ) -> None:
        self.request, self.steps = request, steps
        self.hidden = set() if rights is None else set(rights.hidden)
        """Principals and topics that were hidden all the time since."""


class Expressions:
    """The expressions of one world. It draws from a source of its own: a world without them is the same run
    that it was before there were any."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = random.Random(f"expressions {world.seed}")
        self.share = self.rng.choice([0.0, 0.0, 0.4, 0.8])
        """Of the members that come, or subscribe to something else, so many have one."""
        self.rights = self.rng.choice([None, Rights()])
        self._answers: list[Answer] = []
        self._hidden: dict[str, set[tuple[str, str]]] = {}
        """By expression, what its last answer cannot have."""

    # ---- what happens ----

    def give(self, member: ModelMember) -> None:
        """Perhaps an expression for a member that subscribes."""
        if not self.share:
            return
        fixed = member.instance_id is not None and self.world.classic_share
        if member.serial == 0 and member.epoch == 0:
            member.principal = self.rng.choice(PRINCIPALS)
        wants = self.rng.random() < self.share and not fixed
        member.regex = self.rng.choice(EXPRESSIONS) if wants else None
        if wants and self.rng.random() < 0.7:
            member.topics = frozenset()

    def step(self) -> None:
        """Answers come a little further; rights change."""
        world = self.world
        if not self.share:
            return
        if self.rights is not None and not world.calm and self.rng.random() < 0.02:
            self._change(self.rights)
        for answer in list(self._answers):
            for _ in range(AT_ONCE if world.calm else self.rng.choice([0, 0, 1, 5])):
                try:
                    next(answer.steps)
                except StopIteration as stop:
                    self._answers.remove(answer)
                    self._done(answer, stop.value)
                    break

    def _change(self, rights: Rights) -> None:
        place = self.rng.choice(PRINCIPALS), self.rng.choice(sorted(self.world.names))
        rights.hidden ^= {place}
        if place not in rights.hidden:
            for one in self._answers:
                one.hidden.discard(place)
        self.world.topics.seen_anew()
        self.world.say(f"{place} changes")
        self.world.count("rights changed")

    def requested(self, events: list[Any]) -> None:
        """Questions among what the shard tells."""
        for event in events:
            if isinstance(event, PatternsAsked):
                steps = patterns.answer(event, self.world.topics, self.rights)
                self._answers.append(Answer(event, steps, self.rights))
                self.world.count("expressions asked for")

    def _done(self, answer: Answer, found: Any) -> None:
        world, group_id, number = self.world, answer.request.group_id, answer.request.number
        if not world.calm and self.rng.random() < 0.05:
            found = {}  # it failed
        group = world.shard._groups.get(group_id)
        current = None if group is None else group.resolution
        if current is not None and current.waits and current.number == number:
            self._hidden |= dict.fromkeys(found, answer.hidden)
        world.say(f"{answer.request} is answered {found}")
        world.shard.resolved(group_id, number, found, world.now_ms)
        world.count("expressions answered")

    def died(self) -> None:
        """Another shard has asked nothing yet, and its log may have an answer of before."""
        self._answers.clear()
        self._hidden.clear()

    # ---- what must hold ----

    def check(self, group: ConsumerGroup) -> None:
        """C13."""
        if not self.share:
            return
        world = self.world
        for one in group.members.values():
            described = one.subscription
            text, principal = described.topic_regex, described.principal
            for name in group.topic_names(one) - described.topic_names:
                world.must(re.fullmatch(text, name) is not None, "C13", f"{name} is no {text}")
                hidden = (principal, name) in self._hidden.get(text, ())
                world.must(not hidden, "C13", f"{principal} reads {name}, which it could not see")
        by_text = [one.subscription for one in group.members.values() if one.subscription.topic_regex]
        readers = {Reader(one.topic_regex, one.principal) for one in by_text}
        world.must(set(group.readers) == readers, "C13", f"{set(group.readers)} are not {readers}")
        left = set(group.regexes) - set(group.regex_subscribers)
        world.must(not left, "C13", f"{left} is kept, and no member has it")

    def waits(self, group: ConsumerGroup) -> bool:
        """Whether a member reads by an expression of which nothing is known yet: the target is as it was
        until that is (as Kafka does it), and the member has left what it read before."""
        found = {reader: group.regexes.get(reader.pattern) for reader in group.readers}
        return any(one is None or not one.knows(reader.principal) for reader, one in found.items())

    def has_settled(self, group: ConsumerGroup) -> bool:
        """Whether each member reads what it is to read."""
        world = self.world
        if not self.share:
            return True
        hidden = set[tuple[str, str]]() if self.rights is None else self.rights.hidden
        for one in group.members.values():
            text, principal = one.subscription.topic_regex, one.subscription.principal
            matched = {
                name
                for name in world.names
                if text and re.fullmatch(text, name) and (principal, name) not in hidden
            }
            there = {name for name in matched | one.subscription.topic_names if world.topics.named(name)}
            if {name for name in group.topic_names(one) if world.topics.named(name)} != there:
                return False
        return not self._answers
