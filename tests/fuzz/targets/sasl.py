"""Conversations of SASL, from both sides: what a client says to a node, and what a broker answers a
client."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from ringleader.clients.connection.security import sasl as client
from ringleader.clients.errors import AuthenticationError
from ringleader.coordinator.security.exchange import Exchange, SaslFailedError
from ringleader.coordinator.security.oauth import OAuthExchange, TokenRules, check_token, parse_keys
from ringleader.coordinator.security.plain import PlainExchange
from ringleader.coordinator.security.scram import SHA_256, Credential, Mechanism, ScramExchange, salt_password
from tests.fuzz.mutation import changed_bytes, changed_json, changed_parts, joined, json_bytes, parts_of
from tests.fuzz.target import Target, promise

SALT, ITERATIONS, NONCE = b"salt", 4_096, "3rfcNHYJY1ZVvWVs7j"
PASSWORD = "pencil"
NOW_S = 1_700_000_000
_CREDENTIAL = Credential.salted(
    SHA_256, ITERATIONS, SALT, salt_password(SHA_256, PASSWORD.encode(), SALT, ITERATIONS)
)
_WRONG = Credential.salted(SHA_256, 1, SALT, salt_password(SHA_256, b"another", SALT, 1))
_KEY = RSAKey.generate_key(2_048, {"kid": "one"})
_KEYS = {"one": _KEY}
_RULES = TokenRules(issuer=None, audiences=())


class _Users:
    """One user."""

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        return _CREDENTIAL

    def any_credential(self, user: str) -> Credential:
        return _WRONG


def _step_by_step(
    make: Callable[[], Exchange], parts: list[bytes], proves: Callable[[Exchange, list[bytes]], bool]
) -> None:
    """A client's messages, one after the other."""
    exchange = make()
    for at, message in enumerate(parts[:6]):
        try:
            answer = exchange.step(message)
        except SaslFailedError as error:
            promise(not exchange.done, "who failed has proved it")
            promise(PASSWORD not in str(error), "a secret is told")
            return
        promise(len(answer) < 200_000, "a long answer")
        if exchange.done:
            promise(proves(exchange, parts[: at + 1]), f"{exchange.user!r} proved nothing")
            return


def _scram(parts: list[bytes]) -> None:
    _step_by_step(lambda: ScramExchange(SHA_256, _Users(), NONCE), parts, _scram_proves)


def _scram_proves(exchange: Exchange, messages: list[bytes]) -> bool:
    """The proof is made here again, as RFC 5802 says, from the password."""
    first, final = messages
    bare = first.split(b",", 2)[2]
    without, _, proof = final.rpartition(b",p=")
    nonce = bare.split(b"r=", 1)[1].split(b",")[0] + NONCE.encode()
    answer = b"r=%b,s=%b,i=%d" % (nonce, base64.b64encode(SALT), ITERATIONS)
    signed = b",".join((bare, answer, without))
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), SALT, ITERATIONS)
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    return base64.b64decode(proof) == bytes(a ^ b for a, b in zip(key, signature, strict=True))


def _plain(parts: list[bytes]) -> None:
    _step_by_step(
        lambda: PlainExchange(_Users()), parts, lambda _, messages: messages[-1].endswith(b"\0another")
    )


def _oauth(parts: list[bytes]) -> None:
    """No token is signed by a key that anybody has, so nobody gets through."""
    check = partial(check_token, keys=_KEYS, rules=_RULES, now_s=NOW_S)
    _step_by_step(lambda: OAuthExchange(check), parts, lambda exchange, messages: False)


def _signed_token(parts: list[bytes]) -> None:
    """Header and claims, signed with a key that is no secret: as much as comes behind the signature."""
    try:
        header, claims = json.loads(parts[0]), json.loads(parts[-1])
        token = jwt.encode(header, claims, _SIGNER, algorithms=["RS256"])
    except Exception:
        return  # nothing that could be signed
    try:
        found = check_token(token, _SIGNERS, _RULES, NOW_S)
    except SaslFailedError:
        return
    promise(found.name and found.expires_ms > (NOW_S - 60) * 1000, f"it says {found}")


def _keys(parts: list[bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # keys that are too short to be safe
        try:
            parse_keys(parts[0])
        except ValueError:
            return


def _answered(make: Callable[[], client.Conversation], parts: list[bytes]) -> None:
    """A broker's messages to a client: without the password it can prove nothing."""
    conversation = make()
    next(conversation)
    try:
        for message in parts[:6]:
            conversation.send(message)
    except AuthenticationError:
        return
    except StopIteration:
        promise(False, "a broker without the password is believed")


def _scram_client(parts: list[bytes]) -> None:
    _answered(lambda: client.scram_conversation("a,=", PASSWORD, "sha256", NONCE), parts)


def _oauth_client(parts: list[bytes]) -> None:
    _answered(lambda: client.oauth_conversation("abc.def", {}), [part or b"x" for part in parts])


_SIGNER = RSAKey.generate_key(2_048, {"kid": "two"})
_SIGNERS = {"two": _SIGNER}
_TOKEN = (
    "eyJhbGciOiJSUzI1NiIsImtpZCI6Im9uZSJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPo"
)
_HEADER, _CLAIMS = (
    b'{"alg":"RS256","kid":"two"}',
    b'{"sub":"alice","iat":1700000000,"exp":1700003600,"nbf":1}',
)
_JWKS = json.dumps(
    {
        "keys": [
            {"kty": "RSA", "kid": "a", "use": "sig", "alg": "RS256", "e": "AQAB", "n": "ofgW" * 86},
            {"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43},
            {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43},
        ]
    }
).encode()
READERS: tuple[tuple[Callable[[list[bytes]], None], tuple[tuple[bytes, ...], ...]], ...] = (
    (_scram, ((b"n,,n=user,r=abc", b"c=biws,r=abc3rfcNHYJY1ZVvWVs7j,p=AAAA"),
              (b"n,a=user,n=user,r=abc,x=y", b"c=bixhPXVzZXIs,r=abc3rfcNHYJY1ZVvWVs7j,p=AAAA"))),
    (_plain, ((b"\0alice\0wrong",), (b"alice\0alice\0another",))),
    (_oauth, ((b"n,,\1auth=Bearer " + _TOKEN.encode() + b"\1\1", b"\1"),
              (b"n,a=joe,\1a=b\1auth=Bearer x.y.z\1\1",))),
    (_signed_token, ((_HEADER, _CLAIMS),)),
    (_keys, ((_JWKS,),)),
    (_scram_client, ((b"r=3rfcNHYJY1ZVvWVs7jabc,s=c2FsdA==,i=4096", b"v=AAAA"), (b"e=other-error",))),
    (_oauth_client, ((b'{"status":"invalid_token","scope":"s"}', b""),)),
)  # fmt: skip
WORDS = (b"n,,", b"y,,", b"p=tls,,", b",a=", b"r=", b"n=", b",m=1", b"=2C", b"=3D", b"\1", b"\0", b"auth=",
b"Bearer ",
         b"none", b"HS256", b'"alg":"none"', b'{"kid":1}', b"AAAA", b"=", b"i=131073", b"i=" + b"9" * 5_000,
         b"tokenauth=true", b"[" * 3_000, b"\xff")  # fmt: skip


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    READERS[data[0] % len(READERS)][0](parts_of(data[1:]) or [b""])


def seeds() -> Iterator[bytes]:
    for number, (_, some) in enumerate(READERS):
        for parts in some:
            yield bytes((number,)) + joined(parts)
    # Another broker's key, so that the kinds of keys are looked at, too.
    yield bytes((4,)) + joined(
        [json.dumps({"keys": [OctKey.import_key("0123456789abcdef").as_dict()]}).encode()]
    )


SEEDS = list(seeds())


def mutate(data: bytes, rng: Random) -> bytes:
    if len(data) < 2 or rng.random() < 0.05:
        data = rng.choice(SEEDS)
    return data[:1] + changed_parts(data[1:], rng, _part, 6)


def _part(data: bytes, rng: Random) -> bytes:
    """JSON as JSON; the parts of a token as what they hold."""
    if data.startswith((b"{", b"[")):
        try:
            return json_bytes(changed_json(json.loads(data), rng))
        except (ValueError, RecursionError):
            pass
    head, dot, rest = data.partition(b"ey")
    if dot and rng.random() < 0.7:
        pieces = (dot + rest).split(b".")
        at = rng.randrange(len(pieces))
        try:
            inner = base64.urlsafe_b64decode(pieces[at].rstrip(b"\1") + b"==")
            changed = _part(inner, rng) if inner[:1] == b"{" else changed_bytes(inner, rng)
            pieces[at] = base64.urlsafe_b64encode(changed).rstrip(b"=")
        except ValueError:
            pass
        return head + b".".join(pieces) + (b"" if rest.endswith(b"\1\1") and at < 2 else b"\1\1")
    return changed_bytes(data, rng, WORDS)


def plant(patch: Any) -> None:
    """Every proof is good."""
    patch.setattr(hmac, "compare_digest", lambda one, other: True)


TARGET = Target(
    "sasl",
    "No conversation raises anything but what it documents, or tells a secret; nobody is believed, on either "
    "side, without the proof that this file makes for itself.",
    check,
    seeds,
    mutate,
    plant,
)
