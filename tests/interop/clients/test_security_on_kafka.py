"""TLS and SASL with an Apache Kafka broker: every mechanism, sessions that end, what goes wrong in words."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleader.cli import run
from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import (
    Sasl,
    SaslOAuthBearer,
    SaslPlain,
    SaslScram,
    security_from_properties,
)
from ringleader.clients.errors import AuthenticationError, MembershipError, RetriableError, TlsError
from ringleader.clients.model import Assigned, Lost, Revoked
from tests.interop.clients.team import TOPIC
from tests.interop.secured import PASSWORD, USER, Door, Secured, token
from tests.support.sharding import PATIENCE_S, SHARDS, Diary, member, shards

SCRAM = SaslScram(USER, PASSWORD)
KINDS: list[Sasl] = [
    SaslPlain(USER, PASSWORD),
    SaslScram(USER, PASSWORD, "SHA-256"),
    SCRAM,
    SaslOAuthBearer(token),
    SaslOAuthBearer(token, {"traceId": "7"}),
]


async def topics(door: Door, timeout_ms: int = 10_000) -> list[str]:
    async with Admin(door.bootstrap, timeout_ms=timeout_ms, **door.security) as admin:
        return sorted(topic.name for topic in await admin.list_topics() if not topic.internal)


@pytest.mark.parametrize("listener", ["SECURE", "SASL"])
@pytest.mark.parametrize("sasl", KINDS, ids=lambda sasl: str(sasl.mechanism))
async def test_every_mechanism(secured: Secured, listener: str, sasl: Sasl) -> None:
    assert TOPIC in await topics(secured.door(listener, tls=listener == "SECURE", sasl=sasl))


async def test_a_clients_certificate(secured: Secured) -> None:
    mutual = secured.broker.address("MUTUAL")
    tls = secured.certificates.client_tls(secured.certificates.issued("client"))
    assert TOPIC in await topics(Door(mutual, tls))
    with pytest.raises(TlsError, match="asks for a client certificate"):
        await topics(Door(mutual, secured.certificates.client_tls()))


@pytest.mark.parametrize(
    "sasl", [SCRAM, SaslPlain(USER, PASSWORD), None], ids=["SCRAM", "PLAIN", "OAUTHBEARER"]
)
async def test_a_session_is_renewed_on_the_way(
    secured: Secured, group: str, sasl: Sasl | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker ends connections whose session is over. These go on, and the member never notices."""
    caplog.set_level(logging.DEBUG, "ringleader.clients.connection.connection")
    door = secured.door("BRIEF", sasl=sasl or SaslOAuthBearer(token))
    diary = Diary()
    async with member(door.bootstrap, diary, group=group, **door.security) as one:
        share = await one.wait_assigned(PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while caplog.text.count("authenticated again") < 4:
                await one.commit({("t", 0): one.metrics().heartbeats})
        assert one.assigned == share
        assert diary.lines == [share]
    assert "could not authenticate again" not in caplog.text


WRONG: list[tuple[str, Callable[[Secured], Door], str]] = [
    (
        "password",
        lambda secured: secured.secure(SaslScram(USER, "wrong")),
        f"refused user '{USER}' .SCRAM-SHA-512.: .*invalid credentials.*: check user name and password",
    ),
    (
        "plain password",
        lambda secured: secured.secure(SaslPlain(USER, "wrong")),
        "PLAIN.: Authentication failed: Invalid username or password",
    ),
    ("user", lambda secured: secured.secure(SaslScram("bob", PASSWORD)), "refused user 'bob'"),
    (
        "expired token",
        lambda secured: secured.secure(SaslOAuthBearer(lambda: token(lifetime_s=-900))),
        "refused the token .OAUTHBEARER.: .*invalid_token",
    ),
    (
        "no token",
        lambda secured: secured.secure(SaslOAuthBearer(lambda: "not a token")),
        "gave no bearer token",
    ),
    ("no SASL", lambda secured: secured.door("SASL"), "asks for SASL: .*SCRAM-SHA-512"),
    ("no SASL in TLS", lambda secured: secured.door("SECURE", tls=True), "asks for SASL: .*PLAIN"),
    (
        "SASL for nobody",
        lambda secured: Door(secured.broker.bootstrap, None, SCRAM),
        "does not ask for SASL on this port",
    ),
    ("TLS for nobody", lambda secured: secured.door("SASL", tls=True, sasl=SCRAM), "does not speak TLS"),
    ("no TLS", lambda secured: secured.door("SECURE", sasl=SCRAM), "speaks TLS"),
    (
        "a stranger",
        lambda secured: Door(secured.broker.address("SECURE"), ssl.create_default_context(), SCRAM),
        "is not trusted: unable to get local issuer certificate",
    ),
]


@pytest.mark.parametrize(("make", "why"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
async def test_a_member_that_is_not_let_in_ends(
    secured: Secured, group: str, make: Callable[[Secured], Door], why: str
) -> None:
    door = make(secured)
    errors: list[MembershipError] = []
    async with member(door.bootstrap, group=group, on_failed=errors.append, **door.security) as one:
        with pytest.raises(AuthenticationError, match=why) as raised:
            await one.wait_assigned(PATIENCE_S)
    assert [type(error) for error in errors] == [type(raised.value)]
    assert "\n" not in str(raised.value)
    assert not any(secret in str(raised.value) for secret in (PASSWORD, "wrong"))


async def test_a_member_waits_for_its_token(secured: Secured, group: str) -> None:
    """The source of the tokens may be away for a moment."""
    calls: list[int] = []

    async def patchy() -> str:
        calls.append(1)
        if len(calls) < 4:
            raise OSError("the token endpoint is away")
        return token()

    diary = Diary()
    door = secured.secure(SaslOAuthBearer(patchy))
    async with member(door.bootstrap, diary, group=group, **door.security) as one:
        assert len(shards(await one.wait_assigned(PATIENCE_S))) == SHARDS
    assert (len(diary.of(Assigned)), diary.of(Lost), len(diary.of(Revoked))) == (1, [], 1)
    with pytest.raises(RetriableError, match="OSError: never"):
        await topics(secured.secure(SaslOAuthBearer(_never)), timeout_ms=300)


def _never() -> str:
    raise OSError("never")


# ---- by properties ----


def properties(secured: Secured, directory: Path, **more: str) -> Path:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{PASSWORD}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.certificates.authority),
    } | {name.replace("_", "."): value for name, value in more.items()}
    path = directory / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    return path


def test_the_command_line(secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", secured.broker.address("SECURE"), "--command-config"]
    path = properties(secured, tmp_path)
    assert run(["topics", "list", "--json", *where, str(path)]) == 0
    assert f'"topic": "{TOPIC}"' in capsys.readouterr().out
    assert run(["groups", "list", *where, str(path)]) == 0
    assert capsys.readouterr().err == ""
    other = 'a.ScramLoginModule required username="x" password="y";'
    for code, more, why in (
        (2, {"ssl_truststore_location": "/etc/hosts"}, "is not PEM"),
        (2, {"security_protocol": "TLS"}, "security.protocol is 'TLS'"),
        (1, {"sasl_jaas_config": other}, "refused user 'x'"),
    ):
        assert run(["topics", "list", *where, str(properties(secured, tmp_path, **more))]) == code
        stderr = capsys.readouterr().err
        assert why in stderr
        assert stderr.count("\n") == 1


async def test_names_of_librdkafka(secured: Secured, group: str) -> None:
    found = security_from_properties(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(secured.certificates.authority),
        }
    )
    bootstrap = secured.broker.address("SECURE")
    async with member(bootstrap, group=group, tls=found.tls, sasl=found.sasl) as one:
        assert len(shards(await one.wait_assigned(PATIENCE_S))) == SHARDS
