"""Values of insight become JSON and come back as they were."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from ringleader.insight.codec import codec_of
from ringleader.insight.model import Confidence, Departure, DepartureFinding, Member, Move


class _Row(NamedTuple):
    word: Departure
    number: int | None = None


@dataclass
class _Object:
    name: str
    rows: list[_Row] = field(default_factory=list)
    by_place: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    by_id: dict[bytes, str] = field(default_factory=dict)


MEMBER = Member("m", "c", "/h", None, ("a", "b"), (("a", 0), ("a", 7), ("b", 1)), 45_000, None)
VALUES: list[tuple[Any, Any, Any]] = [
    (_Row, _Row(Departure.LEFT), ["left", None]),
    (_Object, _Object("x"), {"name": "x"}),
    (
        _Object,
        _Object("x", [_Row(Departure.FENCED, 1)], {("t", 0): (5, "r")}, {b"\0\1": "topic"}),
        {
            "name": "x",
            "rows": [["fenced", 1]],
            "by_place": [[["t", 0], [5, "r"]]],
            "by_id": {"0001": "topic"},
        },
    ),
    (Move, Move("t", 0, None, "m", 3), ["t", 0, None, "m", 3]),
    (Member, MEMBER, ["m", "c", "/h", None, ["a", "b"], [["a", [0, 7]], ["b", [1]]], 45_000, None]),
    (
        tuple[Member, DepartureFinding | None],
        (MEMBER, DepartureFinding(Departure.LEFT, Confidence.LIKELY, 3, ("why",))),
        [
            ["m", "c", "/h", None, ["a", "b"], [["a", [0, 7]], ["b", [1]]], 45_000, None],
            ["left", "likely", 3, ["why"]],
        ],
    ),
]


@pytest.mark.parametrize(("kind", "value", "row"), VALUES)
def test_a_value_is_the_same_after_json(kind: Any, value: Any, row: Any) -> None:
    codec = codec_of(kind)
    assert json.loads(json.dumps(codec.write(value))) == row
    read = codec.read(json.loads(json.dumps(row)))
    assert read == value
    assert type(read) is type(value)
    assert codec.unpack(codec.pack(value)) == value


def test_what_an_older_or_newer_version_wrote_is_read() -> None:
    assert codec_of(_Row).read(["left"]) == _Row(Departure.LEFT)
    assert codec_of(_Object).read({"name": "x", "colour": "red"}) == _Object("x")


def test_a_long_value_is_deflated() -> None:
    codec = codec_of(list[str])
    assert len(codec.pack(["the same"] * 1_000)) < 1_000
    assert codec.unpack(codec.pack(["the same"] * 1_000)) == ["the same"] * 1_000


def test_a_type_without_a_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no form"):
        codec_of(complex)
