"""A run of many faults, drawn one by one, under the same company each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.company import MEMBERS, Company, Gathering

LIBRARIES = {"ours": "ours", "librdkafka": "librdkafka", "aiokafka": "aio"}
"""Groups of members that stay, by the library that their members use, and its program."""
RAW_GROUPS = ("raw-0", "raw-1", "raw-2", "raw-3")
NODES, BROKERS = "nodes", "brokers"
"""The processes that a rolling restart restarts."""
__all__ = ["BROKERS", "LIBRARIES", "MEMBERS", "NODES", "RAW_GROUPS", "Plan"]


@dataclass(frozen=True)
class Plan:
    """Sizes and times of a run."""

    seed: int
    faults: int = 30
    members: int = 2
    """Of each library."""
    libraries: tuple[str, ...] = tuple(LIBRARIES)
    spark: bool = True
    producers: int = 2
    per_second: float = 60.0
    """Records, of each producer."""
    longest_pause_s: float = 60.0
    quiet_s: float = 5.0
    rolling: str = ""
    """Restart all nodes, or all brokers, one after the other, instead of faults that are drawn."""
    rolls: int = 3
    """How often each is restarted then."""

    def company(self, addresses: Sequence[str]) -> Company:
        """The processes of the run, in front of nodes at these addresses."""
        gathering = Gathering(self.seed, addresses)
        gathering.commits(RAW_GROUPS)
        for library in self.libraries:
            gathering.consumers(library, self.members, straight=library == "ours")
        gathering.churn()
        if self.spark:
            gathering.consumers("spark", 1, stays=False)
        gathering.producers(self.producers, self.per_second, straight=True)
        return gathering.company(self.quiet_s)
