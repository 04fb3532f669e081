"""A broker's log says how members went, whatever was meant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from ringleader.insight.history import History
from ringleader.insight.model import Cause, Departure
from tests.incidents import __main__ as command
from tests.incidents import ledger
from tests.incidents.conclusions import HISTORY
from tests.incidents.drawn import ACTS, ENDED, WAITS, distinguishable, drawn, longest_s
from tests.incidents.ledger import Incident
from tests.incidents.team import SETTLE_S, Spec
from tests.incidents.truth import Went, corrected, logged

LOG = """\
2026-11-27 06:00:01,250 INFO [GroupCoordinator id=1] Member a-1 in group g has failed, removing it from the group. (x)
2026-11-27 06:00:02,000 INFO Group g removed dynamic members who haven't joined: [b-1, c-1] (x)
2026-11-27 06:00:03,000 INFO [Group g] Member d-1 has left group through explicit `LeaveGroup` request; client reason: the consumer is being closed (x)
2026-11-27 06:00:04,000 INFO [GroupId m] Member e fenced from the group because the member session expired. (x)
2026-11-27 06:00:05,000 INFO [GroupId m] Member f fenced from the group because it failed to transition from epoch 3 within 9000ms. (x)
2026-11-27 06:00:06,000 INFO [GroupId m] Member h left the consumer group. (x)
2026-11-27 06:00:07,000 INFO [GroupId m] Member h joins the consumer group using the consumer protocol. (x)
"""  # noqa: E501  # as it stands there


def test_a_log_says_how_each_member_went(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    found = list(logged(tmp_path / "log"))
    assert [(one.group, one.member_id, one.why) for one in found] == [
        ("g", "a-1", Departure.SESSION_EXPIRED),
        ("g", "b-1", Departure.NOT_REJOINED),
        ("g", "c-1", Departure.NOT_REJOINED),
        ("g", "d-1", Departure.LEFT),
        ("m", "e", Departure.SESSION_EXPIRED),
        ("m", "f", Departure.NOT_REJOINED),
        ("m", "h", Departure.LEFT),
    ]
    assert found[0].at_ms == datetime(2026, 11, 27, 6, 0, 1, 250_000).timestamp() * 1000


def _incident(departures: dict[str, list[Departure]], causes: list[Cause]) -> Incident:
    return Incident("g", "x", "x", "java", "range", "1 s", ["a"], 1_000, causes=causes, departures=departures)


def test_what_the_broker_saw_goes_over_what_was_meant() -> None:
    meant = _incident({"a": [Departure.SESSION_EXPIRED]}, [Cause.SESSION_EXPIRED])
    went = [
        Went(2_000, "g", "a-1", Departure.NOT_REJOINED),
        Went(2_500, "g", "b-1", Departure.SESSION_EXPIRED),
        Went(3_000, "other", "a-1", Departure.LEFT),
    ]
    [found] = corrected([meant], went, {"a-1": "a", "b-1": "b"})
    assert found.departures == {"a": [Departure.NOT_REJOINED], "b": [Departure.SESSION_EXPIRED]}
    assert Cause.POLL_INTERVAL_EXCEEDED in found.causes
    # Nobody ended its process: it joins again.
    assert {*found.also} == {Cause.SESSION_EXPIRED, Cause.MEMBER_JOINED, Cause.MEMBER_RESTARTED}
    assert found.client_ids == ["a", "b"]


def test_a_busy_member_that_left_was_busy() -> None:
    meant = _incident({"a": [Departure.POLL_INTERVAL_EXCEEDED]}, [Cause.POLL_INTERVAL_EXCEEDED])
    [found] = corrected([meant], [Went(2_000, "g", "a-1", Departure.LEFT)], {"a-1": "a"})
    assert found.departures["a"] == [Departure.LEFT, Departure.POLL_INTERVAL_EXCEEDED]


def test_a_number_draws_the_same_whatever_else_is_drawn(seed: int) -> None:
    assert drawn(seed, 7) == drawn(seed, 7)
    assert len({drawn(seed, number) for number in range(20)}) == 20


def test_the_time_limit_is_that_of_the_waits_that_were_drawn() -> None:
    short = Spec("a", "java", steps=("grow",))
    busy = Spec("b", "java", steps=("grow", "busy+stop"), session_ms=6_000, max_poll_ms=15_000)
    assert set(WAITS) == set(ACTS)
    assert longest_s([short], 1) == 2 * 3 * SETTLE_S
    assert longest_s([busy], 1) == 2 * (8 * SETTLE_S + 30)
    assert longest_s([short] * 12, 6) == 3 * 3 * SETTLE_S
    assert longest_s([short] * 12, 12) < longest_s([short] * 12, 6)


def test_a_run_that_is_cut_off_says_what_was_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def direct(target: str, specs: Sequence[Spec], *_: object) -> None:
        done = Incident(specs[0].name, ENDED, "all stop", "java", "range", "", [], 0, settled=False)
        ledger.write(tmp_path / "out" / "ledger.jsonl", [done])
        History.open(tmp_path / "out" / HISTORY).close()
        await asyncio.Event().wait()

    monkeypatch.setattr(command, "direct", direct)
    monkeypatch.setattr(command, "longest_s", lambda *_: 0.01)
    monkeypatch.setattr(command, "LONGEST_S", 0.01)
    monkeypatch.setattr(command, "disagreements", lambda *_: [])  # the history has no group
    assert command.main(["--drawn", "3", "--seed", "7", "--out", str(tmp_path / "out")]) == 2
    output = " ".join(capsys.readouterr().out.split())
    assert "not judged: 2 of 3 groups" in output
    assert [drawn(7, number).name in output for number in range(3)] == [False, True, True]
    assert "0 incidents; of 0 that something shows" in output


def test_commits_tell_departures_apart_where_their_silences_differ() -> None:
    rare = Spec("g", "java", session_ms=6_000, max_poll_ms=6_500, commit_ms=500)
    often = Spec("g", "java", session_ms=6_000, max_poll_ms=16_000, commit_ms=500)
    assert distinguishable(often, Departure.SESSION_EXPIRED)
    assert not distinguishable(rare, Departure.SESSION_EXPIRED)
    assert distinguishable(rare, Departure.LEFT)
    assert not distinguishable(Spec("g", "java", commit_ms=0), Departure.LEFT)
