"""The tables and their columns. Names are those of the JSON of `ringleader history`, where it has them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Scalar(StrEnum):
    """The types of values, as Spark writes them."""

    TEXT = "string"
    INT = "int"
    LONG = "bigint"
    TIME = "timestamp"
    """In rows Unix time in milliseconds."""
    DAY = "date"


class Column(NamedTuple):
    """A column. Every one may be null: then it is not known, or there is none."""

    name: str
    type: Scalar | tuple[Column, ...]
    """Or the columns of a structure."""
    meaning: str
    many: bool = False
    """An array of these."""


class Table(NamedTuple):
    """A table."""

    meaning: str
    columns: tuple[Column, ...]
    ends: str = "at"
    """The column with the time until which a row is of interest; null: it still is."""
    begins: str = "at"
    """The column with the time from which a row is of interest."""


TEXT, INT, LONG, TIME, DAY = Scalar
_GROUP = (
    Column("cluster_id", TEXT, "Of the cluster; empty where it does not say."),
    Column("group", TEXT, "Group id."),
)
_REBALANCES = (
    Column("id", TEXT, "The same however often it is exported."),
    Column("at", TIME, "Its end."),
    Column("kind", TEXT, "`classic`, `consumer` or `share`."),
    Column("generation", INT, "Of the classic protocol; else the group epoch."),
    Column("cause", TEXT, "The cause, in the words of `ringleader history`."),
    Column("confidence", TEXT, "Of the cause: `exact`, `certain`, `likely`, `possible`, `unknown`."),
    Column("evidence", TEXT, "A sentence each: what tells the cause.", many=True),
    Column("cause_members", TEXT, "Member ids of those that caused it.", many=True),
    Column("cause_names", TEXT, "Their names, as people know them.", many=True),
    Column("reason", TEXT, "The client's own (KIP-800); only Ringleader's journal has it."),
    Column("outcome", TEXT, "`stable`, `empty` or `superseded`."),
    Column("protocol_type", TEXT, "`consumer`, or another of the classic protocol."),
    Column("protocol", TEXT, "The assignor."),
    Column("leader", TEXT, "Member id."),
    Column("members", TEXT, "Member ids after it.", many=True),
    Column("before", TEXT, "Member ids before it.", many=True),
    Column("joined", TEXT, "Member ids.", many=True),
    Column(
        "left",
        (
            Column("member_id", TEXT, ""),
            Column("why", TEXT, ""),
            Column("confidence", TEXT, ""),
            Column("silent_ms", LONG, ""),
            Column("evidence", TEXT, "", many=True),
        ),
        "Members that went: why, how sure that is, how long they had been silent, and what tells it.",
        many=True,
    ),
    Column("began", TIME, "Its beginning."),
    Column("duration_ms", LONG, "From its beginning to its end."),
    Column("join_ms", LONG, "First phase: waiting for all members."),
    Column("join_last_member", TEXT, "Member id of the one it waited longest for."),
    Column("leader_ms", LONG, "Second phase: until the leader had computed the assignment."),
    Column("sync_ms", LONG, "Third phase: until the last follower had its share."),
    Column("moved", INT, "Partitions that changed hands."),
    Column("unowned_ms", LONG, "Summed over partitions: how long they had no owner."),
    Column("first_commit", TIME, "The first commit after it."),
    Column("last_commit", TIME, "The last commit before it."),
)
_MOVES = (
    Column("rebalance_id", TEXT, "`id` of the rebalance."),
    Column("at", TIME, "Its end."),
    Column("topic", TEXT, ""),
    Column("partition", INT, ""),
    Column("giver", TEXT, "Member id of the one that had it; null: nobody."),
    Column("heir", TEXT, "Member id of the one that got it; null: nobody."),
    Column("unowned_ms", LONG, "How long nobody had it."),
)
_MEMBERS = (
    Column("member_id", TEXT, ""),
    Column("name", TEXT, "The instance id, or the client id and the host."),
    Column("client_id", TEXT, ""),
    Column("host", TEXT, ""),
    Column("instance_id", TEXT, "`group.instance.id`; null: not a static member."),
    Column("topics", TEXT, "Its subscription.", many=True),
    Column("session_timeout_ms", LONG, "`session.timeout.ms`."),
    Column("rebalance_timeout_ms", LONG, "`max.poll.interval.ms`."),
    Column("since", TIME, "When it came."),
    Column("until", TIME, "When it went; null: it is there."),
    Column("gone", TEXT, "How it went."),
    Column("confidence", TEXT, "Of how it went."),
    Column("silent_ms", LONG, "How long it had been silent when it went."),
    Column("evidence", TEXT, "A sentence each: what tells how it went.", many=True),
    Column("rebalance_id", TEXT, "`id` of the rebalance in which it went."),
)
_EVENTS = (
    Column("id", TEXT, "The same however often it is exported."),
    Column("at", TIME, ""),
    Column("kind", TEXT, "`offsets reset`, `commits stopped`, `coordinator away` and so on."),
    Column("text", TEXT, "One sentence."),
)
_DAY = (
    Column("day", DAY, "In UTC."),
    Column("since", TIME, "The beginning of what was looked at."),
    Column("until", TIME, "Its end."),
)
_COSTS = (
    *_DAY,
    Column("pod", TEXT, "Where members ran: the instance id, or the client id and the host."),
    Column("client_id", TEXT, ""),
    Column("host", TEXT, ""),
    Column("instance_id", TEXT, ""),
    Column("caused", INT, "Rebalances that members there caused."),
    Column("came", INT, "How often members there joined."),
    Column("went", INT, "How often they went."),
    Column("unowned_ms", LONG, "How long partitions that they had were without owner, summed over them."),
    Column("held_up_ms", LONG, "How long the others waited for them to join."),
)
_FINDINGS = (
    _DAY[0],
    Column("since", TIME, "The evidence begins here."),
    Column("until", TIME, "The evidence ends here."),
    Column("pattern", TEXT, "What is wrong: a finding of `ringleader advise`."),
    Column("text", TEXT, "One sentence, with its numbers."),
    Column("confidence", TEXT, "As of a cause."),
    Column("evidence", TEXT, "A sentence each.", many=True),
    Column("members", TEXT, "Names of the members that it is about.", many=True),
    Column("rebalance_ids", TEXT, "`id` of the rebalances that it is made of.", many=True),
    Column(
        "changes",
        (
            Column("setting", TEXT, ""),
            Column("value", TEXT, ""),
            Column("now", TEXT, ""),
            Column("why", TEXT, ""),
        ),
        "What to change: the setting, the value to set, the value today, and why.",
        many=True,
    ),
)
TABLES: dict[str, Table] = {
    "rebalances": Table("A row for each rebalance.", (*_GROUP, *_REBALANCES)),
    "moves": Table("A row for each partition that changed hands in a rebalance.", (*_GROUP, *_MOVES)),
    "members": Table("A row for the life of each member.", (*_GROUP, *_MEMBERS), "until", "since"),
    "costs": Table(
        "A row for each day and each place that members ran in.", (*_GROUP, *_COSTS), "until", "since"
    ),
    "findings": Table("A row for each finding about a day.", (*_GROUP, *_FINDINGS), "until", "since"),
    "events": Table(
        "A row for each event other than a rebalance; `group` is empty for one of the whole cluster.",
        (*_GROUP, *_EVENTS),
    ),
}
"""By name."""


def type_text(column: Column) -> str:
    """``array<string>``: the type as Spark writes it."""
    if isinstance(column.type, tuple):
        inside = ",".join(f"{one.name}:{type_text(one)}" for one in column.type)
        plain = f"struct<{inside}>"
    else:
        plain = str(column.type)
    return f"array<{plain}>" if column.many else plain


def document() -> Iterator[str]:
    """The tables as Markdown, for the page of the documentation."""
    for name, table in TABLES.items():
        yield f"### `{name}`\n\n{table.meaning}\n\n| Column | Type | Meaning |\n|---|---|---|\n" + "".join(
            f"| `{one.name}` | `{type_text(one)}` | {one.meaning} |\n" for one in table.columns
        )


if __name__ == "__main__":
    print("\n".join(document()), end="")
