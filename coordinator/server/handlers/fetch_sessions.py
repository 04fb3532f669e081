"""Fetch sessions (KIP-227): the partitions that a client fetches, kept from one Fetch to the next.

A client that fetches the same partitions again names only those whose position has changed, and is answered
only those in which something is new. As in Kafka's `FetchSession` a session belongs to its id, not to a
connection or a principal: every request in it is authorized by itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from ringleader.coordinator.clock import Clock
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import FetchRequestFetchPartition, FetchResponsePartitionData

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Epochs of a whole request: one that asks for a session, and one that asks for none. Either ends the session
whose id it names."""
NO_SESSION = 0
"""The id of no session."""
SESSIONS_MAX = 1_000
"""The number of sessions, as Kafka's `max.incremental.fetch.session.cache.slots`."""
SESSIONS_MAX_BYTES = 64 * 1024 * 1024
"""Memory for the partitions of all sessions. Kafka has no such limit."""
SESSION_MAX_PARTITIONS = 60_000
"""Those of one session; `request.max.elements` lets one Fetch name more, so a request that names none costs
less than that. Kafka has no such limit either."""
SETTLED_MS = 120_000
"""A session that was not used for longer than this is the first to go; one that is younger does not make room
for a larger one. Kafka's `MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`."""
MAX_INT32 = 2**31 - 1

ENTRY_BYTES = 400
"""Memory for a partition of a session besides the name of its topic, roughly."""

Key = tuple[str | bytes, int]
"""Topic and partition. The topic is its id from `TOPIC_IDS_VERSION` on, its name before."""


def next_epoch(epoch: int) -> int:
    """The epoch after this one. They are never 0 again: 1 follows on the largest."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_INT32 else epoch + 1


class Cached:
    """A partition of a session: how it is asked for, and the last answer about it."""

    __slots__ = ("high_watermark", "name", "requested", "start_offset")

    def __init__(
        self,
        name: str | None,
        requested: FetchRequestFetchPartition,
        high_watermark: int = -1,
        start_offset: int = -1,
    ) -> None:
        self.name = name
        """Of its topic, which had the id when it was first found, whatever becomes of it; None: no topic has
        had it so far."""
        self.requested = requested
        self.high_watermark = high_watermark
        self.start_offset = start_offset

    def is_new(self, data: FetchResponsePartitionData) -> bool:
        """Whether the answer says something that the client does not know. The last stable offset does not
        count, as in Kafka: it moves only with one of the others."""
        return (
            bool(data.records)
            or data.error_code != ErrorCode.NONE
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.start_offset
        )

    def answered(self, data: FetchResponsePartitionData) -> None:
        """The client gets this answer. One with an error has no high watermark: when the error is gone, the
        partition is answered."""
        self.high_watermark = data.high_watermark
        self.start_offset = data.log_start_offset


class FetchSession:
    """One session; `FetchSessions` makes and ends it."""

    __slots__ = (
        "by_id",
        "created_ms",
        "epoch",
        "held_bytes",
        "id",
        "is_settled",
        "partitions",
        "privileged",
        "used_ms",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[Key, Cached],
        held_bytes: int,
        now_ms: int,
        *,
        privileged: bool,
        by_id: bool,
    ) -> None:
        self.id = session_id
        self.by_id = by_id
        """Whether topics have ids in it: no request of the other kind comes into it."""
        self.partitions = partitions
        """In the order in which they are looked at: one that had records stands last."""
        self.held_bytes = held_bytes
        """Memory for them, by `bytes_of`."""
        self.privileged = privileged
        """Whether its client claims to be a broker that follows."""
        self.epoch = next_epoch(INITIAL_EPOCH)
        """That of the next request."""
        self.created_ms = self.used_ms = now_ms
        self.is_settled = False
        """Whether it was old enough, when it was last used, to make room for a larger one."""

    def ask(self, key: Key, requested: FetchRequestFetchPartition) -> int:
        """Add the partition, or change how it is asked for. Returns the memory that this takes."""
        cached = self.partitions.get(key)
        if cached is None:
            self.partitions[key] = Cached(None if self.by_id else str(key[0]), requested)
            return bytes_of(key)
        cached.requested = requested
        return 0

    def forget(self, key: Key) -> int:
        """Leave the partition out from now on. Returns the memory that this frees."""
        return 0 if self.partitions.pop(key, None) is None else bytes_of(key)

    def rotate(self, key: Key) -> None:
        """It had records: the others come first the next time."""
        self.partitions[key] = self.partitions.pop(key)


def bytes_of(key: Key) -> int:
    """Memory for a partition of a session, roughly."""
    return ENTRY_BYTES + len(key[0])


class FetchSessions:
    """The sessions of a node. Of one loop."""

    def __init__(self, now_ms: Clock, draw: Callable[[int], int] = secrets.randbelow) -> None:
        self._now_ms = now_ms
        self._draw = draw
        self._sessions: dict[int, FetchSession] = {}
        """In the order of their last use."""
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self, partitions: dict[Key, Cached], held_bytes: int, *, privileged: bool, by_id: bool = False
    ) -> int:
        """Make a session of the partitions that a client was answered. Returns its id; 0: there is no room.

        As in Kafka's `FetchSessionCacheShard.tryEvict` room is made by a session that was not used for
        `SETTLED_MS`, or by one that is less than this one (a client's before a broker's, then by the number
        of partitions) and not new. Kafka divides the sessions among eight caches.
        """
        now_ms = self._now_ms()
        if len(partitions) > SESSION_MAX_PARTITIONS or held_bytes > SESSIONS_MAX_BYTES:
            return NO_SESSION
        while len(self._sessions) >= SESSIONS_MAX or self.held_bytes + held_bytes > SESSIONS_MAX_BYTES:
            evicted = self._evictable((privileged, len(partitions), NO_SESSION), now_ms)
            if evicted is None:
                return NO_SESSION
            self._remove(evicted)
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._draw(MAX_INT32 - 1)
        self._sessions[session_id] = FetchSession(
            session_id, partitions, held_bytes, now_ms, privileged=privileged, by_id=by_id
        )
        self.held_bytes += held_bytes
        return session_id

    def _evictable(self, worth: tuple[bool, int, int], now_ms: int) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > SETTLED_MS:
            return oldest
        privileged = worth[0]
        candidates = (
            one for one in self._sessions.values() if one.is_settled or (privileged and not one.privileged)
        )
        least = min(candidates, key=_worth, default=None)
        return None if least is None or worth < _worth(least) else least

    def proceed(self, session_id: int, epoch: int, *, by_id: bool = False) -> FetchSession:
        """The session of an incremental request, which is the next one in it. Raises KafkaError:
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR."""
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = next_epoch(epoch)
        return session

    def used(self, session: FetchSession, more_bytes: int) -> bool:
        """An incremental request was read, after which the partitions take so much more memory. Returns
        whether the session goes on; one without partitions ends. Raises KafkaError (
        FETCH_SESSION_ID_NOT_FOUND) for one that ended meanwhile, or ends because it grew beyond a limit."""
        if self._sessions.get(session.id) is not session:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            self._remove(session)
            return False
        session.held_bytes += more_bytes
        self.held_bytes += more_bytes
        if len(session.partitions) > SESSION_MAX_PARTITIONS or self.held_bytes > SESSIONS_MAX_BYTES:
            self._remove(session)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.used_ms = self._now_ms()
        session.is_settled = session.used_ms - session.created_ms > SETTLED_MS
        self._sessions[session.id] = self._sessions.pop(session.id)
        return True

    def close(self, session_id: int) -> None:
        """End the session, if there is one."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._remove(session)

    def _remove(self, session: FetchSession) -> None:
        del self._sessions[session.id]
        self.held_bytes -= session.held_bytes


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.privileged, len(session.partitions), session.id
