"""Which faults a run has: drawn from its seed, so that the same seed breaks the same things in the same
order."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

OWNER, CONTROLLER, BROKER, STATE_LEADER = "owner", "controller", "broker", "state leader"
VICTIMS = (OWNER, CONTROLLER, BROKER, STATE_LEADER)
"""The node that owns a group, and the one that gives out groups to nodes; a broker at random, and the one
that leads the partition of a group's state."""
KILL, PAUSE, STOP = "kill", "pause", "stop"
WAYS = (KILL, PAUSE, STOP)
"""SIGKILL, SIGSTOP and later SIGCONT, SIGTERM."""

LONGEST_PAUSE_S = 60.0
_PAUSE_S, _DOWN_S, _GAP_S = (1.0, LONGEST_PAUSE_S), (0.0, 6.0), (2.0, 8.0)
_TOGETHER = 0.2


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. It begins `after_s` after the one before has healed, or with it (`together`)."""

    number: int
    victim: str
    how: str
    after_s: float
    seconds: float
    """How long the process is paused, or down before it is started again."""
    group: int
    """The group whose owner or state is meant: the n-th of the groups that are asked for."""
    pick: int
    """Which broker, where it is a broker at random."""
    together: bool = False

    @property
    def layer(self) -> str:
        """Nodes or brokers."""
        return "node" if self.victim in (OWNER, CONTROLLER) else "broker"

    def __str__(self) -> str:
        return f"{self.how} of the {self.victim} for {self.seconds:.1f} s"


def draw(seed: int, count: int, *, longest_pause_s: float = LONGEST_PAUSE_S, layers: int = 2) -> list[Fault]:
    """`count` faults. Each victim is struck in each way before any is again so; two that come together are of
    one layer each, so that two of three brokers are left. With one layer none come together."""
    dice = random.Random(seed)
    faults: list[Fault] = []
    for number, (victim, how) in enumerate(itertools.islice(_decks(dice), count), 1):
        shortest_s, longest_s = _PAUSE_S[0], max(_PAUSE_S[0], longest_pause_s)
        seconds = (
            math.exp(dice.uniform(math.log(shortest_s), math.log(longest_s)))
            if how == PAUSE
            else dice.uniform(*_DOWN_S)
        )
        fault = Fault(
            number,
            victim,
            how,
            dice.uniform(*_GAP_S),
            round(seconds, 1),
            dice.randrange(1_000),
            dice.randrange(1_000),
            together=dice.random() < _TOGETHER,
        )
        alone = layers < 2 or not faults or faults[-1].together or faults[-1].layer == fault.layer
        faults.append(fault if not (fault.together and alone) else replace(fault, together=False))
    return faults


def _decks(dice: random.Random) -> Iterator[tuple[str, str]]:
    while True:
        deck = [(victim, how) for victim in VICTIMS for how in WAYS]
        dice.shuffle(deck)
        yield from deck
