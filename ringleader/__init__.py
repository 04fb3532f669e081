"""Ringleader: a Kafka group coordinator that runs by itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.clients.connection.security import (
        SaslOAuthBearer,
        SaslPlain,
        SaslScram,
        security_from_properties,
    )
    from ringleader.clients.consumer import GroupConsumer
    from ringleader.clients.fetch.model import Batch
    from ringleader.clients.group.membership import GroupMember, SyncGroupMember
    from ringleader.clients.group.subscription import consumer_member, partitions_of, sync_consumer_member
    from ringleader.clients.metrics import MemberMetrics, prometheus_lines
    from ringleader.clients.model import (
        Assigned,
        Lost,
        MemberInfo,
        MemberProtocol,
        OffsetAndMetadata,
        Revoked,
    )

_HOMES = {
    "Admin": "admin",
    "Assigned": "model",
    "Batch": "fetch.model",
    "GroupConsumer": "consumer",
    "GroupMember": "group.membership",
    "Lost": "model",
    "MemberInfo": "model",
    "MemberMetrics": "metrics",
    "MemberProtocol": "model",
    "OffsetAndMetadata": "model",
    "Revoked": "model",
    "SaslOAuthBearer": "connection.security",
    "SaslPlain": "connection.security",
    "SaslScram": "connection.security",
    "SyncGroupMember": "group.membership",
    "consumer_member": "group.subscription",
    "partitions_of": "group.subscription",
    "prometheus_lines": "metrics",
    "security_from_properties": "connection.security",
    "sync_consumer_member": "group.subscription",
}

__all__ = [
    "Admin",
    "Assigned",
    "Batch",
    "GroupConsumer",
    "GroupMember",
    "Lost",
    "MemberInfo",
    "MemberMetrics",
    "MemberProtocol",
    "OffsetAndMetadata",
    "Revoked",
    "SaslOAuthBearer",
    "SaslPlain",
    "SaslScram",
    "SyncGroupMember",
    "consumer_member",
    "partitions_of",
    "prometheus_lines",
    "security_from_properties",
    "sync_consumer_member",
]


def __getattr__(name: str) -> Any:
    """The public names load their rooms on first use: importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"ringleader.clients.{_HOMES[name]}"), name)
