"""From when on something is a finding. The defaults are set so that what healthy groups do now and then is
none: a restart, a deploy of a group that stands still meanwhile, a member that is slow once."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ringleader.protocol.wire import INT32_MAX

MINUTE_MS = 60_000


def _ms(default: int, description: str) -> int:
    made: int = Field(default, ge=0, le=INT32_MAX, description=description)
    return made


def _least(default: int, description: str, ge: int = 1) -> int:
    made: int = Field(default, ge=ge, le=INT32_MAX, description=description)
    return made


def _share(default: float, description: str) -> float:
    made: float = Field(default, ge=0, le=1, allow_inf_nan=False, description=description)
    return made


def _factor(default: float, description: str) -> float:
    made: float = Field(default, ge=1, le=1_000, allow_inf_nan=False, description=description)
    return made


class Thresholds(BaseModel):
    """The limits of advice, settable (docs/settings.md). Times end in `_ms`; a share lies between 0 and 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # --- rolling deploy ---
    deploy_gap_ms: int = _ms(
        5 * MINUTE_MS,
        "Longest time between two rebalances of one deploy: a pod takes up to some minutes to be ready, and "
        "the next one waits for it.",
    )
    deploy_share: float = _share(
        0.5, "Least share of the members that a deploy replaces; fewer are restarts of some."
    )
    deploy_departures_per_member: float = _factor(
        1.5,
        "Largest number of departures for each member that a deploy replaces; with more, the same places "
        "restart again and again.",
    )
    deploy_members_min: int = _least(2, "Least number of members that a deploy replaces.", ge=2)

    # --- poll loop ---
    poll_exceeded_min: int = _least(
        2, "Least number of members that did not call `poll()` in time; one that is certain counts alone."
    )

    # --- flapping member ---
    flaps_min: int = _least(2, "Least number of sessions of one place that ended, and came back.")
    flap_return_ms: int = _ms(
        10 * MINUTE_MS, "A member that comes back within this time was cut off; later it is a new start."
    )

    # --- storm ---
    storm_rebalances_min: int = _least(
        5, "Least number of rebalances in a storm; fewer are a deploy's or a scaler's."
    )
    storm_gap_ms: int = _ms(
        15_000,
        "Longest time from one rebalance of a storm to the next: members that were put out are back after a "
        "few heartbeats of 3 s.",
    )
    storm_share: float = _share(
        0.5,
        "Least share of a storm's rebalances that are caused by members that the storm itself put out, or by "
        "leaders that ask again.",
    )

    # --- restart loop ---
    restarts_min: int = _least(
        3, "Least number of new processes in one place; two are a deploy and its correction."
    )
    restart_loop_ms: int = _ms(30 * MINUTE_MS, "Time within which these restarts happen.")

    # --- slow leader, slow joiner ---
    slow_leader_ms: int = _ms(
        2_000,
        "A leader is slow that takes this long to assign: assignors take milliseconds for thousands of "
        "partitions, and all members stand still meanwhile.",
    )
    slow_leader_min: int = _least(2, "Least number of rebalances with a slow leader.")
    slow_join_ms: int = _ms(
        10_000,
        "A rebalance that waits this long for its last member has a slow joiner: members notice a rebalance "
        "at their next heartbeat, after 3 s by default.",
    )
    slow_join_min: int = _least(2, "Least number of rebalances that wait for the same place.")

    # --- autoscaler ---
    oscillations_min: int = _least(
        3, "Least number of turns between growing and shrinking; a morning and an evening are two."
    )
    oscillation_ms: int = _ms(
        60 * MINUTE_MS, "Longest time between two such turns; further apart they are the day's load."
    )
    settled_ms: int = _ms(MINUTE_MS, "A number of members that lasts for less counts as a restart.")

    # --- members ---
    idle_min_ms: int = _ms(
        10 * MINUTE_MS,
        "Least time for which a member has no partitions: for less it may wait for the second round of a "
        "cooperative rebalance, or for the end of a deploy.",
    )
    mixed_min_ms: int = _ms(
        10 * MINUTE_MS,
        "Least time for which subscriptions overlap but differ: for less it counts as a deploy.",
    )
    fenced_min: int = _least(
        2, "Least number of times that one instance id is taken over while its owner lives."
    )
    zombies_min: int = _least(
        2, "Least number of members that ended without leaving; one may have been killed by hand."
    )
    zombie_near_ms: int = _ms(
        5 * MINUTE_MS, "Longest time from the end of such a member's session to its successor."
    )

    # --- lag ---
    lag_min_records: int = _least(10_000, "Least lag of a group, in records; less is read in a moment.", ge=0)
    lag_samples_min: int = _least(4, "Least number of measurements of a partition's lag.", ge=2)
    lag_growth: float = _factor(
        1.5,
        "Lag counts as growing if it is larger by this factor at the end of the time than at its beginning.",
    )
    skew_share: float = _share(
        0.5, "Lag counts as skew if the hottest fifth of the partitions (at least one) has this share of it,"
        " and `advice.skew.median.share` holds.",
    )  # fmt: skip
    skew_median_share: float = _share(
        0.1, "Largest lag of the partition in the middle, as a share of the hottest one's."
    )
    capacity_share: float = _share(
        0.75, "Lag counts as a lack of capacity if it grows in this share of the partitions."
    )
    stopped_min_ms: int = _ms(
        5 * MINUTE_MS,
        "Least time without a commit though there is lag: with the default of `max.poll.interval.ms` a "
        "member whose poll loop is stuck has left the group by then.",
    )
    stopped_intervals: float = _factor(
        10, "And least multiple of the usual time between the member's commits."
    )

    # --- assignor of members ---
    fall_backs_min: int = _least(
        2,
        "Least number of times that the coordinator assigned in place of a member; once it does so when all "
        "members that can lead restart.",
    )

    # --- offsets ---
    expiry_near_ms: int = _ms(
        48 * 60 * MINUTE_MS,
        "Offsets of a group without members that expire within this time: two days are a weekend.",
    )
    stands_min_ms: int = _ms(
        5 * MINUTE_MS, "Least time in which one offset is committed over and over while records come."
    )
    stands_commits_min: int = _least(5, "And least number of these commits.", ge=2)

    # --- refusals ---
    refused_silent_ms: int = _ms(
        10_000,
        "A static member that was silent for this long stood still when another process took its place; one "
        "that sends heartbeats every 3 s is a second process.",
    )

    # --- eager ---
    eager_rebalances_min: int = _least(3, "Least number of rebalances with an eager assignor.")
    eager_members_min: int = _least(
        3, "Least number of members; with fewer, nearly everything changes hands anyway."
    )
    eager_saved_share: float = _share(
        0.3, "Least share of the time without a reader that cooperative assignment saves."
    )
    eager_saved_min_ms: int = _ms(MINUTE_MS, "Least time that it saves, summed over partitions.")


DEFAULT = Thresholds()
"""The documented defaults."""
