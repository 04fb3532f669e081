"""Requests, responses and stored values of every API and version."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ringleader.protocol import codec
from ringleader.protocol.codec import decoder, pieces_encoder
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.frames import (
    REQUESTS,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    response_class,
)
from ringleader.protocol.messages import HeartbeatRequest
from ringleader.protocol.refusals import refusal
from ringleader.protocol.schema import Message
from tests.fuzz.mutation import changed_bytes, number
from tests.fuzz.target import Target, promise
from tests.support.wire_reference import full, written
from tests.support.wire_values import PAIRS

HEAD_BYTES = 3
"""Which message and version; whether the body is all, or a frame with its header."""
BUDGET = 500_000
"""More than what any request of an input's size is worth."""
SMALL_BUDGET = 40


def check(data: bytes) -> None:
    if len(data) < HEAD_BYTES:
        return
    cls, version = PAIRS[int.from_bytes(data[:2], "big") % len(PAIRS)]
    body = data[HEAD_BYTES:]
    if data[2] & 1:
        _frame(cls, version, body)
        return
    message = _body(cls, version, body, data[2])
    if message is not None:
        _again(cls, version, message)
        if cls.KIND == "request":
            _refused(cls, version, message)


def _body(cls: type[Message], version: int, body: bytes, kind: int) -> Any:
    is_request = cls.KIND == "request"
    budget = SMALL_BUDGET if kind & 2 else BUDGET
    try:
        found, end = decoder(cls, version)(body, 0, *((budget,) if is_request else ()))
    except MalformedError as error:
        promise((error.message, error.version) == (cls.__name__, version), f"an error about {error.message}")
        promise(0 <= error.position <= len(body), f"an error at byte {error.position} of {len(body)}")
        promise(error.field != "?" or (is_request and kind & 2), f"an error that names no field: {error}")
        return None
    promise(0 <= end <= len(body), f"a message that ends at byte {end} of {len(body)}")
    return found


def _again(cls: type[Message], version: int, message: Any) -> None:
    """Bytes are compared, as a float may be no number, which is equal to none."""
    whole = message.encode(version)
    read = cls.decode(whole, version)
    promise(read.encode(version) == whole, "what was encoded is read as something else")
    promise(b"".join(pieces_encoder(cls, version)(message)) == whole, "in pieces it is something else")


def _refused(cls: type[Message], version: int, request: Any) -> None:
    """Every request can be answered with an error, in its version."""
    response = response_class(cls.API_KEY)
    assert response is not None
    if response.MIN_VERSION <= version <= response.MAX_VERSION:
        refusal(request, version, ErrorCode.UNKNOWN_SERVER_ERROR).encode(version)


def _frame(cls: type[Message], version: int, frame: bytes) -> None:
    if cls.KIND == "response":
        try:
            number, message = decode_response(cls, frame, version)
        except MalformedError:
            return
        whole = encode_response(message, version, number)
        promise(decode_response(cls, whole[4:], version)[0] == number, "another correlation id")
        return
    try:
        header, at = decode_request_header(frame)
    except MalformedError:
        return
    promise(0 < at <= len(frame), f"a header that ends at byte {at} of {len(frame)}")
    request = REQUESTS.get(header.api_key)
    if request is None or not request.MIN_VERSION <= header.api_version <= request.MAX_VERSION:
        return
    try:
        message, _ = decoder(request, header.api_version)(frame, at, BUDGET)
    except MalformedError:
        return
    if header.client_id is None or len(header.client_id) < 8_000:
        whole = encode_request(message, header.api_version, header.correlation_id, header.client_id)
        promise(decode_request_header(whole[4:])[0] == header, "another header")


def seeds() -> Iterator[bytes]:
    for index, (cls, version) in enumerate(PAIRS):
        decoder(cls, version)
        head, message = index.to_bytes(2, "big"), full(cls, version)
        yield head + b"\0" + written(message, version).body
        if version == cls.MAX_VERSION and cls.KIND in ("request", "response"):
            frame = (
                encode_request(message, version, 7, "client")
                if cls.KIND == "request"
                else encode_response(message, version, 7)
            )
            yield head + b"\1" + frame[4:]


def mutate(data: bytes, rng: Random) -> bytes:
    """Only the declaration says where in a body lengths, counts, tags and texts are: these are changed."""
    if len(data) < HEAD_BYTES or rng.random() < 0.1:
        index = rng.randrange(len(PAIRS))
        cls, version = PAIRS[index]
        data = index.to_bytes(2, "big") + b"\0" + written(full(cls, version), version).body
    head, body = data[:HEAD_BYTES], data[HEAD_BYTES:]
    cls, version = PAIRS[int.from_bytes(head[:2], "big") % len(PAIRS)]
    if head[2] & 1 or rng.random() < 0.4:
        return head + changed_bytes(body, rng)
    try:
        good = written(decoder(cls, version)(body, 0)[0], version)
    except (MalformedError, ValueError, AttributeError):
        return head + changed_bytes(body, rng)
    if not good.marks:
        return head + changed_bytes(good.body, rng)
    mark = rng.choice(good.marks)
    old = good.body[mark.start : mark.stop]
    new = changed_bytes(old, rng) if mark.kind in ("tags", "text") else number(rng)
    kind = bytes((rng.choice((0, 0, 0, 2)),))
    return head[:2] + kind + good.replaced(mark, new)


def plant(patch: Any) -> None:
    """One decoder reads a text that is cut off as if it were whole."""
    key = (HeartbeatRequest, HeartbeatRequest.MAX_VERSION)
    original = decoder(*key)

    def careless(data: bytes, position: int, budget: int = BUDGET) -> tuple[Any, int]:
        return original(data + bytes(1), position, budget)[0], len(data) + 1

    patch.setitem(codec._decoders, key, careless)


TARGET = Target(
    "frames",
    "Every body is read or refused by a MalformedError that names the field; what is read can be written, "
    "and "
    "is then read as the same; every request that is read can be refused.",
    check,
    seeds,
    mutate,
    plant,
)
