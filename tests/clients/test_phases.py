"""The table of a member's phases."""

from __future__ import annotations

import pytest

from ringleader.clients.group.machine.classic import classic
from ringleader.clients.group.machine.phases import OVER, TRANSITIONS, Phase, PhaseError
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import MemberProtocol

EVERY = [(old, new) for old in Phase for new in Phase]


@pytest.mark.parametrize(("old", "new"), EVERY, ids=lambda phase: phase.name)
def test_a_member_goes_on_by_the_table_alone(old: Phase, new: Phase) -> None:
    state = classic(MemberSettings(group_id="g"), [MemberProtocol("even")], lambda: 0.5)
    state.phase = old
    if new is old or new in TRANSITIONS[old]:
        state.enter(new)
        assert state.phase is new
    else:
        with pytest.raises(PhaseError, match=f"group 'g': a member went from {old.name} to {new.name}"):
            state.enter(new)
        assert state.phase is old


def test_every_phase_is_reached_and_all_come_to_an_end() -> None:
    reached = {Phase.NEW}
    while more := {new for old in reached for new in TRANSITIONS[old]} - reached:
        reached |= more
    assert reached == set(Phase) == set(TRANSITIONS)
    for phase in set(Phase) - set(OVER):
        assert Phase.FAILED in TRANSITIONS[phase], phase
        assert Phase.LEAVING in TRANSITIONS[phase] or phase is Phase.LEAVING
