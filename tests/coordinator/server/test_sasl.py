"""Connections that have to authenticate: the answers before, and the rules after."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.logs import get_log
from ringleader.coordinator.security.jwks import Keys
from ringleader.coordinator.security.oauth import TokenRules
from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.coordinator.server.handlers import security as security_handlers
from ringleader.coordinator.server.phases import Phase
from ringleader.coordinator.server.sasl import Sasl
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.support.registered import ALICE, PASSWORD, ScramClient, registered
from tests.support.served import Client, Served, connected, serving, until
from tests.support.sessions import session_of
from tests.support.tokens import TokenService

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
GENERIC = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"
DELAY_MS = 20


@contextlib.asynccontextmanager
async def guarded(directory: Path, *users: str, **settings: Any) -> AsyncIterator[Served]:
    """A server whose only listener wants SASL, PLAIN too; and tokens, if there is an address of keys."""
    chosen = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl_enabled_mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN",
        "sasl_cleartext_without_tls": True,
        "connection_failed_authentication_delay_ms": DELAY_MS,
        **settings,
    }
    tokens = dict[str, Keys]()
    if url := settings.get("sasl_oauthbearer_jwks_endpoint_url"):
        tokens["SASL_PLAINTEXT"] = Keys(url, TokenRules(), 3_600_000, get_log())
    sasl = Sasl((await registered(directory, *users)).users, tokens)
    try:
        for keys in tokens.values():
            await keys.start()
        async with serving(handlers=security_handlers.register, sasl=sasl, **chosen) as served:
            yield served
    finally:
        for keys in tokens.values():
            await keys.stop()


async def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return await client.call(SaslHandshakeRequest(mechanism=mechanism), version)


async def token(client: Client, data: bytes, version: int = 2) -> Any:
    return await client.call(SaslAuthenticateRequest(auth_bytes=data), version)


def plain(user: str = ALICE, password: str = PASSWORD) -> bytes:
    return f"\0{user}\0{password}".encode(errors="surrogateescape")


async def log_in(client: Client, user: str = ALICE, mechanism: str = "PLAIN") -> Any:
    """Returns the last answer."""
    assert (await handshake(client, mechanism)).error_code == 0
    if mechanism == "PLAIN":
        return await token(client, plain(user))
    scram = ScramClient(user, mechanism=MECHANISMS[mechanism])
    first = await token(client, scram.first)
    assert first.error_code == 0
    return await token(client, scram.final(first.auth_bytes))


async def served_normally(client: Client) -> bool:
    """Whether it is through."""
    return bool((await client.call(BEAT, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_an_authenticated_client_is_served(tmp_path: Path, mechanism: str) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        versions = await client.call(
            ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3
        )
        assert versions.error_code == 0
        assert {17, 18, 36, 12} <= {one.api_key for one in versions.api_keys}
        answer = await log_in(client, mechanism=mechanism)
        assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, "", 0)
        assert await served_normally(client)
        [connection] = served.server.connections
        assert session_of(connection).phase is Phase.OPEN
        assert str(connection.session.principal) == "User:alice"
        again = await handshake(client)
        assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await token(client, plain())).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert served.server.sasl is not None
        assert (served.server.sasl.succeeded, served.server.sasl.failed) == (1, 0)


async def test_what_comes_with_the_last_token_is_answered_after_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        client.writer.write(
            encode_request(ApiVersionsRequest(), 0, 1, "c")
            + encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 2, "c")
            + encode_request(SaslAuthenticateRequest(auth_bytes=plain()), 2, 3, "c")
            + encode_request(BEAT, 4, 4, "c")
            + encode_request(ListGroupsRequest(), 4, 5, "c")
        )
        for number, kind, version in (
            (1, ApiVersionsRequest, 0),
            (2, SaslHandshakeRequest, 1),
            (3, SaslAuthenticateRequest, 2),
            (4, HeartbeatRequest, 4),
            (5, ListGroupsRequest, 4),
        ):
            assert (await client.receive(kind, version))[0] == number


async def test_byte_by_byte(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        frames = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "c") + encode_request(
            SaslAuthenticateRequest(auth_bytes=plain()), 1, 2, "c"
        )
        for position in range(len(frames)):
            client.writer.write(frames[position : position + 1])
            await client.writer.drain()
            await asyncio.sleep(0)
        assert (await client.receive(SaslHandshakeRequest, 1))[1].error_code == 0
        assert (await client.receive(SaslAuthenticateRequest, 1))[1].error_code == 0
        assert await served_normally(client)


async def raw(client: Client, data: bytes) -> bytes:
    client.writer.write(struct.pack(">i", len(data)) + data)
    return await client.frame()


async def test_tokens_by_themselves_after_handshake_v0(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served:
        async with served.connect() as client:
            assert (await handshake(client, "SCRAM-SHA-256", 0)).error_code == 0
            scram = ScramClient(mechanism=MECHANISMS["SCRAM-SHA-256"])
            assert (await raw(client, scram.final(await raw(client, scram.first)))).startswith(b"v=")
            assert await served_normally(client)
        async with served.connect() as client:
            await handshake(client, "PLAIN", 0)
            assert await raw(client, plain()) == b""
            assert await served_normally(client)
        async with served.connect() as client:
            await handshake(client, "PLAIN", 0)
            client.writer.write(struct.pack(">i", 13) + b"\0alice\0wrong!")
            assert await client.rest() == b""


@pytest.mark.parametrize(
    ("mechanism", "user", "password", "message"),
    [
        ("PLAIN", ALICE, "wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", "mallory", PASSWORD, "Authentication failed: Invalid username or password"),
        ("PLAIN", "", PASSWORD, "Authentication failed: username not specified"),
        ("SCRAM-SHA-512", ALICE, "wrong", GENERIC.format("authentication", "SCRAM-SHA-512")),
        ("SCRAM-SHA-512", "mallory", PASSWORD, GENERIC.format("authentication", "SCRAM-SHA-512")),
    ],
)
async def test_a_failed_authentication_is_answered_and_closed(
    tmp_path: Path, mechanism: str, user: str, password: str, message: str
) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        await handshake(client, mechanism)
        if mechanism == "PLAIN":
            answer = await token(client, plain(user, password), 1)
        else:
            scram = ScramClient(user, password)
            first = await token(client, scram.first)
            answer = await token(client, scram.final(first.auth_bytes))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == message
        assert answer.auth_bytes == b""
        assert await client.rest() == b""
        [line] = served.events("authentication failed")
        assert (line["mechanism"], line["user"], line["listener"]) == (mechanism, user, "SASL_PLAINTEXT")
        for known in (PASSWORD, "wrong"):
            assert known not in str(served.log)
        assert served.server.sasl is not None
        assert served.server.sasl.failed == 1
        assert not served.events("connection closed")


async def test_a_failure_is_answered_after_a_while_and_nothing_behind_it(tmp_path: Path) -> None:
    async with guarded(tmp_path, connection_failed_authentication_delay_ms=60_000) as served:
        async with served.connect() as client:
            await handshake(client)
            client.send(SaslAuthenticateRequest(auth_bytes=plain(password="wrong")), 2)
            client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
            client.send(BEAT, 4)
            await until(lambda: bool(served.events("authentication failed")))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.reader.read(1)
            assert len(served.server.connections) == 1
        await until(lambda: not served.server.connections)


async def test_an_unknown_mechanism_is_told_the_known_ones(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        answer = await handshake(client, "GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
        assert await client.rest() == b""


async def test_plain_is_not_offered_without_tls(tmp_path: Path) -> None:
    async with guarded(tmp_path, sasl_cleartext_without_tls=False) as served, served.connect() as client:
        answer = await handshake(client, "PLAIN")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256"]


async def test_what_a_listener_has_for_itself_counts_there_alone(tmp_path: Path) -> None:
    own = {
        "sasl_enabled_mechanisms": "SCRAM-SHA-256,PLAIN",
        "connections_max_reauth_ms": "70000",
        "reauth_ms_by_mechanism": {"PLAIN": 50_000},
        "sasl_server_max_receive_size": 2_000,
    }
    async with guarded(
        tmp_path,
        listeners="SASL_PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        listener_security_protocol_map="SASL_PLAINTEXT:SASL_PLAINTEXT,OTHER:SASL_PLAINTEXT",
        listener_name={"other": own},
    ) as served:
        other = served.server.listeners[1].address
        async with served.connect() as client:
            assert (await log_in(client)).session_lifetime_ms == 0
        for mechanism, lifetime_ms in (("PLAIN", 50_000), ("SCRAM-SHA-256", 70_000)):
            async with connected(*other) as client:
                assert (await log_in(client, mechanism=mechanism)).session_lifetime_ms == lifetime_ms
                assert await served_normally(client)
        async with connected(*other) as client:
            answer = await handshake(client, "SCRAM-SHA-512")
            assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert answer.mechanisms == ["SCRAM-SHA-256", "PLAIN"]
        async with connected(*other) as client:
            client.writer.write(struct.pack(">i", 2_001))
            assert await client.rest() == b""


def frame(message: Any, version: int) -> bytes:
    return encode_request(message, version, 1, "c")


@pytest.mark.parametrize(
    "message",
    [
        frame(BEAT, 4),
        frame(ListGroupsRequest(), 4),
        frame(SaslAuthenticateRequest(auth_bytes=plain()), 2),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1) + frame(BEAT, 4),
        frame(SaslHandshakeRequest(mechanism="PLAIN"), 1) + struct.pack(">ihhih", 10, 36, 3, 1, -1),
        frame(ApiVersionsRequest(), 0) + frame(ApiVersionsRequest(), 0),
        frame(ApiVersionsRequest(), 0) + frame(BEAT, 4),
        struct.pack(">i", 0),
        struct.pack(">i", -1),
        struct.pack(">i", 9) + bytes(9),
        struct.pack(">ihhih", 10, 17, 2, 1, -1),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 17, 1, 1, -1),
        struct.pack(">i", 524_289),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x05\x60\x01\x02\x03\x04",
    ],
)
async def test_anything_else_before_is_hung_up_on(tmp_path: Path, message: bytes) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        client.writer.write(message)
        await client.rest()
        [line] = served.events("authentication failed")
        assert line["reason"]
        assert not served.events("connection closed")
        assert served.server.heartbeats.known == {}


async def test_other_sasl_requests_in_the_middle_are_told_where_they_are(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served:
        for request, version in ((ApiVersionsRequest(), 0), (SaslHandshakeRequest(mechanism="PLAIN"), 1)):
            async with served.connect() as client:
                await handshake(client)
                answer = await client.call(request, version)
                assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
                assert await client.rest() == b""


async def test_versions_that_are_not_served_may_be_asked_again(tmp_path: Path) -> None:
    async with guarded(tmp_path) as served, served.connect() as client:
        client.writer.write(struct.pack(">ihhih", 10, 18, 99, 7, -1))
        assert (await client.frame())[:6] == struct.pack(">ih", 7, ErrorCode.UNSUPPORTED_VERSION)
        bad = await client.call(ApiVersionsRequest(client_software_name="-"), 3)
        assert bad.error_code == ErrorCode.INVALID_REQUEST
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        await log_in(client)
        assert await served_normally(client)


async def test_the_largest_frame_is_taken(tmp_path: Path) -> None:
    async with guarded(tmp_path, sasl_server_max_receive_size=2_000) as served:
        async with served.connect() as client:
            await handshake(client, "PLAIN", 0)
            client.writer.write(struct.pack(">i", 2_000) + bytes(2_000))
            await client.rest()
            assert "expected 3 tokens" in served.events("authentication failed")[0]["reason"]
        async with served.connect() as client:
            client.writer.write(struct.pack(">i", 2_001))
            await client.rest()
            assert "2,001 bytes" in served.events("authentication failed")[1]["reason"]


async def test_a_client_that_takes_too_long_is_hung_up_on(tmp_path: Path) -> None:
    async with guarded(tmp_path, sasl_authentication_timeout_ms=200) as served:
        async with served.connect() as silent, served.connect() as slow, served.connect() as quick:
            await log_in(quick)
            await handshake(slow, "SCRAM-SHA-512")
            slow.writer.write(frame(SaslAuthenticateRequest(auth_bytes=ScramClient().first), 2)[:-3])
            assert await silent.rest() == await slow.rest() == b""
            assert await served_normally(quick)
        lines = served.events("authentication failed")
        assert len(lines) == 2
        assert all("not authenticated within 200 ms" in line["reason"] for line in lines)


async def test_nothing_queued_by_a_stranger_counts_when_it_hangs_up(tmp_path: Path) -> None:
    async with guarded(tmp_path, connection_failed_authentication_delay_ms=60_000) as served:
        async with served.connect() as client:
            await handshake(client)
            client.send(SaslAuthenticateRequest(auth_bytes=plain(password="wrong")), 2)
            client.send(LeaveGroupRequest(group_id="g", member_id="m"), 1)
            await until(lambda: bool(served.events("authentication failed")))
        await until(lambda: not served.server.connections)
        assert served.server.routes[13].requests == 0


# ---- sessions that end ----

SESSION_MS = 60_000


async def test_a_session_is_renewed_on_the_same_connection(tmp_path: Path) -> None:
    async with guarded(tmp_path, connections_max_reauth_ms=SESSION_MS) as served, served.connect() as client:
        for _ in range(3):
            assert (await log_in(client, mechanism="SCRAM-SHA-256")).session_lifetime_ms == SESSION_MS
            assert await served_normally(client)
            served.clock.ahead_ms += SESSION_MS - 1_000
        assert (await log_in(client, mechanism="SCRAM-SHA-256")).session_lifetime_ms == SESSION_MS
        # The second time within a second is answered as where sessions do not end.
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await served_normally(client)
        [connection] = served.server.connections
        assert str(connection.session.principal) == "User:alice"


async def test_what_comes_behind_a_renewal_waits_for_it(tmp_path: Path) -> None:
    async with guarded(tmp_path, connections_max_reauth_ms=SESSION_MS) as served, served.connect() as client:
        await log_in(client)
        client.writer.write(
            frame(BEAT, 4)
            + frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            + frame(SaslAuthenticateRequest(auth_bytes=plain()), 1)
            + frame(BEAT, 4)
        )
        for kind, version in (
            (HeartbeatRequest, 4),
            (SaslHandshakeRequest, 1),
            (SaslAuthenticateRequest, 1),
            (HeartbeatRequest, 4),
        ):
            await client.receive(kind, version)


async def test_a_request_in_the_middle_of_a_renewal_is_hung_up_on(tmp_path: Path) -> None:
    async with guarded(tmp_path, connections_max_reauth_ms=SESSION_MS) as served, served.connect() as client:
        await log_in(client)
        await handshake(client)
        client.send(BEAT, 4)
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "request_", [BEAT, ListGroupsRequest(), ApiVersionsRequest(), SaslAuthenticateRequest()]
)
async def test_a_session_that_is_over_is_closed_at_its_next_request(tmp_path: Path, request_: Any) -> None:
    async with guarded(tmp_path, connections_max_reauth_ms=SESSION_MS) as served, served.connect() as client:
        await log_in(client)
        for _ in range(2):
            assert await served_normally(client)  # known the second time
        served.clock.ahead_ms += SESSION_MS + 1_000
        client.send(request_, 0)
        assert await client.rest() == b""
        [line] = served.events("connection closed")
        assert "session is over" in line["reason"]


async def test_a_session_that_is_over_may_be_renewed(tmp_path: Path) -> None:
    async with guarded(tmp_path, connections_max_reauth_ms=SESSION_MS) as served, served.connect() as client:
        await log_in(client)
        served.clock.ahead_ms += 2 * SESSION_MS
        await log_in(client)
        assert await served_normally(client)


@pytest.mark.parametrize(
    ("token_s", "reauth_ms", "least_ms", "most_ms"),
    [(3_600, SESSION_MS, SESSION_MS, SESSION_MS), (600, 3_600_000, 1, 600_000), (600, 0, 1, 600_000)],
    ids=["as it is set", "with the token", "the token alone"],
)
async def test_a_session_by_token_is_over_at_the_first_of_two_ends(
    token_s: int, reauth_ms: int, least_ms: int, most_ms: int, tmp_path: Path
) -> None:
    service, file = TokenService(), tmp_path / "keys.json"
    file.write_bytes(service.jwks())
    given = {
        "sasl_enabled_mechanisms": "OAUTHBEARER",
        "sasl_oauthbearer_jwks_endpoint_url": file.as_uri(),
        "connections_max_reauth_ms": reauth_ms,
    }
    async with guarded(tmp_path, **given) as served, served.connect() as client:
        await handshake(client, "OAUTHBEARER")
        shown = f"n,,\x01auth=Bearer {service.token(exp=time.time() + token_s)}\x01\x01"
        answer = await token(client, shown.encode())
        assert answer.error_code == 0
        assert least_ms <= answer.session_lifetime_ms <= most_ms
        served.clock.ahead_ms += most_ms + 1_000
        client.send(BEAT, 4)
        assert await client.rest() == b""


async def test_nobody_becomes_somebody_else(tmp_path: Path) -> None:
    async with guarded(tmp_path, "alice", "bob", connections_max_reauth_ms=SESSION_MS) as served:
        async with served.connect() as client:
            await log_in(client)
            answer = await log_in(client, "bob")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert (
                answer.error_message
                == "Cannot change principals during re-authentication from User.alice: User.bob"
            )
            assert await client.rest() == b""
        async with served.connect() as client:
            await log_in(client)
            assert (await handshake(client, "SCRAM-SHA-256")).error_code == 0
            client.send(SaslAuthenticateRequest(auth_bytes=ScramClient().first), 2)
            assert await client.rest() == b""
            assert "not supported for re-authentication of mechanism 'PLAIN'" in served.log[-1]["reason"]
        async with served.connect() as client:
            await log_in(client)
            client.send(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
            assert await client.rest() == b""
            assert "Unsupported SASL mechanism GSSAPI" in served.log[-1]["reason"]
        async with served.connect() as client:
            await log_in(client)
            await handshake(client)
            answer = await token(client, plain("\udcff"))
            assert answer.error_message == GENERIC.format("re-authentication", "PLAIN")


@pytest.mark.leaves("broken on purpose")
async def test_a_fault_of_ours_closes_the_connection_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path) as served:

        def broken(*_: object) -> None:
            raise RuntimeError("broken on purpose")

        assert served.server.sasl is not None
        monkeypatch.setattr(served.server.sasl._users, "credential", broken)
        for _ in range(3):
            async with served.connect() as client:
                await handshake(client, "SCRAM-SHA-512")
                with pytest.raises(asyncio.IncompleteReadError):
                    await token(client, ScramClient().first)
        assert len(served.events("authentication failed by a fault of ours")) == 1, "one line of several"
