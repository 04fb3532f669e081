"""Every target on its corpus; each can fail, and says how to see the same again. `make fuzz` draws new
inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest

from ringleader.protocol import native
from tests.fuzz import __main__ as command
from tests.fuzz import child, corpus
from tests.fuzz import target as bounds
from tests.fuzz.target import NAMES, BrokenPromiseError, Target, judge, load
from tests.fuzz.targets import batches

TRIES = 40_000
"""Inputs among which a planted bug is found. That of the documents takes 1,800 on average, 7,000 at times."""


@pytest.fixture(autouse=True)
def compiled_code(compiled: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are read in both ways, whatever is installed."""
    monkeypatch.setattr(batches, "COMPILED", compiled)
    monkeypatch.setattr(native, "compiled", compiled)


def drawn(name: str, target: Target, rng: Random) -> Iterator[bytes]:
    known = [*corpus.kept(name), *target.seeds()]
    return itertools.chain(known, _changed(target, known, rng))


def _changed(target: Target, known: list[bytes], rng: Random) -> Iterator[bytes]:
    for _ in range(TRIES):
        data = rng.choice(known)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = target.mutate(data, rng)[: bounds.MAX_BYTES]
        yield data


def check_all(target: Target, inputs: Iterator[bytes]) -> None:
    try:
        for data in inputs:
            target.check(data)
    finally:
        target.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_finds_nothing(name: str) -> None:
    target = load(name)
    try:
        for data in dict.fromkeys((*corpus.kept(name), *target.seeds())):
            judge(target, data)
    finally:
        target.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_bug_is_found(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = load(name)
    inputs = drawn(name, target, Random(seed))
    target.plant(monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is
        check_all(target, inputs)


def test_a_find_is_kept_and_can_be_seen_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "OUT", tmp_path)
    load("embedded").plant(monkeypatch)
    with pytest.raises(SystemExit) as ended:
        child.blind("embedded", 60)
    assert ended.value.code == child.FOUND
    [found] = (tmp_path / "finds" / "embedded").iterdir()
    with pytest.raises(Exception):  # noqa: B017, PT011
        command.replay("embedded", found)
    monkeypatch.undo()
    assert command.replay("embedded", found) == 0


def test_an_input_that_takes_long_or_much_memory_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(data: bytes) -> None:
        held = bytearray(int(data))
        held[::4096] = b"x" * len(held[::4096])

    target = Target("greedy", "", greedy, lambda: (), lambda data, rng: data, lambda patch: None)
    judge(target, b"1")
    monkeypatch.setattr(bounds, "GROWTH_BYTES", 32 * 1024 * 1024)
    peak = bounds._peak_bytes()
    with pytest.raises(BrokenPromiseError, match="bytes of memory"):
        judge(target, b"%d" % (peak + 64 * 1024 * 1024))
    monkeypatch.setattr(bounds, "CPU_S", 0.0)
    with pytest.raises(BrokenPromiseError, match="CPU time"):
        judge(target, b"1")
