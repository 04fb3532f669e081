"""Errors that members of groups meet: what each means, what the client does, what to do; and which
happenings of a group's history lead to it."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.insight.model import Cause, Departure, EventKind
from ringleader.protocol.errors import ErrorCode

_PUT_OUT = (
    Departure.SESSION_EXPIRED,
    Departure.NOT_REJOINED,
    Departure.NOT_SYNCED,
    Departure.NOT_REVOKED,
    Departure.POLL_INTERVAL_EXCEEDED,
    Departure.REMOVED,
)


@dataclass(frozen=True, slots=True)
class Known:
    """One error."""

    name: str
    """Kafka's, or the exception's where Kafka has no error of it."""
    code: int | None
    """Kafka's number; librdkafka's own are below 0."""
    also: tuple[str, ...]
    """Its names in libraries."""
    means: str
    client: str
    """The client's own reaction."""
    do: str
    departures: tuple[Departure, ...] = ()
    """Members that went so may have seen it."""
    causes: tuple[Cause, ...] = ()
    """Rebalances of these causes may have brought it."""
    every_rebalance: bool = False
    """Any rebalance brings it."""
    events: tuple[EventKind, ...] = ()


def _known(code: ErrorCode, *also: str, **rest: object) -> Known:
    return Known(code.name, int(code), also, **rest)  # type: ignore[arg-type]


ERRORS: tuple[Known, ...] = (
    _known(
        ErrorCode.REBALANCE_IN_PROGRESS,
        "RebalanceInProgressException",
        "RebalanceInProgressError",
        means="The group rebalances: members are being collected, and who owns what is not settled.",
        client="A heartbeat is answered so to call the member back to JoinGroup, which the client does in its"
        " next poll(). A commit is refused so while the member has not joined the new generation.",
        do="Nothing, if it is now and then. A commit that gets it is tried again after the next poll(). If it"
        " is all the time, look at why the group rebalances.",
        every_rebalance=True,
    ),
    _known(
        ErrorCode.ILLEGAL_GENERATION,
        "IllegalGenerationException",
        "IllegalGenerationError",
        means="The request is of an older generation: the group has rebalanced since without this member"
        " noticing.",
        client="It joins again. What it wanted to commit is not committed: another member may own those"
        " partitions, and reads these records again.",
        do="Commit in the callback of revoked partitions, and keep one round of poll() shorter than"
        " max.poll.interval.ms.",
        every_rebalance=True,
    ),
    _known(
        ErrorCode.UNKNOWN_MEMBER_ID,
        "UnknownMemberIdException",
        "UnknownMemberIdError",
        means="The coordinator does not know the member (any more): it was put out of the group, left it, or"
        " an operator removed it.",
        client="It forgets its member id and joins again, as another member; what it had not committed is"
        " read again.",
        do="Look at why it was put out: silent for its session timeout, or not back in time for a rebalance.",
        departures=_PUT_OUT,
    ),
    Known(
        "CommitFailedException",
        None,
        ("CommitFailedError",),
        "The commit came after the member had been put out, or its partitions had gone to others: it is not"
        " done, and their new owner reads the records again.",
        "Nothing: the exception ends the poll loop if it is not caught.",
        "Make a round of poll() shorter (max.poll.records), or max.poll.interval.ms longer. Processing has to"
        " bear records that come twice.",
        departures=_PUT_OUT,
    ),
    _known(
        ErrorCode.FENCED_INSTANCE_ID,
        "FencedInstanceIdException",
        "FencedInstanceIdError",
        means="Another process has joined with the same group.instance.id, and has the place now.",
        client="It ends: the error is fatal.",
        do="Give each process a group.instance.id of its own. Once in a redeploy that begins new processes"
        " before the old ones end, it is right.",
        departures=(Departure.FENCED,),
        causes=(Cause.INSTANCE_FENCED, Cause.STATIC_MEMBER_REPLACED),
    ),
    Known(
        "_MAX_POLL_EXCEEDED",
        -147,
        ("ERR__MAX_POLL_EXCEEDED", "MaxPollExceeded"),
        "The application did not call poll() for max.poll.interval.ms: the client left the group by itself.",
        "It joins again at the next poll().",
        "Make a round of poll() shorter, or max.poll.interval.ms longer.",
        departures=(Departure.POLL_INTERVAL_EXCEEDED, Departure.NOT_REJOINED),
    ),
    Known(
        "_ASSIGNMENT_LOST",
        -142,
        ("ERR__ASSIGNMENT_LOST",),
        "The member's partitions are gone without it having given them up: it was put out of the group.",
        "It joins again; commits for the lost partitions fail.",
        "Look at why it was put out: silent for its session timeout, or no poll() in time.",
        departures=_PUT_OUT,
    ),
    _known(
        ErrorCode.MEMBER_ID_REQUIRED,
        "MemberIdRequiredException",
        "MemberIdRequiredError",
        means="The first step of every dynamic member's join (KIP-394): the coordinator hands out the id to"
        " join with.",
        client="It joins with that id at once.",
        do="Nothing: it is part of joining. A member that stops here was ended while it started.",
        causes=(Cause.MEMBER_JOINED, Cause.MEMBER_RESTARTED),
    ),
    _known(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        "GroupMaxSizeReachedException",
        "GroupMaxSizeReachedError",
        means="The group has as many members as the broker's group.max.size allows.",
        client="It ends: the error is fatal.",
        do="Fewer members, or a larger group.max.size.",
        departures=(Departure.GROUP_FULL,),
        causes=(Cause.GROUP_TOO_LARGE,),
        events=(EventKind.JOIN_REFUSED,),
    ),
    _known(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        "InconsistentGroupProtocolException",
        "InconsistentGroupProtocolError",
        means="The member has no assignor in common with all others, or is of another kind (a consumer in a"
        " group of Connect, for example).",
        client="It ends: the error is fatal.",
        do="The same partition.assignment.strategy on all members. To change it, first offer both on all,"
        " then the new one alone; or another group.id, if these are two applications.",
        events=(EventKind.JOIN_REFUSED,),
    ),
    _known(
        ErrorCode.INVALID_SESSION_TIMEOUT,
        "InvalidSessionTimeoutException",
        "InvalidSessionTimeoutError",
        means="session.timeout.ms lies outside of the broker's group.min.session.timeout.ms (6 s) and"
        " group.max.session.timeout.ms (30 min).",
        client="It ends: the error is fatal.",
        do="A session.timeout.ms between the two.",
        events=(EventKind.JOIN_REFUSED,),
    ),
    _known(
        ErrorCode.NOT_COORDINATOR,
        "NotCoordinatorException",
        "NotCoordinatorForGroupError",
        means="The broker that was asked is not the group's coordinator (any more).",
        client="It looks for the coordinator and asks again.",
        do="Nothing, if it passes: a broker was restarted, or leaders moved.",
        causes=(Cause.COORDINATOR_CHANGED,),
        events=(EventKind.COORDINATOR_AWAY, EventKind.COORDINATOR_BACK),
    ),
    _known(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "CoordinatorNotAvailableException",
        "GroupCoordinatorNotAvailableError",
        means="There is no coordinator for the group at the moment: its partition of __consumer_offsets has"
        " no leader.",
        client="It asks again.",
        do="If it does not pass: look at the brokers, and at the replicas of __consumer_offsets.",
        causes=(Cause.COORDINATOR_CHANGED,),
        events=(EventKind.COORDINATOR_AWAY, EventKind.COORDINATOR_BACK),
    ),
    _known(
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        "CoordinatorLoadInProgressException",
        "GroupLoadInProgressError",
        means="The coordinator has just taken the group over, and still reads its records.",
        client="It asks again.",
        do="Nothing, if it passes within seconds. If not: the compaction of __consumer_offsets is behind.",
        causes=(Cause.COORDINATOR_CHANGED,),
        events=(EventKind.COORDINATOR_BACK,),
    ),
    _known(
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "GroupAuthorizationException",
        "GroupAuthorizationFailedError",
        means="The principal may not READ (or, to look, DESCRIBE) the group.",
        client="It ends: the error is fatal.",
        do="Grant READ on the group. Ringleader's journal has the principal that was refused; on Kafka no "
        "history has it.",
        events=(EventKind.JOIN_REFUSED,),
    ),
    _known(
        ErrorCode.NON_EMPTY_GROUP,
        "GroupNotEmptyException",
        "NonEmptyGroupError",
        means="Groups with members are not deleted, and their offsets not changed from outside.",
        client="The tool reports it.",
        do="Stop the members first, and wait for the session timeout of those that were killed.",
    ),
    _known(
        ErrorCode.GROUP_ID_NOT_FOUND,
        "GroupIdNotFoundException",
        "GroupIdNotFoundError",
        means="There is no such group: it was deleted, or its offsets expired.",
        client="The tool reports it.",
        do="Look at the group id. Offsets outlive the last member for offsets.retention.minutes (7 days).",
        events=(EventKind.GROUP_DELETED,),
    ),
    _known(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        "OffsetOutOfRangeException",
        "NoOffsetForPartitionException",
        "OffsetOutOfRangeError",
        means="The position lies before the first or behind the last record of the partition: what it names"
        " was deleted, or never was.",
        client="It goes on from auto.offset.reset; with none there, it ends.",
        do="Longer retention than the longest stop, or an explicit reset.",
        events=(EventKind.OFFSETS_RESET, EventKind.OFFSETS_DELETED, EventKind.TOPIC_DELETED),
    ),
    _known(
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        "UnstableOffsetCommitException",
        "UnstableOffsetCommitError",
        means="Offsets of an open transaction are not settled yet.",
        client="It asks again.",
        do="Nothing, if it passes. If not, a transaction hangs: transaction.timeout.ms ends it.",
    ),
    _known(
        ErrorCode.FENCED_MEMBER_EPOCH,
        "FencedMemberEpochException",
        means="Consumer protocol (KIP-848): the member's epoch is not the coordinator's: it was put out, or"
        " it missed an answer.",
        client="It gives up its partitions and joins again with epoch 0.",
        do="Look at why it was put out: no heartbeat for the broker's group.consumer.session.timeout.ms.",
        departures=_PUT_OUT,
        events=(EventKind.EPOCH_REFUSED,),
    ),
    _known(
        ErrorCode.STALE_MEMBER_EPOCH,
        "StaleMemberEpochException",
        means="Consumer protocol (KIP-848): a commit or fetch of offsets of an epoch that is over.",
        client="It asks again with the epoch of its next heartbeat.",
        do="Nothing, if it is now and then.",
        every_rebalance=True,
        events=(EventKind.EPOCH_REFUSED,),
    ),
    _known(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        "UnreleasedInstanceIdException",
        means="Consumer protocol (KIP-848): the instance id is still held by another process.",
        client="It ends: the error is fatal.",
        do="Give each process a group.instance.id of its own, or wait for the session of the old one.",
        departures=(Departure.FENCED,),
        causes=(Cause.INSTANCE_FENCED,),
        events=(EventKind.JOIN_REFUSED, EventKind.STATIC_AWAY),
    ),
)

_BY_WORD = {
    word.casefold(): one
    for one in ERRORS
    for word in (one.name, *one.also, *([str(one.code)] if one.code else []))
}


def error_of(text: str) -> Known | None:
    """The error of that name or number, whichever library's; None: no such one."""
    word = text.strip().casefold().rpartition(".")[2]
    return _BY_WORD.get(word)


def looks_like_an_error(text: str) -> bool:
    """Whether it can be meant for one."""
    last = text.rpartition(".")[2]
    return (
        last.endswith(("Exception", "Error"))
        or (last.isupper() and "_" in last)
        or last.lstrip("-").isdecimal()
    )
