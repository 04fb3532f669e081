"""Bytes that no client should send: that connection is closed with one log line, and nothing else notices."""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import encode_request
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from tests.support.daemon import Daemon
from tests.support.rawclient import RawConnection, address_of, hand_frame
from tests.support.rawgroup import GroupMember, form_group
from tests.support.wire_reference import uvarint

TOPIC = "orders"
GROUP = "bystander"
PRODUCE, METADATA, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, API_VERSIONS = 0, 3, 9, 11, 12, 14, 18
INT32_MAX = 2**31 - 1
# More than the daemon may grow by handling all of this many times; a length believed from the wire would be
# tens of MiB for each connection.
MAX_GROWTH_BYTES = 24 * 1024 * 1024


def _join() -> bytes:
    """A good JoinGroup v5, whole frame."""
    request = JoinGroupRequest(
        group_id="intruder",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")],
    )
    return encode_request(request, 5, 1, "raw")


def _cut(frame: bytes, count: int) -> bytes:
    """The frame without its last `count` bytes, its size field right."""
    body = frame[4 : len(frame) - count]
    return struct.pack(">i", len(body)) + body


_GROUP_AND_TIMEOUTS = struct.pack(">h", 1) + b"g" + struct.pack(">ii", 30_000, 60_000)
_MEMBER_AND_TYPE = struct.pack(">h", 0) + struct.pack(">h", -1) + struct.pack(">h", 1) + b"c"

CLOSED: dict[str, bytes] = {
    "JoinGroup of garbage": hand_frame(JOIN_GROUP, 5, bytes(range(255, 155, -1))),
    "flexible JoinGroup of garbage": hand_frame(JOIN_GROUP, 9, b"\xff" * 64, flexible=True),
    "JoinGroup cut short": _cut(_join(), 5),
    "JoinGroup without a body": hand_frame(JOIN_GROUP, 5, b""),
    "JoinGroup of 2^31-1 protocols": hand_frame(
        JOIN_GROUP, 5, _GROUP_AND_TIMEOUTS + _MEMBER_AND_TYPE + struct.pack(">i", INT32_MAX)
    ),
    "JoinGroup with metadata beyond the frame": hand_frame(
        JOIN_GROUP,
        5,
        _GROUP_AND_TIMEOUTS + _MEMBER_AND_TYPE + struct.pack(">ih1si", 1, 1, b"p", 100_000_000) + b"abc",
    ),
    "JoinGroup with 2^28 compact protocols": hand_frame(
        JOIN_GROUP,
        9,
        b"\x02g" + struct.pack(">ii", 30_000, 60_000) + b"\x01\x00\x02c" + b"\xff\xff\xff\xff\x0f",
        flexible=True,
    ),
    "Metadata of 54 million topics": hand_frame(METADATA, 4, struct.pack(">i", 54_000_000)),
    "group id of negative length": hand_frame(HEARTBEAT, 0, struct.pack(">h", -7)),
    "frame of 2 GB": struct.pack(">i", INT32_MAX) + bytes(16),
    "frame of 200 MiB without a body": struct.pack(">i", 200 * 2**20),
    "frame of -1": struct.pack(">i", -1),
    "frame of 0": struct.pack(">i", 0),
    "frame of 1": struct.pack(">i", 1) + b"\0",
    "OffsetFetch of 600,000 topics without a name": hand_frame(
        OFFSET_FETCH,
        8,
        b"\x02\x02g" + uvarint(600_001) + b"\x01\x01\x00" * 600_000 + b"\x00\x00\x00",
        flexible=True,
    ),
    "Metadata of 4 MiB from nobody known": struct.pack(">ihhi", 4 * 2**20, METADATA, 4, 1),
    "unknown API": hand_frame(9999, 0, b""),
    "API of a negative number": hand_frame(-3, 0, b""),
    "API that only brokers use": hand_frame(4, 0, b""),
    "version 99 of Heartbeat": hand_frame(HEARTBEAT, 99, b"", flexible=True),
    "version -1 of SyncGroup": hand_frame(SYNC_GROUP, -1, b""),
    "client id beyond the frame": struct.pack(">ihhih", 10, HEARTBEAT, 0, 1, 500),
    "header tags that never end": hand_frame(HEARTBEAT, 4, b"\xff" * 12, flexible=False),
    "hello of TLS": bytes.fromhex("1603010200010001fc0303") + bytes(505),
    "request of HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


class Bystander:
    """A member of a group of its own, which heartbeats without a pause on its connection."""

    def __init__(self, bootstrap: str, member: GroupMember, generation: int) -> None:
        self.codes: Counter[int] = Counter()
        self._bootstrap = bootstrap
        self._request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member.member_id)
        self._enough = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with RawConnection(self._bootstrap) as connection:
            while not self._stopping.is_set():
                self.codes[connection.call(self._request).error_code] += 1
                self._enough.set()

    def more(self) -> None:
        """Waits for another answer."""
        self._enough.clear()
        assert self._enough.wait(30), "the bystander gets no answers any more"

    def stop(self) -> None:
        """Ends it."""
        self._stopping.set()
        self._thread.join()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon takes everything of this module."""
    options = ["--group-initial-rebalance-delay-ms", "0"]
    with Daemon(tmp_path_factory.mktemp("daemon"), topics=[f"{TOPIC}:2"], options=options) as running:
        yield running


@pytest.fixture(scope="module")
def bystander(daemon: Daemon) -> Iterator[Bystander]:
    """A member of another client's group; no answer to it may ever be an error."""
    group = form_group(address_of(daemon.bootstrap), GROUP, 1, topic=TOPIC)
    one = Bystander(daemon.bootstrap, group.members[0], group.generation)
    yield one
    one.stop()
    group.close()
    assert set(one.codes) == {ErrorCode.NONE}


def log_lines(daemon: Daemon) -> list[str]:
    """The daemon's log so far, once it has handled everything that came before."""
    with RawConnection(daemon.bootstrap) as connection:
        connection.call(ApiVersionsRequest(), 0)
    return daemon.log().splitlines()


@pytest.mark.parametrize("data", CLOSED.values(), ids=CLOSED.keys())
def test_connection_is_closed_with_one_log_line(data: bytes, daemon: Daemon, bystander: Bystander) -> None:
    before = log_lines(daemon)
    with RawConnection(daemon.bootstrap) as connection:
        connection.send_bytes(data)
        assert connection.wait_closed() == b""
    after = log_lines(daemon)
    new = after[len(before) :]
    assert len(new) == 1, new
    assert "Traceback" not in new[0]
    bystander.more()


def test_good_requests_before_a_bad_one_are_answered(daemon: Daemon, bystander: Bystander) -> None:
    before = log_lines(daemon)
    good = b"".join(encode_request(ApiVersionsRequest(), 0, number, "raw") for number in range(500))
    with RawConnection(daemon.bootstrap) as connection:
        connection.send_bytes(good + CLOSED["unknown API"] + good)
        answers = connection.wait_closed()
    ids = []
    while answers:
        size, correlation_id = struct.unpack_from(">ii", answers)
        ids.append(correlation_id)
        answers = answers[4 + size :]
    assert ids == list(range(500))
    assert len(log_lines(daemon)) == len(before) + 1
    bystander.more()


@pytest.mark.parametrize("version", [99, 32_767, -1])
def test_unknown_version_of_apiversions_is_answered(version: int, daemon: Daemon) -> None:
    with RawConnection(daemon.bootstrap) as connection:
        connection.send_bytes(hand_frame(API_VERSIONS, version, b"whatever", flexible=True))
        frame = connection.receive_frame()
    assert frame[:4] == struct.pack(">i", 1)
    answer = ApiVersionsResponse.decode(frame, 0, 4)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [key.api_key for key in answer.api_keys] == [API_VERSIONS]


@pytest.mark.parametrize("length", [1, 3, 4, 20])
def test_half_a_request_then_silence_harms_nobody(length: int, daemon: Daemon, bystander: Bystander) -> None:
    with RawConnection(daemon.bootstrap) as connection:
        connection.send_bytes(_join()[:length])
        bystander.more()
    bystander.more()


def test_memory_does_not_grow(daemon: Daemon, bystander: Bystander) -> None:
    process = psutil.Process(daemon.pid)
    send_everything(daemon, 2)  # what is loaded or made on first use does not count
    before = process.memory_info().rss
    open_at_once = [RawConnection(daemon.bootstrap) for _ in range(50)]
    for connection in open_at_once:
        # 99 MiB are announced and allowed, but do not come: nothing may be set aside for them.
        connection.call(ApiVersionsRequest(), 0)
        connection.send_bytes(struct.pack(">ihhi", 99 * 2**20, PRODUCE, 7, 1) + bytes(1000))
    send_everything(daemon, 10)
    bystander.more()
    assert process.memory_info().rss - before < MAX_GROWTH_BYTES
    for connection in open_at_once:
        connection.close()


def send_everything(daemon: Daemon, times: int) -> None:
    """All the bad input of this module, each on a connection of its own."""
    for _ in range(times):
        for data in CLOSED.values():
            with RawConnection(daemon.bootstrap) as connection:
                connection.send_bytes(data)
                connection.wait_closed()


# 16 MiB each of heartbeats and of group ids, and what the allocator keeps on top of it.
REMEMBERED_BYTES = 2 * 16 * 2**20 + MAX_GROWTH_BYTES


def test_caches_have_a_bound_in_bytes(daemon: Daemon, bystander: Bystander) -> None:
    """Heartbeats of ever new groups with long names. 50,000 of them were remembered, however long."""
    process = psutil.Process(daemon.pid)
    before = process.memory_info().rss
    with RawConnection(daemon.bootstrap) as connection:
        for start in range(0, 60_000, 500):
            beats = [
                HeartbeatRequest(group_id=f"{number}" + "g" * 900, member_id="m")
                for number in range(start, start + 500)
            ]
            connection.send_bytes(b"".join(encode_request(beat, 3, 1, "raw") for beat in beats))
            for _ in beats:
                connection.receive_frame()
    bystander.more()
    assert process.memory_info().rss - before < REMEMBERED_BYTES


def test_a_client_id_of_no_characters_fills_no_log(daemon: Daemon, bystander: Bystander) -> None:
    """11,000 bytes that are no UTF-8 are 33,000 bytes as text."""
    before = log_lines(daemon)
    name = b"\xff" * 11_000
    good = struct.pack(">hhih", API_VERSIONS, 0, 7, len(name)) + name
    bad = struct.pack(">hhih", METADATA, 99, 8, len(name)) + name
    with RawConnection(daemon.bootstrap) as connection:
        for frame in (good, good, bad):
            connection.send_bytes(struct.pack(">i", len(frame)) + frame)
        assert connection.wait_closed().count(struct.pack(">i", 7)) == 2
    [line] = log_lines(daemon)[len(before) :]
    assert "Metadata version 99" in line
    assert len(line) < 1_000
    bystander.more()
