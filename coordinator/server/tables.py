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
    telemetry,
    topics,
    transactions,
    users,
    versions,
)
from ringleader.coordinator.server.services import Handler, LocalServices, Services


def of_every_node(services: Services) -> dict[int, Handler]:
    """The handlers of the APIs that a node serves itself, also where topics live elsewhere."""
    families = [groups, offsets, security, users, acls, quotas, telemetry]
    if "consumer" in services.settings.group_coordinator_rebalance_protocols:
        families.append(consumer_groups)
    table: dict[int, Handler] = {}
    for family in families:
        table.update(family.register(services))
    return table


def build(services: LocalServices) -> dict[int, Handler]:
    """All handlers, by API key. ApiVersions answers with exactly these."""
    table = of_every_node(services)
    for own in (topics, data, transactions, admin):
        table.update(own.register(services))
    table.update(versions.register(services, tuple(table), features=versions.TRANSACTION_VERSION))
    return table
