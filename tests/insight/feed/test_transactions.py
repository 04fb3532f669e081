"""A record that belongs to a transaction counts from its commit."""

from __future__ import annotations

import struct

import pytest

from ringleader.insight.feed import transactions
from ringleader.insight.feed.transactions import Transactions

ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


def test_a_commit_gives_the_last_of_each_key_and_an_abort_nothing() -> None:
    open_ones = Transactions()
    open_ones.add(7, 10, b"a", b"1")
    open_ones.add(8, 11, b"a", b"other")
    open_ones.add(7, 12, b"b", b"2")
    open_ones.add(7, 13, b"a", b"3")
    assert open_ones.first_offset == 10
    assert open_ones.end(7, COMMIT) == [(b"a", b"3"), (b"b", b"2")]
    assert open_ones.first_offset == 11
    assert open_ones.end(8, ABORT) == []
    assert open_ones.first_offset is None


@pytest.mark.parametrize("marker", [None, b"", b"\0\0\1", struct.pack(">hh", 0, 9)])
def test_a_marker_that_is_none_ends_the_transaction_without_committing_it(marker: bytes | None) -> None:
    open_ones = Transactions()
    open_ones.add(7, 10, b"a", b"1")
    assert open_ones.end(7, marker) == []
    assert open_ones.end(7, COMMIT) == []
    assert open_ones.first_offset is None


def test_the_records_kept_of_one_transaction_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MAX_KEYS", 2)
    open_ones = Transactions()
    for key in (b"a", b"b", b"c"):
        open_ones.add(7, 10, key, b"1")
    open_ones.add(7, 11, b"a", b"2")
    assert open_ones.end(7, COMMIT) == [(b"a", b"2"), (b"b", b"1")]
