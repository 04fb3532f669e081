"""A recording without names: texts and bytes replaced by others of the same length, the same one by the same.

Replacements of the same length keep records as long as they were, and equal texts stay equal. Partitions,
times, sizes and the names of Kafka's own assignors stay. The results of the machine are not replaced: the
machine is asked again (`play`), since its results for other names may stand in another order.
"""

from __future__ import annotations

import base64
import hmac
import re
import string
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ringleader.coordinator.recording.state import shard_of
from ringleader.coordinator.recording.tap import HIDDEN, Line
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import EncodeError, MalformedError
from ringleader.protocol.wire import read_uvarint

Embedded = TypeVar("Embedded", Subscription, Assignment)
CONSTANTS = frozenset(
    ("", "consumer", "connect", "range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
)
"""Words of Kafka's own: types of protocols, assignors."""
_HIDDEN = re.compile(rf"{HIDDEN}\d+")
_LETTERS = string.ascii_lowercase + string.digits
_TRIES = 1_000
_KINDS = (
    (0x80, _LETTERS),
    (0x800, "".join(map(chr, range(0xE0, 0x100)))),
    (0x10000, "".join(map(chr, range(0x4E00, 0x4F00)))),
)
_WIDEST = "".join(map(chr, range(0x1F300, 0x1F400)))
_BY_GROUP = (
    "heartbeat",
    "commit_one",
    "fetch_offsets",
    "describe",
    "describe_consumer",
    "delete_group",
    "expire_member",
    "resolved",
    "delete_offsets",
)
"""Calls whose first argument is the group id."""


_TOPIC_IDS = ("topic_id", "target", "assigned", "pending_revocation", "_holders")
"""Fields with ids of topics: drawn by lot, and the same in all places."""


class Masks:
    """Replacements for one recording. `key` is to be forgotten: with it, guesses could be checked."""

    def __init__(self, key: bytes, group_id: str, *, everything: bool) -> None:
        """`everything`: `group_id` is replaced, too; else what it names itself stays readable."""
        self._key = key
        self._group_id = group_id
        self._everything = everything
        self._texts: dict[str, str] = {}
        self._taken: set[str] = set()

    # ---- texts and bytes ----

    def text(self, text: str, *, keep: bool = False) -> str:
        """Another one of as many characters and bytes. `keep`: it may stay, unless it was replaced before."""
        if text in CONSTANTS or _HIDDEN.fullmatch(text):
            return text
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = text if keep else self._another(text)
            self._taken.add(found)
        return found

    def _another(self, text: str) -> str:
        for attempt in range(_TRIES):
            noise = iter(self._noise(f"{attempt} {text}".encode("utf-8", "surrogatepass"), 2 * len(text)))
            made = "".join(_like(one, next(noise) << 8 | next(noise)) for one in text)
            if made not in self._taken:
                return made
        return text  # so short that all others are taken

    def _noise(self, of: bytes, length: int) -> bytes:
        made = b""
        while len(made) < length:
            made += hmac.digest(self._key, len(made).to_bytes(4, "big") + of, "sha256")
        return made[:length]

    def opaque(self, data: bytes) -> bytes:
        """Bytes of an unknown format: others of the same length."""
        return self._noise(data, len(data))

    def subscription(self, data: bytes) -> bytes:
        """A consumer's subscription, with other topics; bytes that are none, as `opaque`."""

        def mask(read: Subscription) -> None:
            read.topics = [self.text(one) for one in read.topics]
            read.owned_partitions = self._partitions(read.owned_partitions)
            read.rack_id = None if read.rack_id is None else self.text(read.rack_id)

        return self._embedded(data, Subscription, mask)

    def assignment(self, data: bytes) -> bytes:
        """A consumer's assignment, likewise."""

        def mask(read: Assignment) -> None:
            read.partitions = self._partitions(read.partitions)

        return self._embedded(data, Assignment, mask)

    def _embedded(self, data: bytes, kind: type[Embedded], mask: Callable[[Embedded], None]) -> bytes:
        """Bytes that members exchange, masked; as `opaque` if they are no `kind`, or written otherwise than
        `encode` writes it."""
        try:
            read = kind.decode(data)
            version = min(int.from_bytes(data[:2], "big"), 3)
            if read.encode(version) != data:
                return self.opaque(data)
            mask(read)
            read.user_data = None if read.user_data is None else self.opaque(read.user_data)
            return read.encode(version)
        except (MalformedError, EncodeError):
            return self.opaque(data)

    def _partitions(self, partitions: dict[str, list[int]]) -> dict[str, list[int]]:
        return {self.text(topic): some for topic, some in partitions.items()}

    def offset(self, value: bytes) -> bytes:
        """An offset as the log has it: the text that goes with it is another one."""
        if value[:2] == b"\0\4":
            length, start = read_uvarint(value, 14)
            length -= 1
        else:
            start = 16 if value[:2] == b"\0\3" else 12
            length = int.from_bytes(value[start - 2 : start], "big")
        noise = bytes(ord(_LETTERS[one % len(_LETTERS)]) for one in self._noise(value, length))
        return value[:start] + noise + value[start + length :]

    # ---- values ----

    def value(self, written: Any, field: str = "", *, keep: bool = False) -> Any:
        """A value as `plain` writes it. `keep`: it is of the group that stays readable."""
        if isinstance(written, str):
            return self.text(written, keep=keep)
        if isinstance(written, list):
            return [self.value(one, field, keep=keep) for one in written]
        if not isinstance(written, dict):
            return written
        if "c" in written:
            return {
                name: one if name in ("c", "n") else self.value(one, name, keep=keep)
                for name, one in written.items()
            }
        [(tag, content)] = written.items()
        if tag == "b":
            return written if keep else {"b": self._bytes(content, field)}
        if tag in ("e", "r", "ticket"):
            return written
        return {tag: [self.value(one, field, keep=keep) for one in content]}

    def _bytes(self, content: str, field: str) -> str:
        kinds: dict[str, Callable[[bytes], bytes]] = {
            "metadata": self.subscription,
            "subscription": self.subscription,
            "protocols": self.subscription,
            "assignment": self.assignment,
            "offsets": self.offset,
            "value": self.offset,
            **dict.fromkeys(_TOPIC_IDS, bytes),
        }
        return base64.b64encode(kinds.get(field, self.opaque)(base64.b64decode(content))).decode()

    # ---- lines ----

    def first(self, first: Line) -> Line:
        """The state at the beginning. The group that stays is read first: names that it shares with
        others stay, too."""
        state = first["state"]
        own = [one for one in state["groups"] if self._stays(one["group_id"])]
        kept = {one["group_id"]: self.value(one, keep=True) for one in own}
        clients = {one for group in own for one in _named(group, "client_id")}
        groups = [kept.get(one["group_id"]) or self.value(one) for one in state["groups"]]
        topics = self.value(state["topics"])
        state = {
            **state,
            "groups": groups,
            "topics": topics,
            "configs": self._configs(state["configs"]),
            "transactional": [
                [producer, [self.text(one, keep=self._stays(one)) for one in some]]
                for producer, some in state["transactional"]
            ],
        }
        tickets = [self._ticket(one, keep=one[2] in clients) for one in first["tickets"]]
        _hash_again(first, state)
        return {
            **first,
            "group": self.text(first["group"], keep=not self._everything),
            "state": state,
            "tickets": tickets,
        }

    def line(self, line: Line) -> Line:
        """The call of the machine, without its result."""
        given, keep = line["with"], self._stays(group_of(line))
        if line["do"] == "topic_deleted":
            made = [self.text(given[0]), *given[1:]]
        else:
            # Bytes among the arguments of these are topic ids.
            field = "topic_id" if line["do"] in ("commit_one", "fetch_offsets") else ""
            made = [self.value(one, field, keep=keep) for one in given]
        masked: Line = {
            **{name: line[name] for name in ("do", "unix", "others") if name in line},
            "with": made,
        }
        if "tickets" in line:
            masked["tickets"] = [self._ticket(one, keep=keep) for one in line["tickets"]]
        if "configs" in line:
            masked["configs"] = self._configs(line["configs"])
        if "topics" in line:
            masked["topics"] = self.value(line["topics"])
        if "ids" in line:
            masked["ids"] = [self.text(one, keep=keep) for one in line["ids"]]
        return masked

    def _configs(self, configs: dict[str, Any]) -> dict[str, Any]:
        return {self.text(one, keep=self._stays(one)): values for one, values in configs.items()}

    def _stays(self, group_id: str | None) -> bool:
        return not self._everything and group_id == self._group_id

    def _ticket(self, ticket: list[Any], *, keep: bool) -> list[Any]:
        return [self.text(one, keep=keep) if isinstance(one, str) else one for one in ticket]


def group_of(line: Line) -> str | None:
    """The group that a call is about; None: no single one."""
    given = line["with"]
    if line["do"] in _BY_GROUP:
        return given[0] if isinstance(given[0], str) else None
    if line["do"] in ("handle", "commit", "keep_alive") and isinstance(given[0], dict):
        named = given[0].get("group_id")
        return named if isinstance(named, str) else None
    return None


def _hash_again(first: Line, masked: Line) -> None:
    """The number by which a group sees that its topics changed is made of their names: one that was right
    is right for the other names, too."""
    was, now = (
        shard_of(one, first["settings"], lambda prefix: prefix, lambda number: number)._core
        for one in (first["state"], masked)
    )
    for written, made in zip(first["state"]["groups"], masked["groups"], strict=True):
        before, after = was.groups[written["group_id"]].consumer, now.groups[made["group_id"]].consumer
        if before is None or after is None:
            continue
        if before.metadata_hash == was.topics.metadata_hash(before.all_topics()):
            made["consumer"]["metadata_hash"] = now.topics.metadata_hash(after.all_topics())


def _named(written: Any, field: str) -> Iterable[str]:
    if isinstance(written, list):
        for one in written:
            yield from _named(one, field)
    elif isinstance(written, dict):
        for name, one in written.items():
            if name == field and isinstance(one, str):
                yield one
            else:
                yield from _named(one, field)


def _like(character: str, noise: int) -> str:
    """Another character that takes as many bytes."""
    code = ord(character)
    some = next((some for below, some in _KINDS if code < below), _WIDEST)
    return some[noise % len(some)]
