"""The effect of each fault of a scenario on a run, and how it is undone."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from ringleader.clients.admin import Admin
from tests.chaos import asking
from tests.chaos import scenario as schema
from tests.chaos.director import Director
from tests.chaos.network import LinkedNode
from tests.chaos.schedule import KILL, PAUSE, STOP, Fault
from tests.chaos.targets import GROUPS_TOPIC, IN_SYNC, REPLICAS, Victim
from tests.support.daemon import Daemon
from tests.support.links import Link, Way

LINK, DISK, TOPIC = "link", "disk", "topic"
"""Layers beside nodes and brokers."""
NODE_EXIT_S = 90.0
"""Nodes whose groups' topic was deleted have ended by then."""
_EAGER_CLEANER = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "1000"}
_PATIENT_CLEANER = {"segment.ms": "604800000", "min.cleanable.dirty.ratio": "0.5"}


@dataclass(slots=True)
class Deed:
    """`with` it, the fault is there. `struck`: its layer, way and process, if it is one that lasts."""

    says: str
    doing: AbstractContextManager[object]
    struck: tuple[str, str, str] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self._stack.enter_context(self.doing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


class Deeds:
    """Of one run. A fault that strikes one process, or any broker, waits until the one that struck it before
    is over: two of three brokers have to be there, unless a scenario says otherwise."""

    def __init__(self, director: Director, seed: int) -> None:
        self._director = director
        self._dice = random.Random(f"{seed} deeds")
        self._busy: dict[str, threading.RLock] = defaultdict(threading.RLock)

    def of(self, number: int, fault: schema.Fault) -> Deed:
        """The action of the fault; looks for its victim now. Raises ``TimeoutError`` if there is none."""
        if isinstance(fault, schema.Process):
            return self._process(number, fault)
        if isinstance(fault, schema.Roll):
            return Deed(f"rolling restart of all {fault.on}", self._roll(number, fault))
        if isinstance(fault, schema.Link):
            return self._link(fault)
        if isinstance(fault, schema.Disk):
            return Deed(f"{fault.do} for {fault.for_s:g} s", self._disk(fault), (DISK, fault.do, "node 1"))
        if isinstance(fault, schema.Address):
            return self._readdress(fault)
        doing = {"min isr": self._min_isr, "compact": self._compact, "delete topic": self._delete_topic}
        struck = None if fault.do == "delete topic" else (TOPIC, fault.do, GROUPS_TOPIC)
        return Deed(f"{fault.do} of {GROUPS_TOPIC} for {fault.for_s:g} s", doing[fault.do](), struck)

    # ---- processes ----

    def _process(self, number: int, fault: schema.Process) -> Deed:
        chosen = Fault(number, fault.on, fault.do, 0.0, fault.for_s, fault.group, self._dice.randrange(1_000))
        victim = self._found(chosen)
        text = f"{fault.do} of the {fault.on} for {fault.for_s:g} s: {victim.name}"
        return Deed(text, self._down(victim, fault.do), (victim.layer, fault.do, victim.name))

    def _found(self, fault: Fault) -> Victim:
        victim = self._director.victim(fault)
        if victim is None:
            raise TimeoutError(f"nobody knows the {fault.victim}")
        return victim

    @contextmanager
    def _down(self, victim: Victim, how: str) -> Iterator[None]:
        down, up = {
            KILL: (victim.kill, victim.start),
            STOP: (victim.stop, victim.start),
            PAUSE: (victim.pause, victim.resume),
        }[how]
        with self._busy["broker" if victim.layer == "broker" else victim.name]:
            down()
            try:
                yield
            finally:
                up()
                if victim.layer == "broker":
                    self._await_in_sync()

    def _await_in_sync(self) -> None:
        target = self._director.target
        if target.cluster is not None:
            asking.until(lambda: asking.all_in_sync(target.brokers, REPLICAS), "all replicas in sync")

    @contextmanager
    def _roll(self, number: int, fault: schema.Roll) -> Iterator[None]:
        target = self._director.target
        nodes = fault.on == "nodes" or target.cluster is None
        ids = sorted(target.nodes if nodes or target.cluster is None else target.cluster.brokers)
        for node_id in ids * fault.rounds:
            victim = target.node(node_id) if nodes else target.broker(node_id)
            with self._busy["broker" if victim.layer == "broker" else victim.name]:
                self._director.break_one(Fault(number, fault.on, STOP, 0.0, fault.for_s, 0, 0), victim)
                target.await_healthy(self._director.awaited_groups)
        yield

    def _readdress(self, fault: schema.Address) -> Deed:
        victim = self._found(Fault(0, "owner", KILL, 0.0, 0.0, fault.group, 0))
        node = self._director.target.nodes[int(victim.name.split()[-1])]
        assert isinstance(node, LinkedNode)

        @contextmanager
        def move() -> Iterator[None]:
            with self._busy[victim.name]:
                node.kill()
                node.move()
                yield
                node.start()

        text = f"{victim.name} is killed, and comes back at another address after {fault.for_s:g} s"
        return Deed(text, move(), (victim.layer, KILL, victim.name))

    # ---- links ----

    def _link(self, fault: schema.Link) -> Deed:
        chosen = self._links(fault)
        spoil: dict[str, Callable[[Link], None]] = {
            "reset": Link.reset,
            "refuse": Link.refuse,
            "half-open": Link.half_open,
            "delay": lambda link: link.spoil(Way(delay_s=fault.delay_ms / 1000), fault.way),
            "drip": lambda link: link.spoil(Way(drip_s=fault.delay_ms / 1e6), fault.way),
            "cut": lambda link: link.spoil(Way(cut=True), fault.way),
        }

        @contextmanager
        def spoilt() -> Iterator[None]:
            with ExitStack() as turns:
                for name in sorted(chosen):
                    turns.enter_context(self._busy[name])
                for link in chosen.values():
                    spoil[fault.do](link)
                try:
                    yield
                finally:
                    for link in chosen.values():
                        if fault.do != "reset":
                            link.heal()

        names = ", ".join(chosen)
        text = f"{fault.do} ({fault.way}) for {fault.for_s:g} s: {names}"
        return Deed(text, spoilt(), (LINK, fault.do, names))

    def _links(self, fault: schema.Link) -> Mapping[str, Link]:
        network = self._director.target.network
        assert network is not None
        nodes = self._nodes(fault)
        if fault.between == "clients and nodes":
            return {f"clients to node {node}": network.fronts[node] for node in nodes}
        if fault.between == "nodes and nodes":
            return {f"nodes to node {node}": network.insides[node] for node in nodes}
        brokers = self._brokers(fault)
        return {
            f"node {node} to broker {broker}": network.brokers[node, broker]
            for node in nodes
            for broker in brokers
        }

    def _nodes(self, fault: schema.Link) -> Sequence[int]:
        ids = sorted(self._director.target.nodes)
        if fault.node == "every":
            return ids
        if fault.node == "any":
            return [self._dice.choice(ids)]
        victim = self._found(Fault(0, fault.node, KILL, 0.0, 0.0, fault.group, 0))
        return [int(victim.name.split()[-1])]

    def _brokers(self, fault: schema.Link) -> Sequence[int]:
        cluster = self._director.target.cluster
        assert cluster is not None
        if fault.broker == "every":
            return sorted(cluster.brokers)
        if fault.broker == "any":
            return [self._dice.choice(sorted(cluster.brokers))]
        victim = self._found(Fault(0, "state leader", KILL, 0.0, 0.0, fault.group, 0))
        return [int(victim.name.split()[-1])]

    # ---- disks and topics ----

    @contextmanager
    def _disk(self, fault: schema.Disk) -> Iterator[None]:
        disk = self._director.target.disk
        assert disk is not None
        disk.fail("write /data ENOSPC" if fault.do == "full disk" else f"sync /data {fault.delay_ms}")
        try:
            yield
        finally:
            disk.fail()

    @contextmanager
    def _min_isr(self) -> Iterator[None]:
        """All replicas have to be in sync, and one broker is not there."""
        target = self._director.target
        assert target.cluster is not None
        victim = target.broker(self._dice.choice(sorted(target.cluster.brokers)))
        with self._busy["broker"]:
            self._configure({"min.insync.replicas": str(REPLICAS)})
            victim.stop()
            try:
                yield
            finally:
                victim.start()
                self._configure({"min.insync.replicas": str(IN_SYNC)})
                self._await_in_sync()

    @contextmanager
    def _compact(self) -> Iterator[None]:
        """Segments are rolled and cleaned all the time."""
        self._configure(_EAGER_CLEANER)
        try:
            yield
        finally:
            self._configure(_PATIENT_CLEANER)

    @contextmanager
    def _delete_topic(self) -> Iterator[None]:
        """The nodes end, each with a sentence, and are started on a new one."""
        director = self._director
        brokers = director.target.brokers

        async def delete() -> None:
            async with Admin(brokers) as admin:
                await admin.delete_topics([GROUPS_TOPIC])
                await admin.create_topic(GROUPS_TOPIC, 50, replication_factor=REPLICAS, configs=_FIT)

        with ExitStack() as turns:
            for node_id in sorted(director.target.nodes):
                turns.enter_context(self._busy[f"node {node_id}"])
            asyncio.run(delete())
            for node_id, node in director.target.nodes.items():
                asking.until(partial(_has_ended, node), f"node {node_id} ends", NODE_EXIT_S)
                node.wait()
                if "was deleted and made again" not in node.log() and "is gone" not in node.log():
                    director.complain(f"node {node_id} ended, and did not say that its topic is another one")
            for node in director.target.nodes.values():
                node.start()
        yield

    def _configure(self, configs: Mapping[str, str]) -> None:
        brokers = self._director.target.brokers

        async def alter() -> None:
            async with Admin(brokers) as admin:
                await admin.alter_topic_configs(GROUPS_TOPIC, dict(configs))

        asyncio.run(alter())


def _has_ended(node: Daemon) -> bool:
    return node.process.poll() is not None


_FIT = {
    "cleanup.policy": "compact",
    "min.insync.replicas": str(IN_SYNC),
    "unclean.leader.election.enable": "false",
    "max.message.bytes": "16908288",
    "message.timestamp.type": "LogAppendTime",
}
"""As nodes make the topic."""
