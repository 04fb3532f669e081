"""A recording on a node: where it begins, what bounds it, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.http_recording import Recordings
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.node import Node
from ringleader.coordinator.recording import desk as desks
from ringleader.coordinator.recording import state
from ringleader.coordinator.recording.desk import CannotRecordError, Desk, Recording, RecordingRequest
from ringleader.coordinator.recording.file import read
from ringleader.coordinator.recording.play import Player
from ringleader.coordinator.recording.tap import Principals, Tickets
from ringleader.testing import Coordinator
from tests.coordinator.test_node import connected, settings
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.command import command_line
from tests.support.groupclient import form
from tests.support.served import until

REQUEST = RecordingRequest("g", for_ms=60_000, max_bytes=1 << 20)


async def _lines(recording: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await recording.take()).splitlines()]


def _is_untouched(node: Node) -> bool:
    runtime = node.runtime
    number = runtime.partition_of("g")
    shard = runtime.shards[number]
    own = {"handle", "heartbeat", "drain", "give_back", "unload"} & vars(shard).keys()
    return not own and runtime.heartbeats[number] == shard.heartbeat


async def test_a_recording_leaves_nothing_behind_and_is_played(tmp_path: Path) -> None:
    async with Node(settings(tmp_path, topic="orders:2")) as node, connected(node) as client:
        member = await form(client, "g")
        recording = await Desk(get_log()).begin(node.runtime, REQUEST)
        assert not _is_untouched(node)
        await client.call(member.commit(7), 8)
        for _ in range(2):  # the second time by the short way
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
        recording.end("enough")
        assert _is_untouched(node)
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        first, *calls, end = await _lines(recording)
        assert end == {"end": "enough", "calls": len(calls)}
        assert {"heartbeat", "drain", "durable"} <= {one["do"] for one in calls}
        player = Player(first)
        assert [player.step(one).difference for one in calls] == [None] * len(calls)


async def test_what_nobody_reads_ends_and_holds_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "WAITING_MAX_BYTES", 10_000)
    async with Node(settings(tmp_path, topic="orders:2")) as node, connected(node) as client:
        member = await form(client, "g")
        recording = await Desk(get_log()).begin(node.runtime, REQUEST)
        for offset in range(100):
            await client.call(member.commit(offset), 8)
        assert recording.ended
        assert _is_untouched(node)
        lines = await _lines(recording)
        assert lines[-1] == {"end": "it was read too slowly", "calls": len(lines) - 2}
        assert len(lines) < 100


async def test_a_shard_that_is_too_large_busy_or_recorded_already_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(settings(tmp_path, topic="orders:2")) as node, connected(node) as client:
        await form(client, "g")
        desk = Desk(get_log())
        with monkeypatch.context() as patch:
            patch.setattr(desks, "STATE_MAX", 1)
            with pytest.raises(CannotRecordError, match="too many to be written down"):
                await desk.begin(node.runtime, REQUEST)
        with monkeypatch.context() as patch:
            patch.setattr(desks, "QUIET_TIMEOUT_S", 0.0)
            patch.setattr(state, "is_quiet", lambda shard: False)
            with pytest.raises(CannotRecordError, match="busy all the time"):
                await desk.begin(node.runtime, REQUEST)
        recording = await desk.begin(node.runtime, REQUEST)
        with pytest.raises(CannotRecordError, match="one at a time"):
            await desk.begin(node.runtime, REQUEST)
        recording.end("enough")
        (await desk.begin(node.runtime, REQUEST)).end("enough")
        assert _is_untouched(node)


@pytest.mark.leaves("shard failed")
async def test_a_call_that_ends_the_shard_is_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Node(settings(tmp_path, topic="orders:2")) as node, connected(node) as client:
        member = await form(client, "g")
        shard = node.runtime.shards[node.runtime.partition_of("g")]

        def broken(position: int, now_ms: int) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(shard._core, "durable", broken)
        recording = await Desk(get_log()).begin(node.runtime, REQUEST)
        await client.call(member.commit(7), 8)
        *_, last, end = await _lines(recording)
        assert (last["do"], last["raised"]) == ("durable", "ZeroDivisionError")
        assert end["end"] == "the shard's life ended"


async def test_a_node_records_what_it_has(tmp_path: Path) -> None:
    lines = Lines()
    with Coordinator(topics={"orders": 3}) as kafka_cluster:
        async with Nodes(kafka_cluster, lines) as nodes:
            one = await nodes.start(1)
            two = await nodes.start(2)
            # Both have their share: nothing moves any more.
            await until(lambda: all(node.runtime.serving for node in (one, two)))
            await until(lambda: _serves(one) or _serves(two))
            owner = one if _serves(one) else two
            other = two if owner is one else one
            with pytest.raises(CannotRecordError, match="does not serve group g"):
                await Desk(get_log()).begin(other.runtime, REQUEST)
            recording = await Desk(get_log()).begin(owner.runtime, REQUEST)
            first = (await _lines(recording))[0]
            assert first["state"]["confirms"]
            await owner.runtime.release(owner.runtime.partition_of("g"))
            assert (await _lines(recording))[-1]["end"] in (
                "the shard's life ended",
                "the shard was given up",
            )


@pytest.mark.parametrize("ends", [True, False], ids=["ends recordings", "of an older version"])
async def test_ctrl_c_keeps_what_was_asked_until_then_however_late_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """An older daemon does not know when its reader has enough: there what has arrived is all."""
    lines, refused = Recordings._lines, Recordings._refused
    requested = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def late(self: Recordings, recording: Recording) -> AsyncIterator[bytes]:
        pieces = lines(self, recording)
        yield await anext(pieces)
        await until(lambda: recording.ended or not ends)
        async for piece in pieces:
            yield piece

    def noted(self: Recordings, request: Request) -> Response | None:
        if request.method != "DELETE":
            return refused(self, request)
        loop.call_soon_threadsafe(requested.set)
        return refused(self, request) if ends else Response(status_code=405)

    monkeypatch.setattr(Recordings, "_lines", late)
    monkeypatch.setattr(Recordings, "_refused", noted)
    token, file = tmp_path / "token", tmp_path / "g.gz"
    token.write_text("a token for recordings")
    http = {"http_listen": "127.0.0.1:0", "http_recording_token_file": token}
    async with Node(settings(tmp_path, topic="orders:2", **http)) as node, connected(node) as client:
        assert node.http is not None
        member = await form(client, "g")
        url = f"http://{node.http.address}"
        command = command_line("record", "g", "--http", url, "--token-file", str(token), "-o", str(file))
        recorder = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            assert recorder.stdout is not None
            assert (await recorder.stdout.readline()).startswith(b"Recording g")
            await client.call(member.commit(7), 8)
            for _ in range(2):  # the second time by the short way
                assert (await client.call(member.heartbeat(), 3)).error_code == 0
            recorder.send_signal(signal.SIGINT)
            output, _ = await recorder.communicate()
        finally:
            if recorder.returncode is None:
                recorder.kill()
        assert recorder.returncode == 0
        assert b"it ended by Ctrl-C." in output
        assert requested.is_set()
    done = [one.get("do") for one in read(file)]
    assert done[-1] is None
    assert not ends or {"heartbeat", "drain"} <= set(done)


def _serves(node: ClusterNode) -> bool:
    return node.runtime.partition_of("g") in node.runtime.serving


class Waiting:
    """A request of a connection, as far as a recording tells it."""

    api_version, client_id, client_host, principal = 3, "c", "/127.0.0.1", ""

    def __init__(self, connection: object) -> None:
        self.connection = connection


def test_a_connection_without_requests_that_wait_is_told_by_another_number() -> None:
    """Its place in memory may be another one's by then."""
    tickets = Tickets(Principals(shown=True))
    connection = object()
    first, second, third = Waiting(connection), Waiting(connection), Waiting(connection)
    for one in (first, second):
        tickets.number(one)
    for one in (first, second):
        tickets.done(one)
    tickets.number(third)
    assert [(fresh[0], fresh[-1]) for fresh in tickets.fresh] == [(1, 1), (2, 1), (3, 3)]
