"""A finding before its saving is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleader.insight.advice.findings import Finding, Saving
from ringleader.insight.advice.replay.policy import Policy


@dataclass(frozen=True, slots=True)
class Draft:
    """A finding, and what to play the history again under."""

    finding: Finding
    policy: Policy | None = None
    """None: no replay tells (`Finding.no_saving` says why)."""
    assumptions: tuple[str, ...] = ()
    apart: tuple[frozenset[str], ...] = ()
    """Instead of a policy: topics of applications, each of which would be a group of its own."""
    counts: Callable[[Saving], bool] | None = None
    """Where there is a saving, it is a finding only if this is so."""
    by_saving: bool = False
    """Without a saving it is no finding."""
