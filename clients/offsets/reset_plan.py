"""Where a group is to read on: a plan by the rules of Kafka's own tool, and what carries it out. Of
`ringleader groups reset` and of the watcher's page alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleader.clients.descriptions import GroupDescription, GroupListing, members_in_words
from ringleader.clients.errors import BrokerError
from ringleader.clients.times import duration_ms, time_ms
from ringleader.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.model import TopicPartition

Scope = dict[str, set[int] | None]
"""Topic -> partitions; None for all it has."""
KINDS = ("to-earliest", "to-latest", "to-current", "to-offset", "shift-by", "to-datetime", "by-duration")
"""Where to, in the words of Kafka's tool."""


class ResetError(Exception):
    """It cannot be planned, or not be done. The text is one sentence."""


class StaleError(ResetError):
    """Something has changed since the plan was made."""


class Target(NamedTuple):
    """Where to. `kind`: one of `KINDS`, but "time" for the last two; or "file", with `offsets`."""

    kind: str
    number: int = 0
    """An offset, a number of records, or Unix time in ms."""
    offsets: Mapping[TopicPartition, int] = {}


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of a partition. `start` and `end` are the log's; `note` says why it is not as asked."""

    topic: str
    partition: int
    committed: int | None
    offset: int
    start: int
    end: int
    note: str

    @property
    def lag(self) -> int | None:
        """As it is."""
        return None if self.committed is None else max(0, self.end - self.committed)

    @property
    def new_lag(self) -> int:
        """As it will be."""
        return self.end - self.offset

    @property
    def skipped(self) -> int | None:
        """Records (offsets, strictly) that the group will never read; None: it has committed nothing."""
        return None if self.committed is None else max(0, self.offset - max(self.committed, self.start))

    @property
    def repeated(self) -> int | None:
        """Those that it will read again; likewise."""
        return None if self.committed is None else max(0, min(self.committed, self.end) - self.offset)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        more = {"lag": self.lag, "new_lag": self.new_lag, "skipped": self.skipped, "repeated": self.repeated}
        return {**asdict(self), **more}


@dataclass(frozen=True, slots=True)
class Plan:
    """The offsets that would be set. `refused`: the sentence why they cannot be now, else ""."""

    group: str
    changes: tuple[Change, ...]
    refused: str

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The new ones."""
        return {(one.topic, one.partition): one.offset for one in self.changes}

    @property
    def text(self) -> str:
        """Each change in words, for a log."""
        return ", ".join(
            f"{one.topic}-{one.partition} {'none' if one.committed is None else one.committed}"
            f" -> {one.offset}"
            for one in self.changes
        )


def target_of(kind: str, value: Any, now_ms: int) -> Target:
    """A target of `KINDS`. `value`: an int for an offset or a shift, a text for a time or a duration. Raises
    ValueError."""
    if kind == "to-datetime":
        return Target("time", max(0, time_ms(value, now_ms)))
    if kind == "by-duration":
        return Target("time", max(0, now_ms - duration_ms(value)))
    return Target(kind, value if kind in ("to-offset", "shift-by") else 0)


async def group_of(admin: Admin, group: str) -> GroupDescription | None:
    """The group; None if there is none. Raises ResetError for one of a type that cannot be described here."""
    (found,) = await admin.describe_groups([group])
    if found.state != "Dead":
        return found
    if (sentence := other_type(await listed(admin, group))) is not None:
        raise ResetError(sentence)
    return None


def other_type(seen: GroupListing | None) -> str | None:
    """A sentence about a group that is neither classic nor of the consumer protocol; None: it is either."""
    if seen is None or seen.group_type in ("", "classic", "consumer"):
        return None
    return f"Group {seen.group_id} is of type {seen.group_type}; here are classic and consumer groups only."


async def listed(admin: Admin, group: str) -> GroupListing | None:
    """The group as ListGroups has it, of any type; None if there is none."""
    return next((one for one in await admin.list_groups() if one.group_id == group), None)


async def busy(admin: Admin, group: str, say: Callable[[str], object] = lambda _sentence: None) -> str:
    """The sentence why the group's offsets cannot be set now: its members would go on from their own
    positions. "" where they can. `say` gets one about a group that is not there. Raises ResetError."""
    found = await group_of(admin, group)
    if found is None:
        say(f"There is no group {group} yet: to set its offsets makes it.")
        return ""
    if found.state == "Empty":
        return ""
    return _has_members(group, members_in_words(found))


def _has_members(group: str, members: str) -> str:
    return f"Group {group} has {members}; stop them, then reset its offsets."


async def make_plan(
    admin: Admin,
    group: str,
    target: Target,
    scope: Scope | None = None,
    say: Callable[[str], object] = lambda _sentence: None,
) -> Plan:
    """The plan; nothing changes. `scope`: None for all that the group has committed, or what the target
    names. `say` gets sentences about what is left out. Raises ResetError, and ClientError of the cluster."""
    refused = await busy(admin, group, say)
    committed = {place: found.offset for place, found in (await admin.group_offsets(group)).items()}
    if target.kind == "file":
        scope = {}
        for topic, partition in target.offsets:
            scope[topic] = {*(scope.get(topic) or ()), partition}
    if scope is not None:
        places = await _partitions_of(admin, scope)
    else:
        places = await _still_there(admin, group, committed, say)
    return Plan(group, tuple(await _changes(admin, places, committed, target)), refused)


async def check_fresh(admin: Admin, plan: Plan) -> None:
    """Raises StaleError when offsets were committed, or records deleted, since the plan was made, so that it
    would do something else than it says; ResetError when the group has members."""
    now = await make_plan(admin, plan.group, Target("file", offsets=plan.offsets))
    if now.refused:
        raise ResetError(now.refused)
    for then, here in zip(sorted(plan.changes, key=_place), sorted(now.changes, key=_place), strict=True):
        if (then.committed, then.offset) != (here.committed, here.offset):
            raise StaleError(
                f"Group {plan.group} has moved since the plan was made ({then.topic}-{then.partition}: "
                f"{_word(then.committed)} then, {_word(here.committed)} now): make the plan again."
            )


async def carry_out(admin: Admin, plan: Plan) -> None:
    """Set the offsets. Raises ResetError when the group has members, and ClientError of the cluster: after
    one that is retriable some may be set."""
    if plan.refused:
        raise ResetError(plan.refused)
    try:
        await admin.set_group_offsets(plan.group, plan.offsets)
    except BrokerError as error:
        if error.code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        raise ResetError(_has_members(plan.group, "members")) from None


def _place(one: Change) -> TopicPartition:
    return one.topic, one.partition


def _word(committed: int | None) -> str:
    return "nothing committed" if committed is None else str(committed)


async def _partitions_of(admin: Admin, scope: Scope) -> list[TopicPartition]:
    """The partitions, sorted. Raises ResetError when one does not exist."""
    places: list[TopicPartition] = []
    for topic in await admin.describe_topics(sorted(scope)):
        count = len(topic.partitions)
        wanted = scope[topic.name]
        if wanted and max(wanted) >= count:
            raise ResetError(
                f"There is no partition {max(wanted)} of topic {topic.name}: it has 0 to {count - 1}."
            )
        places += [(topic.name, number) for number in sorted(range(count) if wanted is None else wanted)]
    return places


async def _still_there(
    admin: Admin, group: str, committed: Iterable[TopicPartition], say: Callable[[str], object]
) -> list[TopicPartition]:
    """The partitions that the group has committed, without those that have been deleted since."""
    counts = {topic.name: len(topic.partitions) for topic in await admin.list_topics(internal=True)}
    places = sorted(place for place in committed if place[1] < counts.get(place[0], 0))
    if deleted := sorted({topic for topic, _ in committed} - set(counts)):
        say(f"Left out, as there is no such topic: {', '.join(deleted)}.")
    if not places:
        raise ResetError(f"Group {group} has no committed offsets; name topics with --topic.")
    return places


async def _changes(
    admin: Admin, places: list[TopicPartition], committed: Mapping[TopicPartition, int], target: Target
) -> list[Change]:
    starts, ends = await admin.start_offsets(places), await admin.end_offsets(places)
    at_time: Mapping[TopicPartition, int] = {}
    if target.kind == "time":
        at_time = await admin.offsets_at(dict.fromkeys(places, target.number))
    if target.kind == "shift-by" and (without := [place for place in places if place not in committed]):
        names = ", ".join(f"{topic}-{partition}" for topic, partition in without)
        raise ResetError(
            f"There is no committed offset to shift for {names}; leave them out, or say where to."
        )
    changes = []
    for place in places:
        start, end = starts[place], ends[place]
        wanted, note = _wanted(place, start, end, committed.get(place), at_time, target)
        offset = min(max(wanted, start), end)
        if offset != wanted:
            bound = "before the first record" if wanted < start else "behind the end of the log"
            note = f"{wanted} is {bound}"
        changes.append(Change(*place, committed.get(place), offset, start, end, note))
    return changes


def _wanted(
    place: TopicPartition,
    start: int,
    end: int,
    committed: int | None,
    at_time: Mapping[TopicPartition, int],
    target: Target,
) -> tuple[int, str]:
    """The offset as asked for, and a note."""
    match target.kind:
        case "to-earliest":
            return start, ""
        case "to-latest":
            return end, ""
        case "to-offset":
            return target.number, ""
        case "shift-by":
            return (committed or 0) + target.number, ""
        case "time":
            found = at_time[place]
            return (end, "no record is that late") if found < 0 else (found, "")
        case "to-current":
            return (end, "it has no committed offset") if committed is None else (committed, "")
    return target.offsets[place], ""
