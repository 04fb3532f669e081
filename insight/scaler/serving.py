"""A gRPC server that KEDA asks, as its external scaler, how many members a group would use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import grpc

from ringleader.host.addresses import address_text
from ringleader.host.clock import wall_ms
from ringleader.insight.advice.demand import Demand, demand
from ringleader.insight.history import History, HistoryError
from ringleader.insight.scaler.wire import SERVICE, message
from ringleader.insight.web.desk import BusyError, Desk
from ringleader.insight.web.sources import Source

logger = logging.getLogger("ringleader.insight.scaler")

RECORDS_PER_MEMBER = 10
"""Where a trigger does not say `lagThreshold`: the same as KEDA's own scaler for Kafka."""
STALE_MS = 120_000
"""Lag that was measured longer ago is no answer: KEDA's `fallback` counts then."""
REQUESTS_MAX = 64
REQUEST_MAX_BYTES = 64 * 1024
LOOK_S = 5.0
"""How often a stream is told whether its group is active."""
STOP_S = 1.0
KNOWN = frozenset({"group", "topics", "lagThreshold", "activationLagThreshold"})
OF_KEDA = frozenset(
    {"scalerAddress", "caCert", "tlsCertFile", "tlsClientCert", "tlsClientKey", "enableTLS", "unsafeSsl"}
)


class ScalerError(Exception):
    """The server cannot be as it was asked for."""


class Trigger(NamedTuple):
    """A trigger's metadata."""

    group: str
    topics: frozenset[str]
    records_per_member: int
    active_above: int


def trigger_of(metadata: Mapping[str, str]) -> Trigger:
    """Raises ValueError: one sentence for the operator."""
    group = metadata.get("group", "")
    if not group:
        raise ValueError("the trigger has no `group`")
    topics = frozenset(filter(None, (one.strip() for one in metadata.get("topics", "").split(","))))
    return Trigger(
        group,
        topics,
        _count(metadata, "lagThreshold", RECORDS_PER_MEMBER, 1),
        _count(metadata, "activationLagThreshold", 0, 0),
    )


def _count(metadata: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = metadata.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
        raise ValueError(f"`{name}` is a whole number from {least} on, not {text[:40]!r}")
    return int(text)


def credentials(certificate: Path | None, client_authority: Path | None) -> grpc.ServerCredentials | None:
    """TLS with the key and certificates in a PEM file; with `client_authority` for clients alone that show a
    certificate of one of these. None without a certificate. Raises ScalerError."""
    if certificate is None:
        if client_authority is not None:
            raise ScalerError("certificates are shown over TLS: give --certificate, too")
        return None
    try:
        pem = certificate.read_bytes()
        authority = None if client_authority is None else client_authority.read_bytes()
    except OSError as error:
        raise ScalerError(f"{error.filename}: {error.strerror}") from None
    if b"PRIVATE KEY-----" not in pem or b"BEGIN CERTIFICATE-----" not in pem:
        raise ScalerError(f"{certificate} has to hold a private key and its certificates, as PEM")
    return grpc.ssl_server_credentials([(pem, pem)], authority, client_authority is not None)


async def serve(
    history_path: Path,
    host: str,
    port: int,
    *,
    tls: grpc.ServerCredentials | None = None,
    started: Callable[[str, int], None] | None = None,
) -> None:
    """Answer KEDA from the history that a watcher writes, until cancelled. `started` gets host and port.
    Raises ScalerError for an address that cannot be listened on."""
    desk = Desk(Source(path=history_path))
    server = grpc.aio.server(
        maximum_concurrent_rpcs=REQUESTS_MAX,
        options=[("grpc.max_receive_message_length", REQUEST_MAX_BYTES), ("grpc.so_reuseport", 0)],
    )
    server.add_generic_rpc_handlers((_handlers(_Scaler(desk)),))
    address = address_text(host, port)
    try:
        try:
            plain = tls is None
            bound = server.add_insecure_port(address) if plain else server.add_secure_port(address, tls)
        except (RuntimeError, ValueError):
            raise ScalerError(f"{address} cannot be listened on") from None
        await server.start()
        if started is not None:
            started(host, bound)
        await asyncio.Event().wait()
    finally:
        await server.stop(STOP_S)
        await desk.close()


class _Scaler:
    """The four requests."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ignored: set[str] = set()

    async def is_active(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        """Whether there is work at all: KEDA goes from no replica to one and back by it."""
        wanted = await self._trigger(request, context)
        return message("IsActiveResponse")(result=await self._active(wanted, context))

    async def stream_is_active(self, request: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[Any]:
        """The same for a trigger of type `external-push`: at once, and when it changes."""
        wanted = await self._trigger(request, context)
        before: bool | None = None
        while True:
            now = await self._active(wanted, context)
            if now is not before:
                before = now
                yield message("IsActiveResponse")(result=now)
            await asyncio.sleep(LOOK_S)

    async def metric_spec(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        """One metric, members, of which each replica is to have one."""
        wanted = await self._trigger(request, context)
        spec = message("MetricSpec")(metricName=_metric(wanted), targetSize=1)
        return message("GetMetricSpecResponse")(metricSpecs=[spec])

    async def metrics(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        """Its value."""
        wanted = await self._trigger(request.scaledObjectRef, context)
        found = await self._demand(wanted, context)
        value = message("MetricValue")(metricName=_metric(wanted), metricValue=found.members)
        return message("GetMetricsResponse")(metricValues=[value])

    # ---- inside ----

    async def _trigger(self, reference: Any, context: grpc.aio.ServicerContext) -> Trigger:
        metadata = dict(reference.scalerMetadata)
        try:
            wanted = trigger_of(metadata)
        except ValueError as error:
            where = f"{reference.namespace}/{reference.name}"
            logger.warning("the trigger of %s is refused: %s", where, error)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{error}.")
        for name in sorted(metadata.keys() - KNOWN - OF_KEDA - self._ignored)[:REQUESTS_MAX]:
            if len(self._ignored) < REQUESTS_MAX:
                self._ignored.add(name)
                logger.warning("a trigger's %r means nothing here; known: %s", name, ", ".join(sorted(KNOWN)))
        return wanted

    async def _active(self, wanted: Trigger, context: grpc.aio.ServicerContext) -> bool:
        found = await self._demand(wanted, context)
        return found.lag > wanted.active_above or (found.members > 0 and found.lag == 0)

    async def _demand(self, wanted: Trigger, context: grpc.aio.ServicerContext) -> Demand:
        now_ms = wall_ms()

        def look(history: History) -> Demand | str:
            if (away := history.away) is not None:
                return f"the cluster does not answer its watcher: {away.why}"
            rows = history.lag(wanted.group, since_ms=now_ms - STALE_MS)
            if rows:
                return demand(rows, wanted.records_per_member, wanted.topics)
            state = history.group(wanted.group)
            if state is None or state.state == "Dead":
                # It cannot commit before it has a member: KEDA's own scaler asks for one then, too.
                return Demand(1, 0, None)
            return f"no lag of {wanted.group} was measured in the last {STALE_MS // 1_000} s"

        try:
            found = await self._desk.ask(look)
        except (HistoryError, BusyError) as error:
            await _unavailable(context, str(error) or "more is asked than is answered")
        if isinstance(found, str):
            await _unavailable(context, found)
        return found


async def _unavailable(context: Any, why: str) -> NoReturn:
    await context.abort(grpc.StatusCode.UNAVAILABLE, f"{why.rstrip('.')}.")
    raise AssertionError("abort raises")


def _metric(wanted: Trigger) -> str:
    return f"ringleader-members-{wanted.group}"


def _handlers(scaler: _Scaler) -> Any:
    def handler(kind: Any, function: Any, request_name: str) -> Any:
        return kind(function, message(request_name).FromString, lambda answer: answer.SerializeToString())

    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "IsActive": handler(unary, scaler.is_active, "ScaledObjectRef"),
            "StreamIsActive": handler(stream, scaler.stream_is_active, "ScaledObjectRef"),
            "GetMetricSpec": handler(unary, scaler.metric_spec, "ScaledObjectRef"),
            "GetMetrics": handler(unary, scaler.metrics, "GetMetricsRequest"),
        },
    )
