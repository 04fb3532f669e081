"""Scenarios that nobody thought of: random requests of a few clients, the same ones to Apache Kafka and to
our server in simulated time.

Known differences are not asked for: see `Explorer`. All members prefer protocols in the same order, and no
leader leaves two others behind, so that nothing follows from hash order in Kafka.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.interop.language import Answers, Entry, Scenario, Step
from tests.interop.play import Player
from tests.interop.simulated import simulated

STEPS = 30

_PROTOCOLS = ("range:orders", "range:orders,sticky:orders", "range:payments,sticky:payments", "sticky:orders")
_VERSIONS = {
    "JoinGroup": range(10),
    "SyncGroup": range(6),
    "Heartbeat": range(5),
    "LeaveGroup": range(6),
    "OffsetCommit": range(2, 10),
    "OffsetFetch": range(1, 10),
    "DescribeGroups": range(7),
    "TxnOffsetCommit": range(4),
}
_INSTANCE_SINCE = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3, "OffsetCommit": 7}
_OFTEN = {
    "join": 30,
    "sync": 24,
    "heartbeat": 12,
    "leave": 8,
    "commit": 10,
    "fetch": 6,
    "look": 8,
    "delete": 4,
    "transaction": 4,
    "rebalance": 6,
}
"""How often a client does what."""

_OFTEN_MODERN = {
    "beat": 24,
    "report": 26,
    "full": 5,
    "join": 6,
    "leave": 7,
    "subscribe": 8,
    "stranger": 6,
    "commit": 8,
    "look": 8,
    "delete": 2,
    "settle": 6,
}
_OWNED = ("own", "own", "own", "nothing", "orders/0", "orders/0,own/1")
_OTHER = ("epoch=1", "epoch=2", "epoch=3", "epoch=99", "member=ghost", "rack=r")
_PLACES = ("orders/0", "orders/1", "payments/0", "own/0")
_COMMITS = ("", "", "generation=1", "generation=2", "generation=3", "member='' generation=-1")
_SUBSCRIPTIONS = ("orders", "orders", "payments", "own", "own+orders", "orders+payments", "ghost")

_INSTANCES = {"a": "ann", "b": "bob"}
_ACTOR_OF = {instance: name for name, instance in _INSTANCES.items()}

_KEPT = "x OffsetCommit payments/1@1"
"""An offset that nobody deletes: a group of offsets ends with its last one here (simple-group-end)."""

_STRANGER = ("member=ghost", "member=''", "generation=0", "generation=1", "generation=2", "generation=-1")


class Explorer(Player):
    """Leaves out what differs on purpose: a second request of a client goes behind the one that waits, and
    nobody else makes a member leave whose sync waits."""

    async def _run(self, command: str) -> Answers:
        words = command.split()
        waiting = [sent for sent in self._requests if not sent.over]
        syncs = [sent.actor.name for sent in waiting if sent.api == "SyncGroup"]
        own = any(sent.actor.name == words[0] for sent in waiting)
        if words[-1] == "epoch=0":
            left_out = self._comes_back_as_itself(words[0])
        elif words[1:] == ["ConsumerGroupHeartbeat", "member=ghost"]:
            left_out = self._joins_as_ghost(words[0])
        elif words[-1] == "rebalance":
            left_out = any(sent.actor.name in words for sent in waiting)
        elif words[1] == "LeaveGroup":
            left_out = self._leader_leaves(words) or any(name != words[0] for name in syncs)
        else:
            left_out = own and words[1] == "joins"
        behind = own and words[1] in ("JoinGroup", "SyncGroup", "LeaveGroup")
        # Two queues would race each other.
        queues = any(len(line.sent) > 1 for lines in self._lines.values() for line in lines)
        if left_out or (behind and queues):
            return [("left out",)]
        return await super()._run(f"{command} queued" if behind else command)

    def _comes_back_as_itself(self, name: str) -> bool:
        """A static member without having left (static-rejoin)."""
        actor = self._actor(name)
        return bool(actor.sticky.get("instance")) and actor.generation > 0

    def _joins_as_ghost(self, name: str) -> bool:
        """A static member that is not in the group: the second one comes back as itself (static-rejoin)."""
        actor = self._actor(name)
        return bool(actor.sticky.get("instance")) and actor.generation <= 0

    def _leader_leaves(self, words: list[str]) -> bool:
        """In a group of three or more: then Kafka chooses another leader by hash order."""
        names = {name[0] for name in self._actors} - {"p", "x"}
        if len(names) < 3:
            return False
        leaders = {actor.leader for actor in self._actors.values()}
        name = _ACTOR_OF.get(words[-1].strip("/"), words[0])
        return any(actor.member_id in leaders for actor in self._actors.values() if actor.name[0] == name[0])


def random_scenario(seed: int) -> Scenario:
    """The same for the same seed: of the consumer protocol for every other one."""
    dice = random.Random(seed)
    if seed % 2:
        return _of_consumer_protocol(seed, dice)
    scenario = Scenario(f"seed {seed}", Path("explore"))
    static = dice.choice(((), ("b",), ("a", "b")))
    members = ["a", "b", "c"][: dice.choice((2, 2, 3))]
    everybody = list(members)
    # No timer fires: in simulated time a step may take as long as it likes.
    commands = [f"{name} is session=10m rebalance=10m" for name in everybody]
    for actor in static:
        double = actor + "2"
        commands.append(f"{actor} is instance={_INSTANCES[actor]}")
        commands.append(f"{double} is instance={_INSTANCES[actor]} session=10m rebalance=10m")
        members.append(double)
    if dice.random() < 0.7:
        commands.append(f"{' '.join(everybody if dice.random() < 0.7 else ['a'])} form a group")
    while len(commands) < STEPS:
        commands += _commands(dice, members, static)
    scenario.steps = [Step(command) for command in commands]
    return scenario


def _of_consumer_protocol(seed: int, dice: random.Random) -> Scenario:
    """All vote for `range`: it knows no ties. Topics change at rest: Kafka hears of them later. No
    member subscribes to nothing (empty-subscriber)."""
    scenario = Scenario(f"seed {seed}", Path("explore"))
    members = ["a", "b", "c"][: dice.choice((1, 2, 3, 3))]
    commands = ["create topic own 2", "wait 300ms"]
    for name in list(members):
        commands.append(f"{name} is rebalance=10m assignor=range topics={dice.choice(_SUBSCRIPTIONS)}")
        if dice.random() < 0.35:
            double = f"{name}2"
            members.append(double)
            commands.append(f"{name} is instance=i{name}")
            commands.append(f"{double} is instance=i{name} rebalance=10m assignor=range topics=orders")
    there, partitions = True, 2
    while len(commands) < STEPS:
        if dice.random() < 0.08:
            if not there:
                there, partitions = True, dice.choice((1, 2, 3))
                commands.append(f"create topic own {partitions}")
            elif dice.random() < 0.4:
                there = False
                commands.append("delete topic own")
            else:
                partitions += dice.choice((1, 2))
                commands.append(f"grow topic own {partitions}")
            commands.append("wait 300ms")
        else:
            commands.append(_command_of_consumer_protocol(dice, dice.choice(members), members))
    scenario.steps = [Step(command) for command in commands]
    return scenario


def _command_of_consumer_protocol(dice: random.Random, actor: str, members: list[str]) -> str:
    beat = f"{actor} ConsumerGroupHeartbeat"
    match dice.choices(list(_OFTEN_MODERN), list(_OFTEN_MODERN.values()))[0]:
        case "beat":
            return beat
        case "report":
            return f"{beat} owned={dice.choice(_OWNED)}"
        case "full":
            return f"{beat} full owned={dice.choice(('own', 'own', 'nothing'))}"
        case "join":
            return f"{beat} epoch=0"
        case "leave":
            return f"{beat} epoch={dice.choice((-1, -2, -2))}"
        case "subscribe":
            return f"{beat} topics={dice.choice(_SUBSCRIPTIONS)}"
        case "stranger":
            return f"{beat} {dice.choice(_OTHER)}"
        case "commit":
            place = f"{dice.choice(_PLACES)}@{dice.randrange(100)}"
            return f"{actor} OffsetCommit {place} {dice.choice(_COMMITS)}".strip()
        case "look":
            return dice.choice(("x ConsumerGroupDescribe", "x OffsetFetch all", "x ListGroups v5"))
        case "delete":
            return dice.choice(("x DeleteGroups", "x OffsetDelete orders/0 payments/0"))
        case _:
            return f"{' '.join(dice.sample(members, dice.randint(1, len(members))))} settle"


def _commands(dice: random.Random, members: list[str], static: tuple[str, ...]) -> list[str]:
    actor = dice.choice(members)
    named = actor[0] in static

    def request(api: str, *words: str) -> str:
        low = _INSTANCE_SINCE.get(api, 0) if named else 0
        version = dice.choice([one for one in _VERSIONS[api] if one >= low])
        return " ".join((actor, api, f"v{version}", *filter(None, words)))

    def stranger(words: tuple[str, ...] = _STRANGER) -> str:
        return dice.choice(words) if dice.random() < 0.15 else ""

    match dice.choices(list(_OFTEN), list(_OFTEN.values()))[0]:
        case "join":
            protocols = f"protocols={dice.choice(_PROTOCOLS)}" if dice.random() < 0.25 else ""
            # A dynamic member's former self would be waited for.
            fresh = "member=''" if named and dice.random() < 0.2 else ""
            if named or fresh or dice.random() < 0.3:
                return [request("JoinGroup", protocols, fresh or stranger(_STRANGER[:1]))]
            return [f"{actor} joins {protocols}".strip()]
        case "sync":
            return [request("SyncGroup", stranger())]
        case "heartbeat":
            return [request("Heartbeat", stranger())]
        case "leave":
            if named and dice.random() < 0.5:
                return [f"x LeaveGroup /{_INSTANCES[actor[0]]}"]
            return [request("LeaveGroup")]
        case "commit":
            place = dice.choice(("orders/0", "orders/1", "payments/0", "nowhere/0"))
            offset = f"{place}@{dice.randrange(100)}"
            if dice.random() < 0.2:
                return [f"x OffsetCommit {offset}"]
            return [request("OffsetCommit", offset, stranger())]
        case "fetch":
            return [dice.choice(("x OffsetFetch all", "x OffsetFetch orders/0 payments/0 stable"))]
        case "look":
            return [dice.choice((request("DescribeGroups"), "x ListGroups", "x DescribeGroups"))]
        case "delete":
            if dice.random() < 0.4:
                return ["x DeleteGroups"]
            # After a restart with other topics (static-subscription) other ones are protected.
            return [_KEPT, f"x OffsetDelete {'nowhere/0' if static else 'orders/0 payments/0'}"]
        case "transaction":
            end = dice.choice(("commit", "abort"))
            return [
                _KEPT,
                "p InitProducerId",
                "p AddOffsetsToTxn",
                f"p TxnOffsetCommit orders/{dice.randrange(3)}@{dice.randrange(100)}",
                dice.choice(("x OffsetFetch all", "x OffsetFetch orders/0 orders/1 orders/2 stable")),
                f"p EndTxn {end}",
                "wait 300ms",
            ]
        case _:
            everybody = [name for name in members if len(name) == 1]
            some = dice.sample(everybody, dice.choice((1, 2, len(everybody))))
            return [f"{' '.join(some)} rebalance"]


def play_random_here(scenario: Scenario) -> list[Answers]:
    """The answers of our server, in simulated time."""
    return simulated(scenario, lambda world: Explorer(scenario, Entry(), world, "x"))
