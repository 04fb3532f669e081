"""From an API key and version to its decoder, its handler and its encoder."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleader.coordinator.security.rights import rights_of
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES
from ringleader.coordinator.server.services import Handler
from ringleader.protocol.codec import Decoder, PiecesEncoder, decoder, pieces_encoder
from ringleader.protocol.frames import API_VERSIONS_KEY, request_class, response_class
from ringleader.protocol.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    FetchRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetDeleteRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings

_pack = struct.Struct(">ii").pack
_pack_flexible = struct.Struct(">iix").pack

ELEMENT_EFFORT = 24
"""The cost of decoding one entry with a text, in numbers of an array: as `layout.effort` counts it, for which
a decoder's budget is spent."""

IDS_BYTES = 131_072
"""Room in a JoinGroup or SyncGroup besides metadata or assignments: for four ids (group, member, instance,
protocol), each of at most 32 kB (`wire.STRING_MAX`)."""

OPAQUE_KEYS = frozenset(kind.API_KEY for kind in (ProduceRequest, JoinGroupRequest, SyncGroupRequest))
"""APIs whose requests are long by bytes that are kept as they are."""

FEW = {
    JoinGroupRequest.API_KEY: 20,
    LeaveGroupRequest.API_KEY: 2,
    OffsetDeleteRequest.API_KEY: 2,
    CreateAclsRequest.API_KEY: 4,
    DeleteAclsRequest.API_KEY: 40,
}
"""Divisors of the number of elements, for APIs whose handlers work on each of them in one go. Measured, as a
multiple of decoding the element: creating an ACL 4; removing a member 1.3 and an offset 1.7, on top of it; a
protocol 1.6, and each vote of the group goes through those of all members again. A filter is compared with
every ACL: 4 ms with 15,000 of them. No client has nearly as many protocols or filters."""

NUMBER_KEYS = frozenset(
    kind.API_KEY for kind in (FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest)
)
"""APIs whose requests are long by partitions described by numbers alone: a third of the effort each."""


@dataclass(slots=True)
class Route:
    """One API: what is served of it, and how."""

    api_key: int
    name: str
    """As Kafka calls it, for log lines: `JoinGroup`."""
    low: int
    """Lowest version that is served."""
    high: int
    flexible: int
    """First version with request header v2 and response header v1 (but for ApiVersions)."""
    handler: Handler
    decoders: list[Decoder | None]
    """By version; None until the first request of that version."""
    encoders: list[PiecesEncoder | None]
    """By version likewise."""
    max_frame_bytes: int
    """A longer request is refused before it has arrived."""
    budget: int
    """For the decoder."""
    requests: int = 0
    """Requests so far."""

    def decoder(self, version: int) -> Decoder:
        """The decoder of a version within `low` and `high`."""
        found = self.decoders[version]
        if found is None:
            request = request_class(self.api_key)
            assert request is not None
            found = self.decoders[version] = decoder(request, version)
        return found

    def encoder(self, version: int) -> PiecesEncoder:
        """The encoder of responses of a version within `low` and `high`."""
        found = self.encoders[version]
        if found is None:
            response = response_class(self.api_key)
            assert response is not None
            found = self.encoders[version] = pieces_encoder(response, version)
        return found

    def head(self, version: int, correlation_id: int, body_bytes: int) -> bytes:
        """Size and header of a response."""
        # The response header of ApiVersions never has tagged fields: a client reads it before it knows
        # the node's versions (KIP-511).
        if version >= self.flexible and self.api_key != API_VERSIONS_KEY:
            return _pack_flexible(body_bytes + 5, correlation_id)
        return _pack(body_bytes + 4, correlation_id)

    def held_bytes(self, frame_bytes: int) -> int:
        """The most memory for a request while it is worked on: the frame, the parts that were cut out of it,
        and up to `HELD_ENTRY_BYTES` for each entry, of which the least is 3 bytes on the wire."""
        if self.api_key in OPAQUE_KEYS:
            return 2 * frame_bytes
        return min(64 * frame_bytes, 2 * frame_bytes + HELD_ENTRY_BYTES * self.budget // ELEMENT_EFFORT)


def max_frame_bytes(api_key: int, settings: Settings) -> int:
    """Longest request of an API, whatever its version."""
    most = settings.request_max_bytes
    if api_key == ProduceRequest.API_KEY:
        most = settings.socket_request_max_bytes
    elif api_key == JoinGroupRequest.API_KEY:
        most = 2 * settings.member_max_metadata_bytes + IDS_BYTES  # a little too much gets an answer
    elif api_key == SyncGroupRequest.API_KEY:
        most = settings.group_max_record_bytes + IDS_BYTES
    return min(most, settings.socket_request_max_bytes)


def build_routes(handlers: dict[int, Handler], settings: Settings) -> dict[int, Route]:
    """A route for each handler, at the versions that the message classes declare. Raises `UnnamedApiError`
    for a handler of an API that the table of rights does not name."""
    routes = {}
    effort = settings.request_max_elements * ELEMENT_EFFORT
    for api_key, handler in handlers.items():
        rights_of(api_key)
        request = request_class(api_key)
        assert request is not None, f"no message for API {api_key}"
        versions = request.MAX_VERSION + 1
        routes[api_key] = Route(
            api_key=api_key,
            name=request.__name__.removesuffix("Request"),
            low=request.MIN_VERSION,
            high=request.MAX_VERSION,
            flexible=request.FLEXIBLE_VERSION,
            handler=handler,
            decoders=[None] * versions,
            encoders=[None] * versions,
            max_frame_bytes=max_frame_bytes(api_key, settings),
            budget=2 * effort if api_key in NUMBER_KEYS else effort // FEW.get(api_key, 1),
        )
    return routes
