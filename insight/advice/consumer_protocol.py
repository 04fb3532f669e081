"""Whether a group can move to the consumer protocol (KIP-848): what stands in the way, and what changes.

    move = consumer_protocol("billing", past, server, now)

Pure, as all advice. The conditions of an online upgrade are those of Kafka 4.3
(`GroupMetadataManager.validateOnlineUpgrade`, and what converts the members then).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ringleader.clients.descriptions import GroupDescription, MemberDescription
from ringleader.insight.advice.findings import Change, Saving, saving_json
from ringleader.insight.advice.libraries import LIBRARIES, libraries_of
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.replay import NothingToReplayError, Policy, RanAwayError, Replay
from ringleader.insight.advice.replay.consumer_client import REMOTE_ASSIGNORS
from ringleader.insight.advice.words import count, length, some
from ringleader.insight.model import Member
from ringleader.insight.plain import Json, plain
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError

POLICY = "group.consumer.migration.policy"
SESSION, SESSION_MIN, SESSION_MAX = (
    f"group.consumer.{bound}session.timeout.ms" for bound in ("", "min.", "max.")
)
HEARTBEAT = "group.consumer.heartbeat.interval.ms"
SIZE_MAX = "group.consumer.max.size"
LEADER_TIMEOUT = "group.consumer.leader.timeout.ms"
ASSIGNORS = "group.consumer.assignors"
SETTINGS = (ASSIGNORS, POLICY, SESSION, SESSION_MIN, SESSION_MAX, HEARTBEAT, SIZE_MAX, LEADER_TIMEOUT)
"""Of a broker, that decide. Only Ringleader has the last one."""
_DEFAULTS = {SESSION: 45_000, SESSION_MIN: 45_000, SESSION_MAX: 60_000, HEARTBEAT: 5_000}

EAGER = frozenset(("range", "roundrobin", "sticky"))
SERVER_SIDE = frozenset((*EAGER, "cooperative-sticky"))
"""Protocols of classic groups that one of the coordinator's assignors stands for."""


class Way(StrEnum):
    """How a group gets to the consumer protocol."""

    SPEAKS_IT = "speaks it"
    ONLINE = "online"
    """Its members are replaced one after the other."""
    WITHOUT_MEMBERS = "without members"
    """All its members stop first."""
    NO = "no"


class Weight(StrEnum):
    """The effect of a point on the move. In the order of the members, the weightiest first."""

    STOPS = "stops the move"
    STOPS_ONLINE = "stops an online move"
    HINDERS = "stands in the way"
    """The group moves, but a member stays behind, or something that it has now is lost."""
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to know before the move."""

    weight: Weight
    about: str
    text: str
    """A sentence or two."""
    changes: tuple[Change, ...] = ()
    members: tuple[str, ...] = ()
    """Names (`Member.name`) of those that it is about, if not of all."""


@dataclass(frozen=True, slots=True)
class Server:
    """The answers of the cluster about itself."""

    serves: bool | None = None
    """Whether it serves the protocol. None: it was not asked."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of `SETTINGS`, as far as they could be read."""

    @property
    def is_ringleader(self) -> bool:
        """Whether it has assignors of members (`client:NAME`)."""
        return LEADER_TIMEOUT in self.settings

    def ms(self, name: str) -> int:
        """A setting; Kafka's default where it could not be read."""
        return self.number(name) or _DEFAULTS[name]

    def number(self, name: str) -> int | None:
        """A setting; None where it could not be read."""
        try:
            return int(self.settings[name])
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Move:
    """The outcome for one group."""

    group: str
    way: Way
    text: str
    """One sentence: the answer."""
    points: tuple[Point, ...]
    """The weightiest first."""
    saving: Saving | None = None
    """The recorded history, played again in the consumer protocol."""
    no_saving: str = ""
    """One sentence: why there is no figure, where `saving` is None or claims none."""


def consumer_protocol(
    group: str,
    past: Past,
    server: Server | None = None,
    now: GroupDescription | None = None,
    *,
    group_type: str = "",
    replay: bool = True,
) -> Move:
    """The advice. `past`: what its history has. `now`: the group as its coordinator describes it; None: it
    was not asked, or there is no such group. `group_type`: as the cluster lists it; "": it does not say."""
    case = _Case(group, past, server or Server(), now, group_type)
    if case.speaks_it:
        return Move(group, Way.SPEAKS_IT, *_speaks_it(case))
    points = sorted(
        (point for look in _LOOKS for point in look(case)), key=lambda one: [*Weight].index(one.weight)
    )
    stopping = {one.weight for one in points} & {Weight.STOPS, Weight.STOPS_ONLINE}
    if Weight.STOPS in stopping:
        way, text = Way.NO, "It cannot move to the consumer protocol."
    elif not case.members:
        way = Way.WITHOUT_MEMBERS
        text = "It has no members: the first one with group.protocol=consumer makes it a group of that kind."
    elif stopping:
        way = Way.WITHOUT_MEMBERS
        text = "It can move once all its members have stopped, not member by member."
    else:
        way = Way.ONLINE
        text = "It can move while it works: restart its members with group.protocol=consumer, one by one."
    saving, why_not = _saving(case, way) if replay else (None, "Not played again, as asked.")
    return Move(group, way, text, tuple(points), saving, why_not)


class _Case:
    """All that is known of one group."""

    def __init__(
        self, group: str, past: Past, server: Server, now: GroupDescription | None, group_type: str
    ) -> None:
        self.group, self.past, self.server, self.now = group, past, server, now
        state = past.state
        known = {one.member_id: one for one in (state.members if state else ())}
        self.described: dict[str, MemberDescription] = {
            one.member_id: one for one in (now.members if now else ())
        }
        there = known if now is None else self.described
        self.members: list[Member] = [
            known.get(one) or past.known.get(one) or _as_member(self.described[one]) for one in there
        ]
        known_type = (now.group_type if now else "") or group_type
        self.group_type = known_type or (state.kind.value if state is not None else "classic")
        self.protocol_type = now.protocol_type if now else state.protocol_type if state else ""
        self.protocol = (now.protocol if now else "") or (state.protocol if state else "")
        self.state = now.state if now else state.state if state else ""

    @property
    def speaks_it(self) -> bool:
        """Whether it is one already."""
        return self.group_type == "consumer"

    def names(self, members: list[Member]) -> tuple[str, ...]:
        """Theirs, where they are not all."""
        return () if len(members) == len(self.members) else tuple(sorted({one.name for one in members}))


def _as_member(one: MemberDescription) -> Member:
    return Member(one.member_id, one.client_id, one.client_host, one.group_instance_id, tuple(one.topics))


def _speaks_it(case: _Case) -> tuple[str, tuple[Point, ...]]:
    classic = [one for one in case.members if _is_classic(case.described.get(one.member_id))]
    if not classic:
        return "It is a group of the consumer protocol already.", ()
    text = f"It is a group of the consumer protocol, and {count(len(classic), 'member')} of it"
    text += f" {'is' if len(classic) == 1 else 'are'} still to move."
    names = tuple(sorted({one.name for one in classic}))
    say = f"{some(names)}: of the classic protocol, inside a group of the consumer protocol."
    change = Change("group.protocol", "consumer", "classic")
    libraries = list(_libraries(case, classic))
    return text, (Point(Weight.HINDERS, "members", say, (change,), names), *libraries)


def _is_classic(one: MemberDescription | None) -> bool:
    return one is not None and one.member_type == "classic"


# ---- what there is to look at ----


def _the_server(case: _Case) -> Iterator[Point]:
    server = case.server
    if server.serves is False:
        text = (
            "The brokers do not serve ConsumerGroupHeartbeat: Apache Kafka does from 4.0 on, with the feature"
        )
        yield Point(Weight.STOPS, "cluster", f"{text} group.version 1, and Ringleader.")
        return
    if server.serves is None:
        text = (
            "The cluster was not asked what it serves and allows, and what members say beside their topics:"
        )
        yield Point(Weight.CHANGES, "cluster", f"{text} --bootstrap-server asks it.")
        return
    policy = server.settings.get(POLICY, "").lower()
    if not server.settings:
        text = f"{POLICY} could not be read (DescribeConfigs of a broker); its default allows an online move."
        yield Point(Weight.CHANGES, "cluster", text)
    elif policy not in ("", "bidirectional", "upgrade"):
        text = f"{POLICY} is {policy}: a classic group with members stays one."
        change = Change(POLICY, "bidirectional", policy, "Of all brokers.")
        yield Point(Weight.STOPS_ONLINE, "cluster", text, (change,))
    elif policy == "upgrade":
        text = (
            f"{POLICY} is upgrade: there is no way back online, the group stays one of the consumer protocol."
        )
        yield Point(Weight.CHANGES, "cluster", text)
    most, there = server.number(SIZE_MAX), len(case.members)
    if most is not None and there >= most:
        text = f"The group has {there} members, and {SIZE_MAX} is {most}"
        change = Change(SIZE_MAX, str(there + 1), str(most), "Of all brokers.")
        if there > most:
            yield Point(Weight.STOPS, "size", f"{text}.", (change,))
        else:
            text += (
                ": one that comes before another has left, and the successor of a static member, is refused"
            )
            yield Point(Weight.HINDERS, "size", f"{text} (GROUP_MAX_SIZE_REACHED).", (change,))


def _the_type(case: _Case) -> Iterator[Point]:
    group_type, protocol_type = case.group_type, case.protocol_type
    if group_type != "classic":
        text = f"It is a {group_type} group: those have a protocol of their own."
        yield Point(Weight.STOPS, "type", text)
    elif protocol_type not in ("", "consumer"):
        text = f"It shares something else than partitions (protocol type {protocol_type!r}): the consumer"
        yield Point(Weight.STOPS, "type", f"{text} protocol is for consumers only.")
    elif protocol_type == "" and not case.members:
        text = "It has offsets only, committed by consumers that choose their partitions themselves"
        yield Point(Weight.CHANGES, "type", f"{text} (assign()): the protocol is nothing to them.")
    elif case.protocol == "stream":
        text = "It is an application of Kafka Streams: those have a protocol of their own (streams)."
        yield Point(Weight.STOPS, "type", text)


def _the_assignor(case: _Case) -> Iterator[Point]:
    name = case.protocol
    if not name or name == "stream" or case.protocol_type not in ("", "consumer"):
        return
    if name in SERVER_SIDE:
        instead = REMOTE_ASSIGNORS.get(name, "uniform")
        request = "" if instead == "uniform" else f"group.remote.assignor={instead} asks for it"
        what = "does the same" if instead == name else "keeps loads even and moves few partitions"
        text = f"The coordinator assigns, not a member: its {instead} {what} as {name} did"
        text = text if instead == name else f"The coordinator assigns, not a member: for {name} there is"
        text += (
            f"; {request}, the default is uniform." if request else f" {instead}, its default, which {what}."
        )
        change = Change("group.remote.assignor", instead, None, "") if request else None
        removal = Change("partition.assignment.strategy", "remove it", name, "It has no meaning there.")
        yield Point(Weight.CHANGES, "assignor", text, (removal,) if change is None else (change, removal))
    elif case.server.is_ringleader:
        text = f"{name} is an assignor of its own: a member goes on computing it as client:{name}."
        change = Change("group.remote.assignor", f"client:{name}", name, "Members of this package can lead.")
        yield Point(Weight.CHANGES, "assignor", text, (change,))
    else:
        text = (
            f"{name} is an assignor of its own, and Kafka's coordinator has none like it: it would assign by"
        )
        more = "uniform or range. Ringleader lets a member compute it (client:NAME)."
        yield Point(Weight.HINDERS, "assignor", f"{text} {more}")


def _user_data(case: _Case) -> Iterator[Point]:
    """The data of members beside topics and partitions; only the coordinator shows it."""
    assigned: list[Member] = []
    subscribed: list[Member] = []
    unread: list[Member] = []
    for one in case.members if case.protocol_type == "consumer" else ():
        described = case.described.get(one.member_id)
        if described is None or not described.raw_metadata:
            continue
        try:
            data = Subscription.decode(described.raw_metadata).user_data
            given = (
                Assignment.decode(described.raw_assignment).user_data if described.raw_assignment else None
            )
        except MalformedError:
            unread.append(one)
            continue
        if given:
            assigned.append(one)
        if data and case.protocol not in SERVER_SIDE:
            subscribed.append(one)
    if unread:
        text = f"What {count(len(unread), 'member')} say of themselves cannot be read: the coordinator"
        yield Point(
            Weight.STOPS_ONLINE, "user data", f"{text} refuses to upgrade it.", (), case.names(unread)
        )
    if assigned:
        text = f"The assignor adds data of its own to the assignments of {count(len(assigned), 'member')}:"
        more = "the coordinator takes that for a custom assignor, and refuses to upgrade the group."
        change = Change("partition.assignment.strategy", "one of Kafka's own, first", case.protocol)
        yield Point(Weight.STOPS_ONLINE, "user data", f"{text} {more}", (change,), case.names(assigned))
    if subscribed:
        text = f"{count(len(subscribed), 'member')} tell {case.protocol} something beside their topics;"
        instead = (
            "a leader gets it as assignor_user_data." if case.server.is_ringleader else "nobody reads it."
        )
        weight = Weight.CHANGES if case.server.is_ringleader else Weight.HINDERS
        yield Point(
            weight, "user data", f"{text} in the consumer protocol {instead}", (), case.names(subscribed)
        )


def _libraries(case: _Case, members: list[Member] | None = None) -> Iterator[Point]:
    """By the client ids that libraries have by default; no request shows an operator more."""
    by_library, unknown = libraries_of(case.members if members is None else members)
    for library, found in by_library.items():
        clients, versions = [one for one, _ in found], sorted({version for _, version in found if version})
        text = (
            f"{count(len(clients), 'member')} by {' '.join([library.name, *versions])}, as client ids say: it"
        )
        if library.since is None:
            text += " speaks the classic protocol only, so such members stay behind, inside the group."
            change = Change("client library", "one that speaks the protocol", library.name)
            yield Point(Weight.HINDERS, "clients", text, (change,), case.names(clients))
        else:
            text += f" speaks the protocol from {library.since} on, with group.protocol=consumer."
            yield Point(Weight.CHANGES, "clients", text, (), case.names(clients))
    if unknown:
        ids = some(sorted({one.client_id for one in unknown}))
        text = f"{count(len(unknown), 'member')} with client ids of their own ({ids}): their library has"
        known = ", ".join(f"{one.name} from {one.since}" for one in LIBRARIES if one.since)
        yield Point(
            Weight.CHANGES, "clients", f"{text} to be one that speaks it ({known}).", (), case.names(unknown)
        )


def _timeouts(case: _Case) -> Iterator[Point]:
    server, requested_ms = (
        case.server,
        sorted({one.session_timeout_ms for one in case.members if one.session_timeout_ms}),
    )
    if not requested_ms:
        return
    session_ms, heartbeat_ms = server.ms(SESSION), server.ms(HEARTBEAT)
    text = f"Sessions last {length(session_ms)} and heartbeats come every {length(heartbeat_ms)}, as the"
    text += (
        " coordinator says; session.timeout.ms and heartbeat.interval.ms of clients have no meaning there."
    )
    changes = [Change("session.timeout.ms, heartbeat.interval.ms", "remove them", length(requested_ms[-1]))]
    if requested_ms != [session_ms]:
        least, most = server.ms(SESSION_MIN), server.ms(SESSION_MAX)
        wanted_ms = min(max(requested_ms[-1], least), most)
        now = (
            " and ".join(map(length, requested_ms))
            if len(requested_ms) < 3
            else f"{length(requested_ms[0])} to {length(requested_ms[-1])}"
        )
        text += f" Members ask for {now} now: "
        if wanted_ms != session_ms:
            name = "consumer.session.timeout.ms"
            why = f"Of the group (kafka-configs), between {length(least)} and {length(most)}."
            changes.append(Change(name, str(wanted_ms), str(session_ms), why))
            text += "the group's own setting brings it near that."
        elif requested_ms[-1] < session_ms:
            text += (
                f"less than {length(least)} is not to be had ({SESSION_MIN}), so what a member has that dies"
            )
            text += " stays longer without a reader."
        else:
            text += f"more than {length(most)} is not to be had ({SESSION_MAX})."
    yield Point(Weight.CHANGES, "timeouts", text, tuple(changes))


def _static(case: _Case) -> Iterator[Point]:
    static = [one for one in case.members if one.instance_id is not None]
    if static:
        text = f"{count(len(static), 'static member')}: an orderly stop keeps partitions for a successor,"
        text += (
            " as before. After a crash the successor is refused (UNRELEASED_INSTANCE_ID) until the session of"
        )
        text += (
            f" {length(case.server.ms(SESSION))} is over; Java and librdkafka stop at that, and have to be"
        )
        yield Point(Weight.CHANGES, "static members", f"{text} restarted.", (), case.names(static))


def _meanwhile(case: _Case) -> Iterator[Point]:
    """While members of both kinds are in the group."""
    if not case.members or case.protocol_type not in ("", "consumer"):
        return
    if case.protocol in EAGER:
        text = f"{case.protocol} is eager: until its restart a classic member still stops all its partitions"
        yield Point(
            Weight.CHANGES, "meanwhile", f"{text} whenever its share changes. Nobody else stops then."
        )
    if case.state in ("PreparingRebalance", "CompletingRebalance"):
        text = f"It is rebalancing ({case.state}): begin when it is Stable. Members that wait to join are"
        yield Point(
            Weight.HINDERS, "meanwhile", f"{text} answered with an error, and not every client bears it."
        )


def _racks(case: _Case) -> Iterator[Point]:
    there = [
        one for one in case.members if (described := case.described.get(one.member_id)) and described.rack_id
    ]
    if not there or case.protocol not in SERVER_SIDE:
        return
    server, text = case.server, f"{count(len(there), 'member')} name a rack: "
    known = [one.strip() for one in server.settings.get(ASSIGNORS, "").split(",")]
    ask = Change("group.remote.assignor", "rack", None, "It keeps partitions near their members.")
    if server.is_ringleader and "rack" in known:
        text += "the coordinator's assignor rack looks at racks, its others do not."
        yield Point(Weight.CHANGES, "racks", text, (ask,), case.names(there))
        return
    text += (
        "the coordinator's assignors do not look at racks, so members may get partitions whose leaders and"
    )
    allow = Change(ASSIGNORS, ",".join([*filter(None, known), "rack"]), ",".join(known), "Of all nodes.")
    changes = (allow, ask) if server.is_ringleader else ()
    yield Point(Weight.HINDERS, "racks", f"{text} replicas are elsewhere.", changes, case.names(there))


_LOOKS: tuple[Callable[[_Case], Iterator[Point]], ...] = (
    _the_server,
    _the_type,
    _user_data,
    _the_assignor,
    _libraries,
    _racks,
    _timeouts,
    _static,
    _meanwhile,
)


# ---- what it would have cost ----


def _saving(case: _Case, way: Way) -> tuple[Saving | None, str]:
    if way is Way.NO:
        return None, "Not played again, for it cannot move."
    session_ms, heartbeat_ms = case.server.ms(SESSION), case.server.ms(HEARTBEAT)
    words = "the consumer protocol"
    try:
        saving = Replay(case.past).saving(
            Policy(words, consumer=True, session_timeout_ms=session_ms, heartbeat_ms=heartbeat_ms),
            "Only partitions that change owners stop, each until the next heartbeat of its new owner,"
            f" up to {length(heartbeat_ms)}.",
            f"A member that falls silent has its partitions for {length(session_ms)}.",
            "A static member that stops says so.",
        )
    except NothingToReplayError as error:
        return None, str(error)
    except RanAwayError:
        return None, "Played again as it was, the record leads to rebalances without end."
    return saving, "" if saving.claimed else saving.why_not_claimed


def move_json(move: Move, plain_of: Callable[[Any], Any] = plain) -> Json:
    """A move as JSON's own types."""
    made: Json = plain_of(move)
    if move.saving is not None:
        made["saving"] |= saving_json(move.saving)
    return made
