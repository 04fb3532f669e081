"""The common part of every kind of node: its listeners, work in its task group, and failures."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ringleader.coordinator.clock import monotonic_ms
from ringleader.coordinator.config import OAUTHBEARER, Settings
from ringleader.coordinator.logs import Failures, Log, get_log
from ringleader.coordinator.security.acls import AllowAll, Authority, Authorizer
from ringleader.coordinator.security.listeners import Address, Listener
from ringleader.coordinator.security.quotas import ClientQuotas, Windows
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.session import Session
from ringleader.coordinator.start_warnings import warn
from ringleader.coordinator.telemetry import Telemetry

if TYPE_CHECKING:
    from ringleader.coordinator.http import HttpEndpoint
    from ringleader.coordinator.journal.writer import JournalWriter
    from ringleader.coordinator.runtime.groups import GroupRuntime
    from ringleader.coordinator.security.directory import Security
    from ringleader.coordinator.security.jwks import Keys
    from ringleader.coordinator.server.server import Server


CERTIFICATES_LOOK_S = 3.0
"""Interval at which the files of certificates are checked for changes."""


class StartError(OSError):
    """The node cannot start; the text is one sentence. An OSError, so that who expects what a socket or a
    file raises need not know it."""


def authorizer_of(settings: Settings) -> Authority:
    """With no ACL yet."""
    if settings.authorizer == "none":
        return AllowAll()
    return Authorizer(
        filter(None, map(str.strip, settings.super_users.split(";"))),
        allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found,
    )


def quotas_of(settings: Settings) -> ClientQuotas:
    """With no quota yet."""
    return ClientQuotas(
        Windows(settings.quota_window_num, settings.quota_window_size_seconds * 1000),
        Windows(settings.controller_quota_window_num, settings.controller_quota_window_size_seconds * 1000),
    )


def telemetry_of(settings: Settings) -> Telemetry | None:
    """Nothing has been reported yet."""
    if not settings.telemetry_enable:
        return None
    return Telemetry(settings.telemetry_interval_ms, settings.telemetry_max_bytes)


class ServingNode(ABC):
    """One process that serves Kafka clients. `async with` it, or `start` and `stop`."""

    refusals: tuple[type[Exception], ...]
    """The errors of a start that are sentences for an operator: they become `StartError`."""

    def __init__(self, settings: Settings, log: Log | None) -> None:
        self.settings = settings
        self.host = ""
        """Where it listens, on the first of its listeners; set by `start`."""
        self.port = 0
        self.listeners: tuple[Listener, ...] = ()
        """As bound; set by `start`."""
        self.log = log or get_log()
        self.failure: Exception | None = None
        """The reason why it can serve no more."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = Failures(self.log, monotonic_ms)
        self._failed = asyncio.Event()
        self._started = False
        self._keys: list[Keys] = []
        self.security: Security | None = None
        """Users, ACLs and quotas; set at the start, or before."""
        self.telemetry = telemetry_of(settings)
        """The values that clients tell of themselves; None: they are not asked to."""
        self.http: HttpEndpoint | None = None
        """Health and metrics, with `http.listen`."""

    async def start(self) -> None:
        """Begin to serve. Raises `StartError`, or OSError for an address that cannot be listened on; then
        nothing is left running."""
        self._start_http()
        self._started = True
        try:
            await self._start()
            self._set_ready(True)
        except self.refusals as error:
            await self.stop()
            raise StartError(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    @abstractmethod
    async def _start(self) -> None: ...

    async def stop(self) -> None:
        """Stop accepting, finish what is on its way, answer everything that waits with a retriable error, and
        let go of everything. May be called twice, and without `start`."""
        if self._started:
            self._started = False
            self._set_ready(False)
            await self._stop()
            if self.http is not None:
                await self.http.stop()
            self.log.info("stopped")

    @abstractmethod
    async def _stop(self) -> None: ...

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of its first listener."""
        return str(Address(self.host, self.port))

    async def wait_failed(self) -> None:
        """Returns when the node can serve no more (`failure` says why): the process should end, so that the
        next one begins with what the store really holds."""
        await self._failed.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # ---- health and metrics ----

    def _start_http(self) -> None:
        """First of all, so that a long start can be seen. Raises `StartError`."""
        listen = self.settings.http_listen
        if listen is None:
            return
        from ringleader.coordinator.http import HttpEndpoint
        from ringleader.coordinator.http_access import access_of

        try:
            access = access_of(self.settings)
        except ValueError as error:
            raise StartError(str(error)) from None
        endpoint = HttpEndpoint(listen, access, self.log)
        try:
            endpoint.start()
        except OSError as error:
            endpoint.side.close()
            raise StartError(f"http.listen {listen}: {error.strerror or error}") from error
        self.http = endpoint
        self.log.info("health and metrics", address=endpoint.address, tls=access.tls is not None)

    def _measure(self, server: Server, runtime: GroupRuntime, journal: JournalWriter | None = None) -> None:
        """The sources of metrics, before the server listens."""
        if self.http is not None:
            side = self.http.side
            side.server, side.runtime, side.journal = server, runtime, journal
            side.telemetry = self.telemetry
            server.measure()

    def _set_ready(self, ready: bool) -> None:
        if self.http is not None:
            self.http.side.ready = ready

    def _stop_serving(self, error: Exception) -> None:
        self._set_ready(False)
        self.failure = self.failure or error
        self._failed.set()

    def _listening(self, server: Server, **more: object) -> None:
        """One log line for each listener; from now on their certificates are those in the files."""
        self.listeners = server.listeners
        if server.tls:
            self._spawn(None, self._watch_certificates(server))
        for one in server.listeners:
            self.log.info(
                "listening",
                address=str(one.address),
                advertised=str(one.advertised),
                listener=one.name,
                protocol=str(one.security_protocol),
                **more,
            )
        assert self.security is not None
        warn(self.settings, server, self.security, self.log)

    # ---- certificates ----

    def reread_certificates(self) -> None:
        """New TLS handshakes get what the files hold now; open connections stay. Returns at once."""
        server: Server | None = getattr(self, "server", None)
        if server is not None and self._started:
            self._spawn(None, asyncio.to_thread(server.reload_certificates, unchanged=True))

    async def _watch_certificates(self, server: Server) -> None:
        while True:
            await asyncio.sleep(CERTIFICATES_LOOK_S)
            await asyncio.to_thread(server.reload_certificates)

    # ---- keys of tokens ----

    async def _token_keys(self) -> dict[str, Keys]:
        """The validators of tokens, by listener that accepts them. Raises `StartError`."""
        found: dict[str, Keys] = {}
        known: dict[tuple[object, ...], Keys] = {}
        for listener in self.settings.served():
            settings = self.settings.for_listener(listener)
            url = settings.sasl_oauthbearer_jwks_endpoint_url
            takes = listener.security_protocol.sasl and OAUTHBEARER in settings.mechanisms(listener)
            if url is None or not takes:
                continue
            try:
                from ringleader.coordinator.security.jwks import Keys, KeysError
                from ringleader.coordinator.security.oauth import TokenRules
            except ImportError:
                raise StartError("OAUTHBEARER needs joserfc: pip install 'ringleader[oauth]'") from None
            rules = TokenRules(
                issuer=settings.sasl_oauthbearer_expected_issuer,
                audiences=settings.sasl_oauthbearer_expected_audience,
                sub_claim_name=settings.sasl_oauthbearer_sub_claim_name,
                clock_skew_seconds=settings.sasl_oauthbearer_clock_skew_seconds,
            )
            refresh_ms = settings.sasl_oauthbearer_jwks_endpoint_refresh_ms
            trusted = settings.sasl_oauthbearer_jwks_truststore_location
            source = (url, rules, refresh_ms, trusted)
            if source not in known:
                known[source] = keys = Keys(url, rules, refresh_ms, self.log, trusted)
                self._keys.append(keys)
                try:
                    await keys.start()
                except KeysError as error:
                    raise StartError(str(error)) from None
            found[listener.name] = known[source]
        return found

    async def _stop_keys(self) -> None:
        for keys in self._keys:
            await keys.stop()

    # ---- work that handlers start ----

    def _spawn(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        if call is not None and isinstance(call.connection, Session):
            account = call.connection.connection.account
            if account is not None:
                coroutine = account.timed(coroutine)
        task = asyncio.get_running_loop().create_task(self._contained(call, coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A task that is cancelled before its first step never comes to what it was to await.
        task.add_done_callback(lambda _: coroutine.close())
        if call is not None:
            call.on_closed = task.cancel

    async def _contained(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception:
            self._failures.tell("work failed", api_key=None if call is None else call.api_key)
            if call is not None:
                call.close("failed")

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
