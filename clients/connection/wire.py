"""The bytes of a connection to a broker, without a socket: the awaited and the blocking connection stand on
it.

It knows the versions that the broker serves, makes request frames, and reads answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TypeVar

from ringleader.clients.errors import UnsupportedVersionError
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from ringleader.protocol.schema import Message

MAX_GREETING_BYTES = 1024 * 1024
"""The limit of an answer before the broker has proved that it is one."""
CORRELATION_IDS = 2**31

R = TypeVar("R", bound=Message)


class Wire:
    """One connection's side of the protocol. `address` stands in errors. An answer of more than
    `max_response_bytes` ends the connection before its memory is taken."""

    def __init__(self, address: str, client_id: str | None, max_response_bytes: int) -> None:
        self.address = address
        self.limit_bytes = min(max_response_bytes, MAX_GREETING_BYTES)
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.features: Mapping[str, int] = {}
        """The cluster's features, and the level of each (KIP-584)."""
        self._client_id = client_id
        self._max_response_bytes = max_response_bytes
        self._ids = itertools.count()
        self.begin()

    # ---- versions ----

    def begin(self) -> None:
        """Nothing is known but that the broker serves ApiVersions."""
        self.versions = {ApiVersionsRequest.API_KEY: (0, ApiVersionsRequest.MAX_VERSION)}

    def learn(self, answer: ApiVersionsResponse) -> None:
        """Take over the versions and features in an answer to ApiVersions."""
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        self.features = {one.name: one.max_version_level for one in answer.finalized_features}

    def established(self) -> None:
        """The broker has proved that it is one: its answers may be long."""
        self.limit_bytes = self._max_response_bytes

    @property
    def half_known(self) -> bool:
        """Whether the versions are those for clients that have not logged in, without Metadata: ask again."""
        return MetadataRequest.API_KEY not in self.versions

    def serves(self, message: type[Message]) -> bool:
        """Whether both sides know a version of it."""
        low, high = self.versions.get(message.API_KEY, (0, -1))
        return min(high, message.MAX_VERSION) >= max(low, message.MIN_VERSION)

    def version(self, message: type[Message], highest: int = 32767) -> int:
        """The highest version up to `highest` that both sides know. Raises UnsupportedVersionError."""
        name = message.__name__.removesuffix("Request")
        served = self.versions.get(message.API_KEY)
        if served is None:
            raise UnsupportedVersionError(
                f"{self.address} does not serve {name}", ErrorCode.UNSUPPORTED_VERSION
            )
        version = min(served[1], message.MAX_VERSION, highest)
        if version < max(served[0], message.MIN_VERSION):
            raise UnsupportedVersionError(
                f"{self.address} serves {name} v{served[0]} to v{served[1]}, "
                f"this client speaks v{message.MIN_VERSION} to v{message.MAX_VERSION}",
                ErrorCode.UNSUPPORTED_VERSION,
            )
        return int(version)

    # ---- frames ----

    def request(self, message: Message, version: int, client_id: str | None = None) -> tuple[int, bytes]:
        """A correlation id, and the frame of the request with it. `client_id`: in place of the connection's.
        Raises EncodeError."""
        correlation_id = next(self._ids) % CORRELATION_IDS
        return correlation_id, encode_request(
            message, version, correlation_id, self._client_id if client_id is None else client_id
        )

    def answer(self, response: type[R], frame: bytes | memoryview, version: int) -> tuple[int, R]:
        """The correlation id and the message of an answer without its size. Raises MalformedError."""
        # A broker that does not know the version of ApiVersions answers in the layout of version 0.
        if response is ApiVersionsResponse and bytes(frame[4:6]) == b"\0\x23":
            version = 0
        return decode_response(response, frame, version)
