"""One seed = one run: the whole daemon, real clients of ours, the network and the disk between them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from ringleader.clients.blocking import connection as blocking
from tests.simulation.daemon import turns as simulated
from tests.simulation.daemon.checks import Checks
from tests.simulation.daemon.clients import Client, Operator, Reader, Worker, Writer
from tests.simulation.daemon.loop import SimulatedLoop, Sockets
from tests.simulation.daemon.network import Network
from tests.simulation.daemon.plan import FAULTY_MS, Event, Plan, draw, to_json
from tests.simulation.daemon.server import Daemon, Disk, files_of, is_sound
from tests.simulation.daemon.turns import STAND_INS, EndedError, Turns
from tests.simulation.facts import ViolationError

CONVERGED_MS = 60_000
"""After the last fault all is in order again within so long."""
LAST_RECORDS = 20
"""The number of further records that go to each topic after the last fault: all of them have to arrive."""
ENDED_MS = 40_000
"""So long everything takes to stop."""
_LOOK_MS = 1_000
_KINDS = {"consumer": Reader, "worker": Worker, "producer": Writer, "operator": Operator}


class DaemonWorld:
    """Everything of one run. `run` it once."""

    def __init__(
        self, seed: int, plan: Plan | None = None, *, tell: Callable[[str], None] | None = None
    ) -> None:
        """`plan`: in place of the one that the seed draws."""
        self.seed = seed
        self.plan = draw(seed) if plan is None else plan
        self.given = plan is not None
        self.secured = random.Random(f"secured {seed}").random() < 0.3
        """Members log in by SASL, and ACLs are asked."""
        self.segment_bytes = random.Random(f"segments {seed}").choice((16_384, 2**30))
        """Of the files of the topic log."""
        self._tell = tell
        self.trace = hashlib.sha256()
        self.violation: ViolationError | None = None
        self.turns = Turns(seed, self.wrong)
        self.net = Network(self.turns, seed, self.trace.update)
        self.checks = Checks(self)
        self.disk = Disk(self)
        self.clients: list[Client] = []
        """All that there ever were."""
        self.present: dict[str, Client] = {}
        self.daemon: Daemon
        self._turns_before: dict[str, int] = {}
        self._calm = False
        self._root = "/nowhere"

    @property
    def steps(self) -> int:
        """How often a thread's turn came."""
        return self.turns.switches

    @property
    def operator(self) -> Operator:
        """The client that makes topics."""
        found = self.present["operator"]
        assert isinstance(found, Operator)
        return found

    def say(self, what: str, of: object = "") -> None:
        """A line of the run's story; it is a part of the trace."""
        line = f"{self.turns.now_us / 1e6:.6f} {what} {of!r}".replace(self._root, "")
        self.trace.update(line.encode())
        if self._tell is not None:
            self._tell(line)

    def wrong(self, name: str, text: str) -> None:
        """A check has failed: the run ends, with the first of them."""
        if self.violation is None:
            where = f"{self.turns.now_ms} ms"
            self.violation = ViolationError(name, text, self.seed, where, self.again())
        self.turns.stop()

    def _fail(self, name: str, text: str) -> NoReturn:
        self.wrong(name, text)
        raise EndedError

    def again(self) -> str:
        """How to run it once more."""
        plan = f" --plan '{to_json(self.plan)}'" if self.given else ""
        return f"python -m tests.simulation.daemon --seed {self.seed}{plan}"

    # ---- the run ----

    def run(self) -> None:
        """From the first start to the last end. Raises `ViolationError`."""
        simulated.begin(self.turns)
        with self._in_place(), tempfile.TemporaryDirectory(dir=_memory()) as root:
            self._root = root
            try:
                self._lives(Path(root))
            except EndedError:
                pass
            finally:
                self.turns.end()
                gc.collect()
        if self.violation is not None:
            raise self.violation

    def _lives(self, root: Path) -> None:
        turns = self.turns
        self.daemon = Daemon(self, root)
        for name in ("operator", "producer"):
            self._join(name)
        for event in self.plan:
            turns.at(event.at_ms * 1000, partial(self._do, event))
        turns.at(FAULTY_MS * 1000, self._calm_down)
        turns.later(_LOOK_MS, self._look)
        while not (self._calm and self._converged()):
            simulated.sleep(0.5)
            if turns.now_ms > FAULTY_MS + CONVERGED_MS:
                self._fail("all is well when faults end", self._trouble())
        self.say("converged")
        for client in list(self.present.values()):
            client.stop()
        until_ms = turns.now_ms + ENDED_MS
        while any(client.thread.is_alive() for client in self.clients) and turns.now_ms < until_ms:
            simulated.sleep(0.1)
        while self.net.connections and turns.now_ms < until_ms:  # an end may be on its way for long
            simulated.sleep(0.1)
        if left := [one.client.name for one in self.net.connections]:
            self._fail("no connection is left", f"{left}")
        self.daemon.wanted = False
        self.daemon.life.stop()
        while turns.alive() and turns.now_ms < until_ms:
            simulated.sleep(0.1)
        if alive := turns.alive():
            self._fail("every thread ends", f"{alive}")
        if (damage := is_sound(self.daemon.life.directory)) != "":
            self.wrong("files are sound", damage)
        for name, content in files_of(self.daemon.life.directory):
            self.trace.update(name.encode() + content)

    def _look(self) -> None:
        """Once a second."""
        self.turns.later(_LOOK_MS, self._look)
        self.checks.rates()
        now: dict[str, int] = {}
        for one in (*(client.process for client in self.clients), self.daemon.life.process):
            now[one.name] = now.get(one.name, 0) + one.turns
        self.checks.turns(self._turns_before, now)
        self._turns_before = now
        self.say("turns", sorted(now.items()))

    def _calm_down(self) -> None:
        """Nothing goes wrong from here on: every client that should be there comes back."""
        self._calm = True
        self.say("calm")
        self.turns.wall_offset_us = 0
        self.disk.full_until_us = self.disk.slow_until_us = 0
        self.disk.append_fails, self.disk.sync_fails = "", False
        for faults in (self.net.losing, self.net.late, self.net.single_until_us, self.net.hole_until_us):
            faults.clear()
        for client in self.clients:
            client.stalled_until_us = 0
        self._produce(LAST_RECORDS)

    def _converged(self) -> bool:
        return not self._trouble()

    def _trouble(self) -> str:
        """The first thing that is not yet as it will be; "" if all is."""
        if not self.daemon.life.ready:
            return "the daemon is not there"
        if restless := [client.name for client in self.present.values() if not client.settled]:
            return f"not settled: {restless}"
        readers = any(isinstance(client, Reader) for client in self.present.values())
        return self.checks.missing() if readers else ""

    # ---- events ----

    def _join(self, name: str) -> None:
        if name in self.present:
            return
        client: Client = _KINDS[name.partition("-")[0]](self, name)
        self.clients.append(client)
        self.present[name] = client
        client.start()

    def _produce(self, count: int) -> None:
        writer = self.present["producer"]
        assert isinstance(writer, Writer)
        writer.wants += count

    def _do(self, event: Event) -> None:
        """One event of the plan. Nothing happens if the client is not there."""
        turns, net, now_us = self.turns, self.net, self.turns.now_us
        self.say("do", event)
        name, until_us = event.client, now_us + event.ms * 1000
        client = self.present.get(name)
        self.checks.counts[event.do] += 1
        match event.do:
            case "join":
                self._join(name)
            case "produce":
                self._produce(event.count)
            case "create" | "grow":
                self.operator.wants.append((event.do, event.count))
            case "stop" | "kill" if client is not None:
                del self.present[name]
                client.stop() if event.do == "stop" else client.kill()
            case "stall" if client is not None:
                client.stalled_until_us = until_us
            case "pause" if client is not None:
                turns.pause(client.process, event.ms)
            case "reset":
                net.reset(name)
            case "mute":
                net.mute(name)
            case "lose":
                net.losing[name] = event.what
            case "late":
                net.late[name] = event.count, until_us
            case "single":
                net.single_until_us[name] = until_us
            case "hole":
                net.hole_until_us[name] = until_us
            case "restart":
                self.daemon.life.stop()
            case "crash":
                self.daemon.crash(event.ms)
            case "freeze":
                turns.pause(self.daemon.life.process, event.ms)
            case "slow disk":
                self.disk.slow_until_us = until_us
            case "full disk":
                self.disk.full_until_us = until_us
            case "append fails":
                self.disk.append_fails = event.what
            case "sync fails":
                self.disk.sync_fails = True
            case "wall clock":
                turns.wall_offset_us += event.ms * 1000

    # ---- what stands where something else was ----

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[None]:
        """All modules of ours wait, draw and tell the time as this run does."""
        entropy = random.Random(f"entropy {self.seed}")
        state = random.getstate()
        random.seed(f"global {self.seed}")
        library, asyncio_log = logging.getLogger("ringleader"), logging.getLogger("asyncio")
        with contextlib.ExitStack() as stack:
            for name, module in sorted(sys.modules.items()):
                if name.startswith("ringleader."):
                    for attribute, value in list(vars(module).items()):
                        for real, stand_in in STAND_INS.items():
                            if value is real:
                                stack.enter_context(mock.patch.object(module, attribute, stand_in))
            patch = stack.enter_context
            patch(mock.patch.object(blocking, "socket", Sockets(self.net)))
            patch(mock.patch.object(os, "urandom", entropy.randbytes))
            patch(mock.patch.object(random, "_urandom", entropy.randbytes))
            patch(mock.patch.object(asyncio.events, "new_event_loop", self._new_loop))
            patch(self.disk.beneath())
            for log in (library, asyncio_log):
                log.addHandler(self.checks)
                stack.callback(log.removeHandler, self.checks)
            patch(mock.patch.object(sys, "unraisablehook", self._unraisable))
            stack.callback(random.setstate, state)
            stack.callback(gc.enable)
            gc.disable()  # it would end what it finds whenever it comes
            yield

    def _unraisable(self, report: Any) -> None:
        """A coroutine that is left when the run ends early could not end in order."""
        if not self.turns.over:
            self.wrong("nothing is raised where nobody hears it", f"{report.object!r}: {report.exc_value!r}")

    def _new_loop(self) -> Any:
        return SimulatedLoop(self.turns, self.net, self.wrong)


def _memory() -> str | None:
    """A file system in memory, if there is one: what is synced there costs nothing."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def simulate(
    seed: int, plan: Plan | None = None, *, tell: Callable[[str], None] | None = None
) -> DaemonWorld:
    """Run one seed. Raises `ViolationError`."""
    world = DaemonWorld(seed, plan, tell=tell)
    world.run()
    return world
