"""Requests with offsets of topics: entries of topics and partitions that do not exist are refused here, for
the group machine knows groups, not topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.parts import Gather
from ringleader.coordinator.topics import Topics
from ringleader.protocol.errors import ErrorCode

ANY_PARTITION = 2**31
"""Of names that are no topics: one more than the largest number that the wire can carry."""
NAME_MAX_CHARACTERS = 249
"""As long as a topic's name may be."""

Refused = dict[str, list[Any]]
"""Answers of refused entries, by topic."""


def split(
    topics: Topics,
    request: Any,
    topic_class: type[Any],
    refusal: type[Any],
    unknown: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
) -> tuple[list[Any], Refused]:
    """Topics of a request with the partitions that exist, and a refusal for each of the others. `unknown`:
    the code for topics that do not exist; with NONE they have all partitions."""
    accepted: list[Any] = []
    refused: Refused = {}
    for topic in request.topics:
        info = topics.describe(topic.name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if info is not None or is_long(topic.name) else unknown
        count = info.partitions if info is not None else 0 if code else ANY_PARTITION
        good = []
        for entry in topic.partitions:
            if 0 <= entry.partition_index < count:
                good.append(entry)
                continue
            refused.setdefault(topic.name, []).append(
                refusal(
                    partition_index=entry.partition_index,
                    error_code=code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
            )
        if good:
            accepted.append(topic_class(name=topic.name, partitions=good))
    return accepted, refused


def is_long(name: str) -> bool:
    """Whether it is too long for a name, of a topic or of something else."""
    return len(name) > NAME_MAX_CHARACTERS


def merge(topics: list[Any], refused: Refused, topic_class: type[Any]) -> None:
    """Add the refusals to the topics of an answer."""
    for topic in topics:
        topic.partitions.extend(refused.pop(topic.name, ()))
    topics += [topic_class(name=name, partitions=partitions) for name, partitions in refused.items()]


def handle(runtime: GroupRuntime, call: Call, request: Any, finish: Callable[[Any], Any]) -> Any | None:
    """The group machine's answer to a request, after `finish`; None when it comes later."""
    gather = Gather(call, lambda results: finish(results[0]))
    gather.add(partial(runtime.handle, request), partial(runtime.ticket_closed, request.group_id))
    return gather.answer()
