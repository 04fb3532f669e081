"""All states of a small world of the consumer protocol, to a small depth; deeper: `make small-worlds`."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups.reconciliation import reconcile
from tests.simulation.small.world import SmallWorld, SmallWorldError

DEPTH = 6
FROM_FORMED = 3


@pytest.mark.parametrize(("formed", "depth"), [(False, DEPTH), (True, FROM_FORMED)])
def test_every_state_of_a_small_world_holds_all_invariants(formed: bool, depth: int) -> None:
    found = SmallWorld(settles_every=10, formed=formed).search(depth)
    assert found.whole
    assert found.states > 500
    faults = {"request-lost", "answer-lost", "repeats", "is-removed", "fails-over", "deleted", "grows"}
    assert faults <= set(found.kinds)


def test_a_coordinator_that_gives_out_what_another_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(*given: object, **named: object) -> object:
        current, target, epoch, subscribed, _, owned = given
        return reconcile(current, target, epoch, subscribed, lambda *_: False, owned, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("ringleader.coordinator.groups.consumer.reconcile", hasty)
    with pytest.raises(SmallWorldError, match=r"S1: .*two holders(.|\n)*after: m0 comes"):
        SmallWorld(settles_every=10**9).search(DEPTH)
