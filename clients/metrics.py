"""The counters of a member, under names of our own next to the Java consumer's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(slots=True)
class Counters:
    """Kept by the machine and the commits; times are arguments."""

    joins: int = 0
    syncs: int = 0
    rebalances: int = 0
    failed_rebalances: int = 0
    rebalance_ms_total: int = 0
    rebalance_ms_max: int = 0
    last_rebalance_ms: int | None = None
    heartbeats: int = 0
    heartbeat_round_trip_ms: int | None = None
    heartbeat_round_trip_ms_max: int = 0
    last_heartbeat_ms: int | None = None
    commits: int = 0
    commit_failures: int = 0
    commit_ms_total: int = 0
    commit_ms_max: int = 0
    revocations: int = 0
    revoked_ms_total: int = 0
    revoked_ms_max: int = 0
    times_lost: int = 0
    poll_expirations: int = 0
    assigned_ms: int | None = None
    """When the present assignment came."""
    began_ms: int | None = None
    """When the rebalance under way began for this member."""
    revoking_ms: int | None = None
    """When the revocation under way began."""

    def rebalancing(self, now_ms: int) -> None:
        """This member joins; a rebalance that is tried again is one."""
        self.joins += 1
        if self.began_ms is None:
            self.began_ms = now_ms

    def rebalanced(self, now_ms: int) -> None:
        """It has an assignment."""
        self.syncs += 1
        self.rebalances += 1
        self.assigned_ms = now_ms
        if self.began_ms is not None:
            took_ms = now_ms - self.began_ms
            self.last_rebalance_ms, self.began_ms = took_ms, None
            self.rebalance_ms_total += took_ms
            self.rebalance_ms_max = max(self.rebalance_ms_max, took_ms)

    def beaten(self, sent_ms: int, now_ms: int) -> None:
        """A heartbeat was answered."""
        self.heartbeats += 1
        self.last_heartbeat_ms = sent_ms
        self.heartbeat_round_trip_ms = now_ms - sent_ms
        self.heartbeat_round_trip_ms_max = max(self.heartbeat_round_trip_ms_max, now_ms - sent_ms)

    def revoked(self, now_ms: int) -> None:
        """A revocation has ended, in time or not."""
        if self.revoking_ms is not None:
            took_ms = now_ms - self.revoking_ms
            self.revoking_ms = None
            self.revocations += 1
            self.revoked_ms_total += took_ms
            self.revoked_ms_max = max(self.revoked_ms_max, took_ms)

    def committed(self, took_ms: int, well: bool) -> None:
        """A commit has ended, retries included."""
        self.commits += well
        self.commit_failures += not well
        self.commit_ms_total += took_ms
        self.commit_ms_max = max(self.commit_ms_max, took_ms)


@dataclass(frozen=True, slots=True)
class MemberMetrics:
    """A member's figures at one moment, counted since it was made. Times in milliseconds.

    After each the Java consumer's name (`consumer-coordinator-metrics` where nothing else is named)."""

    group: str
    client_id: str
    member_id: str
    """"": none yet."""
    phase: str
    """Where it stands, in words."""
    generation: int
    """-1: in none."""
    joins: int
    """JoinGroup requests sent (join-total counts their answers)."""
    syncs: int
    """Shares received (sync-total)."""
    rebalances: int
    """Rebalances that ended with an assignment (rebalance-total)."""
    failed_rebalances: int
    """Joins and syncs that were refused or got no answer (failed-rebalance-total)."""
    last_rebalance_ms: int | None
    """From the first JoinGroup to the assignment, the last time."""
    rebalance_ms_total: int
    """All of them together (rebalance-latency-total)."""
    rebalance_ms_max: int
    """The longest (rebalance-latency-max)."""
    assigned_age_ms: int | None
    """Since the present assignment came (last-rebalance-seconds-ago); None without an assignment."""
    revocations: int
    """Times that this member was asked to give up an assignment or a part of it."""
    revoked_ms_total: int
    """How long that took, work in hand, `on_revoked` and commits together (partition-revoked-latency-avg)."""
    revoked_ms_max: int
    """The longest (partition-revoked-latency-max)."""
    times_lost: int
    """Shares, or parts of one, that were lost."""
    heartbeats: int
    """Heartbeats answered (heartbeat-total)."""
    heartbeat_round_trip_ms: int | None
    """The last one's time from request to answer."""
    heartbeat_round_trip_ms_max: int
    """The longest (heartbeat-response-time-max)."""
    last_heartbeat_age_ms: int | None
    """Since the last one that was answered was sent (last-heartbeat-seconds-ago)."""
    commits: int
    """Commits made (commit-total); merged ones are one."""
    commit_failures: int
    """Commits that failed for good."""
    commit_ms_total: int
    """How long commits took, retries included (commit-latency-avg times commits)."""
    commit_ms_max: int
    """The longest (commit-latency-max)."""
    commits_waiting: int
    """Commits that wait for their turn or their answer."""
    offsets_stored: int
    """Partitions with offsets that are stored and not committed."""
    work_in_hand: int
    """Pieces of work that have begun in `working` and not ended."""
    last_poll_age_ms: int | None
    """Since the application called `polled` (consumer-metrics: last-poll-seconds-ago); None: never."""
    poll_expirations: int
    """Times that this member left because the application made no progress."""


def member_metrics(counters: Counters, now_ms: int, present: Mapping[str, Any]) -> MemberMetrics:
    """The current figures. `present`: those that are not counters."""
    names = {field.name for field in fields(Counters)}
    counted = {
        field.name: getattr(counters, field.name) for field in fields(MemberMetrics) if field.name in names
    }
    beaten_ms, assigned_ms = counters.last_heartbeat_ms, counters.assigned_ms
    return MemberMetrics(
        **counted,
        last_heartbeat_age_ms=None if beaten_ms is None else now_ms - beaten_ms,
        assigned_age_ms=None if assigned_ms is None else now_ms - assigned_ms,
        **present,
    )


@dataclass(frozen=True, slots=True)
class ProcessMetrics:
    """Counters of `process`, of all its runs."""

    records_waiting: int
    """Records that are asked for and not done, those that handlers have included."""
    records_running: int
    """Records that handlers have."""
    records_resting: int
    """Records that wait to be tried again."""
    records_done: int
    """Records that count as processed, those that were skipped, put off or became dead letters
    included."""
    calls_failed: int
    """Calls of the handler that raised, or did not end in time."""
    records_skipped: int
    """Records that were given up by the policy `Skip`."""
    dead_letters: int
    """Records that were given to a `DeadLetter`."""
    records_put_off: int
    """Records that were written to a retry topic."""
