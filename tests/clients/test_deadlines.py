"""A call waits for the cluster no longer than its time limit, and its error says what is in the way."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ConnectionLostError, RequestTimedOutError, RetriableError
from ringleader.clients.fetch.leaders import Leaders
from ringleader.clients.model import Node
from ringleader.protocol.messages import HeartbeatRequest, HeartbeatResponse
from tests.support.ports import free_address
from tests.support.scripted_broker import ScriptedBroker

BEAT = plain(HeartbeatRequest(group_id="g"))


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def dead() -> str:
    """An address where nobody listens."""
    return free_address()


def node(address: str) -> Node:
    host, _, port = address.rpartition(":")
    return Node(1, host, int(port))


def soon(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


# ---- one deadline ----


async def test_the_deadline_covers_connecting(silent: str) -> None:
    async with Cluster(silent, connect_timeout_ms=60_000) as cluster:
        for ask in (
            lambda: cluster.send(node(silent), BEAT, deadline_s=soon(0.1)),
            lambda: cluster.metadata(deadline_s=soon(0.1)),
            lambda: cluster.coordinator("g", deadline_s=soon(0.1)),
            lambda: cluster.controller(deadline_s=soon(0.1)),
        ):
            async with asyncio.timeout(30):
                with pytest.raises(ConnectionLostError, match=silent):
                    await ask()


async def test_the_deadline_covers_the_back_off(dead: str) -> None:
    async with Cluster(dead, reconnect_backoff_ms=60_000, reconnect_backoff_max_ms=60_000) as cluster:
        with pytest.raises(ConnectionLostError):
            await cluster.metadata()
        async with asyncio.timeout(30):
            with pytest.raises(ConnectionLostError, match="Connection refused"):
                await cluster.metadata(deadline_s=soon(0.1))


async def test_the_deadline_covers_the_answer_and_the_connection_stays() -> None:
    answers = iter([None, None])
    async with (
        ScriptedBroker({12: lambda *_: next(answers, HeartbeatResponse())}) as broker,
        Cluster(broker.address) as cluster,
    ):
        await cluster.metadata([])
        for _ in range(2):
            with pytest.raises(RequestTimedOutError):
                await cluster.send(node(broker.address), BEAT, deadline_s=soon(0.05))
        await cluster.send(node(broker.address), BEAT)
        assert broker.connections == 1


async def test_nothing_is_sent_after_the_deadline() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        await cluster.metadata([])
        with pytest.raises(RequestTimedOutError, match="no time was left"):
            await cluster.metadata([], deadline_s=soon(-1))
        assert broker.names() == ["Metadata"]


async def test_a_caller_that_gives_up_does_not_end_what_others_wait_for() -> None:
    """The connection is opened once, for all."""
    held = asyncio.Event()

    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        answer = broker._reply

        async def slowly(*given: Any) -> Any:
            await held.wait()
            return answer(*given)

        broker._reply = slowly  # type: ignore[method-assign, assignment]
        patient = asyncio.create_task(cluster.coordinator("g"))
        with pytest.raises(ConnectionLostError):
            await cluster.coordinator("g", deadline_s=soon(0.05))
        cancelled = asyncio.create_task(cluster.coordinator("g"))
        await asyncio.sleep(0)
        cancelled.cancel()
        held.set()
        assert (await patient).port == broker.port
        assert broker.connections == 1


async def test_an_address_that_says_nothing_does_not_hold_back_the_next(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.clients.connection.cluster.NEXT_ADDRESS_S", 0.02)
    async with ScriptedBroker() as broker:
        for bootstrap in ([silent, broker.address], [broker.address, silent]):
            async with Cluster(bootstrap, connect_timeout_ms=60_000) as cluster, asyncio.timeout(30):
                assert (await cluster.metadata([])).controller_id == 1


async def test_a_broker_that_hangs_is_not_asked_again_if_there_is_another() -> None:
    async with (
        ScriptedBroker({10: lambda *_: None, 12: lambda *_: HeartbeatResponse()}) as hangs,
        ScriptedBroker({12: lambda *_: HeartbeatResponse()}) as other,
        Cluster(hangs.address) as cluster,
    ):
        for address in (hangs.address, other.address):
            await cluster.send(node(address), BEAT)
        with pytest.raises(RequestTimedOutError):
            await cluster.coordinator("g", deadline_s=soon(0.05))
        assert hangs.names() == ["Heartbeat", "FindCoordinator"]
        assert (await cluster.coordinator("g")).port == other.port


async def test_closing_ends_what_is_being_opened(silent: str) -> None:
    cluster = Cluster(silent)
    asking = asyncio.create_task(cluster.metadata())
    await asyncio.sleep(0)
    await cluster.close()
    with pytest.raises(ConnectionLostError, match="the client was closed"):
        await asking


# ---- ready ----


async def test_ready_names_all_addresses_and_why(silent: str, dead: str) -> None:
    async with Cluster([silent, dead]) as cluster:
        began = time.monotonic()
        with pytest.raises(ConnectionLostError, match="none of the bootstrap servers") as raised:
            await cluster.ready(1)
        assert time.monotonic() - began < 5
        assert f"no connection to {silent}" in str(raised.value)
        assert f"cannot connect to {dead}: Connection refused" in str(raised.value)


async def test_ready_waits_for_a_broker(dead: str) -> None:
    broker = ScriptedBroker()
    broker.port = node(dead).port
    async with Cluster(dead) as cluster:
        with pytest.raises(ConnectionLostError):
            await cluster.metadata()
        waiting = asyncio.create_task(cluster.ready(60))
        await asyncio.sleep(0)
        async with broker:
            await waiting
        assert broker.connections == 1


async def test_brokers_and_coordinators_share_the_time_to_be_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, left_s, late_s = asyncio.get_running_loop(), list[float](), [0.0]
    real = loop.time

    class Groups(Cluster):
        async def ready(self, timeout_s: float) -> None:
            left_s.append(timeout_s)

    async with ScriptedBroker() as broker, Cluster(broker.address, groups=Groups("h:1")) as cluster:
        found = cluster._any

        async def slow(purpose: str, deadline_s: float) -> Any:
            connection = await found(purpose, deadline_s)
            monkeypatch.setattr(loop, "time", lambda: real() + late_s[0])
            late_s[0] = 40.0
            return connection

        monkeypatch.setattr(cluster, "_any", slow)
        await cluster.ready(60)
    assert len(left_s) == 1
    assert left_s[0] <= 20


# ---- what is said ----


async def test_the_first_failure_is_said_and_the_way_back(
    dead: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ringleader.clients.connection")
    broker = ScriptedBroker()
    broker.port = node(dead).port
    async with Cluster(dead, client_id="c", reconnect_backoff_ms=1, reconnect_backoff_max_ms=1) as cluster:
        for _ in range(5):
            with pytest.raises(ConnectionLostError):
                await cluster.metadata()
        lines = [(one.levelname, one.message) for one in caplog.records]
        assert lines == [("WARNING", f"c: cannot connect to {dead}: Connection refused")]
        async with broker:
            await cluster.metadata([])
        assert [(one.levelname, one.message) for one in caplog.records[1:]] == [
            ("INFO", f"c: connected to {dead} again")
        ]


async def test_leaders_that_cannot_be_looked_up_are_said_once_at_first(
    dead: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Cluster(dead, reconnect_backoff_ms=1, reconnect_backoff_max_ms=1) as cluster:
        leaders = Leaders(cluster, lambda *_: None, lambda *_: None)
        leaders.watch(["t"])
        for _ in range(5):
            await leaders._look()
    lines = [one.message for one in caplog.records if one.name == "ringleader.clients.consumer"]
    assert lines == [f"the topics' leaders cannot be looked up: cannot connect to {dead}: Connection refused"]


async def test_looks_for_leaders_that_find_all_are_no_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    class Counted(Backoff):
        def next_ms(self) -> int:
            tries.append(self._tries)
            super().next_ms()
            return 0

    monkeypatch.setattr("ringleader.clients.fetch.leaders.Backoff", Counted)
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        leaders = Leaders(cluster, lambda *_: None, lambda *_: None)
        leaders.watch(["t"])
        looking = asyncio.create_task(leaders.run())
        for _ in range(5):
            await leaders.looked()
        looking.cancel()
        await asyncio.wait([looking])
    assert tries == [0] * len(tries)
    assert len(tries) >= 4


async def test_a_broker_that_is_taken_for_dead_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ringleader.clients.connection")
    async with (
        ScriptedBroker({12: lambda *_: None}) as broker,
        Cluster(broker.address, client_id="c") as cluster,
    ):
        for _ in range(2):
            with pytest.raises(RequestTimedOutError):
                await cluster.send(node(broker.address), BEAT, deadline_s=soon(60), request_timeout_ms=50)
        lines = [one.message for one in caplog.records]
        late = f"c: HeartbeatRequest to {broker.address} was not answered within 0.05 s"
        assert lines == [f"{late}: its connection is closed", f"c: connected to {broker.address} again"]


def test_failures_are_said_at_falling_frequency() -> None:
    failures = Failures()
    lost = ConnectionLostError("lost")
    logged_s = [now_s for now_s in range(3_000) if failures.failed(lost, now_s)]
    assert logged_s == [0, 1, 11, 71, 671, 1271, 1871, 2471]
    assert failures.failed(lost, 3_071) == "lost (3001 times in 3071 s)"
    assert failures.last is lost


def test_another_kind_of_failure_is_said_at_once() -> None:
    failures = Failures()
    refused, unreachable = ConnectionLostError("refused"), ConnectionLostError("unreachable")
    refused.__cause__, unreachable.__cause__ = OSError(111, "refused"), OSError(113, "unreachable")
    assert failures.failed(refused, 0) == "refused"
    assert failures.failed(unreachable, 0) == "unreachable"
    assert failures.failed(RequestTimedOutError("slow"), 0) == "slow"
    assert failures.failed(refused, 0.5) is None


def test_the_way_back_is_said_once_and_only_after_a_line() -> None:
    failures = Failures()
    assert not failures.works()
    failures.failed(ConnectionLostError("lost"), 0)
    assert failures.works()
    assert failures.last is None
    assert not failures.works()
    assert failures.failed(ConnectionLostError("lost"), 0.5) is None
    assert not failures.works()
    assert failures.failed(ConnectionLostError("lost"), 1_000) == "lost"


async def test_a_last_try_that_the_deadline_cut_short_tells_why_the_one_before_failed() -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + 0.1
    tries = 0

    async def attempt() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RetriableError("NOT_COORDINATOR" if tries == 1 else "UNSTABLE_OFFSET_COMMIT")
        await asyncio.sleep(deadline_s - loop.time())
        raise RequestTimedOutError("not answered within 0.1 s")

    with pytest.raises(RequestTimedOutError, match=r"not answered.*; before that: UNSTABLE_OFFSET_COMMIT"):
        await retrying(deadline_s, Backoff(1, 1, lambda: 0.5), attempt)
    assert tries == 3


async def test_a_wait_that_would_outlast_the_deadline_is_not_begun() -> None:
    async def attempt() -> None:
        raise RetriableError("not now")

    async with asyncio.timeout(30):
        with pytest.raises(RetriableError, match="not now"):
            await retrying(soon(0.1), Backoff(3_600_000, 3_600_000, lambda: 0.5), attempt)
