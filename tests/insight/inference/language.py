"""Scenario scripts of inference: what a cluster shows, in text, and below it what is concluded.

See `scenarios/README.md`. `play` runs one scenario, `scenarios` finds them in a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ringleader.insight.inference.engine import Inference
from ringleader.insight.inference.facts import (
    ClassicGroup,
    ClientReport,
    CoordinatorSeen,
    CurrentAssignment,
    Described,
    DescribedMember,
    Fact,
    GroupEpoch,
    ModernMember,
    OffsetCommitted,
    OffsetDeleted,
    Output,
    Partitions,
    SessionTimeouts,
    Source,
    TargetEpoch,
    Topic,
    TopicsSeen,
)
from ringleader.insight.inference.words import seconds
from ringleader.insight.model import Event, GroupState, Kind, Ownership, Rebalance
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.messages import GroupMetadataValue, GroupMetadataValueMemberMetadata

START_MS = 1_700_000_000_000
GROUP = "g"
_MEASURES = {
    "polled": "last_poll_ago_seconds",
    "gap": "poll_interval_max_seconds",
    "limit": "poll_interval_limit_seconds",
    "callback": "callback_max_seconds",
    "heartbeat": "last_heartbeat_ago_seconds",
}
SCENARIOS = Path(__file__).with_name("scenarios")

Hook = Callable[[Inference, int], Inference]
"""Called before each fact with its number; what it gives goes on in the place of the inference it got."""


@dataclass
class Scenario:
    """One of a file."""

    file: Path
    title: str
    steps: list[tuple[str, list[str]]] = field(default_factory=list)
    """Commands, with the story that is expected after each."""


def scenarios(file: Path) -> Iterator[Scenario]:
    """All of a file."""
    found: Scenario | None = None
    for line in file.read_text().splitlines():
        if line.startswith("=== "):
            if found is not None:
                yield found
            found = Scenario(file, line[4:])
        elif found is not None and line.startswith("> "):
            found.steps.append((line[2:], []))
        elif found is not None and found.steps and line.startswith("    "):
            found.steps[-1][1].append(line[4:])
    if found is not None:
        yield found


def play(scenario: Scenario, hook: Hook | None = None) -> list[tuple[str, list[str]]]:
    """The same with the story that comes out."""
    world = World(hook)
    return [(command, world.run(command)) for command, _ in scenario.steps]


@dataclass
class _Client:
    client_id: str
    host: str
    session_ms: int
    poll_ms: int
    topics: tuple[str, ...]
    instance_id: str | None


class World:
    """A cluster with one group, as a script tells it."""

    def __init__(self, hook: Hook | None = None) -> None:
        self.inference = Inference()
        self.outputs: list[Output] = []
        self._hook = hook
        self._rebalances = 0
        self._now_ms = START_MS
        self._position = 0
        self._clients: dict[str, _Client] = {}
        self._cadence: dict[tuple[str, int], tuple[int, int, bool]] = {}
        self._offsets: dict[tuple[str, int], int] = {}
        self._concluded: dict[str, Rebalance] = {}
        self._protocol = "range"
        self._story: list[str] = []

    def run(self, commands: str) -> list[str]:
        """Commands with ; between them; the story they make."""
        for command in commands.split(";"):
            word, *arguments = command.split()
            getattr(self, "_" + word.replace("-", "_"))(arguments)
            self._take()
        story, self._story = self._story, []
        return story

    # ---- commands ----

    def _member(self, arguments: Sequence[str]) -> None:
        names, options = _split(arguments)
        for name in names:
            self._clients[name] = _Client(
                options.get("client", name),
                options.get("host", "/10.0.0.1"),
                _ms(options.get("session", "45s")),
                _ms(options.get("poll", "300s")),
                tuple(options.get("topics", "orders").split("+")),
                options.get("instance"),
            )

    def _protocol_is(self, arguments: Sequence[str]) -> None:
        self._protocol = arguments[0]

    def _generation(self, arguments: Sequence[str]) -> None:
        number, *shares = arguments
        members = []
        for share in shares:
            name, _, places = share.partition(":")
            client = self._clients[name]
            assigned: dict[str, list[int]] = {}
            for topic, partition in _places(places.split(",") if places else []):
                assigned.setdefault(topic, []).append(partition)
            members.append(
                GroupMetadataValueMemberMetadata(
                    member_id=name,
                    group_instance_id=client.instance_id,
                    client_id=client.client_id,
                    client_host=client.host,
                    rebalance_timeout=client.poll_ms,
                    session_timeout=client.session_ms,
                    subscription=Subscription(list(client.topics)).encode(1),
                    assignment=Assignment(assigned).encode(1),
                )
            )
        value = GroupMetadataValue(
            "consumer",
            int(number),
            self._protocol if members else None,
            members[0].member_id if members else None,
            self._now_ms,
            members,
        )
        self._tell(ClassicGroup(self._source(), self._now_ms, GROUP, value))

    def _tombstone(self, _: Sequence[str]) -> None:
        self._tell(ClassicGroup(self._source(), self._now_ms, GROUP, None))

    def _commits(self, arguments: Sequence[str]) -> None:
        places, options = _split(arguments)
        every_ms = _ms(options["every"])
        for place in _places(places):
            self._cadence[place] = (self._now_ms + every_ms, every_ms, "still" not in options)

    def _stop(self, arguments: Sequence[str]) -> None:
        for place in _places(arguments):
            del self._cadence[place]

    def _commit(self, arguments: Sequence[str]) -> None:
        for one in arguments:
            where, _, offset = one.partition("@")
            for place in _places([where]):
                self._offsets[place] = int(offset)
                self._tell(OffsetCommitted(self._source(), self._now_ms, GROUP, *place, int(offset)))

    def _delete(self, arguments: Sequence[str]) -> None:
        for place in _places(arguments):
            self._tell(OffsetDeleted(self._source(), self._now_ms, GROUP, *place))

    def _wait(self, arguments: Sequence[str]) -> None:
        until_ms = self._now_ms + _ms(arguments[0])
        while True:
            due = min(self._cadence.items(), key=lambda one: one[1][0], default=None)
            if due is None or due[1][0] > until_ms:
                break
            place, (at_ms, every_ms, moves) = due
            self._cadence[place] = (at_ms + every_ms, every_ms, moves)
            self._tick(at_ms)
            self._offsets[place] = self._offsets.get(place, 0) + (10 if moves else 0)
            self._tell(OffsetCommitted(self._source(), at_ms, GROUP, *place, self._offsets[place]))
        self._tick(until_ms)

    def _poll(self, arguments: Sequence[str]) -> None:
        state, *names = arguments
        some = [DescribedMember(one, self._clients[one].client_id, self._clients[one].host) for one in names]
        self._tell(Described(self._now_ms, GROUP, state, tuple(some)))

    def _report(self, arguments: Sequence[str]) -> None:
        (name, *flags), options = _split(arguments)
        client = self._clients[options.get("by", name)]
        values = {full: _ms(options[short]) / 1000 for short, full in _MEASURES.items() if short in options}
        left_ago = options.get("left-ago")
        self._tell(
            ClientReport(
                self._now_ms,
                GROUP,
                name,
                values,
                options.get("instance", f"i-{name}"),
                client.client_id,
                client.host,
                "ends" in flags,
                options.get("error", ""),
                options.get("left", ""),
                options.get("reason", "").replace("_", " "),
                None if left_ago is None else self._now_ms - _ms(left_ago),
            )
        )

    def _topics(self, arguments: Sequence[str]) -> None:
        _, options = _split(arguments)
        found = {name: Topic(int(count), _topic_id(name)) for name, count in options.items()}
        self._tell(TopicsSeen(self._now_ms, found))

    def _coordinator(self, arguments: Sequence[str]) -> None:
        epoch, state = arguments
        self._tell(CoordinatorSeen(self._now_ms, 0, 1, int(epoch), state != "away"))

    def _sessions(self, arguments: Sequence[str]) -> None:
        self._tell(SessionTimeouts(self._now_ms, _ms(arguments[0]), _ms(arguments[0])))

    def _joins(self, arguments: Sequence[str], kind: Kind = Kind.CONSUMER) -> None:
        for name in arguments:
            one = self._clients[name]
            self._tell(
                ModernMember(
                    self._source(),
                    self._now_ms,
                    GROUP,
                    kind,
                    name,
                    deleted=False,
                    client_id=one.client_id,
                    host=one.host,
                    instance_id=one.instance_id,
                    topics=one.topics,
                    rebalance_timeout_ms=one.poll_ms,
                )
            )

    def _goes(self, arguments: Sequence[str], kind: Kind = Kind.CONSUMER) -> None:
        for name in arguments:
            self._tell(CurrentAssignment(self._source(), self._now_ms, GROUP, kind, name, None, {}, {}))
            self._tell(ModernMember(self._source(), self._now_ms, GROUP, kind, name, deleted=True))

    def _epoch(self, arguments: Sequence[str], kind: Kind = Kind.CONSUMER) -> None:
        names, options = _split(arguments)
        number = int(names[0]) if names[0] != "none" else None
        self._tell(
            GroupEpoch(self._source(), self._now_ms, GROUP, kind, number, int(options.get("hash", "7")))
        )

    def _target(self, arguments: Sequence[str], kind: Kind = Kind.CONSUMER) -> None:
        self._tell(TargetEpoch(self._source(), self._now_ms, GROUP, kind, int(arguments[0])))

    def _has(self, arguments: Sequence[str], kind: Kind = Kind.CONSUMER) -> None:
        (name, epoch, *places), options = _split(arguments)
        revoking = options.get("revoking", "")
        self._tell(
            CurrentAssignment(
                self._source(),
                self._now_ms,
                GROUP,
                kind,
                name,
                int(epoch),
                _by_id(_places(places)),
                _by_id(_places(revoking.split(",") if revoking else [])),
            )
        )

    def _share(self, arguments: Sequence[str]) -> None:
        word, *rest = arguments
        getattr(self, f"_{word}")(rest, Kind.SHARE)

    def _owners(self, arguments: Sequence[str]) -> None:
        found: dict[tuple[str, int, str, int], Ownership] = {}
        for one in self.outputs:
            if isinstance(one, Ownership):
                found[one.topic, one.partition, one.member_id, one.since_ms] = one
        for place in _places(arguments):
            held = [one for one in found.values() if (one.topic, one.partition) == place]
            spans = [
                f"{one.member_id} "
                f"{self._time(one.since_ms)}-{self._time(one.until_ms) if one.until_ms else ''}"
                for one in held
            ]
            self._story.append(f"{place[0]}/{place[1]}: {', '.join(spans)}")

    def _group(self, _: Sequence[str]) -> None:
        state = [one for one in self.outputs if isinstance(one, GroupState)][-1]
        names = ",".join(one.member_id for one in state.members)
        self._story.append(
            f"{state.state} {state.protocol or '-'} leader {state.leader or '-'} of {names or '-'}"
        )

    def _last(self, _: Sequence[str]) -> None:
        one = list(self._concluded.values())[-1]
        first_ms, unowned_ms = one.first_commit_ms, one.unowned_ms
        first = "none" if first_ms is None else self._time(first_ms)
        self._story.append(f"{one.protocol or '-'}, unowned {unowned_ms} ms, first commit {first}")

    # ---- telling ----

    def _source(self) -> Source:
        self._position += 1
        return Source(0, self._position)

    def _before(self) -> None:
        if self._hook is not None:
            self._take()
            self.inference = self._hook(self.inference, self._rebalances)
        self._rebalances += 1

    def _tell(self, fact: Fact) -> None:
        self._before()
        self.inference.tell(fact)

    def _tick(self, now_ms: int) -> None:
        while self._now_ms // 1000 < now_ms // 1000:
            self._now_ms = min(now_ms, (self._now_ms // 1000 + 1) * 1000)
            self._before()
            self.inference.tick(self._now_ms)
        self._now_ms = now_ms

    def _take(self) -> None:
        for one in self.inference.drain():
            self.outputs.append(one)
            if isinstance(one, Rebalance):
                self._tell_rebalance(one)
            elif isinstance(one, Event):
                self._story.append(f"{self._time(one.at_ms)} {one.kind}: {one.text}")

    def _time(self, at_ms: int) -> str:
        return f"{(at_ms - START_MS) / 1000:g}s"

    def _tell_rebalance(self, one: Rebalance) -> None:
        had = self._concluded.get(one.id)
        self._concluded[one.id] = one
        if had is not None and (had.cause, had.confidence, had.outcome, had.at_ms, had.moves, had.left) == (
            one.cause, one.confidence, one.outcome, one.at_ms, one.moves, one.left,
        ):  # fmt: skip
            return
        again = "" if had is None else "again: "
        ends = "" if one.outcome == "stable" else f" {one.outcome}"
        members = f" {','.join(one.cause_members)}" if one.cause_members else ""
        word = "generation" if one.kind is Kind.CLASSIC else "epoch"
        self._story.append(
            f"{self._time(one.at_ms)} {again}{word} {one.generation}{ends}: {one.cause} "
            f"({one.confidence}){members}"
        )
        if had is None or (had.cause, had.confidence, had.left) != (one.cause, one.confidence, one.left):
            self._story += [f"  {text}" for text in one.evidence]
            self._story += [
                f"  {name} {finding.why} ({finding.confidence})" for name, finding in one.left.items()
            ]
        phases = {"join": one.join_ms, "leader": one.leader_ms, "sync": one.sync_ms}
        durations = [f"{name} {seconds(ms)}" for name, ms in phases.items() if ms is not None]
        if one.join_last_member:
            durations.append(f"last {one.join_last_member}")
        if one.moves:
            idle = "" if one.unowned_ms is None else f", unowned {seconds(one.unowned_ms)}"
            durations.append(f"{len(one.moves)} moved{idle}")
        if durations:
            self._story.append(f"  [{'; '.join(durations)}]")


def _split(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    options = dict(one.split("=", 1) for one in arguments if "=" in one)
    options |= {one: "" for one in arguments if one == "still"}
    return [one for one in arguments if "=" not in one and one != "still"], options


def _places(words: Sequence[str]) -> list[tuple[str, int]]:
    found = []
    for word in words:
        topic, _, numbers = word.partition("/")
        first, _, last = numbers.partition("-")
        found += [(topic, number) for number in range(int(first), int(last or first) + 1)]
    return found


def _topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")[:16]


def _by_id(places: Sequence[tuple[str, int]]) -> Partitions:
    found: dict[bytes, tuple[int, ...]] = {}
    for topic, number in places:
        found[_topic_id(topic)] = (*found.get(_topic_id(topic), ()), number)
    return found


def _ms(text: str) -> int:
    match = re.fullmatch(r"([\d.]+)(ms|s|m|h)", text)
    assert match is not None, text
    return round(float(match[1]) * {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}[match[2]])
