"""OAUTHBEARER as Kafka's broker speaks it (RFC 7628; KIP-255, KIP-768): a signed token (JWT) says who
somebody is, checked against the issuer's public keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet

from ringleader.coordinator.security.exchange import SaslFailedError, plain_name, shortened_name

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
"""Signatures by a private key only: `none` is no signature, and who knows an HMAC's key could sign."""
MAX_TOKEN_CHARACTERS = 65_536
INVALID_TOKEN: Final = '{"status":"invalid_token"}'
"""The answer to every token that is rejected, whatever the reason."""

_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+))?,"
    r"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)


class UnknownKeyError(SaslFailedError):
    """The token names a key that is not known: there may be newer ones."""


def parse_keys(data: bytes) -> Mapping[str, Key]:
    """The public keys of a JWKS document (RFC 7517), by id. Raises ValueError: one sentence."""
    try:
        document = json.loads(data)
        rows = [row for row in document["keys"] if row.get("kty") in ("RSA", "EC", "OKP")]
        keys = KeySet.import_key_set({"keys": rows}).keys
    except (JoseError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no key set (JWKS) with a public key: {type(error).__name__}") from None
    return {key.ensure_kid() or key.kid or "": key for key in keys if key.get("use") in (None, "sig")}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """The claims that a token has to have, in Kafka's settings `sasl.oauthbearer.*`."""

    issuer: str | None = None
    """`expected.issuer`; None: any."""
    audiences: Sequence[str] = ()
    """`expected.audience`: one of these; none: the token has to have no audience."""
    sub_claim_name: str = "sub"
    clock_skew_seconds: int = 30


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a valid token."""

    name: str
    expires_ms: int
    """Wall clock in ms."""


def check_token(token: str, keys: Mapping[str, Key], rules: TokenRules, now_s: float) -> Claims:
    """Raises SaslFailedError, which says what is wrong and nothing of the token but names."""
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise SaslFailedError(f"a token of {len(token):,} characters")

    def find(signed: Any) -> Key:
        header = signed.headers()
        kid, algorithm = header.get("kid"), header.get("alg")
        if algorithm not in ALGORITHMS:
            raise SaslFailedError(f"a token of algorithm {shortened_name(str(algorithm))!r}")
        found = next(iter(keys.values())) if kid is None and len(keys) == 1 else keys.get(str(kid))
        if found is None:
            raise UnknownKeyError(f"a token of the unknown key {shortened_name(str(kid))!r}")
        if found.get("alg") not in (None, algorithm):
            raise SaslFailedError(f"a token of algorithm {algorithm}, which is not its key's")
        return found

    try:
        claims = jwt.decode(token, find, algorithms=list(ALGORITHMS)).claims
    except SaslFailedError:
        raise
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SaslFailedError(f"a token that cannot be verified: {type(error).__name__}") from None
    return _checked(claims, rules, now_s)


def _checked(claims: Mapping[str, Any], rules: TokenRules, now_s: float) -> Claims:
    skew_s = rules.clock_skew_seconds
    expires_s, _ = _time(claims, "exp"), _time(claims, "iat")
    if expires_s <= now_s - skew_s:
        raise SaslFailedError("the token has expired")
    if "nbf" in claims and _time(claims, "nbf") > now_s + skew_s:
        raise SaslFailedError("the token is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise SaslFailedError(f"a token of the issuer {shortened_name(str(claims.get('iss')))!r}")
    audience = claims.get("aud", [])
    audiences = audience if isinstance(audience, list) else [audience]
    meant = any(one in rules.audiences for one in audiences if isinstance(one, str))
    if not meant and (rules.audiences or audiences):
        raise SaslFailedError("a token for another audience")
    name = claims.get(rules.sub_claim_name)
    if not isinstance(name, str) or not name.strip():
        raise SaslFailedError(f"a token without {rules.sub_claim_name}")
    return Claims(name.strip(), int(expires_s * 1000))


def _time(claims: Mapping[str, Any], claim: str) -> float:
    value = claims.get(claim)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise SaslFailedError(f"a token whose {claim} is no time")
    return value


@dataclass(slots=True)
class OAuthExchange:
    """See `Exchange`."""

    check: Callable[[str], Claims]
    """Raises SaslFailedError."""
    user: str = ""
    done: bool = False
    expires_ms: int | None = None
    slow: bool = True
    _refused: str = field(default="", repr=False)
    _ended: bool = False

    def step(self, data: bytes) -> bytes:
        """See `Exchange`."""
        if self._refused:
            raise SaslFailedError(self._refused, INVALID_TOKEN if data == b"\x01" else "")
        if self._ended:
            raise SaslFailedError("the OAUTHBEARER exchange is over")
        self._ended = True
        authorization_id, token = _first_message(data)
        try:
            claims = self.check(token)
        except SaslFailedError as error:
            self._refused = str(error)
            return INVALID_TOKEN.encode()
        self.user = claims.name
        if authorization_id and authorization_id != claims.name:
            text = (
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that is "
                f"different from the token's principal name ({claims.name})"
            )
            raise SaslFailedError(text, text)
        self.expires_ms = claims.expires_ms
        self.done = True
        return b""


def _first_message(data: bytes) -> tuple[str, str]:
    """The authorization id, "" when there is none, and the token. Raises SaslFailedError."""
    message = data[: 2 * MAX_TOKEN_CHARACTERS].decode("latin-1")
    found = _FIRST.fullmatch(message)
    pairs = [pair.partition("=") for pair in found["pairs"].split("\x01")] if found else []
    auth = _AUTH.fullmatch({name: value for name, _, value in pairs}.get("auth", ""))
    if found is None or auth is None:
        raise SaslFailedError("Invalid OAUTHBEARER client first message")
    if auth["scheme"].lower() != "bearer":
        raise SaslFailedError(
            f"Invalid scheme in OAUTHBEARER client first message: {shortened_name(auth['scheme'])}"
        )
    return plain_name(found["authzid"] or ""), auth["token"]
