"""The specification of the consumer protocol holds, and TLC would notice if it did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.tlc import SPEC, check

pytestmark = [pytest.mark.xdist_group("tlc"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("config", ["small", "topics"])
def test_the_specification_holds(config: str) -> None:
    found = check(config)
    assert found.violated == ""
    assert (found.left, found.distinct > 1_000) == (0, True)


def test_requests_out_of_order_break_the_protocol() -> None:
    """It is what the specification says that the protocol rests on."""
    assert check("late").violated == "OwnersHoldWhatTheyOwn"


PLANTED = {
    "a partition is given away while another member has it": (
        "\\A n \\in s.in \\ {m} : p \\notin Held(s, n)}",
        "TRUE}",
        "NoPartitionHasTwoHolders",
        "small",
    ),
    "a heartbeat's answer waits for nothing": (
        "all |-> Of(s.got[m]), after |-> ToTheGroups(lag')]]",
        "all |-> Of(s.got[m]), after |-> 0]]",
        "AnswersShowWhatIsDurable",
        "small",
    ),
    "a commit's answer waits for what a heartbeat's waits for": (
        "answered(TRUE, Len(lag'))",
        "answered(TRUE, ToTheGroups(lag'))",
        "AnswersShowWhatIsDurable",
        "small",
    ),
    "commits of former owners count": (
        "IF MayCommit(mem, m, r.p, r.epoch)",
        "IF TRUE",
        "CommitsGoOn",
        "small",
    ),
    "no epoch begins when topics change": (
        "[s EXCEPT !.epoch = @ + 1, !.seen = there]",
        "[s EXCEPT !.seen = there]",
        "TargetsAreWhole",
        "topics",
    ),
    "a partition that is deleted is given": (
        "wanted == s.target[m] \\cap there",
        "wanted == s.target[m]",
        "OnlyWhatExistsIsGiven",
        "topics",
    ),
    "a fetch shows commits that a fail-over may take back": (
        "[client EXCEPT ![m].blind = @ \\ {p}, ![m].pos[p] = disk.off[p]]",
        "[client EXCEPT ![m].blind = @ \\ {p}, ![m].pos[p] = mem.off[p]]",
        "AnswersShowWhatIsDurable",
        "small",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_fault_that_is_planted_is_found(what: str, tmp_path: Path) -> None:
    right, wrong, broken, config = PLANTED[what]
    text = (SPEC / "ConsumerGroup.tla").read_text()
    assert text.count(right) == 1
    spec = tmp_path / "ConsumerGroup.tla"
    spec.write_text(text.replace(right, wrong))
    assert check(config, spec=spec).violated == broken
