"""Requests held against quotas: the use of each connection is recorded; beyond its quota its answer has a
throttle time, and it is not read from for that time (KIP-219).

Without a quota of users or client ids there is no `Throttle`, and without one that counts for the caller a
connection has no `Account`: nothing is recorded then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ringleader.coordinator.clock import Clock
from ringleader.coordinator.security.quotas import ClientQuotas, Rate, Sensors, TokenBucket
from ringleader.coordinator.server.call import Call, Message, NoAnswer
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

if TYPE_CHECKING:
    from ringleader.coordinator.security.principal import Principal
    from ringleader.coordinator.server.services import Services

PRODUCE: Final = ProduceRequest.API_KEY
FETCH: Final = FetchRequest.API_KEY
STRICT_SINCE: Final = {
    CreateTopicsRequest.API_KEY: 6,
    DeleteTopicsRequest.API_KEY: 5,
    CreatePartitionsRequest.API_KEY: 3,
}
"""APIs that change topics, and the first version that is refused beyond controller_mutation_rate; those
before are throttled alone (KIP-599)."""
EXEMPT: Final = frozenset((SaslHandshakeRequest.API_KEY, SaslAuthenticateRequest.API_KEY))
CONSUMER = -1
"""The replica id of a client that is no follower: brokers that follow have no quota here."""
PARTITION_BYTES = 48
"""Bytes for a partition in the answer to a Fetch besides its records, roughly."""

_NOTHING = Sensors(None, None, None, None)

T = TypeVar("T")


class Metered(Protocol):
    """A connection, as quotas see it."""

    @property
    def moved_ms(self) -> int:
        """The time of the last read."""

    @property
    def account(self) -> Account | None:
        """Its account so far."""

    def mute(self, throttle_ms: int) -> None:
        """Neither read nor work on anything for that time (KIP-219)."""


class Throttle:
    """The quotas of a server's clients, while there are quotas of users or client ids."""

    def __init__(self, quotas: ClientQuotas, now_ms: Clock) -> None:
        self._quotas = quotas
        self.now_ms = now_ms
        windows = quotas.windows
        self.fetched_s = (windows.samples - 1) * windows.window_ms / 1000
        """The most that an answer to a Fetch has, in seconds of its quota: more could never be sent."""
        self.request_most_ms = windows.window_ms
        """As in Kafka, the longest throttle time that an answer has for request_percentage."""
        self.rests_most_ms = windows.samples * windows.window_ms
        """A connection rests no longer than this while its user is beyond request_percentage: then no use
        from before counts, but the use of its other connections since then may."""

    def unknown(self, connection: Metered) -> Account:
        """The account of a connection whose user or client id is not known yet."""
        return Account(self, connection)

    def account(self, connection: Metered, principal: Principal, client_id: str | None) -> Account | None:
        """The account of the caller; None: no quota counts for it."""
        sensors = self._quotas.sensors(principal.name, client_id or "", connection.moved_ms)
        if sensors is None:
            return None
        account = connection.account
        if account is None:
            account = Account(self, connection)
            account.enter()
        account.sensors = sensors
        account.fresh = False
        return account


class Account:
    """The use of a connection, for whose user or client id a quota counts.

    Time is what the loop spends on reading its requests, on their handlers, and on making and sending their
    answers: all that happens between `enter` and `leave`.
    """

    __slots__ = (
        "_began_s",
        "_connection",
        "_request_bytes",
        "_rests_since_ms",
        "_throttle",
        "fresh",
        "over",
        "sensors",
    )

    def __init__(self, throttle: Throttle, connection: Metered) -> None:
        self._throttle = throttle
        self._connection = connection
        self.sensors = _NOTHING
        self.over = True
        """No short ways now: the next answer may need a throttle time."""
        self.fresh = True
        """No request came yet."""
        self._request_bytes = 0
        self._began_s = 0.0
        self._rests_since_ms: int | None = None

    # ---- time ----

    def enter(self) -> None:
        """The loop begins with something of this connection."""
        if not self._began_s:
            self._began_s = perf_counter()

    def leave(self) -> None:
        """It has something else to do."""
        rate = self.sensors.request
        if rate is not None:
            now_ms = self._throttle.now_ms()
            self._spend(rate, now_ms)
            self.over = rate.throttle_ms(now_ms) > 0
        elif self.sensors is not _NOTHING:
            self.over = False
        self._began_s = 0.0

    def _spend(self, rate: Rate, now_ms: int) -> None:
        if self._began_s:
            now_s = perf_counter()
            rate.record((now_s - self._began_s) * 100, now_ms)
            self._began_s = now_s

    def timed(self, steps: Any) -> Any:
        """The same generator or coroutine, with the time that its steps take on this account."""
        return _timed(self, steps)

    # ---- requests and answers ----

    def begin(self, request: Message, frame_bytes: int) -> None:
        """A request came, and will be handled next."""
        self._request_bytes = frame_bytes
        rate = self.sensors.fetch
        if rate is not None and request.API_KEY == FETCH:
            # As in Kafka: an answer with more would be refused again and again.
            most = max(1, int(rate.bound * self._throttle.fetched_s))
            request.max_bytes = min(request.max_bytes, most)
            request.min_bytes = min(request.min_bytes, request.max_bytes)

    def answered(self, call: Call, response: Message | NoAnswer) -> Message | NoAnswer:
        """The answer that is sent: with the throttle time if there is one. The connection is not read from
        then."""
        key = call.api_key
        if key in EXEMPT or (key == FETCH and call.request.follower != CONSUMER):
            return response
        now_ms = self._throttle.now_ms()
        throttle_ms = self._request_ms(now_ms)
        if isinstance(response, NoAnswer):
            self._connection.mute(self._produced_ms(now_ms))
            return response
        if key == PRODUCE:
            throttle_ms = max(throttle_ms, self._produced_ms(now_ms))
        elif key == FETCH:
            fetched_ms = self._fetched_ms(_records_bytes(response), throttle_ms, now_ms)
            if throttle_ms := max(throttle_ms, fetched_ms):
                response = FetchResponse() if call.withheld is None else call.withheld()
        elif key in STRICT_SINCE:
            throttle_ms = max(throttle_ms, response.throttle_time_ms)
        if not throttle_ms:
            return response
        self._connection.mute(throttle_ms)
        if not hasattr(response, "throttle_time_ms"):
            return response
        response.throttle_time_ms = max(throttle_ms, response.throttle_time_ms)
        return response

    def frame_throttle_ms(self, call: Call, frame_bytes: int) -> int:
        """Likewise of a Fetch whose answer came as a frame of a broker: the throttle time that is answered
        instead of it; 0: the frame is the answer."""
        if call.api_key != FETCH or call.request.follower != CONSUMER:
            return 0
        now_ms = self._throttle.now_ms()
        throttle_ms = self._request_ms(now_ms)
        throttle_ms = max(throttle_ms, self._fetched_ms(frame_bytes, throttle_ms, now_ms))
        if throttle_ms:
            self._connection.mute(throttle_ms)
        return throttle_ms

    def _request_ms(self, now_ms: int) -> int:
        rate = self.sensors.request
        if rate is None:
            return 0
        self._spend(rate, now_ms)
        return min(rate.throttle_ms(now_ms), self._throttle.request_most_ms)

    def rests_ms(self) -> int:
        """How much longer a connection whose throttle is over has to rest, since the rate of all those with
        which it shares request_percentage is still above; 0: not at all. Kafka ends the throttle then, and a
        user with many connections has a request of each in every window; but Kafka has many threads."""
        rate = self.sensors.request
        now_ms = self._throttle.now_ms()
        more_ms = 0 if rate is None else min(rate.throttle_ms(now_ms), self._throttle.request_most_ms)
        since_ms = self._rests_since_ms
        if since_ms is None:
            since_ms = self._rests_since_ms = now_ms
        more_ms = min(more_ms, since_ms + self._throttle.rests_most_ms - now_ms)
        if more_ms <= 0:
            self._rests_since_ms = None
            return 0
        return more_ms

    def _produced_ms(self, now_ms: int) -> int:
        rate = self.sensors.produce
        if rate is None:
            return 0
        rate.record(self._request_bytes, now_ms)
        return rate.throttle_ms(now_ms)

    def _fetched_ms(self, answer_bytes: int, request_ms: int, now_ms: int) -> int:
        """An answer that is withheld counts for nothing."""
        rate = self.sensors.fetch
        if rate is None:
            return 0
        rate.record(answer_bytes, now_ms)
        throttle_ms = rate.throttle_ms(now_ms)
        if throttle_ms or request_ms:
            rate.record(-answer_bytes, now_ms)
        return throttle_ms


def _records_bytes(response: FetchResponse) -> int:
    return sum(
        len(topic.topic or topic.topic_id)
        + sum(PARTITION_BYTES + len(one.records or b"") for one in topic.partitions)
        for topic in response.responses
    )


@coroutine
def _timed(account: Account, steps: Any) -> Generator[Any, Any, Any]:
    step: Callable[[], Any] = partial(steps.send, None)
    while True:
        account.enter()
        try:
            given = step()
        except StopIteration as stop:
            return stop.value
        finally:
            account.leave()
        try:
            step = partial(steps.send, (yield given))
        except BaseException as error:
            step = partial(steps.throw, error)


class Mutations:
    """The changes of topics that one request may make, by controller_mutation_rate (KIP-599)."""

    def __init__(self, bucket: TokenBucket | None, strict: bool, now_ms: Clock) -> None:
        self._bucket = bucket
        self._strict = strict
        self._now_ms = now_ms
        self._refused_ms = 0

    @property
    def limited(self) -> bool:
        """Whether a quota counts at all."""
        return self._bucket is not None

    def take(self, partitions: int) -> None:
        """That number is about to be created or deleted. Raises KafkaError: THROTTLING_QUOTA_EXCEEDED."""
        if not self.takes(partitions):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def takes(self, partitions: int) -> bool:
        """Likewise; returns whether it is allowed."""
        if self._bucket is None:
            return True
        now_ms = self._now_ms()
        if self._strict:
            self._refused_ms = max(self._refused_ms, self._bucket.throttle_ms(now_ms))
            if self._refused_ms:
                return False
        self._bucket.record(partitions, now_ms)
        return True

    @property
    def throttle_ms(self) -> int:
        """For how long the caller is to change nothing more, with or without a field for it in the answer."""
        if self._bucket is None or self._strict:
            return self._refused_ms
        return self._bucket.throttle_ms(self._now_ms())


def mutations(services: Services, call: Call) -> Mutations:
    """The changes that the request of a call may make."""
    strict = call.api_version >= STRICT_SINCE.get(call.api_key, call.api_version + 1)
    quotas = None if services.security is None else services.security.quotas
    if quotas is None or not quotas.of_clients:
        return Mutations(None, strict, services.now_ms)
    principal = call.connection.principal
    sensors = quotas.sensors(principal.name, call.client_id or "", services.now_ms())
    return Mutations(None if sensors is None else sensors.mutation, strict, services.now_ms)
