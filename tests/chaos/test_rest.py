"""Schedules, causes of rebalances, and histories."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chaos.account import gaps, unexcused
from tests.chaos.checks import Commit
from tests.chaos.history import FAILED, OK, OPEN, UNKNOWN, History, read
from tests.chaos.rebalances import AFTER_S, Seen, Struck, reasons, rebalances
from tests.chaos.schedule import PAUSE, VICTIMS, WAYS, draw


def test_a_seed_draws_the_same_faults_and_another_one_others() -> None:
    assert draw(1, 30) == draw(1, 30)
    assert draw(1, 30) != draw(2, 30)


@pytest.mark.parametrize("seed", range(20))
def test_every_victim_is_struck_in_every_way(seed: int) -> None:
    faults = draw(seed, 30)
    counted = Counter((fault.victim, fault.how) for fault in faults)
    assert set(counted) == {(victim, how) for victim in VICTIMS for how in WAYS}
    assert set(counted.values()) <= {2, 3}
    assert all(1.0 <= fault.seconds <= 60.0 for fault in faults if fault.how == PAUSE)


def test_two_faults_that_come_together_strike_a_node_and_a_broker() -> None:
    together = 0
    for seed in range(20):
        for one, following in pairwise(draw(seed, 30)):
            if following.together:
                together += 1
                assert not one.together
                assert {one.layer, following.layer} == {"node", "broker"}
    assert together > 20
    assert not any(fault.together for fault in draw(1, 100, layers=1))


def fault(began_s: float, how: str, layer: str = "node") -> Struck:
    return Struck(1, layer, "owner", how, "node 1", began_s, began_s + 5)


def test_rebalances_are_counted_once_and_have_their_faults() -> None:
    seen = [
        Seen("g", 1, "a", 0),
        Seen("g", 1, "b", 1),
        Seen("g", 2, "a", 100),
        Seen("g", 2, "b", 101),
        Seen("g", 3, "a", 200),
        Seen("h", 7, "c", 50),
    ]
    faults = [fault(98, "kill"), fault(199, "pause"), fault(198, "stop", "broker")]
    log = (
        "t [info] rebalance: group 'g' generation 2 stable; after 3 ms (join 2); because member left (m); x\n"
        "t [info] rebalance: group 'g' generation 3 empty; after 3 ms\n"
    )
    found = rebalances(seen, faults, 10, reasons(log))
    assert [one.why for one in found] == ["", "member left (m)", ""]
    assert [(one.group, one.generation, one.cause) for one in found] == [
        ("h", 7, "no fault"),
        ("g", 2, "kill of a node"),
        ("g", 3, "stop of a broker and pause of a node"),
    ]
    assert [why.split(" at ")[0] for why in unexcused(found, ["g"])] == ["g went to generation 2"]
    assert len(unexcused(found, ["g", "h"])) == 2
    [late] = rebalances(
        [Seen("g", 1, "a", 0), Seen("g", 2, "a", 103 + AFTER_S + 1)], [fault(98, "kill")], 10, {}
    )
    assert late.cause == "no fault"


def test_a_pause_longer_than_a_session_is_why_the_group_rebalances_next() -> None:
    pause = Struck(1, "node", "owner", "pause", "node 1", 100, 151)
    seen = [Seen("g", generation, "a", at_s) for generation, at_s in enumerate((0, 300, 400))]
    assert [one.cause for one in rebalances(seen, [pause], 10, {})] == ["pause of a node", "no fault"]
    short = replace(pause, ended_s=130.0)
    assert [one.cause for one in rebalances(seen, [short], 10, {})] == ["no fault", "no fault"]


def test_the_time_without_an_acknowledged_commit_is_that_of_the_group_which_waits_longest() -> None:
    commits = [
        Commit((group, "records:0"), 1, "", "w", at_s - 1, at_s, end)
        for group, times in {"a": [1, 2, 9, 10], "b": [1, 5, 10]}.items()
        for at_s, end in [*((float(at_s), OK) for at_s in times), (4.0, UNKNOWN)]
    ]
    assert gaps(commits, ["a", "b"], [fault(3, "kill"), fault(9.5, "kill")]) == [7.0, 5.0]
    assert gaps(commits, ["b"], [fault(2, "kill")]) == [5.0]


def test_a_history_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "someone.jsonl"
    with History(path) as history:
        first, second = history.begin("commit", 5, offsets={"t:0": 1}), history.begin("poll", 5)
        history.saw("assigned", partitions=[1])
        second.unknown("lost")
        first.ok(more=2)
        history.begin("poll", 5).failed("refused")
        history.begin("poll", 5)
    with path.open("a") as file:
        file.write('{"t": 1, "did": "cut o')
    found = read(path)
    assert found.client == "someone"
    assert [(call.what, call.end) for call in found.calls] == [
        ("commit", OK),
        ("poll", UNKNOWN),
        ("poll", FAILED),
        ("poll", OPEN),
    ]
    assert found.calls[0].request["offsets"] == {"t:0": 1}
    assert found.calls[0].answer["more"] == 2
    assert found.calls[0].began_s <= found.calls[1].ended_s <= found.calls[0].ended_s <= found.last_s
    assert [line["partitions"] for line in found.lines] == [[1]]
