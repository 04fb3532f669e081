"""Asking the cluster until a deadline: what may work later is tried again; what cannot is reported."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import retrying
from ringleader.clients.errors import BrokerError, ClientError, RetriableError
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name

AGAIN_MS, AGAIN_MAX_MS = 20, 500
LAST_WORD_S = 0.1
"""Time after the deadline in which the last attempt may still report why it failed."""

_DENIED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

T = TypeVar("T")


async def until(deadline_s: float, doing: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of the first attempt that works. `deadline_s`: a time of the event loop. Raises
    `StorageError`: AWAY when there was none in time, UNFIT for what another attempt does not cure."""
    try:
        async with asyncio.timeout_at(deadline_s + LAST_WORD_S):
            return await retrying(deadline_s, Backoff(AGAIN_MS, AGAIN_MAX_MS, random.random), attempt)
    except TimeoutError:
        raise StorageError(Failure.AWAY, f"{doing}: no answer in time") from None
    except RetriableError as error:
        raise StorageError(Failure.AWAY, f"{doing}: {error}") from error
    except ClientError as error:
        raise StorageError(Failure.UNFIT, f"{doing}: {error}") from error


def check(code: int, message: str | None = None, allow: str = "") -> None:
    """Raises RetriableError or BrokerError for an error code of an answer. `allow`: what this node's
    principal has to be allowed."""
    if not code:
        return
    text = f"{error_name(code)}: {message}" if message else error_name(code)
    if KafkaError(code).retriable:
        raise RetriableError(text, code)
    raise BrokerError(f"{text}; allow this node {allow}" if code in _DENIED and allow else text, code)
