"""SASL mechanisms: an exchange for each login, and the counts of logins."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ringleader.coordinator.clock import WallClock, wall_ms
from ringleader.coordinator.security import among_nodes
from ringleader.coordinator.security.exchange import Exchange
from ringleader.coordinator.security.listeners import Listener
from ringleader.coordinator.security.plain import PlainExchange
from ringleader.coordinator.security.scram import MECHANISMS, SHA_256, Credentials, ScramExchange
from ringleader.coordinator.server.slow_steps import SlowSteps

if TYPE_CHECKING:
    from ringleader.coordinator.security.jwks import Keys
    from ringleader.coordinator.security.users import Users

PLAIN: Final = "PLAIN"


class Sasl:
    """The mechanisms of a server's listeners, with what they check against, and counts of logins."""

    def __init__(
        self,
        users: Users,
        keys: Mapping[str, Keys] | None = None,
        wall_ms: WallClock = wall_ms,
        nodes: Credentials | None = None,
    ) -> None:
        """`keys`: of tokens, by listener; a listener without keys accepts no tokens. `nodes`: credentials of
        the other nodes, if there are any."""
        self.nodes = nodes
        self._users = users
        self._keys = keys or {}
        self.wall_ms = wall_ms
        self.slow_steps = SlowSteps()
        self.succeeded = 0
        """Authentications so far, with those again on the same connection."""
        self.failed = 0

    def exchange(self, mechanism: str, listener: Listener) -> Exchange:
        """A fresh one."""
        if mechanism == PLAIN:
            return PlainExchange(self._users)
        if mechanism == among_nodes.MECHANISM:
            assert self.nodes is not None
            return ScramExchange(SHA_256, self.nodes, secrets.token_urlsafe(24))
        if mechanism not in MECHANISMS:
            return self._keys[listener.name].exchange()
        return ScramExchange(MECHANISMS[mechanism], self._users, secrets.token_urlsafe(24))

    def close(self) -> None:
        """No more slow steps; does not wait for the last."""
        self.slow_steps.close()
