"""A partition's directory as a start finds it: files of records, their indexes, and the stored start."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from crc32c import crc32c

from ringleader.coordinator.topics.producers import Producers
from ringleader.coordinator.topics.recovery import START_FILE, Recovered, recover
from ringleader.coordinator.topics.segment import Segment, Snapshot, find_time, read_range
from ringleader.coordinator.topics.transactional import TransactionIndex, marker
from ringleader.protocol.records import Record, build_batch, iter_batches, stamp
from tests.fuzz.mutation import changed_bytes, changed_json, changed_parts, joined, json_bytes, parts_of
from tests.fuzz.target import Target, promise, scratch
from tests.fuzz.targets import batches

NOW_MS = 1_700_000_000_000
FILES = 4
"""Of records, at most: each with its base offset, its index and its bytes, which are three parts."""
_DIRECTORY = scratch()
_HEAD = struct.Struct("<4sIqqqqqII")


def check(data: bytes) -> None:
    directory = _DIRECTORY / "partition"
    directory.mkdir()
    try:
        start, *files = parts_of(data) or [b""]
        if start:
            (directory / START_FILE).write_bytes(start)
        for at in range(0, min(len(files), 3 * FILES) - 2, 3):
            base = int.from_bytes(files[at][:8], "big") & 2**63 - 1
            path = directory / f"{base:020d}.log"
            if files[at + 2] != b"-":
                path.write_bytes(files[at + 2])
            if files[at + 1]:
                path.with_suffix(".index").write_bytes(files[at + 1])
        _recovered(directory, any(files[1::3]))
    finally:
        shutil.rmtree(directory)


def _recovered(directory: Path, has_index: bool) -> None:
    """`has_index`: whether there are indexes."""
    try:
        found = recover(directory, NOW_MS)
    except OSError:
        return  # among these, what says that a file is damaged
    promise(0 <= found.start_offset <= found.next_offset, f"from {found.start_offset} to {found.next_offset}")
    before = found.segments[0].base_offset if found.segments else found.next_offset
    for one in found.segments:
        promise(one.base_offset >= before, "files overlap")
        before = one.next_offset
        if one.first_timestamp or one.size_bytes:
            _read(one)
    _sealed(found)
    again = recover(directory, NOW_MS)
    promise(
        (again.next_offset, again.start_offset) == (found.next_offset, found.start_offset),
        f"a second start finds {again.start_offset} to {again.next_offset}, the first one "
        f"{found.start_offset} to {found.next_offset}",
    )
    promise(not again.cut_bytes, "a second start cuts again")
    if not has_index:  # an index is believed, whatever it says of producers
        promise(_known(again) == _known(found), "a second start knows other producers or transactions")


def _read(one: Segment) -> None:
    """An index may vouch for bytes that are no batches, but only with an error that says so."""
    with suppress(OSError):
        read_range(one.path, 0, one.size_bytes, one.size_bytes, one.base_offset, 1 << 20)
    with suppress(OSError):
        find_time([(one.path, 0, one.size_bytes)], 0, one.base_offset)


def _sealed(found: Recovered) -> None:
    """The batches that were found can be written down, as at the end of a file."""
    if found.segments:
        last = found.segments[-1]
        aborted = found.transactions.dump_aborted(last.base_offset, last.next_offset)
        snapshot = Snapshot(found.producers.dump(), [*found.transactions.open.items()], aborted)
        index = last.dump_index(snapshot)
        Segment.load_index(last.path.parent, last.base_offset, index)


def _known(found: Recovered) -> Any:
    rows = [row[:2] + row[3:] for row in found.producers.dump()]
    return rows, found.transactions.open, found.transactions.dump_aborted(0, 2**63 - 1)


def _file(base: int, count: int) -> bytes:
    records = [Record(number, NOW_MS + number, b"k", b"v" * number) for number in range(3)]
    made = b""
    for number in range(count):
        batch = build_batch(records, producer_id=7 if number % 2 else -1, producer_epoch=1,
                            base_sequence=3 * (number // 2) if number % 2 else -1,
                            transactional=number == 3)  # fmt: skip
        made += stamp(batch, base + 3 * number, 0)
    return made


def _index(base: int, data: bytes) -> bytes:
    one, producers, transactions = Segment(Path(), base), Producers(), TransactionIndex()
    for view in iter_batches(data):
        one.add(view.header)
        if view.header.producer_id >= 0:
            producers.add(view.header, view.header.base_offset, NOW_MS)
        if view.header.is_transactional:
            transactions.add(view.header.producer_id, view.header.base_offset)
    return one.dump_index(Snapshot(producers.dump(), [*transactions.open.items()], []))


def seeds() -> Iterator[bytes]:
    def eight(base: int) -> bytes:
        return base.to_bytes(8, "big")

    one, two = _file(0, 4), _file(12, 2)
    end = stamp(marker(7, 1, NOW_MS, committed=False), 12, 0)
    yield joined([b"", eight(0), b"", one])
    yield joined([b"", eight(0), _index(0, one), one])
    yield joined([b"2\n", eight(0), _index(0, one), one, eight(12), b"", two])
    yield joined([b"", eight(0), _index(0, one), one, eight(12), b"", end + stamp(two, 13, 0)])
    yield joined([b"7\n", eight(7), b"", b""])
    yield joined([b"12\n", eight(0), _index(0, one), b"-", eight(12), _index(12, two), two])


SEEDS = list(seeds())


def mutate(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.05:
        data = rng.choice(SEEDS)
    parts = parts_of(data)
    if len(parts) < 4 or rng.random() < 0.2:
        return changed_parts(data, rng, changed_bytes)
    at = rng.randrange(1, len(parts))
    match at % 3:
        case 0:
            parts[at] = (
                batches.mutate(parts[at], rng) if rng.random() < 0.8 else changed_bytes(parts[at], rng)
            )
        case 2:
            parts[at] = _changed_index(parts[at], rng)
        case _:
            parts[at] = rng.choice((0, 3, 12, 13, 2**62, 2**63 - 1)).to_bytes(8, "big")
    if rng.random() < 0.1:
        parts[0] = rng.choice((b"", b"0\n", b"3\n", b"12\n", b"9999999999999999999\n", b"x"))
    return joined([part[: 2**16 - 1] for part in parts])


def _changed_index(data: bytes, rng: Random) -> bytes:
    """With its checksum made right again, mostly."""
    if len(data) < _HEAD.size + 4:
        return changed_bytes(data, rng)
    head, rest = list(_HEAD.unpack_from(data)), data[_HEAD.size : -4]
    if rng.random() < 0.5:
        at = rng.randrange(2, len(head) - 2)
        head[at] = rng.choice(
            (0, 1, -1, head[at] + 1, head[at] - 1, 2**62, -(2**63), 2**63 - 1, rng.randrange(500))
        )
        head[at] = max(-(2**63), min(2**63 - 1, head[at]))
    else:
        import json

        columns, document = rest[: 24 * head[-2]], rest[24 * head[-2] :]
        try:
            document = json_bytes(changed_json(json.loads(document), rng))
        except (ValueError, RecursionError):
            document = changed_bytes(document, rng)
        rest, head[-1] = columns + document, len(document)
    body = _HEAD.pack(*head) + rest
    return body + struct.pack("<I", crc32c(body)) if rng.random() < 0.95 else body


def plant(patch: Any) -> None:
    """The broken end of a file is not cut off."""
    patch.setattr(os, "ftruncate", lambda *_: None)


TARGET = Target(
    "topic_log",
    "Whatever a partition's directory holds, a start finds a log in it or raises an OSError; what is found "
    "can "
    "be read and written down, and a second start finds the same and cuts nothing more.",
    check,
    seeds,
    mutate,
    plant,
)
