"""Stored records of transactions, replayed into a fresh shard, which then serves."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ringleader.coordinator.transactions import records
from ringleader.coordinator.transactions.machine import Finish, TransactionShard
from ringleader.coordinator.transactions.records import decode_key, decode_value, encode_key, encode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import State, Transaction
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import TransactionLogValue
from tests.fuzz.target import Target, promise
from tests.fuzz.targets.stored import as_input, changed_records, compacted, records_of

WALL_MS = 1_700_000_000_000
LATER_MS = (0, 10, 60_000, 3_600_000, 8 * 24 * 3_600_000)
STEPS = 400


def check(data: bytes) -> None:
    rows = records_of(data)
    for _, value in rows:
        if value is not None:
            _stable(value)
    shard = TransactionShard(TransactionSettings())
    try:
        shard.replay(rows)
    except MalformedError:
        return
    shard.loaded(1_000, WALL_MS)
    stored = compacted(rows)
    for later_ms in LATER_MS:
        _work(shard, 1_000 + later_ms, stored)
    again = TransactionShard(TransactionSettings())
    again.replay(stored.items())
    again.loaded(1_000, WALL_MS + LATER_MS[-1])
    promise(len(again) == len(shard), f"after a restart there are {len(again)} ids, not {len(shard)}")


def _stable(value: bytes) -> None:
    try:
        found = decode_value(value)
    except MalformedError:
        return
    once = encode_value(found)
    promise(encode_value(decode_value(once)) == once, "a transaction is written in another way than before")


def _work(shard: TransactionShard, now_ms: int, stored: dict[bytes, bytes | None]) -> None:
    """Do what is due, make durable what is written, and put a marker wherever one is due."""
    for _ in range(STEPS):
        due_ms = shard.next_deadline()
        if not shard.dirty and (due_ms is None or due_ms > now_ms):
            return
        if not shard.dirty:
            shard.tick(now_ms)
        box = shard.drain()
        for append in box.appends:
            for key, value in append.records:
                promise(decode_key(key) is not None, "a key that it does not know itself")
                stored.pop(key, None)
                stored[key] = value
            shard.durable(append.position, now_ms)
        for event in box.events:
            if isinstance(event, Finish):
                shard.finished(event.transactional_id, event.producer_id, event.epoch, now_ms)
    promise(False, f"after {STEPS} steps there is still something due")


def seeds() -> Iterator[bytes]:
    partitions = frozenset({("t", 0), ("t", 1), ("u", 3)})
    for state in State:
        one = Transaction(
            7, 3, 60_000, state, partitions, WALL_MS - 5_000, WALL_MS - 1_000, aborted=state == 4
        )
        yield as_input([(encode_key("id"), encode_value(one)), (encode_key("none"), None)])
    several = [
        (
            encode_key(f"id-{number}"),
            encode_value(Transaction(number, 0, 1_000, State.ONGOING, partitions, WALL_MS, WALL_MS)),
        )
        for number in range(5)
    ]
    yield as_input([*several, (encode_key("id-2"), None), (b"\0\1other", b"version")])
    yield as_input(
        [(encode_key("old"), encode_value(Transaction(9, 32_766, 60_000, State.EMPTY, frozenset(), -1, 1)))]
    )


SEEDS = list(seeds())


def mutate(data: bytes, rng: Random) -> bytes:
    return changed_records(data, rng, SEEDS, lambda key: TransactionLogValue)


def plant(patch: Any) -> None:
    """A state that there is not is none."""
    patch.setattr(records, "State", lambda number: {int(one): one for one in State}[number])


TARGET = Target(
    "transactions",
    "A log of any records is replayed or refused by a MalformedError; the shard then serves: what is due "
    "raises "
    "nothing and comes to an end, and what it wrote is read again.",
    check,
    seeds,
    mutate,
    plant,
)
