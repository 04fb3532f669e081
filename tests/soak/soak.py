"""A soak: the clients of `tests.chaos` at work for a while, quiet faults, and a look at the processes now and
then."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.chaos.director import Director
from tests.soak import quiet
from tests.soak.probe import Probe
from tests.soak.samples import Sample, Spread, address_in, now_s, spread, take
from tests.support.daemon import Daemon
from tests.support.rawclient import address_of

SAMPLES = 240
"""Of each process in a run, about."""
SHORTEST_S, LONGEST_S = 0.5, 15.0
"""Between two samples."""
FAULTS_PER_RUN = 30
FAULT_SHORTEST_S, FAULT_LONGEST_S = 2.0, 45.0


@dataclass(slots=True)
class Seen:
    """The findings of a soak, next to the histories."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    """By process."""
    heartbeats: list[Spread] = field(default_factory=list)
    commits: list[Spread] = field(default_factory=list)
    took_ms: dict[str, list[float]] = field(default_factory=dict)
    """All that was measured, by kind."""
    failed: int = 0
    """Calls of the probe without a good answer."""
    faults: list[tuple[float, str]] = field(default_factory=list)
    """When, and what."""


class Soak:
    """The faults of a run of chaos, of which only clients break. For `seconds`."""

    says = "quiet faults come"

    def __init__(self, seconds: float) -> None:
        self.seen = Seen()
        self._seconds = seconds
        self._began_s = 0.0
        self._director: Director

    def strike(self, director: Director) -> None:
        """See `Strikes`."""
        self._director, cast, target = director, director.cast, director.target
        seen, probe = self.seen, Probe(target.bootstrap)
        every_s = min(max(self._seconds / SAMPLES, SHORTEST_S), LONGEST_S)
        faults_every_s = min(max(self._seconds / FAULTS_PER_RUN, FAULT_SHORTEST_S), FAULT_LONGEST_S)
        faults = quiet.draw(director.company.seed, faults_every_s)
        seen.samples = {f"node {number}": [] for number in target.nodes}
        probe.start()
        self._began_s = now_s()
        until_s = self._began_s + self._seconds
        fault = next(faults)
        look_s, fault_s = self._began_s, self._began_s + fault.after_s
        resumes: list[tuple[float, int]] = []
        try:
            while (now := now_s()) < until_s:
                if now >= look_s:
                    self._look(probe)
                    cast.check()
                    look_s = max(look_s + every_s, now)
                if resumes and now >= resumes[0][0]:
                    quiet.signal_group(resumes.pop(0)[1], signal.SIGCONT)
                if now >= fault_s:
                    resumes += self._quietly(fault)
                    resumes.sort()
                    fault = next(faults)
                    fault_s = now + fault.after_s
                due_s = min(look_s, fault_s, until_s, *(at for at, _ in resumes))
                time.sleep(max(due_s - now_s(), 0.0))  # the next of them is due then, whatever happens
            self._look(probe)
        finally:
            for _, pid in resumes:
                quiet.signal_group(pid, signal.SIGCONT)
            probe.stop()

    # ---- looking ----

    def _at_s(self) -> float:
        return now_s() - self._began_s

    def _look(self, probe: Probe) -> None:
        nodes = self._director.target.nodes.values()
        for (name, found), node in zip(self.seen.samples.items(), nodes, strict=True):
            if node.process.poll() is None:
                found.append(take(node.pid, _address(node), self._at_s()))
            else:
                self._director.complain(f"{name} ended by itself with exit code {node.process.returncode}")
        took, failed = probe.taken()
        self.seen.failed += failed
        for kind, into in (("heartbeat", self.seen.heartbeats), ("commit", self.seen.commits)):
            self.seen.took_ms.setdefault(kind, []).extend(took[kind])
            one = spread(self._at_s(), took[kind])
            if one is not None:
                into.append(one)

    # ---- faults ----

    def _quietly(self, fault: quiet.Quiet) -> Iterator[tuple[float, int]]:
        """Do it; when a process is to go on, and which."""
        director, cast = self._director, self._director.cast
        if fault.how == quiet.STRANGERS:
            nodes = [*director.target.nodes.values()]
            node = nodes[fault.pick % len(nodes)]
            self._note(f"{quiet.STRANGERS_AT_ONCE} connections that say nothing, or nothing of use")
            quiet.knock(address_of(node.bootstrap), fault.pick)
            return
        running = [name for name in director.members() if name in cast.pids]
        if not running:
            return
        name = running[fault.pick % len(running)]
        if fault.how == quiet.PAUSE:
            self._note(f"{name} stands still for {fault.seconds:.1f} s")
            quiet.signal_group(cast.pids[name], signal.SIGSTOP)
            yield now_s() + fault.seconds, cast.pids[name]
            return
        self._note(f"{name} {'is killed' if fault.how == quiet.KILL else 'leaves'}, and another one comes")
        if fault.how == quiet.KILL:
            cast.kill(name)
        else:
            quiet.signal_group(cast.pids[name], signal.SIGCONT)
            cast.stop([name])
        director.replace(name)

    def _note(self, what: str) -> None:
        self.seen.faults.append((round(self._at_s(), 3), what))
        self._director.say(what)


def _address(node: Daemon) -> str:
    return address_in(node.log())
