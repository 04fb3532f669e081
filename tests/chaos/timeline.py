"""The faults of scenarios, each at its time or when something has happened."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.chaos import scenario as schema
from tests.chaos.deeds import Deeds
from tests.chaos.director import Director
from tests.chaos.history import OK, Tail
from tests.chaos.rebalances import Struck

LOOK_S = 0.1
AT_MOST_S = 600.0
"""An event that has not happened then is waited for no longer."""


class Timeline:
    """Of one scenario, or of several at once: the n-th has its own numbers for `begun` and `over`."""

    says = "faults"

    def __init__(self, faults: Sequence[Sequence[schema.Fault]], calm_s: float, seed: int) -> None:
        self._faults = faults
        self._calm_s, self._seed = calm_s, seed
        self._begun: set[tuple[int, int]] = set()
        self._over: set[tuple[int, int]] = set()
        self._lock = threading.Lock()

    def strike(self, director: Director) -> None:
        """See `Strikes.strike`."""
        began_s, seen = time.monotonic(), _Seen(director)
        true_s: dict[tuple[int, int], float] = {}
        waiting = {
            (part, number): fault
            for part, faults in enumerate(self._faults)
            for number, fault in enumerate(faults, 1)
        }
        deeds = Deeds(director, self._seed)
        with ThreadPoolExecutor(max(1, len(waiting))) as pool:
            under_way = []
            while waiting and time.monotonic() - began_s < AT_MOST_S:
                seen.look()
                for key, fault in list(waiting.items()):
                    if fault.when is None:
                        true_s.setdefault(key, began_s)
                    elif self._holds(fault.when, key[0], seen):
                        true_s.setdefault(key, time.monotonic())
                    if key in true_s and time.monotonic() >= true_s[key] + (fault.at_s or 0.0):
                        del waiting[key]
                        self._begun.add(key)
                        under_way.append(pool.submit(self._do, director, deeds, key, fault))
                director.replace_departed()
                time.sleep(LOOK_S)
            for key in waiting:
                director.complain(f"fault {_name(key)} did not come: what it waits for did not happen")
            for outcome in under_way:
                while not outcome.done():
                    director.replace_departed()
                    time.sleep(LOOK_S)
                outcome.result()
        director.heal()
        until_s = time.monotonic() + self._calm_s
        while time.monotonic() < until_s:
            director.replace_departed()
            director.cast.check()
            time.sleep(LOOK_S)

    def _holds(self, when: schema.When, part: int, seen: _Seen) -> bool:
        return (
            seen.acknowledged >= when.acknowledged
            and seen.rebalances >= when.rebalances
            and (not when.begun or (part, when.begun) in self._begun)
            and (not when.over or (part, when.over) in self._over)
        )

    def _do(self, director: Director, deeds: Deeds, key: tuple[int, int], fault: schema.Fault) -> None:
        number, began_s = sum(map(len, self._faults[: key[0]])) + key[1], time.monotonic()
        try:
            deed = deeds.of(number, fault)
            director.say(f"{_name(key)}. {deed.says}")
            with deed:
                if deed.struck is not None:
                    time.sleep(fault.for_s)  # so long it lasts; nothing is waited for
        except Exception as error:  # a finding, not the run's end
            director.complain(f"fault {_name(key)}: {(str(error) or type(error).__name__).splitlines()[0]}")
            return
        finally:
            with self._lock:
                self._over.add(key)
        if deed.struck is not None:
            layer, how, process = deed.struck
            victim = getattr(fault, "on", layer)
            struck = Struck(number, layer, victim, how, process, began_s, time.monotonic())
            with self._lock:
                director.result.struck.append(struck)


def _name(key: tuple[int, int]) -> str:
    return str(key[1]) if not key[0] else f"{'abcdefgh'[key[0]]}{key[1]}"


class _Seen:
    """The lines that all processes have written since now."""

    def __init__(self, director: Director) -> None:
        self._director = director
        self._tails: dict[str, Tail] = {}
        self._commits: dict[str, set[int]] = defaultdict(set)
        self._generations: set[tuple[str, int]] = set()
        self.acknowledged = self.rebalances = 0
        self._read(lambda line, client: self._note(line, client, counts=False))

    def look(self) -> None:
        """The new lines."""
        self._read(lambda line, client: self._note(line, client, counts=True))

    def _read(self, note: Callable[[dict[str, object], str], None]) -> None:
        for name in self._director.names():
            tail = self._tails.setdefault(name, Tail(self._director.cast.history(name)))
            for line in tail.new():
                note(line, name)

    def _note(self, line: dict[str, object], client: str, *, counts: bool) -> None:
        call = line.get("call")
        if line["did"] == "asks" and line["what"] in ("commit", "transaction") and isinstance(call, int):
            self._commits[client].add(call)
        elif line["did"] == OK and call in self._commits[client]:
            self.acknowledged += counts
        elif line["did"] == "assigned":
            generation = (str(line["group"]), int(str(line["generation"])))
            if generation not in self._generations:
                self._generations.add(generation)
                self.rebalances += counts
