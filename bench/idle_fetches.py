"""Bytes and CPU of a fetch by a consumer at the end of 1,000 partitions, with and without a session.

One connection asks for all partitions, of which none has a new record, and waits 1 ms at the broker each
time: an idle consumer does it twice a second. The requests are built as GroupConsumer builds them, and the
answers decoded as it does.
"""

from __future__ import annotations

import time
from typing import Any

from bench.plan import TOPIC, Plan
from bench.processes import Pins, cpu_seconds, daemon, work_dir
from bench.report import median, save, say, table
from ringleader.clients.fetch.session import FetchSession, Wanted
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import FetchRequest, FetchResponse
from tests.support.rawclient import RawConnection

PARTITIONS = 1_000
VERSION = 12
MAX_WAIT_MS = 1
WHOLE, IN_A_SESSION = "whole requests", "in a session"
KINDS = {WHOLE: False, IN_A_SESSION: True}
COLUMNS = ("request_bytes", "answer_bytes", "server_cpu_us", "client_cpu_us")


class _Idle:
    """A client that fetches what has nothing new."""

    def __init__(self, bootstrap: str, *, in_session: bool) -> None:
        self._connection = RawConnection(bootstrap)
        self._session = FetchSession(offered=in_session)
        self._wanted = {(TOPIC, index): Wanted(0, 0, 2**20) for index in range(PARTITIONS)}
        self.fetches = self.request_bytes = self.answer_bytes = 0

    def fetch(self) -> None:
        """Ask once. Raises RuntimeError for an error."""
        request = FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=50 * 2**20)
        self._session.fill(request, self._wanted, VERSION)
        frame = encode_request(request, VERSION, self.fetches, "bench")
        self._connection.send_bytes(frame)
        answer = self._connection.receive_frame()
        response: Any = decode_response(FetchResponse, answer, VERSION)[1]
        if response.error_code or any(
            one.error_code for topic in response.responses for one in topic.partitions
        ):
            raise RuntimeError("a Fetch failed")
        self._session.answered(self._wanted, response)
        self.fetches += 1
        self.request_bytes += len(frame)
        self.answer_bytes += len(answer) + 4

    def close(self) -> None:
        """At its end."""
        self._connection.socket.close()


def _measured(bootstrap: str, pid: int, plan: Plan, *, in_session: bool) -> dict[str, float]:
    idle = _Idle(bootstrap, in_session=in_session)
    until_s = time.monotonic() + plan.warmup_s
    while time.monotonic() < until_s or idle.fetches < 2:
        idle.fetch()
    idle.fetches = idle.request_bytes = idle.answer_bytes = 0
    server_s, client_s = cpu_seconds(pid), time.process_time()
    until_s = time.monotonic() + plan.seconds
    while time.monotonic() < until_s or not idle.fetches:
        idle.fetch()
    server_s, client_s = cpu_seconds(pid) - server_s, time.process_time() - client_s
    idle.close()
    count = idle.fetches
    totals = idle.request_bytes, idle.answer_bytes, server_s * 1e6, client_s * 1e6
    return dict(zip(COLUMNS, (total / count for total in totals), strict=True))


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes idle_fetches.json, returns its content."""
    pins = Pins.choose()
    say(f"idle fetches: {PARTITIONS:,} partitions without a new record")
    rounds: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{PARTITIONS}"]) as server,
    ):
        for _ in range(plan.rounds):
            for kind, in_session in KINDS.items():
                rounds[kind].append(_measured(server.bootstrap, server.pid, plan, in_session=in_session))
    medians = {
        kind: {column: median([one[column] for one in measured]) for column in COLUMNS}
        for kind, measured in rounds.items()
    }
    rows = [[kind, *(values[column] for column in COLUMNS)] for kind, values in medians.items()]
    columns = ["", "request bytes", "answer bytes", "server CPU us", "client CPU us"]
    table("Fetches of 1,000 idle partitions (medians)", columns, rows)
    whole = {"partitions": PARTITIONS, "results": {"medians": medians, "rounds": rounds}}
    save(plan.out_dir, "idle_fetches", whole)
    return whole
