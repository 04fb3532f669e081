"""G18: after the faults every group with live members is stable, and has just these."""

from __future__ import annotations

from ringleader.coordinator.groups.states import GroupState
from tests.simulation.facts import Memory

_SMALLEST_RECORD_LIMIT = 10_000
"""With less, no leader of a larger group can store its assignment: such a group never settles."""


def groups(memory: Memory) -> list[str]:
    """Groups that must settle: they have live members."""
    world = memory.world
    if world.settings.group_max_record_bytes < _SMALLEST_RECORD_LIMIT or world.has_small_memory:
        return []
    return sorted({one.group for one in world.workers if one.alive})


def complaint(memory: Memory, group_id: str) -> str:
    """The first condition that does not hold yet; "" if all is well."""
    world = memory.world
    group = memory.group(group_id)
    if group is None:
        return "there is no such group"
    if group.state is not GroupState.STABLE or group.owing_sync:
        return f"it is {group.state}, syncs of {list(group.owing_sync)} are missing"
    workers = [one for one in world.workers if one.alive and one.group == group_id]
    stable = {one.member_id for one in workers if one.stable}
    if set(group.members) != stable:
        return f"members {list(group.members)}, workers that think so {sorted(stable)}"
    # After a crash members are known with their elected protocol only (as in Kafka), so that a member that
    # does not offer just that one is refused until they have rejoined.
    fitting = [one for one in workers if group.protocol in {offer.name for offer in one.protocols}]
    expected = min(len(fitting), world.settings.group_max_size)
    return "" if len(stable) >= expected else f"{len(stable)} of {expected} workers are in"
