"""SCRAM-SHA-256 and -512 as Kafka's broker speaks them (RFC 5802, RFC 7677; KIP-84): the keys that are kept
in place of a password, and the exchange."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from ringleader.coordinator.security.exchange import OTHER_ID, SaslFailedError, plain_name

MIN_ITERATIONS: Final = 4_096
MAX_ITERATIONS: Final = 16_384
"""Kafka's bounds."""
MAX_MESSAGE_BYTES = 65_536


class Mechanism(NamedTuple):
    """One kind of SCRAM."""

    name: str
    number: int
    """In AlterUserScramCredentials and DescribeUserScramCredentials."""
    hash: str
    """As hashlib has it."""


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Final = {one.name: one for one in (SHA_256, SHA_512)}


@dataclass(frozen=True, slots=True)
class Credential:
    """The stored form of a user's password: enough to check a proof of it, not enough to make one."""

    mechanism: Mechanism
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def salted(cls, mechanism: Mechanism, iterations: int, salt: bytes, salted_password: bytes) -> Credential:
        """From what PBKDF2 made of a password, as AlterUserScramCredentials carries it."""
        client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash)
        stored_key = hashlib.new(mechanism.hash, client_key).digest()
        server_key = hmac.digest(salted_password, b"Server Key", mechanism.hash)
        return cls(mechanism, iterations, salt, stored_key, server_key)

    def is_of(self, password: bytes) -> bool:
        """Whether this is the password; takes milliseconds."""
        salted = salt_password(self.mechanism, password, self.salt, self.iterations)
        found = Credential.salted(self.mechanism, self.iterations, self.salt, salted)
        return hmac.compare_digest(found.stored_key, self.stored_key)


def salt_password(mechanism: Mechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """`SaltedPassword` of RFC 5802; takes milliseconds. As in Kafka, the password is not SASLprepped."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password, salt, iterations)


class Credentials(Protocol):
    """The credentials of users."""

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        """The credential of a user; of a user that does not exist, made up, without a password that matches
        it."""


_SAFE = r"\x01-\x2B\x2D-\x3C\x3E-\x7F"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-\x2B\x2D-\x7F]+)*"
_NAME = rf"(?:[{_SAFE}]|=2C|=3D)+"
_NONCE = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64 = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_FIRST = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<without>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
"""As Kafka takes them, but for mandatory extensions (`m=`), which RFC 5802 wants to be refused."""


class ScramExchange:
    """See `Exchange`. A user that does not exist goes the same way as one with a wrong password."""

    slow = False
    expires_ms: int | None = None

    def __init__(self, mechanism: Mechanism, credentials: Credentials, nonce: str) -> None:
        """`nonce`: random and fresh, printable ASCII without comma."""
        self.user = ""
        self.done = False
        self._mechanism = mechanism
        self._credentials = credentials
        self._own_nonce = nonce
        self._credential: Credential | None = None
        self._nonce = ""
        self._channel = b""
        self._signed = b""
        self._ended = False

    def step(self, data: bytes) -> bytes:
        """See `Exchange`."""
        if self._ended:
            raise SaslFailedError("the SCRAM exchange is over")
        self._ended = True  # unless this step gets through
        try:
            message = data[: MAX_MESSAGE_BYTES + 1].decode("ascii")
        except UnicodeDecodeError:
            raise SaslFailedError("a SCRAM message that is not ASCII") from None
        if len(message) > MAX_MESSAGE_BYTES:
            raise SaslFailedError(f"a SCRAM message of {len(data):,} bytes")
        return self._first(message) if self._credential is None else self._final(message)

    def _first(self, message: str) -> bytes:
        found = _FIRST.fullmatch(message)
        if found is None:
            raise SaslFailedError("Invalid SCRAM client first message format")
        self.user = plain_name(found["name"])
        if found["authzid"] and plain_name(found["authzid"]) != self.user:
            raise SaslFailedError(OTHER_ID, OTHER_ID)
        if "tokenauth=true" in found["extensions"].split(","):
            raise SaslFailedError("delegation tokens are not served")
        credential = self._credential = self._credentials.credential(self.user, self._mechanism)
        self._nonce = found["nonce"] + self._own_nonce
        self._channel = base64.b64encode(found["gs2"].encode())
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._signed = f"{found['bare']},{answer},".encode()
        self._ended = False
        return answer.encode()

    def _final(self, message: str) -> bytes:
        credential, kind = self._credential, self._mechanism.hash
        assert credential is not None
        found = _FINAL.fullmatch(message)
        if found is None:
            raise SaslFailedError("Invalid SCRAM client final message format")
        if found["nonce"] != self._nonce:
            raise SaslFailedError("Invalid client nonce in the final client message.")
        if found["channel"].encode() != self._channel:
            raise SaslFailedError("the channel binding is not the one of the first message")
        signed = self._signed + found["without"].encode()
        signature = hmac.digest(credential.stored_key, signed, kind)
        proof = base64.b64decode(found["proof"])
        if len(proof) != len(signature):
            raise SaslFailedError("Invalid client credentials")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(kind, client_key).digest(), credential.stored_key):
            raise SaslFailedError("Invalid client credentials")
        self.done = True
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, signed, kind))
