"""One table says what each API asks for; what it does not name is served by nobody."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader.coordinator import node as node_module
from ringleader.coordinator.node import Node
from ringleader.coordinator.relay import authorization
from ringleader.coordinator.security.acls import AllowAll, Authorizer, Operation, ResourceType
from ringleader.coordinator.security.principal import ANONYMOUS
from ringleader.coordinator.security.rights import (
    AUTHENTICATED,
    EVERYONE,
    RIGHTS,
    Right,
    UnnamedApiError,
    rights_of,
)
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.routes import build_routes
from ringleader.coordinator.server.services import Services
from ringleader.coordinator.server.tables import build
from ringleader.protocol import messages as kafka
from ringleader.protocol.frames import request_class
from tests.coordinator.relay.test_checks import relayed
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, prepare
from tests.support.requests_of_all import MALLORY, PRINCIPALS, all_requests
from tests.support.served import connected, serving

UNNAMED = next(key for key in range(100) if request_class(key) is not None and key not in RIGHTS)
"""An API that there are messages of, and that nobody serves."""


def answered(call: Call, request: Any) -> Any:
    """A handler that asks nobody."""
    raise AssertionError("it was served")


async def test_every_api_that_a_daemon_or_a_node_advertises_is_named(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _), Node(guarded(tmp_path / "daemon")) as daemon:
        for host, port in ((node.host, node.port), (daemon.host, daemon.port)):
            async with connected(host, port) as client:
                answer = await client.call(kafka.ApiVersionsRequest("test", "1"), 3)
            advertised = {one.api_key for one in answer.api_keys}
            assert advertised <= RIGHTS.keys()
        assert advertised == RIGHTS.keys(), "the daemon serves all that are named"
    assert {message.API_KEY for message in authorization.FORWARDED} < RIGHTS.keys()
    assert {key for key, rights in RIGHTS.items() if rights == EVERYONE} == {17, 18, 36}
    assert {key for key, rights in RIGHTS.items() if rights == AUTHENTICATED} == {71}


async def test_a_handler_of_an_api_that_is_not_named_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "build", lambda services: {**build(services), UNNAMED: answered})
    daemon = Node(guarded(tmp_path))
    with pytest.raises(UnnamedApiError, match=f"API {UNNAMED} has no rights in the table"):
        await daemon.start()
    with pytest.raises(UnnamedApiError):
        async with serving(handlers=lambda services: {UNNAMED: answered}):
            pass


async def test_an_entry_that_is_taken_away_or_empty_serves_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving() as served:
        handlers = {key: route.handler for key, route in served.server.routes.items()}
        build_routes(handlers, served.server.limits)
        for key in handlers:
            for rights in (None, ()):
                with monkeypatch.context() as changed:
                    changed.setitem(RIGHTS, key, rights)
                    with pytest.raises(UnnamedApiError):
                        build_routes(handlers, served.server.limits)


async def test_what_the_gate_does_not_name_is_not_passed_on(tmp_path: Path) -> None:
    """Not even where everybody may do everything."""
    async with relayed(tmp_path) as (node, _):
        for authorizer in (node.services.authorizer, AllowAll()):
            services = dataclasses.replace(node.services, authorizer=authorizer)
            call: Any = None
            for message in (kafka.AlterUserScramCredentialsRequest(), kafka.ApiVersionsRequest()):
                with pytest.raises(authorization.UncheckedError):
                    await authorization.request_for(services, call, message)


def test_services_without_anybody_to_ask_cannot_be_made() -> None:
    fields = {field.name: field for field in dataclasses.fields(Services)}
    assert fields["authorizer"].default is dataclasses.MISSING
    assert fields["authorizer"].default_factory is dataclasses.MISSING
    assert not Authorizer.is_open


async def test_services_without_users_still_ask_the_authorizer(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _):
        services = dataclasses.replace(node.services, authorizer=Authorizer(()), security=None)
        connection: Any = SimpleNamespace(principal=ANONYMOUS)
        call = Call(connection, kafka.FetchRequest.API_KEY, 12, 1, "client", "/127.0.0.1", None)
        assert not services.may(call, Operation.READ, ResourceType.TOPIC, "orders")
        assert not services.may_some(call, Operation.READ, ResourceType.TOPIC)
        assert services.operations(call, ResourceType.TOPIC, "orders", everything=-1) == 0


RightsByApi = dict[int, set[Right]]


def recorded(monkeypatch: pytest.MonkeyPatch, key: list[int]) -> RightsByApi:
    """The rights that handlers check while the last of `key` is served."""
    checked: RightsByApi = defaultdict(set)
    may, may_some = Services.may, Services.may_some

    def noted(self: Services, call: Any, operation: Any, kind: Any, *rest: Any, **more: Any) -> bool:
        if not self.is_open:  # not the broker's behind a node
            checked[key[-1]].add((operation, kind))
        return may(self, call, operation, kind, *rest, **more)

    def noted_some(self: Services, call: Any, operation: Any, kind: Any) -> bool:
        if not self.is_open:  # not the broker's behind a node
            checked[key[-1]].add((operation, kind))
        return may_some(self, call, operation, kind)

    monkeypatch.setattr(Services, "may", noted)
    monkeypatch.setattr(Services, "may_some", noted_some)
    return checked


@pytest.mark.parametrize("kind", ["daemon", "node"])
async def test_handlers_ask_what_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """And nothing else; a handler that asks nobody is found by principals who may nothing."""
    keys = [-1]
    checked = recorded(monkeypatch, keys)
    everybody = (MALLORY, *PRINCIPALS, ADMINISTRATOR)
    async with relayed(tmp_path) as (node, _), Node(guarded(tmp_path / "daemon")) as daemon:
        async with connected(daemon.host, daemon.port) as administrator:
            await prepare(administrator)  # as -1
        served: Any = node if kind == "node" else daemon
        for principal in everybody:
            async with connected_as(served, principal) as client:
                for one in all_requests():
                    if one.request.API_KEY in served.server.routes:
                        keys.append(one.request.API_KEY)
                        await client.call(one.request, one.version)
            if principal == MALLORY:
                mallory = set(checked) - {-1}
        expected = {key for key in served.server.routes if not isinstance(rights_of(key), str)}
    assert mallory == expected
    assert [key for key in expected if not checked[key] <= set(rights_of(key))] == []
