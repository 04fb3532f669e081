"""The specification of the consumer protocol holds, and TLC would notice if it did not."""

from __future__ import annotations

import pytest

from tests.spec.cases import HOLDS, PLANTED, found

pytestmark = [pytest.mark.xdist_group("tlc"), pytest.mark.timeout(600), pytest.mark.share]


@pytest.mark.parametrize("config", HOLDS)
def test_the_specification_holds(config: str) -> None:
    checked = found(config)
    assert checked.violated == ""
    assert (checked.left, checked.distinct > 1_000) == (0, True)


def test_requests_out_of_order_break_the_protocol() -> None:
    """It is what the specification says that the protocol rests on."""
    assert found("late").violated == "OwnersHoldWhatTheyOwn"


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_that_is_planted_is_found(fault: str) -> None:
    _, _, broken, config = PLANTED[fault]
    assert found(config, fault).violated == broken
