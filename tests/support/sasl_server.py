"""The broker's side of SASL, for a scripted broker with one client at a time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

from ringleader.clients.connection.connection import Connection, open_connection
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import Sasl, SaslOAuthBearer, SaslPlain, SaslScram
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from tests.support.scripted_broker import CLOSE, VERSIONS, ScriptedBroker

SASL_VERSIONS = VERSIONS | {17: (0, 1), 36: (0, 2)}
ITERATIONS = 4_096
GRACE_S = 0.4
"""The session's end as the client counts it is a little later."""
SALT = b"grains of salt"


class SaslServer:
    """Knows these users. `handlers`: those of the broker that it stands before; asked by strangers, or in the
    middle of an authentication, they hang up, as Apache Kafka does."""

    def __init__(self, users: Mapping[str, str], handlers: Mapping[int, Any], lifetime_ms: int = 0) -> None:
        self.users = dict(users)
        self.mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
        self.lifetime_ms = lifetime_ms
        self.logins = 0
        """How often somebody has come through."""
        self.forged = False
        """Whether the server's own proof is wrong."""
        self.strict = False
        """Whether a session really ends."""
        self._open = False
        self._until_s = 0.0
        self._mechanism = ""
        self._messages: list[str] = []
        self.handlers: dict[int, Any] = {key: self._guarded(one) for key, one in handlers.items()}
        self.handlers |= {17: self._handshake, 36: self._authenticate}

    def _guarded(self, handler: Any) -> Any:
        def guarded(*call: Any) -> Any:
            over = self.strict and time.monotonic() > self._until_s
            return handler(*call) if self._open and not over else CLOSE

        return guarded

    def _handshake(self, request: Any, _version: int, _id: int) -> Any:
        self._open, self._mechanism, self._messages = False, request.mechanism, []
        known = request.mechanism in self.mechanisms
        return SaslHandshakeResponse(error_code=0 if known else 33, mechanisms=self.mechanisms)

    def _authenticate(self, request: Any, _version: int, _id: int) -> Any:
        data = request.auth_bytes.decode()
        self._messages.append(data)
        if self._mechanism == "PLAIN":
            _, user, password = data.split("\0")
            return self._through() if self.users.get(user) == password else self._refused()
        if self._mechanism == "OAUTHBEARER":
            if len(self._messages) == 2:
                return self._refused()
            token = data.split("\x01")[1].removeprefix("auth=Bearer ")
            known = token in self.users.values()
            return self._through() if known else self._further(b'{"status":"invalid_token"}')
        return self._scram(data, self._mechanism.removeprefix("SCRAM-").replace("-", "").lower())

    def _scram(self, data: str, kind: str) -> Any:
        if len(self._messages) == 1:
            nonce = data.split("r=")[1]
            first = f"r={nonce}more,s={base64.b64encode(SALT).decode()},i={ITERATIONS}"
            self._messages.append(first)
            return self._further(first.encode())
        bare = self._messages[0].removeprefix("n,,")
        user = bare.split(",")[0].removeprefix("n=").replace("=2C", ",").replace("=3D", "=")
        final, proof = data.rsplit(",p=", 1)
        signed = ",".join((bare, self._messages[1], final)).encode()
        salted = hashlib.pbkdf2_hmac(kind, self.users.get(user, "").encode(), SALT, ITERATIONS)
        key = hmac.digest(salted, b"Client Key", kind)
        signature = hmac.digest(hashlib.new(kind, key).digest(), signed, kind)
        if base64.b64decode(proof) != bytes(a ^ b for a, b in zip(key, signature, strict=True)):
            return self._refused()
        mine = hmac.digest(hmac.digest(salted, b"Server Key", kind), signed, kind)
        return self._through(b"v=" + base64.b64encode(bytes(len(mine)) if self.forged else mine))

    def _through(self, last: bytes = b"") -> Any:
        self._open = True
        self._until_s = time.monotonic() + self.lifetime_ms / 1000 + GRACE_S
        self.logins += 1
        return SaslAuthenticateResponse(auth_bytes=last, session_lifetime_ms=self.lifetime_ms)

    def _further(self, message: bytes) -> Any:
        return SaslAuthenticateResponse(auth_bytes=message)

    def _refused(self) -> Any:
        return SaslAuthenticateResponse(error_code=58, error_message="who\nis\x1b[31m that?")


USERS = {"ann": "s3cret", "a=b,c": "s3cret"}
BEAT = plain(HeartbeatRequest(group_id="g"))
KINDS: list[Sasl] = [
    SaslPlain("ann", "s3cret"),
    SaslScram("ann", "s3cret", "SHA-256"),
    SaslScram("a=b,c", "s3cret"),
    SaslOAuthBearer(lambda: "s3cret"),
]


async def connected(broker: ScriptedBroker, timeout_s: float = 5.0, **options: Any) -> Connection:
    return await open_connection("127.0.0.1", broker.port, client_id="t", timeout_s=timeout_s, **options)


def server(**options: Any) -> SaslServer:
    handlers = {12: lambda *_: HeartbeatResponse(), 3: lambda *_: MetadataResponse()}
    return SaslServer(USERS, handlers, **options)


def guarded(sasl: SaslServer, **options: Any) -> ScriptedBroker:
    return ScriptedBroker(sasl.handlers, SASL_VERSIONS, **options)
