"""Does something grow without bound? Pure functions.

The first part of a run is not looked at: caches fill, code is imported, groups form. Of the rest, the slope
is the median of slopes between all pairs of samples (Theil and Sen), so that a peak, or a garbage
collection, is none. The sum of that slope over the time that is looked at may not be more than a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from tests.soak.samples import Sample

WARM_UP = 1 / 3
"""Of a run, its first part."""
PAIRS_OF = 200
"""At most this many samples, evenly chosen, are paired."""
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound by which one thing may grow in the time that is looked at: `least`, or a share of what there
    is."""

    name: str
    of: Callable[[Sample], float]
    least: float
    share: float
    unit: str = ""
    per_unit: float = 1.0


BOUNDS = (
    Bound("memory", lambda one: one.memory_bytes, 8 * MIB, 0.05, " MiB", MIB),
    Bound("descriptors", lambda one: one.descriptors, 8, 0.05),
    Bound("threads", lambda one: one.threads, 3, 0.0),
    Bound("tasks", lambda one: one.metrics.get("tasks", 0), 30, 0.0),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of one figure."""

    name: str
    seconds: float
    """That were looked at."""
    typical: float
    """The median, in its unit."""
    grew: float
    """By the slope, in its unit."""
    may_grow: float
    unit: str

    @property
    def good(self) -> bool:
        """Whether it stayed within its bound."""
        return self.grew <= self.may_grow

    @property
    def per_hour(self) -> float:
        """The slope."""
        return self.grew / self.seconds * 3600 if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.name} grew by {self.grew:.1f}{self.unit} in {self.seconds:.0f} s, from about"
            f" {self.typical:.1f}{self.unit} ({self.per_hour:+.1f}{self.unit} an hour); the bound is"
            f" {self.may_grow:.1f}{self.unit}"
        )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The median slope between two points; 0 for fewer than two."""
    step = max(1, len(points) // PAIRS_OF)
    chosen = points[::step]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(chosen, 2) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def growth(samples: Sequence[Sample], bound: Bound) -> Growth:
    """Of one thing in the samples of one process."""
    first_s, last_s = samples[0].at_s, samples[-1].at_s
    after = [one for one in samples if one.at_s >= first_s + WARM_UP * (last_s - first_s)]
    seconds = after[-1].at_s - after[0].at_s
    typical = median(bound.of(one) for one in after)
    grew = slope([(one.at_s, bound.of(one)) for one in after]) * seconds
    may = max(bound.least, bound.share * typical)
    per = bound.per_unit
    return Growth(bound.name, seconds, typical / per, grew / per, may / per, bound.unit)


def growths(samples: Sequence[Sample]) -> list[Growth]:
    """Of everything that has a bound."""
    return [growth(samples, bound) for bound in BOUNDS]
