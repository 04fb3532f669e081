"""Client quotas as Kafka has them (KIP-13, KIP-55, KIP-124, KIP-599, KIP-612): which one counts for whom, and
for how long somebody is throttled who went beyond it. No clock: milliseconds are arguments.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, NamedTuple

from ringleader.coordinator.bounded import BoundedCache
from ringleader.protocol import json_text

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
"""Of entities."""

MAX_ENTITIES = 20_000
"""More with quotas are refused."""
MAX_NAME_BYTES = 1_024
"""Of a user, a client id or an address, in UTF-8."""
MAX_SENSORS = 10_000
"""When there are more, the one without a request for longest is forgotten."""
INACTIVE_MS = 3_600_000
"""One without a request for this time may be forgotten, as in Kafka."""
MOST_MS = 2**31 - 1
"""A longer throttle time does not fit into an answer."""
REMEMBERED_BYTES = 8 * 1024 * 1024
"""The bound of the remembered quotas of clients; when it is reached, all are forgotten and computed again."""


class Quota(StrEnum):
    """The kind of a quota."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    REQUEST_PERCENTAGE = "request_percentage"
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    CONNECTION_CREATION_RATE = "connection_creation_rate"


OF_CLIENTS: Final = (
    Quota.PRODUCER_BYTE_RATE,
    Quota.CONSUMER_BYTE_RATE,
    Quota.REQUEST_PERCENTAGE,
    Quota.CONTROLLER_MUTATION_RATE,
)
"""Of users and client ids; that of connections is of addresses."""

Entity = Mapping[str, str | None]
"""Type -> name; None is the default: who has no quota by name."""
Values = Mapping[str, float]
"""Quota -> how much of it."""


def to_key(entity: Entity) -> str:
    """An entity as the store's key."""
    return json.dumps(dict(sorted(entity.items())))


def from_key(key: str) -> dict[str, str | None]:
    """The entity of a store's key. Raises ValueError, TypeError."""
    entity = json_text.loads(key)
    if not isinstance(entity, dict) or not entity or not entity.keys() <= set(TYPES):
        raise ValueError(key)
    if not all(name is None or isinstance(name, str) for name in entity.values()):
        raise ValueError(key)
    return entity


class Windows(NamedTuple):
    """How many, and how long."""

    samples: int = 11
    window_ms: int = 1_000


@dataclass(slots=True)
class _Sample:
    began_ms: int
    last_ms: int
    amount: float


class Rate:
    """The use per second in the last `samples` windows, the current one among them.

    As Kafka's `Rate` measures: the windows before the first use count as full, so that a start is no burst.
    """

    __slots__ = ("_most", "_samples", "_window_ms", "bound", "last_ms")

    def __init__(self, bound: float, windows: Windows, now_ms: int) -> None:
        self.bound = bound
        """Most per second."""
        self._most, self._window_ms = windows
        self._samples: deque[_Sample] = deque(maxlen=self._most + 1)
        """The last is under way."""
        self.last_ms = now_ms
        """When it was last used."""

    def record(self, amount: float, now_ms: int) -> None:
        """So much more was used."""
        self.last_ms = now_ms
        samples = self._samples
        if not samples or now_ms - samples[-1].began_ms >= self._window_ms:
            samples.append(_Sample(now_ms, now_ms, amount))
        else:
            samples[-1].last_ms = now_ms
            samples[-1].amount += amount

    def throttle_ms(self, now_ms: int) -> int:
        """For how long to use no more, so that the rate comes down to its bound; 0: it is not above."""
        samples, window_ms = self._samples, self._window_ms
        while samples and now_ms - samples[0].last_ms >= self._most * window_ms:
            samples.popleft()
        if not samples:
            return 0
        elapsed_ms = now_ms - samples[0].began_ms
        missing = self._most - 1 - elapsed_ms // window_ms
        if missing > 0:
            elapsed_ms += missing * window_ms
        elapsed_ms = max(elapsed_ms, 1)
        over = sum(sample.amount for sample in samples) * 1000 / elapsed_ms - self.bound
        return round(min(over / self.bound * elapsed_ms, MOST_MS)) if over > 0 else 0


class TokenBucket:
    """Filled with `rate` tokens per second up to `burst`; below nothing it may go, but who strictly keeps to
    the quota is refused then (KIP-599)."""

    __slots__ = ("_filled_ms", "_tokens", "bound", "burst", "last_ms")

    def __init__(self, bound: float, windows: Windows, now_ms: int) -> None:
        self.bound = bound
        """Tokens per second."""
        self.burst = windows.samples * windows.window_ms / 1000
        """In seconds of the bound."""
        self._tokens = bound * self.burst
        self._filled_ms = self.last_ms = now_ms

    def record(self, amount: float, now_ms: int) -> None:
        """`amount` tokens were taken."""
        self._fill(now_ms)
        self._tokens -= amount

    def throttle_ms(self, now_ms: int) -> int:
        """How long it takes until there is no debt; 0: there is none."""
        self._fill(now_ms)
        return round(min(-self._tokens / self.bound * 1000, MOST_MS)) if self._tokens < 0 else 0

    def _fill(self, now_ms: int) -> None:
        fresh = self.bound * (now_ms - self._filled_ms) / 1000
        self._tokens = min(self.bound * self.burst, self._tokens + fresh)
        self._filled_ms = self.last_ms = now_ms


class Sensors(NamedTuple):
    """The rates that count for a user with a client id; None: there is no quota."""

    produce: Rate | None
    fetch: Rate | None
    request: Rate | None
    mutation: TokenBucket | None


DEFAULT_WINDOWS: Final = Windows()

Limit = tuple[str, str, float]
"""For whom a quota is shared - this user, this client id, both; "" is whichever - and its bound."""
Key = tuple[str, str, str]
"""User, client id or address of an entity."""


class ClientQuotas:
    """The current quotas, and their use."""

    def __init__(
        self, windows: Windows = DEFAULT_WINDOWS, mutation_windows: Windows = DEFAULT_WINDOWS
    ) -> None:
        """`mutation_windows`: of controller_mutation_rate."""
        self.windows = windows
        self._mutation_windows = mutation_windows
        self._entities: dict[str, dict[str, float]] = {}
        self._limits: dict[str, dict[tuple[str | None, ...], float]] = {}
        """Quota -> entity, as `_names` writes it -> bound."""
        self._rates: dict[Key, Rate] = {}
        self._buckets: dict[Key, TokenBucket] = {}
        self._found: BoundedCache[tuple[str, str], Sensors | None] = BoundedCache(REMEMBERED_BYTES)
        self._observers: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._entities)

    def apply(self, changed: Mapping[str, Values | None]) -> None:
        """Store's key -> all quotas of that entity; None: it has none. Raises ValueError, TypeError,
        AttributeError for what no store has."""
        fresh = {
            key: {str(Quota(name)): _bound(value) for name, value in values.items()}
            for key, values in changed.items()
            if values
        }
        for key in changed:
            names = _names(from_key(key))
            for name in self._entities.pop(key, ()):
                self._limits[name].pop(names, None)
            if key in fresh:
                self._entities[key] = fresh[key]
                for name, value in fresh[key].items():
                    self._limits.setdefault(name, {})[names] = value
        self._found.forget()
        for observer in self._observers:
            observer()

    def observe(self, observer: Callable[[], None]) -> None:
        """`observer` is called after each change."""
        self._observers.append(observer)

    def entries(self) -> Iterator[tuple[dict[str, str | None], Values]]:
        """All entities and what they have; to be read before the next change."""
        return ((from_key(key), values) for key, values in self._entities.items())

    def values(self, entity: Entity) -> Values:
        """The quotas of an entity."""
        return self._entities.get(to_key(entity), {})

    @property
    def of_clients(self) -> bool:
        """Whether there is any quota of users or client ids."""
        return any(self._limits.get(name) for name in OF_CLIENTS)

    @property
    def of_addresses(self) -> bool:
        """Whether there is any quota of addresses."""
        return bool(self._limits.get(Quota.CONNECTION_CREATION_RATE))

    # ---- what counts ----

    def limit(self, quota: Quota, user: str, client_id: str) -> Limit | None:
        """The limit that counts for a user with a client id; None: there is none.

        In Kafka's order: that of the user and the client id, of the user, of the client id; in each of
        them names go before defaults, those of users before those of client ids.
        """
        limits = self._limits.get(quota)
        if not limits:
            return None
        for names, shared in (
            ((user, client_id), (user, client_id)),
            ((user, None), (user, client_id)),
            ((user,), (user, "")),
            ((None, client_id), (user, client_id)),
            ((None, None), (user, client_id)),
            ((None,), (user, "")),
            (("", client_id, ""), ("", client_id)),
            (("", None, ""), ("", client_id)),
        ):
            bound = limits.get(names)
            if bound is not None:
                return *shared, bound
        return None

    def sensors(self, user: str, client_id: str, now_ms: int) -> Sensors | None:
        """The rates that count for a caller; None: there is no quota. Called for each request: the result is
        remembered until a quota changes."""
        try:
            return self._found[user, client_id]
        except KeyError:
            pass
        sensors = Sensors(
            self._rate(self.limit(Quota.PRODUCER_BYTE_RATE, user, client_id), "produce", now_ms),
            self._rate(self.limit(Quota.CONSUMER_BYTE_RATE, user, client_id), "fetch", now_ms),
            self._rate(self.limit(Quota.REQUEST_PERCENTAGE, user, client_id), "request", now_ms),
            self._bucket(self.limit(Quota.CONTROLLER_MUTATION_RATE, user, client_id), now_ms),
        )
        found = None if sensors == (None, None, None, None) else sensors
        self._found.remember((user, client_id), found, user, client_id)
        return found

    def _rate(self, limit: Limit | None, kind: str, now_ms: int) -> Rate | None:
        if limit is None:
            return None
        user, other, bound = limit
        key = (kind, user, other[:MAX_NAME_BYTES])
        rate = self._rates.get(key)
        if rate is None:
            self._make_room(self._rates, now_ms)
            rate = self._rates[key] = Rate(bound, self.windows, now_ms)
        rate.bound = bound
        return rate

    def _bucket(self, limit: Limit | None, now_ms: int) -> TokenBucket | None:
        if limit is None:
            return None
        user, client_id, bound = limit
        key = ("mutation", user, client_id[:MAX_NAME_BYTES])
        bucket = self._buckets.get(key)
        if bucket is None:
            self._make_room(self._buckets, now_ms)
            bucket = self._buckets[key] = TokenBucket(bound, self._mutation_windows, now_ms)
        bucket.bound = bound
        return bucket

    def connections(self, address: str, now_ms: int) -> Rate | None:
        """The rate that counts for connections from an address; None: there is no quota."""
        limits = self._limits.get(Quota.CONNECTION_CREATION_RATE)
        if not limits:
            return None
        bound = limits.get(("", "", _written(address)), limits.get(("", "", None)))
        if bound is None:
            return None
        return self._rate(("", address, bound), "connections", now_ms)

    def _make_room(self, sensors: dict[Key, Rate] | dict[Key, TokenBucket], now_ms: int) -> None:
        """Forget who is idle when there are too many; and at least a tenth, so that this is done seldom."""
        if len(sensors) < MAX_SENSORS:
            return
        by_age = sorted(sensors, key=lambda key: sensors[key].last_ms)
        for number, key in enumerate(by_age):
            if number >= MAX_SENSORS // 10 and now_ms - sensors[key].last_ms < INACTIVE_MS:
                break
            del sensors[key]
        self._found.forget()


def _bound(value: float) -> float:
    """As a number that can be divided by. Raises ValueError, TypeError."""
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not 0 < found < math.inf:
        raise ValueError("a quota is above 0 and finite")
    return found


def _names(entity: Entity) -> tuple[str | None, ...]:
    """As keys of `_limits`: (user,), (user, client id), ("", client id, ""), ("", "", address)."""
    if IP in entity:
        address = entity[IP]
        return "", "", None if address is None else _written(address)
    if USER not in entity:
        return "", entity[CLIENT_ID], ""
    return (entity[USER], entity[CLIENT_ID]) if CLIENT_ID in entity else (entity[USER],)


def _written(address: str) -> str:
    """As everybody writes it: an IPv6 address has many forms."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address
