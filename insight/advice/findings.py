"""The findings of advice, each with its evidence, the changes to make, and what they would have saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ringleader.insight.advice.words import count, partition_time
from ringleader.insight.model import Confidence
from ringleader.insight.plain import Json, plain


class Pattern(StrEnum):
    """A fault that a group can have."""

    ROLLING_DEPLOY = "rolling deploy without static members"
    SLOW_POLL_LOOP = "poll loop slower than max.poll.interval.ms"
    FLAPPING_MEMBER = "flapping member"
    STORM = "rebalance storm"
    RESTART_LOOP = "restart loop"
    SLOW_LEADER = "slow leader"
    SLOW_JOINER = "slow joiner"
    AUTOSCALER = "autoscaler oscillation"
    IDLE_MEMBERS = "idle members"
    TWO_APPLICATIONS = "two applications in one group"
    SAME_INSTANCE_TWICE = "instance id used twice"
    ZOMBIES = "zombie members after a redeploy"
    LAG_IS_SKEW = "lag that is skew"
    LAG_IS_CAPACITY = "lag that is capacity"
    COMMITS_STOPPED = "commits stopped while heartbeats go on"
    COMMITS_STAND = "commits that do not move"
    OFFSETS_EXPIRE = "offsets about to expire"
    STATIC_REFUSED = "static member refused after a crash"
    EAGER = "eager where cooperative would do"
    ASSIGNOR_FELL_BACK = "assignor of members falls back"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to change."""

    setting: str
    """The client's or the platform's own name of it."""
    value: str
    """The value to set, or the thing to do."""
    now: str | None = None
    """The value today, where that is known."""
    why: str = ""
    """One sentence: how the value was found."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The recorded history, played again as it was and under another policy (`replay`)."""

    policy: str
    """The difference, in words."""
    recorded: int
    """Rebalances of the record that were played."""
    reproduced: int
    """How many of them came out again when it was played as it was."""
    invented: int
    """How many came out then that the record does not have."""
    rebalances_as_was: int
    rebalances: int
    """Under the policy."""
    unowned_as_was_ms: int
    """Summed over partitions: how long none had a reader, played as it was."""
    unowned_ms: int
    """Under the policy."""
    confidence: Confidence
    """LIKELY when the record came out again as it was, POSSIBLE when most of it did, UNKNOWN else: then no
    figure is claimed."""
    since_ms: int
    """The beginning of the part that was played."""
    assumptions: tuple[str, ...] = ()

    @property
    def avoided(self) -> int:
        """Rebalances that would not have happened; negative: more would have."""
        return self.rebalances_as_was - self.rebalances

    @property
    def saved_ms(self) -> int:
        """Partition-milliseconds without a reader that would not have been; negative: more would have."""
        return self.unowned_as_was_ms - self.unowned_ms

    @property
    def claimed(self) -> bool:
        """Whether the replay was near enough to the record for a figure."""
        return self.confidence is not Confidence.UNKNOWN

    @property
    def why_not_claimed(self) -> str:
        """The reason why the replay gives no figure."""
        return (
            f"Played again as it was, {self.reproduced} of {self.recorded} rebalances came out again and"
            f" {self.invented} others: too far from the record to say what would have been."
        )

    @property
    def text(self) -> str:
        """``With static members: 6 of 9 rebalances would not have happened; 8 partition-minutes less ...``"""
        had = self.rebalances_as_was
        if self.avoided > 0:
            text = f"{self.avoided} of {count(had, 'rebalance')} would not have happened"
        elif self.avoided < 0:
            text = f"{count(-self.avoided, 'rebalance')} more would have happened"
        elif had > 1:
            text = f"the {count(had, 'rebalance')} would have happened as well"
        else:
            text = "no rebalance less"
        if self.saved_ms >= 1_000:
            text += f"; {partition_time(self.saved_ms)} less without a reader"
        elif self.saved_ms <= -1_000:
            text += f", but {partition_time(-self.saved_ms)} more without a reader"
        near = f"{self.reproduced} of {self.recorded} came out as recorded"
        if self.invented:
            near += f", and {self.invented} more"
        return f"With {self.policy}: {text} ({self.confidence}; played as it was, {near})."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    pattern: Pattern
    text: str
    """One sentence: what happens, with its numbers."""
    confidence: Confidence
    evidence: tuple[str, ...]
    """A sentence each."""
    since_ms: int
    """The evidence lies between these."""
    until_ms: int
    changes: tuple[Change, ...]
    members: tuple[str, ...] = ()
    """Names (`Member.name`) of those that it is about."""
    rebalance_ids: tuple[str, ...] = ()
    """Those that it is made of."""
    saving: Saving | None = None
    no_saving: str = ""
    """One sentence: why there is no figure, where `saving` is None."""


@dataclass(frozen=True, slots=True)
class Advice:
    """All that was found in a window of time."""

    group: str
    since_ms: int
    until_ms: int
    findings: tuple[Finding, ...]
    """The dearest first."""
    looked_at: tuple[str, ...]
    """The numbers that were looked at, in words."""

    @property
    def healthy(self) -> bool:
        """Nothing was found."""
        return not self.findings


def advice_json(advice: Advice, plain_of: Callable[[Any], Any] = plain) -> Json:
    """Advice as JSON's own types: savings with their figures and their sentence, too."""
    made: Json = plain_of(advice)
    for one, shown in zip(advice.findings, made["findings"], strict=True):
        if one.saving is not None:
            shown["saving"] |= saving_json(one.saving)
    return {**made, "healthy": advice.healthy}


def saving_json(saving: Saving) -> Json:
    """The figures and the sentence of a saving, which are no fields of it."""
    return {name: getattr(saving, name) for name in ("claimed", "avoided", "saved_ms", "text")}
