"""The offset document: equal means equal text, and nothing foreign is taken for ours."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.spark_bridge.batch.document import OffsetDocument, OffsetDocumentError, empty
from ringleader.spark_bridge.values import CommitToken, OffsetRange, Subscription

partitions = st.tuples(st.text("abc", min_size=1, max_size=2), st.integers(0, 300))
offsets = st.integers(0, 2**63 - 1)
ranges = st.tuples(offsets, offsets).map(lambda pair: OffsetRange(*sorted(pair)))
documents = st.builds(
    OffsetDocument,
    st.just("g"),
    st.dictionaries(partitions, ranges),
    st.dictionaries(partitions, offsets),
    st.just("q"),
    st.integers(1, 2**40),
    st.none()
    | st.builds(
        Subscription, st.lists(st.text("abc", min_size=1), unique=True, max_size=3).map(tuple), st.none()
    )
    | st.builds(Subscription, st.just(()), st.text("ab.*")),
).map(lambda found: replace(found, subscription=found.subscription and found.subscription.ordered()))


def test_the_layout_that_checkpoints_hold() -> None:
    document = OffsetDocument(
        "g", {("b", 10): OffsetRange(1, 2), ("b", 9): OffsetRange(3, 3)}, {("b", 9): 3, ("a", 0): 7}, "x1", 7
    )
    for looked, expected in (
        (Subscription(("a", "b"), None), '["a", "b"]'),
        (Subscription((), "a|b"), '"a|b"'),
        (Subscription(("a", "b"), None, (("a", 0), ("b", 9), ("b", 10))), '{"a": [0], "b": [9, 10]}'),
    ):
        known = replace(document, subscription=looked)
        assert known.text() == document.text().replace(', "v"', f', "s": {expected}, "v"')
        assert OffsetDocument.from_json(json.loads(known.text()), "g") == known
    assert document.text() == (
        '{"g": "g", "n": 7, "p": {"a": {"0": 7}, "b": {"9": 3}}, "q": "x1", '
        '"r": {"b": {"9": [3, 3], "10": [1, 2]}}, "v": 1}'
    )
    assert empty("g").text() == '{"g": "g", "p": {}, "r": {}, "v": 1}'


def test_a_commit_token_comes_back_from_the_metadata() -> None:
    token = CommitToken("0a1b", 7)
    assert CommitToken.of(token.text()) == token
    for foreign in ("", None, "somebody", "ringleader-spark:0a1b", "ringleader-spark:0a1b:x", "a:0a1b:7"):
        assert CommitToken.of(foreign) is None


@given(documents)
def test_a_document_comes_back_from_its_text(document: OffsetDocument) -> None:
    assert OffsetDocument.from_json(json.loads(document.text()), "g") == document


@given(documents, st.randoms(use_true_random=False))
def test_equal_documents_are_equal_text(document: OffsetDocument, random: Random) -> None:
    items, positions = list(document.ranges.items()), list(document.positions.items())
    random.shuffle(items)
    random.shuffle(positions)
    again = replace(document, ranges=dict(items), positions=dict(positions))
    assert again.text() == document.text()


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (None, "not an object"),
        ({"topic": {"0": 1}}, "Spark's own Kafka connector.*startingOffsets"),
        ({"topic": {"zero": 1}}, "version None"),
        ({"v": 2, "g": "g"}, "version 2"),
        ({"v": 1, "g": "other", "r": {}}, "belongs to the group 'other'"),
        ({"v": 1, "g": "g", "r": []}, "'r'"),
        ({"v": 1, "g": "g", "r": {"t": 1}}, "'t'"),
        ({"v": 1, "g": "g", "r": {"t": {"x": [0, 1]}}}, "'x'"),
        ({"v": 1, "g": "g", "r": {"t": {"0": [2, 1]}}}, "ends before it starts"),
        ({"v": 1, "g": "g", "r": {"t": {"0": [1]}}}, "not a range"),
        ({"v": 1, "g": "g", "n": -1}, "'n'"),
        ({"v": 1, "g": "g", "q": 1}, "'q'"),
        ({"v": 1, "g": "g", "p": {"t": {"0": -1}}}, "not an offset"),
        ({"v": 1, "g": "g", "p": {"t": {"0": True}}}, "not an offset"),
        ({"v": 1, "g": "g", "p": {"t": {"0": 2**63}}}, "not an offset"),
    ],
)
def test_foreign_documents_are_refused_in_words(document: object, expected: str) -> None:
    with pytest.raises(OffsetDocumentError, match=expected):
        OffsetDocument.from_json(document, "g")
