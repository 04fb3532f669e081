"""One step of a member towards its target: give up, acknowledge, receive (KIP-848, "Reconciliation").

A member keeps its epoch until it has given up what is not its any more; then it moves to the target's epoch
and gets the free partitions, and later those that another member still has. So no partition has two holders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ringleader.coordinator.consumer_groups.member import Current, MemberState, Owned, Target

Reported: TypeAlias = Iterable[tuple[bytes, Iterable[int]]]
"""Topic ids and partitions that a member says it owns."""


def reconcile(
    current: Current,
    target: Target,
    target_epoch: int,
    subscribed: frozenset[bytes],
    holder_is_other: Callable[[bytes, int], bool],
    owned: Reported | None,
    *,
    subscription_changed: bool,
) -> Current:
    """The member's next state; `current` itself where it cannot move.

    `subscribed`: ids of the topics to which the member subscribes and that exist. `holder_is_other`: whether
    a partition is assigned to, or not yet given up by, another member. `owned`: the partitions that the
    member reports; None: it reports nothing, so nothing is acknowledged. `subscription_changed`: what it has
    of topics that are not among `subscribed` any more is taken away though its target did not move.
    """
    if current.is_stable_at(target_epoch):
        return _without_unsubscribed(current, subscribed, owned) if subscription_changed else current
    waits_for_revocation = current.state is MemberState.UNREVOKED_PARTITIONS
    if waits_for_revocation and _owns_any(owned, current.pending_revocation):
        return _without_unsubscribed(current, subscribed, owned) if subscription_changed else current
    return _next(current, target, target_epoch, subscribed, holder_is_other, owned)


def _owns_any(owned: Reported | None, pending: Owned) -> bool:
    if owned is None:
        return True
    return any(
        partition in pending.get(topic_id, ()) for topic_id, partitions in owned for partition in partitions
    )


def _without_unsubscribed(current: Current, subscribed: frozenset[bytes], owned: Reported | None) -> Current:
    if subscribed.issuperset(current.assigned):
        return current
    kept: dict[bytes, Mapping[int, int]] = {}
    pending: dict[bytes, Mapping[int, int]] = dict(current.pending_revocation)
    for topic_id, partitions in current.assigned.items():
        if topic_id in subscribed:
            kept[topic_id] = partitions
        else:
            pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if _owns_any(owned, pending):
        return Current(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
    return Current(current.epoch, current.epoch, current.state, kept, current.pending_revocation)


def _next(
    current: Current,
    target: Target,
    target_epoch: int,
    subscribed: frozenset[bytes],
    holder_is_other: Callable[[bytes, int], bool],
    owned: Reported | None,
) -> Current:
    kept: dict[bytes, Mapping[int, int]] = {}
    revoked: dict[bytes, Mapping[int, int]] = {}
    for topic_id, partitions in current.assigned.items():
        wanted = target.get(topic_id, frozenset[int]()) if topic_id in subscribed else frozenset[int]()
        if wanted.issuperset(partitions):
            kept[topic_id] = partitions
            continue
        staying = {one: epoch for one, epoch in partitions.items() if one in wanted}
        if staying:
            kept[topic_id] = staying
        revoked[topic_id] = {one: epoch for one, epoch in partitions.items() if one not in wanted}
    if revoked and _owns_any(owned, revoked):
        return Current(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    state = MemberState.STABLE
    for topic_id, wanted in target.items():
        if topic_id not in subscribed:
            continue
        had = kept.get(topic_id, {})
        if len(had) == len(wanted):  # nothing is kept that is not wanted
            continue
        free = {}
        for one in sorted(wanted.difference(had)):
            if holder_is_other(topic_id, one):
                state = MemberState.UNRELEASED_PARTITIONS
            else:
                free[one] = target_epoch
        if free:
            kept[topic_id] = {**had, **free}
    same = kept == current.assigned
    return Current(target_epoch, current.epoch, state, current.assigned if same else kept, {})
