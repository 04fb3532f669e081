"""How long a node serves that hears nothing: until the store tells, and never as long as its session."""

from __future__ import annotations

import pytest

from ringleader.coordinator.cluster.contact import PROVE_INTERVAL_S, Contact, Verdict

SESSION_S = 9.0
LIMIT_S = 6.0
"""Two thirds of it: what it serves has ended before others can have its partitions."""


@pytest.mark.parametrize(
    ("silence_s", "verdict"),
    [
        (0.0, Verdict.WELL),
        (LIMIT_S / 2 - 0.01, Verdict.WELL),
        (LIMIT_S / 2, Verdict.WAIT),
        (LIMIT_S - 0.01, Verdict.WAIT),
        (LIMIT_S, Verdict.CUT_OFF),
    ],
)
def test_no_broker_answers(silence_s: float, verdict: Verdict) -> None:
    contact = Contact(SESSION_S)
    contact.heard(100.0)
    assert contact.look(silence_s, 100.0 + silence_s) is verdict
    assert contact.cut_off == (verdict is Verdict.CUT_OFF)


def test_the_store_is_asked_now_and_then_while_only_the_nodes_group_is_silent() -> None:
    contact = Contact(SESSION_S)
    contact.heard(100.0)
    contact.proved(100.0)
    assert contact.look(LIMIT_S, 100.0 + PROVE_INTERVAL_S - 0.01) is Verdict.WAIT
    assert contact.look(LIMIT_S, 100.0 + PROVE_INTERVAL_S) is Verdict.PROVE
    contact.proved(100.0 + PROVE_INTERVAL_S)
    assert contact.look(2 * SESSION_S, 100.0 + 1.5 * PROVE_INTERVAL_S) is Verdict.WAIT


def test_what_the_nodes_group_said_is_a_broker_s_answer_too() -> None:
    contact = Contact(SESSION_S)
    contact.heard(100.0)
    assert contact.look(LIMIT_S / 2 - 0.01, 110.0) is Verdict.WELL
    assert contact.look(LIMIT_S + 0.01, 110.0 + LIMIT_S / 2 + 0.02) is Verdict.PROVE


def test_a_node_that_was_cut_off_is_told_once_that_it_is_back() -> None:
    contact = Contact(SESSION_S)
    contact.heard(100.0)
    assert contact.look(LIMIT_S, 100.0 + LIMIT_S) is Verdict.CUT_OFF
    assert contact.look(SESSION_S, 100.0 + SESSION_S) is Verdict.WAIT
    assert contact.look(0.0, 110.0) is Verdict.BACK
    assert contact.look(0.0, 110.0) is Verdict.WELL
