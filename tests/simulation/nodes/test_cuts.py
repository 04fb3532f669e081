"""One node does not reach one broker: what it owned is served elsewhere, and nobody fences in turn."""

from __future__ import annotations

from functools import partial

import pytest

from ringleader.coordinator.runtime.log import LATE_S
from ringleader.coordinator.runtime.shards import STORAGE_TIMEOUT_MS, Waiting
from ringleader.protocol.errors import ErrorCode
from tests.simulation.nodes.cuts import BROKERS, CutNode, CutWorld, cuts, simulate_cuts
from tests.support.shares import share


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(3, whole=12)), indirect=True)
def test_whatever_link_is_cut_each_partition_is_served_again(seed: int) -> None:
    assert simulate_cuts(seed, cuts).cuts


def test_as_many_partitions_as_a_real_cluster_has_are_served_again(seed: int) -> None:
    """More than are taken over at once, and more than two planned moves wait for each other."""
    assert simulate_cuts(seed, cuts, partitions=50).cuts


@pytest.mark.parametrize("coordinates", [False, True])
def test_a_cut_of_a_minute_moves_each_partition_once_and_back(seed: int, coordinates: bool) -> None:
    """`coordinates`: the broker that cannot be reached has the nodes' group, so the node's session ends."""

    def play(world: CutWorld) -> None:
        world.group.broker = 1
        node, broker = world.rng.choice(world.cut_nodes), 1 if coordinates else 2
        had = [one for one in node.runtime.serving if world.kafka.leaders[one] == broker]
        before = {one: world.claims(one) for one in world.partitions}
        world.cut(node, broker, 60.0)
        world.run(world.now_ms + 60_000)
        for partition in world.partitions:
            assert world.claims(partition) - before[partition] <= (2 if coordinates else 1)
        assert not node.runtime.serving.intersection(had)

    simulate_cuts(seed, play)


def test_a_broker_that_dies_is_no_reason_to_move_anything(seed: int) -> None:
    """Kafka has another leader for each partition after some seconds: the owner goes on."""

    def play(world: CutWorld) -> None:
        world.group.broker = 1
        broker = world.rng.randint(2, BROKERS)
        before = [world.claims(one) for one in world.partitions]
        for node in world.cut_nodes:
            world.cut(node, broker, 1_000.0)
        world.run(world.now_ms + 9_000)
        world.move_leaders(broker)
        world.run(world.now_ms + 20_000)
        assert [world.claims(one) for one in world.partitions] == before

    simulate_cuts(seed, play)


@pytest.mark.parametrize("coordinates", [False, True])
def test_behind_an_append_to_a_broker_that_is_gone_members_wait_only_where_nobody_vouches(
    seed: int, coordinates: bool
) -> None:
    """`coordinates`: the broker has the nodes' group, so nobody says that the partitions are still theirs."""
    waiting: list[Waiting] = []

    def ask(node: CutNode, partition: int) -> None:
        waiting.append(Waiting())
        node.runtime.list_groups(partition, (), (), waiting[-1])

    def play(world: CutWorld) -> None:
        world.group.broker = 1
        broker = 1 if coordinates else 2
        before = [world.claims(one) for one in world.partitions]
        behind = {
            node: {one for one in node.runtime.serving if world.kafka.leaders[one] == broker}
            for node in world.cut_nodes
        }
        for node, partitions in behind.items():
            world.cut(node, broker, 3 * LATE_S)
            for partition in partitions:
                node.tell(partial(ask, node, partition))
        world.run(world.now_ms + int(1000 * LATE_S) + 500)
        for node, partitions in behind.items():
            assert node.runtime.serving >= partitions
            assert node.runtime.late == (set() if coordinates else partitions)
        codes = [one.answered.result() for one in waiting if one.answered.done()]
        assert codes == ([] if coordinates else [ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(waiting))
        assert waiting
        world.run(world.now_ms + int(4000 * LATE_S))
        assert not any(node.runtime.late for node in world.cut_nodes)
        assert coordinates or [world.claims(one) for one in world.partitions] == before

    simulate_cuts(seed, play, storage_timeout_ms=STORAGE_TIMEOUT_MS)
