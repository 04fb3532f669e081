"""`python -m tests.simulation.fresh --seeds N`: N fresh seeds of each world, on all cores.

The worlds: the group machine with model members (`tests.simulation`), nodes in front of a cluster
(`tests.simulation.nodes`), their relay and transactions (`tests.simulation.transactions`), groups of the
consumer protocol (`tests.simulation.consumer`), the whole daemon and real clients
(`tests.simulation.daemon`). A seed that fails prints the command that runs it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

from tests.simulation.facts import ViolationError
from tests.simulation.seeds import SEED_BITS
from tools import proof

WORLDS = {
    "shards": "simulation",
    "nodes": "simulation-nodes",
    "transactions": "simulation-transactions",
    "consumer": "simulation-consumer",
    "daemon": "simulation-daemon",
}
"""The judge of each: see `tools.proof`."""
_TELLS_S = 30.0


class Run(NamedTuple):
    """The result of a seed."""

    steps: int
    cpu_s: float
    violated: str


def run(world: str, seed: int) -> Run:
    """One seed, in a process of its own."""
    began_s, steps, violated = time.process_time(), 0, ""
    try:
        steps = _steps(world, seed)
    except ViolationError as error:
        violated = str(error)
        if world == "daemon":
            from tests.simulation.daemon.__main__ import explained

            violated += f"\nwith a shorter plan:\n{explained(error, None)}"
    return Run(steps, time.process_time() - began_s, violated)


def _steps(world: str, seed: int) -> int:
    if world == "shards":
        from tests.simulation.world import simulate

        return simulate(seed).steps
    if world == "nodes":
        from tests.simulation.nodes.world import simulate as simulate_nodes

        return simulate_nodes(seed, calm=seed % 2 == 0).steps
    if world == "transactions":
        from tests.simulation.transactions.world import simulate as simulate_transactions

        return simulate_transactions(seed).steps
    if world == "consumer":
        from tests.simulation.consumer.world import simulate as simulate_consumer

        return simulate_consumer(seed).steps
    from tests.simulation.daemon.world import simulate as simulate_daemon

    return simulate_daemon(seed).steps


def main() -> int:
    """Run and report; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fresh", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="fresh seeds of each world (default 100)")
    parser.add_argument("--world", choices=[*WORLDS], action="append", help="of this world only; repeatable")
    proof.add_option(parser)
    given = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = "0"  # the command that runs a seed again has it, too
    began_s = printed_s = time.monotonic()
    failed, done, steps = Counter[str](), Counter[str](), Counter[str]()
    cpu_s: defaultdict[str, float] = defaultdict(float)
    worlds = given.world or [*WORLDS]
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=fresh, max_tasks_per_child=100) as pool:
        drawn = [(world, secrets.randbits(SEED_BITS)) for _ in range(given.seeds) for world in worlds]
        under_way = {pool.submit(run, *one): one for one in drawn}
        for one in as_completed(under_way):
            world, seed = under_way[one]
            done[world] += 1
            try:
                result = one.result()
            except Exception as error:
                result = Run(0, 0.0, f"{world}, seed {seed}: {error!r}")
            steps[world] += result.steps
            cpu_s[world] += result.cpu_s
            if result.violated:
                failed[world] += 1
                print(result.violated, flush=True)
            if time.monotonic() - printed_s > _TELLS_S:
                printed_s = time.monotonic()
                print(f"{done.total():,} of {len(drawn):,} seeds, {failed.total()} failed", flush=True)
    took_s = time.monotonic() - began_s
    for world in worlds:
        print(f"{world}: {done[world]} seeds, {failed[world]} failed")
        if given.proof:
            figures = {"seeds": done[world], "steps": steps[world], "seconds of CPU": round(cpu_s[world])}
            proof.leave(
                WORLDS[world],
                {**figures, "seeds that failed": failed[world]},
                good=not failed[world],
                adds=tuple(figures),
            )
    print(f"{done.total()} seeds, {failed.total()} failed, {done.total() / took_s:.1f} seeds a second")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
