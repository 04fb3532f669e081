"""Recordings of groups with regular expressions, whose records name principals."""

from __future__ import annotations

import base64
import json

import pytest

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.groups.patterns import LEAST_MS
from ringleader.coordinator.recording.anonymous import Masks
from ringleader.coordinator.recording.file import as_line
from ringleader.coordinator.recording.play import Player
from ringleader.coordinator.recording.tap import Tap
from tests.coordinator.groups.test_patterns import ANN, BOB, RegexDesk, Rights


def _lines(*, shown: bool) -> list[bytes]:
    """The first line, and the calls: one principal is in the state at the beginning, one comes later. Names
    in their order are not numbers in theirs: the second principal is the first by name."""
    desk = RegexDesk()
    desk.sight = Rights({BOB: {"orders-eu"}})
    desk.subscribes("b", principal=BOB)
    desk.resolve()
    made: list[bytes] = []
    tap = Tap(desk.shard, lambda line: made.append(as_line(line)), principals=shown)
    first = as_line({"group": "g", **tap.begin()})
    desk.subscribes("a", principal=ANN)
    desk.wait(LEAST_MS + 1)
    desk.lives("a")
    desk.resolve()
    assert desk.group.regexes["orders.*"].views == {
        ANN: {"orders", "orders-eu"},
        BOB: {"orders"},
    }
    desk.lives("b")
    tap.end()
    return [first, *made]


@pytest.mark.parametrize("shown", [True, False])
def test_they_are_played_the_same_and_name_nobody(shown: bool) -> None:
    lines = [json.loads(one) for one in _lines(shown=shown)]
    player = Player(lines[0])
    for line in lines[1:]:
        assert player.step(line).difference is None
    raw = b"".join(_values(lines))
    assert (b"User:ann" in raw) is (b"User:bob" in raw) is shown
    assert ("User:ann" in str(lines)) is ("User:bob" in str(lines)) is shown


def test_without_names_they_are_played_as_well() -> None:
    lines = [json.loads(one) for one in _lines(shown=False)]
    masks = Masks(b"\x17" * 32, "g", everything=True)
    player = again = None
    for line in lines[1:]:
        if player is None or again is None:
            first = json.loads(as_line(masks.first(lines[0])))
            player, again = Player(first), Player(first)
        masked = masks.line(line)
        made = json.loads(as_line({**masked, **player.step(masked).outcome}))
        assert again.step(made).difference is None
        assert "orders" not in str(made)


def _values(lines: list[dict[str, object]]) -> list[bytes]:
    """Of all records that are in the lines."""
    found = []
    for line in lines:
        gave = line.get("gave")
        for _, some in gave["appends"] if isinstance(gave, dict) and "appends" in gave else ():
            found += [base64.b64decode(value["b"]) for _, value in some if value is not None]
    assert found
    return found


def test_other_names_are_another_value() -> None:
    key = records.key(records.REGEX, "g", "x")
    assert records.renamed(key, None, str.upper) is None
    assert records.renamed(b"\0\x01\0\x01g", b"value", str.upper) == b"value"
