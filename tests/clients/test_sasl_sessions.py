"""Authentication again before the session ends (KIP-368)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from ringleader.clients.connection.authentication import log_in, stay_logged_in
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import SaslOAuthBearer
from ringleader.protocol.messages import (
    HeartbeatResponse,
    MetadataRequest,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from tests.support.sasl_server import (
    BEAT,
    KINDS,
    connected,
    guarded,
    server,
)


class Stage:
    """A connection as `stay_logged_in` sees it, and time that passes by itself."""

    address = "stage:1"

    def __init__(self, broker_says: list[Any]) -> None:
        self.says = broker_says
        self.closed = ""
        self.requests: list[str] = []
        self.sessions: list[int] = []

    def version_for(self, _request: Any) -> int:
        return 1

    async def ask(self, request: Any, _timeout_s: float, *, alone: bool = False) -> Any:
        assert alone
        self.requests.append(request.message.__name__)
        return SaslHandshakeResponse() if "Handshake" in self.requests[-1] else self.says.pop(0)

    def alone(self) -> Any:
        return asyncio.Lock()

    def session(self, lifetime_ms: int) -> None:
        self.sessions.append(lifetime_ms)

    def close(self, why: str = "closed") -> None:
        self.closed = why


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    monkeypatch.setattr("ringleader.clients.connection.authentication.asyncio.sleep", sleep)
    return slept


async def test_a_session_is_renewed_before_it_ends(sleeps: list[float]) -> None:
    lifetimes = [60_000, 1, 2**62, 0]
    stage = Stage([SaslAuthenticateResponse(session_lifetime_ms=ms) for ms in lifetimes])
    await stay_logged_in(stage, KINDS[0], 5, 10_000, lambda: 0.5)
    assert sleeps == pytest.approx([9.0, 54.0, 1.1, 24 * 3600.0])
    assert stage.sessions == lifetimes
    assert stage.requests == ["SaslHandshakeRequest", "SaslAuthenticateRequest"] * 4
    assert stage.closed == ""


async def test_a_session_that_cannot_be_renewed_ends_the_connection(sleeps: list[float]) -> None:
    stage = Stage([SaslAuthenticateResponse(error_code=58, error_message="gone")])
    await stay_logged_in(stage, KINDS[0], 5, 10_000, lambda: 0.0)
    assert sleeps == [8.5]
    assert stage.closed.startswith("could not authenticate again before the session ended")
    assert "gone" in stage.closed


async def test_a_token_is_asked_for_again_while_the_session_lasts(sleeps: list[float]) -> None:
    calls: list[int] = []

    async def later() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("away")
        return "token"

    stage = Stage([SaslAuthenticateResponse()])
    await stay_logged_in(stage, SaslOAuthBearer(later), 5, 60_000, lambda: 0.0)
    assert sleeps == [51.0, 1.0, 1.0]
    assert stage.closed == ""


async def test_no_token_is_asked_for_again_behind_the_end_of_the_session(sleeps: list[float]) -> None:
    calls: list[int] = []

    async def away() -> str:
        calls.append(1)
        raise OSError("away")

    stage = Stage([])
    await stay_logged_in(stage, SaslOAuthBearer(away), 5, 6_000, lambda: 0.0)  # 0.9 s before its end
    assert (sleeps, len(calls)) == ([5.1], 1)
    assert "away" in stage.closed


async def test_the_time_that_a_token_takes_is_a_part_of_the_time_to_log_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, left_s = asyncio.get_running_loop(), list[float]()
    real, late_s = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + late_s[0])

    async def slow() -> str:
        late_s[0] = 40.0
        return "token"

    class Timed(Stage):
        async def ask(self, request: Any, timeout_s: float, *, alone: bool = False) -> Any:
            left_s.append(timeout_s)
            return await super().ask(request, timeout_s, alone=alone)

    await log_in(Timed([SaslAuthenticateResponse()]), SaslOAuthBearer(slow), 60)
    assert len(left_s) == 2
    assert max(left_s) <= 20


async def test_the_last_message_of_a_login_says_how_long_the_session_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def conversation(*_kind: Any) -> Any:
        return iter_messages()

    def iter_messages() -> Generator[bytes, bytes, None]:
        yield b"first"
        yield b"second"

    monkeypatch.setattr("ringleader.clients.connection.authentication._conversation", conversation)
    stage = Stage([SaslAuthenticateResponse(session_lifetime_ms=ms) for ms in (7_000, 60_000)])
    assert await log_in(stage, KINDS[0], 5) == 60_000


async def test_nothing_gets_between_the_messages_of_a_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go on as if nothing were; the server would hang up if one came in the middle."""
    monkeypatch.setattr("ringleader.clients.connection.authentication.LEAST_RENEWAL_S", 0.02)
    sasl = server(lifetime_ms=30)
    parked = asyncio.Event()

    async def slow(*_call: Any) -> Any:
        await parked.wait()
        return HeartbeatResponse()

    async with guarded(sasl) as broker:
        connection = await connected(broker, sasl=KINDS[2])
        while sasl.logins < 5:
            await asyncio.gather(*(connection.ask(BEAT, 5) for _ in range(10)))
        broker.handlers[12] = slow
        waiting = asyncio.create_task(connection.ask(BEAT, 30))
        await broker.until("Heartbeat", broker.names().count("Heartbeat") + 1)
        logins = sasl.logins
        blocked = asyncio.create_task(connection.ask(plain(MetadataRequest()), 30))
        while connection._open.is_set():  # noqa: ASYNC110 -- a renewal is due, and waits for the others
            await asyncio.sleep(0.005)
        parked.set()
        await asyncio.gather(waiting, blocked)
        while sasl.logins == logins:
            await connection.ask(plain(MetadataRequest()), 5)
        assert broker.connections == 1
        connection.close()


async def test_a_renewal_has_its_time_after_it_waited_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """JoinGroup may be parked for minutes: longer than an authentication may take."""
    monkeypatch.setattr("ringleader.clients.connection.authentication.LEAST_RENEWAL_S", 0.02)
    sasl = server(lifetime_ms=100)
    parked = asyncio.Event()

    async def slow(*_call: Any) -> Any:
        await parked.wait()
        return HeartbeatResponse()

    async with guarded(sasl) as broker:
        broker.handlers[12] = slow
        connection = await connected(broker, sasl=KINDS[2], request_timeout_s=1)
        waiting = asyncio.create_task(connection.ask(BEAT, 60, request_timeout_s=60))
        while connection._open.is_set():  # noqa: ASYNC110 -- a renewal is due, and waits for the other
            await asyncio.sleep(0.005)
        await asyncio.sleep(1.1)  # it is the time that passes
        logins = sasl.logins
        parked.set()
        await waiting
        while sasl.logins == logins:
            await connection.ask(plain(MetadataRequest()), 5, request_timeout_s=5)
        assert broker.connections == 1
        connection.close()


async def test_a_renewal_that_is_late_costs_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for it: the server hangs up on a client that asks anything else after the end of the
    session."""
    monkeypatch.setattr("ringleader.clients.connection.authentication.LEAST_RENEWAL_S", 1.0)
    sasl = server(lifetime_ms=100)
    sasl.strict = True
    async with guarded(sasl) as broker:
        connection = await connected(broker, sasl=KINDS[2])
        while sasl.logins < 3:
            await connection.ask(BEAT, 5)
        assert broker.connections == 1
        connection.close()
