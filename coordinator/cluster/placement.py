"""The placement of partitions of groups on nodes: pure functions from the owners of today to those that
should be.

Promises (tests/coordinator/cluster/test_placement.py):

- Nodes own equally many partitions, give or take one, unless an operator pinned some; and no fewer moves
  would do: a node that goes moves its own, a node that comes gets its share, nothing moves between others.
- Load alone moves something only if the heaviest node carries `IMBALANCE` of the mean more than the lightest:
  then `LOAD_SWAPS` partitions at most change places with as many lighter ones.
- A partition its owner cannot serve goes to a node that can, if one is there, and else stays. A node that
  is wary is given nothing unless there is no other.
- Of the partitions that could move as well, those move that leave each node with the logs of few brokers: it
  then writes with few requests to few brokers, which replicate more at once. Nothing moves for that alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ringleader.coordinator.cluster.map import NOBODY

IMBALANCE = 0.25
LOAD_SWAPS = 2
WORTH = 0.01
"""The least part of the mean that a change of places has to even out. Where loads of partitions differ by
less, rounding would decide, and might do so for ever."""
LIGHT_LOAD = 50.0
"""Members and commits per second of a partition; where the mean is less, differences hardly count."""
ALIKE = 0.25
"""Partitions whose weights, rounded to multiples of this, are the same may take each other's places."""
EXCHANGES = 200
"""Of kinds of partitions, at most."""
MOVES_AT_A_TIME = 2
"""Planned moves to one node that are under way at once."""


class Unfit(NamedTuple):
    """The reports of nodes about themselves."""

    unable: Collection[tuple[int, int]] = ()
    """Partitions, each with a node that could not serve it."""
    wary: Collection[int] = ()
    """Nodes that are to be given nothing more for now; all that could not serve something are among them."""


ALL_FIT = Unfit()


def place(
    owners: Sequence[int],
    able: Collection[int],
    loads: Mapping[int, float] | None = None,
    pinned: Mapping[int, int] | None = None,
    unfit: Unfit = ALL_FIT,
    leaders: Mapping[int, int] | None = None,
) -> tuple[int, ...]:
    """The owners as they should be. `owners`: as they are; `able`: the nodes that may own something; `loads`:
    of each partition that has some, members and commits per second; `pinned`: partition -> node that shall
    have it, if able; `leaders`: of partitions' logs, as far as they are known."""
    if not able:
        return tuple(NOBODY for _ in owners)
    weights = _weights(len(owners), loads or {})
    goal = [owner if owner in able else NOBODY for owner in owners]
    fit = {
        partition: {node for node in able if (partition, node) not in unfit.unable}
        for partition, _ in unfit.unable
    }
    fixed = {
        partition
        for partition, node in (pinned or {}).items()
        if node in able and (node in fit.get(partition, able) or not fit[partition])
    }
    for partition in fixed:
        if partition < len(goal):
            goal[partition] = (pinned or {})[partition]
    for partition, nodes in fit.items():
        if partition < len(goal) and nodes and goal[partition] not in nodes:
            goal[partition] = NOBODY
    ready = {node for node in able if node not in unfit.wary}
    carried = dict.fromkeys(sorted(able), 0.0)
    count = Counter(owner for owner in goal if owner != NOBODY)
    for partition, owner in enumerate(goal):
        if owner != NOBODY:
            carried[owner] += weights[partition]
    # The heaviest first, each to the node with the fewest, and of those to the least loaded.
    for partition in sorted(_of(goal, NOBODY), key=lambda partition: -weights[partition]):
        nodes = fit.get(partition, set(carried))
        heir = min(nodes & ready or nodes or carried, key=lambda node: (count[node], carried[node], node))
        goal[partition] = heir
        count[heir] += 1
        carried[heir] += weights[partition]
    _even_counts(goal, carried, count, weights, fixed, ready, leaders or {})
    if leaders:
        free = [partition for partition in leaders if partition < len(goal) and goal[partition] in ready]
        bound = fixed | fit.keys()
        _few_brokers(goal, owners, weights, [one for one in free if one not in bound], leaders)
        carried = {node: sum(weights[partition] for partition in _of(goal, node)) for node in carried}
    moved = {partition for partition, owner in enumerate(owners) if goal[partition] != owner}
    _even_loads(goal, {node: carried[node] for node in carried if node in ready}, weights, fixed | moved)
    return tuple(goal)


def _weights(partitions: int, loads: Mapping[int, float]) -> list[float]:
    """A partition counts 1, and its load, where there is much of it, as much in the mean."""
    unit = max(sum(loads.values()) / partitions if partitions else 0.0, LIGHT_LOAD)
    return [1 + loads.get(partition, 0.0) / unit for partition in range(partitions)]


def _of(goal: Sequence[int], node: int) -> list[int]:
    return [partition for partition, owner in enumerate(goal) if owner == node]


def _even_counts(
    goal: list[int],
    carried: dict[int, float],
    count: Counter[int],
    weights: Sequence[float],
    fixed: set[int],
    ready: set[int],
    leaders: Mapping[int, int],
) -> None:
    """From the node with most to the ready node with fewest, until they differ by one at most."""
    givers = dict.fromkeys(carried)
    heirs = [node for node in carried if node in ready]
    while givers and heirs:
        giver = max(givers, key=lambda node: (count[node], carried[node]))
        heir = min(heirs, key=lambda node: (count[node], carried[node]))
        if count[giver] - count[heir] <= 1:
            return
        own = [partition for partition in _of(goal, giver) if partition not in fixed]
        if not own:
            del givers[giver]  # all that it has was pinned to it
            continue
        wish = (carried[giver] - carried[heir]) / 2
        led = Counter(leaders.get(partition) for partition in own)
        partition = min(own, key=lambda one: (abs(weights[one] - wish), led[leaders.get(one)]))
        _move(partition, giver, heir, goal, carried, weights)
        count[giver] -= 1
        count[heir] += 1


class _Kind(NamedTuple):
    """Partitions that are alike: `owner` now, who is to have them, their log's leader, about their weight."""

    owner: int
    heir: int
    leader: int
    weight: int

    @property
    def moves(self) -> bool:
        return self.owner != self.heir


def _few_brokers(
    goal: list[int],
    owners: Sequence[int],
    weights: Sequence[float],
    free: Sequence[int],
    leaders: Mapping[int, int],
) -> None:
    """Exchange the places of partitions that are alike but for their leaders, as long as that makes no more
    moves. The sum of the squares of how many partitions each node has of each leader grows each time."""
    kinds: defaultdict[_Kind, list[int]] = defaultdict(list)
    counts: Counter[tuple[int, int]] = Counter()
    for partition in sorted(free):
        kind = _Kind(
            owners[partition], goal[partition], leaders[partition], round(weights[partition] / ALIKE)
        )
        kinds[kind].append(partition)
        counts[kind.heir, kind.leader] += 1
    for _ in range(EXCHANGES):
        best = max(_exchanges(kinds, counts), default=None)
        if best is None:
            return
        _, one, other = best
        for kind, heir in ((one, other.heir), (other, one.heir)):
            partition = kinds[kind].pop()
            if not kinds[kind]:
                del kinds[kind]
            counts[kind.heir, kind.leader] -= 1
            counts[heir, kind.leader] += 1
            goal[partition] = heir
            kinds[kind._replace(heir=heir)].append(partition)


def _exchanges(
    kinds: Mapping[_Kind, Sequence[int]], counts: Mapping[tuple[int, int], int]
) -> Iterator[tuple[int, _Kind, _Kind]]:
    """Those that are worth it: how much, and of which kinds one partition each."""
    for one in kinds:
        for other in kinds:
            if other.heir == one.heir or other.leader == one.leader or other.weight != one.weight:
                continue
            if (one.owner != other.heir) + (other.owner != one.heir) > one.moves + other.moves:
                continue
            gain = (
                counts[one.heir, other.leader]
                + counts[other.heir, one.leader]
                - counts[one.heir, one.leader]
                - counts[other.heir, other.leader]
                + 2
            )
            if gain > 0:
                yield gain, one, other


def _even_loads(
    goal: list[int], carried: dict[int, float], weights: Sequence[float], fixed: set[int]
) -> None:
    """Some of the heaviest node change places with lighter ones of the lightest, if these differ by a lot."""
    if not carried:
        return
    mean = sum(carried.values()) / len(carried)
    enough, worth = IMBALANCE * mean, WORTH * mean
    fixed = set(fixed)
    for _ in range(LOAD_SWAPS):
        giver, heir = max(carried, key=carried.__getitem__), min(carried, key=carried.__getitem__)
        gap = carried[giver] - carried[heir]
        if gap <= enough:
            return
        enough = IMBALANCE * mean / 2  # so that it does not begin again soon
        pairs = [
            (weights[one] - weights[other], one, other)
            for one in _of(goal, giver)
            for other in _of(goal, heir)
            if one not in fixed
            and other not in fixed
            and worth <= weights[one] - weights[other] <= gap - worth
        ]
        if not pairs:
            return
        _, one, other = min(pairs, key=lambda pair: abs(pair[0] - gap / 2))
        _move(one, giver, heir, goal, carried, weights)
        _move(other, heir, giver, goal, carried, weights)
        fixed |= {one, other}


def _move(
    partition: int,
    giver: int,
    heir: int,
    goal: list[int],
    carried: dict[int, float],
    weights: Sequence[float],
) -> None:
    goal[partition] = heir
    carried[giver] -= weights[partition]
    carried[heir] += weights[partition]


def step(
    owners: Sequence[int],
    goal: Sequence[int],
    there: Collection[int],
    serving: Collection[tuple[int, int]],
    unable: Collection[tuple[int, int]] = (),
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The next owners on the way to the goal, and the moves that remain: partition -> its next owner.

    A partition of a node that is not `there`, or is `unable` to serve it, moves at once; of the rest a few to
    each node, so that none is without an owner for long. `serving`: partitions, each with a node that reports
    to serve it (several may, as long as one does not know of the other); a partition that a node was given
    and does not serve counts as under way.
    """
    now, moving = list(owners), dict[int, int]()
    under_way = Counter(owner for partition, owner in enumerate(owners) if (partition, owner) not in serving)
    for partition, (owner, heir) in enumerate(zip(owners, goal, strict=True)):
        if owner == heir:
            continue
        if owner not in there or heir == NOBODY or (partition, owner) in unable:
            now[partition] = heir
        elif under_way[heir] < MOVES_AT_A_TIME:
            under_way[heir] += 1
            now[partition] = heir
        else:
            moving[partition] = heir
    return tuple(now), moving
