"""The users, ACLs and quotas that a node knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ringleader.coordinator.security.acls import AllowAll, Authority, Authorizer, from_key
from ringleader.coordinator.security.quotas import ClientQuotas
from ringleader.coordinator.security.store import Changed, SecurityStore
from ringleader.coordinator.security.users import Users


class Security:
    """The current users, ACLs and quotas of a node. Changes go through the store."""

    def __init__(
        self,
        store: SecurityStore,
        authorizer: Authority,
        quotas: ClientQuotas | None = None,
    ) -> None:
        self.store = store
        self.users = Users(store)
        self.authorizer = authorizer
        self.quotas = ClientQuotas() if quotas is None else quotas
        self.on_groups: Callable[[Changed], None] | None = None
        """Called with what is kept of groups, and with what of it changes."""

    async def start(self) -> None:
        """Read what is kept, or begin to keep. Raises what the store's `start` raises, and DamagedError."""
        await self.store.start()
        self.users.load()
        try:
            self.quotas.apply(self.store.entries("quotas"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.store.damaged("a quota") from None
        self.store.observe("quotas", self.quotas.apply)
        if self.on_groups is not None:
            try:
                self.on_groups(self.store.entries("groups"))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise self.store.damaged("the configuration of a group") from None
            self.store.observe("groups", self.on_groups)
        authorizer = self.authorizer
        if isinstance(authorizer, AllowAll):
            return
        try:
            acls = [from_key(key) for key in self.store.entries("acls")]
        except (ValueError, KeyError, TypeError):
            raise self.store.damaged("an ACL") from None
        authorizer.apply(acls)
        self.store.observe("acls", partial(_follow_acls, authorizer))


def _follow_acls(authorizer: Authorizer, changed: Changed) -> None:
    deleted = {key for key, value in changed.items() if value is None}
    authorizer.apply(map(from_key, changed.keys() - deleted), map(from_key, deleted))
