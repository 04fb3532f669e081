"""The handlers of a node by itself."""

from __future__ import annotations

from ringleader.coordinator.server.handlers import (
    acls,
    admin,
    consumer_groups,
    data,
    groups,
    offsets,
    quotas,
    security,
    topics,
    transactions,
    users,
    versions,
)
from ringleader.coordinator.server.services import Handler, LocalServices

OF_EVERY_NODE = (groups, offsets, security, users, acls, quotas)
"""Families that a node serves itself, also where topics live elsewhere."""


def build(services: LocalServices) -> dict[int, Handler]:
    """All handlers, by API key. ApiVersions answers with exactly these."""
    table: dict[int, Handler] = {}
    for family in OF_EVERY_NODE:
        table.update(family.register(services))
    for own in (topics, data, transactions, admin):
        table.update(own.register(services))
    if "consumer" in services.settings.group_coordinator_rebalance_protocols:
        table.update(consumer_groups.register(services))
    table.update(versions.register(services, tuple(table)))
    return table
