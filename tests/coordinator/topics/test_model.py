"""Any sequence of appends, reads, truncations, retention and restarts, held against a list."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ringleader.coordinator.topics import Topics
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import Compression, Record, build_batch
from tests.support.shares import share
from tests.support.topiclog import START_MS, WallClock, bounds, give_out_ids, killed, topic_settings

SETTINGS = topic_settings(log_segment_bytes=700, log_retention_ms=50_000, tail_cache_bytes=900)


class TopicLog(RuleBasedStateMachine):
    """One partition, and what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = WallClock()
        give_out_ids(self.directory)
        self.topics = Topics(self.directory, SETTINGS, self.clock, sync=False, now_ms=self.clock.monotonic_ms)
        # (offset, timestamp, value), whatever the log forgot or not.
        self.records: list[tuple[int, int, bytes]] = []
        self.start = 0
        self.sequences: dict[int, int] = {}
        self.last: dict[int, tuple[bytes, int]] = {}
        self.number = 0

    def run(self, action: Callable[[], Any]) -> Any:
        async def go() -> Any:
            return await action()

        return self.loop.run_until_complete(go())

    @initialize()
    def begin(self) -> None:
        self.run(self.topics.open)
        self.run(lambda: self.topics.create("orders", 1))

    @rule(
        count=st.integers(1, 6),
        size=st.integers(0, 120),
        codec=st.sampled_from(list(Compression)),
        later_ms=st.integers(-500, 2_000),
        producer=st.none() | st.integers(1, 3),
    )
    def append(self, count: int, size: int, codec: int, later_ms: int, producer: int | None) -> None:
        self.clock.now_ms += abs(later_ms)
        made = []
        for index in range(count):
            self.number += 1
            made.append(
                Record(index, self.clock.now_ms + later_ms * index, None, b"%d" % self.number + bytes(size))
            )
        options: dict[str, Any] = {}
        if producer is not None:
            sequence = self.sequences.get(producer, 0)
            options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] = sequence + count
        data = build_batch(made, compression=codec, **options)
        if len(data) > SETTINGS.log_segment_bytes:
            # Refused: the producer's next batch has the same sequence.
            if producer is not None:
                self.sequences[producer] -= count
            return
        result = self.run(lambda: self.topics.append("orders", 0, data))
        assert result.base_offset == self.end
        if producer is not None:
            self.last[producer] = data, result.base_offset
        base = result.base_offset
        self.records += [(base + r.offset, r.timestamp_ms, r.value or b"") for r in made]

    @rule(producer=st.integers(1, 3))
    def repeat(self, producer: int) -> None:
        if producer in self.last:
            data, base = self.last[producer]
            assert self.run(lambda: self.topics.append("orders", 0, data)).base_offset == base

    @rule(back=st.integers(-2, 60), max_bytes=st.integers(0, 2_000))
    def read(self, back: int, max_bytes: int) -> None:
        offset = self.end - back
        try:
            result = self.run(lambda: self.topics.read(self.topics.partition("orders", 0), offset, max_bytes))
        except KafkaError as error:
            code = error.code
        else:
            code = 0
        assert code == (0 if self.start <= offset <= self.end else ErrorCode.OFFSET_OUT_OF_RANGE)
        if code:
            return
        found = decode_columns(result, offset)
        wanted = [record for record in self.records if record[0] >= offset]
        assert bool(found.offsets) == bool(wanted)
        assert (
            list(zip(found.offsets, found.timestamps_ms, found.values, strict=True)) == wanted[: len(found)]
        )

    @rule(ago_ms=st.integers(-5_000, 100_000))
    def look_up_time(self, ago_ms: int) -> None:
        at_ms = self.clock.now_ms - ago_ms
        found = self.run(lambda: self.topics.offset_for_time("orders", 0, at_ms))
        # Truncation cuts within a batch: what is before the start is not there any more.
        there = [(o, t) for o, t, _ in self.records if o >= self.start]
        assert found == next(((o, t) for o, t in there if t >= at_ms), (-1, -1))

    @rule(back=st.integers(0, 40))
    def truncate(self, back: int) -> None:
        offset = max(self.end - back, 0)
        self.start = max(self.start, offset)
        assert self.run(lambda: self.topics.truncate("orders", 0, offset)) == self.start

    @rule(later_ms=st.integers(0, 60_000))
    def retain(self, later_ms: int) -> None:
        self.clock.now_ms += later_ms
        self.run(self.topics.enforce_retention)
        start = self.topics.partition("orders", 0).start_offset
        assert self.start <= start <= self.end
        # Whole files go, the first that stays has something young enough.
        deleted = [t for o, t, _ in self.records if self.start <= o < start]
        assert all(timestamp < self.clock.now_ms - SETTINGS.log_retention_ms for timestamp in deleted)
        self.start = start

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        old = self.topics
        if clean:
            self.run(old.close)
        else:
            copy = Path(tempfile.mkdtemp())
            self.run(lambda: killed(old, copy))
            self.run(old.close)
            shutil.rmtree(self.directory)
            self.directory = copy
        self.topics = Topics(self.directory, SETTINGS, self.clock, sync=False, now_ms=self.clock.monotonic_ms)
        self.run(self.topics.open)

    @property
    def end(self) -> int:
        return self.records[-1][0] + 1 if self.records else 0

    @invariant()
    def bounds_hold(self) -> None:
        if self.topics.describe("orders") is not None:
            assert bounds(self.topics) == (self.start, self.end)

    def teardown(self) -> None:
        self.run(self.topics.close)
        self.loop.close()
        shutil.rmtree(self.directory)


TestTopicLog = pytest.mark.share(TopicLog.TestCase)
TestTopicLog.settings = settings(max_examples=share(10, whole=40), stateful_step_count=30, deadline=None)
assert SETTINGS.log_retention_ms < START_MS
