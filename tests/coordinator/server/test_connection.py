"""Frames in, answers out, in order; who sends what cannot be read is cut off, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.coordinator.server.call import NO_ANSWER, Call, Message
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from tests.support.groupclient import JOIN_VERSION, form, join_request
from tests.support.rawclient import hand_frame
from tests.support.served import Served, serving, until
from tests.support.sessions import session_of

METADATA, OFFSET_COMMIT, HEARTBEAT, JOIN_GROUP, API_VERSIONS = 3, 8, 12, 11, 18
INT32_MAX = 2**31 - 1


# ---- what is cut off ----

BAD: dict[str, tuple[bytes, str]] = {
    "size -1": (struct.pack(">i", -1), "a frame of -1 bytes"),
    "size 0": (struct.pack(">i", 0), "a frame of 0 bytes"),
    "size 1": (struct.pack(">i", 1), "a frame of 1 bytes"),
    "size 200 MiB": (struct.pack(">i", 200 << 20), "a frame of 209,715,200 bytes"),
    "size 2^31-1": (struct.pack(">i", INT32_MAX) + b"x" * 16, "a frame of 2,147,483,647 bytes"),
    "TLS": (bytes.fromhex("160301020001000001fc0303"), "TLS hello"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
    "unknown API": (hand_frame(9_999, 0, b""), "unknown API 9999"),
    "unknown version": (hand_frame(JOIN_GROUP, 99, b""), "JoinGroup version 99"),
    "unknown heartbeat": (hand_frame(HEARTBEAT, 5, b"", flexible=True), "Heartbeat version 5"),
    "garbage": (hand_frame(JOIN_GROUP, 5, b"\xff" * 40), "JoinGroupRequest"),
    "garbage heartbeat": (hand_frame(HEARTBEAT, 3, b"\xff" * 40), "HeartbeatRequest"),
    "short header": (struct.pack(">ihhi", 8, JOIN_GROUP, 5, 1), "RequestHeader"),
}


@pytest.mark.parametrize(("data", "says"), BAD.values(), ids=BAD.keys())
async def test_what_cannot_be_read_is_cut_off_with_one_log_line(data: bytes, says: str) -> None:
    async with serving() as served, served.connect() as bystander:
        member = await form(bystander, "bystanders")
        async with served.connect() as client:
            client.writer.write(data)
            assert await client.rest() == b""
        assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
        [line] = served.events("connection closed")
        assert says in line["reason"]
        assert line["peer"].startswith("127.0.0.1:")
        await until(lambda: len(served.server.connections) == 1)
        assert served.server.held_bytes == 0


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        (encode_request(join_request("g"), 9, 1, "client"), "JoinGroup"),
        (encode_request(join_request("g"), 3, 1, "client"), "JoinGroup"),
        (encode_request(HeartbeatRequest(group_id="g", member_id="m"), 4, 1, "client"), "Heartbeat"),
    ],
    ids=["JoinGroup v9", "JoinGroup v3", "Heartbeat v4"],
)
async def test_request_cut_at_every_byte_is_cut_off(frame: bytes, name: str) -> None:
    async with serving() as served:
        body = frame[4:]
        for count in range(8, len(body)):
            async with served.connect() as client:
                client.writer.write(struct.pack(">i", count) + body[:count])
                assert await client.rest() == b"", f"{count} of {len(body)} bytes were accepted"
        assert len(served.events("connection closed")) == len(body) - 8


async def test_frames_before_a_bad_one_are_answered() -> None:
    good = encode_request(ApiVersionsRequest(), 0, 1, "client")
    async with serving() as served, served.connect() as client:
        client.writer.write(good * 500 + hand_frame(9_999, 0, b"") + good * 499)
        answer = await _one_answer(served, good)
        assert await client.rest() == answer * 500
        assert len(served.events("connection closed")) == 1


async def test_heartbeats_before_a_bad_frame_are_answered() -> None:
    beat = encode_request(HeartbeatRequest(group_id="g", member_id="m"), 4, 1, "client")
    async with serving() as served, served.connect() as client:
        client.writer.write(beat * 500 + struct.pack(">i", -5) + beat * 499)
        assert await client.rest() == await _one_answer(served, beat) * 500


async def test_a_known_heartbeat_is_answered_in_the_version_that_it_comes_in() -> None:
    """The first three versions have the same bytes, and two answers."""
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        for version in (0, 1, 0, 2, 0):
            assert (await client.call(member.heartbeat(), version)).error_code == 0
            assert len(client.reader._buffer) == 0  # type: ignore[attr-defined]


async def _one_answer(served: Served, frame: bytes) -> bytes:
    async with served.connect() as client:
        client.writer.write(frame)
        answer = await client.frame()
        return struct.pack(">i", len(answer)) + answer


async def test_a_large_announcement_takes_no_memory() -> None:
    """The size of a frame that may come is waited for, not taken."""
    async with serving() as served, served.connect() as client:
        client.writer.write(struct.pack(">i", 100 << 20) + b"\0\x0b")
        await until(lambda: bool(served.server.held_bytes))
        assert served.server.held_bytes == 6


@pytest.mark.parametrize(
    ("api_key", "size", "identified", "taken"),
    [
        (OFFSET_COMMIT, 4_194_304, True, True),
        (OFFSET_COMMIT, 4_194_305, True, False),
        (OFFSET_COMMIT, 2_228_224, False, True),
        (OFFSET_COMMIT, 2_228_225, False, False),
        (JOIN_GROUP, 2_097_152 + 131_072, True, True),
        (JOIN_GROUP, 2_097_152 + 131_073, True, False),
        (9_999, 65_536, True, True),
        (9_999, 65_537, True, False),
    ],
)
async def test_longer_than_its_api_is_cut_off_before_it_comes(
    api_key: int, size: int, identified: bool, taken: bool
) -> None:
    async with serving() as served, served.connect() as client:
        if identified:
            assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        client.writer.write(struct.pack(">ihhi", size, api_key, 5, 1))
        if taken:
            await until(lambda: served.server.held_bytes == 12)
            assert served.events("connection closed") == []
        else:
            assert await client.rest() == b""
            [line] = served.events("connection closed")
            assert f"a frame of {size:,} bytes" in line["reason"]


async def test_the_client_that_holds_the_memory_is_cut_off_not_the_last_one() -> None:
    async with serving(queued_max_request_bytes=1_048_576) as served:
        async with served.connect() as holder, served.connect() as other, served.connect() as member:
            joined = await form(member, "bystanders")
            holder.writer.write(struct.pack(">ihhi", 2_000_000, OFFSET_COMMIT, 4, 1) + bytes(700_000))
            await until(lambda: served.server.held_bytes == 700_012)
            other.writer.write(struct.pack(">ihhi", 2_000_000, OFFSET_COMMIT, 4, 1) + bytes(400_000))
            assert await holder.rest() == b""
            [line] = served.events("connection closed")
            assert "queued.max.request.bytes" in line["reason"]
            assert "700,012" in line["reason"]
            await until(lambda: served.server.held_bytes == 400_012)
            assert (await member.call(joined.heartbeat(), 3)).error_code == 0
        await until(lambda: not served.server.connections)
        assert served.server.held_bytes == 0


async def test_requests_being_worked_on_count() -> None:
    """Parked, each takes twice its frame and up to 200 bytes for every entry that may be in it."""
    held: list[Call] = []
    topics = [MetadataRequestTopic(name="x" * 20) for _ in range(2_000)]
    settings: dict[str, Any] = {"queued_max_request_bytes": 10_000_000}
    async with serving(handlers=holding(held), **settings) as served, contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(served.connect()) for _ in range(5)]
        for count, client in enumerate(clients[:4], 1):
            client.send(MetadataRequest(topics=topics), 9)
            await until(lambda count=count: len(held) == count)  # type: ignore[misc]
            if count == 2:
                assert 4_000_000 < served.server.held_bytes <= 10_000_000
        await until(lambda: len(served.server.connections) == 4)
        assert served.server.held_bytes <= 10_000_000
        for call in held:
            call.answer(MetadataResponse())
        assert (await clients[4].call(ApiVersionsRequest(), 0)).error_code == 0
        assert served.server.held_bytes == 0


async def test_answers_that_are_not_taken_count() -> None:
    big = MetadataResponse(brokers=[MetadataResponseBroker(host="h" * 30_000)] * 1_200)
    settings: dict[str, Any] = {
        "handlers": lambda services: {METADATA: lambda call, request: big},
        "queued_max_request_bytes": 37_000_000,
    }
    async with serving(**settings) as served, served.connect() as slow, served.connect() as member:
        joined = await form(member, "bystanders")
        slow.reader._limit = 1  # type: ignore[attr-defined]  # not in the stubs
        slow.writer.write(encode_request(MetadataRequest(), 4, 1, "client"))
        await until(lambda: served.server.held_bytes > 8_000_000)
        taken = served.server.held_bytes
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(4):  # how much the system takes of each differs
                other = await stack.enter_async_context(served.connect())
                other.reader._limit = 1  # type: ignore[attr-defined]  # not in the stubs
                other.writer.write(encode_request(MetadataRequest(), 4, 1, "client"))
            await until(lambda: bool(served.events("connection closed")))
            assert served.server.held_bytes <= 37_000_000
            assert taken > 8_000_000
        assert (await member.call(joined.heartbeat(), 3)).error_code == 0


async def test_an_answer_counts_while_it_is_made() -> None:
    """Not from when it is sent on: a peer that would take all of it at once gets nothing."""
    answer = MetadataResponse(
        topics=[MetadataResponseTopic(name=f"{number:01000}") for number in range(15_000)]
    )
    settings: dict[str, Any] = {
        "handlers": lambda services: {METADATA: lambda call, request: answer},
        "queued_max_request_bytes": 12_000_000,  # each of its pieces alone has room
    }
    async with serving(**settings) as served, served.connect() as client:
        client.send(MetadataRequest(), 4)
        assert await client.rest() == b""
        [line] = served.events("connection closed")
        assert "queued.max.request.bytes" in line["reason"]
        assert served.server.held_bytes == 0


@pytest.mark.parametrize("topics", [1, 3_000])
async def test_a_client_closed_for_its_memory_is_logged_once(topics: int) -> None:
    """Answers of one piece, and of many: each is larger than all that may be held."""
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(host="h" * 30_000)] * 300,
        topics=[MetadataResponseTopic(name=f"{number}" * 1_000) for number in range(topics)],
    )
    settings: dict[str, Any] = {
        "handlers": lambda services: {METADATA: lambda call, request: answer},
        "queued_max_request_bytes": 1_048_576,
    }
    async with serving(**settings) as served:
        for count in range(1, 4):
            async with served.connect() as hog:
                hog.reader._limit = 1  # type: ignore[attr-defined]  # not in the stubs
                hog.writer.write(encode_request(MetadataRequest(), 4, 1, "client"))
                await until(lambda: not served.server.connections)
            lines = served.events("connection closed")
            assert len(lines) == count
            assert all("queued.max.request.bytes" in line["reason"] for line in lines)
            assert served.server.held_bytes == 0


# ---- ApiVersions ----


@pytest.mark.parametrize("version", [4, 99, 32_767, -1])
async def test_unknown_version_of_api_versions_is_answered_in_the_oldest_form(version: int) -> None:
    async with serving() as served, served.connect() as client:
        client.writer.write(hand_frame(API_VERSIONS, version, b"\x01\x02", correlation_id=77))
        frame = await client.frame()
        assert frame == struct.pack(">ihihhh", 77, ErrorCode.UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, 3)
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_api_versions_lists_what_is_served(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="aio-kafka.x", client_software_version="1.2")
    async with serving() as served, served.connect() as client:
        answer: ApiVersionsResponse = await client.call(request, version)
        ranges = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        assert answer.error_code == 0
        assert set(ranges) == set(served.server.routes)
        assert ranges[JOIN_GROUP] == (0, 9)
        assert ranges[API_VERSIONS] == (0, 3)


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("ok", "-1"), ("ok", "1.")])
async def test_odd_software_name_is_refused(name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    async with serving() as served, served.connect() as client:
        assert (await client.call(request, 3)).error_code == ErrorCode.INVALID_REQUEST


# ---- pieces ----


async def test_one_byte_at_a_time() -> None:
    data = b"".join(encode_request(ApiVersionsRequest(), 0, number, "client") for number in (1, 2))
    async with serving() as served, served.connect() as client:
        for byte in data:
            client.writer.write(bytes([byte]))
            await client.writer.drain()
            await asyncio.sleep(0)
        assert [struct.unpack(">i", (await client.frame())[:4])[0] for _ in range(2)] == [1, 2]


async def test_client_id_may_be_null_empty_odd_or_change() -> None:
    async with serving() as served, served.connect() as client:
        for number, name in enumerate([None, "", "a", "ä", "a", None]):
            frame = hand_frame(HEARTBEAT, 0, b"\0\1g\0\0\0\1\0\1m", correlation_id=number, client_id=name)
            client.writer.write(frame)
            assert await client.frame() == struct.pack(">ih", number, ErrorCode.UNKNOWN_MEMBER_ID)
            client.writer.write(hand_frame(API_VERSIONS, 0, b"", correlation_id=number, client_id=name))
            assert struct.unpack(">ih", (await client.frame())[:6]) == (number, 0)
        client.writer.write(struct.pack(">ihhih", 10, API_VERSIONS, 0, 5, -2))
        assert struct.unpack(">ih", (await client.frame())[:6]) == (5, 0)
        client.writer.write(struct.pack(">ihhih", 12, API_VERSIONS, 0, 6, 2) + b"\xff\xfe")
        assert struct.unpack(">ih", (await client.frame())[:6]) == (6, 0)


async def test_tagged_fields_of_a_header_are_passed_over_whatever_came_before() -> None:
    plain = encode_request(ApiVersionsRequest("name", "1"), 3, 1, "client")[4:]
    at = len(struct.pack(">hhih", API_VERSIONS, 3, 1, 6)) + len("client")
    tagged = plain[:at] + b"\x01\x05\x02ab" + plain[at + 1 :]
    async with serving() as served, served.connect() as client:
        answers = set[bytes]()
        for frame in (plain, tagged, plain, tagged, tagged):
            client.writer.write(struct.pack(">i", len(frame)) + frame)
            answers.add(await client.frame())
        assert len(answers) == 1


async def test_bytes_after_the_body_are_ignored() -> None:
    async with serving() as served, served.connect() as client:
        client.writer.write(hand_frame(HEARTBEAT, 0, b"\0\1g\0\0\0\1\0\1m" + b"more", correlation_id=1))
        assert await client.frame() == struct.pack(">ih", 1, ErrorCode.UNKNOWN_MEMBER_ID)


# ---- parked ----


def holding(held: list[Call]) -> Callable[[Services], dict[int, Handler]]:
    """A handler of Metadata that parks every call and hands it to the test."""

    def park(call: Call, request: Message) -> None:
        held.append(call)

    return lambda services: {METADATA: park}


async def test_later_requests_wait_for_a_parked_one_and_keep_their_order() -> None:
    held: list[Call] = []
    async with serving(handlers=holding(held)) as served, served.connect() as client:
        client.send(ApiVersionsRequest(), 0)
        client.send(MetadataRequest(), 4)
        client.send(ApiVersionsRequest(), 0)
        client.send(MetadataRequest(), 4)
        client.send(ApiVersionsRequest(), 0)
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 1
        await until(lambda: len(held) == 1)
        client.send(ApiVersionsRequest(), 0)
        held[0].answer(MetadataResponse(cluster_id="first"))
        assert (await client.receive(MetadataRequest, 4))[1].cluster_id == "first"
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 3
        await until(lambda: len(held) == 2)
        held[0].answer(MetadataResponse(cluster_id="again"))
        held[1].answer(MetadataResponse(cluster_id="second"))
        assert (await client.receive(MetadataRequest, 4))[1].cluster_id == "second"
        assert [(await client.receive(ApiVersionsRequest, 0))[0] for _ in range(2)] == [5, 6]


async def test_pieces_that_come_while_parked_are_put_together() -> None:
    held: list[Call] = []
    request = encode_request(ApiVersionsRequest(), 0, 2, "client" * 400)
    first = encode_request(MetadataRequest(), 4, 1, "client") + request[:3]
    async with serving(handlers=holding(held)) as served, served.connect() as client:
        client.writer.write(first)
        await until(lambda: len(held) == 1)
        assert served.server.held_bytes == 0  # too little to be counted
        client.writer.write(request[3:2_000])
        await until(lambda: served.server.held_bytes == len(first) + 1_997)
        held[0].answer(MetadataResponse())
        await client.frame()
        client.writer.write(request[2_000:] + request)
        assert [struct.unpack(">i", (await client.frame())[:4])[0] for _ in range(2)] == [2, 2]
        assert served.server.held_bytes == 0


async def test_peer_that_goes_away_while_parked_is_noticed() -> None:
    held: list[Call] = []
    closed = asyncio.Event()
    async with serving(handlers=holding(held)) as served:
        async with served.connect() as client:
            client.send(MetadataRequest(), 4)
            await until(lambda: len(held) == 1)
            held[0].on_closed = closed.set
        async with asyncio.timeout(20):
            await closed.wait()
        held[0].answer(MetadataResponse())
        held[0].close("late")
        assert held[0].done
        await until(lambda: not served.server.connections)
        assert served.events("connection closed") == []


async def test_half_closed_peer_gets_the_answers_that_are_ready() -> None:
    async with serving() as served, served.connect() as client:
        client.send(ApiVersionsRequest(), 0)
        client.send(ApiVersionsRequest(), 0)
        client.writer.write_eof()
        assert [(await client.receive(ApiVersionsRequest, 0))[0] for _ in range(2)] == [1, 2]
        assert await client.rest() == b""
        await until(lambda: not served.server.connections)


async def test_requests_behind_a_parked_one_have_a_bound() -> None:
    held: list[Call] = []
    settings: dict[str, Any] = {"connection_input_max_bytes": 65_536}
    async with serving(handlers=holding(held), **settings) as served, served.connect() as client:
        client.send(MetadataRequest(), 4)
        await until(lambda: len(held) == 1)
        assert served.server.held_bytes == 0  # a short one is not counted
        many = encode_request(ApiVersionsRequest(), 0, 9, "client") * 100_000
        client.writer.write(many)
        await until(lambda: served.server.held_bytes >= 65_536)
        before = -1
        while served.server.held_bytes != before:
            before = served.server.held_bytes
            await asyncio.sleep(0.05)
        assert before < len(many) / 4
        held[0].answer(MetadataResponse())
        await client.frame()
        for _ in range(100_000):
            await client.frame()
        assert served.server.held_bytes == 0


async def test_slow_reader_is_not_read_from_until_it_reads() -> None:
    big = MetadataResponse(brokers=[MetadataResponseBroker(host="h" * 30_000)])
    handled = 0

    def count(call: Call, request: Message) -> MetadataResponse:
        nonlocal handled
        handled += 1
        return big

    settings: dict[str, Any] = {
        "handlers": lambda services: {METADATA: count},
        "connection_output_max_bytes": 65_536,
    }
    async with serving(**settings) as served, served.connect() as client, served.connect() as other:
        requests = 2_000
        client.writer.write(encode_request(MetadataRequest(), 4, 1, "client") * requests)
        client.reader._limit = 1  # type: ignore[attr-defined]  # not in the stubs
        before = -1
        while handled != before:
            before = handled
            await asyncio.sleep(0.05)
        assert 0 < handled < requests
        assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0
        await until(lambda: served.server.held_bytes > 0)
        for _ in range(requests):
            await client.frame()
        assert handled == requests
        await until(lambda: served.server.held_bytes == 0)


# ---- answers ----


async def test_no_answer_is_no_answer() -> None:
    held: list[Call] = []

    def silent(call: Call, request: Message) -> object:
        held.append(call)
        return NO_ANSWER if len(held) == 1 else None

    async with serving(handlers=lambda services: {METADATA: silent}) as served, served.connect() as client:
        client.send(MetadataRequest(), 4)
        client.send(MetadataRequest(), 4)
        client.send(ApiVersionsRequest(), 0)
        await until(lambda: len(held) == 2)
        held[1].answer(NO_ANSWER)
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 3


async def test_call_that_is_answered_before_its_handler_returns() -> None:
    def at_once(call: Call, request: Message) -> None:
        call.answer(MetadataResponse(cluster_id="now"))
        call.answer(MetadataResponse(cluster_id="not twice"))

    async with serving(handlers=lambda services: {METADATA: at_once}) as served, served.connect() as client:
        client.send(ApiVersionsRequest(), 0)
        client.send(MetadataRequest(), 4)
        client.send(ApiVersionsRequest(), 0)
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 1
        assert (await client.receive(MetadataRequest, 4))[1].cluster_id == "now"
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 3


async def test_call_that_is_refused_before_its_handler_returns() -> None:
    def refuse(call: Call, request: Message) -> None:
        call.close("no reason")

    async with serving(handlers=lambda services: {METADATA: refuse}) as served, served.connect() as client:
        client.send(ApiVersionsRequest(), 0)
        client.send(MetadataRequest(), 4)
        client.send(ApiVersionsRequest(), 0)
        assert (await client.receive(ApiVersionsRequest, 0))[0] == 1
        assert await client.rest() == b""
        [line] = served.events("connection closed")
        assert line["reason"] == "Metadata: no reason"


async def test_none_as_an_answer_closes_the_connection() -> None:
    held: list[Call] = []
    async with serving(handlers=holding(held)) as served, served.connect() as client:
        client.send(MetadataRequest(), 4)
        await until(lambda: len(held) == 1)
        held[0].answer(None)
        assert await client.rest() == b""
        assert len(served.events("connection closed")) == 1


def _raises(call: Call, request: Message) -> Message:
    raise RuntimeError("a bug")


def _unfit(call: Call, request: Message) -> Message:
    return MetadataResponse(controller_id="not a number")  # type: ignore[arg-type]


@pytest.mark.leaves("Traceback")
@pytest.mark.parametrize("handler", [_raises, _unfit])
async def test_handler_that_fails_costs_one_connection_and_one_traceback(handler: Handler) -> None:
    async with serving(handlers=lambda services: {METADATA: handler}) as served, served.connect() as other:
        async with served.connect() as client:
            client.send(ApiVersionsRequest(), 0)
            client.send(MetadataRequest(), 4)
            assert (await client.receive(ApiVersionsRequest, 0))[0] == 1
            assert await client.rest() == b""
        assert (await other.call(ApiVersionsRequest(), 0)).error_code == 0
        assert len([line for line in served.log if line.get("exc_info")]) == 1


# ---- limits ----


async def test_connections_have_a_limit() -> None:
    async with serving(max_connections=2) as served:
        async with served.connect() as first, served.connect() as second:
            await until(lambda: len(served.server.connections) == 2)
            async with served.connect() as third:
                assert await third.rest() == b""
            for client in (first, second):
                assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        await until(lambda: not served.server.connections)
        async with served.connect() as later:
            assert (await later.call(ApiVersionsRequest(), 0)).error_code == 0
        assert "max.connections" in served.events("connection closed")[0]["reason"]


async def test_connections_of_one_address_have_a_limit() -> None:
    async with serving(max_connections_per_ip=1) as served, served.connect() as first:
        assert (await first.call(ApiVersionsRequest(), 0)).error_code == 0
        async with served.connect() as second:
            assert await second.rest() == b""
        assert "max.connections.per.ip" in served.events("connection closed")[0]["reason"]


async def test_idle_connection_is_closed_but_not_one_that_waits_for_us() -> None:
    held: list[Call] = []
    settings: dict[str, Any] = {"handlers": holding(held), "connections_max_idle_ms": 8_000}
    async with serving(**settings) as served, served.connect() as idle, served.connect() as waiting:
        assert (await idle.call(ApiVersionsRequest(), 0)).error_code == 0
        waiting.send(MetadataRequest(), 4)
        await until(lambda: len(held) == 1)
        served.clock.ahead_ms += 40_000
        assert await idle.rest() == b""
        held[0].answer(MetadataResponse())
        await waiting.receive(MetadataRequest, 4)
        swept_ms = served.server.swept_ms
        await until(lambda: served.server.swept_ms > swept_ms)
        assert (await waiting.call(ApiVersionsRequest(), 0)).error_code == 0, "it idles since its answer"
        assert len(served.events("idle connection closed")) == 1


async def test_a_connection_that_was_muted_idles_from_the_end_of_that() -> None:
    async with serving(connections_max_idle_ms=8_000) as served, served.connect() as client:
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0
        [connection] = served.server.connections
        session_of(connection).pace.mute(50)
        served.clock.ahead_ms += 6_000
        await until(lambda: not connection.is_muted)
        served.clock.ahead_ms += 6_000
        swept_ms = served.server.swept_ms
        await until(lambda: served.server.swept_ms > swept_ms)
        assert (await client.call(ApiVersionsRequest(), 0)).error_code == 0


async def test_join_waits_and_heartbeats_of_others_go_on() -> None:
    async with serving() as served, served.connect() as first, served.connect() as second:
        member = await form(first, "group")
        second.send(join_request("group"), JOIN_VERSION)
        await until(lambda: served.server.routes[JOIN_GROUP].requests == 2)
        answer = await first.call(member.heartbeat(), 3)
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        rejoined = await first.call(join_request("group", member.member_id), JOIN_VERSION)
        joined = (await second.receive(type(join_request("group")), JOIN_VERSION))[1]
        assert rejoined.generation_id == joined.generation_id == member.generation + 1


async def test_a_peer_whose_machine_is_gone_is_found_out() -> None:
    async with serving() as served, served.connect() as client:
        await client.call(ApiVersionsRequest(), 0)
        [connection] = served.server.connections
        handle = connection._transport.get_extra_info("socket")
        assert handle.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
