"""The topics that groups of the consumer protocol know, by name and by id."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups import topics as module
from ringleader.coordinator.consumer_groups.topics import Topic, Topics

A, B = b"a" * 16, b"b" * 16


def test_the_id_of_a_topic_that_was_made_again_or_deleted_is_nobodys() -> None:
    known = Topics()
    known.put(Topic("orders", A, 3))
    known.put(Topic("orders", B, 3))
    assert known.of_id(A) is None
    assert known.of_id(B) == known.named("orders") == Topic("orders", B, 3)
    known.remove("orders")
    assert (known.of_id(B), known.named("orders")) == (None, None)


def test_what_is_remembered_of_subscriptions_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 10)
    known = Topics()
    for number in range(100):
        known.ids(frozenset((f"topic-{number}",)))
        known.metadata_hash(frozenset((f"topic-{number}",)))
    assert len(known._ids) + len(known._hashes) <= 10
