"""What advice says: findings, each with its evidence, what to change, and what that would have saved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ringleader.insight.model import Confidence


class Pattern(StrEnum):
    """What can be wrong with a group."""

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
    EAGER = "eager where cooperative would do"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to change."""

    setting: str
    """The client's or the platform's own name of it."""
    value: str
    """What to set it to, or what to do."""
    now: str | None = None
    """What it is, where that is known."""
    why: str = ""
    """One sentence: how the value was found."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What would have been, found by playing the recorded history again under another policy (`replay`)."""

    policy: str
    """In words: what was different."""
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
    """What was played begins here."""
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
        """Whether the replay was near enough to the record to say anything."""
        return self.confidence is not Confidence.UNKNOWN


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
