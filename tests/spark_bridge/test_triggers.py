"""How long an idle source blocks Spark's calls, and triggers that are too far apart for the group."""

from __future__ import annotations

import pytest

from ringleader.spark_bridge.group.triggers import Idle, Triggers


def test_a_source_blocks_only_when_it_is_asked_again_at_once_and_never_beside_another() -> None:
    idle = Idle(0.25)
    waits, now_s = [], 0.0
    for _ in range(8):
        waits.append(idle.wait_s(now_s))
        now_s += waits[-1]
        idle.answered(now_s)
        now_s += 0.012
    assert waits == [0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25]
    assert idle.wait_s(now_s + 0.1) == 0.0, "a batch of another source"
    # Two of them, asked one after the other: a trigger waits for one of them at most.
    both, triggers = (Idle(0.25), Idle(0.25)), []
    for _ in range(40):
        began_s = now_s
        for one in both:
            now_s += one.wait_s(now_s)
            one.answered(now_s)
        triggers.append(now_s - began_s)
        now_s += 0.012
    assert max(triggers) == pytest.approx(0.25)
    assert triggers[-5:] == pytest.approx([0.25] * 5)


def test_long_holds_are_told_with_their_numbers(caplog: pytest.LogCaptureFixture) -> None:
    triggers = Triggers(10_000)
    triggers.called(0)
    triggers.forget()
    triggers.batch_committed(6_000)
    assert caplog.text == ""
    triggers.called(6_000)
    triggers.called(14_000)
    assert "up to 8000 ms (the last batch took 6000 ms" in caplog.text
    assert "every 8000 ms), and kafka.max.poll.interval.ms is 10000" in caplog.text
    caplog.clear()
    triggers.called(22_500)
    assert caplog.text == ""
    triggers.forget()
    triggers.batch_committed(13_000)
    assert "up to 13000 ms" in caplog.text


def test_spark_s_fast_polling_is_not_a_trigger_interval() -> None:
    triggers = Triggers(1_000)
    triggers.called(0)
    triggers.called(260)
    assert triggers.interval_ms is None
