"""Requests whose shape depends on the version that is chosen per connection, and who coordinates what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from ringleader.clients.model import Node, TopicPartition
from ringleader.protocol.fields import LAST
from ringleader.protocol.messages import ApiVersionsRequest, FindCoordinatorRequest

NAMED_MAX = 5_000
"""Topics or partitions that one request names at most, so that neither it nor its answer holds up a loop for
long. A node of Ringleader closes the connection over 20,000 (`request.max.elements`), and over 10,000 of
OffsetDelete: a partition and the topic around it are two."""

T = TypeVar("T")

GREETING = ApiVersionsRequest(client_software_name="ringleader", client_software_version="0.1.0")
"""The name of this library. The version is written out, as looking it up would make every import slower."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of one API whose body is built when the version is known."""

    message: Any
    """The message class."""
    build: Callable[[int], Any]
    max_version: int = LAST
    raw: bool = False
    """The answer is wanted as a `RawAnswer`: it may be large, and is decoded elsewhere."""
    keep: Callable[[Any], bool] | None = None
    """For messages with records: they come as views of the buffer that was received into, and this makes them
    the message's own, or returns True: the buffer is left alone as long as there is a view of it."""
    client_id: str | None = None
    """Asked in this name; None: in that of the connection."""


class RawAnswer(NamedTuple):
    """An answer as it came: header and body, without the size."""

    frame: bytes | memoryview
    version: int


def plain(message: Any, max_version: int = LAST) -> Request:
    """A request that is the same in all versions."""
    return Request(type(message), lambda _version: message, max_version)


def in_parts(entries: Iterable[T], most: int = NAMED_MAX) -> Iterator[list[T]]:
    """These entries, no more at a time than one request may have; one empty part where there are none."""
    left = iter(entries)
    part = list(islice(left, most))
    while True:
        yield part
        if not (part := list(islice(left, most))):
            return


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic -> partitions, in the order of first appearance."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


# ---- FindCoordinator (key 10): one key up to v3, a list from v4 on (KIP-699) ----


GROUP, TRANSACTION = 0, 1
"""Key types: a group id, a transactional id."""


def find_coordinator(key: str, key_type: int = GROUP) -> Request:
    """The coordinator of the group."""

    def build(version: int) -> FindCoordinatorRequest:
        if version >= 4:
            return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        return FindCoordinatorRequest(key_type=key_type, key=key)

    return Request(FindCoordinatorRequest, build)


class FoundCoordinator(NamedTuple):
    """`node` is None when `code` is an error."""

    code: int
    node: Node | None


def found_coordinator(response: Any) -> FoundCoordinator:
    """The answer about the one key that was asked for."""
    answer = response.coordinators[0] if response.coordinators else response
    if answer.error_code:
        return FoundCoordinator(answer.error_code, None)
    return FoundCoordinator(0, Node(answer.node_id, answer.host, answer.port))
