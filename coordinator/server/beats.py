"""Heartbeats: the requests that a coordinator gets most of, and the only ones that get a path of their own.

A member sends the same bytes again and again, but for the correlation id. So the decoded request is
remembered by its bytes, and a heartbeat costs a slice, a lookup, the group machine's own work and one `pack`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.codec import Decoder, decoder
from ringleader.protocol.frames import decode_request_header
from ringleader.protocol.messages import HeartbeatRequest

API_KEY = 12

MAX_VERSION = HeartbeatRequest.MAX_VERSION

REMEMBERED_MAX = 50_000
"""Requests remembered per version; beyond that all are forgotten and learnt again."""

REMEMBERED_BYTES_MAX = 1_024
"""A longer heartbeat is decoded each time: what is remembered has a bound in bytes too."""

Beat = tuple[Callable[[str, int, str, str | None, int], int], str, int, str, str | None]
"""The shard's method, group id, generation, member id, instance id."""

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


class Beats:
    """What is remembered of heartbeats, for all connections of a server."""

    def __init__(self, runtime: GroupRuntime) -> None:
        self.known: tuple[dict[bytes, Beat], ...] = tuple({} for _ in PACK)
        """By version: what follows the correlation id -> the decoded request."""
        self._shard_of = runtime.shard_of
        self.unusual = runtime.heartbeat_refused
        """To be called with the group id when a heartbeat was answered with an error."""
        self._decoders: tuple[Decoder, ...] = tuple(
            decoder(HeartbeatRequest, version) for version in range(MAX_VERSION + 1)
        )

    def learn(self, frame: bytes, version: int) -> Beat:
        """Decode a frame (without its size) and remember it. Raises `MalformedError`."""
        _, position = decode_request_header(frame)
        request, _ = self._decoders[version](frame, position)
        beat: Beat = (
            self._shard_of(request.group_id).heartbeat,
            request.group_id,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
        )
        known = self.known[version]
        if len(known) >= REMEMBERED_MAX:
            known.clear()
        if len(frame) <= REMEMBERED_BYTES_MAX:
            known[frame[8:]] = beat
        return beat
