"""Heartbeats: the requests that a coordinator gets most of, and the only ones that get a path of their own.

A member sends the same bytes again and again, but for the correlation id. So the decoded request is
remembered by its bytes, and a heartbeat costs two slices, a lookup and the group machine's own work.
One of the consumer protocol is remembered with its answer, as long as both bring no news.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.bounded import BoundedCache
from ringleader.coordinator.groups.steady import Last, last_of
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.protocol.codec import Decoder, decoder, encoder
from ringleader.protocol.frames import decode_request_header
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
)

if TYPE_CHECKING:
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.server.call import Answerable, Call

API_KEY = HeartbeatRequest.API_KEY
MAX_VERSION = HeartbeatRequest.MAX_VERSION
STAY_KEY = ConsumerGroupHeartbeatRequest.API_KEY


def kind_of(api_key: int, version: int) -> int:
    """API key and version as the one number that their bytes are in a frame."""
    return api_key << 16 | version


FIRST_STAY = kind_of(STAY_KEY, 0)
"""Kinds from here on are of the consumer protocol."""
KINDS = frozenset(
    kind_of(one.API_KEY, version)
    for one in (HeartbeatRequest, ConsumerGroupHeartbeatRequest)
    for version in range(one.MAX_VERSION + 1)
)

LONGEST_STAY_BYTES = 512
"""A longer one of the consumer protocol is not remembered."""

REMEMBERED_BYTES = 16 * 1024 * 1024
"""Memory for all remembered heartbeats of a server."""

_V0 = struct.Struct(">iih").pack
_V1 = struct.Struct(">iiih").pack
_V4 = struct.Struct(">iixihx").pack


def _pack_v0(correlation_id: int, error: int) -> bytes:
    return _V0(6, correlation_id, error)


def _pack_v1(correlation_id: int, error: int) -> bytes:
    return _V1(10, correlation_id, 0, error)


def _pack_v4(correlation_id: int, error: int) -> bytes:
    return _V4(12, correlation_id, 0, error)


PACK: tuple[Callable[[int, int], bytes], ...] = (_pack_v0, _pack_v1, _pack_v1, _pack_v1, _pack_v4)
"""By version: whole response frame from correlation id and error code. Throttle time is 0."""

_FLEXIBLE = struct.Struct(">iix").pack


def _pack_stay(correlation_id: int, body: bytes) -> bytes:
    return _FLEXIBLE(len(body) + 5, correlation_id) + body


def _around(frame: bytes) -> tuple[bytes, bytes]:
    """Before and behind the correlation id."""
    return frame[:4], frame[8:]


_SUCCESS = tuple(_around(pack(0, 0)) for pack in PACK)


def refused(kind: int, correlation_id: int, error: int) -> bytes:
    """The whole response frame of a heartbeat of that kind that is answered with an error code."""
    version = kind & 0xFFFF
    if kind < FIRST_STAY:
        return PACK[version](correlation_id, error)
    response = ConsumerGroupHeartbeatResponse(0, error)
    return _pack_stay(correlation_id, encoder(ConsumerGroupHeartbeatResponse, version)(response))


Heartbeat = tuple[int, bytes, bytes, int, str, int, str, Any]
"""Kind, the response frame before and behind the correlation id, partition of the group's shard, group id,
generation or epoch, member id; then the instance id, or in the consumer protocol what is in a `Last`."""

Known = BoundedCache[bytes, Heartbeat]
"""The bytes behind the correlation id -> the decoded request. Its kind is part of it, since two kinds may
have the same bytes there."""

NOTHING: Known = BoundedCache(0)
OWN_HEARTBEATS = 20_000
"""Heartbeats that sessions remember each for itself, all together; beyond it all are forgotten."""


class HeartbeatCache:
    """Remembered heartbeats, for all connections of a server. With an authorizer each connection remembers
    those that its principal was allowed: to look one up needs no other check then, and all of them are
    forgotten when an ACL changes. Those of the consumer protocol each connection remembers for itself anyway:
    it is noted where such a member is."""

    def __init__(self, runtime: GroupRuntime, authorizer: Authority) -> None:
        self.known: Known = BoundedCache(REMEMBERED_BYTES) if authorizer.is_open else NOTHING
        """The heartbeats that a new connection knows."""
        self._authorizer = authorizer
        self._own: dict[Answerable, Known] = {}
        self._remembered = 0
        authorizer.observe(self._forget)
        self._partition_of = runtime.partition_of
        self._decoders: tuple[Decoder, ...] = tuple(
            decoder(HeartbeatRequest, version) for version in range(MAX_VERSION + 1)
        )

    def learn(self, session: Answerable, host: str, frame: bytes, version: int) -> Known:
        """Decode a frame (without its size) and remember it, if the principal is allowed. Returns what the
        session knows from now on. Raises `MalformedError`."""
        _, position = decode_request_header(frame)
        request, _ = self._decoders[version](frame, position)
        group_id, member_id = request.group_id, request.member_id
        instance_id, generation = request.group_instance_id, request.generation_id
        if not self._allowed(session, host, group_id):
            return self._own.get(session, NOTHING)
        known = self.known if self._authorizer.is_open and session not in self._own else self._own_of(session)
        kind, shard = kind_of(API_KEY, version), self._partition_of(group_id)
        heartbeat = (kind, *_SUCCESS[version], shard, group_id, generation, member_id, instance_id)
        known.remember(frame[8:], heartbeat, group_id, generation, member_id, instance_id)
        return known

    def request_of(
        self, session: Answerable, frame: bytes, version: int
    ) -> ConsumerGroupHeartbeatRequest | None:
        """The request in a frame (without its size) that `learn_stay` remembered: it needs not be decoded
        when something is to be done for it. None: it is another one."""
        found = self._own.get(session, NOTHING).get(frame[8:])
        if found is None or found[0] != kind_of(STAY_KEY, version):
            return None
        *_, group_id, epoch, member_id, last = found
        return ConsumerGroupHeartbeatRequest(group_id, member_id, epoch, Last(*last).instance_id)

    def learn_stay(self, call: Call, frame: bytes, response: ConsumerGroupHeartbeatResponse) -> Known | None:
        """Remember a heartbeat of the consumer protocol that was allowed, with its answer. Returns what the
        session knows from now on; None: as before."""
        request, version = call.request, call.api_version
        last: Last | None = None
        if len(frame) <= LONGEST_STAY_BYTES:
            last = last_of(request, response, call.client_id, call.client_host)
        if last is None:
            return None
        known, key = self._own.get(call.connection, NOTHING), frame[8:]
        before = known.get(key)
        if before is not None and before[-1] == last:  # it goes the long way again and again
            return None
        known = self._own_of(call.connection)
        body = encoder(ConsumerGroupHeartbeatResponse, version)(response)
        group_id, epoch, member_id = request.group_id, request.member_epoch, request.member_id
        kind, shard = kind_of(STAY_KEY, version), self._partition_of(group_id)
        frames = _around(_pack_stay(0, body))
        heartbeat = (kind, *frames, shard, group_id, epoch, member_id, (*last,))
        known.remember(key, heartbeat, *frames, group_id, epoch, member_id, last, *last)
        return known

    def _allowed(self, session: Answerable, host: str, group_id: str) -> bool:
        return self._authorizer.is_open or self._authorizer.authorize(
            session.principal, host[1:], Operation.READ, ResourceType.GROUP, group_id
        )

    def left(self, session: Answerable) -> None:
        """The session is over."""
        self._own.pop(session, None)

    def _own_of(self, session: Answerable) -> Known:
        self._remembered += 1
        if self._remembered > OWN_HEARTBEATS:
            self._forget()
        known = self._own.get(session)
        if known is None:
            known = self._own[session] = BoundedCache(REMEMBERED_BYTES)
        return known

    def _forget(self) -> None:
        for known in self._own.values():
            known.forget()
        self._remembered = 0
