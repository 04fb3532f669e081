"""From when on something is a finding: each named once. Set so that what healthy groups do now and then is
none: a restart, a deploy of a group that stands still meanwhile, a member that is slow once."""

from __future__ import annotations

MINUTE_MS = 60_000

DEPLOY_GAP_MS = 5 * MINUTE_MS
"""Restarts that follow each other within this time belong to one deploy: a pod takes up to some minutes to be
ready, and the next one waits for it."""
DEPLOY_SHARE = 0.5
"""A deploy replaces at least this share of the members. Fewer are restarts of some."""
DEPLOY_ONCE = 1.5
"""And each of them about once: more departures per member than this are churn."""
DEPLOY_MEMBERS_MIN = 2
"""Of a single member there is no rolling deploy."""

POLL_EXCEEDED_MIN = 2
"""Once is bad luck; one that is certain counts alone."""

FLAPS_MIN = 2
"""Sessions of one place that ended and came back."""
FLAP_RETURN_MS = 10 * MINUTE_MS
"""A member that comes back within this time was cut off; later it is a new start."""

STORM_MIN = 5
"""Rebalances in a row: fewer are a deploy's or a scaler's."""
STORM_GAP_MS = 15_000
"""In a storm the next rebalance begins so soon after the last one: members that were put out are back after a
few heartbeats (3 s each)."""
STORM_SHARE = 0.5
"""At least this share of a storm's rebalances is made by members that the storm itself put out, or by
leaders that ask again."""

RESTARTS_MIN = 3
"""New processes in one place within `RESTART_LOOP_MS`: two are a deploy and its correction."""
RESTART_LOOP_MS = 30 * MINUTE_MS

SLOW_LEADER_MS = 2_000
"""Assignors take milliseconds for thousands of partitions; all members stand still meanwhile."""
SLOW_LEADER_MIN = 2

SLOW_JOIN_MS = 10_000
"""Every member hears of a rebalance at its next heartbeat, 3 s by default: who takes three is busy."""
SLOW_JOINS_MIN = 2

OSCILLATIONS_MIN = 3
"""How often the number of members turned from growing to shrinking or back. A morning and an evening are
two."""
OSCILLATION_MS = 60 * MINUTE_MS
"""Turns further from each other are the day's load."""
SETTLED_MS = MINUTE_MS
"""A number of members that lasts for less is a restart's."""

IDLE_MIN_MS = 10 * MINUTE_MS
"""Members without partitions for a shorter time may be waiting for a cooperative second round, or to be the
successors of a deploy."""

MIXED_MIN_MS = 10 * MINUTE_MS
"""Subscriptions that overlap but differ for a shorter time are a deploy's."""

FENCED_MIN = 2
"""Times that one instance id was taken over by another process while its owner lived."""

ZOMBIES_MIN = 2
"""One may have been killed for its memory, or by hand."""
ZOMBIE_NEAR_MS = 5 * MINUTE_MS
"""A member whose session ended was a deploy's zombie if its successor came within this time."""

LAG_MIN = 10_000
"""Records; what is less is read in a moment."""
LAG_SAMPLES_MIN = 4
LAG_GROWTH = 1.5
"""Lag that is not larger at the end of the window than at its beginning by this factor is stable."""
SKEW_SHARE = 0.5
"""The hottest fifth of the partitions (at least one) has this share of the lag."""
SKEW_MEDIAN_SHARE = 0.1
"""While a partition in the middle has less than this share of the hottest one's."""
CAPACITY_SHARE = 0.75
"""So many of the partitions grow: it is not some of them."""

STOPPED_MIN_MS = 5 * MINUTE_MS
"""Without a commit though there is lag: default of max.poll.interval.ms, by when a stuck poll loop would have
been put out."""
STOPPED_INTERVALS = 10
"""And this multiple of the usual time between the member's commits."""

EAGER_REBALANCES_MIN = 3
EAGER_MEMBERS_MIN = 3
"""With fewer, nearly everything moves anyway."""
EAGER_SAVED_SHARE = 0.3
EAGER_SAVED_MIN_MS = MINUTE_MS
"""So much of the time without a reader cooperative assignment has to save: a partition-minute, and that share
of all."""
