"""Runs what a command asks of a cluster, and turns what goes wrong into one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ringleader.cli.common import WRONG_INPUT, fail

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin

# A person waits: shorter than what a service would grant.
TIMEOUT_MS = 5_000

T = TypeVar("T")


def ask(bootstrap: str, question: Callable[[Admin], Awaitable[T]]) -> T:
    """Connect, ask, disconnect. Ends the command with one sentence when that does not work."""
    from ringleader.clients.admin import Admin
    from ringleader.clients.errors import ClientError

    async def asked() -> T:
        try:
            admin = Admin(bootstrap, timeout_ms=TIMEOUT_MS)
        except ValueError as error:
            fail(f"--bootstrap-server: {error}.", WRONG_INPUT)
        async with admin:
            return await question(admin)

    try:
        return asyncio.run(asked())
    except (ClientError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")
