"""Who takes part in a run: groups, their members, and the other processes."""

from __future__ import annotations

from dataclasses import dataclass

MEMBERS = "tests.chaos.clients"
LIBRARIES = {"ours": "ours", "librdkafka": "librdkafka", "aiokafka": "aio"}
"""Groups of members that stay, by the library that their members use, and its program."""
RAW_GROUPS = ("raw-0", "raw-1", "raw-2", "raw-3")
CHURN, SPARK = "churn", "spark"
NODES, BROKERS = "nodes", "brokers"
"""What a rolling restart restarts."""


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
    """So long no group may have rebalanced before the first fault."""
    rolling: str = ""
    """Restart all nodes, or all brokers, one after the other, instead of faults that are drawn."""
    rolls: int = 3
    """How often each is restarted then."""

    @property
    def stable_groups(self) -> tuple[str, ...]:
        """Groups whose members stay: they have no reason of their own to rebalance."""
        return (*self.libraries, *RAW_GROUPS)

    @property
    def consuming_groups(self) -> tuple[str, ...]:
        """Groups that have to process every record."""
        return (*self.libraries, SPARK) if self.spark else self.libraries

    @property
    def groups(self) -> tuple[str, ...]:
        """All groups."""
        return (*RAW_GROUPS, *self.libraries, CHURN, *((SPARK,) if self.spark else ()))
