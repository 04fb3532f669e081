"""The table of error codes against two clients' tables, and the exceptions."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from ringleader.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedError, error_name
from ringleader.protocol.wire import STRING_MAX

# kafka-python keeps older names for these.
OLDER_NAMES = {
    -1: "UNKNOWN", 0: "NO_ERROR", 6: "NOT_LEADER_FOR_PARTITION", 10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC", 39: "INVALID_REPLICATION_ASSIGNMENT",
}  # fmt: skip


def kafka_python_errors() -> dict[int, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module("kafka.errors")
    classes: list[Any] = [found for found in vars(module).values() if isinstance(found, type)]
    return {
        found.errno: found
        for found in classes
        if isinstance(getattr(found, "errno", None), int) and isinstance(getattr(found, "message", None), str)
    }


def test_numbers_names_and_retriable_are_kios() -> None:
    theirs = {code.value: (code.name, code.retriable) for code in KioErrorCode}
    assert {int(code): (code.name.lower(), code.retriable) for code in ErrorCode} == theirs


def test_numbers_and_names_are_kafka_pythons() -> None:
    theirs = kafka_python_errors()
    assert len(theirs) > 100
    for number, found in theirs.items():
        if number in OLDER_NAMES:
            assert found.message == OLDER_NAMES[number]
        else:
            assert found.message == error_name(number)
        if number != ErrorCode.CORRUPT_MESSAGE:  # there not retriable; in Java it is
            assert bool(found.retriable) == ErrorCode(number).retriable


RETRIABLE = {
    2, 3, 5, 6, 7, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 74, 75, 78, 88, 89, 100, 103, 106,
}  # fmt: skip
NOT_RETRIABLE = {
    -1, 0, 1, 10, 12, 17, 18, *range(21, 28), 29, 30, 31, 32, 35, *range(36, 41), 42, *range(44, 51), 53, 54,
    55, 58, 59, 68, 69, 73, 76, 79, 81, 82, 86, 87, 90, 110, 111, 112, 113, 120, 128, 129,
}  # fmt: skip


@pytest.mark.parametrize("code", sorted(RETRIABLE | NOT_RETRIABLE))
def test_retriable_as_in_java(code: int) -> None:
    assert ErrorCode(code).retriable == (code in RETRIABLE)


def test_names() -> None:
    assert int(ErrorCode.UNKNOWN_MEMBER_ID) == 25
    assert error_name(25) == "UNKNOWN_MEMBER_ID"
    assert error_name(-1) == "UNKNOWN_SERVER_ERROR"
    assert error_name(9999) == "UNKNOWN(9999)"


def test_a_code_as_an_exception() -> None:
    error = KafkaError(ErrorCode.NOT_COORDINATOR)
    assert (error.code, type(error.code), str(error)) == (16, int, "NOT_COORDINATOR")
    assert error.retriable
    fatal = KafkaError(24, "the group id is empty")
    assert str(fatal) == "INVALID_GROUP_ID: the group id is empty"
    assert fatal.detail == "the group id is empty"
    assert not fatal.retriable
    assert not KafkaError(9999).retriable


def test_a_text_for_an_answer_is_shortened_to_what_the_wire_can_carry() -> None:
    name = "\U0001f600" * 8_000
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
    assert error.detail.startswith("Topic '\U0001f600")
    assert error.detail.endswith("...")
    assert len(error.detail.encode()) < STRING_MAX
    assert len(str(error).encode()) < STRING_MAX


def test_malformed_says_where() -> None:
    error = MalformedError("HeartbeatRequest", 4, "group_id", 0, "cut off")
    assert isinstance(error, ValueError)
    assert (error.message, error.version, error.field, error.position, error.reason) == (
        "HeartbeatRequest",
        4,
        "group_id",
        0,
        "cut off",
    )
    assert str(error) == "HeartbeatRequest v4, field group_id, byte 0: cut off"
    assert str(MalformedError("RequestHeader", -1, "header", 3)) == (
        "RequestHeader, field header, byte 3: does not fit"
    )
    assert issubclass(EncodeError, ValueError)
