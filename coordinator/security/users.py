"""Users with their SCRAM credentials, kept in the store."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ringleader.coordinator.security.scram import (
    MECHANISMS,
    MIN_ITERATIONS,
    SHA_512,
    Credential,
    Mechanism,
)
from ringleader.coordinator.security.store import Changed, SecurityStore

SALT_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
SALT_CHARACTERS = 26
"""Kafka's tools make salts of this form: those of users that there are not look like it."""

_Known = Mapping[str, Credential]
"""By the mechanism's name."""


class Users:
    """The users. Answers at once, from memory, and from any thread."""

    def __init__(self, store: SecurityStore) -> None:
        """The store may be opened afterwards: then `load`."""
        self._store = store
        self._users: dict[str, _Known] = {}
        self._typical: tuple[Mechanism, int] = (SHA_512, MIN_ITERATIONS)
        self._typical_iterations: dict[str, int] = {}
        store.observe("users", self._changed)

    def load(self) -> None:
        """Read all of them from the store. Raises OSError (DamagedError)."""
        self._changed(self._store.entries("users"))

    def known(self) -> Mapping[str, _Known]:
        """All users."""
        return self._users

    async def change(self, changed: Mapping[str, _Known]) -> None:
        """Users as they shall be, each with all credentials; with none it is gone. Durable when this returns.
        Raises KafkaError as `SecurityStore.change`."""
        entries = {user: {name: _row(one) for name, one in known.items()} for user, known in changed.items()}
        await self._store.change("users", {user: entry or None for user, entry in entries.items()})

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        """See `Credentials`."""
        iterations = self._typical_iterations.get(mechanism.name, MIN_ITERATIONS)
        made_up = self._made_up(user, mechanism, iterations)  # always: it takes time
        return self._users.get(user, {}).get(mechanism.name, made_up)

    def any_credential(self, user: str) -> Credential:
        """See `Passwords`."""
        made_up = self._made_up(user, *self._typical)
        known = self._users.get(user)
        return made_up if known is None else _strongest(known)

    def _made_up(self, user: str, mechanism: Mechanism, iterations: int) -> Credential:
        """The same each time, as that of a user is; nobody can tell it from one without this node's secret,
        and nobody has its keys."""

        def random(what: str) -> bytes:
            name = f"{what} {mechanism.name} {user}".encode(errors="surrogateescape")
            return hmac.digest(self._store.secret, name, mechanism.hash)

        salt = salt_of(int.from_bytes(random("salt"), "big"))
        return Credential(mechanism, iterations, salt, random("stored key"), random("server key"))

    def _changed(self, changed: Changed) -> None:
        users = dict(self._users)
        for user, entry in changed.items():
            users.pop(user, None)
            if entry is not None:
                try:
                    users[user] = _credentials(entry)
                except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
                    raise self._store.damaged(f"user {user!r}") from None
        # As a whole: other threads read.
        self._users = users
        counts = Counter(
            (one.mechanism.name, one.iterations) for known in users.values() for one in known.values()
        )
        self._typical_iterations = {name: number for (name, number), _ in reversed(counts.most_common())}
        strongest = Counter((one.mechanism, one.iterations) for one in map(_strongest, users.values()))
        [(self._typical, _)] = strongest.most_common(1) or [((SHA_512, MIN_ITERATIONS), 0)]


def fresh_salt() -> bytes:
    """A random one."""
    return salt_of(secrets.randbits(256))


def salt_of(number: int) -> bytes:
    """A salt of Kafka's form from a random number of at least 135 bits."""
    digits = []
    for _ in range(SALT_CHARACTERS):
        number, digit = divmod(number, len(SALT_ALPHABET))
        digits.append(SALT_ALPHABET[digit])
    return "".join(digits).encode()


def _strongest(known: _Known) -> Credential:
    return known.get(SHA_512.name) or next(iter(known.values()))


def _row(credential: Credential) -> dict[str, Any]:
    return {
        "iterations": credential.iterations,
        "salt": base64.b64encode(credential.salt).decode(),
        "stored_key": base64.b64encode(credential.stored_key).decode(),
        "server_key": base64.b64encode(credential.server_key).decode(),
    }


def _credentials(entry: Any) -> _Known:
    if not entry:
        raise ValueError("no credentials")
    return {
        name: Credential(
            MECHANISMS[name],
            int(row["iterations"]),
            *(base64.b64decode(row[key], validate=True) for key in ("salt", "stored_key", "server_key")),
        )
        for name, row in entry.items()
    }
