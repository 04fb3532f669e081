"""Policies for a record that its handler, or a deserializer, does not accept."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ringleader.clients.checks import check_bounds, check_fields
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import ClientError
from ringleader.clients.fetch.model import Record


class RecordTimedOutError(ClientError):
    """The handler did not end within `record_timeout_s`."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End `process` with the exception: the record is not done, and comes again."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Log a warning, and count the record as done."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Hand the record to another handler, and count it as done when that has ended well.

    `send` gets a `FailedRecord` and may be a coroutine function. An exception of it ends `process`: the
    record comes again."""

    send: Callable[[FailedRecord], Awaitable[Any] | Any]

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_fields(self)


@dataclass(frozen=True, slots=True)
class RetryTopics:
    """Write the record to a topic where it waits for its next attempt, count it as done when that has ended
    well, and do as `then` says when there is no attempt left. `retry_topics` makes it."""

    topics: tuple[str, ...]
    """Those that the consumer has to read, too."""
    put_off: Callable[[FailedRecord], Awaitable[bool]]
    """Writes it; False: there is no attempt left. An exception of it ends `process`: the record comes
    again."""
    then: Stop | Skip | DeadLetter = field(default_factory=Stop)

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after a pause, `times` at most, and then do as `then` says. The records behind it in its lane
    wait; those of other lanes do not, and no place of `concurrency` is taken by the pause.

    The pause begins at `backoff_ms`, doubles, ends at `backoff_max_ms`, and is up to a fifth longer or
    shorter."""

    times: int = 5
    backoff_ms: int = 200
    backoff_max_ms: int = 10_000
    then: Stop | Skip | DeadLetter | RetryTopics = field(default_factory=Stop)

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_fields(self)
        check_bounds(self, "times", "backoff_ms", least=1)
        check_bounds(self, "backoff_max_ms", least=self.backoff_ms)

    def pauses(self) -> Backoff:
        """The pauses of one record."""
        return Backoff(self.backoff_ms, self.backoff_max_ms, random.random)


Policy = Stop | Skip | DeadLetter | RetryTopics | Retry
Policies = Mapping[Any, Policy]
"""By types of exceptions. (A mapping's keys are of one type for mypy: `Any` lets a dict of ValueError in.)"""


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record that was not accepted."""

    record: Record
    """Its key and value are as the deserializers made them; if one of them refused, both are bytes."""
    error: Exception
    """The last exception."""
    tries: int
    """How often the handler was called, before the record came to a retry topic, too; 0: a deserializer
    refused it."""
    raw_key: bytes | None
    raw_value: bytes | None


def policy_for(error: Exception, policies: Policies) -> Policy:
    """The policy of the exception's type, or of the nearest of its bases that has one."""
    return next((policies[kind] for kind in type(error).__mro__ if kind in policies), Stop())
