"""Users for tests, in a file of their own, and what their clients say."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import (
    MECHANISMS,
    MIN_ITERATIONS,
    SHA_512,
    Credential,
    Mechanism,
    salt_password,
)
from ringleader.coordinator.security.store import FILE, FileStore

ALICE, PASSWORD = "alice", "open sesame"


def credential(
    mechanism: Mechanism, password: str = PASSWORD, iterations: int = MIN_ITERATIONS
) -> Credential:
    """The credential that is stored for a password."""
    salt = b"26 characters of pure salt"
    salted = salt_password(mechanism, password.encode(), salt, iterations)
    return Credential.salted(mechanism, iterations, salt, salted)


async def registered(directory: Path, *names: str) -> Security:
    """These users, each with the password and both kinds of SCRAM."""
    security = Security(FileStore(directory / FILE), AllowAll())
    await security.start()
    known = {one.name: credential(one) for one in MECHANISMS.values()}
    await security.users.change(dict.fromkeys(names or (ALICE,), known))
    return security


class ScramClient:
    """The client's half, written after the RFC, to be bent by a test."""

    def __init__(
        self, user: str = ALICE, password: str = PASSWORD, mechanism: Mechanism = SHA_512, nonce: str = "mine"
    ) -> None:
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._password = password
        self._kind = mechanism.hash
        self.server_signature = b""

    @property
    def first(self) -> bytes:
        """Its first message."""
        return b"n,," + self.bare.encode()

    def final(self, server_first: bytes, channel: str = "biws", nonce: str | None = None) -> bytes:
        """Its last message."""
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self._kind, self._password.encode(), salt, iterations)
        without = f"c={channel},r={fields['r'] if nonce is None else nonce}"
        signed = b",".join((self.bare.encode(), server_first, without.encode()))
        key = hmac.digest(salted, b"Client Key", self._kind)
        signature = hmac.digest(hashlib.new(self._kind, key).digest(), signed, self._kind)
        self.server_signature = hmac.digest(
            hmac.digest(salted, b"Server Key", self._kind), signed, self._kind
        )
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()
