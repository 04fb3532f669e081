"""Groups and what is done to them, drawn by a seed: settings in any order of size, one act or two at once.

``drawn(seed, number)`` depends on nothing else, so that one scenario can be played alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringleader.insight.model import Cause, Departure
from tests.incidents.ledger import RETURNED, Incident
from tests.incidents.libraries import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, OURS
from tests.incidents.steps import COOPERATIVE, START_S, also, fence, start
from tests.incidents.team import CONSUMER_SESSION_MS, SETTLE_S, Spec, Team, now_ms
from tests.interop.clients.java_clients import JavaError

LIBRARIES = (JAVA, CONFLUENT, CONFLUENT, AIOKAFKA, KAFKA_PYTHON, OURS, OURS)
"""A JVM for each member that is killed costs more than a process of another library."""
CONSUMER = "consumer"
ENDED = "end"
"""The kind of a group's last incident, of which nothing is expected."""
PROTOCOLS = {
    AIOKAFKA: ("range",),
    KAFKA_PYTHON: ("range", COOPERATIVE),
    JAVA: ("range", COOPERATIVE, CONSUMER),
    CONFLUENT: ("range", COOPERATIVE, CONSUMER),
    OURS: ("range", COOPERATIVE, CONSUMER),
}
COMMITS_MS = (500, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 0)
TIMEOUTS_MS = (3_000, 16_000)
SECOND_S = 0.3
"""Between two things that are done at about one time, at most."""
LATE_MS = 4_000
"""A poll interval that is over is noticed within a heartbeat interval, and a busy machine adds to it."""


def drawn(seed: int, number: int) -> Spec:
    """One scenario."""
    order = random.Random(f"{seed} {number}")
    library = order.choice(LIBRARIES)
    protocol = order.choice(PROTOCOLS[library])
    session_ms, max_poll_ms = (order.randrange(*TIMEOUTS_MS, 500) for _ in range(2))
    if protocol == CONSUMER:
        session_ms = CONSUMER_SESSION_MS
    if library == CONFLUENT:
        max_poll_ms = max(max_poll_ms, session_ms)  # it refuses others
    static = order.random() < 0.25
    acts = [one for one, fits in ACTS.items() if fits(static, protocol) for _ in range(OFTEN.get(one, 1))]
    steps = []
    for _ in range(3):
        first, second = order.choices(acts, k=2)
        two = first != second and {first, second} <= AT_ONCE and order.random() < 0.4
        steps.append(f"{first}+{second}" if two else first)
    return Spec(
        f"d{number}-{library}-{protocol}{'-static' if static else ''}",
        library,
        protocol,
        commit_ms=order.choice(COMMITS_MS),
        static=static,
        steps=tuple(steps),
        session_ms=session_ms,
        heartbeat_ms=max(500, min(3_000, session_ms // 3)),
        max_poll_ms=max_poll_ms,
        idle=order.random() < 0.15,
        drawn=str(order.random()),
    )


def distinguishable(spec: Spec, why: Departure) -> bool:
    """Whether commits distinguish such a departure from the others: how long a member may have been silent
    for this reason is no length that fits another one."""
    often_ms = spec.commit_ms
    if not often_ms or spec.idle:
        return False
    early_ms = spec.session_ms // 3 if spec.protocol == CONSUMER else 100
    silences = {
        Departure.LEFT: (0, often_ms + 700),
        Departure.SESSION_EXPIRED: (spec.session_ms - early_ms, spec.session_ms + often_ms + 1_500),
        Departure.POLL_INTERVAL_EXCEEDED: (
            spec.max_poll_ms - often_ms - 100,
            spec.max_poll_ms + often_ms + LATE_MS,
        ),
    }
    least_ms, most_ms = silences.pop(why)
    return all(most_ms < other[0] or other[1] < least_ms for other in silences.values())


@dataclass(slots=True)
class Deed:
    """A thing that is done, with what may be said of it (as `Incident`)."""

    what: str
    client_ids: list[str]
    causes: list[Cause]
    do: Callable[[], Awaitable[Any]]
    departures: dict[str, list[Departure]] = field(default_factory=dict)
    shown: bool = True
    quiet: bool = False
    after: Callable[[], Awaitable[None]] | None = None
    """The rest of it, when the group rests again."""


def _went(team: Team, name: str, why: Departure, cause: Cause) -> dict[str, Any]:
    client_id = team.client_id(name)
    shown = distinguishable(team.spec, why)
    return {"client_ids": [client_id], "causes": [cause], "departures": {client_id: [why]}, "shown": shown}


async def _join(team: Team, order: random.Random) -> Deed:
    return Deed(
        f"{team.client_id('n')} joins",
        [team.client_id("n")],
        [Cause.MEMBER_JOINED, Cause.MEMBER_RESTARTED],  # it may have been drawn before, and stopped just now
        lambda: team.start("n"),
        after=lambda: _deed(team, "stop", [_stopping(team, "n")]),
    )


def _stopping(team: Team, name: str) -> Deed:
    why, cause = Departure.LEFT, Cause.MEMBER_LEFT
    if team.spec.static:
        why, cause = Departure.SESSION_EXPIRED, Cause.SESSION_EXPIRED  # it stays until then
    what = f"{team.client_id(name)} stops as it should"
    return Deed(what, do=lambda: team.stop(name), **_went(team, name, why, cause))


async def _stop(team: Team, order: random.Random) -> Deed:
    deed = _stopping(team, "2")
    deed.after = lambda: _deed(team, "start", [_starting(team, "2")])
    return deed


def _starting(team: Team, name: str) -> Deed:
    client_id = team.client_id(name)
    return Deed(f"{client_id} starts", [client_id], list(RETURNED), lambda: team.start(name))


async def _victim(team: Team) -> None:
    host = await asyncio.to_thread(team.world.hosts.own, team.spec.library, f"{team.group}-v")
    joining = _starting(team, "v")
    joining.do = lambda: team.start("v", host=host)
    await _deed(team, "join", [joining])
    await team.works()


async def _kill(team: Team, order: random.Random) -> Deed:
    await _victim(team)
    host = team.members["v"].host

    async def do() -> None:
        del team.members["v"]
        await asyncio.to_thread(host.kill)

    went = _went(team, "v", Departure.SESSION_EXPIRED, Cause.SESSION_EXPIRED)
    return Deed(f"{team.client_id('v')} is killed", do=do, **went)


async def _freeze(team: Team, order: random.Random) -> Deed:
    await _victim(team)
    client = team.members["v"]

    async def do() -> None:
        del team.members["v"]
        os.kill(client.host.pid, signal.SIGSTOP)

    async def wake() -> None:
        team.members["v"] = client
        os.kill(client.host.pid, signal.SIGCONT)

    async def after() -> None:
        client_id = client.client_id
        await _deed(team, "wake", [Deed(f"{client_id} goes on", [client_id], list(RETURNED), wake)])
        await _deed(team, "stop", [_stopping(team, "v")])

    went = _went(team, "v", Departure.SESSION_EXPIRED, Cause.SESSION_EXPIRED)
    return Deed(f"{client.client_id} is stopped past its session", do=do, after=after, **went)


def _busy_s(spec: Spec) -> float:
    return (spec.max_poll_ms + spec.session_ms) / 1000 + 9


async def _busy(team: Team, order: random.Random) -> Deed:
    client = team.members["2"]
    spec = team.spec
    busy_s = _busy_s(spec)
    working: list[asyncio.Task[None]] = []

    async def do() -> None:
        del team.members["2"]
        working.append(asyncio.create_task(client.call("busy", seconds=busy_s)))

    async def back() -> None:
        team.members["2"] = client
        await working[0]

    async def after() -> None:
        client_id = client.client_id
        await _deed(team, "back", [Deed(f"{client_id} polls again", [client_id], list(RETURNED), back)])

    deed = Deed(
        f"{client.client_id} does not poll for {busy_s:.1f} s",
        do=do,
        after=after,
        **_went(team, "2", Departure.POLL_INTERVAL_EXCEEDED, Cause.POLL_INTERVAL_EXCEEDED),
    )
    # It does not leave: it sends no more heartbeats, and its session ends. librdkafka may wait for its busy
    # application before it leaves.
    if spec.static or spec.library == CONFLUENT:
        deed.causes.append(Cause.SESSION_EXPIRED)
        deed.departures[client.client_id].append(Departure.SESSION_EXPIRED)
    if spec.library == AIOKAFKA:  # it commits while it is busy, and then leaves
        deed.causes.append(Cause.MEMBER_LEFT)
        deed.departures[client.client_id].append(Departure.LEFT)
        deed.shown = False
    return deed


async def _restart(team: Team, order: random.Random) -> Deed:
    pause_s = order.uniform(0.2, START_S)
    return _restarting(team, "1", pause_s, f"stops and starts again after {pause_s:.1f} s")


def _restarting(team: Team, name: str, pause_s: float, what: str) -> Deed:
    async def do() -> None:
        await team.stop(name)
        await asyncio.sleep(pause_s)
        await team.start(name)

    client_id = team.client_id(name)
    causes = [Cause.MEMBER_RESTARTED, Cause.MEMBER_LEFT, Cause.MEMBER_JOINED]
    if team.spec.static:
        causes.append(Cause.STATIC_MEMBER_REPLACED)
    departures = {} if team.spec.static else {client_id: [Departure.LEFT, Departure.RESTARTED]}
    shown = distinguishable(team.spec, Departure.LEFT)
    return Deed(f"{client_id} {what}", [client_id], causes, do, departures, shown, quiet=team.spec.static)


async def _deploy(team: Team, order: random.Random) -> Deed:
    first, second = (_restarting(team, name, START_S, "is deployed anew") for name in ("1", "2"))
    first.after = lambda: _deed(team, "deploy", [second])
    return first


async def _subscribe(team: Team, order: random.Random) -> Deed:
    client = team.members["1"]
    reading: list[list[str]] = [[team.topic, team.other_topic], [team.topic]]

    def deed(topics: list[str]) -> Deed:
        async def do() -> None:
            client.topics = topics
            await client.call("subscribe", topics=topics)

        what = f"{client.client_id} subscribes to {len(topics)}"
        return Deed(what, [client.client_id], [Cause.MEMBER_CHANGED], do)

    first, second = map(deed, reading)
    first.after = lambda: _deed(team, "subscribe", [second])
    return first


async def _grow(team: Team, order: random.Random) -> Deed:
    async def do() -> None:
        team.partitions[team.topic] += order.randint(1, 3)
        await team.world.admin.create_partitions(team.topic, team.partitions[team.topic])

    return Deed(f"{team.topic} grows", [], [Cause.TOPICS_CHANGED], do)


async def _reset(team: Team, order: random.Random) -> Deed:
    """All members stop, offsets go back, and all start."""

    async def do() -> None:
        names = list(team.members)
        for name in names:
            await team.stop(name)
        await team.has(0)
        place = (team.topic, 0)
        if order.random() < 0.5:
            await team.world.admin.set_group_offsets(team.group, {place: 0})
        else:
            await team.world.admin.delete_group_offsets(team.group, [place])
        for name in names:
            await team.start(name)

    client_ids = [client.client_id for client in team.members.values()]
    causes = [Cause.MEMBER_LEFT, *RETURNED]
    left = {one: [Departure.LEFT, Departure.RESTARTED] for one in client_ids}
    return Deed(
        "all stop, offsets are set, all start",
        client_ids,
        causes,
        do,
        left,
        distinguishable(team.spec, Departure.LEFT),
    )


Act = Callable[[Team, random.Random], Awaitable[Deed]]
MAKE: Mapping[str, Act] = {
    "join": _join,
    "stop": _stop,
    "kill": _kill,
    "freeze": _freeze,
    "busy": _busy,
    "restart": _restart,
    "deploy": _deploy,
    "subscribe": _subscribe,
    "grow": _grow,
    "reset": _reset,
}
ACTS: dict[str, Callable[[bool, str], bool]] = dict.fromkeys(MAKE, lambda static, protocol: True)
ACTS["fence"] = lambda static, protocol: static and protocol != CONSUMER
ACTS["reset"] = lambda static, protocol: not static
"""Name -> whether it can be done to such a group: a static one is not empty until its sessions are over."""
WAITS = {
    "join": 2,
    "stop": 2,
    "kill": 3,
    "freeze": 5,
    "busy": 2,
    "restart": 1,
    "deploy": 2,
    "subscribe": 2,
    "grow": 1,
    "reset": 2,
    "fence": 2,
}
"""How often the group is waited for in an act, until it rests or works: for `SETTLE_S` at most."""
OFTEN = {"kill": 3, "freeze": 2, "busy": 3, "stop": 2}
"""Departures are what is hard to tell."""
AT_ONCE = {"join", "stop", "kill", "restart", "grow"}
GOES = {"stop", "kill", "busy", "restart", "deploy", "reset"}
"""Before these everybody has to have committed, so that silence shows."""


async def _deed(team: Team, kind: str, deeds: list[Deed], between_s: float = 0.0) -> None:
    departures: dict[str, list[Departure]] = {}
    for one in deeds:
        departures |= one.departures
    if len(deeds) > 1 and team.spec.protocol != CONSUMER:
        # The rebalance of the other deed waits for the member, and may be over before its session.
        for whys in departures.values():
            if Departure.SESSION_EXPIRED in whys:
                whys.append(Departure.NOT_REJOINED)
    async with team.incident(
        kind,
        ", and ".join(one.what for one in deeds),
        [client_id for one in deeds for client_id in one.client_ids]
        if all(one.client_ids for one in deeds)
        else [],
        causes=list(dict.fromkeys(cause for one in deeds for cause in one.causes)),
        also=[*also(team), *(RETURNED if len(deeds) > 1 else ())],
        departures=departures,
        shown=all(one.shown for one in deeds),
        quiet=all(one.quiet for one in deeds),
    ):
        for number, one in enumerate(deeds):
            if number:
                await asyncio.sleep(between_s)
            await one.do()
    for one in deeds:
        if one.after is not None and team.done[-1].settled:
            await one.after()


def longest_s(specs: Sequence[Spec], parallel: int) -> float:
    """The time after which a run of these groups hangs: each of its waits ends by itself before."""
    each_s = []
    for spec in specs:
        acts = [name for step in spec.steps for name in step.split("+")]
        waits = 1 + len(spec.steps) + sum(WAITS[name] for name in acts)
        each_s.append(waits * SETTLE_S + acts.count("busy") * _busy_s(spec))
    # The bound holds in any order in which the groups get their places.
    return sum(each_s) / parallel + max(each_s)


async def live(team: Team) -> None:
    """A group from its first members to its last."""
    order = random.Random(team.spec.drawn)
    team.live = True
    await start(team)
    for step in team.spec.steps:
        if not all(one.settled for one in team.done):
            break
        names = step.split("+")
        if names == ["fence"]:
            await fence(team)
            continue
        if GOES.intersection(names):
            await team.works()
        deeds = [await MAKE[name](team, order) for name in names]
        if team.done[-1].settled:
            await _deed(team, step, deeds, order.uniform(0, SECOND_S))
    await _end(team)


async def _end(team: Team) -> None:
    """Nothing is expected of it: it ends the time of the act before."""
    spec = team.spec
    last = Incident(
        team.group, ENDED, "all stop", spec.library, spec.protocol, "", [], now_ms(), settled=False
    )
    team.done.append(last)
    team.world.ledger.append(last)
    team.live = False
    for name in list(team.members):
        with contextlib.suppress(JavaError, TimeoutError):  # one that was fenced has ended
            await team.stop(name)
