"""An answer is as long as what there is to tell, once: no request makes it longer by naming the same thing
several times, and what answers take while they are made has its bound (`queued.max.request.bytes`)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message
from tests.support.amplified import (
    LARGE_BYTES,
    MANY,
    Amplified,
    acls,
    amplified,
    fetch,
    preparations,
    repeated,
)
from tests.support.daemon import Daemon
from tests.support.rawclient import ConnectionClosedError, RawConnection
from tests.support.requests_of_all import all_requests

QUEUED_BYTES = 64 * 1024 * 1024
OPTIONS = (
    "--telemetry-enable",
    *("--authorizer", "acl", "--super-users", "User:ANONYMOUS"),
    *("--queued-max-request-bytes", str(QUEUED_BYTES), "--group-initial-rebalance-delay-ms", "0"),
)
BYTES_PER_BYTE = 256
"""Of an answer, for each of its request: the least entry is a byte, and its error a sentence."""
AT_ONCE = 4
"""Connections that ask the same at the same time."""
GROWTH_BYTES = 2 * QUEUED_BYTES
"""The most memory that the daemon may take in addition meanwhile: twice what is counted, as not all that is
freed is given back."""
TABLE = amplified()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    one = Daemon(tmp_path_factory.mktemp("daemon"), options=OPTIONS).start()
    with RawConnection(one.bootstrap) as client:
        for message, version in preparations():
            client.call(message, version)
        form_large(client)
        yield one
    one.stop()


def form_large(client: RawConnection) -> None:
    """A group whose one member stays: it is described with all that it offers and has."""
    join = kafka.JoinGroupRequest(
        group_id="large",
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        protocol_type="consumer",
        protocols=[kafka.JoinGroupRequestProtocol(name="range", metadata=bytes(LARGE_BYTES))],
    )
    joined = client.call(join, 3)
    assert joined.error_code == 0
    assignment = kafka.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(LARGE_BYTES))
    sync = kafka.SyncGroupRequest("large", 1, joined.member_id, assignments=[assignment])
    assert client.call(sync, 3).error_code == 0


def size_of_answer(daemon: Daemon, message: Message, version: int) -> int:
    """0: the connection was closed instead, with a line in the log."""
    with RawConnection(daemon.bootstrap, timeout_s=60) as client:
        client.send(message, version)
        try:
            return len(client.receive_frame())
        except ConnectionClosedError:
            return 0


def peak_bytes(daemon: Daemon) -> int:
    """The most memory that it ever had, since `forget_peak`."""
    status = Path(f"/proc/{daemon.pid}/status").read_text().split("VmHWM:")[1]
    return int(status.split()[0]) * 1024


def forget_peak(daemon: Daemon) -> int:
    """Reset the kernel's peak; returns the current resident bytes."""
    Path(f"/proc/{daemon.pid}/clear_refs").write_text("5")
    return int(psutil.Process(daemon.pid).memory_info().rss)


def request_bytes(message: Message, version: int) -> int:
    return len(message.encode(version))


def test_the_table_is_of_all_apis_that_are_served(daemon: Daemon) -> None:
    with RawConnection(daemon.bootstrap) as client:
        served = {one.api_key for one in client.call(kafka.ApiVersionsRequest("test", "1"), 3).api_keys}
    assert served == TABLE.keys(), "each API needs the request that could be answered with most"
    assert {case.request.API_KEY for case in all_requests()} <= served


@pytest.mark.parametrize("case", TABLE.values(), ids=lambda case: type(case.most).__name__)
def test_what_is_repeated_is_answered_once(daemon: Daemon, case: Amplified) -> None:
    whole = size_of_answer(daemon, case.whole, case.version)
    if isinstance(case.most, kafka.DeleteAclsRequest):
        size_of_answer(daemon, acls(), 3)
    before = forget_peak(daemon)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        asking = [threads.submit(size_of_answer, daemon, case.most, case.version) for _ in range(AT_ONCE)]
        sizes = [one.result() for one in asking]
    allowed = 2 * whole + BYTES_PER_BYTE * request_bytes(case.most, case.version)
    assert max(sizes) <= allowed
    assert peak_bytes(daemon) - before <= GROWTH_BYTES


def test_requests_that_repeat_anything(daemon: Daemon, seed: int) -> None:
    """Of every API some, as others make them, with entries over and over at any depth."""
    rng = random.Random(seed)
    before = forget_peak(daemon)
    for case in all_requests():
        if isinstance(case.request, kafka.ProduceRequest):
            continue  # what it appends is no answer
        once = size_of_answer(daemon, case.request, case.version)
        message = repeated(case.request, rng, MANY // 10)
        size = size_of_answer(daemon, message, case.version)
        allowed = 2 * once + BYTES_PER_BYTE * request_bytes(message, case.version)
        assert size <= allowed, (case.name, size, once, allowed)
    assert peak_bytes(daemon) - before <= GROWTH_BYTES


def test_a_fetch_is_answered_with_what_it_may_have(daemon: Daemon, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        limit = rng.choice((-(2**31), -1, 0, 1, 2**20, 4 * 2**20, 2**31 - 1))
        request = fetch(rng.randrange(1, 1_500), limit)
        before = forget_peak(daemon)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            sizes = list(
                threads.map(lambda _, sent=request: size_of_answer(daemon, sent, 12), range(AT_ONCE))
            )
        # One batch comes whole, whatever is allowed; nothing where that is less than nothing.
        assert max(sizes) <= max(min(limit, 8 * 2**20), 2**20 if limit >= 0 else 0) + 1_000
        assert peak_bytes(daemon) - before <= GROWTH_BYTES


def test_long_answers_at_once_have_one_bound(daemon: Daemon) -> None:
    """Each is allowed; all of them together are not: those that take most are closed, the others answered."""
    group = kafka.OffsetFetchRequestGroup("much", topics=None)
    request = kafka.OffsetFetchRequest(groups=[group])
    alone = size_of_answer(daemon, request, 8)
    count = 2 + 2 * QUEUED_BYTES // alone
    before = forget_peak(daemon)
    with ThreadPoolExecutor(count) as threads:
        sizes = list(threads.map(lambda _: size_of_answer(daemon, request, 8), range(count)))
    assert set(sizes) <= {0, alone}
    assert alone in sizes
    assert peak_bytes(daemon) - before <= GROWTH_BYTES + alone  # the one that shows that it is too much
