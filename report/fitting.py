"""How many partitions and consumers fit a topic, by the rule of `ringleader size` and by its hot keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringleader.clients.whatif import sizing

MOST_TIMES = 4
"""Numbers of partitions are tried up to this multiple of the present one, or what the rule asks for."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The number of partitions that a topic needs. Rates in records a second."""

    topic: str
    partitions: int
    consumers: int
    target_per_s: float
    """The busiest time slot of the window, and the head room."""
    by_rule: int
    """By the sizing rule: the target over what one producer and what one consumer can do with a partition."""
    by_skew: int | None
    """The smallest number at which the fullest partition is no more than a consumer can do; None: no number
    that was tried."""
    consumers_needed: int
    """The target over what one consumer can do."""
    advice: tuple[str, ...]
    """The conclusions, in sentences."""

    @property
    def partitions_needed(self) -> int:
        """By the rule, and so that no partition is too much for its consumer as far as more of them help."""
        return max(self.by_rule, self.by_skew or 1)


def tries(partitions: int, by_rule: int) -> list[int]:
    """The numbers of partitions worth trying: the present one, one more, multiples of it, and the rule's."""
    wanted = {1, partitions, partitions + 1, by_rule}
    wanted.update(partitions * times for times in range(2, MOST_TIMES + 1))
    return sorted(wanted)


def rule(target_per_s: float, producer_per_s: float, consumer_per_s: float) -> int:
    """The sizing rule; 1 for a topic without records."""
    return sizing(target_per_s, producer_per_s, consumer_per_s).partitions if target_per_s > 0 else 1


def fit(
    topic: str,
    partitions: int,
    consumers: int,
    target_per_s: float,
    producer_per_s: float,
    consumer_per_s: float,
    shares: Mapping[int, float],
    hottest_key: tuple[str, float] | None,
) -> Fit:
    """`shares`: number of partitions -> share of all records in the fullest one (`traffic.spread`).
    `hottest_key`: the key with the most records, and its share."""
    by_rule = rule(target_per_s, producer_per_s, consumer_per_s)
    enough = [n for n, share in sorted(shares.items()) if target_per_s * share <= consumer_per_s]
    by_skew = enough[0] if enough else None
    consumers_needed = max(1, math.ceil(target_per_s / consumer_per_s))
    advice = _advice(topic, partitions, consumers, max(by_rule, by_skew or 1), consumers_needed)
    if hottest_key is not None and target_per_s * hottest_key[1] > consumer_per_s:
        name, share = hottest_key
        advice.append(
            f"{topic}: key {name} alone has {share:.0%} of the records, {target_per_s * share:,.0f} a second "
            f"at the target: more than one consumer can do ({consumer_per_s:,.0f}). No number of partitions "
            "cures that; the key has to be split."
        )
    elif by_skew is None and shares:
        advice.append(
            f"{topic}: with none of {_listed(sorted(shares))} partitions can one consumer do the fullest."
        )
    return Fit(topic, partitions, consumers, target_per_s, by_rule, by_skew, consumers_needed, tuple(advice))


def _advice(topic: str, partitions: int, consumers: int, needed: int, consumers_needed: int) -> list[str]:
    found = []
    if partitions < needed:
        found.append(f"{topic}: {partitions} partitions are too few for the target: {needed} are needed.")
    if consumers > partitions:
        found.append(
            f"{topic}: {consumers - partitions} of {consumers} consumers must be idle: there are "
            f"{partitions} partitions."
        )
    elif consumers < consumers_needed:
        found.append(f"{topic}: {consumers} consumers are too few: the target needs {consumers_needed}.")
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
