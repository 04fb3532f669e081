"""Branches that are said to be out of reach exist, and those that a seed takes are counted."""

from __future__ import annotations

from tests.simulation.reached import MACHINES, Reached, Way, branches, explained, files_of, play


def test_every_branch_that_is_explained_is_there() -> None:
    ways = {one.way for machine in MACHINES for file in files_of(machine) for one in branches(file)}
    assert ways
    assert all(explained().values())
    assert explained().keys() <= ways


def test_a_seed_reaches_some_ways_of_the_machine_and_not_all() -> None:
    files = files_of("groups")
    with Reached(files) as reached:
        play("groups", 3)
    every = [one.way for file in files for one in branches(file)]
    missing = reached.missing()
    assert 0 < len(missing) < len(every) / 2
    assert reached.transitions["Empty", "PreparingRebalance"]
    assert reached.codes["JoinGroupRequest", "NONE"]
    place = "coordinator.groups.states:check_transition", "new not in TRANSITIONS[old]"
    assert Way(*place, "holds") in missing
    assert Way(*place, "fails") not in missing
