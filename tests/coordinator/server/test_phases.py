"""The table of a session's phases; the other tests of this folder go through them over sockets."""

from __future__ import annotations

import pytest

from ringleader.coordinator.server.phases import TRANSITIONS, IllegalTransitionError, Phase, check_transition


def test_every_phase_has_its_transitions_and_ends() -> None:
    assert set(TRANSITIONS) == set(Phase)
    reached = {Phase.ACCEPTED}
    for _ in Phase:
        reached |= {new for old in reached for new in TRANSITIONS[old]}
    assert reached == set(Phase)
    assert all(Phase.CLOSED in found for old, found in TRANSITIONS.items() if old is not Phase.CLOSED)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Phase.ACCEPTED, Phase.NODE),
        (Phase.FAILED, Phase.OPEN),
        (Phase.SASL, Phase.RENEWING),
        (Phase.CLOSED, Phase.OPEN),
    ],
)
def test_a_transition_that_is_not_in_the_table_is_a_fault(old: Phase, new: Phase) -> None:
    with pytest.raises(IllegalTransitionError, match=f"{old.value} -> {new.value}"):
        check_transition(old, new)
