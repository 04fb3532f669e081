"""Where a partition starts when it is (re)gained, and what a replayed batch reads. Pure functions.

Spark's commit log and the group's offsets are two stores without a common transaction. A batch is
first in the offset log, then in the sink, then in Spark's commit log, and last committed to the
group; a stop or a kill may fall between any two of them. These rules close the gap so that no record
is missed, and so that records are read twice only where a batch was really cut off.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ringleader.spark_bridge.values import Committed, CommitToken, OffsetRange, ReplayPolicy


class Reason(StrEnum):
    """The reason for the first position of a partition, for the log line."""

    REPAIRED = "our last batch was written but its group commit was lost"
    COMMITTED = "the group's committed offset"
    RESET = "the group's offset, which others have set behind our last batch"
    REMEMBERED = "the group has no offset; position from the checkpoint"
    STARTING = "the group has no offset yet; startingOffsets"
    NEW = "newer than the query; its beginning"


class Resume(NamedTuple):
    """``position`` is the next offset to read, or None when ``startingOffsets`` must say. ``commit``:
    whether the position is to be committed at once."""

    position: int | None
    commit: bool
    reason: Reason


class Finished(NamedTuple):
    """A range that this query's sink and Spark's commit log are known to hold, and the batch it was in."""

    offsets: OffsetRange
    batch: CommitToken


def resume(
    committed: Committed | None, finished: Finished | None, remembered: int | None, query: str
) -> Resume:
    """Where a partition starts that this query has just been assigned.

    ``committed`` is the group's offset, ``remembered`` the checkpoint's last position, ``query`` the
    checkpoint's name. A commit was lost only where the group still holds what this query committed before
    that batch: any other offset was set by a consumer that went on from there, or by an operator.
    """
    if committed is None:
        # Pinned at once in the group, so that "latest" is resolved one time only.
        if finished is not None:
            return Resume(finished.offsets.end, True, Reason.REPAIRED)
        if remembered is not None:
            return Resume(remembered, True, Reason.REMEMBERED)
        return Resume(None, True, Reason.STARTING)
    offset, token = committed
    ours = token is not None and token.query == query
    if finished is not None and offset < finished.offsets.end:
        before = token is not None and ours and token.number < finished.batch.number
        if before and offset >= finished.offsets.start:
            return Resume(finished.offsets.end, True, Reason.REPAIRED)
        return Resume(offset, not ours, Reason.RESET)
    # With our token on it, a batch that starts there and loses its commit is known from a reset to it.
    return Resume(offset, not ours, Reason.COMMITTED)


def replay(logged: OffsetRange, committed: int | None, policy: ReplayPolicy) -> OffsetRange | None:
    """The part to read of one range of a batch that is run again; None: nothing.

    Also of a partition that is another member's now: a batch that Spark calls finished has to hold whatever
    the group has not, or the next restart would take as written what nobody wrote (`Reason.REPAIRED`).
    """
    if policy is ReplayPolicy.EXACT:
        return logged
    start = logged.start if committed is None else max(logged.start, committed)
    return OffsetRange(start, logged.end) if start < logged.end else None


def commit_after_replay(logged: OffsetRange, owned: bool, committed: int | None) -> bool:
    """Whether the end of a replayed range is to be committed once the batch is durable.

    Not when another member owns the partition, went on beyond it, or someone set the group back.
    """
    return owned and (committed is None or logged.start <= committed < logged.end)
