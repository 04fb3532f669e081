"""What a node knows of who may what."""

from __future__ import annotations

from ringleader.coordinator.security.store import SecurityStore
from ringleader.coordinator.security.users import Users


class Security:
    """Users, ACLs and quotas of a node, as of now. Changes go through the store."""

    def __init__(self, store: SecurityStore) -> None:
        self.store = store
        self.users = Users(store)
        self.authorizer: None = None
        """None: everybody may everything."""

    def open(self) -> None:
        """Read the file, or make it. Raises OSError (DamagedError among them)."""
        self.store.open()
        self.users.load()
