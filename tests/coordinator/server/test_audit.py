"""Refusals are logged once per connection, and never so often that they fill a log."""

from __future__ import annotations

import tracemalloc
from typing import Any

from ringleader.coordinator.journal.entries import ChangeRecord
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.audit import (
    CONNECTIONS,
    LINES_PER_CONNECTION,
    LINES_PER_SECOND,
    Audit,
)
from ringleader.coordinator.server.call import Answerable, Call
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import JoinGroupRequest
from tests.support.listening import listener_at

READ, TOPIC, GROUP = Operation.READ, ResourceType.TOPIC, ResourceType.GROUP


class Lines(list[dict[str, Any]]):
    """A log."""

    def info(self, event: str, **fields: Any) -> None:
        """A line of it."""
        self.append({"event": event, **fields})


class Peer(Answerable):
    """A connection, of which its name is asked."""

    principal = Principal("User", "mallory")
    listener = listener_at()

    def call_answered(self, call: Call, response: Any) -> None:
        """See `Answerable`."""

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""

    def call(self, request: Any = None) -> Call:
        """A request of it."""
        return Call(self, 3, 9, 1, "client", "/127.0.0.1", request)


def test_the_same_refusal_is_told_once_per_connection() -> None:
    lines = Lines()
    journal: list[ChangeRecord] = []
    audit = Audit(lines, lambda: 0, lambda: 7, journal.append)  # type: ignore[arg-type]
    one, other = Peer(), Peer()
    for peer in (one, one, other, one):
        audit.refused(peer.call(), READ, TOPIC, "orders")
    audit.refused(one.call(), READ, TOPIC, "invoices")
    assert lines[0] == {
        "event": "refused",
        "principal": "User:mallory",
        "host": "127.0.0.1",
        "client_id": "client",
        "operation": "READ",
        "resource": "TOPIC orders",
    }
    assert [line["resource"] for line in lines] == ["TOPIC orders", "TOPIC orders", "TOPIC invoices"]
    # The journal's writer counts what comes again.
    assert [deed.subject for deed in journal] == ["TOPIC orders"] * 4 + ["TOPIC invoices"]
    assert (journal[0].event, journal[0].detail, journal[0].principal) == ("refused", "READ", "User:mallory")


def test_a_refused_join_says_of_whom_and_where() -> None:
    journal: list[ChangeRecord] = []
    audit = Audit(Lines(), lambda: 0, lambda: 7, journal.append)  # type: ignore[arg-type]
    audit.refused(Peer().call(JoinGroupRequest(group_id="billing", member_id="m-1")), READ, GROUP, "billing")
    [deed] = journal
    assert (deed.event, deed.group_id, deed.member_id) == ("join refused", "billing", "m-1")
    assert deed.error == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_every_change_is_a_line_and_a_record() -> None:
    lines, journal = Lines(), list[ChangeRecord]()
    audit = Audit(lines, lambda: 0, lambda: 7, journal.append)  # type: ignore[arg-type]
    for _ in range(2):
        audit.changed(Peer().call(), "topic created", "orders", "3 partitions")
    assert lines[0] == {
        "event": "topic created",
        "principal": "User:mallory",
        "host": "127.0.0.1",
        "client_id": "client",
        "subject": "orders",
        "detail": "3 partitions",
    }
    assert len(lines) == len(journal) == 2
    audit.changed(Peer().call(), "topic deleted", "\x1b[2J" * 1_000)
    assert len(journal[-1].subject) < 2_000
    assert "\x1b" not in lines[-1]["subject"]


def test_one_connection_gets_so_many_lines_and_all_together_so_many_a_second() -> None:
    lines = Lines()
    now_ms = 0
    audit = Audit(lines, lambda: now_ms)  # type: ignore[arg-type]
    peers = [Peer() for _ in range(3)]
    for number in range(100):
        audit.refused(peers[0].call(), READ, TOPIC, str(number))
    assert len(lines) == min(LINES_PER_CONNECTION, LINES_PER_SECOND)
    for number in range(5):
        audit.refused(peers[1].call(), READ, TOPIC, str(number))
    assert len(lines) == LINES_PER_SECOND
    now_ms = 1_000
    audit.refused(peers[1].call(), READ, TOPIC, "orders")
    assert lines[-1]["left_out_before"] == 5
    audit.refused(peers[1].call(), READ, TOPIC, "invoices")
    assert "left_out_before" not in lines[-1]


def test_few_connections_are_remembered() -> None:
    audit = Audit(Lines(), lambda: 0)  # type: ignore[arg-type]
    for _ in range(CONNECTIONS + 10):
        audit.refused(Peer().call(), READ, TOPIC, "orders")
    assert len(audit._logged) == CONNECTIONS


def test_names_that_were_refused_take_little_memory_however_long_they_are() -> None:
    audit = Audit(Lines(), lambda: 0)  # type: ignore[arg-type]
    peer = Peer()
    tracemalloc.start()
    try:
        for number in range(10, 10 + LINES_PER_CONNECTION):
            audit.refused(peer.call(), READ, GROUP, f"{number}" * 100_000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 1_000_000
