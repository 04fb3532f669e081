"""The steps that can be done to a group. Each step makes an incident or more, and leaves members 1 and 2."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from ringleader.insight.model import Cause, Departure
from tests.incidents.ledger import RETURNED, Incident
from tests.incidents.libraries import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, OURS
from tests.incidents.team import MAX_POLL_MS, SESSION_MS, Client, Spec, Team, now_ms

BUSY_S = 2 * MAX_POLL_MS / 1000 + 2
"""Long enough that the group comes to rest without the member before it is back."""
SHORT_BUSY_S = 7.0
"""Shorter than the poll interval: nobody is put out, but everybody waits."""
SLOW_MS = 5_000
AT_LEAST = 0.6
"""Of a phase: what polls once a second see of it."""
START_S = 2.0
"""Of an application: nobody is back at once."""
TAKEOVERS = 4
FENCED_S = 30.0
FIGHT_S = 15.0

Step = Callable[[Team], Awaitable[None]]


def also(team: Team) -> list[Cause]:
    """The consequences of any rebalance, by the way a library works."""
    # The leaders of some rejoin by themselves, up to five times; Java's when the topics of the group change.
    found = [] if team.spec.protocol == "consumer" else [Cause.LEADER_REJOINED]
    return found + ([Cause.REBALANCE_CONTINUED] if team.spec.protocol != "range" else [])


def _why_shown(team: Team, *, rare: bool) -> bool:
    """Whether commits tell how a member went. `rare`: also commits that are about as rare as the session is
    long do."""
    return team.spec.commit_ms > 0 and (rare or team.spec.commit_ms < SESSION_MS / 2)


async def start(team: Team) -> None:
    """Members 1 and 2."""
    client_ids = [team.client_id("1"), team.client_id("2")]
    async with team.incident(
        "start", "two members start", client_ids, causes=[Cause.MEMBER_JOINED], also=also(team)
    ):
        await team.start("1")
        await team.start("2")


async def _joins(team: Team, name: str, what: str, **options: Any) -> None:
    client_id = team.client_id(name)
    async with team.incident(
        "scale up",
        f"{client_id} {what}",
        [client_id],
        causes=[Cause.MEMBER_JOINED],
        also=also(team),
        # Of those that share a client id, one that comes may be one that went.
        shown=not team.spec.same_client_id,
    ):
        await team.start(name, **options)


async def _leaves(team: Team, name: str) -> None:
    await team.works()
    client_id = team.client_id(name)
    async with team.incident(
        "clean stop",
        f"{client_id} stops as it should",
        [client_id],
        causes=[Cause.MEMBER_LEFT],
        also=also(team),
        departures={client_id: [Departure.LEFT]},
        shown=_why_shown(team, rare=True),
    ):
        await team.stop(name)


async def scale(team: Team) -> None:
    """Up and down."""
    await _joins(team, "3", "is one member more")
    await _leaves(team, "3")


async def two_applications(team: Team) -> None:
    """Another one, with topics of its own, comes into the group and goes."""
    await _joins(team, "b", "of another application joins", topics=[team.other_topic])
    await _leaves(team, "b")


def _expires(team: Team, client_id: str) -> dict[str, Any]:
    return {
        "causes": [Cause.SESSION_EXPIRED],
        "also": also(team),
        "departures": {client_id: [Departure.SESSION_EXPIRED]},
        "shown": _why_shown(team, rare=False),
    }


async def victim(team: Team) -> None:
    """One member more, which is frozen past its session, wakes, and is killed."""
    host = await asyncio.to_thread(team.world.hosts.own, team.spec.library, f"{team.group}-v")
    client_id = team.client_id("v")
    await _joins(team, "v", "joins", host=host)
    await team.works()
    async with team.incident(
        "SIGSTOP", f"{client_id} is stopped past its session", [client_id], **_expires(team, client_id)
    ):
        client = team.members.pop("v")
        os.kill(host.pid, signal.SIGSTOP)
    async with team.incident(
        "SIGCONT", f"{client_id} goes on", [client_id], causes=list(RETURNED), also=also(team)
    ):
        team.members["v"] = client
        os.kill(host.pid, signal.SIGCONT)
    await team.works()
    async with team.incident("SIGKILL", f"{client_id} is killed", [client_id], **_expires(team, client_id)):
        del team.members["v"]
        await asyncio.to_thread(host.kill)


async def busy(team: Team) -> None:
    """The poll loop of member 2 is slower than its poll interval."""
    await team.works()
    client = team.members.pop("2")
    client_id = client.client_id
    # This library commits while the application is busy, and then leaves: that is all that can be seen.
    commits = team.spec.library == AIOKAFKA
    async with team.incident(
        "slow poll loop",
        f"{client_id} does not poll for {BUSY_S:.0f} s",
        [client_id],
        causes=[Cause.POLL_INTERVAL_EXCEEDED, *([Cause.MEMBER_LEFT] if commits else [])],
        also=also(team),
        departures={client_id: [Departure.POLL_INTERVAL_EXCEEDED, *([Departure.LEFT] if commits else [])]},
        shown=_why_shown(team, rare=False) and not commits,
    ):
        working = asyncio.create_task(client.call("busy", seconds=BUSY_S))
    async with team.incident(
        "back", f"{client_id} polls again", [client_id], causes=list(RETURNED), also=also(team)
    ):
        team.members["2"] = client
        await working


async def subscribe(team: Team) -> None:
    """Member 1 reads one topic more, and then does not any more."""
    client = team.members["1"]
    for topics, what in (
        ([team.topic, team.other_topic], "one topic more"),
        ([team.topic], "one topic less"),
    ):
        async with team.incident(
            "subscription",
            f"{client.client_id} subscribes to {what}",
            [client.client_id],
            causes=[Cause.MEMBER_CHANGED],
            also=also(team),
        ):
            client.topics = topics
            await client.call("subscribe", topics=topics)


async def partitions(team: Team) -> None:
    """Three partitions more."""
    async with team.incident(
        "partitions added",
        f"{team.topic} has three partitions more",
        [],
        causes=[Cause.TOPICS_CHANGED],
        also=also(team),
    ):
        team.partitions[team.topic] += 3
        await team.world.admin.create_partitions(team.topic, team.partitions[team.topic])


async def deploy(team: Team) -> None:
    """One member after the other stops and starts again; each is an incident."""
    for name in ("1", "2"):
        await team.works()
        client_id = team.client_id(name)
        async with team.incident(
            "rolling deploy",
            f"{client_id} stops and starts again",
            [client_id],
            causes=[Cause.MEMBER_RESTARTED, Cause.MEMBER_LEFT, Cause.MEMBER_JOINED],
            also=also(team),
            departures={client_id: [Departure.LEFT, Departure.RESTARTED]}
            if _why_shown(team, rare=True)
            else {},
        ):
            await team.stop(name)
            await asyncio.sleep(START_S)
            await team.start(name)


async def slow_leader(team: Team) -> None:
    """The leader computes for `slow_ms`."""
    for what, deed, cause in (
        ("joins", lambda: team.start("3"), Cause.MEMBER_JOINED),
        ("stops", lambda: team.stop("3"), Cause.MEMBER_LEFT),
    ):
        client_id = team.client_id("3")
        async with team.incident(
            "slow leader",
            f"{client_id} {what}, and the leader computes for {team.spec.slow_ms / 1000:g} s",
            [client_id],
            causes=[cause],
            also=also(team),
            phases={"leader_ms": int(AT_LEAST * team.spec.slow_ms)},
        ):
            await deed()


async def slow_joiner(team: Team) -> None:
    """Everybody waits until member 1 polls again."""
    slow, client_id = team.members["1"], team.client_id("4")
    async with team.incident(
        "slow joiner",
        f"{client_id} joins while {slow.client_id} does not poll for {SHORT_BUSY_S:g} s",
        [client_id],
        causes=[Cause.MEMBER_JOINED],
        also=also(team),
        phases={"join_ms": int(AT_LEAST * 1000 * (SHORT_BUSY_S - 2))},
        slowest=slow.client_id,
    ):
        working = asyncio.create_task(slow.call("busy", seconds=SHORT_BUSY_S))
        await team.start("4")
        await working
    await _leaves(team, "4")


# ---- static members ----


async def static_deploy(team: Team) -> None:
    """One member after the other stops and comes back as the same instance."""
    for name in ("1", "2"):
        client_id = team.client_id(name)
        async with team.incident(
            "static deploy",
            f"static {client_id} stops and starts again",
            [client_id],
            causes=[Cause.STATIC_MEMBER_REPLACED],
            also=also(team),
            quiet=True,
        ):
            await team.stop(name)
            await asyncio.sleep(START_S)
            await team.start(name)


async def static_crash(team: Team) -> None:
    """A static member is killed, comes back in time, and then stops for good: that is no leave."""
    host = await asyncio.to_thread(team.world.hosts.own, team.spec.library, f"{team.group}-v")
    client_id = team.client_id("v")
    await _joins(team, "v", "joins", host=host)
    async with team.incident(
        "static crash",
        f"static {client_id} is killed and starts again",
        [client_id],
        causes=[Cause.STATIC_MEMBER_REPLACED],
        also=also(team),
        quiet=True,
    ):
        await asyncio.to_thread(host.kill)
        await team.start("v")
    async with team.incident(
        "static gone",
        f"static {client_id} stops and does not come back",
        [client_id],
        **_expires(team, client_id),
    ):
        await team.stop("v")


async def fence(team: Team) -> None:
    """Two processes with one instance id take it from each other, as often as somebody starts them again."""
    instance = team.members["2"].instance_id
    holder: Client = team.members.pop("2")
    client_ids = [team.client_id("2"), team.client_id("x")]
    async with team.incident(
        "instance id twice",
        f"{' and '.join(client_ids)} have the instance id {instance}",
        client_ids,
        causes=[Cause.INSTANCE_FENCED],
        also=[Cause.STATIC_MEMBER_REPLACED, *also(team)],
    ) as one:
        if team.spec.library == AIOKAFKA:
            # It does not understand that it was fenced, and joins again: the two go on by themselves.
            await team.start("x", instance_id=instance)
            await asyncio.sleep(FIGHT_S)
            await team.stop("x")
            team.members["2"] = holder
        else:
            await _taken_over(team, holder, one)


async def _taken_over(team: Team, holder: Client, one: Incident) -> None:
    """A member that is fenced ends, and is started again."""
    for number in range(TAKEOVERS):
        name = "2" if number % 2 else "x"
        next_holder = await team.start(name, instance_id=holder.instance_id)
        try:
            async with asyncio.timeout(FENCED_S):
                await holder.failed.wait()
        except TimeoutError:
            one.settled = False
        team.members = {key: client for key, client in team.members.items() if client is not holder}
        holder = next_holder


# ---- the groups ----

DYNAMIC = ("scale", "victim", "busy", "subscribe", "partitions", "deploy", "two_applications")
STATIC = ("static_deploy", "static_crash", "fence")
CONSUMER = ("scale", "victim", "busy", "subscribe", "partitions", "deploy")
RARE = ("scale", "victim", "busy", "deploy", "partitions")
COOPERATIVE = "cooperative-sticky"

SPECS = (
    Spec("java-eager", JAVA, steps=(*DYNAMIC, "slow_joiner")),
    Spec("java-cooperative", JAVA, COOPERATIVE, steps=DYNAMIC),
    Spec("java-static", JAVA, static=True, steps=STATIC),
    Spec("java-slow", JAVA, slow_ms=SLOW_MS, steps=("slow_leader",)),
    Spec("java-consumer", JAVA, "consumer", steps=CONSUMER),
    Spec("java-idle", JAVA, commit_ms=0, steps=RARE),
    Spec("confluent-eager", CONFLUENT, steps=(*DYNAMIC, "slow_joiner")),
    Spec("confluent-cooperative", CONFLUENT, COOPERATIVE, steps=DYNAMIC),
    Spec("confluent-static", CONFLUENT, static=True, steps=STATIC),
    Spec("confluent-consumer", CONFLUENT, "consumer", steps=CONSUMER),
    Spec("confluent-5s", CONFLUENT, commit_ms=5_000, steps=RARE),
    Spec("confluent-idle", CONFLUENT, commit_ms=0, steps=RARE),
    Spec("confluent-same-name", CONFLUENT, same_client_id=True, steps=("scale", "victim", "deploy")),
    Spec("aiokafka-eager", AIOKAFKA, steps=DYNAMIC),
    Spec("aiokafka-static", AIOKAFKA, static=True, steps=STATIC),
    Spec("aiokafka-5s", AIOKAFKA, commit_ms=5_000, steps=RARE),
    Spec("kafka-python-eager", KAFKA_PYTHON, steps=DYNAMIC),
    Spec("kafka-python-cooperative", KAFKA_PYTHON, COOPERATIVE, steps=("scale", "victim", "deploy")),
    Spec("kafka-python-static", KAFKA_PYTHON, static=True, steps=STATIC),
    Spec("kafka-python-slow", KAFKA_PYTHON, slow_ms=SLOW_MS, steps=("slow_leader",)),
    Spec("ours-eager", OURS, steps=DYNAMIC),
    Spec("ours-cooperative", OURS, COOPERATIVE, steps=DYNAMIC),
    Spec("ours-static", OURS, static=True, steps=STATIC),
    Spec("ours-consumer", OURS, "consumer", steps=CONSUMER),
    Spec("ours-5s", OURS, COOPERATIVE, commit_ms=5_000, steps=RARE),
    Spec("ours-idle", OURS, commit_ms=0, steps=RARE),
)
STEPS: dict[str, Step] = {
    step.__name__: step
    for step in (
        scale,
        two_applications,
        victim,
        busy,
        subscribe,
        partitions,
        deploy,
        slow_leader,
        slow_joiner,
        static_deploy,
        static_crash,
        fence,
    )
}
QUICK = {
    "confluent-eager": ("scale", "partitions", "deploy"),
    "ours-cooperative": ("scale", "subscribe", "victim"),
    "confluent-static": ("static_deploy",),
    "confluent-consumer": ("scale",),
}
"""A handful, in about a minute."""


def restarted(team: Team, began_ms: int) -> Incident:
    """The restart of its coordinator as a group sees it, which goes on as if nothing had been."""
    spec = team.spec
    return Incident(
        group=team.group,
        kind="coordinator restarted",
        what="the broker restarts",
        client=spec.library,
        protocol=spec.protocol,
        commits=f"{spec.commit_ms / 1000:g} s" if spec.commit_ms else "never",
        client_ids=[],
        began_ms=began_ms,
        causes=[Cause.COORDINATOR_CHANGED],
        also=also(team),
        quiet=True,
    )


__all__ = [
    "COOPERATIVE",
    "QUICK",
    "SPECS",
    "START_S",
    "STEPS",
    "also",
    "fence",
    "now_ms",
    "restarted",
    "start",
]
