"""A record that the group machine itself made comes out again when it is played; what cannot be, says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ringleader.insight.advice.past import Past
from ringleader.insight.advice.replay import NothingToReplayError, Policy, Replay
from ringleader.insight.advice.replay.policy import AS_IT_WAS
from ringleader.insight.advice.replay.script import script_of
from ringleader.insight.advice.replay.world import World
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    Member,
    Outcome,
    Rebalance,
)
from tests.insight.advice.test_patterns import (
    NAMES,
    comes_back,
    deploy,
    flapping,
    orders,
    past_of,
    scaling,
    slow_joiner,
    slow_leader,
    slow_poll,
    storm,
    zombies,
)
from tests.insight.made import Made

SCRIPTS = (deploy, flapping, slow_poll, slow_leader, slow_joiner, scaling, storm, zombies)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_played_as_it_was_every_recorded_rebalance_comes_out_again(
    tmp_path: Path, script: Callable[[Made], object]
) -> None:
    player = Replay(past_of(tmp_path, script))
    recorded, replayed = player.script.rebalances, player.as_it_was.rebalances
    assert player.confidence is Confidence.LIKELY
    assert len(replayed) == player.reproduced == len(recorded)
    for one, other in zip(recorded, replayed, strict=True):
        assert abs(one.at_ms - other.at_ms) < 3_000
        assert len(one.members) == len(other.entry.members_after)


@pytest.mark.parametrize(
    "script", [one for one in SCRIPTS if one not in (slow_leader, slow_joiner)], ids=lambda one: one.__name__
)
def test_without_the_phases_it_comes_out_again_all_the_same(
    tmp_path: Path, script: Callable[[Made], object]
) -> None:
    """As a cluster's own record has it when nobody polled."""
    past = past_of(tmp_path, script)
    nothing = {"began_ms": None, "join_ms": None, "leader_ms": None, "sync_ms": None, "join_last_member": ""}
    bare = [replace(one, **nothing) for one in past.rebalances]  # type: ignore[arg-type]
    player = Replay(replace(past, rebalances=bare))
    assert player.confidence is Confidence.LIKELY
    assert player.reproduced == len(player.script.rebalances)


def test_the_same_record_gives_the_same_replay(tmp_path: Path) -> None:
    past = past_of(tmp_path, scaling)
    policy = Policy("", assignor="cooperative-sticky")
    one, other = (World(script_of(past), policy).play() for _ in range(2))
    assert one == other


def test_fewer_members_do_not_begin_at_all(tmp_path: Path) -> None:
    player = Replay(past_of(tmp_path, scaling))
    assert player.saving(Policy("", members=6)).rebalances == 1
    assert player.saving(Policy("", stays_ms=180_000)).rebalances < len(player.script.rebalances)


def test_a_slow_member_of_a_cooperative_group_stops_nobody(tmp_path: Path) -> None:
    player = Replay(past_of(tmp_path, slow_joiner))
    saving = player.saving(Policy("", assignor="cooperative-sticky"))
    assert saving.unowned_ms < saving.unowned_as_was_ms / 10


def test_a_member_that_leaves_gives_its_partitions_up_at_once(tmp_path: Path) -> None:
    saving = Replay(past_of(tmp_path, zombies)).saving(Policy("", leaves=True))
    # Six times two partitions for the session of 45 s.
    assert saving.saved_ms == pytest.approx(6 * 2 * 45_000, rel=0.1)


def test_a_static_member_that_takes_its_place_makes_no_rebalance(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = orders(made, static=True)
        made.wait(60)
        group.leader_rejoins()
        made.wait(600)

    past = past_of(tmp_path, script)
    last = past.rebalances[-1]
    old = last.members[2]
    new = old._replace(member_id="anew")
    taken = replace(
        last,
        id="offsets-0-999",
        at_ms=last.at_ms + 60_000,
        began_ms=last.at_ms + 59_000,
        cause=Cause.STATIC_MEMBER_REPLACED,
        cause_members=(old.member_id, new.member_id),
        joined=(new.member_id,),
        left={old.member_id: DepartureFinding(Departure.RESTARTED, Confidence.EXACT)},
        before=last.members,
        members=tuple(new if one is old else one for one in last.members),
    )
    after = replace(
        taken,
        id="offsets-0-1000",
        generation=last.generation + 1,
        at_ms=last.at_ms + 300_000,
        began_ms=last.at_ms + 299_000,
        cause=Cause.LEADER_REJOINED,
        cause_members=(last.leader,),
        joined=(),
        left={},
        before=taken.members,
    )
    more = replace(past, rebalances=[*past.rebalances, taken, after])
    assert taken not in more.counted
    player = Replay(more)
    assert (player.reproduced, len(player.as_it_was.rebalances)) == (3, 3)
    assert player.as_it_was.rebalances[-1].entry.members_after == tuple(
        "anew" if one.member_id == old.member_id else one.member_id for one in last.members
    )


def test_a_record_with_holes_is_played_and_claims_less(tmp_path: Path) -> None:
    past = past_of(tmp_path, scaling)
    holes = replace(past, rebalances=[one for n, one in enumerate(past.rebalances) if n % 3 != 1])
    player = Replay(holes)
    assert all(len(one.entry.members_after) <= 8 for one in player.as_it_was.rebalances)
    assert player.confidence is not Confidence.EXACT
    # Ends that have nothing to do with the beginnings.
    nonsense = replace(past, rebalances=[replace(one, at_ms=one.at_ms + 600_000) for one in past.rebalances])
    assert not Replay(nonsense).saving(AS_IT_WAS).claimed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"protocol_type": "connect"}, "members of the type consumer"),
        ({"members": (), "joined": (), "before": ()}, "subscribe to could not be read"),
    ],
)
def test_what_cannot_be_played_says_why(tmp_path: Path, change: dict[str, object], says: str) -> None:
    past = past_of(tmp_path, slow_leader)
    changed = [replace(one, **change) for one in past.rebalances]  # type: ignore[arg-type]
    with pytest.raises(NothingToReplayError, match=says):
        Replay(replace(past, rebalances=changed))
    with pytest.raises(NothingToReplayError, match="no rebalance"):
        Replay(Past("orders", 0, 1))


def test_a_superseded_rebalance_is_followed_but_not_counted(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = orders(made)
        host = group.members["app-2"].host
        group.crash("app-2")
        comes_back(made, group, "app-2", host)

    past = past_of(tmp_path, script)
    first, expired, back = past.rebalances
    superseded = replace(expired, outcome=Outcome.SUPERSEDED, at_ms=expired.at_ms)
    soon = replace(
        expired,
        id="journal-0-999",
        generation=expired.generation + 1,
        at_ms=expired.at_ms + 3_000,
        began_ms=expired.at_ms,
        cause=Cause.LEADER_REJOINED,
        cause_members=(expired.leader,),
        left={},
        before=expired.members,
    )
    again: Rebalance = replace(back, generation=back.generation + 1)
    player = Replay(replace(past, rebalances=[first, superseded, soon, again]))
    assert [one.id for one in player.script.rebalances] == [first.id, soon.id, again.id]
    members: tuple[Member, ...] = player.script.rebalances[1].members
    assert len(members) == len(NAMES) - 1
    assert player.as_it_was.rebalances[-1].entry.members_after
