"""One member's way to its target."""

from __future__ import annotations

from collections.abc import Iterable

from ringleader.coordinator.consumer_groups.member import Current, MemberState, Owned, Target
from ringleader.coordinator.consumer_groups.reconciliation import reconcile

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState


def step(
    current: Current,
    target: Target,
    epoch: int,
    *,
    owned: Iterable[tuple[bytes, Iterable[int]]] | None = None,
    subscribed: frozenset[bytes] = frozenset((A, B)),
    held: frozenset[tuple[bytes, int]] = frozenset(),
    changed: bool = False,
) -> Current:
    return reconcile(
        current,
        target,
        epoch,
        subscribed,
        lambda topic_id, partition: (topic_id, partition) in held,
        owned,
        subscription_changed=changed,
    )


def had(*partitions: int, epoch: int = 1, topic: bytes = A) -> Owned:
    return {topic: dict.fromkeys(partitions, epoch)}


def of(*partitions: int, topic: bytes = A) -> Target:
    return {topic: frozenset(partitions)}


def test_a_member_at_its_target_stays_as_it_is() -> None:
    current = Current(3, 2, STABLE, had(0), {})
    assert step(current, of(0), 3) is current


def test_what_is_not_its_any_more_is_given_up_first_and_the_epoch_waits() -> None:
    current = Current(3, 2, STABLE, had(0, 1), {})
    revoking = step(current, of(1, 2), 4, owned=[(A, [0, 1])])
    assert revoking == Current(3, 3, UNREVOKED, had(1), had(0))
    assert step(revoking, of(1, 2), 4) is revoking  # no report: nothing is acknowledged
    assert step(revoking, of(1, 2), 4, owned=[(A, [0, 1])]) is revoking
    done = step(revoking, of(1, 2), 4, owned=[(A, [1])])
    assert done == Current(4, 3, STABLE, {A: {1: 1, 2: 4}}, {})


def test_an_empty_report_acknowledges_everything() -> None:
    revoking = Current(3, 3, UNREVOKED, {}, had(0))
    assert step(revoking, {}, 4, owned=[]) == Current(4, 3, STABLE, {}, {})


def test_what_another_member_holds_comes_later() -> None:
    current = Current(0, 0, STABLE, {}, {})
    waiting = step(current, of(0, 1), 4, owned=[], held=frozenset([(A, 0)]))
    assert waiting == Current(4, 0, UNRELEASED, had(1, epoch=4), {})
    assert step(waiting, of(0, 1), 4) == Current(4, 4, STABLE, had(0, 1, epoch=4), {})


def test_what_it_reports_as_given_up_already_needs_no_acknowledgement() -> None:
    current = Current(3, 2, STABLE, had(0, 1), {})
    assert step(current, of(1), 4, owned=[(A, [1])]) == Current(4, 3, STABLE, had(1), {})


def test_a_partition_that_it_has_to_give_up_may_come_back_with_a_new_epoch() -> None:
    revoking = Current(3, 3, UNREVOKED, had(1), had(0))
    back = step(revoking, of(0, 1), 5, owned=[(A, [1])])
    assert back == Current(5, 3, STABLE, {A: {1: 1, 0: 5}}, {})


def test_a_topic_that_it_left_is_taken_away_though_the_target_did_not_move() -> None:
    current = Current(3, 2, STABLE, {**had(0), **had(0, topic=B)}, {})
    only_b = frozenset((B,))
    after = step(current, {**of(0), **of(0, topic=B)}, 3, subscribed=only_b, changed=True)
    assert after == Current(3, 3, UNREVOKED, had(0, topic=B), had(0))
    known = step(current, {**of(0), **of(0, topic=B)}, 3, subscribed=only_b, changed=True, owned=[(B, [0])])
    assert known == Current(3, 3, STABLE, had(0, topic=B), {})


def test_the_target_of_a_topic_that_it_left_does_not_count() -> None:
    current = Current(3, 2, STABLE, {}, {})
    moved = step(current, {**of(0), **of(1, topic=B)}, 4, subscribed=frozenset((B,)))
    assert moved == Current(4, 3, STABLE, had(1, epoch=4, topic=B), {})


def test_of_a_topic_that_it_left_it_gives_up_all() -> None:
    current = Current(3, 3, UNREVOKED, had(0), had(1))
    left = step(current, {}, 4, subscribed=frozenset((B,)), changed=True, owned=[(A, [0, 1])])
    assert left == Current(3, 3, UNREVOKED, {}, had(0, 1))
