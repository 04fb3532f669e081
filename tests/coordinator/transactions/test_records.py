"""The stored records of transactions, byte for byte as Kafka's records."""

from __future__ import annotations

import pytest

from ringleader.coordinator.transactions.records import decode_key, decode_value, encode_key, encode_value
from ringleader.coordinator.transactions.states import V2, State, Transaction
from ringleader.protocol.errors import MalformedError


def test_a_key_and_a_value_byte_by_byte() -> None:
    assert encode_key("tä") == b"\0\0\0\3t\xc3\xa4"
    transaction = Transaction(
        7, 3, 60_000, State.PREPARE_ABORT, frozenset({("b", 2), ("a", 1), ("b", 0)}), 1_000, 2_000
    )
    assert encode_value(transaction) == (
        b"\0\1" + (7).to_bytes(8, "big") + b"\0\3" + (60_000).to_bytes(4, "big") + b"\3"
        b"\3"
        b"\2a\2\0\0\0\1\0"
        b"\2b\3\0\0\0\0\0\0\0\2\0" + (2_000).to_bytes(8, "big") + (1_000).to_bytes(8, "big") + b"\0"
    )


def test_a_transaction_of_v2_byte_by_byte() -> None:
    """Producer ids before and after, and the kind of the transaction, are tagged fields."""
    transaction = Transaction(7, 3, 1, State.EMPTY, version=V2, previous_id=5, next_id=6)
    tail = encode_value(transaction)[-25:]
    assert tail == b"\3\0\x08" + (5).to_bytes(8, "big") + b"\1\x08" + (6).to_bytes(8, "big") + b"\2\2\0\2"


def test_a_record_of_the_version_before_is_read() -> None:
    value = (
        b"\0\0" + (7).to_bytes(8, "big") + b"\0\3" + (60_000).to_bytes(4, "big") + b"\3"
        b"\0\0\0\1"
        b"\0\1a\0\0\0\1\0\0\0\1" + (2_000).to_bytes(8, "big") + (1_000).to_bytes(8, "big")
    )
    partitions = frozenset({("a", 1)})
    assert decode_value(value) == Transaction(7, 3, 60_000, State.PREPARE_ABORT, partitions, 1_000, 2_000)


@pytest.mark.parametrize("state", State)
def test_a_record_reads_back_as_it_was_written(state: State) -> None:
    partitions = frozenset({("a", 1)}) if state != State.EMPTY else frozenset()
    transaction = Transaction(2**40, 32_767, 1, state, partitions, 5, 6, version=V2, previous_id=3, next_id=4)
    assert decode_value(encode_value(transaction)) == transaction
    assert decode_key(encode_key("id")) == "id"


def test_a_transaction_without_partitions_has_none_in_kafkas_record() -> None:
    assert encode_value(Transaction(1, 0, 1))[17:18] == b"\0"


@pytest.mark.parametrize(
    "value", [b"", b"\0", b"\0\0", b"\0\5" + bytes(40), b"\0\0" + bytes(14) + b"\x09" + bytes(20)]
)
def test_bytes_that_are_no_record_are_refused(value: bytes) -> None:
    with pytest.raises(MalformedError):
        decode_value(value)


def test_keys_of_another_version_are_passed_over() -> None:
    assert decode_key(b"\0\1abc") is None
    with pytest.raises(MalformedError):
        decode_key(b"\0")
