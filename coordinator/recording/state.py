"""The memory of a shard machine, as JSON, and a machine made of it.

A record of the log is not enough to go on from: which requests wait, when sessions end, and how far a
rebalance is stand in memory only. It is read in a moment in which nothing is on its way to the log, so that
no answer waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.deadlines import NEVER
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.memory import MemoryTotal
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.recording.plain import Reader, UnreadableError, Writer
from ringleader.coordinator.unix_time import UnixTime


def is_quiet(shard: Shard) -> bool:
    """Whether nothing is on its way, and no long work is in the middle: `state_of` can be asked."""
    out, core = shard._out, shard._core
    return (
        core.phase is Phase.SERVING
        and not out.dirty
        and out.newest is None
        and out.emitted == out.durable
        and not out._waiting
        and not core._deleted
        and not core.work
        and core._waits_since_ms is None
    )


MEMBER_COSTS = 10
"""Offsets, to be read."""


def size_of(shard: Shard) -> int:
    """The cost of reading the state, in offsets."""
    return sum(
        MEMBER_COSTS * (1 + len(one.members) + len(one.given_out) + len(one.consumer_deadlines))
        + sum(map(len, one.offsets.values()))
        for one in shard._core.groups.values()
    ) + len(shard._core.topics.all())


def settings_of(shard: Shard) -> dict[str, Any]:
    """Every setting of the machine, by name."""
    return {name: getattr(shard._core.settings, name) for name in GroupSettings.model_fields}


def unix_of(shard: Shard) -> list[Any]:
    """The machine's knowledge of Unix time."""
    unix = shard._core.unix_time
    return [unix.difference_ms, [*map(list, unix._earliest)], [*map(list, unix._latest)]]


def set_unix(shard: Shard, known: list[Any]) -> None:
    """Let the machine believe that."""
    unix = shard._core.unix_time
    unix.difference_ms = known[0]
    unix._earliest = deque((when, difference) for when, difference in known[1])
    unix._latest = deque((when, difference) for when, difference in known[2])


def others_bytes(shard: Shard) -> int:
    """Bytes that the groups of other shards hold."""
    share = shard._core.memory
    return share.total.counted - share.counted


def set_others(shard: Shard, held: int) -> None:
    """Let the groups of other shards hold that."""
    share = shard._core.memory
    share.total.counted = share.counted + held


def topics_of(shard: Shard) -> dict[str, Topic]:
    """The topics that the machine knows, by name."""
    return {topic.name: topic for topic in shard._core.topics.all()}


def set_topics(shard: Shard, version: int, changed: Iterable[Topic], deleted: Iterable[str]) -> None:
    """Let the machine know that these topics are there now, and those are not."""
    topics = shard._core.topics
    for name in deleted:
        topics.remove(name)
    for topic in changed:
        topics.put(topic)
    topics.version = version


def state_of(shard: Shard, writer: Writer) -> dict[str, Any]:
    """Of a shard that `is_quiet`. `writer` names objects."""
    core, out, heap = shard._core, shard._out, shard._core.deadlines
    return {
        "partition": shard.partition,
        "confirms": out.confirms,
        "full": core.full,
        "emitted": out.emitted,
        "taken": out._taken,
        "position": core.position,
        "order": core._order,
        "written": core.work.written,
        "ending": sorted(shard.transactions.ending),
        "unix": unix_of(shard),
        "others": others_bytes(shard),
        "configs": {group_id: dict(values) for group_id, values in core.configs.all().items()},
        "topics": [core.topics.version, [writer.put(one) for one in core.topics.all()]],
        "groups": [writer.put(one) for one in core.groups.values()],
        "transactional": [[producer, [*groups]] for producer, groups in core.transactional.items()],
        "epochs": [[name, writer.put(one)] for name, one in core.epochs._notes.items()],
        "own": [[one.due_ms, one.armed_ms] for one in _own(shard)],
        "timers": [_timer(shard, writer, *entry) for entry in sorted(heap._heap, key=lambda one: one[:2])],
        "useless": heap._useless,
        "parked": [[writer.put(ticket), writer.reference(one)] for ticket, one in core.parked.items()],
    }


def _own(shard: Shard) -> tuple[GroupDeadline, ...]:
    return shard._retention.deadline, shard._confirming, shard._core.work_deadline


def _timer(shard: Shard, writer: Writer, at_ms: int, _sequence: int, deadline: GroupDeadline) -> list[Any]:
    """When an entry pops, and whose it is: a number is one of the shard's own; of what is no part of any
    group any more it counts whether the entry is its last."""
    own = _own(shard)
    if deadline in own:
        return [at_ms, own.index(deadline)]
    return [at_ms, writer.reference(deadline) or deadline.armed_ms == at_ms]


def shard_of(
    state: dict[str, Any],
    settings: dict[str, Any],
    ids: Callable[[str], str],
    ticket: Callable[[int], Any],
) -> Shard:
    """A machine that goes on from there. Raises UnreadableError, or what comes of a state that is none
    (KeyError, TypeError, ValueError)."""
    if settings.keys() != GroupSettings.model_fields.keys():
        odd = sorted(settings.keys() ^ GroupSettings.model_fields.keys())
        raise UnreadableError(f"this version of Ringleader has other settings: {', '.join(odd)[:100]}")
    chosen = GroupSettings.model_construct(**settings)
    unix, memory = UnixTime(chosen.offsets_retention_check_interval_ms), MemoryTotal()
    shard = Shard(state["partition"], chosen, ids, unix, confirmed_reads=state["confirms"], memory=memory)
    core, out = shard._core, shard._out

    def fill(made: Any) -> None:
        if isinstance(made, Group):
            made.share = core.memory

    reader = Reader(ticket, fill)
    for written in state["groups"]:
        one = reader.get(written)
        if not isinstance(one, Group):
            raise UnreadableError("a group of the state is none")
        core.groups[one.group_id] = one
        core.memory.change(one.counted_bytes)
        if not one.uncommitted:
            for topic, partitions in one.offsets.items():
                core._partitions[records.offset_key_prefix(one.group_id, topic)] = partitions
    core.transactional = {producer: dict.fromkeys(groups) for producer, groups in state["transactional"]}
    core.phase, core.full = Phase.SERVING, state["full"]
    core.position, core._order = state["position"], state["order"]
    out.emitted = out.durable = state["emitted"]
    out._taken = state["taken"]
    core.work.written = state["written"]
    shard.transactions.ending.update(state["ending"])
    set_unix(shard, state["unix"])
    set_others(shard, state["others"])
    core.epochs._notes.update((name, reader.get(one)) for name, one in state.get("epochs", ()))
    core.configs.apply(state["configs"])
    version, topics = state["topics"]
    set_topics(shard, version, map(reader.get, topics), ())
    for own, (due_ms, armed_ms) in zip(_own(shard), state["own"], strict=True):
        own.due_ms, own.armed_ms = due_ms, armed_ms
    for at_ms, of in state["timers"]:
        _add_timer(shard, at_ms, of, reader)
    core.deadlines._useless = state["useless"]
    for waits, member in state["parked"]:
        core.parked[reader.get(waits)] = reader.get(member)
    return shard


def _add_timer(shard: Shard, at_ms: int, of: Any, reader: Reader) -> None:
    heap = shard._core.deadlines
    if isinstance(of, bool):
        deadline = GroupDeadline(None, Kind.MEMBER)
        deadline.armed_ms = at_ms if of else NEVER
    else:
        deadline = _own(shard)[of] if isinstance(of, int) else reader.get(of)
        if not isinstance(deadline, GroupDeadline):
            raise UnreadableError("a timer of the state is none")
    heap._sequence += 1
    heap._heap.append((at_ms, heap._sequence, deadline))  # in order, so it is a heap
