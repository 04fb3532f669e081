"""Tokens: which are believed, and where their keys come from."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey

from ringleader.coordinator.logs import get_log
from ringleader.coordinator.security import jwks
from ringleader.coordinator.security.exchange import SaslFailedError
from ringleader.coordinator.security.jwks import Keys, KeysError, check_url, read_keys
from ringleader.coordinator.security.oauth import (
    INVALID_TOKEN,
    OAuthExchange,
    TokenRules,
    UnknownKeyError,
    check_token,
    parse_keys,
)
from tests.support.certificates import Certificates
from tests.support.served import until
from tests.support.tokens import TokenService, part, rsa_key

RULES = TokenRules()
SERVICE = TokenService()
KEYS = parse_keys(SERVICE.jwks())


def check(token: str, rules: TokenRules = RULES, keys: Mapping[str, Key] = KEYS, ahead_s: float = 0) -> Any:
    return check_token(token, keys, rules, time.time() + ahead_s)


def test_a_good_token_says_who_and_until_when() -> None:
    expires_s = int(time.time()) + 100
    found = check(SERVICE.token(exp=expires_s))
    assert (found.name, found.expires_ms) == ("alice", expires_s * 1000)
    assert check(SERVICE.token(azp="app"), TokenRules(sub_claim_name="azp")).name == "app"
    assert check(SERVICE.token(header={"alg": "ES256"})).name == "alice"


def test_any_kind_of_public_key_will_do() -> None:
    rsa = rsa_key("rsa")
    keys = parse_keys(SERVICE.jwks(rsa))
    now_s = time.time()
    claims = {"sub": "bob", "iat": now_s, "exp": now_s + 60}
    for algorithm in ("RS256", "PS512"):
        token = jwt.encode({"alg": algorithm, "kid": "rsa"}, claims, rsa, [algorithm])
        assert check(token, keys=keys).name == "bob"
    with pytest.raises(UnknownKeyError):
        check(SERVICE.token(header={"alg": "ES256"}), keys=keys)


def test_a_key_is_for_its_algorithm_and_for_signatures() -> None:
    rsa = rsa_key("rsa")
    document = json.loads(SERVICE.jwks(rsa))
    [row] = [one for one in document["keys"] if one["kid"] == "rsa"]
    now_s = time.time()
    claims = {"sub": "bob", "iat": now_s, "exp": now_s + 60}
    token = jwt.encode({"alg": "RS256", "kid": "rsa"}, claims, rsa, ["RS256"])

    def keys(**more: str) -> Mapping[str, Key]:
        return parse_keys(json.dumps({"keys": [{**row, **more}]}).encode())

    assert check(token, keys=keys(alg="RS256", use="sig")).name == "bob"
    with pytest.raises(SaslFailedError, match="RS256, which is not its key's"):
        check(token, keys=keys(alg="RS512"))
    with pytest.raises(UnknownKeyError):
        check(token, keys=keys(use="enc"))


@pytest.mark.parametrize(
    ("claims", "rules", "why"),
    [
        ({"exp": 1}, RULES, "has expired"),
        ({"exp": None}, RULES, "exp is no time"),
        ({"exp": "9999999999"}, RULES, "exp is no time"),
        ({"exp": True}, RULES, "exp is no time"),
        ({"exp": float("inf")}, RULES, "exp is no time|cannot be verified"),
        ({"exp": 10**400}, RULES, "exp is no time|cannot be verified"),
        ({"iat": None}, RULES, "iat is no time"),
        ({"nbf": 9_999_999_999}, RULES, "not valid yet"),
        ({"sub": None}, RULES, "without sub"),
        ({"sub": " "}, RULES, "without sub"),
        ({"sub": 7}, RULES, "without sub"),
        ({}, TokenRules(sub_claim_name="azp"), "without azp"),
        ({}, TokenRules(issuer="me"), "of the issuer 'None'"),
        ({"iss": "you"}, TokenRules(issuer="me"), "of the issuer 'you'"),
        ({}, TokenRules(audiences=("us",)), "another audience"),
        ({"aud": "them"}, TokenRules(audiences=("us",)), "another audience"),
        ({"aud": "us"}, RULES, "another audience"),
        ({"aud": [7, "them", ["us"]]}, TokenRules(audiences=("us",)), "another audience"),
        ({"aud": "x" * 70_000}, RULES, "characters"),
    ],
)
def test_what_a_token_says_has_to_be_right(claims: Any, rules: TokenRules, why: str) -> None:
    with pytest.raises(SaslFailedError, match=why):
        check(SERVICE.token(**claims), rules)


def test_issuer_audience_and_clocks() -> None:
    rules = TokenRules(issuer="me", audiences=("us", "you"), clock_skew_seconds=20)
    token = SERVICE.token(iss="me", aud=["them", "you"], exp=time.time() + 10)
    assert check(token, rules).name == "alice"
    assert check(token, rules, ahead_s=25).name == "alice"
    with pytest.raises(SaslFailedError, match="has expired"):
        check(token, rules, ahead_s=35)


def test_the_skew_of_clocks_counts_to_the_second() -> None:
    now_s = 2_000_000_000
    rules = TokenRules(clock_skew_seconds=20)
    keys = parse_keys(SERVICE.jwks())
    token = SERVICE.token(iat=now_s, nbf=now_s, exp=now_s + 100)
    for at_s in (now_s - 20, now_s + 119):
        assert check_token(token, keys, rules, at_s).name == "alice"
    with pytest.raises(SaslFailedError, match="not valid yet"):
        check_token(token, keys, rules, now_s - 21)
    with pytest.raises(SaslFailedError, match="has expired"):
        check_token(token, keys, rules, now_s + 120)


def forged() -> Iterator[tuple[str, str]]:
    now_s = time.time()
    claims = {"sub": "admin", "iat": now_s, "exp": now_s + 3_600}
    good = SERVICE.token()
    head, body, signature = good.split(".")
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        header = {"alg": algorithm, "kid": "one"}
        yield f"algorithm {algorithm!r}", f"{part(header)}.{part(claims)}."
        yield f"algorithm {algorithm!r} and a signature", f"{part(header)}.{part(claims)}.{signature}"
    yield "no algorithm", f"{part({'kid': 'one'})}.{part(claims)}.{signature}"
    yield "another body", f"{head}.{part(claims)}.{signature}"
    yield "no signature", f"{head}.{body}."
    yield "a cut signature", good[:-4]
    yield "two parts", f"{head}.{body}"
    yield "four parts", f"{good}.x"
    yield "no header", f".{body}.{signature}"
    yield "nothing", ".."
    yield "a word", "alice"
    yield "a header that is none", f"{part([1])}.{body}.{signature}"
    yield (
        "a critical extension",
        f"{part({'alg': 'ES256', 'kid': 'one', 'crit': ['x'], 'x': 1})}.{body}.{signature}",
    )
    public = json.dumps(SERVICE.key.as_dict(private=False)).encode()
    signed = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(claims)}"
    mac = hmac.digest(public, signed.encode(), hashlib.sha256)
    yield "the public key as a secret", f"{signed}.{OctKey.import_key(mac).as_dict()['k']}"
    mine = ECKey.generate_key("P-256", {"kid": "one"})
    yield "somebody's own key", jwt.encode({"alg": "ES256", "kid": "one"}, claims, mine)
    own = {"alg": "ES256", "kid": "one", "jwk": mine.as_dict(private=False)}
    yield "a key in the token", jwt.encode(own, claims, mine)
    yield "a key elsewhere", jwt.encode({"alg": "ES256", "kid": "../one", "jku": "http://x"}, claims, mine)


@pytest.mark.parametrize("token", [pytest.param(token, id=what) for what, token in forged()])
def test_a_forged_token_is_refused(token: str) -> None:
    with pytest.raises(SaslFailedError) as raised:
        check(token)
    assert token not in str(raised.value) or len(token) < 6


def test_a_set_of_keys_without_a_public_one_is_none() -> None:
    secret = {"keys": [OctKey.generate_key(256).as_dict()]}
    for text in (
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"keys": []}',
        '{"keys": [7]}',
        json.dumps(secret),
        "[" * 100_000,
    ):
        with pytest.raises(ValueError, match="no key set"):
            parse_keys(text.encode())


def first(token: str, authzid: str = "", scheme: str = "Bearer", more: str = "") -> bytes:
    named = f"a={authzid}" if authzid else ""
    return f"n,{named},\x01auth={scheme} {token}\x01{more}\x01".encode()


@pytest.mark.parametrize("more", ["", "ext=1\x01", "host=x\x01port=1\x01"])
def test_the_exchange(more: str) -> None:
    exchange = OAuthExchange(check)
    assert exchange.step(first(SERVICE.token(), "alice", more=more)) == b""
    assert exchange.done
    assert exchange.user == "alice"
    assert exchange.expires_ms is not None
    with pytest.raises(SaslFailedError, match="is over"):
        exchange.step(first(SERVICE.token()))


def test_a_refused_token_is_told_so_in_json() -> None:
    exchange = OAuthExchange(check)
    assert exchange.step(first(SERVICE.token(exp=1))) == INVALID_TOKEN.encode()
    assert not exchange.done
    with pytest.raises(SaslFailedError, match="has expired") as raised:
        exchange.step(b"\x01")
    assert raised.value.answer == INVALID_TOKEN
    with pytest.raises(SaslFailedError, match="has expired"):
        exchange.step(first(SERVICE.token()))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x",
        b"y,,\x01auth=Bearer x\x01\x01",
        first("x", scheme="Basic"),
        first("x\xff"),
        first("x" * 200_000),
    ],
)
def test_what_is_no_first_message(message: bytes) -> None:
    exchange = OAuthExchange(check)
    with pytest.raises(SaslFailedError, match="OAUTHBEARER"):
        exchange.step(message)
    with pytest.raises(SaslFailedError, match="is over"):
        exchange.step(first(SERVICE.token()))


def test_nobody_acts_for_another() -> None:
    with pytest.raises(SaslFailedError, match=r"authorization id \(bob\)") as raised:
        OAuthExchange(check).step(first(SERVICE.token(), "bob"))
    assert raised.value.answer


# ---- where keys come from ----


@pytest.mark.parametrize(
    "url", ["", "x", "file:", "ftp://h/x", "http://keys.example/x", "https:///x", "http://127.0.0.1.example/"]
)
def test_where_keys_do_not_come_from(url: str) -> None:
    with pytest.raises(ValueError, match="file: or https: URL"):
        check_url(url)


class _Handler(http.server.BaseHTTPRequestHandler):
    answers: ClassVar[list[tuple[int, bytes]]]

    def do_GET(self) -> None:
        status, body = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that does not trust it hangs up."""


Answers = list[tuple[int, bytes]]


@contextlib.contextmanager
def answering(tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, Answers]]:
    """A URL of keys, and what it answers: one after the other, the last for ever."""
    answers: Answers = []
    handler = type("Handler", (_Handler,), {"answers": answers})
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_port}/keys?secret=hidden", answers
        server.shutdown()
        thread.join()


@pytest.fixture
def endpoint() -> Iterator[tuple[str, Answers]]:
    with answering() as found:
        yield found


def test_keys_come_from_a_file_or_a_url(tmp_path: Path, endpoint: Any) -> None:
    (tmp_path / "keys.json").write_bytes(SERVICE.jwks())
    assert set(read_keys((tmp_path / "keys.json").as_uri())) == {"one"}
    url, answers = endpoint
    answers.append((200, SERVICE.jwks(rsa_key("two"))))
    assert set(read_keys(url)) == {"one", "two"}


def test_keys_over_https_come_from_who_is_trusted(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with answering(certificates.server_tls()) as (url, answers):
        answers.append((200, SERVICE.jwks()))
        assert set(read_keys(url, certificates.authority)) == {"one"}
        elsewhere = Certificates(tmp_path / "elsewhere").authority
        for trusted in (None, elsewhere):
            with pytest.raises(KeysError, match="CERTIFICATE_VERIFY_FAILED") as raised:
                read_keys(url, trusted)
            assert "hidden" not in str(raised.value)
    other = certificates.issued("other", "other.example")
    with (
        answering(certificates.server_tls(other)) as (url, _),
        pytest.raises(KeysError, match="IP address mismatch"),
    ):
        read_keys(url, certificates.authority)
    (tmp_path / "empty.pem").touch()
    for file, why in (("nowhere.pem", "No such file"), ("empty.pem", "is not PEM")):
        with pytest.raises(
            KeysError, match=rf"^sasl\.oauthbearer\.jwks\.truststore\.location, .*{file}: {why}"
        ):
            read_keys(url, tmp_path / file)


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b""), (302, b""), (307, b""), (200, b"{}"), (200, b" " * (jwks.MAX_BYTES + 1))],
    ids=["404", "302", "307", "empty", "large"],
)
def test_keys_that_cannot_be_read_are_one_sentence(endpoint: Any, status: int, body: bytes) -> None:
    url, answers = endpoint
    answers.append((status, body))
    with pytest.raises(
        KeysError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url, http://127\.0\.0\.1/keys"
    ) as raised:
        read_keys(url)
    assert "hidden" not in str(raised.value)
    with pytest.raises(KeysError, match="No such file"):
        read_keys("file:///nowhere/at/all")


async def test_a_new_key_is_looked_for_when_a_token_names_it(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "RETRY_S", 0.05)
    url, answers = endpoint
    newer = TokenService("newer")
    answers += [(200, SERVICE.jwks()), (500, b""), (200, newer.jwks())]
    keys = Keys(url, RULES, 3_600_000, get_log())
    await keys.start()
    try:
        assert keys.check(SERVICE.token()).name == "alice"
        with pytest.raises(UnknownKeyError):
            await asyncio.to_thread(keys.check, newer.token())
        await until(lambda: _good(keys, newer.token()))
        assert len(answers) == 1
    finally:
        await keys.stop()
        await keys.stop()


async def test_a_key_that_is_named_just_after_a_look_is_not_forgotten(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "RETRY_S", 0.05)
    url, answers = endpoint
    newer = TokenService("newer")
    answers += [(200, SERVICE.jwks()), (200, newer.jwks()), (500, b"")]
    keys = Keys(url, RULES, 3_600_000, get_log())
    await keys.start()
    try:
        with pytest.raises(UnknownKeyError):
            keys.check(newer.token())  # one time, while the next look may not come yet
        await until(lambda: len(answers) == 1)
        await until(lambda: _good(keys, newer.token()))
    finally:
        await keys.stop()


async def test_keys_that_could_not_be_read_are_looked_for_again_soon(
    endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "RETRY_S", 0.05)
    url, answers = endpoint
    newer = TokenService("newer")
    answers += [(200, SERVICE.jwks()), (500, b""), (200, newer.jwks())]
    keys = Keys(url, RULES, 3_600_000, get_log())
    await keys.start()
    try:
        with pytest.raises(UnknownKeyError):
            keys.check(newer.token())
        known = {*keys._keys}
        await until(lambda: {*keys._keys} != known)  # though no token names the key again
    finally:
        await keys.stop()


def _good(keys: Keys, token: str) -> bool:
    try:
        return bool(keys.check(token))
    except UnknownKeyError:
        return False
