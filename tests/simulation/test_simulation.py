"""Random schedules: fresh seeds in every run, and proof that broken machines are caught.

A failing seed prints the command that runs it again: `python -m tests.simulation --seed N`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.coordinator.groups import life, rebalance, sync
from ringleader.coordinator.groups.core import Call, Core, Write
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.join import Joins
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.offsets import Offsets
from ringleader.coordinator.groups.rebalance import Rebalances
from tests.simulation.facts import ViolationError
from tests.simulation.world import check_clocks, simulate

_SEEDS_PER_TEST = 10
_SEEDS_FOR_MUTANTS = 60


@pytest.mark.parametrize("part", range(200 // _SEEDS_PER_TEST))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    steps = [simulate(secrets.randbits(48)).steps for _ in range(_SEEDS_PER_TEST)]
    assert min(steps) > 50


def test_a_run_is_repeated_byte_for_byte() -> None:
    first, second = simulate(7), simulate(7)
    assert first.trace.hexdigest() == second.trace.hexdigest()
    assert first.store.log == second.store.log
    assert first.trace.hexdigest() != simulate(8).trace.hexdigest()


def test_no_answer_depends_on_the_wall_clock() -> None:
    for _ in range(3):
        check_clocks(secrets.randbits(48))


# ---- mutants: each breaks one rule of the machine; the invariants must notice ----


def _generation_reused_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    whole = life.restore

    def restore(group: Group, *rest: Any) -> None:
        floor, group.floor = group.floor, 0
        whole(group, *rest)
        group.floor = floor

    patch.setattr("ringleader.coordinator.groups.shard.restore", restore)


def _commit_answered_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    whole = Core.write

    def write(self: Core, group: Group, content: Any, done: Any) -> Write:
        if done is None or "Offsets.commit" not in done.__qualname__:
            return whole(self, group, content, done)
        done(0, 0)
        return whole(self, group, content, None)

    patch.setattr(Core, "write", write)


def _every_member_is_told_that_it_leads(patch: pytest.MonkeyPatch) -> None:
    whole = Rebalances.join_success

    def join_success(self: Rebalances, group: Group, member: Member, members: Any) -> Any:
        response = whole(self, group, member, members)
        response.leader = member.member_id
        return response

    patch.setattr(rebalance.Rebalances, "join_success", join_success)


def _parked_members_are_expired(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Member, "lives_without_heartbeat", property(lambda self: False))


def _commits_are_taken_between_join_and_sync(patch: pytest.MonkeyPatch) -> None:
    whole = Offsets._check_commit

    def check(self: Offsets, *rest: Any) -> Any:
        error = whole(self, *rest)
        return 0 if error == 27 else error

    patch.setattr(Offsets, "_check_commit", check)


def _an_old_assignment_is_given_out(patch: pytest.MonkeyPatch) -> None:
    whole = sync.sync_success

    def stale(member: Member, protocol_type: str | None, protocol: str | None) -> Any:
        response = whole(member, protocol_type, protocol)
        response.assignment = response.assignment.replace(b"@", b"@0")
        return response

    patch.setattr(sync, "sync_success", stale)


def _sessions_are_half_as_long(patch: pytest.MonkeyPatch) -> None:
    def arm_session(self: Core, member: Member, now_ms: int) -> None:
        self.deadlines.arm(member, now_ms + member.session_timeout_ms // 2)

    patch.setattr(Core, "arm_session", arm_session)


def _the_sync_phase_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalances, "sync_timer_fired", lambda self, deadline, now_ms: None)


def _the_size_limit_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Joins, "_has_room", lambda self, group, member_id: True)


def _deletions_do_not_wait_for_commits(patch: pytest.MonkeyPatch) -> None:
    def submit(self: Core, group: Group | None, call: Call, now_ms: int) -> bool:
        call.run(now_ms)
        return True

    patch.setattr(Core, "submit", submit)


def _a_vote_goes_to_the_last_common_protocol(patch: pytest.MonkeyPatch) -> None:
    def elect_protocol(self: Group) -> str:
        count = len(self.members)
        return [name for name, supporters in self.supporters.items() if supporters == count][-1]

    patch.setattr(Group, "elect_protocol", elect_protocol)


@pytest.mark.parametrize(
    "mutant",
    [
        _generation_reused_after_a_crash,
        _commit_answered_before_it_is_durable,
        _every_member_is_told_that_it_leads,
        _parked_members_are_expired,
        _commits_are_taken_between_join_and_sync,
        _an_old_assignment_is_given_out,
        _sessions_are_half_as_long,
        _the_sync_phase_never_ends,
        _the_size_limit_is_forgotten,
        _deletions_do_not_wait_for_commits,
        _a_vote_goes_to_the_last_common_protocol,
    ],
)
def test_broken_machines_are_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(ViolationError, match=r"python -m tests\.simulation --seed"):
        _simulate_many()


def _simulate_many() -> None:
    for seed in range(_SEEDS_FOR_MUTANTS):
        simulate(seed)
