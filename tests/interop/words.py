"""Answers in words: every field that does not say the usual, with names for what differs from run to run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import MalformedError, error_name
from ringleader.protocol.fields import FieldSpec, fields_of
from ringleader.protocol.messages import (
    ApiVersionsResponse,
    FindCoordinatorResponse,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
)
from ringleader.protocol.schema import Message
from tests.interop.language import Block
from tests.interop.modern import show_places

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_MADE_UP = r"(?<=Static member )[\w-]{22,}"
"""A member id of the consumer protocol that a server made, in the text of an error."""
_MEMBER_ID = re.compile(rf"(.*)-({_UUID})", re.DOTALL)

_ERRORS = ("error_code", "partition_error_code")

LONG_BYTES = 500
"""Longer values are shown as their length."""

_ALWAYS = {"committed_offset", "producer_id"}
"""Shown also when they have their default."""

_USUAL: dict[str, Any] = {"metadata": "", "committed_metadata": ""}
"""Values that go without saying, where they are not the schema's default."""

HEARTBEAT_INTERVAL_MS = 5_000
"""That of Kafka's default settings: each answer of the consumer protocol has it."""

_PLACES = {"host": "", "port": -1, "node_id": -1}
"""Where the server is: shown as <host> and so on, unless it is this value for "nowhere"."""

_HIDDEN = {
    # The APIs that a server has besides these are not part of the comparison.
    ApiVersionsResponse: {"api_keys", "supported_features", "finalized_features", "finalized_features_epoch"},
}

_ORDERED = {FindCoordinatorResponse, OffsetFetchResponse, LeaveGroupResponse}
"""Their lists are in the order of the request; all others come in no particular order."""


@dataclass(slots=True)
class Names:
    """The names of one play's values in its transcript."""

    token: str
    """At the end of every group, topic and transactional id that the play has for itself."""
    known: dict[str, str] = field(default_factory=dict)
    producers: dict[int, str] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    """By name on the wire; of a topic that was made again, the newest."""
    _topics: dict[bytes, str] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)

    def private(self, name: str) -> str:
        """The name on the wire of something that this play has for itself."""
        return f"{name}.{self.token}" if name else name

    def member(self, actor: str, member_id: str, prefix: str) -> None:
        """A member id that this actor was given. Its first is `<a>`, the next `<a.2>`."""
        if not member_id or member_id in self.known:
            return
        match = _MEMBER_ID.fullmatch(member_id)
        if match is None:
            if re.fullmatch(r"[\w-]{22}", member_id):  # in a group of the consumer protocol
                self.made_by_server(actor, member_id)
            return
        self.known[member_id] = self._next(actor)
        if match[1] != prefix:
            self.known[member_id] = match[1] + self.known[member_id]

    def made_by_server(self, actor: str, member_id: str) -> None:
        """A member id of the consumer protocol that the server made: it begins with nothing."""
        if member_id not in self.known:
            self.known[member_id] = self._next(actor)

    def topic(self, name: str, topic_id: bytes) -> None:
        """A topic that is there."""
        self.topic_ids[name] = topic_id
        self._topics[topic_id] = self.show(name)

    def topic_of(self, topic_id: bytes) -> str:
        """The name behind a topic id, of a topic that was deleted too."""
        return self._topics.get(topic_id, topic_id.hex())

    def producer(self, actor: str, producer_id: int) -> None:
        """A producer id that this actor was given: `<producer a>`."""
        if producer_id >= 0 and producer_id not in self.producers:
            self.producers[producer_id] = self._next(f"producer {actor}")

    def _next(self, name: str) -> str:
        self._taken[name] = self._taken.get(name, 0) + 1
        return f"<{name}>" if self._taken[name] == 1 else f"<{name}.{self._taken[name]}>"

    def real(self, name: str) -> str:
        """The value behind `<a>`; any other text is itself."""
        for value, known in self.known.items():
            if known == name:
                return value
        return name

    def real_producer(self, name: str) -> int:
        """The producer id behind `<producer a>`; or a number."""
        for value, known in self.producers.items():
            if known == name:
                return value
        return int(name)

    def show(self, text: str) -> str:
        """A text of an answer."""
        if text in self.known:
            return self.known[text]
        for value, name in self.known.items():
            text = text.replace(value, name)
        text = text.replace(f".{self.token}", "")
        return re.sub(rf"{_UUID}|{_MADE_UP}", "<a stranger>", text)


def answer(actor: str, api: str, message: Message, version: int, names: Names) -> Block:
    """One response."""
    if isinstance(message, ListGroupsResponse):
        # The broker has the groups of other plays too.
        message.groups = [group for group in message.groups if group.group_id.endswith(names.token)]
    writer = _Writer(names, version)
    return tuple(writer.block(f"{actor} {api}", message, ""))


class _Writer:
    def __init__(self, names: Names, version: int) -> None:
        self._names = names
        self._version = version

    def block(self, start: str, item: Any, indent: str) -> list[str]:
        """A message or struct: `start ok: field=value ...`, and a line for each struct in it."""
        error = next((name for name in _ERRORS if hasattr(item, name) and self._has(item, name)), None)
        if error is not None:
            code = getattr(item, error)
            start += f" {error_name(code) if code else 'ok'}"
        fields: list[str] = []
        inside: list[str] = []
        for name, spec in fields_of(type(item)):
            low, high = spec.versions
            if name == error or not low <= self._version <= high or name in _HIDDEN.get(type(item), ()):
                continue
            value = getattr(item, name)
            if spec.array and value and is_dataclass(value[0]):
                inside += self._list(name, value, indent + "    ", type(item) in _ORDERED)
            elif name in _ALWAYS or value != self._usual(item, name, spec):
                fields.append(f"{name}={self._value(name, value, item)}")
        head = indent + start + (": " + " ".join(fields) if fields else "")
        return [head, *inside]

    def _has(self, item: Any, name: str) -> bool:
        low, high = dict(fields_of(type(item)))[name].versions
        return low <= self._version <= high

    def _usual(self, item: Any, name: str, spec: FieldSpec) -> Any:
        if spec.array:
            return []
        if name == "heartbeat_interval_ms" and not item.error_code and item.member_epoch >= 0:
            return HEARTBEAT_INTERVAL_MS
        if name in _USUAL and not isinstance(getattr(item, name), bytes):
            return _USUAL[name]
        nullable = spec.nullable is not None and spec.nullable[0] <= self._version <= spec.nullable[1]
        if nullable and spec.type == "string":
            return None
        return spec.default

    def _list(self, name: str, items: list[Any], indent: str, ordered: bool) -> list[str]:
        blocks = [block for item in items for block in self._element(name, item, indent)]
        if not ordered or name == "topics":
            blocks.sort()
        return [line for block in blocks for line in block]

    def _element(self, name: str, item: Any, indent: str) -> list[list[str]]:
        """A struct of a list. A topic with partitions is a line for each of these."""
        inner = getattr(item, "partitions", getattr(item, "results_by_partition", None))
        if not isinstance(inner, list):
            return [self.block(name, item, indent)]
        topic = self._names.show(item.name)
        if not inner:
            return [[f"{indent}{topic} without partitions"]]
        return [self._partition(topic, one, indent) for one in inner]

    def _partition(self, topic: str, item: Any, indent: str) -> list[str]:
        index = item.partition_index
        item.partition_index = 0  # the default, which is not shown again
        try:
            return self.block(f"{topic}/{index}", item, indent)
        finally:
            item.partition_index = index

    def _value(self, name: str, value: Any, item: Any) -> str:
        if name in _PLACES:
            return str(value) if value == _PLACES[name] else f"<{name.removesuffix('_id')}>"
        if name == "producer_id":
            return self._names.producers.get(value, str(value))
        if isinstance(value, bytes):
            return show_bytes(value, self._names)
        if isinstance(value, str):
            return quote(self._names.show(value))
        if value is None:
            return "null"
        if is_dataclass(value):
            found: Any = value
            return show_places(found.topic_partitions, self._names)
        if name == "subscribed_topic_names":
            value = sorted(value)
        if isinstance(value, list):
            return ",".join(self._value("", one, item) for one in value) or "none"
        return str(value).lower() if isinstance(value, bool) else str(value)


def quote(text: str) -> str:
    """A text as one word, if it is one; else between quotation marks."""
    plain = re.sub(r"<[a-z]+ [^<>]*>", "", text)
    return repr(text) if not text or re.search(r"[\s'\"=]", plain) or text == "null" else text


def show_bytes(value: bytes, names: Names) -> str:
    """A consumer's subscription as its topics, a text as it is, everything else in hex."""
    if not value:
        return "''"
    if len(value) > LONG_BYTES:
        return f"({len(value)} bytes)"
    if value.isascii() and value.decode().isprintable():
        return quote(names.show(value.decode()))
    try:
        subscription = Subscription.decode(value)
    except MalformedError:
        return "0x" + value.hex()
    topics = "+".join(subscription.topics) or "nothing"
    return f"subscription({names.show(topics)})"
