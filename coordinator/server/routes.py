"""From an API key and version to its decoder, its handler and its encoder."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringleader.coordinator.server.handlers import Handler
from ringleader.protocol.codec import Decoder, Encoder, decoder, encoder
from ringleader.protocol.frames import API_VERSIONS_KEY, request_class, response_class

_pack = struct.Struct(">ii").pack
_pack_flexible = struct.Struct(">iix").pack

Frame = Callable[[Any, int], tuple[bytes, bytes]]
"""(response, correlation id) -> size and header, body."""


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
    framers: list[Frame | None]
    """By version likewise: encode a response and put the header before it."""
    requests: int = 0
    """How many came so far."""

    def decoder(self, version: int) -> Decoder:
        """The decoder of a version within `low` and `high`."""
        found = self.decoders[version]
        if found is None:
            request = request_class(self.api_key)
            assert request is not None
            found = self.decoders[version] = decoder(request, version)
        return found

    def framer(self, version: int) -> Frame:
        """What makes a response frame of a version within `low` and `high`."""
        found = self.framers[version]
        if found is None:
            response = response_class(self.api_key)
            assert response is not None
            # The response header of ApiVersions never has tagged fields: a client reads it before it knows
            # what the node speaks (KIP-511).
            flexible = version >= self.flexible and self.api_key != API_VERSIONS_KEY
            found = self.framers[version] = _framer(encoder(response, version), flexible)
        return found


def _framer(encode: Encoder, flexible: bool) -> Frame:
    def frame(response: Any, correlation_id: int) -> tuple[bytes, bytes]:
        body = encode(response)
        return _pack(len(body) + 4, correlation_id), body

    def frame_flexible(response: Any, correlation_id: int) -> tuple[bytes, bytes]:
        body = encode(response)
        return _pack_flexible(len(body) + 5, correlation_id), body

    return frame_flexible if flexible else frame


def build_routes(handlers: dict[int, Handler]) -> dict[int, Route]:
    """A route for each handler, at the versions that the message classes declare."""
    routes = {}
    for api_key, handler in handlers.items():
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
            framers=[None] * versions,
        )
    return routes
