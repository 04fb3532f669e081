"""A token service for tests: keys, and tokens signed with them."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey


class TokenService:
    """Signs tokens, and publishes its public keys."""

    def __init__(self, kid: str = "one") -> None:
        self.key: Key = ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})

    def jwks(self, *others: Key) -> bytes:
        """The document with its public key."""
        return json.dumps({"keys": [key.as_dict(private=False) for key in (self.key, *others)]}).encode()

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Good for an hour if not said otherwise; None leaves a claim out."""
        now_s = time.time()
        claims = {"sub": "alice", "iat": now_s, "exp": now_s + 3_600, **claims}
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(header or {"alg": "ES256", "kid": self.key.kid}, claims, self.key)


def rsa_key(kid: str) -> Key:
    """Another kind of key."""
    return RSAKey.generate_key(2_048, {"kid": kid})


def part(content: Any) -> str:
    """One part of a token, by hand."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
