"""A request that cannot be served is refused in the form of its API, in every version."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from ringleader.coordinator.security.principal import ANONYMOUS
from ringleader.coordinator.server.call import Answerable, Call
from ringleader.coordinator.server.gather import Gather, Part
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import request_class, response_class
from ringleader.protocol.refusals import refusal
from ringleader.protocol.schema import Message
from tests.support.listening import listener_at
from tests.support.wire_reference import full

KEYS = [8, 9, 10, 11, 12, 13, 14, 15, 16, 22, 24, 25, 26, 28, 42, 47]
PAIRS = [
    (key, version)
    for key in KEYS
    if (kind := request_class(key)) is not None
    for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
]
CODE = int(ErrorCode.NOT_COORDINATOR)


def codes(value: Any) -> list[int]:
    """All error codes of a message."""
    found = []
    for field in fields(value):
        inner = getattr(value, field.name)
        if field.name.endswith("error_code"):
            found.append(inner)
        elif isinstance(inner, list):
            for one in inner:
                found += codes(one) if is_dataclass(one) else []
    return found


@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_every_version_has_a_place_for_the_code(key: int, version: int) -> None:
    kind, response = request_class(key), response_class(key)
    assert kind is not None
    assert response is not None
    request = full(kind, version)
    decoded = response.decode(refusal(request, version, CODE).encode(version), version)
    assert CODE in codes(decoded)
    assert set(codes(decoded)) <= {0, CODE}, "a level that has its own code may have none"


class Ended(Answerable):
    """A connection that keeps what came of a call."""

    principal = ANONYMOUS
    listener = listener_at()

    def __init__(self) -> None:
        self.response: Message | None = None
        self.closed = False

    def call_answered(self, call: Call, response: Any) -> None:
        """See `Answerable`."""
        self.response = response

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("nobody makes frames here")

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        self.closed = True


def gathered(parts: int) -> tuple[Ended, Call, Gather, list[Part], list[Part]]:
    """A request whose parts all wait: its parts, and those whose peer went away."""
    ended = Ended()
    call = Call(ended, 15, 5, 1, "client", "/127.0.0.1")
    gather = Gather(call, tuple)
    waiting: list[Part] = []
    dropped: list[Part] = []
    for _ in range(parts):
        gather.add(waiting.append, lambda code: f"refused {code}", dropped.append)
    return ended, call, gather, waiting, dropped


def test_a_part_is_refused_in_its_own_form() -> None:
    ended, _, gather, waiting, _ = gathered(3)
    waiting[1].refuse(CODE)
    assert gather.answer() is None
    waiting[2].answer("two")
    assert ended.response is None
    waiting[0].answer("zero")
    assert ended.response == ("zero", f"refused {CODE}", "two")


def test_parts_that_are_answered_before_the_last_is_asked_for_answer_nothing_yet() -> None:
    ended, _, gather, waiting, _ = gathered(2)
    for part in waiting:
        part.answer("early")
    assert ended.response is None
    assert gather.answer() == ("early", "early")


def test_parts_of_a_peer_that_is_gone_are_let_go() -> None:
    ended, call, _, waiting, dropped = gathered(3)
    waiting[0].answer("zero")
    call.dropped()
    assert dropped == waiting[1:]
    for part in waiting:
        part.refuse(CODE)
    assert ended.response is None


def test_a_part_without_an_answer_closes_the_connection() -> None:
    ended, _, gather, waiting, _ = gathered(2)
    assert gather.answer() is None
    waiting[0].answer(None)
    assert ended.closed
