"""M1: what a shard keeps in memory stays within its bounds. R1: what happens to one shard does not touch the
others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ringleader.coordinator import deadlines
from ringleader.coordinator.deadlines import NEVER
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.records import encode_group_value
from ringleader.protocol.messages import JoinGroupRequest, SyncGroupRequest
from tests.simulation.facts import Memory

if TYPE_CHECKING:
    from tests.simulation.partition import Partition


def after_step(memory: Memory) -> None:
    """M1, for each shard that serves."""
    _check_counted(memory)
    for one in memory.world.partitions:
        if one.serving:
            _check_deadlines(memory, one)
            _check_tickets(memory, one)


def _check_counted(memory: Memory) -> None:
    """The counters agree with the groups, over all shards."""
    there = 0
    for partition in memory.world.partitions:
        if partition.being.value != "down":
            there += sum(_held_bytes(memory, group) for group in partition.shard._groups.values())
    counted = memory.world.memory.counted
    memory.must(counted == there, "M1", f"{counted} bytes of groups were counted, there are {there}")


def _held_bytes(memory: Memory, group: Group) -> int:
    members = sum(one.held_bytes for one in group.members.values())
    members += sum(one.held_bytes for one in group.given_out.values())
    value, size = memory.record_sizes.get(group.group_id, (None, 0))
    if value is not group.synced:
        value = group.synced
        size = 0 if value is None else len(encode_group_value(value))
        memory.record_sizes[group.group_id] = value, size
    return members + max(members, size)


def handed_over(memory: Memory, before: int) -> None:
    """M1, of one request: nothing grows above the bound. `before`: what was counted then."""
    counted, most = memory.world.memory.counted, memory.world.settings.group_metadata_max_bytes
    memory.must(counted <= max(before, most), "M1", f"groups grew from {before} to {counted} bytes")


def _check_deadlines(memory: Memory, partition: Partition) -> None:
    core = partition.shard._core
    entries = core.deadlines._heap
    live = {id(entry[2]) for entry in entries if entry[2].due_ms != NEVER}
    most = 2 * len(live) + deadlines._COMPACT_ABOVE + 1
    dead = [entry for entry in entries if entry[2].due_ms == NEVER]
    memory.must(len(dead) <= most, "M1", f"{len(dead)} dead entries beside {len(live)} deadlines")
    for _, _, deadline in entries:
        if isinstance(deadline, Member):
            group = core.groups.get(deadline.group_id or "")
            obsolete = group is None or group.members.get(deadline.member_id) is not deadline
            kept = deadline.protocols or deadline.assignment or deadline.client_id
            memory.must(not (obsolete and kept), "M1", f"{deadline.member_id} is gone, its bytes are not")


def _check_tickets(memory: Memory, partition: Partition) -> None:
    parked: Iterable[Any] = partition.shard._core.parked
    full = memory.world.full
    memory.must(not (full and parked), "F1", f"the store is full, and {list(parked)} wait for a record")
    for ticket in parked:
        fits = isinstance(ticket.request, JoinGroupRequest | SyncGroupRequest)
        waits = ticket in partition.calls
        memory.must(fits and waits, "M1", f"{ticket.request!r} is over, its ticket is kept")


def picture(partition: Partition) -> dict[str, Any]:
    """The state that nobody may touch from outside."""
    groups = partition.shard._groups.values()
    return {
        "being": partition.being,
        "calls": list(partition.calls),
        "members": [(one.group_id, one.state, one.generation, list(one.members)) for one in groups],
        "timers": timers(partition),
    }


def timers(partition: Partition) -> list[int]:
    """When the timers of a shard are due."""
    due = [partition.shard.next_deadline() or -1]
    for group in partition.shard._groups.values():
        due += [group.join_deadline.due_ms, group.sync_deadline.due_ms]
        due += [one.due_ms for one in (*group.members.values(), *group.given_out.values())]
    return due
