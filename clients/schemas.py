"""Schemas of a Confluent Schema Registry, or of what speaks its API, with confluent-kafka's own serializers:
needs the extra `schemas`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2
from confluent_kafka.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.error import OAuthTokenError
from confluent_kafka.serialization import MessageField
from confluent_kafka.serialization import SerializationContext as TheirContext

from ringleader.clients.errors import RetriableError
from ringleader.clients.with_context import SerializationContext, WithContext

_ABOUT_THE_RECORD = (404, 409, 422)
"""HTTP status codes: there is no such schema; it does not fit the former ones; it is not valid."""


def registered(
    registry: Mapping[str, Any],
    build: Callable[[AsyncSchemaRegistryClient], Awaitable[Any]],
    *,
    timeout_s: float = 10.0,
) -> WithContext:
    """A serializer or deserializer of confluent-kafka for one consumer or producer: `registered({"url": URL},
    AsyncAvroDeserializer)`.

    `registry`: the configuration of its registry client, as confluent-kafka's AsyncSchemaRegistryClient takes
    it. `build` makes the (de)serializer of that client; a class of confluent-kafka whose name begins with
    Async does. Both are made when the first record comes, in the event loop of the consumer or producer, and
    closed with it. Schemas are asked for once. `timeout_s`: for one record, all requests together.

    A registry that is away, or answers with anything but a schema or that there is none, is a RetriableError:
    see `WithContext`.
    """
    work = _Registered({"timeout": timeout_s, "max.retries": 0} | dict(registry), build)
    return WithContext(work, timeout_s, close=work.close)


class _Registered:
    def __init__(
        self, registry: dict[str, Any], build: Callable[[AsyncSchemaRegistryClient], Awaitable[Any]]
    ) -> None:
        self._registry = registry
        self._build = build
        self._client: AsyncSchemaRegistryClient | None = None
        self._made: Any = None
        self._making = asyncio.Lock()

    async def __call__(self, given: Any, context: SerializationContext) -> Any:
        try:
            async with self._making:
                if self._made is None:
                    self._client = self._client or AsyncSchemaRegistryClient(self._registry)
                    self._made = await self._build(self._client)
            headers: Any = context.headers  # the same list: a serializer may add some
            theirs = TheirContext(context.topic, MessageField(context.field), headers)
            return await self._made(given, theirs)
        except SchemaRegistryError as error:
            # A proxy's error has no code of the registry.
            if error.http_status_code in _ABOUT_THE_RECORD and error.error_code not in (None, -1):
                raise
            raise RetriableError(f"the schema registry cannot answer: {error}") from error
        except (httpx2.HTTPError, OAuthTokenError) as error:
            raise RetriableError(f"the schema registry cannot be reached: {error!r}") from error

    async def close(self) -> None:
        """End the connections."""
        client, self._client, self._made = self._client, None, None
        if client is not None:
            await client.aclose()
