"""Plays scenario scripts against a shard and writes down what it says: see scenarios/README.md for the
language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleader.coordinator.groups.records import READ_BARRIER_RECORD
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import NOT_YET
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.coordinator.machine import Notice
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.groups.say import say, say_record

WALL_START_MS = 1_700_000_000_000
WALL_CLOCK_EVERY_MS = 5_000
_TEXTS = {"$LONG": "x" * 40_000, "$WIDE": "\ufffd" * 11_000, "$MUCH": "ff" * 2_000}
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(eq=False)
class Call:
    """The ticket of one request of one actor."""

    actor: str
    what: str
    api_version: int
    client_id: str | None
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    connection: object = field(default_factory=object)

    def __str__(self) -> str:
        return f"{self.actor}: {self.what}" if self.actor else self.what


@dataclass
class Actor:
    """One scripted client: what it knows from the answers that it got."""

    name: str
    member_id: str = ""
    generation: int = -1
    members: list[str] = field(default_factory=list)
    protocols: str = "range"
    protocol_type: str = "consumer"
    session_ms: int = 10_000
    rebalance_ms: int = 60_000
    version: int = 5
    group: str = "g"
    calls: list[Call] = field(default_factory=list)


def duration_ms(text: str) -> int:
    """`3s`, `250ms`, `-1` (plain numbers are milliseconds)."""
    match = re.fullmatch(r"(-?\d+)(ms|s|m|h|d)?", text)
    if match is None:
        raise ValueError(f"no duration: {text!r}")
    return int(match[1]) * _UNITS[match[2] or "ms"]


def split_protocols(text: str) -> list[JoinGroupRequestProtocol]:
    """`range:t1+t2,roundrobin`: names, each with the topics of its subscription; `0x..` is metadata as it
    is."""
    found = []
    for one in filter(None, text.split(",")):
        name, _, rest = one.partition(":")
        if rest.startswith("0x"):
            metadata = bytes.fromhex(rest[2:])
        else:
            metadata = Subscription(sorted(filter(None, rest.split("+"))) or ["t"]).encode(0)
        found.append(JoinGroupRequestProtocol(name=name, metadata=metadata))
    return found


def _settings(named: dict[str, str]) -> GroupSettings:
    """Also what no operator may set."""
    values: dict[str, Any] = {key: duration_ms(value) for key, value in named.items()}
    return GroupSettings.model_construct(None, **values)


class Script:
    """One scenario's world: a shard, its log, a clock, and actors."""

    def __init__(self, *, confirmed_reads: bool = False) -> None:
        self.confirmed_reads = confirmed_reads
        self.now_ms = 0
        self.wall_shift_ms = 0
        self._wall_clock_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.actors: dict[str, Actor] = {}
        self.in_flight: list[Any] = []
        self.waiting: dict[Call, None] = {}
        self.hold = False
        self.answers: list[str] = []
        self.events: list[Any] = []
        """All events besides answers."""
        self._ids: dict[str, int] = {}
        self.settings = GroupSettings()
        self._start(GroupSettings())

    def _start(self, settings: GroupSettings, load: bool = True) -> None:
        self.settings = settings
        self.shard = Shard(0, settings, self._fresh_id, confirmed_reads=self.confirmed_reads)
        self.shard.replay(self.log)
        if load:
            self.shard.loaded(self.now_ms, WALL_START_MS + self.now_ms + self.wall_shift_ms)

    def _fresh_id(self, prefix: str) -> str:
        self._ids[prefix] = self._ids.get(prefix, 0) + 1
        return f"{prefix}-{self._ids[prefix]}"

    # ---- running ----

    def play(self, line: str) -> list[str]:
        """Run the commands of one line; what was said."""
        self.answers = []
        for command in filter(None, (part.strip() for part in line.split(";"))):
            for name, text in _TEXTS.items():
                command = command.replace(name, text)
            words = command.split()
            run: Callable[..., None] = getattr(self, "do_" + words[0].replace("-", "_"))
            plain = [w for w in words[1:] if "=" not in w]
            named = dict(w.split("=", 1) for w in words[1:] if "=" in w)
            run(*plain, **named)
            self._pump()
        return self.answers

    def _say(self, text: str) -> None:
        self.answers.append(f"{self.now_ms / 1000:g}s  {text}")

    def _pump(self) -> None:
        """The work of the loop around a shard until nothing is left to do at this time."""
        while True:
            while (due := self.shard.next_deadline()) is not None and due <= self.now_ms:
                self.shard.tick(self.now_ms)
            if not self.shard.dirty and (self.hold or not self.in_flight):
                return
            outbox = self.shard.drain()
            self.in_flight += outbox.appends
            for answer in outbox.answers:
                self._heard(answer.ticket, answer.response)
            self.events += outbox.events
            for event in outbox.events:
                if isinstance(event, JournalEntry):
                    self._say(f"journal: {event.render()}")
                elif isinstance(event, Notice):
                    self._say(f"notice: {event.subject} {event.member_id or '-'}: {event.text}")
            if not self.hold:
                self._store()

    def _store(self) -> None:
        for append in self.in_flight:
            self.log += append.records
        if self.in_flight:
            position = self.in_flight[-1].position
            self.in_flight = []
            self.shard.durable(position, self.now_ms)

    def _refuse(self) -> None:
        """The shard's life is over: its runtime refuses everything that waits."""
        self.in_flight = []
        for call in self.waiting:
            self._say(f"{call} refused NOT_COORDINATOR")
            actor = self.actors.get(call.actor)
            if actor is not None and call in actor.calls:
                actor.calls.remove(call)
        self.waiting.clear()

    def _heard(self, call: Any, response: Any) -> None:
        actor = self.actors.get(call.actor)
        self.waiting.pop(call, None)
        if actor is not None and call in actor.calls:
            actor.calls.remove(call)
        if response is None:
            self._say(f"{call} connection closed")
            return
        self._say(f"{call} {say(response, call.api_version)}")
        if actor is None:
            return
        if call.what == "join":
            if response.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED):
                actor.member_id = response.member_id
            if not response.error_code:
                actor.generation = response.generation_id
                actor.members = [member.member_id for member in response.members]

    def _send(self, call: Call, response: Any) -> None:
        if response is not None:
            self._heard(call, response)
            return
        actor = self.actors.get(call.actor)
        self.waiting[call] = None
        if actor is not None:
            actor.calls.append(call)
        before = len(self.answers)
        self._pump()
        answered = any(f"  {call} " in line for line in self.answers[before:])
        if not answered:
            self._say(f"{call} waits")

    def _actor(self, name: str) -> Actor:
        return self.actors.setdefault(name, Actor(name))

    # ---- time, store, life ----

    def do_settings(self, **named: str) -> None:
        """Start again with these settings (Kafka's names in snake case)."""
        self._start(_settings(named))

    def do_tick(self, duration: str) -> None:
        """Let time pass; everything that is due happens at its time."""
        end_ms = self.now_ms + duration_ms(duration)
        while (due := self._next_ms()) <= end_ms:
            self.now_ms = max(due, self.now_ms)
            if self.now_ms >= self._wall_clock_ms + WALL_CLOCK_EVERY_MS:
                self._tell_wall_clock()
            self._pump()
        self.now_ms = end_ms

    def _next_ms(self) -> int:
        due = self.shard.next_deadline()
        wall_ms = self._wall_clock_ms + WALL_CLOCK_EVERY_MS
        return wall_ms if due is None else min(due, wall_ms)

    def _tell_wall_clock(self) -> None:
        self._wall_clock_ms = self.now_ms
        self.shard.set_wall_clock(self.now_ms, WALL_START_MS + self.now_ms + self.wall_shift_ms)

    def do_wall(self, duration: str) -> None:
        """The wall clock jumps; timers must not notice."""
        self.wall_shift_ms += duration_ms(duration)
        self._tell_wall_clock()

    def do_store(self, what: str, count: str = "0") -> None:
        """`hold`: keep records undecided; `ok [COUNT]`: they are durable (the first ones only); `auto`: as
        usual again; `fail`: they are lost, so the shard ends, and is loaded again; `full`, `room`: the store
        has no room, and has room again."""
        if what in ("full", "room"):
            self.shard.set_full(what == "full", self.now_ms)
            return
        self.hold = what != "auto"
        if what == "ok" and int(count):
            done, self.in_flight = self.in_flight[: int(count)], self.in_flight[int(count) :]
            for append in done:
                self.log += append.records
                self.shard.durable(append.position, self.now_ms)
        elif what == "ok" or what == "auto":
            self._store()
        elif what == "fail":
            self._refuse()
            self._start(self.settings)

    def do_restart(self, **named: str) -> None:
        """The process dies; another one loads the log. Records that were not durable are lost."""
        self.in_flight = []
        self.waiting.clear()
        self._start(_settings(named) if named else self.settings)

    def do_loading(self) -> None:
        """The process dies; another one has replayed the log, but has not started to serve."""
        self._start(self.settings, load=False)

    def do_loaded(self) -> None:
        """It starts to serve."""
        self.shard.loaded(self.now_ms, WALL_START_MS + self.now_ms + self.wall_shift_ms)

    def do_unload(self) -> None:
        """The partition moves away."""
        self._refuse()
        self.shard.unload()

    def do_records(self) -> None:
        """Show the log as a compaction leaves it."""
        latest = dict(self.log)
        for key, value in latest.items():
            if value is not None and key != READ_BARRIER_RECORD[0]:
                self._say(f"record: {say_record(key, value)}")

    def do_close(self, name: str) -> None:
        """The actor's connection is gone."""
        for call in self._actor(name).calls:
            self.waiting.pop(call, None)
            self.shard.ticket_closed(call)
        self._actor(name).calls = []

    # ---- requests ----

    def do_join(self, name: str, **named: str) -> None:
        """v, id, protocols, session, rebalance, type, group, reason, instance: kept for the actor but for
        id; as: whom it has logged in as."""
        actor = self._actor(name)
        actor.version = int(named.get("v", actor.version))
        actor.protocols = named.get("protocols", actor.protocols)
        actor.protocol_type = named.get("type", actor.protocol_type)
        actor.group = named.get("group", actor.group)
        actor.session_ms = duration_ms(named.get("session", str(actor.session_ms)))
        actor.rebalance_ms = duration_ms(named.get("rebalance", str(actor.rebalance_ms)))
        call = Call(name, "join", actor.version, named.get("client", name))
        call.principal = f"User:{named.get('as', 'ANONYMOUS')}"
        request = JoinGroupRequest(
            group_id=actor.group,
            session_timeout_ms=actor.session_ms,
            rebalance_timeout_ms=actor.rebalance_ms,
            member_id=named.get("id", actor.member_id),
            group_instance_id=named.get("instance"),
            protocol_type=actor.protocol_type,
            protocols=split_protocols(actor.protocols),
            reason=named.get("reason"),
        )
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_sync(self, name: str, **named: str) -> None:
        """A leader assigns `<member id>@<generation>` to everybody, or what `assign=a-1:x,b-1:y` says."""
        actor = self._actor(name)
        generation = int(named.get("gen", actor.generation))
        given = named.get("assign", ",".join(f"{m}:{m}@{generation}" for m in actor.members))
        pairs = [one.split(":", 1) for one in filter(None, given.split(","))]
        call = Call(name, "sync", int(named.get("v", 3)), name)
        request = SyncGroupRequest(
            group_id=named.get("group", actor.group),
            generation_id=generation,
            member_id=named.get("id", actor.member_id),
            group_instance_id=named.get("instance"),
            protocol_type=named.get("type"),
            protocol_name=named.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=what.encode())
                for member_id, what in pairs
            ],
        )
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_heartbeat(self, name: str, **named: str) -> None:
        """gen, id, group, instance."""
        actor = self._actor(name)
        request = HeartbeatRequest(
            group_id=named.get("group", actor.group),
            generation_id=int(named.get("gen", actor.generation)),
            member_id=named.get("id", actor.member_id),
            group_instance_id=named.get("instance"),
        )
        call = Call(name, "heartbeat", 3, name)
        member = request.generation_id, request.member_id, request.group_instance_id
        code = self.shard.heartbeat(request.group_id, *member, self.now_ms)
        waits = code == NOT_YET
        response = self.shard.handle(request, call, self.now_ms) if waits else HeartbeatResponse(0, code)
        self._send(call, response)

    def do_leave(self, names: str, **named: str) -> None:
        """One actor, or several in one batch (`a,b`; v3 and up); id names another member id, `-` is none."""
        actors = [self._actor(name) for name in names.split(",")]
        version = int(named.get("v", 3))
        group = named.get("group", actors[0].group)
        ids = [named["id"].strip("-")] if "id" in named else [actor.member_id for actor in actors]
        call = Call(names, "leave", version, actors[0].name)
        request = LeaveGroupRequest(
            group_id=group,
            member_id=ids[0] if version < 3 else "",
            members=[
                LeaveGroupRequestMemberIdentity(
                    member_id=one, group_instance_id=named.get("instance"), reason=named.get("reason")
                )
                for one in ids
            ],
        )
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_commit(self, name: str, *offsets: str, **named: str) -> None:
        """`commit a t/0@42 t/1@7`; gen=-1 id= for an operator's commit; meta, retention, instance, v."""
        actor = self._actor(name)
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for one in offsets:
            place, _, offset = one.partition("@")
            topic, _, partition = place.partition("/")
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=int(partition),
                    committed_offset=int(offset),
                    committed_metadata=named.get("meta", ""),
                )
            )
        request = OffsetCommitRequest(
            group_id=named.get("group", actor.group),
            generation_id_or_member_epoch=int(named.get("gen", actor.generation)),
            member_id=named.get("id", actor.member_id),
            group_instance_id=named.get("instance"),
            retention_time_ms=duration_ms(named.get("retention", "-1")),
            topics=[OffsetCommitRequestTopic(name=t, partitions=p) for t, p in topics.items()],
        )
        call = Call(name, "commit", int(named.get("v", 8)), name)
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_txn_commit(self, name: str, *offsets: str, **named: str) -> None:
        """`txn-commit p t/0@42 pid=7`; gen, id, instance, group, meta: the member it commits for, if any."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for one in offsets:
            place, _, offset = one.partition("@")
            topic, _, partition = place.partition("/")
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=int(partition),
                    committed_offset=int(offset),
                    committed_metadata=named.get("meta", ""),
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=named.get("group", "g"),
            producer_id=int(named.get("pid", "7")),
            generation_id_or_member_epoch=int(named.get("gen", "-1")),
            member_id=named.get("id", ""),
            group_instance_id=named.get("instance"),
            topics=[TxnOffsetCommitRequestTopic(name=t, partitions=p) for t, p in topics.items()],
        )
        call = Call(name, "txn-commit", 3, name)
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_end(self, how: str, pid: str = "7") -> None:
        """`end commit`, `end abort`: the end of a producer's transaction."""
        call = Call("", f"end {how}", 0, None)
        self._send(call, self.shard.end_transaction(int(pid), how == "commit", call, self.now_ms))

    def do_fetch(self, *places: str, **named: str) -> None:
        """`fetch t/0 t/1`, or `fetch` for all; stable=1 waits for the commits on their way."""
        wanted: dict[str, list[int]] = {}
        for place in places:
            topic, _, partition = place.partition("/")
            wanted.setdefault(topic, []).append(int(partition))
        call = Call("-", "fetch", 8, None)
        stable = bool(named.get("stable"))
        pairs = list(wanted.items()) if places else None
        group = named.get("group", "g")
        self._send(call, self.shard.fetch_offsets(group, pairs, stable, call))

    def do_offset_delete(self, *places: str, **named: str) -> None:
        """`offset-delete t/0 t/1`."""
        topics: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for place in places:
            topic, _, partition = place.partition("/")
            topics.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=int(partition)))
        request = OffsetDeleteRequest(
            group_id=named.get("group", "g"),
            topics=[OffsetDeleteRequestTopic(name=t, partitions=p) for t, p in topics.items()],
        )
        call = Call("-", "offset-delete", 0, None)
        self._send(call, self.shard.handle(request, call, self.now_ms))

    def do_topic_deleted(self, topic: str) -> None:
        """The topic is gone."""
        call = Call("", f"topic {topic} deleted", 0, None)
        self._send(call, self.shard.topic_deleted(topic, call, self.now_ms))

    def do_describe(self, group: str = "g", v: str = "5") -> None:
        """DescribeGroups for one group."""
        call = Call("", "describe", int(v), None)
        self._send(call, self.shard.describe(group, int(v), call))

    def do_list(self, states: str = "", types: str = "") -> None:
        """ListGroups; `states=Stable,Empty`."""
        wanted = [one for one in states.split(",") if one]
        try:
            call = Call("", "list", 4, None)
            found = self.shard.list_groups(wanted, [one for one in types.split(",") if one], call)
        except KafkaError as error:
            self._say(f"list {error_name(error.code)}")
            return
        self._send(call, found)

    def do_delete(self, group: str = "g") -> None:
        """DeleteGroups for one group."""
        call = Call("-", "delete", 2, None)
        self._send(call, self.shard.delete_group(group, call, self.now_ms))

    def do_state(self, group_id: str = "g") -> None:
        """A look inside: state, generation, members in join order."""
        group = self.shard._groups.get(group_id)
        if group is None:
            self._say("state none")
            return
        members = " ".join(
            m.member_id + ("*" if m.member_id == group.leader else "") for m in group.members.values()
        )
        pending = f" pending [{' '.join(group.given_out)}]" if group.given_out else ""
        self._say(f"state {group.state.value} generation {group.generation} members [{members}]{pending}")


# ---- files ----


Step = tuple[list[str], str, list[str]]
"""Comment lines, the command line, the lines that are expected."""


def parse(text: str) -> tuple[list[str], list[tuple[str, list[Step]]]]:
    """(head lines, [(title, steps)])."""
    head: list[str] = []
    found: list[tuple[str, list[Step]]] = []
    comments: list[str] = []
    for line in text.splitlines():
        if line.startswith("=== "):
            found.append((line[4:], []))
            comments = []
        elif not found:
            head.append(line)
        elif line.startswith("#"):
            comments.append(line)
        elif line.startswith("> "):
            found[-1][1].append((comments, line[2:], []))
            comments = []
        elif line.strip():
            found[-1][1][-1][2].append(line.strip())
    return head, found


def play(steps: list[Step], *, confirmed_reads: bool = False) -> Iterator[Step]:
    """The steps with what is said now."""
    script = Script(confirmed_reads=confirmed_reads)
    for comments, command, _ in steps:
        yield comments, command, script.play(command)


def rewrite(path: Path) -> None:
    """Write what the machine says now into the file. The difference is for a human to read."""
    head, scenarios = parse(path.read_text())
    lines = list(head)
    for title, steps in scenarios:
        lines.append(f"=== {title}")
        for comments, command, answers in play(steps):
            lines += [*comments, f"> {command}", *("    " + one for one in answers)]
        lines.append("")
    path.write_text("\n".join(lines).rstrip() + "\n")
