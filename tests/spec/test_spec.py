"""The specification of the consumer protocol holds, and TLC would notice if it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.tlc import SPEC, check

pytestmark = pytest.mark.xdist_group("tlc")


@pytest.mark.parametrize("config", ["small"])
def test_the_specification_holds(config: str) -> None:
    found = check(config)
    assert found.violated == ""
    assert (found.left, found.distinct > 1_000) == (0, True)


def test_requests_out_of_order_break_the_protocol() -> None:
    """It is what the specification says that the protocol rests on."""
    assert check("late").violated == "OwnersHoldWhatTheyOwn"


def test_a_fault_that_is_planted_is_found(tmp_path: Path) -> None:
    text, line = (SPEC / "ConsumerGroup.tla").read_text(), "\\A n \\in s.in \\ {m} : p \\notin Held(s, n)}"
    assert text.count(line) == 1
    spec = tmp_path / "ConsumerGroup.tla"
    spec.write_text(text.replace(line, "TRUE}"))
    assert check("small", spec=spec).violated == "NoPartitionHasTwoHolders"
