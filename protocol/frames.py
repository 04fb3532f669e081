"""Frames: the size, the header, and the body of a request or response.

A frame is an int32 size and that many bytes. Request header v1 holds api key, api version, correlation id and
client
id; v2, for flexible versions (KIP-482), adds tagged fields, and keeps the two-byte length of the client id.
Response
header v0 is the correlation id; v1, for flexible versions, adds tagged fields. ApiVersions responses have
header v0
in every version, so that a client can read them before it knows the node.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeVar

from ringleader.protocol import messages
from ringleader.protocol.codec import decoder, encoder
from ringleader.protocol.errors import EncodeError, MalformedError
from ringleader.protocol.fields import LAST
from ringleader.protocol.schema import Message
from ringleader.protocol.wire import skip_tags

_M = TypeVar("_M", bound=Message)

_FIXED = struct.Struct(">hhih")
_REQUEST = struct.Struct(">ihhih")
_RESPONSE = struct.Struct(">ii")
_RESPONSE_FLEXIBLE = struct.Struct(">iix")

API_VERSIONS_KEY = 18

_by_name = [getattr(messages, name) for name in messages.__all__]
REQUESTS: dict[int, type[Message]] = {
    cls.API_KEY: cls for cls in _by_name if issubclass(cls, Message) and cls.KIND == "request"
}
"""Request class by API key."""

RESPONSES: dict[int, type[Message]] = {
    cls.API_KEY: cls for cls in _by_name if issubclass(cls, Message) and cls.KIND == "response"
}
"""Response class by API key."""

_FLEXIBLE_FROM = {key: cls.FLEXIBLE_VERSION for key, cls in REQUESTS.items()}
_NEVER = LAST + 1


@dataclass(slots=True)
class RequestHeader:
    """The header of a request: `correlation_id` comes back in the response; `client_id` may be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def request_class(api_key: int) -> type[Message] | None:
    """The request class of an API, or None for one that is not declared."""
    return REQUESTS.get(api_key)


def response_class(api_key: int) -> type[Message] | None:
    """The response class of an API, or None for one that is not declared."""
    return RESPONSES.get(api_key)


def is_flexible(api_key: int, version: int) -> bool:
    """Whether requests of this version have header v2. ApiVersions above what we know counts as flexible."""
    return version >= _FLEXIBLE_FROM.get(api_key, _NEVER)


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Header of a request frame (without its size) and the position of the body.

    An unknown API is read with header v1: only the key, version and correlation id are of use then. As in
    Kafka, a client id with a length below -1 counts as null, and one that is not UTF-8 is read with
    replacement signs. Raises `MalformedError`.
    """
    version = -1
    field = "api_key"
    try:
        api_key, version, correlation_id, length = _FIXED.unpack_from(frame)
        field = "client_id"
        position = 10
        client_id = None
        if length >= 0:
            position = 10 + length
            if position > len(frame):
                raise ValueError(f"{length} bytes, {len(frame) - 10} are left")
            raw = frame[10:position]
            try:
                client_id = raw.decode()
            except UnicodeDecodeError:
                client_id = raw.decode(errors="replace")
        if version >= _FLEXIBLE_FROM.get(api_key, _NEVER):
            field = "tagged fields"
            position = skip_tags(frame, position) if frame[position] else position + 1
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedError(
            "RequestHeader", version, field, min(len(frame), 10), str(error) or "cut off"
        ) from None
    return RequestHeader(api_key, version, correlation_id, client_id), position


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole request frame, size included. Raises `EncodeError`."""
    body = encoder(type(message), version)(message)
    try:
        name = b"" if client_id is None else client_id.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"client id: {error}") from None
    if len(name) > 32767:
        raise EncodeError(f"client id of {len(name)} bytes")
    tags = b"\0" if version >= message.FLEXIBLE_VERSION else b""
    size = 10 + len(name) + len(tags) + len(body)
    head = _REQUEST.pack(
        size, message.API_KEY, version, correlation_id, -1 if client_id is None else len(name)
    )
    return b"".join((head, name, tags, body))


def encode_response(message: Message, version: int, correlation_id: int) -> bytes:
    """A whole response frame, size included. Raises `EncodeError`."""
    body = encoder(type(message), version)(message)
    if version >= message.FLEXIBLE_VERSION and message.API_KEY != API_VERSIONS_KEY:
        return _RESPONSE_FLEXIBLE.pack(len(body) + 5, correlation_id) + body
    return _RESPONSE.pack(len(body) + 4, correlation_id) + body


def decode_response(cls: type[_M], frame: bytes | memoryview, version: int) -> tuple[int, _M]:
    """Correlation id and message of a response frame (without its size). Raises `MalformedError`.

    The frame of a message with records may be a `memoryview`: its records are views then, too.
    """
    if len(frame) < 4:
        raise MalformedError(cls.__name__, version, "correlation_id", 0, "cut off")
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    position = 4
    if version >= cls.FLEXIBLE_VERSION and cls.API_KEY != API_VERSIONS_KEY:
        try:
            position = skip_tags(frame, 4)
        except (IndexError, ValueError):
            raise MalformedError(cls.__name__, version, "header tagged fields", 4, "cut off") from None
    return correlation_id, decoder(cls, version)(frame, position)[0]
