"""Connections against a broker that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import socket
from importlib import metadata
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster, parse_bootstrap
from ringleader.clients.connection.connection import open_connection
from ringleader.clients.connection.requests import GREETING, find_coordinator, found_coordinator, plain
from ringleader.clients.errors import (
    BrokerError,
    ConnectionLostError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from ringleader.protocol.frames import encode_response
from ringleader.protocol.messages import (
    ApiVersionsResponse,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    ProduceRequest,
)
from tests.support.ports import free_address, free_ports
from tests.support.scripted_broker import CLOSE, VERSIONS, ScriptedBroker

BEAT = plain(HeartbeatRequest(group_id="g"))


async def connected(broker: ScriptedBroker, timeout_s: float = 5.0, **options: Any) -> Any:
    return await open_connection("127.0.0.1", broker.port, client_id="t", timeout_s=timeout_s, **options)


def answering_after(event: asyncio.Event) -> Any:
    """How a scripted broker answers heartbeats that it parks until then."""

    async def answer(*_: Any) -> Any:
        await event.wait()
        return HeartbeatResponse()

    return answer


async def test_the_highest_common_version_is_spoken() -> None:
    async with ScriptedBroker({12: lambda *_: HeartbeatResponse()}, VERSIONS | {12: (0, 2)}) as broker:
        connection = await connected(broker)
        await connection.ask(BEAT, 5)
        assert broker.requests[-1][1] == 2
        connection.close()


@pytest.mark.parametrize("highest", [0, 1, 2])
async def test_api_versions_goes_down_after_error_35(highest: int) -> None:
    versions = VERSIONS | {18: (0, highest)}
    async with ScriptedBroker({12: lambda *_: HeartbeatResponse()}, versions) as broker:
        connection = await connected(broker)
        assert [version for _, version in broker.requests] == [3, highest]
        await connection.ask(BEAT, 5)
        connection.close()


async def test_api_versions_errors_are_reported() -> None:
    async with ScriptedBroker({18: lambda *_: ApiVersionsResponse(error_code=42)}) as broker:
        with pytest.raises(BrokerError, match="INVALID_REQUEST"):
            await connected(broker)


async def test_an_api_that_is_not_served() -> None:
    async with ScriptedBroker() as broker:
        connection = await connected(broker)
        with pytest.raises(UnsupportedVersionError, match="does not serve Produce"):
            await connection.ask(plain(ProduceRequest()), 5)
        connection.close()


async def test_no_common_version() -> None:
    async with ScriptedBroker(versions=VERSIONS | {12: (7, 9)}) as broker:
        connection = await connected(broker)
        with pytest.raises(UnsupportedVersionError, match="v7 to v9"):
            await connection.ask(BEAT, 5)
        connection.close()


async def test_a_request_that_its_version_cannot_carry_is_not_sent() -> None:
    """A static member never becomes a dynamic one by an old broker."""
    async with ScriptedBroker(versions=VERSIONS | {11: (0, 4)}) as broker:
        connection = await connected(broker)
        with pytest.raises(UnsupportedVersionError, match="group_instance_id"):
            await connection.ask(plain(JoinGroupRequest(group_id="g", group_instance_id="i")), 5)
        assert broker.names() == []
        connection.close()


async def test_many_requests_on_one_connection_find_their_answers() -> None:
    def answer(request: Any, _version: int, _id: int) -> Any:
        return HeartbeatResponse(error_code=request.generation_id)

    async with ScriptedBroker({12: answer}) as broker:
        connection = await connected(broker)
        requests = [connection.ask(plain(HeartbeatRequest(generation_id=n)), 5) for n in range(1000)]
        answers = await asyncio.gather(*requests)
        assert [a.error_code for a in answers] == list(range(1000))
        assert broker.connections == 1
        connection.close()


async def test_a_caller_whose_time_is_over_leaves_the_connection_to_the_others() -> None:
    """And the answer that comes too late is dropped."""
    answered = asyncio.Event()

    async def late(request: Any, _version: int, _id: int) -> Any:
        await answered.wait()
        return HeartbeatResponse(error_code=request.generation_id)

    async with ScriptedBroker({12: late}) as broker:
        connection = await connected(broker)
        with pytest.raises(RequestTimedOutError, match=r"HeartbeatRequest to 127.0.0.1.*0.05 s"):
            await connection.ask(plain(HeartbeatRequest(generation_id=1)), 0.05)
        other = asyncio.create_task(connection.ask(plain(HeartbeatRequest(generation_id=2)), 60))
        answered.set()
        assert (await other).error_code == 2
        assert not connection.ended.is_set()
        connection.close()


async def test_a_broker_that_does_not_answer_in_its_time_is_taken_for_dead() -> None:
    async with ScriptedBroker({12: lambda *_: None}) as broker:
        connection = await connected(broker)
        first = asyncio.create_task(connection.ask(BEAT, 60, request_timeout_s=0.05))
        other = asyncio.create_task(connection.ask(BEAT, 60))
        with pytest.raises(RequestTimedOutError, match=r"HeartbeatRequest to 127.0.0.1.*0.05 s"):
            await first
        with pytest.raises(ConnectionLostError, match="not answered within"):
            await other
        with pytest.raises(ConnectionLostError, match="has ended"):
            await connection.ask(BEAT, 5)


async def test_a_request_behind_a_parked_one_does_not_end_the_connection() -> None:
    """A broker answers in the order of the requests: the second one's time has not come."""
    answered = asyncio.Event()
    async with ScriptedBroker({12: answering_after(answered)}) as broker:
        connection = await connected(broker)
        first = asyncio.create_task(connection.ask(BEAT, 60, request_timeout_s=60))
        await broker.until("Heartbeat")
        with pytest.raises(RequestTimedOutError):
            await connection.ask(BEAT, 0.1, request_timeout_s=0.02)
        answered.set()
        await first
        assert (await connection.ask(BEAT, 5)).error_code == 0
        connection.close()


async def test_the_time_of_a_request_begins_again_with_each() -> None:
    """A long time that is not needed any more does not keep a shorter one waiting."""
    answers = iter([HeartbeatResponse(), None])
    async with ScriptedBroker({12: lambda *_: next(answers)}) as broker:
        connection = await connected(broker)
        await connection.ask(BEAT, 60, request_timeout_s=60)
        with pytest.raises(RequestTimedOutError, match=r"0.05 s"):
            await connection.ask(BEAT, 60, request_timeout_s=0.05)
        assert connection.ended.is_set()


async def test_an_abandoned_request_still_has_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.clients.connection.connection.MAX_IN_FLIGHT", 2)
    answered = asyncio.Event()
    async with ScriptedBroker({12: answering_after(answered)}) as broker:
        connection = await connected(broker)
        for _ in range(4):
            with pytest.raises(RequestTimedOutError):
                await connection.ask(BEAT, 0.02)
        answered.set()
        for _ in range(4):
            await connection.ask(BEAT, 60)
        assert broker.names() == ["Heartbeat"] * 6
        connection.close()


async def test_who_gives_up_before_its_turn_leaves_its_slot_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleader.clients.connection.connection.MAX_IN_FLIGHT", 1)
    async with ScriptedBroker({12: lambda *_: HeartbeatResponse()}) as broker:
        connection = await connected(broker)
        async with connection.alone():
            with pytest.raises(RequestTimedOutError):
                await connection.ask(BEAT, 0.02)
        await connection.ask(BEAT, 5)
        assert broker.names() == ["Heartbeat"]
        connection.close()


async def test_who_waits_for_a_slot_hears_at_once_that_the_broker_has_hung_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleader.clients.connection.connection.MAX_IN_FLIGHT", 1)
    async with ScriptedBroker({12: lambda *_: None}) as broker:
        connection = await connected(broker)
        asking = [asyncio.create_task(connection.ask(BEAT, 60)) for _ in range(3)]
        await broker.until("Heartbeat")
        for writer in broker.writers:
            writer.close()
        done, _ = await asyncio.wait(asking, timeout=20)
        assert [type(one.exception()) for one in done] == [ConnectionLostError] * 3
        connection.close()


async def test_a_caller_behind_the_end_of_the_session_hears_at_once_that_the_broker_has_hung_up() -> None:
    async with ScriptedBroker({12: lambda *_: None}) as broker:
        connection = await connected(broker)
        connection._session_ends_s = asyncio.get_running_loop().time()
        asking = asyncio.create_task(connection.ask(BEAT, 60))
        await asyncio.sleep(0)
        for writer in broker.writers:
            writer.close()
        done, _ = await asyncio.wait([asking], timeout=20)
        assert [type(one.exception()) for one in done] == [ConnectionLostError]


async def test_a_broker_that_has_answered_an_abandoned_request_is_not_taken_for_silent() -> None:
    """It is not connected to again to find out why it has hung up."""
    answered = asyncio.Event()

    async def answer(request: Any, _version: int, _id: int) -> Any:
        await answered.wait()
        return HeartbeatResponse() if request.generation_id == 1 else CLOSE

    async with ScriptedBroker({12: answer}) as broker:
        connection = await connected(broker)
        with pytest.raises(RequestTimedOutError):
            await connection.ask(plain(HeartbeatRequest(generation_id=1)), 0.02)
        answered.set()
        with pytest.raises(ConnectionLostError):
            await connection.ask(plain(HeartbeatRequest(generation_id=2)), 60)
        assert broker.connections == 1


async def test_the_time_of_a_request_never_ends_before_that_of_the_one_before_it() -> None:
    async with ScriptedBroker({12: lambda *_: None}) as broker:
        connection = await connected(broker)
        asking = [asyncio.create_task(connection.ask(BEAT, 60, request_timeout_s=s)) for s in (50, 1, 40)]
        await asyncio.sleep(0)
        ends_s = [one.until_s for one in connection._in_flight.values()]
        assert len(set(ends_s)) == 1
        connection.close()
        await asyncio.gather(*asking, return_exceptions=True)


async def test_an_authentication_that_is_given_up_leaves_the_connection_to_the_others() -> None:
    """While it waits for what is on its way."""
    answered = asyncio.Event()
    async with ScriptedBroker({12: answering_after(answered)}) as broker:
        connection = await connected(broker)
        first = asyncio.create_task(connection.ask(BEAT, 60))
        await broker.until("Heartbeat")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), connection.alone():
                raise AssertionError("a request is on its way")
        answered.set()
        await first
        assert (await connection.ask(BEAT, 20)).error_code == 0
        connection.close()


async def test_a_request_behind_an_authentication_waits_for_room_to_write_too() -> None:
    answered = asyncio.Event()
    async with ScriptedBroker({12: answering_after(answered)}) as broker:
        connection = await connected(broker)
        async with connection.alone():
            asking = asyncio.create_task(connection.ask(BEAT, 60))
            await asyncio.sleep(0)
            connection.pause_writing()
        for _ in range(5):
            await asyncio.sleep(0)
        assert connection.in_flight == 0
        connection.resume_writing()
        answered.set()
        assert (await asking).error_code == 0
        connection.close()


async def test_answers_that_throttle_at_once_do_not_add_up() -> None:
    async with ScriptedBroker({12: lambda *_: HeartbeatResponse(throttle_time_ms=50_000)}) as broker:
        connection = await connected(broker)
        await asyncio.gather(*(connection.ask(BEAT, 60) for _ in range(3)))
        assert connection._throttled_until_s <= asyncio.get_running_loop().time() + 50
        connection.close()


async def test_a_broker_that_hangs_up() -> None:
    async with ScriptedBroker({12: lambda *_: CLOSE}) as broker:
        connection = await connected(broker)
        with pytest.raises(ConnectionLostError, match="closed by"):
            await connection.ask(BEAT, 5)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x7f\xff\xff\xff", "2147483647 bytes"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\0\0\0\x02ab", "2 bytes"),
        (b"\0\0\0\x05\0\0\x12\x34x", "not made"),
    ],
    ids=["huge", "negative", "too short", "stranger"],
)
async def test_frames_that_are_none(answer: bytes, why: str) -> None:
    async with ScriptedBroker({12: lambda *_: answer}) as broker:
        connection = await connected(broker)
        with pytest.raises(ConnectionLostError, match=why):
            await connection.ask(BEAT, 5)


async def test_a_malformed_answer_ends_the_connection() -> None:
    async with ScriptedBroker(
        {12: lambda _r, _v, number: b"\0\0\0\x05" + number.to_bytes(4, "big") + b"\0"}
    ) as broker:
        connection = await connected(broker)
        with pytest.raises(ConnectionLostError, match="HeartbeatResponse v4"):
            await connection.ask(BEAT, 5)
        assert connection.ended.is_set()


async def test_answers_in_pieces_and_in_one_piece() -> None:
    answers: list[bytes] = []

    async def last(_request: Any, version: int, number: int) -> Any:
        answers.append(encode_response(HeartbeatResponse(error_code=number), version, number))
        if len(answers) < 3:
            return None
        whole = b"".join(answers)
        return whole[:7], whole[7:]

    async def in_pieces(request: Any, version: int, number: int) -> Any:
        got = await last(request, version, number)
        return None if got is None else got[0] + got[1]

    async with ScriptedBroker({12: in_pieces}) as broker:
        connection = await connected(broker)
        found = await asyncio.gather(*(connection.ask(BEAT, 5) for _ in range(3)))
        assert len({one.error_code for one in found}) == 3
        connection.close()


async def test_a_throttled_client_waits() -> None:
    """KIP-219: the broker answers first, the client waits then."""
    async with ScriptedBroker({12: lambda *_: HeartbeatResponse(throttle_time_ms=60_000)}) as broker:
        connection = await connected(broker)
        await connection.ask(BEAT, 5)
        with pytest.raises(RequestTimedOutError):
            await connection.ask(BEAT, 0.05)
        assert broker.names() == ["Heartbeat"]


async def test_nobody_listens() -> None:
    [port] = free_ports(1)
    with pytest.raises(ConnectionLostError, match=f"cannot connect to 127.0.0.1:{port}"):
        await open_connection("127.0.0.1", port, client_id=None, timeout_s=5)


async def test_a_listener_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RequestTimedOutError):
        await open_connection("127.0.0.1", silent.getsockname()[1], client_id=None, timeout_s=0.1)


# ---- Cluster ----


async def test_the_cluster_connects_again() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        first = await cluster.coordinator("g")
        assert first.port == broker.port
        broker.hang_up()
        while broker.connections < 2:
            try:
                await cluster.coordinator("g")
            except ConnectionLostError:
                continue
        assert broker.connections == 2


async def test_each_outage_begins_with_short_waits() -> None:
    """Waits double from one failed try to the next: sixteen outages are not one long one."""
    broker = ScriptedBroker({12: lambda *_: HeartbeatResponse()})
    async with broker:
        options: Any = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 3_600_000}
        cluster = Cluster(broker.address, request_timeout_ms=2_000, **options)
    for _ in range(16):
        for _ in ("on the connection that ends", "on a new one"):
            with pytest.raises(ConnectionLostError):
                await cluster.send(None, BEAT)
        async with broker:
            await cluster.send(None, BEAT)
    await cluster.close()


async def test_any_of_the_bootstrap_addresses_will_do() -> None:
    dead = free_address()
    async with ScriptedBroker() as broker:
        bootstrap = [dead, broker.address]
        for _ in range(3):
            async with Cluster(bootstrap) as cluster:
                assert (await cluster.metadata([])).controller_id == 1
    async with Cluster([dead]) as cluster:
        with pytest.raises(ConnectionLostError, match=dead):
            await cluster.metadata([])


async def test_purposes_have_connections_of_their_own() -> None:
    async with ScriptedBroker({12: lambda *_: None}) as broker, Cluster(broker.address) as cluster:
        node = await cluster.coordinator("g")
        parked = asyncio.create_task(cluster.send(node, BEAT, purpose="group"))
        await broker.until("Heartbeat")
        assert (await cluster.coordinator("g")) == node
        assert broker.connections == 2
        cluster.disconnect(node, "group")
        with pytest.raises(ConnectionLostError, match="parked"):
            await parked


async def test_metadata_is_asked_for_once_while_it_is_young() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        for _ in range(3):
            await cluster.metadata([], max_age_ms=60_000)
        assert broker.names() == ["Metadata"]
        await cluster.metadata([])
        assert broker.names() == ["Metadata", "Metadata"]
        assert broker.requests[-1][0].allow_auto_topic_creation is False


async def test_a_closed_cluster_stays_closed() -> None:
    async with ScriptedBroker() as broker:
        cluster = Cluster(broker.address)
        await cluster.metadata([])
        await cluster.close()
        with pytest.raises(ConnectionLostError, match="closed"):
            await cluster.metadata([])


def test_a_connection_names_the_version_that_is_installed() -> None:
    assert GREETING.client_software_version == metadata.version("ringleader")


@pytest.mark.parametrize("version", range(5))
async def test_find_coordinator_in_every_version(version: int) -> None:
    async with ScriptedBroker(versions=VERSIONS | {10: (0, version)}) as broker:
        connection = await connected(broker)
        code, node = found_coordinator(await connection.ask(find_coordinator("g"), 5))
        assert node is not None
        assert (code, node.port) == (0, broker.port)
        connection.close()
    assert found_coordinator(FindCoordinatorResponse(error_code=15)).code == 15


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (["a:1", " b "], [("a", 1), ("b", 9092)]),
        ("[::1]:7,[fe80::1]", [("::1", 7), ("fe80::1", 9092)]),
    ],
)
def test_bootstrap_addresses(text: str | list[str], expected: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == expected


@pytest.mark.parametrize("text", ["", "a:x", "a:0", "a:70000", ":1", "::1:9", "a:1,", []])
def test_bootstrap_addresses_that_are_none(text: str | list[str]) -> None:
    with pytest.raises(ValueError, match="address"):
        parse_bootstrap(text)
