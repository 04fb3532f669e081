"""Offsets that expire, commits that do not move, static members that are refused: each is found in a history
that has it, and in none that looks like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ringleader.coordinator.journal.entries import Incident, IncidentKind
from ringleader.coordinator.journal.record import JournalRecords
from ringleader.insight.advice import Finding, Past, Pattern, advise
from ringleader.insight.history import History
from ringleader.insight.inference import journal
from ringleader.insight.model import (
    Commit,
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    Kind,
    Lag,
)
from ringleader.protocol.errors import ErrorCode
from tests.insight.made import Made
from tests.insight.made_group import Group

NAMES = ("app-0", "app-1")
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
STANDING = 3
"""The partition whose offset is committed again and again."""

Script = Callable[[Made], object]


def past_of(path: Path, script: Script, retention_ms: int | None = None) -> Past:
    with Made(path / "one.sqlite", exact=True) as made:
        script(made)
    if retention_ms is not None:
        with History.open(path / "one.sqlite") as history:
            history.tell_retention(retention_ms)
    with History.open(path / "one.sqlite", read_only=True) as history:
        return Past.read(history, "orders", made.now_ms - DAY_MS, made.now_ms)


def found_in(past: Past) -> Finding | None:
    """The one finding, if there is any."""
    findings = [one for one in advise(past).findings if one.pattern is not Pattern.EAGER]
    assert len(findings) <= 1, [one.text for one in findings]
    for one in findings:
        assert one.evidence
        assert one.changes
        assert one.since_ms <= one.until_ms
    return findings[0] if findings else None


# ---- offsets that expire ----


def empty_for(days: float, kind: Kind = Kind.CLASSIC) -> Script:
    def script(made: Made) -> None:
        group = made.group("orders", {"orders": 4}, NAMES, kind=kind)
        made.wait(60)
        group.leave(*NAMES)
        made.now_ms += round(days * DAY_MS)

    return script


@pytest.mark.parametrize("kind", [Kind.CLASSIC, Kind.CONSUMER])
@pytest.mark.parametrize(("days", "is_found"), [(4.9, False), (5.1, True), (6.9, True), (7.1, False)])
def test_offsets_of_a_group_without_members_expire_after_a_week(
    tmp_path: Path, kind: Kind, days: float, is_found: bool
) -> None:
    found = found_in(past_of(tmp_path, empty_for(days, kind)))
    assert (found is not None) == is_found
    if found is not None:
        assert found.pattern is Pattern.OFFSETS_EXPIRE
        assert found.confidence is Confidence.LIKELY
        assert "by default" in " ".join(found.evidence)
        assert found.changes[1].now == "10080"


def test_the_brokers_own_retention_counts_where_it_is_known(tmp_path: Path) -> None:
    day = found_in(past_of(tmp_path, empty_for(0.5), DAY_MS))
    assert day is not None
    assert (day.pattern, day.confidence) == (Pattern.OFFSETS_EXPIRE, Confidence.CERTAIN)
    assert "by default" not in " ".join(day.evidence)
    assert day.changes[1].now == "1440"
    assert found_in(past_of(tmp_path / "month", empty_for(5.5), 30 * DAY_MS)) is None


def test_a_classic_group_keeps_its_offsets_from_its_end_on_not_from_its_last_commit(tmp_path: Path) -> None:
    past = past_of(tmp_path, empty_for(3))
    old = {tp: one._replace(at_ms=one.at_ms - 3 * DAY_MS) for tp, one in past.offsets.items()}
    assert found_in(replace(past, offsets=old)) is None
    state = past.state
    assert state is not None
    for changed in (state._replace(kind=Kind.CONSUMER), state._replace(protocol_type="")):
        found = found_in(replace(past, offsets=old, state=changed))
        assert found is not None, "of the consumer protocol, and without members ever: from the commit on"
        assert found.pattern is Pattern.OFFSETS_EXPIRE


def test_a_group_with_members_and_one_whose_offsets_are_gone_lose_nothing(tmp_path: Path) -> None:
    def works(made: Made) -> None:
        made.group("orders", {"orders": 4}, NAMES)
        made.wait(60)
        made.now_ms += 6 * DAY_MS

    def deleted(made: Made) -> None:
        empty_for(5.9)(made)
        made.event(EventKind.OFFSETS_DELETED, "4 partitions", "orders")

    works_still = past_of(tmp_path / "works", works)
    offsets = {("orders", 0): Commit("orders", "orders", 0, works_still.until_ms - 6 * DAY_MS, 1)}
    assert found_in(replace(works_still, offsets=offsets)) is None
    assert found_in(past_of(tmp_path / "deleted", deleted)) is None


# ---- commits that do not move ----


def stands(minutes: float, *, grows: bool = True, moves: bool = False, ends: float = 0) -> Script:
    """One partition's offset is committed every 10 s, the same unless it `moves`, for so many minutes, and
    then for `ends` more not at all; its end `grows`."""

    def script(made: Made) -> None:
        group: Group = made.group("orders", {"orders": 4}, NAMES)
        made.wait(60)
        del made.groups["orders"]  # from here on it works as written below
        for step in range(round(minutes * 6)):
            made.now_ms += 10_000
            for partition in range(4):
                still = partition == STANDING and not moves
                offset = 10_000 if still else 10_000 + 10 * step
                end = 10_005 + (10 * step if grows or not still else 0)
                made.add(Commit("orders", "orders", partition, made.now_ms, offset))
                made.add(Lag("orders", "orders", partition, made.now_ms, end, offset))
        made.now_ms += round(ends * MINUTE_MS)
        made.groups["orders"] = group

    return script


def test_a_partition_that_is_committed_and_does_not_move_is_found(tmp_path: Path) -> None:
    found = found_in(past_of(tmp_path, stands(6)))
    assert found is not None
    assert found.pattern is Pattern.COMMITS_STAND
    assert found.confidence is Confidence.LIKELY
    assert len(found.members) == 1
    assert len(found.evidence) == 1
    assert "orders-3: offset 10,000 was committed 36 times" in found.evidence[0]


@pytest.mark.parametrize(
    "script",
    [stands(4), stands(6, grows=False), stands(6, moves=True), stands(6, ends=5)],
    ids=["for a short time", "with nothing to read", "moving", "commits have stopped"],
)
def test_a_group_that_stands_for_a_reason_or_moves_is_healthy(tmp_path: Path, script: Script) -> None:
    found = found_in(past_of(tmp_path, script))
    assert found is None or found.pattern is Pattern.COMMITS_STOPPED


# ---- static members that are refused ----


def refused(error: str, *, expires: bool) -> Script:
    def script(made: Made) -> None:
        group = made.group("orders", {"orders": 4}, NAMES, static=True, kind=Kind.CONSUMER)
        made.wait(60)
        for _ in range(3):
            made.wait(10)
            made.event(EventKind.JOIN_REFUSED, "As the journal words it.", "orders", "app-1", error)
        if expires:
            group.crash("app-1")
        made.wait(60)

    return script


@pytest.mark.parametrize("expires", [True, False])
def test_a_static_member_that_must_wait_for_its_former_session_is_found(
    tmp_path: Path, expires: bool
) -> None:
    found = found_in(past_of(tmp_path, refused("UNRELEASED_INSTANCE_ID", expires=expires)))
    assert found is not None
    assert found.pattern is Pattern.STATIC_REFUSED
    assert found.confidence is (Confidence.CERTAIN if expires else Confidence.LIKELY)
    assert found.members == ("app-1",)
    assert "the former process" in found.evidence[0]
    assert found.changes[0].setting == "consumer.session.timeout.ms"


def test_the_journal_of_the_daemon_tells_of_the_refusal(tmp_path: Path) -> None:
    """In the fields that the finding is made from."""
    incident = Incident(
        "orders", IncidentKind.JOIN_REFUSED, 1_000, client_host="/h", group_instance_id="app-1",
        error=ErrorCode.UNRELEASED_INSTANCE_ID, principal="User:app",
    )  # fmt: skip
    decoded = journal.decode(0, 7, *JournalRecords().row(incident, 3))
    assert decoded is not None
    assert isinstance(decoded.entry, Event)
    found = found_in(Past("orders", 0, 2_000, events=[decoded.entry]))
    assert found is not None
    assert (found.pattern, found.members) == (Pattern.STATIC_REFUSED, ("app-1",))


def test_another_refusal_is_another_matter(tmp_path: Path) -> None:
    assert found_in(past_of(tmp_path, refused("GROUP_MAX_SIZE_REACHED", expires=False))) is None


@pytest.mark.parametrize(("silent_ms", "is_found"), [(9_999, False), (10_000, True)])
def test_a_static_member_that_stood_still_and_was_replaced_is_found(
    tmp_path: Path, silent_ms: int, is_found: bool
) -> None:
    def script(made: Made) -> None:
        group = made.group("orders", {"orders": 4}, NAMES, static=True)
        made.wait(60)
        group.fence("app-1")
        made.wait(60)

    past = past_of(tmp_path, script)
    *before, fenced = past.rebalances
    departed = {
        one: DepartureFinding(Departure.FENCED, Confidence.EXACT, silent_ms, ("x",)) for one in fenced.left
    }
    found = found_in(replace(past, rebalances=[*before, replace(fenced, left=departed)]))
    assert (found is not None) == is_found
    if found is not None:
        assert (found.pattern, found.confidence) == (Pattern.STATIC_REFUSED, Confidence.CERTAIN)
        assert "FENCED_INSTANCE_ID" in found.evidence[0]
