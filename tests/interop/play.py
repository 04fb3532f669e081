"""Plays a scenario: sends what its steps say, and puts into words what comes back.

Where to, and how time passes, is a `World`: a broker behind sockets, or our server with a simulated clock.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.frames import decode_response, encode_request, response_class
from ringleader.protocol.schema import Message
from tests.interop import modern
from tests.interop.asks import APIS, KEYS, STICKY, USUAL_VERSIONS, Actor, Ask, build, duration_ms, split_words
from tests.interop.language import RESTART, Answers, Block, Entry, Scenario, ScenarioError
from tests.interop.words import Names, answer

PARKING = ("JoinGroup", "SyncGroup")
"""APIs whose answer may have to wait for others."""

JOINING = ("JoinGroup", "ConsumerGroupHeartbeat")
"""APIs by which an actor says what it goes on using."""

TOUCHING = (*PARKING, "LeaveGroup", "DeleteGroups")
"""APIs that may make the answers of others due."""

KEEP_ALIVE_MS = 60
"""Heartbeats during `wait 1s, keep a b` go out this often."""

SHARED_TOPICS = ("orders", "payments")
"""Topics that are there for all scenarios."""

SETTLING_ROUNDS = 8
"""How often a member of `settle` may send a heartbeat."""

ROUNDS = 4
"""How often a member of `form a group` may have to join before the scenario is given up."""

_WHOLE = re.compile(r"((?:[a-z]\w* )+)(form a group|rebalance|joins|settle)( .*)?")

Receiver = Callable[[bytes | None], None]
"""Takes each frame without its size, and None when the connection was closed."""


class Link(Protocol):
    """A connection."""

    def send(self, frame: bytes) -> None:
        """Send a whole frame."""

    def close(self) -> None:
        """Close it from this side."""


class World(Protocol):
    """Where a scenario is played."""

    async def connect(self, receive: Receiver) -> Link:
        """Open a connection."""

    async def sleep(self, ms: int) -> None:
        """Let time pass."""

    async def answered(self, done: Callable[[], bool], *, surely: bool) -> bool:
        """Wait until `done()`; False if it does not come to that. `surely`: it is expected."""

    async def settle(self, group_id: str, arrived: Callable[[], int]) -> None:
        """Wait until whatever the last request has brought about is over. `arrived()` counts answers."""

    async def create_topic(self, name: str, partitions: int) -> None:
        """A topic that only this play uses."""

    async def grow_topic(self, name: str, partitions: int) -> None:
        """It has this many partitions from now on."""

    async def topic_id(self, name: str) -> bytes:
        """The id of a topic that is there."""

    async def delete_topic(self, name: str) -> None:
        """Delete it again."""

    async def restart(self) -> None:
        """Stop the server and start it again; nothing that was durable is lost."""


@dataclass(eq=False, slots=True)
class Sent:
    """A request under way."""

    actor: Actor
    api: str
    version: int
    message: Message
    place: int
    """In the order of sending."""
    reported: bool = False
    """Its answer is in the transcript."""
    frame: bytes | None = None
    closed: bool = False

    @property
    def over(self) -> bool:
        """Answered, or the connection is gone."""
        return self.closed or self.frame is not None

    @property
    def key(self) -> str:
        """How its line begins."""
        return f"{self.actor.name} {self.api}"


@dataclass(eq=False, slots=True)
class Line:
    """A connection of an actor, with the requests under way: a server answers one after another."""

    link: Link | None = None
    sent: list[Sent] = field(default_factory=list)
    closed: bool = False

    def receive(self, frame: bytes | None) -> None:
        """See `Receiver`."""
        if frame is None:
            self.closed = True
            for sent in self.sent:
                sent.closed = True
            self.sent.clear()
        elif self.sent:
            self.sent.pop(0).frame = frame


class Player:
    """Plays one scenario at one line-up of versions.

    `expected` (by step): what the answers should be. The player then waits patiently for what should come,
    and not at all where nothing more should come.
    """

    def __init__(
        self,
        scenario: Scenario,
        entry: Entry,
        world: World,
        token: str,
        expected: list[Answers] | None = None,
    ) -> None:
        self._scenario, self._entry, self._world = scenario, entry, world
        self._names = Names(token)
        self._expected = expected
        self._step = 0
        self._actors: dict[str, Actor] = {}
        self._lines: dict[Actor, list[Line]] = {}
        self._pulses: dict[Actor, tuple[Line, list[int]]] = {}
        self._requests: list[Sent] = []

    async def play(self) -> list[Answers]:
        """The answers to each step."""
        try:
            answers = []
            for number, step in enumerate(self._scenario.steps):
                self._step = number
                answers.append(await self._run(step.command))
            return answers
        finally:
            lines = [line for several in self._lines.values() for line in several]
            for line in [*lines, *(pulse for pulse, _ in self._pulses.values())]:
                if line.link is not None and not line.closed:
                    line.link.close()

    # ---- steps ----

    async def _run(self, command: str) -> Answers:
        words = command.split()
        match words:
            case ["wait", *_]:
                return await self._wait(command)
            case ["create", "topic", name, count]:
                await self._world.create_topic(self._names.private(name), int(count))
                await self._learn_topics([name])
                return []
            case ["grow", "topic", name, count]:
                await self._world.grow_topic(self._names.private(name), int(count))
                return []
            case ["delete", "topic", name]:
                await self._world.delete_topic(self._names.private(name))
                return []
            case _ if command == RESTART:
                return await self._restart()
            case [name, "is", *_]:
                _, named = split_words(command.split(" is ", 1)[1])
                self._remember(self._actor(name), named)
                return []
            case [name, "disconnects"]:
                return await self._disconnect(self._actor(name))
        match = _WHOLE.fullmatch(command)
        if match is not None:
            run = {
                "form a group": self._form,
                "rebalance": self._rebalance,
                "joins": self._joins,
                "settle": self._settle_members,
            }[match[2]]
            _, named = split_words(match[3] or "")
            actors = [self._actor(name) for name in match[1].split()]
            for actor in actors:
                if named.get("member") == "":
                    actor.member_id = ""
                self._remember(actor, {name: text for name, text in named.items() if name != "member"})
            return await run(actors)
        return await self._request(command)

    async def _learn_topics(self, names: Sequence[str]) -> None:
        for name in names:
            wire = self._names.private(name) if name.startswith("own") else name
            self._names.topic(wire, await self._world.topic_id(wire))

    def _actor(self, name: str) -> Actor:
        if not re.fullmatch(r"[a-z][a-z0-9]*", name):
            raise ScenarioError(f"no name of an actor: {name!r}")
        return self._actors.setdefault(name, Actor(name, len(self._actors)))

    @staticmethod
    def _remember(actor: Actor, named: dict[str, str]) -> None:
        strangers = set(named) - set(STICKY)
        if strangers:
            raise ScenarioError(f"only said with a request: {', '.join(sorted(strangers))}")
        actor.sticky.update(named)

    async def _request(self, command: str) -> Answers:
        words = command.split(maxsplit=2)
        if len(words) < 2 or words[1] not in APIS:
            raise ScenarioError(f"no such step: {command!r}")
        plain, named = split_words(words[2] if len(words) > 2 else "")
        actor = self._actor(words[0])
        version = None
        if plain and re.fullmatch(r"v\d+", plain[0]):
            version = int(plain.pop(0)[1:])
        if words[1] in JOINING:
            self._remember(actor, {name: text for name, text in named.items() if name in STICKY})
        queued = "queued" in plain
        if queued:
            plain.remove("queued")
        sent = await self._send(actor, words[1], version, plain, named, queued=queued)
        await self._settle(sent, queued=queued)
        return self._collect(sent)

    async def _send(
        self,
        actor: Actor,
        api: str,
        version: int | None,
        plain: list[str],
        named: dict[str, str],
        *,
        queued: bool = False,
    ) -> Sent:
        if version is None:
            version = self._entry.version(api)
        if version is None:
            version = USUAL_VERSIONS[api]
        if api == "ConsumerGroupHeartbeat" and SHARED_TOPICS[0] not in self._names.topic_ids:
            await self._learn_topics(SHARED_TOPICS)
        message = build(Ask(actor, api, version, plain, named, self._names))
        sent = Sent(actor, api, version, message, len(self._requests))
        self._requests.append(sent)
        line = await self._free_line(actor, queued)
        line.sent.append(sent)
        assert line.link is not None
        line.link.send(encode_request(message, version, 1, actor.client_id))
        return sent

    async def _free_line(self, actor: Actor, queued: bool) -> Line:
        lines = self._lines.setdefault(actor, [])
        for line in lines:
            if not line.closed and bool(line.sent) == queued:
                return line
        if queued:
            raise ScenarioError(f"no request of {actor.name} waits that another one could be queued behind")
        line = Line()
        line.link = await self._world.connect(line.receive)
        lines.append(line)
        return line

    async def _disconnect(self, actor: Actor) -> Answers:
        for line in self._lines.pop(actor, []):
            for sent in line.sent:
                sent.reported = True
            if line.link is not None and not line.closed:
                line.link.close()
        await self._world.settle("", self._arrived)
        return self._collect(None)

    async def _restart(self) -> Answers:
        """The requests that wait for an answer, and the end of the connection, depend on how the server is
        ended."""
        for actor in list(self._lines):
            for line in self._lines.pop(actor):
                if line.link is not None and not line.closed:
                    line.link.close()
        for sent in self._requests:
            sent.reported = sent.closed = True
        self._pulses.clear()
        await self._world.restart()
        return []

    # ---- waiting ----

    def _arrived(self) -> int:
        return sum(sent.over for sent in self._requests)

    def _due(self) -> list[str] | None:
        """The requests that should be answered in this step; None when nobody knows."""
        if self._expected is None:
            return None
        starts = [block[0].split() for block in self._expected[self._step]]
        return [f"{words[0]} {words[1].rstrip(':')}" for words in starts if words[-1] != "waits"]

    def _all_arrived(self, due: list[str]) -> bool:
        arrived = [sent.key for sent in self._requests if sent.over and not sent.reported]
        return all(arrived.count(key) >= due.count(key) for key in due if key.split()[1] in APIS)

    async def _settle(self, sent: Sent | None, *, queued: bool = False) -> None:
        world = self._world
        if sent is not None and sent.api not in PARKING and not queued:
            await world.answered(lambda: sent.over, surely=True)
            if sent.api not in TOUCHING:
                return
        due = self._due()
        if due is not None:
            await world.answered(lambda: self._all_arrived(due), surely=True)
            if not any(not one.over for one in self._requests):
                return
        group_id = "" if sent is None else getattr(sent.message, "group_id", "")
        await world.settle(group_id, self._arrived)

    def _collect(self, own: Sent | None) -> Answers:
        """Put the answers that came into words; first that of the step's own request."""
        fresh = [sent for sent in self._requests if sent.over and not sent.reported]
        fresh.sort(key=lambda sent: (sent is not own, sent.actor.place, sent.place))
        answers = [(sent, self._decode(sent)) for sent in fresh]
        blocks: Answers = []
        for sent, response in answers:
            sent.reported = True
            if response is None:
                blocks.append((f"{sent.key}: connection closed",))
            else:
                blocks.append(answer(sent.actor.name, sent.api, response, sent.version, self._names))
        if own is not None and not own.over:
            blocks.insert(0, (f"{own.key} waits",))
        return blocks

    def _decode(self, sent: Sent) -> Any:
        if sent.frame is None:
            return None
        cls = response_class(KEYS[sent.api])
        assert cls is not None
        version = sent.version
        if sent.api == "ApiVersions" and sent.frame[4:6] == b"\0\x23":
            version = 0  # an unknown version is refused in the oldest form
        _, response = decode_response(cls, sent.frame, version)
        sent.actor.learn(sent.message, response, self._names)
        return response

    async def _wait(self, command: str) -> Answers:
        """`wait 300ms`, `wait 2s, keep a b`."""
        words = command.replace(",", " ").split()
        if len(words) < 2 or (len(words) > 2 and words[2] != "keep"):
            raise ScenarioError("wait DURATION, or wait DURATION, keep ACTOR...")
        duration = duration_ms(words[1])
        keep = [self._actor(name) for name in words[3:]]
        await self._pulse(keep, duration)
        await self._settle(None)
        return [*self._collect(None), *(block for actor in keep for block in self._pulse_block(actor))]

    async def _pulse(self, keep: list[Actor], duration: int) -> None:
        for actor in keep:
            line = self._pulses[actor][0] if actor in self._pulses else Line()
            if line.link is None:
                line.link = await self._world.connect(line.receive)
            self._pulses[actor] = (line, [])
        left = duration
        while left > 0:
            await asyncio.gather(*(self._beat(actor) for actor in keep))
            step = min(left, KEEP_ALIVE_MS if keep else left)
            await self._world.sleep(step)
            left -= step

    async def _beat(self, actor: Actor) -> None:
        line, codes = self._pulses[actor]
        api = "ConsumerGroupHeartbeat" if actor.is_modern else "Heartbeat"
        version = self._entry.version(api) or USUAL_VERSIONS[api]
        request = build(Ask(actor, api, version, [], {}, self._names))
        sent = Sent(actor, api, version, request, 0)
        line.sent.append(sent)
        assert line.link is not None
        line.link.send(encode_request(request, version, 1, actor.client_id))
        await self._world.answered(lambda: sent.over, surely=True)
        if sent.frame is not None:
            codes.append(self._decode(sent).error_code)

    def _pulse_block(self, actor: Actor) -> Answers:
        codes = [code for code, _ in groupby(self._pulses[actor][1])]
        text = " then ".join(error_name(code) if code else "ok" for code in codes)
        return [(f"{actor.name} heartbeats: {text}",)]

    # ---- whole rebalances ----

    async def _form(self, actors: list[Actor]) -> Answers:
        """The first one makes the group, then all others come in with one rebalance."""
        first = actors[0]
        trouble = await self._rebalance([first])
        if len(actors) == 1 or not trouble[0][0].startswith("stable"):
            return trouble
        for actor in actors[1:]:
            await self._join_until_it_waits(actor)
        return await self._rebalance(actors)

    async def _joins(self, actors: list[Actor]) -> Answers:
        """Joins as a client does: again with the member id that it was given."""
        for actor in actors:
            await self._join_until_it_waits(actor)
        await self._settle(None)
        waiting = [one for one in self._requests if one.actor in actors and not one.over and not one.reported]
        return [*((f"{one.key} waits",) for one in waiting), *self._collect(None)]

    async def _join_until_it_waits(self, actor: Actor) -> None:
        """Joins, again with the member id if one is given out; ends when the join waits or is answered."""
        for _ in range(ROUNDS):
            if any(one.actor is actor and one.api == "JoinGroup" and not one.over for one in self._requests):
                return
            fresh = not actor.member_id
            sent = await self._send(actor, "JoinGroup", None, [], {})
            version = sent.version
            if fresh and version >= 4 and not actor.sticky.get("instance"):
                await self._world.answered(lambda: sent.over, surely=True)  # noqa: B023
            else:
                await self._world.settle(getattr(sent.message, "group_id", ""), self._arrived)
            if sent.over:
                response = self._decode(sent)
                if response is None or response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                    return
                sent.reported = True

    async def _rebalance(self, actors: list[Actor]) -> Answers:
        """All of them join, unless their join waits already; then they sync, the leader first."""
        began = len(self._requests)
        for actor in actors:
            if not any(
                one.actor is actor and one.api == "JoinGroup" and not one.reported for one in self._requests
            ):
                await self._join_until_it_waits(actor)
        joins = [one for one in self._requests if one.api == "JoinGroup" and not one.reported]
        await self._all_over(joins)
        for one in sorted(joins, key=lambda one: one.actor.place):
            if one.over:
                self._decode(one)
        trouble = self._trouble(joins)
        if trouble:
            return trouble
        for one in joins:
            one.reported = True
        leader_first = sorted(actors, key=lambda one: one.leader != one.member_id)
        syncs = []
        for actor in leader_first:
            syncs.append(await self._send(actor, "SyncGroup", None, [], {}))
            await self._all_over(syncs[-1:])
        trouble = self._trouble([one for one in self._requests[began:] if not one.reported])
        if trouble:
            return trouble
        for one in syncs:
            one.reported = True
        generations = "/".join(sorted({str(actor.generation) for actor in actors}))
        leaders = "/".join(sorted({self._names.show(actor.leader) for actor in actors}))
        return [(f"stable: generation={generations} leader={leaders}",)]

    async def _settle_members(self, actors: list[Actor]) -> Answers:
        """Members of the consumer protocol join, give up and get, until a round brings no news to any."""
        reported: dict[Actor, list[tuple[bytes, int]]] = {}
        for _ in range(SETTLING_ROUNDS):
            news = False
            for actor in actors:
                before = actor.generation, actor.assigned
                named = {"owned": "own"} if actor.generation > 0 and reported.get(actor) != before[1] else {}
                sent = await self._send(actor, "ConsumerGroupHeartbeat", None, [], named)
                await self._all_over([sent])
                reported[actor] = before[1] if before[0] > 0 else []
                response = self._decode(sent) if sent.over else None
                if response is None or response.error_code:
                    return self._collect(sent)
                sent.reported = True
                news = news or before != (actor.generation, actor.assigned)
            if not news:
                break
        return [
            (f"{one.name} epoch={one.generation} has {modern.show_owned(one.assigned, self._names)}",)
            for one in actors
        ]

    async def _all_over(self, requests: list[Sent]) -> None:
        """Wait for the answers of all; not for long if one is known to wait."""
        expected = [] if self._expected is None else self._expected[self._step]
        if any(block[0].endswith(" waits") for block in expected):
            await self._world.settle(getattr(requests[0].message, "group_id", ""), self._arrived)
        else:
            await self._world.answered(lambda: all(one.over for one in requests), surely=True)

    def _trouble(self, requests: list[Sent]) -> list[Block]:
        """The reason why a group is not stable."""
        for one in requests:
            response = self._decode(one) if one.over else None
            if response is None or response.error_code:
                blocks = self._collect(None)
                return [*blocks, *((f"{sent.key} waits",) for sent in requests if not sent.over)]
        return []
