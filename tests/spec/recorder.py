"""Records a simulated group of the consumer protocol as a trace: one line for each step of docs/spec.

The world is the one of `tests.simulation.consumer`, as narrow as the specification is: all members subscribe
to the same topics; those of the classic protocol are dynamic; nobody begins an empty group anew in the other
protocol; where the group migrates, topics only come and grow, for classic members know them by name; the
coordinator computes the target at once, by an assignor that balances. They commit, too (`commits`). The
coordinator's steps are read from what it writes to its log, and nowhere else, but for the members of a
classic group, which the log does not have before they are synced.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

from ringleader.coordinator.consumer_groups.member import LEFT_EPOCH
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.records import decode_offset_value, reserved_key
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import OffsetCommitResponse, OffsetFetchResponseGroup
from tests.simulation.consumer.classic import ClassicMember
from tests.simulation.consumer.member import ModelMember
from tests.simulation.consumer.world import NAMES, AnyMember, Ticket, World
from tests.spec.commits import Offsets
from tests.spec.exchanges import heard, heard_by_classic, request_by_classic, request_line
from tests.spec.logged import Logged
from tests.spec.traces import Line, Trace

FAULTY_MS = 100_000
CROWD = 3
"""Members that come at once."""
CLASSIC_SHARE, CLASSIC_SHARE_OF_MIGRANTS = 0.5, 0.7
"""At most so many of those that come are classic ones; and where the group migrates."""
MIGRANTS = 0.6
"""Of the worlds, so many have a group that is downgraded, and upgraded."""
OFFSETS_SHARE = 0.3
"""How often a member fetches offsets or commits before one sends a heartbeat."""
SESSION_MS = 15_000
PARTITIONS_MAX = 14
"""When there have been more, topics stay as they are: TLC carries all of them."""
STALLS_SHARE, STALL_MS = 0.04, 40_000
"""How often one of them then stops to send heartbeats, and for how long: it is removed meanwhile."""
CLASSIC = "c"
"""The names of classic members begin with it."""


class RecordedWorld(World):
    """One run. `trace_of` drives it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lines: list[Line] = []
        self._lives: dict[str, int] = {}
        """By name, the number of its present process."""
        self.life_of: dict[str, int] = {}
        """By member id."""
        self.names_of: dict[str, str] = {}
        self._log = Logged(self)
        self._present: set[str] = set()
        """The members of the classic group, by name."""
        self._tells: deque[bool] = deque()
        """Of each append on its way, whether it changes what a line has of the log: the bytes by which a
        classic member joins again may be all that is new."""
        self._reported: Line = {}
        self._former: dict[ClassicMember, str] = {}
        """The name of a classic one that was told that it has no place, and has no id since then."""
        self._asking: AnyMember | None = None
        self._owned: dict[str, Any] = {}
        self._offsets = Offsets(self, self._line)
        self._stalled: dict[Any, int] = {}
        """Until when a member sends no heartbeats. It commits as if nothing was."""
        self.faulty_ms = FAULTY_MS
        self.migrates = self.rng.random() < MIGRANTS
        self.classic_share, self._assignors = min(self.classic_share, CLASSIC_SHARE), (None,)
        if self.migrates:
            self.classic_share = CLASSIC_SHARE_OF_MIGRANTS
        self.expressions.share = 0.0
        self.settings = self.settings.model_copy(
            update={
                "assigned_at_once": 20_000,
                "group_consumer_session_timeout_ms": SESSION_MS,
                "group_consumer_migration_policy": "bidirectional" if self.migrates else "upgrade",
                "generation_block": 0,  # each number has its record
            }
        )
        self.shard = self._load()
        self.partitions = set[str]()
        """All that there ever were."""
        self._prefixes: dict[bytes, str] = {}
        """By topic id."""
        self.seen_by: dict[int, set[str]] = {0: set()}
        """The partitions that a group has seen whose record has this hash of the topics."""
        self._at_first = self._there = self._look()
        for _ in range(CROWD):
            self._join()

    # ---- what does not happen ----

    def _some_topics(self) -> frozenset[str]:
        return frozenset(NAMES)

    def _add(self, classic: bool, instance_id: str | None, topics: frozenset[str]) -> None:
        super()._add(classic and instance_id is None, instance_id, topics)
        if isinstance(member := self.members[-1], ClassicMember):
            member.session_timeout_ms = SESSION_MS

    def _switch(self) -> None:
        if not self.migrates or self.rng.random() < 0.5:
            super()._switch()
            return
        for one in self.members:  # only classic ones stay
            if isinstance(one, ModelMember) and not one.departed and not one.waits and one.epoch > 0:
                self._ask(one, one.leave(LEFT_EPOCH))

    def _make(self, name: str) -> None:
        self.topics.put(Topic(name, self.rng.randbytes(16), self.rng.randint(1, 3)))

    # ---- the topics ----

    def _topic(self) -> None:
        if len(self.partitions) > PARTITIONS_MAX:
            return
        if self.migrates:
            self._grow()
        else:
            super()._topic()
        if (there := self._look()) != self._there:
            self._there = there
            self._line("topics", there=there)

    def _grow(self) -> None:
        known = self.topics.named(name := self.rng.choice(NAMES))
        if known is None:
            self._make(name)
        elif known.partitions < 9:
            self.topics.put(Topic(name, known.topic_id, known.partitions + self.rng.randint(1, 3)))

    def _look(self) -> set[str]:
        """The partitions that exist, by their names here."""
        there = set[str]()
        for topic in self.topics.all():
            former = sum(prefix[0] == topic.name for prefix in self._prefixes.values())
            self._prefixes.setdefault(topic.topic_id, f"{topic.name}{former}_")
            there |= {*self.place_names(topic.topic_id, range(topic.partitions))}
        self.seen_by[self.topics.metadata_hash(frozenset(NAMES))] = there
        self.partitions |= there
        return there

    # ---- what is seen ----

    def note(self, what: str, *of: Any) -> None:
        """A step."""
        if what == "sent":
            self._sent(*of)
        elif what == "wrote":
            self._wrote(*of)
        elif what == "flushed":
            if self._tells.popleft():
                self._line("flush")
        elif what == "heard":
            self._heard(*of)
        elif what == "failed" and of[0].member_id:
            self._handled()
            self._line("lose", of[0])
        elif what == "crashed" and of[0].member_id:
            self._crashed(of[0])
        elif what == "loaded":
            self._loaded()

    def _ask(self, member: AnyMember, request: Any) -> None:
        self._asking = member if member.member_id else None
        super()._ask(member, request)
        self._drain()
        if self._asking is not None and member.departed:  # refused: it goes without a word
            self._crashed(member)
        self._handled()
        self._asking = None

    def _advance(self) -> None:
        """One deadline after the other, so that each step is seen."""
        while (due_ms := self.shard.next_deadline()) is not None and due_ms <= self.now_ms:
            self.shard.tick(due_ms)
            self._drain()
        super()._advance()

    def _drain(self) -> None:
        self._look_at_members()
        super()._drain()

    def _beat(self) -> None:
        classic = self._log.is_classic
        present = [one for one in self.members if not one.departed]
        others = all(isinstance(one, ClassicMember) is not classic for one in present)
        if self.calm and self._is_empty() and others and not (classic and not present):
            self._ids += 1  # nobody else may begin the group
            self._add(classic, None, self._some_topics())
        if not self.calm and self.rng.random() < OFFSETS_SHARE:
            able = [one for one in self.members if not one.departed and one.epoch > 0]
            for one in able:
                self._revoked(one)
            self._offsets.step(able)
            if able and self.rng.random() < STALLS_SHARE:
                self._stalled[self.rng.choice(able)] = self.now_ms + STALL_MS
        super()._beat()

    def _is_empty(self) -> bool:
        group = self.shard._groups.get(self.group_id)
        return group is None or not (group.members if group.consumer is None else group.consumer.members)

    def _idle(self) -> list[AnyMember]:
        is_empty, classic = self._is_empty(), self._log.is_classic
        return [
            one
            for one in super()._idle()
            if (self.calm or self._stalled.get(one, 0) <= self.now_ms)
            and not (is_empty and isinstance(one, ClassicMember) is not classic and _joins(one))
        ]

    def _answered(self, ticket: Ticket, response: Any) -> None:
        if not isinstance(response, OffsetCommitResponse | OffsetFetchResponseGroup):
            if self.migrates:  # it has heard of a topic before it hears that it is to read it
                ticket.ids = {one.name: one.topic_id for one in self.topics.all()}
            super()._answered(ticket, response)
        else:
            self._offsets.answered(ticket.member, response)

    def drain(self) -> None:
        """Hand over what the shard has to say."""
        self._drain()

    def _sent(self, member: AnyMember, request: Any) -> None:
        if member.departed or not member.member_id:  # it leaves, or asks for an id: see `_ask`
            return
        name = self._name(member)
        life = self.life_of[member.member_id] = self._lives.setdefault(name, 0)
        self._revoked(member)
        if isinstance(member, ClassicMember):
            self._former[member] = name
            ask = request_by_classic(member, life, self._places(member.owned) & self._there)
        else:
            ask = request_line(member, request, life, self._places)
        self._line("send", member, id=member.member_id, ask=ask)

    def _revoked(self, member: AnyMember) -> None:
        """If it gave partitions up since it was last looked at. A classic one does so in its own steps."""
        had = self._owned.get(self._name(member), frozenset())
        if isinstance(member, ModelMember) and member.owned != had and member.epoch > 0:
            self._line("revoke", member, owned=self._places(member.owned))
        self._owns(member)

    def _owns(self, member: AnyMember) -> None:
        self._owned[self._name(member)] = member.owned
        self._offsets.owns(member, self._places(member.owned))

    def _wrote(self, rows: Any) -> None:
        if self._offsets.committing is not None:
            [(_, value)] = rows
            self._tells.append(True)
            self._offsets.handled(ok=True, to=decode_offset_value(value).offset)
            return
        before, was_classic = self._log.ids, self._log.is_classic
        away = self._log.away
        self._log.apply(rows)
        state = self._log.state()
        now = {one: state[one] for one in state if one != "rows"}
        self._tells.append(bool(state["rows"]) or now != self._reported)
        self._reported = now
        if (
            was_classic
            and self._log.is_classic
            and (len(state["in"]) == 0 or rows[0][0] == reserved_key(self.group_id))
        ):
            self._begun(state)
            return
        self._present = state["in"] if self._log.is_classic else set()
        asking, self._asking = self._asking, None
        removed = set() if was_classic else {self.names_of[one] for one in before - self._log.ids}
        if asking is None or not asking.departed:
            name = min(removed - {self._name(one) for one in (asking,) if one}, default="")
            if asking is not None and not name:
                self._line("handle", asking, **state)
            else:
                self._line("expire", name, **state)
        else:
            self._line("goaway" if self._log.away - away else "leave", asking, **state)
            self._departed(self._name(asking))

    def _handled(self) -> None:
        """An answer without a record, perhaps to another member, or none yet."""
        asking = self._asking
        if asking is not None and not asking.departed:
            self._asking = None
            self._line("handle", asking)

    def _begun(self, state: Line) -> None:
        """A generation of the classic group, or its end."""
        self._handled()
        group = self.shard._groups[self.group_id]
        members = {self.names_of[one] for one in group.members}
        lead = {self.names_of[group.leader]} if group.leader else set()
        name = min(members | set(self.names_of.values()))
        self._line("generation", name, gen=group.generation, lead=lead, members=members, **state)

    def _look_at_members(self) -> None:
        """Those that the classic group has lost: its log does not say so."""
        group = self.shard._groups.get(self.group_id)
        if not self._log.is_classic or group is None or group.consumer is not None:
            return
        now = {self.names_of[one] for one in group.members}
        for name in sorted(self._present - now):
            asking = self._asking
            if asking is not None and asking.departed and self._name(asking) == name:
                self._asking = None
                self._line("leave", name)
                self._departed(name)
            else:
                self._line("expire", name)
        self._present = now

    def _heard(self, member: AnyMember, response: Any) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        self._handled()
        self._owns(member)
        if isinstance(member, ClassicMember):
            seen = heard_by_classic(member, response, self._places)
        else:
            seen = heard(member, response, self._places)
        self._line("receive", member, **seen)

    def _crashed(self, member: AnyMember) -> None:
        self._asking = None
        self._departed(self._name(member))
        self._offsets.crashed(member)
        self._line("crash", member)

    def _departed(self, name: str) -> None:
        """Another process is to come in its place."""
        self._lives[name] = self._lives.get(name, 0) + 1
        self._owned[name] = frozenset()

    def _loaded(self) -> None:
        self._log = Logged(self)
        self._tells.clear()
        self._offsets.died()
        self._log.apply(self.log)
        state = self._log.state()
        for name in set(self.names_of.values()) - state["rows"].keys():
            state["rows"][name] = self._log.row(None, 0)
        self._present = state["in"] if self._log.is_classic else set()
        self._reported = {one: state[one] for one in state if one != "rows"}
        self._line("failover", off=self.committed(), **state)

    def committed(self) -> dict[str, int]:
        """The offsets that the coordinator has by now."""
        group = self.shard._groups.get(self.group_id)
        return {
            place: offset.offset
            for some in (group.offsets if group is not None else {}).values()
            for number, value in some.items()
            for offset in (decode_offset_value(value),)
            for place in self.place_names(offset.topic_id, (number,))
        }

    # ---- lines ----

    def _line(self, kind: str, member: AnyMember | str | None = None, **seen: Any) -> None:
        line: Line = {"kind": kind}
        if member is not None:
            line["m"] = member if isinstance(member, str) else self._name(member)
        self.lines.append({**line, **seen})

    def _name(self, member: AnyMember) -> str:
        """A static member keeps its place, so its name, from process to process. Others get names again that
        nobody has any more: TLC has less to carry."""
        if isinstance(member, ClassicMember) and not member.member_id:
            return self._former[member]
        name = self.names_of.get(member.member_id) or member.instance_id
        if name is None:
            known = {one.member_id for one in self.members if not one.departed} | self._log.ids
            if (group := self.shard._groups.get(self.group_id)) is not None:
                known |= group.members.keys()
            taken = {place for one, place in self.names_of.items() if one in known or self._in_flight}
            letter = CLASSIC if isinstance(member, ClassicMember) else "d"
            name = next(one for number in count() if (one := f"{letter}{number}") not in taken)
        self.names_of[member.member_id] = name
        return name

    def _places(self, some: Any) -> set[str]:
        return {name for topic_id, number in some for name in self.place_names(topic_id, (number,))}

    def place_names(self, topic_id: bytes, numbers: Any) -> list[str]:
        """Of partitions, as lines have them."""
        return [f"{self._prefixes[topic_id]}{one}" for one in numbers]

    def topic_and_number(self, place: str) -> tuple[Topic, int] | None:
        """Of a partition by its name here; None: there is no such partition any more."""
        topic = self.topics.named(place[0])
        prefix, number = place.split("_")
        is_there = topic is not None and self._prefixes[topic.topic_id] == f"{prefix}_"
        return (topic, int(number)) if topic is not None and is_there else None

    def trace_of(self) -> Trace:
        """The run, recorded."""
        self.run()
        names = set(self.names_of.values())
        again = f"python -m tests.spec.traces --seed {self.seed}"
        classics = {one for one in names if one.startswith(CLASSIC)}
        whole = f"seed {self.seed}", names, self.partitions, self.lines, again
        return Trace(*whole, at_first=self._at_first, classics=classics, changes=self.migrates)


def _joins(member: AnyMember) -> bool:
    return member.does == "join" if isinstance(member, ClassicMember) else member.epoch == 0


def record(seed: int) -> Trace:
    """The trace of one seed. Raises `ViolationError`."""
    return RecordedWorld(seed).trace_of()
