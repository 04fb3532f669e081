"""Values as they stand in the file: JSON, deflated where that saves room.

What has its default is left out, and a field that is not known is ignored: so both may be added without
another format.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import MISSING, fields
from itertools import groupby
from typing import Any

from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    Gone,
    GroupState,
    Kind,
    Member,
    Move,
    Outcome,
    Rebalance,
    TopicPartition,
)

_DEFLATE_BYTES = 512
"""Shorter texts stay as they are."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def packed(value: Any) -> bytes:
    """As it is stored."""
    text = _encode(value).encode("utf-8", "surrogatepass")
    return zlib.compress(text, 1) if len(text) >= _DEFLATE_BYTES else text


def unpacked(data: bytes) -> Any:
    """What `packed` was given. JSON begins with a bracket, zlib never."""
    text = data if data[:1] in b"[{" else zlib.decompress(data)
    return json.loads(text.decode("utf-8", "surrogatepass"))


def _grouped(partitions: Iterable[TopicPartition]) -> list[list[Any]]:
    return [
        [topic, [partition for _, partition in found]]
        for topic, found in groupby(partitions, key=lambda one: one[0])
    ]


def member_row(one: Member) -> list[Any]:
    """A member as a JSON value."""
    row: list[Any] = list(one)
    row[5] = _grouped(one.assigned)
    return row


def member_of(row: list[Any]) -> Member:
    """The member that `member_row` was given."""
    row[4] = tuple(row[4])
    row[5] = tuple((topic, partition) for topic, found in row[5] for partition in found)
    return Member(*row)


def gone_row(one: Gone) -> list[Any]:
    """How a member went, as a JSON value."""
    return list(one)


def gone_of(row: list[Any]) -> Gone:
    """What `gone_row` was given."""
    why, confidence, silent_ms, evidence = row
    return Gone(Departure(why), Confidence(confidence), silent_ms, tuple(evidence))


_DEFAULTS = {
    one.name: one.default_factory() if one.default_factory is not MISSING else one.default
    for one in fields(Rebalance)
}
_WORDS = {"kind": Kind, "cause": Cause, "confidence": Confidence, "outcome": Outcome}


def rebalance_data(one: Rebalance) -> bytes:
    """A rebalance as it is stored."""
    row: dict[str, Any] = {
        name: value for name, default in _DEFAULTS.items() if (value := getattr(one, name)) != default
    }
    for name in ("members", "before"):
        if name in row:
            row[name] = [member_row(member) for member in row[name]]
    if "left" in row:
        row["left"] = {member_id: gone_row(gone) for member_id, gone in one.left.items()}
    if "principals" in row:
        row["principals"] = dict(one.principals)
    return packed(row)


def rebalance_of(data: bytes) -> Rebalance:
    """The rebalance that `rebalance_data` was given."""
    row = {name: value for name, value in unpacked(data).items() if name in _DEFAULTS}
    for name, word in _WORDS.items():
        if name in row:
            row[name] = word(row[name])
    for name in ("evidence", "cause_members", "joined"):
        if name in row:
            row[name] = tuple(row[name])
    for name in ("members", "before"):
        if name in row:
            row[name] = tuple(member_of(member) for member in row[name])
    if "moves" in row:
        row["moves"] = tuple(Move(*move) for move in row["moves"])
    if "left" in row:
        row["left"] = {member_id: gone_of(gone) for member_id, gone in row["left"].items()}
    return Rebalance(**row)


def state_data(one: GroupState) -> bytes:
    """A group's state as it is stored."""
    row: list[Any] = list(one)
    row[7] = [member_row(member) for member in one.members]
    return packed(row)


def state_of(data: bytes) -> GroupState:
    """The state that `state_data` was given."""
    row = unpacked(data)
    row[1], row[7] = Kind(row[1]), tuple(member_of(member) for member in row[7])
    return GroupState(*row)
