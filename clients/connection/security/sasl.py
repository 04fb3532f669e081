"""The credentials of a client, and the SASL conversations that prove them: pure functions, without socket or
clock.

A conversation is a generator: it yields what the client says and is sent what the server answers; it
returns when the server has proved what it has to, and raises `AuthenticationError` when it has not. Random
numbers and tokens come in as arguments.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field

from ringleader.clients.errors import AuthenticationError, RetriableError
from ringleader.protocol import json_text

Conversation = Generator[bytes, bytes, None]
"""Yields the client's messages; `send` it the server's."""

MAX_CREDENTIAL_BYTES = 64 * 1024
"""Of a user name, a password, a token, and all extensions together."""
MAX_SERVER_MESSAGE_BYTES = 64 * 1024
MIN_ITERATIONS = 4_096
"""RFC 7677 asks for that many at least; fewer make the password easy to guess for an eavesdropper."""
MAX_ITERATIONS = 131_072
"""Eight times what Kafka lets its users have; more would only keep this client busy."""
MAX_SALT_BYTES = 1_024
NONCE_CHARACTERS = 32
SCRAM_HASHES = {"SHA-256": "sha256", "SHA-512": "sha512"}

_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750, section 2.1."""
_NONCE = re.compile(r"[\x21-\x2B\x2D-\x7E]+")


class TokenUnavailableError(RetriableError):
    """There is no token now; there may be one in a moment."""


@dataclass(frozen=True, slots=True)
class SaslPlain:
    """Name and password as they are (PLAIN, RFC 4616): over TLS only, or others on the way can read them."""

    username: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        _check_credential("username", self.username)
        _check_credential("password", self.password)

    @property
    def mechanism(self) -> str:
        """Its name on the wire."""
        return "PLAIN"


@dataclass(frozen=True, slots=True)
class SaslScram:
    """Name and password, of which the server sees a proof only, and gives one in return (SCRAM, RFC 5802).

    `hash`: "SHA-512" or "SHA-256". As Kafka does, the password is taken as it is, without SASLprep.
    """

    username: str
    password: str = field(repr=False)
    hash: str = "SHA-512"

    def __post_init__(self) -> None:
        _check_credential("username", self.username)
        _check_credential("password", self.password)
        if self.hash not in SCRAM_HASHES:
            raise ValueError(f"hash has to be one of {', '.join(SCRAM_HASHES)}, not {self.hash!r}")

    @property
    def mechanism(self) -> str:
        """Its name on the wire."""
        return f"SCRAM-{self.hash}"


@dataclass(frozen=True, slots=True)
class SaslOAuthBearer:
    """A token (OAUTHBEARER, RFC 7628).

    `token` gives the one to use now; it is called for each connection, and again before a connection's
    session ends, so it should keep what it got while that is good. A plain function runs in a thread, a
    coroutine function in the client's event loop (of a group member: in the loop of its own thread).
    `extensions` go along (KIP-342).
    """

    token: Callable[[], str | Awaitable[str]] = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name, value in self.extensions.items():
            if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
                raise ValueError(f"an extension's name has letters only and is not 'auth': {name!r}")
            if not _EXTENSION_VALUE.fullmatch(value):
                raise ValueError(f"the value of extension {name!r} has to be printable ASCII")
        _check_length("extensions", "".join(f"{name}={value}" for name, value in self.extensions.items()))

    @property
    def mechanism(self) -> str:
        """Its name on the wire."""
        return "OAUTHBEARER"


Sasl = SaslPlain | SaslScram | SaslOAuthBearer


def _check_credential(name: str, value: str) -> None:
    if not value:
        raise ValueError(f"{name} must not be empty")
    if "\0" in value:
        raise ValueError(f"{name} must not contain a zero character")
    _check_length(name, value)


def _check_length(name: str, value: str) -> None:
    if len(value.encode()) > MAX_CREDENTIAL_BYTES:
        raise ValueError(f"{name} is longer than {MAX_CREDENTIAL_BYTES} bytes")


# ---- PLAIN ----


def plain_conversation(username: str, password: str) -> Conversation:
    """RFC 4616, without an authorisation identity."""
    yield b"\0" + username.encode() + b"\0" + password.encode()


# ---- SCRAM ----


def scram_conversation(username: str, password: str, hash_name: str, nonce: str) -> Conversation:
    """RFC 5802, without channel binding, which Kafka does not have. `hash_name` as hashlib has it."""
    bare = f"n={_scram_name(username)},r={nonce}"
    server_first = yield f"n,,{bare}".encode()
    first = _scram_fields(server_first, "rsi")
    salt, iterations = _salt(first["s"]), _iterations(first["i"])
    whole_nonce = first["r"]
    # A nonce that the server has not added to would let an attacker repeat an old conversation.
    longer = whole_nonce.startswith(nonce) and len(whole_nonce) > len(nonce)
    if not longer or not _NONCE.fullmatch(whole_nonce):
        raise AuthenticationError("the server's SCRAM nonce is not a longer one than this client's own")
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    without_proof = f"c=biws,r={whole_nonce}"
    signed = b",".join((bare.encode(), server_first, without_proof.encode()))
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), signed, hash_name)
    _check_server(server_final, expected)


def _scram_name(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def _scram_fields(message: bytes, names: str) -> dict[str, str]:
    """The fields of a server's message; the first of them has to be these, in this order."""
    fields = _text(message).split(",")
    if fields[0].startswith("e="):
        raise AuthenticationError(f"the server ended the SCRAM conversation: {fields[0][2:]}")
    if [field[:2] for field in fields[: len(names)]] != [f"{name}=" for name in names]:
        raise AuthenticationError(f"the server's SCRAM message does not have the fields {', '.join(names)}")
    return {field[0]: field[2:] for field in fields[: len(names)]}


def _text(message: bytes) -> str:
    if len(message) > MAX_SERVER_MESSAGE_BYTES:
        raise AuthenticationError(f"the server's SASL message has {len(message)} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("the server's SASL message is not UTF-8") from None


def _base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationError(f"the server's SCRAM {name} is not base64") from None


def _salt(text: str) -> bytes:
    salt = _base64("salt", text)
    if not 0 < len(salt) <= MAX_SALT_BYTES:
        raise AuthenticationError(f"the server's SCRAM salt has {len(salt)} bytes")
    return salt


def _iterations(text: str) -> int:
    # Nine digits at most: the number is not read before it is known to be short.
    number = int(text) if re.fullmatch(r"[1-9][0-9]{0,8}", text) else 0
    if not MIN_ITERATIONS <= number <= MAX_ITERATIONS:
        raise AuthenticationError(
            f"the server asks for {text[:20]!r} SCRAM iterations; this client does {MIN_ITERATIONS} to "
            f"{MAX_ITERATIONS}"
        )
    return number


def _check_server(message: bytes, expected: bytes) -> None:
    signature = _base64("signature", _scram_fields(message, "v")["v"])
    if not hmac.compare_digest(signature, expected):
        raise AuthenticationError(
            "the server could not prove that it knows the password: it is not the one it says it is"
        )


# ---- OAUTHBEARER ----


def oauth_conversation(token: str, extensions: Mapping[str, str]) -> Conversation:
    """RFC 7628. A server that refuses says why in JSON and wants to hear one more byte."""
    if len(token) > MAX_CREDENTIAL_BYTES or not _TOKEN.fullmatch(token):
        raise AuthenticationError("the token callback gave no bearer token: see RFC 6750, section 2.1")
    extra = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token}\x01{extra}\x01".encode()
    if refusal:
        why = _oauth_error(refusal)
        yield b"\x01"
        raise AuthenticationError(f"the token was refused: {why}")


def _oauth_error(answer: bytes) -> str:
    """In words what a server says about a token: `status`, `scope` and `openid-configuration` of its JSON."""
    text = _text(answer)
    try:
        refusal = json_text.loads(text)
    except ValueError:
        return text
    if not isinstance(refusal, dict):
        return text
    names = ("status", "scope", "openid-configuration")
    return ", ".join(f"{name} {refusal[name]}" for name in names if refusal.get(name)) or text
