"""The requests of a command to a cluster; an error ends the command with one sentence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ringleader.cli.common import WRONG_INPUT, fail

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.blocking.cluster import BlockingCluster
    from ringleader.clients.connection.security import ClientSecurity
    from ringleader.clients.descriptions import GroupDescription

# A person waits: shorter than what a service would grant.
TIMEOUT_MS = 5_000

T = TypeVar("T")
NOWHERE = logging.NullHandler()
"""For log lines of the clients, where one sentence is enough."""


def ask(bootstrap: str, question: Callable[[Admin], Awaitable[T]], command_config: Path | None = None) -> T:
    """Connect and ask, all in `TIMEOUT_MS`. An error ends the command with one sentence."""
    from ringleader.clients.admin import Admin
    from ringleader.clients.errors import ClientError

    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    _, security = security_of(command_config)
    servers_of(bootstrap)

    async def run() -> T:
        async with Admin(bootstrap, timeout_ms=TIMEOUT_MS, tls=security.tls, sasl=security.sasl) as admin:
            return await question(admin.within(TIMEOUT_MS / 1000))

    try:
        return asyncio.run(run())
    except (ClientError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")


async def group_of(admin: Admin, group: str) -> GroupDescription | None:
    """The group; None if there is none. Ends the command for one of a type that cannot be described here."""
    from ringleader.clients.offsets import reset_plan

    try:
        return await reset_plan.group_of(admin, group)
    except reset_plan.ResetError as error:
        fail(str(error))


@contextmanager
def connect(bootstrap: str, command_config: Path | None = None) -> Iterator[BlockingCluster]:
    """Blocking connections, for commands that write. Ends the command when the options cannot be used."""
    from ringleader.clients.blocking.cluster import BlockingCluster
    from ringleader.clients.blocking.endpoint import Endpoint

    properties, _ = security_of(command_config)
    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    cluster = BlockingCluster(
        Endpoint(tuple(servers_of(bootstrap)), "ringleader-produce", security=tuple(properties.items()))
    )
    try:
        yield cluster
    finally:
        cluster.close()


def servers_of(bootstrap: str, option: str = "--bootstrap-server") -> list[tuple[str, int]]:
    """The addresses that the option has. Ends the command when they are none."""
    from ringleader.clients.connection.cluster import parse_bootstrap

    try:
        return parse_bootstrap(bootstrap)
    except ValueError as error:
        fail(f"{option}: {error}.", WRONG_INPUT)


def security_of(file: Path | None, option: str = "--command-config") -> tuple[dict[str, str], ClientSecurity]:
    """The properties of the file that the option has, and what they mean for TLS and SASL. Ends the command
    when it cannot be used."""
    from ringleader.clients.connection.security import ClientSecurity, security_from_properties
    from ringleader.clients.connection.security.stores import properties_of

    if file is None:
        return {}, ClientSecurity()
    try:
        properties = properties_of(file)
    except ValueError as error:
        fail(f"{option}: {error}.", WRONG_INPUT)
    try:
        return properties, security_from_properties(properties)
    except ValueError as error:
        fail(f"{option}: {file}: {error}.", WRONG_INPUT)
