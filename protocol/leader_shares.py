"""The share of a member in the tasks and answers of leaders in groups of the consumer protocol, as numbers:
of each topic its place in a list, the count of its partitions, and the partitions.

A list of numbers is decoded at once, where a structure for each topic of each member would take a hundred
times as long, and more than a request may have (docs/leader-side-assignors.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator


def share_numbers(share: Iterable[tuple[int, Collection[int]]]) -> list[int]:
    """A share, (place of the topic, its partitions) each, as numbers."""
    numbers: list[int] = []
    for place, partitions in share:
        numbers += (place, len(partitions))
        numbers += partitions
    return numbers


def read_share(numbers: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Each topic's place and its partitions, as they are reached. Raises ValueError where they end too early,
    or a place or count is negative."""
    at, end = 0, len(numbers)
    while at < end:
        first = at + 2
        if first > end or numbers[at] < 0 or numbers[at + 1] < 0 or first + numbers[at + 1] > end:
            raise ValueError("its numbers do not add up")
        at = first + numbers[first - 1]
        yield numbers[first - 2], numbers[first:at]
