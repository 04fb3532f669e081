"""What a node knows of who may what."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.coordinator.security.store import SecurityStore


@dataclass(slots=True)
class Security:
    """Users, ACLs and quotas of a node, as of now. Changes go through the store."""

    store: SecurityStore
    authorizer: None = None
    """None: everybody may everything."""
