"""``python -m demo``: a consumer group on Ringleader, live."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from rich.console import Console

from demo.director import Options, perform
from demo.plan import PLAYERS, ROOT

# Wide enough for the tables where nobody says how wide the page is.
PIPE_WIDTH = 150


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--without-spark", action="store_true", help="plain Python members only: quick, needs no Java"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="time to spread the records over (default 60)"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "demo" / "out", help="where every process writes")
    parser.add_argument("--csv", type=Path, help="other departures in the same form, for a shorter run")
    parser.add_argument(
        "--protocol",
        choices=PLAYERS,
        default="classic",
        help="of the groups: classic (aiokafka, kafka-python, Spark), or consumer (KIP-848: the package's "
        "own consumer, librdkafka, Spark)",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="three nodes in front of three brokers of Apache Kafka, one of each killed on the way (needs "
        "Maven)",
    )
    args = parser.parse_args()
    # The process that ends the demo ends all its processes.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_WIDTH)
    options = Options(
        args.out.resolve(), args.seconds, not args.without_spark, args.csv, args.protocol, args.cluster
    )
    return perform(options, console)


if __name__ == "__main__":
    sys.exit(main())
