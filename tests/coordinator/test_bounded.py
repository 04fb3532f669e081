"""A bounded memory stays within its bytes, whatever the entries are."""

from __future__ import annotations

import gc
import random
import tracemalloc

from ringleader.coordinator.bounded import BoundedCache

MAX_BYTES = 4 * 1024 * 1024


def test_memory_stays_within_the_bound() -> None:
    rng = random.Random()
    cache: BoundedCache[str, tuple[str, int]] = BoundedCache(MAX_BYTES)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(100_000):
            # Four bytes a character, as Python keeps them.
            text = chr(0x1F600) * rng.randrange(1, 900) + str(number)
            cache.remember(text, (text, number), number)
            if number % 1_000 == 0:
                assert tracemalloc.get_traced_memory()[0] <= MAX_BYTES
        assert cache
    finally:
        tracemalloc.stop()


def test_long_entries_push_nothing_out() -> None:
    cache: BoundedCache[str, int] = BoundedCache(MAX_BYTES)
    cache.remember("short", 1)
    for number in range(10_000):
        cache.remember(f"{number}" + "x" * 32_767, number)
    assert cache == {"short": 1}


def test_the_same_entry_again_counts_once() -> None:
    cache: BoundedCache[str, int] = BoundedCache(MAX_BYTES)
    cache.remember("other", 0)
    for number in range(100_000):
        cache.remember("key", number)
    assert cache == {"other": 0, "key": 99_999}
