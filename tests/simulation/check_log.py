"""O3 and O4: what is live and durable is what the log says, compacted or not."""

from __future__ import annotations

from typing import Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from tests.simulation.facts import Memory

_WHOLE_LOG_EVERY = 16


class Log:
    """Holds the live groups against the log, whenever that has grown."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._seen = -1

    def after_step(self, groups: dict[str, Group]) -> None:
        """Compare if there is something new; stable groups now and then all the same."""
        store = self.memory.world.store
        grown = self._seen != store.version
        if grown or self.memory.world.steps % 16 == 0:
            for group in groups.values():
                if group.state is GroupState.STABLE and not group.exclusive:
                    self._check_stable(group)
        if grown:
            self._seen = store.version
            self._check_rebuilt(groups)

    def _check_stable(self, group: Group) -> None:
        must = self.memory.must
        must(group.record is not None, "O3", f"stable group {group.group_id} has no record")
        assert group.record is not None
        record = records.decode_group_value(group.record)
        stored = {m.member_id: (m.group_instance_id, m.subscription, m.assignment) for m in record.members}
        live = {
            m.member_id: (m.group_instance_id, dict(m.protocols).get(group.protocol or "", b""), m.assignment)
            for m in group.members.values()
        }
        same = stored == live and record.generation == group.generation and record.leader == group.leader
        must(same, "O3", f"stable group {group.group_id} is not what its record says")

    def _check_rebuilt(self, groups: dict[str, Group]) -> None:
        world = self.memory.world
        again = world.new_shard()
        # What a compaction leaves of the log must do; the whole log now and then.
        whole = world.store.version % _WHOLE_LOG_EVERY == 0
        for key, value in world.store.log if whole else world.store.durable.items():
            if whole or value is not None:
                again.replay(key, value)
        same = durable_state(groups) == durable_state(again._core.loading)
        name = "O3" if whole else "O4"
        self.memory.must(same, name, "live durable state differs from the rebuilt one")


def durable_state(groups: dict[str, Group]) -> dict[str, Any]:
    """What must survive a restart."""
    return {
        group_id: (group.record, group.floor, group.offsets, _open(group))
        for group_id, group in groups.items()
        if group.record or group.floor or group.offsets or group.uncommitted
    }


def _open(group: Group) -> list[tuple[Any, ...]]:
    """Offsets of open transactions, in their order."""
    found = [
        (one.order, producer_id, place, one.value, one.superseded)
        for producer_id, table in group.uncommitted.items()
        for place, one in table.items()
    ]
    return [one[1:] for one in sorted(found)]
