"""SCRAM and PLAIN as exchanges: who gets through, and who does not."""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

import pytest

from ringleader.coordinator.security.exchange import SaslFailedError
from ringleader.coordinator.security.plain import PlainExchange
from ringleader.coordinator.security.scram import (
    MECHANISMS,
    MIN_ITERATIONS,
    SHA_256,
    SHA_512,
    Credential,
    Mechanism,
    ScramExchange,
    salt_password,
)
from ringleader.coordinator.security.store import FILE, FileStore
from ringleader.coordinator.security.users import SALT_CHARACTERS, Users
from ringleader.coordinator.topics.disk import DamagedError
from tests.support.registered import ALICE, PASSWORD, ScramClient, credential, registered


def exchange(users: Users, mechanism: Mechanism = SHA_512) -> ScramExchange:
    return ScramExchange(mechanism, users, secrets.token_urlsafe(24))


class Fixed:
    """One user, whatever the name."""

    def __init__(self, one: Credential) -> None:
        self.one = one

    def credential(self, user: str, mechanism: Mechanism) -> Credential:
        return self.one


def test_the_example_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    known = Credential.salted(SHA_256, 4_096, salt, salt_password(SHA_256, b"pencil", salt, 4_096))
    server = ScramExchange(SHA_256, Fixed(known), "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert (
        server.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
        == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert (
        server.step(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    assert server.done
    assert server.user == "user"


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
@pytest.mark.parametrize("name", [ALICE, "a=b,c", "=2C", "=3D2C"])
async def test_the_right_password_authenticates(tmp_path: Path, mechanism: Mechanism, name: str) -> None:
    users = (await registered(tmp_path, name)).users
    server, client = exchange(users, mechanism), ScramClient(name, mechanism=mechanism)
    answer = server.step(client.final(server.step(client.first)))
    assert answer == b"v=" + base64.b64encode(client.server_signature)
    assert server.done
    assert server.user == name


@pytest.mark.parametrize("name", [ALICE, "mallory"])
async def test_a_wrong_password_and_an_unknown_user_look_alike(tmp_path: Path, name: str) -> None:
    users = (await registered(tmp_path)).users
    firsts = []
    for _ in range(2):
        server, client = exchange(users), ScramClient(name, "wrong")
        firsts.append(server.step(client.first))
        with pytest.raises(SaslFailedError, match="Invalid client credentials") as raised:
            server.step(client.final(firsts[-1]))
        assert not raised.value.answer
        assert not server.done
    one, other = (dict(part.split("=", 1) for part in first.decode().split(",")) for first in firsts)
    assert one["r"] != other["r"]
    assert one["s"] == other["s"]
    assert one["i"] == "4096"
    assert len(base64.b64decode(one["s"])) == SALT_CHARACTERS


async def test_the_iterations_of_unknown_users_are_those_of_most(tmp_path: Path) -> None:
    users = (await registered(tmp_path, "a")).users
    assert users.credential("nobody", SHA_256).iterations == MIN_ITERATIONS
    many = {SHA_256.name: credential(SHA_256, iterations=8_192)}
    await users.change({"b": many, "c": many})
    assert users.credential("nobody", SHA_256).iterations == 8_192
    assert users.credential("nobody", SHA_512).iterations == MIN_ITERATIONS
    assert users.any_credential("nobody").mechanism == SHA_256
    await users.change({"b": {}, "c": {}})
    assert users.any_credential("nobody").mechanism == SHA_512
    assert set(users.known()) == {"a"}


async def test_made_up_salts_differ_by_user_mechanism_and_node(tmp_path: Path) -> None:
    one, other = (await registered(tmp_path)).users, Users(FileStore(tmp_path / "other"))
    salts = {one.credential(name, kind).salt for name in ("x", "y") for kind in MECHANISMS.values()}
    salts |= {other.credential(name, kind).salt for name in ("x", "y") for kind in MECHANISMS.values()}
    assert len(salts) == 8
    assert one.credential("x", SHA_512).salt in salts


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,n=,r=x",
        b"n,,r=x,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,m=must,n=alice,r=x",
        b"n,,n=alice,r=x y",
        b"n,,n=alice,r=x,",
        b"n,,n=alice,r=x,tokenauth=true",
        b"n,,n=alice,r=x\n",
        b"n,a=bob,n=alice,r=x",
        "n,,n=ali\u00e7e,r=x".encode(),
        b"n,,n=" + b"a" * 70_000 + b",r=x",
    ],
)
async def test_a_first_message_that_is_none(tmp_path: Path, first: bytes) -> None:
    users = (await registered(tmp_path)).users
    server = exchange(users)
    with pytest.raises(SaslFailedError):
        server.step(first)
    client = ScramClient()
    with pytest.raises(SaslFailedError, match="is over"):
        server.step(client.first)
    assert not server.done


async def test_every_cut_of_the_last_message_is_refused(tmp_path: Path) -> None:
    users = (await registered(tmp_path)).users
    client = ScramClient()
    whole = client.final(exchange(users).step(client.first))
    for length in range(len(whole)):
        server = exchange(users)
        server.step(client.first)
        with pytest.raises(SaslFailedError):
            server.step(whole[:length])
        assert not server.done


async def test_a_last_message_is_good_for_its_own_exchange_only(tmp_path: Path) -> None:
    users = (await registered(tmp_path)).users
    client = ScramClient()
    seen, replayed = exchange(users), exchange(users)
    last = client.final(seen.step(client.first))
    assert seen.step(last)
    replayed.step(client.first)
    with pytest.raises(SaslFailedError, match="Invalid client nonce"):
        replayed.step(last)
    with pytest.raises(SaslFailedError, match="is over"):
        seen.step(last)
    server = exchange(users)
    first = server.step(client.first)
    with pytest.raises(SaslFailedError, match="Invalid client nonce"):
        server.step(client.final(first, nonce="mine"))
    server = exchange(users)
    with pytest.raises(SaslFailedError, match="channel binding"):
        server.step(client.final(server.step(client.first), channel="eSws"))


async def test_keys_that_are_kept_prove_nothing(tmp_path: Path) -> None:
    """A thief of the file knows stored keys; with one in place of the client's key nobody gets in."""
    users = (await registered(tmp_path)).users
    known = users.credential(ALICE, SHA_512)
    server, client = exchange(users), ScramClient()
    first = server.step(client.first)
    without = b"c=biws,r=" + first.split(b",")[0][2:]
    signed = b",".join((client.bare.encode(), first, without))
    signature = hashlib.sha512(signed).digest()
    for key in (known.stored_key, known.server_key, signature):
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        again = ScramExchange(SHA_512, users, "theirs")
        again.step(client.first)
        with pytest.raises(SaslFailedError):
            again.step(without + b",p=" + base64.b64encode(proof))


async def test_plain_takes_the_same_users(tmp_path: Path) -> None:
    users = (await registered(tmp_path, "al\u00efce")).users
    server = PlainExchange(users)
    assert server.step(f"\0al\u00efce\0{PASSWORD}".encode()) == b""
    assert server.done
    assert server.user == "al\u00efce"
    assert PlainExchange(users).step(f"al\u00efce\0al\u00efce\0{PASSWORD}".encode()) == b""
    with pytest.raises(SaslFailedError, match="is over"):
        server.step(f"\0al\u00efce\0{PASSWORD}".encode())


@pytest.mark.parametrize(
    ("message", "why", "answered"),
    [
        (b"", "expected 3 tokens", True),
        (b"\0alice", "expected 3 tokens", True),
        (b"\0alice\0open sesame\0", "expected 3 tokens", True),
        (b"\0\0open sesame", "username not specified", True),
        (b"\0alice\0", "password not specified", True),
        (b"\0alice\0wrong", "Invalid username or password", True),
        (b"\0mallory\0open sesame", "Invalid username or password", True),
        (b"bob\0alice\0open sesame", "authorization id", True),
        (b"\0\xff\0open sesame", "UTF-8", False),
        (b"\0alice\0" + b"x" * 70_000, "70,007 bytes", False),
    ],
)
async def test_plain_refuses(tmp_path: Path, message: bytes, why: str, answered: bool) -> None:
    server = PlainExchange((await registered(tmp_path)).users)
    with pytest.raises(SaslFailedError, match=why) as raised:
        server.step(message)
    assert bool(raised.value.answer) == answered
    assert not server.done
    assert "sesame" not in str(raised.value)


async def test_users_outlive_a_start_and_show_no_secret(tmp_path: Path) -> None:
    before = (await registered(tmp_path, "a", "b")).users
    store = FileStore(tmp_path / FILE)
    store.open()
    after = Users(store)
    after.load()
    assert after.known() == before.known()
    one = after.credential("a", SHA_512)
    for secret in (one.salt, one.stored_key, one.server_key):
        assert repr(secret) not in repr(one)


@pytest.mark.parametrize(
    "row",
    [None, [], "x", {}, {"SCRAM-MD5": {}}, {"SCRAM-SHA-512": {"iterations": 4096, "salt": "="}}],
)
async def test_a_user_that_cannot_be_read_is_refused(tmp_path: Path, row: object) -> None:
    store = FileStore(tmp_path / FILE)
    store.open()
    await store.change("users", {"alice": row if row is not None else 7})
    with pytest.raises(DamagedError, match="user 'alice' cannot be read"):
        Users(store).load()
