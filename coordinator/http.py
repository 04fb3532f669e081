"""Health, readiness and metrics of a node over HTTP, where `http.listen` says so.

    /health    200 while the node's event loop answers, else 503: restart the process
    /ready     200 while clients are served, else 503: send them elsewhere
    /metrics   for Prometheus; `?group=NAME` (as often as wanted) or `?groups=all` adds figures of groups
    /clients   what clients told of themselves (JSON), after `?after=NUMBER`; see `http_telemetry`
    /record    (POST) the requests to a group from now on, until DELETE; see `http_recording`

Health is for every caller. Metrics and reports are, too, unless `http.token.file` or `http.ssl.client.auth`
is set, and one of these has to be set where other machines reach it (or `allow.plaintext`). Recordings are
for callers with the token of `http.recording.token.file`. Nothing can be changed. It has a thread and an
event loop of its own: a scrape costs the node's loop the counting only, in pieces.

Metrics (labels in braces; counters count from the start of the process):

    ringleader_build_info{version}
    ringleader_ready                                1 while clients are served
    ringleader_uptime_seconds
    ringleader_connections, ringleader_connections_limit
    ringleader_held_bytes, ..._limit                requests and answers in memory (queued.max.request.bytes)
    ringleader_unauthenticated_held_bytes, ..._limit    connections.unauthenticated.max.bytes
    ringleader_unauthenticated_closed_total         peers that had to go for it, or for a client's connection
    ringleader_authentications_total{result}        succeeded, failed: where clients have to (SASL)
    ringleader_throttles_total, ringleader_connections_throttled    by quotas
    ringleader_requests_total{api}                  as Kafka names them: Heartbeat, OffsetCommit, ...
    ringleader_request_duration_seconds{api}        histogram, until it is answered; what is answered in the
                                                    turn of the loop in which it came counts as 0
    ringleader_requests_parked{api}                 that wait for others, for records or for the disk
    ringleader_store_transactions_total
    ringleader_store_records_total
    ringleader_store_sync_seconds                   histogram: a transaction of the groups' store, synced
    ringleader_store_failures_total
    ringleader_shard_faults_total, ringleader_shard_reloads_total, ringleader_shards_serving
    ringleader_shard_failed_requests_total
    ringleader_groups{state}, ringleader_members, ringleader_committed_partitions
    ringleader_groups_metadata_bytes, ..._limit     of members of all groups (group.metadata.max.bytes)
    ringleader_rebalances_total{cause,outcome}
    ringleader_rebalance_seconds_total{phase}       join, leader, sync
    ringleader_journal_records_total, ringleader_journal_lost_total     of a node by itself
    ringleader_loop_lag_seconds                     histogram: how late the event loop is, twice a second
    ringleader_tasks                                of the event loop
    ringleader_group_members{group}, ringleader_group_generation{group}, ringleader_group_state{group,state},
    ringleader_group_committed_partitions{group}    on request, of GROUPS_MAX groups at most, by name
    ringleader_groups_left_out                      groups beyond that
    process_...                                     of prometheus_client: CPU, memory, files

One of several nodes has more: see `http_nodes`; what clients tell of themselves: see `http_telemetry`.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ringleader.coordinator.clock import monotonic_ms, wall_ms
from ringleader.coordinator.config import Address
from ringleader.coordinator.groups.shard import GroupFigures
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.http_access import HttpAccess
from ringleader.coordinator.http_nodes import NodesFigures, families
from ringleader.coordinator.http_recording import Recordings
from ringleader.coordinator.http_telemetry import TelemetryFigures, reports
from ringleader.coordinator.http_telemetry import families as of_clients
from ringleader.coordinator.journal.writer import JournalWriter
from ringleader.coordinator.logs import Log
from ringleader.coordinator.measures import Histogram
from ringleader.coordinator.runtime.groups import GroupRuntime
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.telemetry import Telemetry
from ringleader.host.http_server import (
    CERTIFIED,
    SAFE_HEADERS,
    HttpServer,
    bears,
    bound,
    is_addressed_to,
)

GROUPS_MAX = 1_000
"""Groups with figures of their own in one answer."""
CONNECTIONS_MAX = 64
ANSWER_TIMEOUT_S = 5.0
"""A loop that does not answer in this time is not healthy."""
LAG_INTERVAL_S = 0.5
T = TypeVar("T")
Answer = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(slots=True)
class Figures:
    """The figures of the node, counted on its loop."""

    ready: bool
    uptime_s: float
    connections: int = 0
    held_bytes: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    waits: dict[str, tuple[list[int], float]] = field(default_factory=dict)
    parked: Counter[str] = field(default_factory=Counter)
    transactions: int = 0
    records: int = 0
    syncs: tuple[list[int], float] = field(default_factory=lambda: Histogram().copy())
    failures: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Failed appends, faults, reloads, failed requests."""
    shards: int = 0
    states: Counter[str] = field(default_factory=Counter)
    members: int = 0
    offsets: int = 0
    rebalances: dict[tuple[str, str], int] = field(default_factory=dict)
    phases_ms: dict[str, int] = field(default_factory=dict)
    journal: tuple[int, int] | None = None
    lags: tuple[list[int], float] = field(default_factory=lambda: Histogram().copy())
    tasks: int = 0
    groups: list[GroupFigures] | None = None
    left_out: int = 0
    limits: tuple[int, int] = (0, 0)
    group_memory: tuple[int, int] = (0, 0)
    """The bytes that groups hold in memory, and their limit."""
    strangers: tuple[int, int, int] = (0, 0, 0)
    """The bytes that peers hold before they have authenticated, their limit, and how many were closed for
    it."""
    throttles: int = 0
    throttled: int = 0
    """Connections that are, now."""
    logins: tuple[int, int] | None = None
    """Authentications that succeeded, and that failed."""
    nodes: NodesFigures | None = None
    telemetry: TelemetryFigures | None = None


_GUARDED = {"/metrics": "metrics", "/clients": "reports of clients"}
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


class NodeSide:
    """The node's side, on its loop. `server` and `runtime` are set when they are there."""

    def __init__(self) -> None:
        self.ready = False
        self.server: Server | None = None
        self.runtime: GroupRuntime | None = None
        self.journal: JournalWriter | None = None
        self.nodes: Callable[[], NodesFigures] | None = None
        """Of one of several."""
        self.telemetry: Telemetry | None = None
        self.lags = Histogram()
        self._loop = asyncio.get_running_loop()
        self._started_s = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._look(self._started_s)

    def _look(self, due_s: float) -> None:
        now_s = self._loop.time()
        self.lags.add(round(max(now_s - due_s, 0) * 1000))
        next_s = now_s + LAG_INTERVAL_S
        self._timer = self._loop.call_at(next_s, self._look, next_s)

    def close(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def ask(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run it on the node's loop, from another one."""
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def is_ready(self) -> bool:
        """Whether clients are served."""
        return self.ready

    async def reports(self, after: int) -> bytes:
        """The reports of clients about themselves, see `http_telemetry.reports`."""
        assert self.telemetry is not None
        return reports(self.telemetry, after, monotonic_ms())

    async def figures(self, named: Iterable[str] | None) -> Figures:
        """Everything, with what other work there is in between. `named`: groups that are asked for; None:
        none."""
        found = Figures(self.ready, self._loop.time() - self._started_s, lags=self.lags.copy())
        found.tasks = len(asyncio.all_tasks())
        if self.server is not None:
            self._of_server(found, self.server)
        if self.nodes is not None:
            found.nodes = self.nodes()
        if self.journal is not None:
            found.journal = self.journal.written, self.journal.lost
        runtime = self.runtime
        if runtime is None:
            return found
        counters, store = runtime.counters, runtime.store_figures()
        found.failures = (
            counters.failed_appends,
            counters.faults,
            counters.reloads,
            counters.failed_requests,
        )
        found.transactions, found.records, found.syncs = store
        found.group_memory = runtime.memory.counted, runtime.memory_max_bytes
        found.rebalances = dict(runtime.rebalances)
        found.phases_ms = dict(runtime.phases_ms)
        wanted = None if named is None else set(named)
        groups: list[GroupFigures] = []
        for partition in range(runtime.partitions):
            shard = runtime.shards[partition]
            if not shard.refusal:
                found.shards += 1
                for group in shard.figures():
                    found.states[group.state] += 1
                    found.members += group.members
                    found.offsets += group.offsets
                    if wanted is not None and (not wanted or group.group_id in wanted):
                        groups.append(group)
            await asyncio.sleep(0)
        if wanted is not None:
            groups.sort()
            found.groups, found.left_out = groups[:GROUPS_MAX], max(len(groups) - GROUPS_MAX, 0)
        if self.telemetry is not None:
            shown = None if found.groups is None else {one.group_id for one in found.groups}
            found.telemetry = TelemetryFigures.of(self.telemetry, shown, monotonic_ms(), wall_ms())
        return found

    @staticmethod
    def _of_server(found: Figures, server: Server) -> None:
        found.connections, found.held_bytes = len(server.connections), server.held_bytes
        found.limits = server.limits.max_connections, server.limits.queued_max_request_bytes
        if server.sasl is not None:
            found.logins = server.sasl.succeeded, server.sasl.failed
        strangers, may_hold = server.strangers, server.limits.connections_unauthenticated_max_bytes
        found.strangers = strangers.held_bytes, may_hold, strangers.closed
        found.throttles = server.throttles
        for connection in server.connections:
            found.throttled += connection.is_muted
            if connection.parked is not None:
                found.parked[server.routes[connection.parked.api_key].name] += 1
        for key, route in server.routes.items():
            if not route.requests:
                continue
            found.requests[route.name] = route.requests
            counts, sum_ms = (server.waits or {}).get(key, Histogram()).copy()
            # A request that did not wait was answered at once; one that waits is no sample yet.
            counts[0] += max(route.requests - sum(counts) - found.parked[route.name], 0)
            found.waits[route.name] = counts, sum_ms


class HttpEndpoint:
    """The socket and its thread. `start` it before the node is ready, `stop` it last."""

    def __init__(self, listen: Address, access: HttpAccess, log: Log) -> None:
        self._listen = listen
        self._access = access
        self._log = log
        self._names: frozenset[str] | None = None
        """Host names that it may be asked for; None: any."""
        self.side = NodeSide()
        self.address = ""
        """HOST:PORT; set by `start`."""
        self._socket: socket.socket | None = None
        self._server: HttpServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen. Raises OSError."""
        self._socket = bound(self._listen.host, self._listen.port, CONNECTIONS_MAX)
        host, port = self._socket.getsockname()[:2]
        self.address = str(Address(host, port))
        names = {"localhost", socket.gethostname().lower(), self._listen.host.lower()}
        self._names = frozenset(names) if self._listen.is_loopback else None
        routes = [Route(path, self._guarded(answer)) for path, answer in self._routes().items()]
        recordings = Recordings(self.side, self._access.recording_token, self._log)
        routes.append(Route("/record", self._guarded(recordings.record), methods=["POST", "DELETE"]))
        self._server = HttpServer(
            Starlette(routes=routes),
            self._socket,
            connections_max=CONNECTIONS_MAX,
            headers={**SAFE_HEADERS, "Cache-Control": "no-store"},
            tls=self._access.tls,
            on_trouble=self._complain,
        )
        # A loop of asyncio's own, whatever the node runs on.
        serving = self._server.serve()
        self._thread = threading.Thread(target=_run, args=(serving,), name="ringleader-http", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Serve no more. May be called twice."""
        self.side.close()
        thread, self._thread = self._thread, None
        if thread is None or self._server is None or self._socket is None:
            return
        self._server.should_exit = True
        await asyncio.to_thread(thread.join)
        self._socket.close()

    # ---- on the endpoint's own loop ----

    def _routes(self) -> Mapping[str, Answer]:
        return {
            "/health": self._health,
            "/ready": self._ready,
            "/metrics": self._metrics,
            "/clients": self._clients,
        }

    def _guarded(self, answer: Answer) -> Answer:
        async def guarded(request: Request) -> Response:
            if self._names is not None and not is_addressed_to(request.headers, self._names):
                return PlainTextResponse("this is not a name of this machine: ask by address\n", 421)
            what = _GUARDED.get(request.scope["path"])
            if what is not None and not self._may(request):
                known = {"WWW-Authenticate": "Bearer"} if self._access.token is not None else {}
                return PlainTextResponse(f"{what} need a token or a client certificate\n", 401, headers=known)
            return await answer(request)

        return guarded

    def _may(self, request: Request) -> bool:
        token = self._access.token
        if not self._access.authenticates or CERTIFIED in request.scope:
            return True
        return token is not None and bears(request.headers, token)

    def _complain(self, reason: str) -> None:
        text = "certificates cannot be read; those from before stay"
        self._log.error(text, listener="http.listen", reason=reason)

    async def _from_node(self, question: Coroutine[Any, Any, T]) -> T:
        """The answer of the node's loop. Raises HTTPException (503) where it takes too long."""
        try:
            return await asyncio.wait_for(self.side.ask(question), ANSWER_TIMEOUT_S)
        except TimeoutError:
            raise HTTPException(503, "the event loop does not answer\n") from None

    async def _health(self, _request: Request) -> Response:
        await self._from_node(self.side.is_ready())
        return PlainTextResponse("alive\n")

    async def _ready(self, _request: Request) -> Response:
        try:
            ready = await self._from_node(self.side.is_ready())
        except HTTPException:
            ready = False
        return PlainTextResponse("ready\n" if ready else "not ready\n", 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        every = request.query_params.get("groups")
        if every not in (None, "all"):
            return PlainTextResponse("groups: only all, or group=NAME\n", 400)
        named = request.query_params.getlist("group")
        wanted = [] if every else named or None
        figures = await self._from_node(self.side.figures(wanted))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(figures))
        ProcessCollector(registry=registry)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _clients(self, request: Request) -> Response:
        after = request.query_params.get("after", "0")
        if not _NUMBER.fullmatch(after):
            return PlainTextResponse("after: the number of a report\n", 400)
        if self.side.telemetry is None:
            return PlainTextResponse("clients are not asked: set telemetry.enable\n", 404)
        found = await self._from_node(self.side.reports(int(after)))
        return Response(found, media_type="application/json")


def _run(serving: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(serving)


class _Families(Collector):
    """The metrics of one answer."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """All families."""
        found = self._figures
        yield InfoMetricFamily("ringleader_build", "Which release runs", {"version": version("ringleader")})
        yield GaugeMetricFamily("ringleader_ready", "1 while clients are served", int(found.ready))
        yield GaugeMetricFamily("ringleader_uptime_seconds", "Since the start", found.uptime_s)
        yield from self._of_server(found)
        yield from self._of_store(found)
        yield from self._of_groups(found)
        if found.journal is not None:
            written, lost = found.journal
            yield CounterMetricFamily(
                "ringleader_journal_records", "Records written to __ringleader_journal", written
            )
            yield CounterMetricFamily(
                "ringleader_journal_lost", "Records that could not be written in time", lost
            )
        lag = HistogramMetricFamily(
            "ringleader_loop_lag_seconds", "How late the event loop is, asked twice a second"
        )
        _add(lag, [], found.lags)
        yield lag
        yield GaugeMetricFamily("ringleader_tasks", "Tasks of the event loop", found.tasks)
        if found.nodes is not None:
            yield from families(found.nodes)
        if found.telemetry is not None:
            yield from of_clients(found.telemetry)
        if found.groups is not None:
            yield from self._of_named(found.groups, found.left_out)

    @staticmethod
    def _of_server(found: Figures) -> Iterator[Metric]:
        connections, held = found.limits
        yield GaugeMetricFamily("ringleader_connections", "Open connections", found.connections)
        yield GaugeMetricFamily("ringleader_connections_limit", "max.connections", connections)
        yield GaugeMetricFamily("ringleader_held_bytes", "Requests and answers in memory", found.held_bytes)
        yield GaugeMetricFamily("ringleader_held_bytes_limit", "queued.max.request.bytes", held)
        strangers_held, strangers_limit, closed = found.strangers
        text = "Memory of peers that have not authenticated"
        yield GaugeMetricFamily("ringleader_unauthenticated_held_bytes", text, strangers_held)
        text = "connections.unauthenticated.max.bytes"
        yield GaugeMetricFamily("ringleader_unauthenticated_held_bytes_limit", text, strangers_limit)
        text = "Peers that were closed before they had authenticated, to make room"
        yield CounterMetricFamily("ringleader_unauthenticated_closed", text, closed)
        text = "Answers with a throttle time, and connections that came too fast"
        yield CounterMetricFamily("ringleader_throttles", text, found.throttles)
        text = "Connections that are not read from now, for a quota"
        yield GaugeMetricFamily("ringleader_connections_throttled", text, found.throttled)
        if found.logins is not None:
            name, text = (
                "ringleader_authentications",
                "Clients that said who they are (SASL)",
            )
            logins = CounterMetricFamily(name, text, labels=["result"])
            for result, count in zip(("succeeded", "failed"), found.logins, strict=True):
                logins.add_metric([result], count)
            yield logins
        requests = CounterMetricFamily("ringleader_requests", "Requests that came", labels=["api"])
        durations = HistogramMetricFamily(
            "ringleader_request_duration_seconds", "From request to answer", labels=["api"]
        )
        parked = GaugeMetricFamily(
            "ringleader_requests_parked",
            "Requests that wait for others, for records or the disk",
            labels=["api"],
        )
        for api, count in found.requests.items():
            requests.add_metric([api], count)
            _add(durations, [api], found.waits[api])
            parked.add_metric([api], found.parked[api])
        yield from (requests, durations, parked)

    @staticmethod
    def _of_store(found: Figures) -> Iterator[Metric]:
        appends, faults, reloads, requests = found.failures
        yield CounterMetricFamily(
            "ringleader_store_transactions", "Transactions of the groups' store", found.transactions
        )
        yield CounterMetricFamily("ringleader_store_records", "Records that they had", found.records)
        syncs = HistogramMetricFamily(
            "ringleader_store_sync_seconds", "How long a transaction took, its sync included"
        )
        _add(syncs, [], found.syncs)
        yield syncs
        yield CounterMetricFamily("ringleader_store_failures", "Transactions that failed", appends)
        yield CounterMetricFamily("ringleader_shard_faults", "Exceptions in a group's machine", faults)
        yield CounterMetricFamily(
            "ringleader_shard_failed_requests",
            "Exceptions in a group's machine that changed nothing",
            requests,
        )
        yield CounterMetricFamily("ringleader_shard_reloads", "Shards that were loaded again", reloads)
        yield GaugeMetricFamily("ringleader_shards_serving", "Shards that serve here", found.shards)

    @staticmethod
    def _of_groups(found: Figures) -> Iterator[Metric]:
        groups = GaugeMetricFamily("ringleader_groups", "Groups, by state", labels=["state"])
        for state in GroupState:
            groups.add_metric([state.value], found.states[state.value])
        yield groups
        yield GaugeMetricFamily("ringleader_members", "Members of all groups", found.members)
        (held, most), name = found.group_memory, "ringleader_groups_metadata_bytes"
        yield GaugeMetricFamily(name, "Memory that groups take for their members", held)
        yield GaugeMetricFamily(f"{name}_limit", "group.metadata.max.bytes", most)
        text = "Partitions with a committed offset, of all groups"
        yield GaugeMetricFamily("ringleader_committed_partitions", text, found.offsets)
        rebalances = CounterMetricFamily(
            "ringleader_rebalances", "Completed rebalances", labels=["cause", "outcome"]
        )
        for labels, count in found.rebalances.items():
            rebalances.add_metric(labels, count)
        phases = CounterMetricFamily(
            "ringleader_rebalance_seconds", "How long the phases of rebalances took", labels=["phase"]
        )
        for phase, sum_ms in found.phases_ms.items():
            phases.add_metric([phase], sum_ms / 1000)
        yield from (rebalances, phases)

    @staticmethod
    def _of_named(groups: list[GroupFigures], left_out: int) -> Iterator[Metric]:
        members = GaugeMetricFamily("ringleader_group_members", "Members", labels=["group"])
        generation = GaugeMetricFamily("ringleader_group_generation", "Generation", labels=["group"])
        state = GaugeMetricFamily("ringleader_group_state", "1 for its state", labels=["group", "state"])
        offsets = GaugeMetricFamily(
            "ringleader_group_committed_partitions", "Partitions with a committed offset", labels=["group"]
        )
        for group in groups:
            members.add_metric([group.group_id], group.members)
            generation.add_metric([group.group_id], group.generation)
            state.add_metric([group.group_id, group.state], 1)
            offsets.add_metric([group.group_id], group.offsets)
        yield from (members, generation, state, offsets)
        yield GaugeMetricFamily(
            "ringleader_groups_left_out", f"Groups beyond the first {GROUPS_MAX}", left_out
        )


def _add(family: HistogramMetricFamily, labels: list[str], spread: tuple[list[int], float]) -> None:
    """One histogram, in seconds."""
    counts, sum_ms = spread
    buckets, so_far = [], 0
    for bound_ms, count in zip((*Histogram.BOUNDS_MS, None), counts, strict=True):
        so_far += count
        buckets.append(("+Inf" if bound_ms is None else str(bound_ms / 1000), so_far))
    family.add_metric(labels, buckets, sum_ms / 1000)
