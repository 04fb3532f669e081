"""Memory that a group of the consumer protocol holds, counted as its records change it.

The figures are those of Python's objects, rounded up: a partition that a member has stands in its target, in
its assignment and in the index of holders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ringleader.coordinator.consumer_groups.member import Current, Subscription, Target
from ringleader.coordinator.consumer_groups.topics import Topics

MEMBER_BYTES = 2_048
"""A member without its texts and partitions, with its two deadlines."""
NAME_BYTES = 160
"""The name of a topic, without its characters."""
SEEN_BYTES = 64
"""The name of a topic that is kept elsewhere, in a set."""
REMEMBERED_MAX = 16
"""Sets of names whose bytes are remembered: thousands of members have the same."""
TARGET_TOPIC_BYTES, TARGET_PARTITION_BYTES = 384, 64
CURRENT_TOPIC_BYTES, CURRENT_PARTITION_BYTES = 640, 128


def text_bytes(text: str | None) -> int:
    """The most that a text takes."""
    if text is None:
        return 0
    return len(text) if text.isascii() else 4 * len(text)


@lru_cache(maxsize=REMEMBERED_MAX)
def names_bytes(names: frozenset[str]) -> int:
    """Of the names of topics."""
    return sum(NAME_BYTES + text_bytes(name) for name in names)


def regex_bytes(pattern: str, topics: frozenset[str], views: Mapping[str, frozenset[str]] | None) -> int:
    """Of a regular expression that was resolved. Principals that see the same topics share them."""
    size = text_bytes(pattern) + names_bytes(topics)
    for seen in {id(one): one for one in (views or {}).values() if one is not topics}.values():
        size += SEEN_BYTES * len(seen)
    return size + NAME_BYTES * len(views or ())


def subscription_bytes(described: Subscription) -> int:
    """Of what a member says of itself."""
    identity = (described.instance_id, described.rack_id, described.client_id, described.client_host)
    texts = (*identity, described.topic_regex, described.server_assignor)
    size = sum(map(text_bytes, texts)) + names_bytes(described.topic_names)
    size += len(described.leader_user_data or b"")
    if described.classic is not None:
        size += sum(text_bytes(name) + len(metadata) for name, metadata in described.classic.protocols)
    return size


def target_bytes(target: Target, load: int) -> int:
    """Of a member's target. `load`: the number of its partitions."""
    return TARGET_TOPIC_BYTES * len(target) + TARGET_PARTITION_BYTES * load


def current_bytes(current: Current) -> int:
    """Of what a member has, and has to give up."""
    return sum(CURRENT_TOPIC_BYTES + CURRENT_PARTITION_BYTES * len(some) for _, some in current.held())


def assignment_bytes(topics: Topics, names: Iterable[str]) -> int:
    """The least that a group holds for these topics, as far as they exist, once it has assigned them."""
    of_topic = TARGET_TOPIC_BYTES + CURRENT_TOPIC_BYTES
    of_partition = TARGET_PARTITION_BYTES + CURRENT_PARTITION_BYTES
    found = (topic for name in names if (topic := topics.named(name)) is not None)
    return sum(of_topic + of_partition * topic.partitions for topic in found)
