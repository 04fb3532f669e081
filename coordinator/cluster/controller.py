"""The decision of the leader of the nodes' group: the next map, from the states of all members. Pure.

It needs no memory of its own: every member brings the newest map that it knows. So the next leader goes on
where the last one was, and a leader that has just started makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ringleader.coordinator.cluster.map import NOBODY, ClusterMap
from ringleader.coordinator.cluster.placement import Unfit, place, step
from ringleader.coordinator.cluster.state import MemberState


def next_map(
    states: Iterable[MemberState],
    controller: int,
    partitions: int | None,
    leaders: Mapping[int, int] | None = None,
) -> ClusterMap:
    """The map that follows. `controller`: node id of the leader, or `NOBODY`; `partitions`: how many there
    are, None: as many as in the map before; `leaders`: of their logs, as far as they are known."""
    states = list(states)
    nodes = {state.node.node_id: state.node for state in states if state.node is not None}
    known = [state.known for state in states if state.known is not None]
    before = max(known, key=lambda one: one.generation, default=None)
    if partitions is None:
        partitions = 0 if before is None else len(before.owners)
    owners = [] if before is None else list(before.owners[:partitions])
    owners += [NOBODY] * (partitions - len(owners))
    serving = {
        (partition, state.node.node_id)
        for state in states
        if state.node is not None
        for partition in state.loads
    }
    drained = set(before.drained) if before is not None else set()
    pinned = dict(before.pinned) if before is not None else {}
    for state in states:
        for node_id, on in state.drains:
            (drained.add if on else drained.discard)(node_id)
        pinned.update({partition: node_id for partition, node_id in state.pins if partition < partitions})
    # A node that comes back after it was gone begins again.
    drained &= nodes.keys()
    pinned = {partition: node_id for partition, node_id in pinned.items() if node_id in nodes}
    leaving = {state.node.node_id for state in states if state.leaving and state.node is not None}
    able = (nodes.keys() - drained - leaving) or (nodes.keys() - leaving)
    loads: dict[int, float] = {}
    for state in states:
        for partition, load in state.loads.items():
            loads[partition] = max(load, loads.get(partition, 0))
    unable = {(one, state.node.node_id) for state in states if state.node is not None for one in state.unable}
    wary = {state.node.node_id for state in states if state.node is not None and (state.wary or state.unable)}
    # Planned moves count as done, and load waits for their end: the way once begun is kept.
    planned = before.moving if before is not None else {}
    base = [
        owner if (heir := planned.get(partition, owner)) in wary else heir
        for partition, owner in enumerate(owners)
    ]
    unfit = Unfit(unable, wary)
    goal = place(base, able, {} if planned else loads, pinned, unfit, leaders) if able else tuple(owners)
    now, moving = step(owners, goal, nodes.keys(), serving, unable)
    return ClusterMap(
        generation=1 if before is None else before.generation + 1,
        controller=controller,
        nodes=tuple(nodes[node_id] for node_id in sorted(nodes)),
        owners=now,
        moving=moving,
        drained=frozenset(drained),
        leaving=frozenset(leaving),
        pinned=pinned,
    )
