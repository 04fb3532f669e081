"""How the nodes of a cluster prove to each other that they are: SCRAM-SHA-256, with a password made from the
secret that they share. It has a mechanism's name of its own, so that it is not that of any user, and does not
depend on what users may log in by."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from ringleader.coordinator.security.exchange import SaslFailedError
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.security.scram import (
    MIN_ITERATIONS,
    SHA_256,
    Credential,
    Mechanism,
    salt_password,
)

MECHANISM: Final = "RINGLEADER-NODE"
NODE: Final = Principal("User", "__ringleader_node")
"""The principal of a node at another one. It may request ApiVersions, and nothing else."""
SALT = b"salt of all nodes alike"
"""Nobody guesses a password of 256 random bits, salted or not."""


def password_of(secret: bytes) -> str:
    """Of all nodes with this secret (`SecurityStore.secret`); the secret cannot be found from it."""
    return hmac.digest(secret, b"password of nodes", "sha256").hex()


class NodeCredentials:
    """See `Credentials`."""

    def __init__(self, secret: Callable[[], bytes]) -> None:
        """`secret()`: the current one. Of nodes that start for the first time at once each has its own, until
        all have read the last."""
        self._secret = secret

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        """The credential of nodes. Raises SaslFailedError for any other user, which reveals
        nothing, as there is only one."""
        if user != NODE.name:
            raise SaslFailedError("no node calls itself so")
        return _credential_of(self._secret())


@lru_cache(maxsize=1)
def _credential_of(secret: bytes) -> Credential:
    salted = salt_password(SHA_256, password_of(secret).encode(), SALT, MIN_ITERATIONS)
    return Credential.salted(SHA_256, MIN_ITERATIONS, SALT, salted)
