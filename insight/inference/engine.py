"""Inference over all groups of a cluster: facts in, history out.

Whoever feeds it calls `record` for each record of `__consumer_offsets`, `tell` for everything else, `tick`
now and then, and takes what was concluded from `drain`. It goes on after a restart from `restore`d snapshots
as if nothing had been: kept in one transaction with what was drained and with the positions that were read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ringleader.insight.inference.facts import Fact, Output


class Inference(Protocol):
    """What happened to the groups of one cluster.

    `exact`: the cluster has Ringleader's journal, so that groups are told by `Journalled`; of the records in
    `__consumer_offsets` only the offsets count.

    The empty group id, which Kafka lets commit, is not followed: "" stands for the cluster as a whole.
    """

    def __init__(self, *, exact: bool = False) -> None: ...

    def record(self, partition: int, offset: int, at_ms: int, key: bytes | None, value: bytes | None) -> None:
        """A record of `__consumer_offsets` as it was read. The same as `tell` of what it says, but quicker.
        What cannot be read is counted in `unreadable`, never raised: one odd record stops no history."""

    def tell(self, fact: Fact) -> None:
        """Something that was seen; see `facts` for the order."""

    def tick(self, now_ms: int) -> None:
        """What waits for time is concluded: about once a second, when all that was there has been told."""

    def drain(self) -> list[Output]:
        """What was concluded since the last call, in order. What is said again replaces what was said."""

    def moving(self) -> list[str]:
        """Groups that change just now: those that polls should describe about once a second."""

    def dirty(self) -> tuple[set[str], set[str]]:
        """Groups whose `snapshot`, and groups whose `commits_snapshot` changed since the last call. "" is the
        cluster as a whole. A group that is deleted stands here once, and its snapshot is empty: forget it."""

    def snapshot(self, group: str) -> bytes:
        """All that is known of the group but its commits: JSON with a format number. b"": nothing."""

    def commits_snapshot(self, group: str) -> bytes:
        """The group's newest commits, one small row: JSON with a format number. b"": nothing."""

    def restore(self, snapshots: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Begin where another ended: (group, snapshot, commits) of each group. Before anything is told.
        Raises `ValueError` for a format that this version does not know."""
