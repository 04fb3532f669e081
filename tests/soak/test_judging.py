"""A growing figure is distinguished from one that goes up and down."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.chaos.account import Account
from tests.chaos.facts import Check
from tests.soak.__main__ import verdict
from tests.soak.judging import MIB, growths, slope
from tests.soak.page import Chart, Line, render
from tests.soak.samples import Sample, spread

SECONDS = 600


def _samples(
    grow_bytes_per_s: float = 0.0, descriptors_per_s: float = 0.0, noise: int = 4 * MIB
) -> list[Sample]:
    """Of a process that fills its caches for a minute, and has peaks."""
    dice = random.Random(7)
    return [
        Sample(
            at,
            round(
                80 * MIB
                + min(at, 60) * MIB / 2
                + grow_bytes_per_s * at
                + dice.random() * noise
                + (at % 90 == 0) * 40 * MIB
            ),
            round(50 + descriptors_per_s * at + dice.randrange(5)),
            6,
            at * 0.2,
            {"tasks": 11.0},
        )
        for at in range(0, SECONDS, 5)
    ]


def _broken(samples: list[Sample]) -> list[str]:
    return [one.name for one in growths(samples) if not one.good]


def test_what_only_fills_up_and_has_peaks_does_not_grow() -> None:
    assert _broken(_samples()) == []


@pytest.mark.parametrize(
    ("leak", "broken"),
    [
        ({"grow_bytes_per_s": 40_000.0}, ["memory"]),
        ({"descriptors_per_s": 0.05}, ["descriptors"]),
        ({"grow_bytes_per_s": 1_000.0}, []),
    ],
)
def test_a_leak_is_told_by_its_slope(leak: dict[str, Any], broken: list[str]) -> None:
    assert _broken(_samples(**leak)) == broken


def test_a_slope_is_that_of_most_pairs() -> None:
    assert slope([(float(at), 3.0 * at) for at in range(100)]) == pytest.approx(3.0)
    assert slope([(float(at), 1_000.0 if at == 50 else 2.0) for at in range(100)]) == 0
    assert slope([(1.0, 2.0)]) == 0


def test_a_sentence_says_what_grew_or_what_was_broken() -> None:
    account = Account(
        [Check("no record is skipped", 7, ["records 3 to 4"])], [], [], [], {}, {}, ["reader-1 ended"]
    )
    verdicts = verdict(account, {"node 1": growths(_samples(grow_bytes_per_s=40_000.0))})
    bad = [text for good, text in verdicts if not good]
    assert bad[0].startswith("node 1: memory grew by 16")
    assert bad[1:] == [
        "no record is skipped: 7 facts looked at, 1 broken.",
        "records 3 to 4",
        "reader-1 ended",
    ]


def test_spreads_of_latencies() -> None:
    found = spread(1.0, [float(one) for one in range(1, 101)])
    assert found is not None
    assert (found.calls, found.half_ms, found.most_ms, found.longest_ms) == (100, 50.0, 99.0, 100.0)
    assert spread(1.0, []) is None


def test_the_page_needs_nothing_else_and_shows_no_markup_of_others() -> None:
    chart = Chart("Memory", "MiB", [Line("node <1>", [(float(at), at * 1.5) for at in range(5_000)])])
    page = render(
        "A soak", "about & more", [(False, "it <grew>")], [("T", [("a",), (1,)])], [chart], [(2.0, "<kill>")]
    )
    for part in ("node &lt;1&gt;", "it &lt;grew&gt;", "&lt;kill&gt;", "about &amp; more", "<polyline"):
        assert part in page
    assert "http" not in page
    assert "<script" not in page
    assert len(page) < 40_000, "lines have as many points as a screen"
