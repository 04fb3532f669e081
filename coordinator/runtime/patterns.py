"""Answers the shards' questions which topics regular expressions match: see `groups.patterns`."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import Protocol

from ringleader.coordinator.consumer_groups import patterns
from ringleader.coordinator.consumer_groups.group import Regex
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.groups.patterns import PatternsAsked

VERDICTS_AT_ONCE = 200
"""Topics that are looked up in ACLs in one go: a millisecond or two."""


class Sight(Protocol):
    """The rights to see topics."""

    @property
    def is_open(self) -> bool:
        """Whether everybody sees all that anybody sees."""

    @property
    def names_hosts(self) -> bool:
        """Whether it may count where a principal comes from."""

    def sees(self, principal: str, host: str, topic: str) -> bool:
        """Whether a principal (`User:alice`) that comes from a host (in Java's form) may describe a topic."""


def answer(
    request: PatternsAsked, topics: Topics, sight: Sight | None
) -> Generator[None, None, dict[str, Regex]]:
    """The answer, in steps of a few milliseconds; nothing while not all topics are known. `sight` None:
    everybody sees all topics. A principal whose members come from several hosts sees what it may see from
    each of them."""
    if not topics.complete:
        return {}
    version, names = topics.names_version, [topic.name for topic in topics.all()]
    matched = yield from patterns.search({reader.pattern for reader in request.readers}, names)
    found: dict[str, Regex] = {}
    for pattern, some in matched.items():
        if sight is None:
            found[pattern] = Regex(frozenset(some), version, 0)
            continue
        principals = {"": [""]}
        if not sight.is_open:
            several = None if sight.names_hosts else 1
            principals = {
                reader.principal: sorted(hosts)[:several]
                for reader, hosts in request.readers.items()
                if reader.pattern == pattern
            }
        views: dict[str, frozenset[str]] = {}
        kept: dict[frozenset[str], frozenset[str]] = {}  # principals that see the same share it
        for principal, hosts in principals.items():
            seen = yield from _seen(sight, principal, hosts, some)
            views[principal] = kept.setdefault(seen, seen)
        union = frozenset[str]().union(*kept)
        topics_of_all = kept.get(union, union)
        found[pattern] = Regex(topics_of_all, version, 0, None if sight.is_open else views)
    return found


def _seen(
    sight: Sight, principal: str, hosts: list[str], names: list[str]
) -> Generator[None, None, frozenset[str]]:
    seen: list[str] = []
    left = iter(names)
    while some := list(islice(left, VERDICTS_AT_ONCE)):
        seen += (name for name in some if all(sight.sees(principal, host, name) for host in hosts))
        yield
    return frozenset(seen)
