"""O3 and O4: what is durable of the live groups is what the log says, with what is on its way, compacted or
not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from tests.simulation.facts import Memory

if TYPE_CHECKING:
    from tests.simulation.partition import Partition

_WHOLE_LOG_EVERY = 16


class Log:
    """Holds the live groups against what was written, whenever that has grown. It holds at once: what is on
    its way counts."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._seen = -1

    def after_step(self, groups: dict[str, Group]) -> None:
        """Compare if there is something new; stable groups now and then all the same."""
        store = self.memory.world.store
        grown = self._seen != store.version
        if grown or self.memory.world.steps % 16 == 0:
            for group in groups.values():
                if group.state is GroupState.STABLE:
                    self._check_stable(group)
        if grown:
            self._seen = store.version
            for partition in self.memory.world.partitions:
                if partition.serving:
                    self._check_rebuilt(partition)

    def _check_stable(self, group: Group) -> None:
        must = self.memory.must
        record = group.synced
        must(record is not None, "O3", f"stable group {group.group_id} has no record")
        assert record is not None
        stored = {
            m.member_id: (m.group_instance_id, m.session_timeout, m.subscription, m.assignment)
            for m in record.members
        }
        live = {
            m.member_id: (
                m.group_instance_id,
                m.session_timeout_ms,
                dict(m.protocols).get(group.protocol or "", b""),
                m.assignment,
            )
            for m in group.members.values()
        }
        same = stored == live and record.generation == group.generation and record.leader == group.leader
        must(same, "O3", f"stable group {group.group_id} is not what its record says")

    def _check_rebuilt(self, partition: Partition) -> None:
        world = self.memory.world
        again = world.new_shard(partition.number)
        again.give_back()
        # The part of the log that a compaction leaves must do; the whole log now and then.
        whole = world.store.version % _WHOLE_LOG_EVERY == 0
        if whole:
            again.replay([*world.store.logs[partition.number], *world.store.in_flight(partition.number)])
        else:
            again.replay(self._of(partition))
        same = durable_state(partition.shard._groups) == durable_state(again._groups)
        name = "O3" if whole else "O4"
        self.memory.must(same, name, "live durable state differs from the rebuilt one")

    def _of(self, partition: Partition) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self.memory.world.store.promised.items():
            named = records.decode_key(key)
            own = named is not None and self.memory.world.partition(named[1]) is partition
            if own and value is not None:
                yield key, value


def durable_state(groups: dict[str, Group]) -> dict[str, Any]:
    """The state that must survive a restart."""
    return {
        group_id: (group.synced, group.reserved_generation, group.offsets, _open(group))
        for group_id, group in groups.items()
        if group.synced or group.reserved_generation or group.offsets or group.uncommitted
    }


def _open(group: Group) -> list[tuple[Any, ...]]:
    """Offsets of open transactions, in their order."""
    found = [
        (one.order, producer_id, place, one.value, one.superseded)
        for producer_id, table in group.uncommitted.items()
        for place, one in table.items()
    ]
    return [one[1:] for one in sorted(found)]
