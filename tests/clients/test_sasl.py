"""SASL conversations: the examples of the RFCs, and servers that do not keep to them."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.connection.security.sasl import (
    Conversation,
    SaslOAuthBearer,
    SaslPlain,
    SaslScram,
    oauth_conversation,
    plain_conversation,
    scram_conversation,
)
from ringleader.clients.errors import AuthenticationError

NONCE = "rOprNGfwEbeRWgbNEkqO"
LIKELY = [
    b"r=rOprNGfwEbeRWgbNEkqOx,s=eA==,i=4096",
    b"v=eA==",
    b"e=no",
    b"r=,s=,i=",
    b"v=",
    b"",
    b'{"status":7}',
    b"{}",
]
"""Messages that servers send, right and wrong."""
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def play(conversation: Conversation, *answers: str) -> list[str]:
    """The client's messages while the server answers so."""
    messages = [next(conversation)]
    try:
        for answer in answers:
            messages.append(conversation.send(answer.encode()))  # noqa: PERF401 - what came before the end counts
    except StopIteration:
        assert len(messages) == len(answers), "it ended before the server had said everything"
    else:
        raise AssertionError("the conversation goes on")
    return [one.decode() for one in messages]


def test_scram_as_in_rfc_5802() -> None:
    talk = scram_conversation("user", "pencil", "sha1", "fyko+d2lbbFgONRv9qkxdawL")
    nonce = "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    assert play(talk, f"r={nonce},s=QSXCR+Q6sek8bf92,i=4096", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=") == [
        "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        f"c=biws,r={nonce},p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    ]


def test_scram_as_in_rfc_7677() -> None:
    talk = scram_conversation("user", "pencil", "sha256", NONCE)
    assert play(talk, SERVER_FIRST, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") == [
        f"n,,n=user,r={NONCE}",
        f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    ]


def test_scram_user_names_are_escaped() -> None:
    assert next(scram_conversation("a=b,c", "x", "sha256", "n")) == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("", "fields"),
        ("e=other-error", "other-error"),
        ("m=ext,r=x,s=eA==,i=4096", "fields"),
        (f"r={NONCE}xy,i=4096,s=eA==", "fields"),
        (f"r={NONCE},s=eA==,i=4096", "nonce"),
        ("r=another,s=eA==,i=4096", "nonce"),
        (f"r={NONCE}\x7f,s=eA==,i=4096", "nonce"),
        (f"r={NONCE}x,s=,i=4096", "salt has 0"),
        (f"r={NONCE}x,s=!!,i=4096", "base64"),
        (f"r={NONCE}x,s={base64.b64encode(bytes(1025)).decode()},i=4096", "salt has 1025"),
        (f"r={NONCE}x,s=eA==,i=4095", "4095"),
        (f"r={NONCE}x,s=eA==,i=131073", "131073"),
        (f"r={NONCE}x,s=eA==,i=-1", "iterations"),
        (f"r={NONCE}x,s=eA==,i={'9' * 5000}", "iterations"),
        (f"r={NONCE}x,s=eA==,i=", "iterations"),
        ("x" * 70_000, "70000 bytes"),
    ],
)
def test_a_server_that_begins_scram_wrongly(first: str, why: str) -> None:
    talk = scram_conversation("user", "pencil", "sha256", NONCE)
    next(talk)
    with pytest.raises(AuthenticationError, match=why):
        talk.send(first.encode())


@pytest.mark.parametrize(
    ("final", "why"),
    [
        ("v=AAAA6TRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4", "not the one it says"),
        ("v=", "not the one it says"),
        ("v=x!", "base64"),
        ("", "fields"),
        ("e=invalid-proof", "invalid-proof"),
    ],
)
def test_a_server_that_does_not_know_the_password(final: str, why: str) -> None:
    talk = scram_conversation("user", "pencil", "sha256", NONCE)
    next(talk)
    talk.send(SERVER_FIRST.encode())
    with pytest.raises(AuthenticationError, match=why):
        talk.send(final.encode())


def test_bytes_that_are_no_text() -> None:
    talk = scram_conversation("user", "pencil", "sha256", NONCE)
    next(talk)
    with pytest.raises(AuthenticationError, match="UTF-8"):
        talk.send(b"\xff\xfe")


def test_plain_as_in_rfc_4616() -> None:
    assert play(plain_conversation("tim", "tanstaaftanstaaf"), "") == ["\0tim\0tanstaaftanstaaf"]


def test_oauth_as_in_rfc_7628() -> None:
    talk = oauth_conversation("vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==", {"host": "server.example.com"})
    token = "auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    assert play(talk, "") == [f"n,,\x01{token}\x01host=server.example.com\x01\x01"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            '{"status":"invalid_token","scope":"kafka","openid-configuration":"https://id.example"}',
            "status invalid_token, scope kafka, openid-configuration https://id.example",
        ),
        ('{"more":1}', '{"more":1}'),
        ("[]", r"\[\]"),
        ("no JSON", "no JSON"),
        ("[" * 50_000, r"\[\["),
    ],
)
def test_a_token_that_is_refused(answer: str, why: str) -> None:
    talk = oauth_conversation("token", {})
    next(talk)
    assert talk.send(answer.encode()) == b"\x01"
    with pytest.raises(AuthenticationError, match=why):
        talk.send(b"")


@pytest.mark.parametrize("token", ["", "a b", "a\x01b", "ä", "=", "x" * 70_000])
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(AuthenticationError, match="RFC 6750") as raised:
        next(oauth_conversation(token, {}))
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: SaslPlain("", "x"), "username must not be empty"),
        (lambda: SaslPlain("x", ""), "password must not be empty"),
        (lambda: SaslPlain("x\0y", "x"), "zero character"),
        (lambda: SaslScram("x", "y" * 70_000), "password is longer"),
        (lambda: SaslScram("x", "y", "MD5"), "SHA-256, SHA-512"),
        (lambda: SaslOAuthBearer(str, {"auth": "x"}), "auth"),
        (lambda: SaslOAuthBearer(str, {"a1": "x"}), "letters"),
        (lambda: SaslOAuthBearer(str, {"a": "\x01"}), "printable"),
        (lambda: SaslOAuthBearer(str, {"a": "x" * 70_000}), "extensions"),
    ],
)
def test_what_cannot_be_said(make: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_secrets_are_not_shown_and_travel_to_other_processes() -> None:
    for sasl in (
        SaslPlain("ann", "s3cret"),
        SaslScram("ann", "s3cret"),
        SaslScram("ann", "s3cret", "SHA-256"),
    ):
        assert "ann" in repr(sasl)
        assert "s3cret" not in repr(sasl) + str(sasl)
        assert pickle.loads(pickle.dumps(sasl)) == sasl
    assert "s3cret" not in repr(SaslOAuthBearer(lambda: "s3cret", {"a": "s3cret"}))
    assert [one.mechanism for one in (SaslPlain("a", "b"), SaslScram("a", "b"), SaslOAuthBearer(str))] == [
        "PLAIN",
        "SCRAM-SHA-512",
        "OAUTHBEARER",
    ]


# ---- whatever a server says ----


@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from(LIKELY)), max_size=4))
def test_any_answer_of_a_server(answers: list[bytes]) -> None:
    """A conversation goes on, ends, or refuses, and does nothing else; the password is in no error."""
    texts = []
    for talk in (
        scram_conversation("user", "pa55word", "sha256", NONCE),
        oauth_conversation("pa55word", {}),
        plain_conversation("user", "pa55word"),
    ):
        next(talk)
        try:
            for answer in answers:
                talk.send(answer)
        except (StopIteration, AuthenticationError) as end:
            texts.append(str(end))
    assert "pa55word" not in "".join(texts)
