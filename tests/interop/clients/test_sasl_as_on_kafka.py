"""The answers of a daemon to a client that has not authenticated yet: the same as Apache Kafka's,
conversation by conversation. And Kafka's own tool makes users of a daemon."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.interop.kafka import tool
from tests.interop.secured import LIFETIME_MS, OTHER, PASSWORD, USER, Secured, secured_broker
from tests.support.certificates import Certificates
from tests.support.registered import ScramClient, credential
from tests.support.served import Client, connected

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    with secured_broker(tmp_path_factory.mktemp("kafka"), certificates) as broker:
        yield Secured(broker, certificates)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    settings = Settings(
        listeners="SASL://127.0.0.1:0,BRIEF://127.0.0.1:0",
        listener_security_protocol_map="SASL:SASL_PLAINTEXT,BRIEF:SASL_PLAINTEXT",
        listener_name={"brief": {"connections_max_reauth_ms": LIFETIME_MS}},
        data_dir=tmp_path,
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        sasl_cleartext_without_tls=True,
        connection_failed_authentication_delay_ms=10,
    )
    async with Node(settings) as started:
        known = {one.name: credential(one, PASSWORD) for one in MECHANISMS.values()}
        await started.security.users.change({USER: known, OTHER: known})
        yield started


Talk = Callable[["Dialog"], Awaitable[None]]


class Dialog:
    """One connection, and the answers that it got."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.answers: list[Any] = []

    async def ask(self, request: Any, version: int) -> Any:
        """The answer; it is kept. Raises IncompleteReadError when there is none."""
        answer = await self.client.call(request, version)
        kept = {name: getattr(answer, name, None) for name in ("error_code", "error_message")}
        if isinstance(request, SaslHandshakeRequest):
            kept["mechanisms"] = set(answer.mechanisms) - {"OAUTHBEARER"}
        if isinstance(request, SaslAuthenticateRequest):
            kept["lifetime"] = answer.session_lifetime_ms
            kept["bytes"] = answer.auth_bytes[:2]
        self.answers.append(kept)
        return answer

    async def handshake(self, mechanism: str, version: int = 1) -> Any:
        return await self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    async def token(self, data: bytes, version: int = 2) -> Any:
        return await self.ask(SaslAuthenticateRequest(auth_bytes=data), version)

    async def raw(self, data: bytes) -> bytes:
        self.client.writer.write(struct.pack(">i", len(data)) + data)
        answer = await self.client.frame()
        self.answers.append(answer[:2])
        return answer


def plain(user: str = USER, password: str = PASSWORD) -> bytes:
    return f"\0{user}\0{password}".encode()


async def unknown_mechanism(dialog: Dialog) -> None:
    await dialog.handshake("GSSAPI-X")


async def a_heartbeat_first(dialog: Dialog) -> None:
    await dialog.ask(BEAT, 4)


async def a_token_first(dialog: Dialog) -> None:
    await dialog.token(plain())


async def versions_twice(dialog: Dialog) -> None:
    await dialog.ask(ApiVersionsRequest(), 0)
    await dialog.ask(ApiVersionsRequest(), 0)


async def versions_that_are_bad(dialog: Dialog) -> None:
    await dialog.ask(ApiVersionsRequest(client_software_name="-"), 3)
    await dialog.ask(ApiVersionsRequest(), 0)
    await dialog.handshake("PLAIN")
    await dialog.token(plain())
    await dialog.ask(ListGroupsRequest(), 4)


async def versions_after_the_handshake(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN")
    await dialog.ask(ApiVersionsRequest(), 0)


async def handshake_twice(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN")
    await dialog.handshake("PLAIN")


async def again_when_through(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN")
    await dialog.token(plain())
    await dialog.handshake("PLAIN")
    await dialog.token(plain())
    await dialog.ask(ListGroupsRequest(), 4)


def plain_with(data: bytes, version: int = 2) -> Talk:
    async def talk(dialog: Dialog) -> None:
        await dialog.handshake("PLAIN")
        await dialog.token(data, version)

    return talk


async def raw_tokens(dialog: Dialog) -> None:
    await dialog.handshake("SCRAM-SHA-512", 0)
    scram = ScramClient(USER, PASSWORD)
    await dialog.raw(scram.final(await dialog.raw(scram.first)))
    await dialog.ask(ListGroupsRequest(), 4)


async def raw_and_wrong(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN", 0)
    await dialog.raw(plain(password="wrong"))


def scram_with(change: Callable[[ScramClient, bytes], bytes], password: str = PASSWORD) -> Talk:
    async def talk(dialog: Dialog) -> None:
        await dialog.handshake("SCRAM-SHA-512")
        scram = ScramClient(USER, password)
        first = await dialog.token(scram.first)
        await dialog.token(change(scram, first.auth_bytes))
        await dialog.ask(ListGroupsRequest(), 4)

    return talk


def scram_first(data: bytes) -> Talk:
    async def talk(dialog: Dialog) -> None:
        await dialog.handshake("SCRAM-SHA-512")
        await dialog.token(data)

    return talk


async def huge(dialog: Dialog) -> None:
    dialog.client.writer.write(struct.pack(">i", 524_289))
    await dialog.client.frame()


CONVERSATIONS: dict[str, Talk] = {
    "an unknown mechanism": unknown_mechanism,
    "a heartbeat first": a_heartbeat_first,
    "a token first": a_token_first,
    "ApiVersions twice": versions_twice,
    "a bad ApiVersions, then a good one": versions_that_are_bad,
    "ApiVersions after the handshake": versions_after_the_handshake,
    "the handshake twice": handshake_twice,
    "all again": again_when_through,
    "PLAIN, wrong": plain_with(plain(password="wrong")),
    "PLAIN, wrong, v0": plain_with(plain(password="wrong"), 0),
    "PLAIN, nobody": plain_with(plain("nobody")),
    "PLAIN without a password": plain_with(plain(password="")),
    "PLAIN without a name": plain_with(plain("")),
    "PLAIN for somebody else": plain_with(b"bob" + plain()),
    "PLAIN, nothing": plain_with(b""),
    "PLAIN, one part too many": plain_with(plain() + b"\0"),
    "PLAIN, too many parts": plain_with(plain() + b"\0\0\0"),
    "raw tokens": raw_tokens,
    "raw tokens, wrong": raw_and_wrong,
    "SCRAM": scram_with(lambda scram, first: scram.final(first)),
    "SCRAM, wrong": scram_with(lambda scram, first: scram.final(first), "wrong"),
    "SCRAM, another nonce": scram_with(lambda scram, first: scram.final(first, nonce="mine")),
    "SCRAM, cut off": scram_with(lambda scram, first: scram.final(first)[:-10]),
    "SCRAM, nothing": scram_with(lambda scram, first: b""),
    "SCRAM for somebody else": scram_first(f"n,a=bob,n={USER},r=x".encode()),
    "SCRAM with channel binding": scram_first(f"p=tls-unique,,n={USER},r=x".encode()),
    "SCRAM without a name": scram_first(b"n,,n=,r=x"),
    "a huge frame": huge,
}


async def answers_of(host: str, port: int, talk: Talk) -> list[Any]:
    async with connected(host, port) as client:
        dialog = Dialog(client)
        try:
            await talk(dialog)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            dialog.answers.append("closed")
        return dialog.answers


@pytest.mark.parametrize("what", CONVERSATIONS)
async def test_a_stranger_is_told_the_same(secured: Secured, node: Node, what: str) -> None:
    host, _, port = secured.broker.address("SASL").rpartition(":")
    theirs = await answers_of(host, int(port), CONVERSATIONS[what])
    ours = await answers_of(node.host, node.port, CONVERSATIONS[what])
    assert ours == theirs


# ---- sessions that end (KIP-368) ----


async def log_in(
    dialog: Dialog, user: str = USER, mechanism: str = "PLAIN", password: str = PASSWORD
) -> None:
    await dialog.handshake(mechanism)
    if mechanism == "PLAIN":
        await dialog.token(plain(user, password))
        return
    scram = ScramClient(user, password, MECHANISMS[mechanism])
    await dialog.token(scram.final((await dialog.token(scram.first)).auth_bytes))


async def until_over() -> None:
    """Nothing tells that a session is over but the time."""
    await asyncio.sleep((LIFETIME_MS + 100) / 1000)


async def a_second_passes() -> None:
    """Within it nobody may authenticate again."""
    await asyncio.sleep(1.1)


def after(wait: Callable[[], Awaitable[None]], then: Talk, mechanism: str = "PLAIN") -> Talk:
    async def talk(dialog: Dialog) -> None:
        await log_in(dialog, mechanism=mechanism)
        await dialog.ask(ListGroupsRequest(), 4)
        await wait()
        await then(dialog)
        await dialog.ask(ListGroupsRequest(), 4)

    return talk


async def nothing(dialog: Dialog) -> None:
    pass


async def a_heartbeat(dialog: Dialog) -> None:
    await dialog.ask(BEAT, 4)


async def versions(dialog: Dialog) -> None:
    await dialog.ask(ApiVersionsRequest(), 0)


async def versions_in_the_middle(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN")
    await dialog.ask(ApiVersionsRequest(), 0)


async def twice_at_once(dialog: Dialog) -> None:
    await log_in(dialog)
    await log_in(dialog)


async def with_raw_tokens(dialog: Dialog) -> None:
    await dialog.handshake("PLAIN", 0)
    await dialog.raw(plain())


SESSIONS: dict[str, Talk] = {
    "a request when it is over": after(until_over, nothing),
    "a heartbeat when it is over": after(until_over, a_heartbeat),
    "ApiVersions when it is over": after(until_over, versions),
    "a token when it is over": after(until_over, lambda dialog: dialog.token(plain())),
    "again before it is over": after(a_second_passes, log_in),
    "again when it is over": after(until_over, log_in),
    "again by SCRAM": after(
        a_second_passes, lambda dialog: log_in(dialog, mechanism="SCRAM-SHA-256"), "SCRAM-SHA-256"
    ),
    "again, at once and twice": after(a_second_passes, twice_at_once),
    "again with raw tokens": after(a_second_passes, with_raw_tokens),
    "somebody else": after(a_second_passes, lambda dialog: log_in(dialog, OTHER)),
    "somebody else by SCRAM": after(
        a_second_passes, lambda dialog: log_in(dialog, OTHER, "SCRAM-SHA-512"), "SCRAM-SHA-512"
    ),
    "another mechanism": after(a_second_passes, lambda dialog: log_in(dialog, mechanism="SCRAM-SHA-512")),
    "no mechanism": after(a_second_passes, lambda dialog: dialog.handshake("GSSAPI-X")),
    "a wrong password": after(a_second_passes, lambda dialog: log_in(dialog, password="wrong")),
    "a wrong password by SCRAM": after(
        a_second_passes,
        lambda dialog: log_in(dialog, mechanism="SCRAM-SHA-512", password="wrong"),
        "SCRAM-SHA-512",
    ),
    "ApiVersions in the middle": after(a_second_passes, versions_in_the_middle),
}


@pytest.mark.parametrize("what", SESSIONS)
async def test_a_session_ends_and_goes_on_as_on_kafka(secured: Secured, node: Node, what: str) -> None:
    host, _, port = secured.broker.address("BRIEF").rpartition(":")
    theirs, ours = await asyncio.gather(
        answers_of(host, int(port), SESSIONS[what]),
        answers_of(*node.listeners[1].address, SESSIONS[what]),
    )
    assert ours == theirs
    assert LIFETIME_MS in [one["lifetime"] for one in ours if isinstance(one, dict) and "lifetime" in one]


CONFIGS = "kafka.admin.ConfigCommand"


async def test_kafkas_tool_makes_users(node: Node, tmp_path: Path) -> None:
    properties = tmp_path / "alice.properties"

    def alice(mechanism: str, user: str = USER, password: str = PASSWORD) -> None:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        properties.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
            f'username="{user}" password="{password}";\n'
        )

    async def configs(*arguments: str) -> str:
        connection = ["--bootstrap-server", node.bootstrap, "--command-config", str(properties)]
        done = await asyncio.to_thread(tool, CONFIGS, *connection, "--entity-type", "users", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    alice("PLAIN")
    added = "SCRAM-SHA-512=[iterations=8192,password=open_sesame]"
    await configs("--entity-name", "bob", "--alter", "--add-config", added)
    alice("SCRAM-SHA-256")
    await configs("--entity-name", "carol", "--alter", "--add-config", added)
    assert node.security.users.known()["carol"]["SCRAM-SHA-512"].iterations == 8_192
    alice("SCRAM-SHA-512", "bob", "open_sesame")
    await configs("--entity-name", USER, "--alter", "--delete-config", "SCRAM-SHA-256")
    assert set(node.security.users.known()[USER]) == {"SCRAM-SHA-512"}
