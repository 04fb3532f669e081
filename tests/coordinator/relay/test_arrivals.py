"""How many bytes of answers are on their way at a time."""

from __future__ import annotations

from ringleader.coordinator.relay.arrivals import Arrivals


class Taker:
    def __init__(self, wanted: bool = True) -> None:
        self.granted = 0
        self.wanted = wanted

    def __call__(self) -> bool:
        self.granted += 1
        return self.wanted


def test_what_fits_is_granted_at_once_and_the_rest_in_its_turn() -> None:
    arrivals = Arrivals(100)
    first, second, third = Taker(), Taker(), Taker()
    arrivals.take(60, first)
    arrivals.take(60, second)
    arrivals.take(10, third)
    assert (first.granted, second.granted, third.granted) == (1, 0, 0)
    arrivals.give(60)
    assert (second.granted, third.granted) == (1, 1)
    assert arrivals.taken_bytes == 70


def test_what_is_larger_than_all_there_is_comes_alone() -> None:
    arrivals = Arrivals(100)
    small, large = Taker(), Taker()
    arrivals.take(1, small)
    arrivals.take(1_000, large)
    assert not large.granted
    arrivals.give(1)
    assert large.granted


def test_a_cancelled_request_takes_nothing() -> None:
    arrivals = Arrivals(100)
    first, cancelled, next_one = Taker(), Taker(wanted=False), Taker()
    arrivals.take(100, first)
    arrivals.take(100, cancelled)
    arrivals.take(100, next_one)
    arrivals.give(100)
    assert (cancelled.granted, next_one.granted) == (1, 1)
    assert arrivals.taken_bytes == 100
