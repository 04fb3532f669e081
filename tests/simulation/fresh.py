"""`python -m tests.simulation.fresh --seeds N`: N fresh seeds of each world, on all cores.

The worlds: the group machine with model members (`tests.simulation`), nodes before a cluster
(`tests.simulation.nodes`), the whole daemon and real clients (`tests.simulation.daemon`). A seed that
fails prints the command that runs it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.simulation.facts import ViolationError
from tests.simulation.seeds import SEED_BITS

WORLDS = ("shards", "nodes", "daemon")


def run(world: str, seed: int) -> str:
    """One seed. Returns what it violates, or ""."""
    try:
        if world == "shards":
            from tests.simulation.world import simulate

            simulate(seed)
        elif world == "nodes":
            from tests.simulation.nodes.world import simulate as simulate_nodes

            simulate_nodes(seed, calm=seed % 2 == 0)
        else:
            return _run_daemon(seed)
    except ViolationError as error:
        return str(error)
    return ""


def _run_daemon(seed: int) -> str:
    from tests.simulation.daemon.__main__ import explained
    from tests.simulation.daemon.world import simulate

    try:
        simulate(seed)
    except ViolationError as error:
        return f"{error}\nwith a shorter plan:\n{explained(error, None)}"
    return ""


def main() -> int:
    """Run and report; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.fresh", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="fresh seeds of each world (default 100)")
    parser.add_argument("--world", choices=WORLDS, action="append", help="of this world only")
    given = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = "0"  # as whoever runs one again has it
    began_s, failed, done = time.monotonic(), Counter[str](), Counter[str]()
    worlds = given.world or WORLDS
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=fresh, max_tasks_per_child=100) as pool:
        drawn = [(world, secrets.randbits(SEED_BITS)) for _ in range(given.seeds) for world in worlds]
        under_way = {pool.submit(run, *one): one for one in drawn}
        for one in as_completed(under_way):
            world, seed = under_way[one]
            done[world] += 1
            try:
                violated = one.result()
            except Exception as error:
                violated = f"{world}, seed {seed}: {error!r}"
            if violated:
                failed[world] += 1
                print(violated, flush=True)
    took_s = time.monotonic() - began_s
    for world in worlds:
        print(f"{world}: {done[world]} seeds, {failed[world]} failed")
    print(f"{done.total()} seeds, {failed.total()} failed, {done.total() / took_s:.1f} seeds a second")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
