"""The names, times (ms or s) and output paths that the demo's processes agree on."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TOPIC = "flights"
PARTITIONS = 6

# Group one shares the partitions between libraries; group two is one Spark query alone.
SHARED_GROUP = "departures"
ALONE_GROUP = "delays"

AIOKAFKA_1 = "aiokafka-1"
AIOKAFKA_2 = "aiokafka-2"
KAFKA_PYTHON = "kafka-python-1"
RINGLEADER_1 = "ringleader-1"
RINGLEADER_2 = "ringleader-2"
LIBRDKAFKA = "librdkafka-1"
SPARK = "spark-1"
SPARK_ALONE = "spark-alone"
PRODUCER = "producer"


class Players(NamedTuple):
    """The plain members of group one: two that work, one of which comes late, and one that is killed."""

    first: str
    victim: str
    newcomer: str


PLAYERS = {
    "classic": Players(AIOKAFKA_1, KAFKA_PYTHON, AIOKAFKA_2),
    # The other two libraries know the classic protocol only.
    "consumer": Players(RINGLEADER_1, LIBRDKAFKA, RINGLEADER_2),
}
"""By group protocol, with the libraries that speak it."""

# The shortest session timeout that Kafka allows by default: a killed member is noticed in 6 s.
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_INTERVAL_MS = 1_500
# A whole micro-batch fits in several times over; a member that hangs delays the group no longer than this.
REBALANCE_TIMEOUT_MS = 30_000
# Records that a plain member takes, writes down and commits at once.
POLL_RECORDS = 1_000

# The newcomer joins and the victim dies when this share of the records is produced.
JOIN_AT = 0.3
KILL_AT = 0.6
# The demo gives up, with the exit code of a failure, after this long.
DEADLINE_S = 175.0
# Beside three brokers and three nodes everything takes longer.
CLUSTER_DEADLINE_S = 300.0


@dataclass(frozen=True)
class Places:
    """Where one run writes. Everything under `out` belongs to that run alone."""

    out: Path

    @property
    def data(self) -> Path:
        """The daemon's state and topic log."""
        return self.out / "data"

    @property
    def table(self) -> Path:
        """The delay table that the Spark query of group two keeps."""
        return self.out / "delays.json"

    def ledger(self, name: str) -> Path:
        """The actions of the process of that name, written by itself."""
        return self.out / f"{name}.jsonl"

    def log(self, name: str) -> Path:
        """Standard error of the process of that name."""
        return self.out / f"{name}.log"


def of_coordinator() -> list[str]:
    """Arguments of `ringleader serve`: the times that the coordinator sets in the consumer protocol."""
    return [
        *("--group-consumer-session-timeout-ms", str(SESSION_TIMEOUT_MS)),
        *("--group-consumer-heartbeat-interval-ms", str(HEARTBEAT_INTERVAL_MS)),
    ]


def arguments(description: str | None) -> ArgumentParser:
    """The arguments of every process of the demo: where the daemon is, and where to write."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--out", type=Path, required=True)
    return parser
