"""From an API key and version to its decoder, its handler and its encoder."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.coordinator.server.handlers import Handler
from ringleader.protocol.codec import Decoder, Encoder, decoder, encoder
from ringleader.protocol.frames import API_VERSIONS_KEY, request_class, response_class


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
    encoders: list[Encoder | None]

    def decoder(self, version: int) -> Decoder:
        """The decoder of a version within `low` and `high`."""
        found = self.decoders[version]
        if found is None:
            request = request_class(self.api_key)
            assert request is not None
            found = self.decoders[version] = decoder(request, version)
        return found

    def encoder(self, version: int) -> Encoder:
        """The encoder of the response of a version within `low` and `high`."""
        found = self.encoders[version]
        if found is None:
            response = response_class(self.api_key)
            assert response is not None
            found = self.encoders[version] = encoder(response, version)
        return found

    def flexible_response(self, version: int) -> bool:
        """Whether the response header has tagged fields. Those of ApiVersions never do: a client reads them
        before it knows what the node speaks (KIP-511)."""
        return version >= self.flexible and self.api_key != API_VERSIONS_KEY


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
            encoders=[None] * versions,
        )
    return routes
