"""How a consumer processes records: the arguments of `process`."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from ringleader.clients.checks import check, check_bounds, check_fields, seconds
from ringleader.clients.process.policies import Policies, Policy, Retry, RetryTopics

Order = Literal["key", "partition", "none"]


class ProcessOptions(TypedDict, total=False):
    """Options of `process`: fields of `ProcessSettings`."""

    concurrency: int
    order: Order
    failures: Policies
    record_timeout_s: float | None
    executor: Executor | None
    max_waiting_records: int
    max_waiting_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """How records are processed. Raises ValueError for what cannot work."""

    concurrency: int = 100
    """Records that are in the hands of handlers at a time, at most."""
    order: Order = "key"
    """Records that are processed one after the other, in the order of the log: those of a partition with the
    same key, those of a partition, or none. With "key", records without one are in no order."""
    failures: Policies = field(default_factory=dict)
    """Policies for exceptions of the handler or a deserializer, by its type; the nearest base counts.
    Without one: `Stop()`."""
    record_timeout_s: float | None = None
    """Time limit of one call of the handler. A coroutine is cancelled then; a thread cannot be: it goes on,
    in its place of `concurrency`, but its result does not count."""
    executor: Executor | None = None
    """Where a plain handler runs, instead of in threads of its own: a ProcessPoolExecutor for work that needs
    the processor."""
    max_waiting_records: int = 2_000
    """Records that are asked for and not done, of all partitions; when it is reached, no more are asked
    for."""
    max_waiting_bytes: int = 64 * 1024 * 1024
    """Keys and values of these records; soft, for a record that is larger still comes."""

    def __post_init__(self) -> None:
        """Raises ValueError."""
        check_fields(self)
        check_bounds(self, "concurrency", "max_waiting_records", "max_waiting_bytes", least=1)
        if self.record_timeout_s is not None:
            seconds(self.record_timeout_s)
        for kind, policy in self.failures.items():
            if not isinstance(kind, type) or not issubclass(kind, Exception):
                raise ValueError(f"failures: {kind!r} is no type of exception")
            check(f"failures[{kind.__name__}]", policy, Policy)

    @property
    def retry_topics(self) -> frozenset[str]:
        """Topics whose records wait until they are due."""
        policies = [one.then if isinstance(one, Retry) else one for one in self.failures.values()]
        return frozenset(name for one in policies if isinstance(one, RetryTopics) for name in one.topics)
