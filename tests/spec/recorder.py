"""Records a simulated group of the consumer protocol as a trace: one line for each step of docs/spec.

The world is the one of `tests.simulation.consumer`, as narrow as the specification is: all members subscribe
to the same topics; those of the classic protocol are dynamic, and join while the group has members; the
migration policy keeps the group one of the consumer protocol; the coordinator computes the target at once, by
an assignor that balances. They commit, too (`commits`). The coordinator's steps are read from what it writes
to its log, and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, ConsumerMember, Owned, Target
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.records import decode_offset_value
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitResponse,
    OffsetFetchResponseGroup,
    SyncGroupResponse,
)
from tests.simulation.consumer.classic import LOST, ClassicMember
from tests.simulation.consumer.member import ModelMember
from tests.simulation.consumer.world import NAMES, AnyMember, Ticket, World
from tests.spec.commits import Offsets
from tests.spec.traces import Line, Trace

FAULTY_MS = 100_000
CROWD = 3
"""Members that come at once."""
CLASSIC_SHARE = 0.5
"""At most so many of those that come are classic ones."""
OFFSETS_SHARE = 0.3
"""How often a member fetches offsets or commits before one sends a heartbeat."""
SESSION_MS = 15_000
PARTITIONS_MAX = 14
"""When there have been more, topics stay as they are: TLC carries all of them."""
STALLS_SHARE, STALL_MS = 0.04, 40_000
"""How often one of them then stops to send heartbeats, and for how long: it is removed meanwhile."""
STATES = ("stable", "unrevoked", "unreleased")
CLASSIC = "c"
"""The names of classic members begin with it."""
EVER = 1
"""Stands for "in whatever epoch": see GoAway in docs/spec."""


class RecordedWorld(World):
    """One run. `trace_of` drives it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.lines: list[Line] = []
        self._lives: dict[str, int] = {}
        """By name, the number of its present process."""
        self._life_of: dict[str, int] = {}
        """By member id."""
        self._names_of: dict[str, str] = {}
        self._log = ConsumerGroup(self.group_id)
        """The group as all that was written says it."""
        self._rows: dict[str, Any] = {}
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
        self.classic_share, self._assignors = min(self.classic_share, CLASSIC_SHARE), (None,)
        self.expressions.share = 0.0
        self.settings = self.settings.model_copy(
            update={
                "assigned_at_once": 20_000,
                "group_consumer_session_timeout_ms": SESSION_MS,
                "group_consumer_migration_policy": "upgrade",
            }
        )
        self.shard = self._load()
        self.partitions = set[str]()
        """All that there ever were."""
        self._prefixes: dict[bytes, str] = {}
        """By topic id."""
        self._seen_by: dict[int, set[str]] = {0: set()}
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

    def _make(self, name: str) -> None:
        self.topics.put(Topic(name, self.rng.randbytes(16), self.rng.randint(1, 3)))

    # ---- the topics ----

    def _topic(self) -> None:
        if len(self.partitions) > PARTITIONS_MAX:
            return
        super()._topic()
        if (there := self._look()) != self._there:
            self._there = there
            self._line("topics", there=there)

    def _look(self) -> set[str]:
        """The partitions that exist, by their names here."""
        there = set[str]()
        for topic in self.topics.all():
            former = sum(prefix[0] == topic.name for prefix in self._prefixes.values())
            self._prefixes.setdefault(topic.topic_id, f"{topic.name}{former}_")
            there |= {*self._place_names(topic.topic_id, range(topic.partitions))}
        self._seen_by[self.topics.metadata_hash(frozenset(NAMES))] = there
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
            self._handled(of[0])
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
        self._handled(member)
        self._asking = None

    def _beat(self) -> None:
        if self.calm and all(one.departed or isinstance(one, ClassicMember) for one in self.members):
            self._ids += 1
            self._add(False, None, self._some_topics())
        if not self.calm and self.rng.random() < OFFSETS_SHARE:
            able = [one for one in self.members if not one.departed and one.epoch > 0]
            for one in able:
                self._revoked(one)
            self._offsets.step(able)
            if able and self.rng.random() < STALLS_SHARE:
                self._stalled[self.rng.choice(able)] = self.now_ms + STALL_MS
        super()._beat()

    def _idle(self) -> list[AnyMember]:
        group = self._group()
        is_empty = group is None or not group.members
        return [
            one
            for one in super()._idle()
            if (self.calm or self._stalled.get(one, 0) <= self.now_ms)
            and not (is_empty and isinstance(one, ClassicMember) and one.does == "join")
        ]

    def _answered(self, ticket: Ticket, response: Any) -> None:
        if not isinstance(response, OffsetCommitResponse | OffsetFetchResponseGroup):
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
        life = self._life_of[member.member_id] = self._lives.setdefault(name, 0)
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
        before = self._log.members.keys() | set()
        away = {one for one, member in self._log.members.items() if member.is_away}
        self._apply(rows)
        state = self._state()
        now = {one: state[one] for one in state if one != "rows"}
        self._tells.append(bool(state["rows"]) or now != self._reported)
        self._reported = now
        asking, self._asking = self._asking, None
        removed = {self._names_of[one] for one in before - self._log.members.keys()}
        if asking is None or not asking.departed:
            name = min(removed - {self._name(one) for one in (asking,) if one}, default="")
            if asking is not None and not name:
                self._line("handle", asking, **state)
            else:
                self._line("expire", name, **state)
        else:
            is_away = {one for one, member in self._log.members.items() if member.is_away} - away
            self._line("goaway" if is_away else "leave", asking, **state)
            self._owned[self._name(asking)] = frozenset()

    def _handled(self, member: AnyMember) -> None:
        """An answer without a record."""
        if self._asking is member:
            self._asking = None
            self._line("handle", member)

    def _heard(self, member: AnyMember, response: Any) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return
        self._handled(member)
        self._owns(member)
        if isinstance(member, ClassicMember):
            seen = heard_by_classic(member, response, self._places)
        else:
            seen = heard(member, response, self._places)
        self._line("receive", member, **seen)

    def _crashed(self, member: AnyMember) -> None:
        self._asking = None
        name = self._name(member)
        self._lives[name] = self._lives.get(name, 0) + 1
        self._owned[name] = frozenset()
        self._offsets.crashed(member)
        self._line("crash", member)

    def _loaded(self) -> None:
        self._log, self._rows = ConsumerGroup(self.group_id), {}
        self._tells.clear()
        self._offsets.died()
        self._apply(self.log)
        state = self._state()
        for name in set(self._names_of.values()) - state["rows"].keys():
            state["rows"][name] = _row(None, 0, self._place_names)
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
            for place in self._place_names(offset.topic_id, (number,))
        }

    # ---- lines ----

    def _apply(self, rows: Any) -> None:
        for key, value in rows:
            named = records.decode_key(key)
            if named is not None:
                records.apply(self._log, named[0], named[2], value)

    def _state(self) -> Line:
        """The epochs, who is there, and the members that changed since the last call."""
        members = self._log.members
        rows = {
            self._names_of[one]: _row(member, self._life_of[one], self._place_names)
            for one, member in members.items()
        }
        removed = {one: _row(None, 0, self._place_names) for one in self._rows.keys() - rows.keys()}
        changed = {one: row for one, row in {**rows, **removed}.items() if row != self._rows.get(one)}
        self._rows = rows
        return {
            "epoch": self._log.epoch,
            "aim": self._log.assignment_epoch,
            "seen": self._seen_by[self._log.metadata_hash],
            "in": set(rows),
            "away": {self._names_of[one] for one, member in members.items() if member.is_away},
            "rows": changed,
        }

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
        name = self._names_of.get(member.member_id) or member.instance_id
        if name is None:
            known = {one.member_id for one in self.members if not one.departed} | self._log.members.keys()
            taken = {place for one, place in self._names_of.items() if one in known or self._in_flight}
            letter = CLASSIC if isinstance(member, ClassicMember) else "d"
            name = next(one for number in count() if (one := f"{letter}{number}") not in taken)
        self._names_of[member.member_id] = name
        return name

    def _places(self, some: Any) -> set[str]:
        return {name for topic_id, number in some for name in self._place_names(topic_id, (number,))}

    def _place_names(self, topic_id: bytes, numbers: Any) -> list[str]:
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
        names = set(self._names_of.values())
        again = f"python -m tests.spec.traces --seed {self.seed}"
        classics = {one for one in names if one.startswith(CLASSIC)}
        whole = f"seed {self.seed}", names, self.partitions, self.lines, again
        return Trace(*whole, at_first=self._at_first, classics=classics)


Places = Callable[[Any], set[str]]
"""The names of some partitions, each a topic id and a number."""


def request_line(
    member: ModelMember, request: ConsumerGroupHeartbeatRequest, life: int, places: Places
) -> Line:
    """A request as a trace has it. `life`: of which process it is."""
    return {
        "epoch": request.member_epoch,
        "owned": places(member.owned),
        "says": request.topic_partitions is not None,
        "full": request.rebalance_timeout_ms != -1,
        "life": life,
    }


def heard(member: ModelMember, response: ConsumerGroupHeartbeatResponse, places: Places) -> Line:
    """An answer, and the knowledge of a member that has acted on it."""
    answer: Line = {"ok": not response.error_code}
    if answer["ok"]:
        given = () if response.assignment is None else response.assignment.topic_partitions
        answer["epoch"], answer["news"] = response.member_epoch, response.assignment is not None
        answer["again"] = False
        answer["all"] = places((one.topic_id, number) for one in given for number in one.partitions)
    client = {
        "epoch": member.epoch,
        "owned": places(member.owned),
        "wanted": places(member.wanted or ()),
        "full": bool(response.error_code),
    }
    return {"answer": answer, "client": client}


def request_by_classic(member: ClassicMember, life: int, owned: set[str]) -> Line:
    """Likewise, of a classic member. `owned`: what it reports, when it joins."""
    epoch = max(0, member.epoch)
    return {"does": member.does, "epoch": epoch, "owned": owned, "says": True, "full": False, "life": life}


def heard_by_classic(member: ClassicMember, response: Any, places: Places) -> Line:
    """Likewise."""
    epoch, owned, code = max(0, member.epoch), places(member.owned), response.error_code
    answer: Line = {"ok": code not in LOST}
    if answer["ok"]:
        assert code in (0, ErrorCode.REBALANCE_IN_PROGRESS), response
        synced = isinstance(response, SyncGroupResponse) and not code
        answer |= {"epoch": epoch, "again": bool(code), "news": synced, "all": owned if synced else set()}
    return {"answer": answer, "client": {"epoch": epoch, "owned": owned, "does": member.does}}


def _row(member: ConsumerMember | None, life: int, names: Any) -> Line:
    """A member in the log; None: it is not there."""

    def epochs(some: Owned) -> dict[str, int]:
        return {
            name: epoch or EVER
            for topic_id, partitions in some.items()
            for number, epoch in partitions.items()
            for name in names(topic_id, (number,))
        }

    def places(some: Target) -> set[str]:
        return {name for topic_id, numbers in some.items() for name in names(topic_id, numbers)}

    found = ConsumerMember("") if member is None else member
    current = found.current
    return {
        "target": places(found.target),
        "at": 0 if current.epoch == AWAY_EPOCH else current.epoch,
        "prev": 0 if current.previous_epoch == AWAY_EPOCH else current.previous_epoch,
        "state": STATES[current.state],
        "life": life,
        "got": epochs(current.assigned),
        "due": epochs(current.pending_revocation),
    }


def record(seed: int) -> Trace:
    """The trace of one seed. Raises `ViolationError`."""
    return RecordedWorld(seed).trace_of()
