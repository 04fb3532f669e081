"""Stored records of groups, replayed into a fresh shard, which then serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    GroupMetadataValue,
    GroupMetadataValueMemberMetadata,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    OffsetCommitValue,
)
from ringleader.protocol.schema import Message
from tests.fuzz.target import Target, promise
from tests.fuzz.targets.stored import as_input, changed_records, compacted, records_of

WALL_MS = 1_700_000_000_000
LATER_MS = (0, 10, 60_000, 3_600_000, 8 * 24 * 3_600_000)
"""When it is looked what is due, after the start."""
STEPS = 400
"""The most steps that a start and the work after it may take; an input has a few dozen records."""


@dataclass(frozen=True, eq=False)
class Ticket:
    """Of a request of this version."""

    api_version: int
    client_id: str | None = "c"
    client_host: str = "/127.0.0.1"
    principal: str = ""
    connection: object = None


def check(data: bytes) -> None:
    ids = count()
    shard = Shard(0, GroupSettings(), lambda prefix: f"{prefix}-{next(ids)}")
    rows = records_of(data)
    try:
        shard.replay(rows)
    except MalformedError:
        return
    shard.loaded(1_000, WALL_MS)
    stored = compacted(rows)
    for later_ms in LATER_MS:
        _work(shard, 1_000 + later_ms, stored)
        _ask(shard, 1_000 + later_ms)
    # The records that it wrote in the meantime can be read, and stand for the same groups.
    again = Shard(0, GroupSettings(), lambda prefix: prefix)
    again.replay(stored.items())
    again.loaded(1_000, WALL_MS + LATER_MS[-1])
    promise(
        _kept(again) == _kept(shard),
        f"after a restart it has {_kept(again)!r:.300}, not {_kept(shard)!r:.300}",
    )


def _work(shard: Shard, now_ms: int, stored: dict[bytes, bytes | None]) -> None:
    """Do what is due, and make durable what is written."""
    for _ in range(STEPS):
        due_ms = shard.next_deadline()
        if not shard.dirty and (due_ms is None or due_ms > now_ms):
            return
        if not shard.dirty:
            shard.tick(now_ms)
        for append in shard.drain().appends:
            for key, value in append.records:
                promise(len(key) < 100_000, "a key that no log takes")
                stored.pop(key, None)
                stored[key] = value
            shard.durable(append.position, now_ms)
    promise(False, f"after {STEPS} steps there is still something due")


def _ask(shard: Shard, now_ms: int) -> None:
    """Requests about every group that there is."""
    shard.figures()
    for group_id in list(shard.group_ids())[:5]:
        shard.describe(group_id, 5, Ticket(5))
        shard.committed_partitions(group_id)
        shard.fetch_offsets(group_id, None, False, Ticket(8))
        shard.handle(HeartbeatRequest(group_id, 1, "m", None), Ticket(4), now_ms)
        join = JoinGroupRequest(group_id, 10_000, 10_000, "", None, "consumer",
                                [JoinGroupRequestProtocol("range", b"")])  # fmt: skip
        shard.handle(join, Ticket(9), now_ms)
    for producer_id in shard.open_producers():
        shard.open_offsets(producer_id)


def _kept(shard: Shard) -> Any:
    return sorted(
        (group.group_id, {t: dict(p) for t, p in group.offsets.items() if p})
        for group in shard._groups.values()
        if any(group.offsets.values())
    )


def seeds() -> Iterator[bytes]:
    member = GroupMetadataValueMemberMetadata(
        member_id="m-1",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff",
        assignment=b"\0\0\0\0\0\0\xff\xff\xff\xff",
    )
    static = GroupMetadataValueMemberMetadata(
        member_id="m-2", group_instance_id="i", client_id="c", client_host="/h", session_timeout=9_000
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        current_state_timestamp=WALL_MS,
        members=[member, static],
    )
    group = [
        (records.group_key("g"), records.encode_group_value(value)),
        (records.reserved_key("g"), records.reserved_value(9)),
    ]
    offsets = [
        (
            records.offset_key("g", "t", number),
            records.offset_value(number, 1, "meta" * (number % 2), WALL_MS, -1),
        )
        for number in range(4)
    ]
    old = [(records.offset_key("old", "t", 0), records.offset_value(5, -1, "", 1, -1))]
    expires = [(records.offset_key("e", "t", 0), records.offset_value(5, -1, "x", 1, WALL_MS + 50_000))]
    pending = [
        (records.pending_key("g", "t", 1, 7), records.offset_value(8, 1, "", WALL_MS, -1)),
        (records.later_key("g", "t", 1, 7), b""),
    ]
    deleted: list[tuple[bytes, bytes | None]] = [(key, None) for key, _ in (*pending, *offsets[:2])]
    empty = [(records.group_key("e"), records.encode_group_value(records.empty_group_value(WALL_MS)))]
    legacy = [
        (b"\0\0" + records.offset_key("g", "t", 9)[2:], b"\0\0" + OffsetCommitValue(offset=4).encode(0))
    ]
    for some in (group, offsets, old, expires, empty, legacy, pending, [records.READ_BARRIER_RECORD]):
        yield as_input(some)
    yield as_input([*offsets, *group, *pending, *deleted])
    yield as_input([*group, *offsets, *expires, *empty, (records.group_key("g"), None)])


SEEDS = list(seeds())
_KINDS: dict[bytes, type[Message]] = {
    b"\0\0": OffsetCommitValue,
    b"\0\1": OffsetCommitValue,
    b"\0\2": GroupMetadataValue,
    b"\x52\1": OffsetCommitValue,
}


def mutate(data: bytes, rng: Random) -> bytes:
    return changed_records(data, rng, SEEDS, lambda key: _KINDS.get(key[:2]))


def plant(patch: Any) -> None:
    """The values of offsets are not looked at when they are replayed."""
    patch.setattr(records, "check", lambda key, value: None)


TARGET = Target(
    "groups",
    "A log of any records is replayed or refused by a MalformedError; the shard then serves: what is due, "
    "what "
    "is asked and what is read again raises nothing, comes to an end and keeps the offsets.",
    check,
    seeds,
    mutate,
    plant,
)
