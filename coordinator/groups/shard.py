"""One partition of __consumer_offsets as a deterministic machine. See DESIGN: requests and time in, records
and answers out.

How a caller drives it:

- Every call that takes `now_ms` gets the same monotonic clock; calls never go back in time.
- After any call look at `dirty`; if it is set, `drain()` once per loop turn: write `appends` (in order, each
  all or none), send `answers`, log `journal` and `notices`. When the records are durable: `appended`, then
  drain again.
- One timer for `next_deadline()`; when it is due (it may be already): `tick`.
- The machine is never entered twice at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ringleader.coordinator.groups.outbox import Answer, Append, Outbox, Ticket
from ringleader.coordinator.groups.settings import GroupSettings

__all__ = ["Answer", "Append", "GroupSettings", "Outbox", "Shard", "Ticket"]


class Shard:
    """One partition of __consumer_offsets: loading until `loaded` is called, serving until `unload`.

    `ids(prefix)` gives a fresh member id `<prefix>-<random UUID>`; it is injected so that runs can be
    repeated.
    """

    dirty: bool
    """Whether `drain()` has anything. Cheap: look at it after every call."""

    def __init__(self, partition: int, settings: GroupSettings, ids: Callable[[str], str]) -> None:
        raise NotImplementedError

    # ---- life ----

    def replay(self, key: bytes, value: bytes | None) -> None:
        """One record of the log, in order, while loading. Unknown key types are skipped, as Kafka's loader
        does. Raises `MalformedError` for a record that cannot be read."""
        raise NotImplementedError

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """All records were replayed: start to serve. Every member's session timer starts full. `wall_ms`:
        Unix time."""
        raise NotImplementedError

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        """Tell what Unix time is now. Commit stamps are `now_ms` plus the difference told last, so that the
        machine needs no clock; call it now and then (each timer turn is fine). Timers never use it."""
        raise NotImplementedError

    def unload(self, now_ms: int) -> None:
        """The partition moves away or the node stops: parked requests and those waiting for records get
        NOT_COORDINATOR (drain once more to send them), all groups and timers go, later calls answer
        NOT_COORDINATOR."""
        raise NotImplementedError

    # ---- requests ----

    def handle(self, request: Any, ticket: Ticket, now_ms: int) -> Any | None:
        """JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit or OffsetDelete request (all of one
        group).

        Returns the response message if it is free to go now; None if it comes later as an `Answer` from
        `drain()`.

        What the server does before: authorization; group.id null; SyncGroup v5+ without protocol type or name
        (INCONSISTENT_GROUP_PROTOCOL, before authorization); topic checks. OffsetCommit and OffsetDelete get
        only the topics and partitions that passed the server's checks (existence, authorization; topic ids of
        v10 resolved: `name` filled in, `topic_id` left as sent), and answer for exactly these, in the same
        order, with `name` and `topic_id` set; the server merges the entries that it refused itself. With
        nothing left it does not call. A group-level error of OffsetCommit is on every partition; of
        OffsetDelete in `error_code`, with no topics.
        """
        raise NotImplementedError

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None, now_ms: int
    ) -> int:
        """The hot path of Heartbeat: the error code only. Never writes, never parks (KIP-62 session
        timers)."""
        raise NotImplementedError

    def fetch_offsets(
        self,
        group_id: str,
        topics: Sequence[tuple[str, Sequence[int]]] | None,
        require_stable: bool,
        ticket: Ticket,
        now_ms: int,
    ) -> Any | None:
        """OffsetFetch for one group: an `OffsetFetchResponseGroup` (the v8+ form; the server turns it into
        the older forms, fills in `topic_id` for v10 and reports topics that it refused itself).

        `topics`: (name, partitions) pairs, or None for all committed offsets. Unknown group, topic or
        partition: offset
        -1 without error. With `require_stable` (KIP-447) and commits of this group on their way to the log:
        None, and the group comes as `Answer(ticket, OffsetFetchResponseGroup)`; for a request of several
        groups hand in a ticket for each part.
        """
        raise NotImplementedError

    def describe(self, group_id: str, version: int) -> Any:
        """One `DescribeGroupsResponseDescribedGroup`. Missing: state Dead, and from v6 on
        GROUP_ID_NOT_FOUND."""
        raise NotImplementedError

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Any]:
        """All groups as `ListGroupsResponseListedGroup`, in order of creation. Filters (KIP-518, KIP-848):
        compared without case; no filter = all. While loading: raises
        KafkaError(COORDINATOR_LOAD_IN_PROGRESS)."""
        raise NotImplementedError

    def delete_group(self, group_id: str, ticket: Ticket, now_ms: int) -> Any | None:
        """DeleteGroups for one group: a `DeleteGroupsResponseDeletableGroupResult`, or None and it comes as
        `Answer(ticket, DeleteGroupsResponseDeletableGroupResult)` when the deletion is durable."""
        raise NotImplementedError

    def topic_deleted(self, topic: str, now_ms: int) -> None:
        """A topic is gone: forget its offsets in all groups (tombstones go out with the next drain)."""
        raise NotImplementedError

    def ticket_closed(self, ticket: Ticket) -> None:
        """The ticket's connection is gone. A parked request of it is dropped; the membership is not touched
        (Kafka ties no membership to connections). Answers that wait for records may still come out: ignore
        them."""
        raise NotImplementedError

    # ---- time and storage ----

    def tick(self, now_ms: int) -> None:
        """Everything that is due, in order of deadline, then of arming."""
        raise NotImplementedError

    def next_deadline(self) -> int | None:
        """When to call `tick` next (may be early, never late; may be in the past); None: nothing to wait
        for."""
        raise NotImplementedError

    def drain(self) -> Outbox:
        """Hand over everything that is to be done, and forget it."""
        raise NotImplementedError

    def appended(self, position: int, now_ms: int) -> None:
        """All appends up to and including `position` (but for those reported as failed) are durable: they
        take effect now, their answers are in the next `drain`."""
        raise NotImplementedError

    def append_failed(self, position: int, error: int, now_ms: int) -> None:
        """The append at `position` is certainly not in the log and never will be. `error`: a Kafka error
        code, as Kafka's log would give it (KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE ...); it
        is mapped for the clients as Kafka maps it. Only the operation that asked for it is undone."""
        raise NotImplementedError
