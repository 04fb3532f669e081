"""Faults that are drawn one by one, and rolling restarts: the strikes of a `Plan`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from tests.chaos.director import Director
from tests.chaos.plan import NODES, Plan
from tests.chaos.schedule import STOP, Fault, draw
from tests.chaos.targets import RINGLEADER


class Drawn:
    """Each fault some seconds after the one before has healed, some of them two at once."""

    says = "faults"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def strike(self, director: Director) -> None:
        """See `Strikes.strike`."""
        plan = self._plan
        faults = draw(
            plan.seed,
            plan.faults,
            longest_pause_s=plan.longest_pause_s,
            layers=2 if director.target.kind == RINGLEADER else 1,
        )
        with ThreadPoolExecutor(2) as pool:
            for one, following in pairwise([*faults, None]):
                assert one is not None
                if one.together:
                    continue  # it came with the one before
                time.sleep(one.after_s)  # the next fault is due then, whatever happens meanwhile
                both = [one] if following is None or not following.together else [one, following]
                victims = [director.victim(fault) for fault in both]
                for outcome in [
                    pool.submit(director.break_one, fault, victim)
                    for fault, victim in zip(both, victims, strict=True)
                    if victim is not None
                ]:
                    outcome.result()
                director.heal()


class Rolling:
    """All nodes, or all brokers, are stopped and started again, one after the other."""

    says = "rolling restart"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def strike(self, director: Director) -> None:
        """See `Strikes.strike`."""
        target = director.target
        ids = sorted(target.cluster.brokers if target.cluster is not None else target.nodes)
        nodes = self._plan.rolling == NODES
        for number, node_id in enumerate(ids * self._plan.rolls, 1):
            victim = target.node(node_id) if nodes else target.broker(node_id)
            fault = Fault(number, victim.layer, STOP, self._plan.quiet_s, 0.0, 0, 0)
            time.sleep(fault.after_s)  # load goes on between two restarts
            director.break_one(fault, victim)
            director.heal()
