"""A group of the consumer protocol on the nodes: its members, its topics, of which nodes hear one after the
other, and what must hold of it, whichever node has it.

K1   No partition has two holders in the log. [learned]
K2   Epochs of the group never go back. [learned]
K3   A member is told an epoch that is in the log, and owns what the log gives it. [answered, learned]
K4   A move alone begins no epoch, though the heir may know of fewer partitions than the owner did; more
     partitions begin one. [after_step; runs with `calm`]
K5   After the faults all members are stable, and have every partition once. [complaint]
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, ConsumerGroupState, TwoHoldersError
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulation.consumer.member import ModelMember
from tests.simulation.requests import TOPICS, Fetch

if TYPE_CHECKING:
    from tests.simulation.nodes.kafka import Row
    from tests.simulation.nodes.node import Node
    from tests.simulation.nodes.world import NodeCall, NodesWorld

GROUP = "c"
MEMBERS_MAX = 4
PARTITIONS_MAX = 9
_VERSION, _COMMIT_VERSION = 1, 9
_PATIENCE_S = 5.0
SESSION, ASSIGNMENT = "consumer.session.timeout.ms", "consumer.assignment.interval.ms"
_NAMES = {name.encode().ljust(16, b"-"): name for name in TOPICS}
_IDS = {name: topic_id for topic_id, name in _NAMES.items()}


class Consumers:
    """The group. The world calls it."""

    def __init__(self, world: NodesWorld) -> None:
        self.world = world
        self.partitions = dict(TOPICS)
        """Of each topic, as the cluster has it."""
        self.log = ConsumerGroup(GROUP)
        """The group as the log has it."""
        self.members: list[Consumer] = []
        self.configs: dict[str, int] = {}
        """Of the group."""
        self._number = 0
        self._epochs = (0, 0)
        self._stable: int | None = None
        """Calm runs: the epoch in which all members are stable."""
        self._next: int | None = None
        """Calm runs: the only other one that may come."""

    def populate(self) -> None:
        """Members, and topics that grow."""
        world, rng = self.world, self.world.rng
        for _ in range(rng.choice([1, 2, 3, MEMBERS_MAX])):
            self.join(rng.randint(0, 2_000), f"c{self._number}" if rng.random() < 0.3 else None)
        for _ in range(rng.choice([0, 1, 3])):
            world.later(rng.randint(3_000, world.faulty_ms), self._grow)
        world.later(rng.randint(0, world.faulty_ms), self._configure)

    def join(self, delay_ms: int, instance_id: str | None) -> None:
        """One more member."""
        self._number += 1
        member = Consumer(self, self._number, instance_id)
        self.members.append(member)
        self.world.later(delay_ms, member.beat)

    # ---- topics ----

    def _configure(self) -> None:
        """The group has configurations of its own from now on."""
        rng = self.world.rng
        self.configs = {ASSIGNMENT: rng.choice([0, 1_000]), SESSION: rng.choice([10_000, 45_000])}
        for node in self.world.nodes:
            node.tell(partial(node.runtime.configs.apply, {GROUP: self.configs}))

    def follow(self, node: Node) -> None:
        """A node knows of topics as they are when it starts, and when it looks; of configurations always."""
        self._tell(node)
        if self.configs:
            node.runtime.configs.apply({GROUP: self.configs})
        node.runtime.look_at_topics = partial(self._look, node)

    def _tell(self, node: Node) -> None:
        for name, count in self.partitions.items():
            node.runtime.topics.put(Topic(name, _IDS[name], count))

    async def _look(self, node: Node) -> None:
        await asyncio.sleep(self.world.rng.choice([0.0, 0.05]))
        self._tell(node)

    def _grow(self) -> None:
        world = self.world
        name = world.rng.choice(sorted(self.partitions))
        if self.partitions[name] >= PARTITIONS_MAX:
            return
        self.partitions[name] += 1
        world.checks.counts["grown"] += 1
        world.say("grown", (name, self.partitions[name]))
        self._next = None if self._stable is None else self._stable + 1
        self._stable = None
        for node in world.nodes:
            heard_s = world.time_s + world.rng.uniform(0.0, 8.0)
            world.at(heard_s, partial(node.tell, partial(self._tell, node)))

    # ---- what must hold ----

    def learned(self, rows: list[Row]) -> None:
        """A batch is in the log."""
        must = self.world.checks.must
        changed = False
        for row in rows:
            named = records.decode_key(row.key)
            if named is not None and named[1] == GROUP:
                records.apply(self.log, named[0], named[2], row.value)
                changed = True
        if not changed:
            return
        try:
            self.log.index()
        except TwoHoldersError as error:
            must(False, "K1", str(error))
        epochs = self.log.epoch, self.log.assignment_epoch
        must(epochs >= self._epochs or not self.log.exists, "K2", f"epochs {self._epochs} become {epochs}")
        self._epochs = epochs
        for one in self.members:
            known = self.log.members.get(one.model.member_id)
            if one.departed or known is None or one.model.epoch <= 0 or known.current.epoch < one.model.epoch:
                continue
            for topic_id, partition in one.model.owned:
                holds = known.current.assignment_epoch(topic_id, partition) is not None
                must(holds, "K3", f"{one.model} owns {_NAMES[topic_id]}-{partition}, not of {known.current}")

    def answered(self, call: NodeCall, response: Any) -> None:
        """A node has answered a heartbeat, to nobody's doubt."""
        if response.error_code or response.member_epoch <= 0:
            return
        self.world.checks.counts["beats"] += 1
        known = self.log.members.get(response.member_id)
        if known is not None and known.current.epoch >= 0:
            text = f"{call.node} tells {response!r}, and the log has {known.current}"
            self.world.checks.must(known.current.epoch >= response.member_epoch, "K3", text)

    def after_step(self) -> None:
        """Calm runs."""
        epoch = self.log.epoch
        if self._stable is not None:
            self.world.checks.must(epoch == self._stable, "K4", f"epoch {self._stable} becomes {epoch}")
        elif not self.complaint():
            right = self._next in (None, epoch)
            self.world.checks.must(right, "K4", f"{self._next} was to be the next epoch, and it is {epoch}")
            self._stable = epoch

    def complaint(self) -> str:
        """The first condition that does not hold yet; "" if all is well."""
        group, present = self.log, [one for one in self.members if not one.departed]
        if set(group.members) != {one.model.member_id for one in present}:
            return f"members {list(group.members)} of {present}"
        if group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            return f"it is {group.state}: {group.epoch}, {group.assignment_epoch}"
        owned = sorted(place for one in present for place in one.model.owned)
        wanted = sorted((_IDS[name], one) for name, count in self.partitions.items() for one in range(count))
        behind = [one for one in present if one.model.epoch != group.epoch]
        return f"{owned} of {wanted}, {behind} are behind" if present and (owned != wanted or behind) else ""


class Consumer:
    """One member, that sends a heartbeat every second or so, and commits what it has read."""

    def __init__(self, group: Consumers, number: int, instance_id: str | None) -> None:
        self._group, self._world = group, group.world
        self.name = f"c{number}"
        self.model = ModelMember(
            cast(Any, SimpleNamespace(group_id=GROUP)), number, instance_id, frozenset(TOPICS)
        )
        self._call: NodeCall | None = None
        self._since_s = 0.0
        self._requests = 0

    def __repr__(self) -> str:
        return repr(self.model)

    @property
    def departed(self) -> bool:
        """Whether it has crashed or left."""
        return self.model.departed

    def beat(self) -> None:
        """The next heartbeat, unless the answer to the last one may still come."""
        world, model, rng = self._world, self.model, self._world.rng
        if model.departed:
            return
        world.later(rng.choice([200, 500, 1_000]), self.beat)
        if self._call is not None:
            if world.time_s - self._since_s < _PATIENCE_S:
                return
            world.close(self._call)
            self._call = None
            model.failed()
        if world.faults and rng.random() < 0.01:
            self._misfortune()
            return
        if model.to_revoke and rng.random() < 0.7:
            model.revoke()
        self._since_s = world.time_s
        self._requests += 1
        answered = partial(self._answered, self._requests)
        self._call = world.send(self, model.request(), _VERSION, self.name, answered)
        if rng.random() < 0.3:
            self._commit()
        elif rng.random() < 0.1:
            world.ask(self, Fetch(GROUP, False), _nothing)

    def _answered(self, number: int, response: Any) -> None:
        if number != self._requests:
            return  # it had closed that connection, and asked again
        self._call = None
        if self.model.departed:
            return
        if response is None:
            self.model.failed()
        else:
            self.model.answered(response)

    def _commit(self) -> None:
        model, world = self.model, self._world
        if model.epoch <= 0 or not model.owned:
            return
        topic_id, partition = world.rng.choice(sorted(model.owned))
        entry = OffsetCommitRequestPartition(partition, world.checks.fresh_offset())
        topics = [OffsetCommitRequestTopic(name=_NAMES[topic_id], partitions=[entry])]
        request = OffsetCommitRequest(GROUP, model.epoch, model.member_id, topics=topics)
        world.send(self, request, _COMMIT_VERSION, self.name, _nothing)

    def _misfortune(self) -> None:
        """It crashes, or leaves; another one comes in its place, or not."""
        world, model = self._world, self.model
        instance_id = model.instance_id
        if model.epoch > 0 and world.rng.random() < 0.6:
            away = instance_id is not None and world.rng.random() < 0.7
            request = model.leave(AWAY_EPOCH if away else LEFT_EPOCH)
            world.send(self, request, _VERSION, self.name, _nothing)
        model.departed, model.owned = True, frozenset()
        present = [one for one in self._group.members if not one.departed]
        if not present or (len(present) < MEMBERS_MAX and world.rng.random() < 0.8):
            self._group.join(world.rng.randint(0, 5_000), instance_id)


def is_plain(request: Any, response: Any) -> bool:
    """The success of a heartbeat that tells nothing: it needs no proof."""
    is_beat = isinstance(request, ConsumerGroupHeartbeatRequest)
    return is_beat and not response.error_code and response.assignment is None


def _nothing(_response: Any) -> None:
    """Nobody waits for it."""
