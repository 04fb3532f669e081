"""Serializers and deserializers that get more than a key or a value, and may wait for something."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ringleader.clients.checks import check_fields, seconds
from ringleader.clients.errors import RequestTimedOutError


class SerializationContext(NamedTuple):
    """Where a key or a value belongs. confluent-kafka's serializers take it in place of their own."""

    topic: str
    field: Literal["key", "value"]
    headers: list[tuple[str, bytes | None]]
    """Those of the record. A serializer may add some; a deserializer gets a copy."""


@dataclass(frozen=True, slots=True)
class WithContext:
    """A serializer or a deserializer that is called with the object or the bytes, and with a
    `SerializationContext`.

    With a coroutine function it may wait, in the event loop of the client. If it raises RetriableError, or
    takes longer than `timeout_s`, the fault is not the record's: a consumer raises
    DeserializerUnavailableError and asks again, a producer tries again within `max_block_ms`.
    """

    call: Callable[[Any, SerializationContext], Any]
    timeout_s: float = 10.0
    """Time limit of one call of a coroutine function."""
    close: Callable[[], Awaitable[Any]] | None = None
    """Called in the client's event loop when the client has stopped."""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_fields(self)
        seconds(self.timeout_s)

    @property
    def awaits(self) -> bool:
        """Whether it may wait."""
        return is_async(self.call)

    async def made(self, given: Any, context: SerializationContext) -> Any:
        """The result of a call. Raises what the call raises, RequestTimedOutError."""
        result = self.call(given, context)
        if not self.awaits:
            return result
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                return await result
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestTimedOutError(f"it did not end within {self.timeout_s:g} s") from None


async def close_all(*ones: object) -> None:
    """The client has stopped that these were given to."""
    for one in ones:
        if isinstance(one, WithContext) and one.close is not None:
            await one.close()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call of it is to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
