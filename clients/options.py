"""The options of members and consumers, with their types: `mypy --strict` refuses a misspelt one, and so does
the call.

Their meaning and defaults stand with the settings: `MemberSettings`, `SubscriptionSettings`,
`ConsumerSettings`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from ringleader.clients.checks import check, check_options, wire_text
from ringleader.clients.connection.cluster import Cluster, parse_bootstrap
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.errors import MembershipError
from ringleader.clients.group.settings import GroupProtocol
from ringleader.clients.model import (
    Assigned,
    Deserializer,
    Isolation,
    Lost,
    OffsetReset,
    Revoked,
    TopicPartition,
    TopicPattern,
)
from ringleader.clients.produce.model import (
    Acks,
    CompressionType,
    Partitioner,
    PartitionerName,
    Serializer,
)

OnPartitions = Callable[[list[TopicPartition]], Any]


class ConnectionOptions(TypedDict, total=False):
    """How a client reaches the cluster."""

    client_id: str
    """Its name in the brokers' logs and quotas."""
    tls: ssl.SSLContext | None
    sasl: Sasl | None
    request_timeout_ms: int


class CoordinatorOptions(TypedDict, total=False):
    """Where groups are coordinated, if not at the brokers that have the records."""

    coordinator_bootstrap: str | Sequence[str] | None
    """Group requests (FindCoordinator, JoinGroup, OffsetCommit, ...) go to the coordinators that are found
    from here, all others to the brokers that are found from `bootstrap`. None: it is one cluster."""
    coordinator_tls: ssl.SSLContext | None
    """In place of `tls`, for the coordinators."""
    coordinator_sasl: Sasl | None
    """In place of `sasl`, for the coordinators."""


class MembershipOptions(CoordinatorOptions, ConnectionOptions, total=False):
    """The options of every kind of member: fields of `MemberSettings`."""

    group_instance_id: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    quiesce_timeout_ms: int | None
    auto_commit_timeout_ms: int
    enable_metrics_push: bool


class MemberOptions(MembershipOptions, total=False):
    """Options of `GroupMember`, `SyncGroupMember`, `consumer_member` and `sync_consumer_member`. Callbacks of
    a `SyncGroupMember` are plain functions; those of a `GroupMember` may be coroutine functions."""

    on_assigned: Callable[[Assigned], Any] | None
    on_revoked: Callable[[Revoked], Any] | None
    on_lost: Callable[[Lost], Any] | None
    on_failed: Callable[[MembershipError], Any] | None
    max_poll_interval_ms: int | None
    auto_commit_interval_ms: int | None


class _TopicOptions(TypedDict, total=False):
    group_protocol: GroupProtocol
    group_remote_assignor: str | None
    pattern: TopicPattern | None
    assignors: Sequence[str]
    weight: float
    assignor_user_data: bytes
    imbalance: float
    lag_check_ms: int | None


class SubscriptionOptions(_TopicOptions, total=False):
    """How a member subscribes to topics, and how it leads: fields of `SubscriptionSettings`."""

    rack: str | None
    metadata_max_age_ms: int
    auto_offset_reset: OffsetReset


class ConsumerMemberOptions(SubscriptionOptions, MemberOptions, total=False):
    """Options of `consumer_member` and `sync_consumer_member`."""


class FetchOptions(TypedDict, total=False):
    """How a consumer reads: fields of `ConsumerSettings`."""

    auto_offset_reset: OffsetReset
    max_poll_records: int
    isolation_level: Isolation
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    buffer_max_bytes: int
    check_crcs: bool
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    client_rack: str | None
    metadata_max_age_ms: int


class PartitionConsumerOptions(FetchOptions, ConnectionOptions, total=False):
    """Options of `PartitionConsumer`."""


class ConsumerOptions(FetchOptions, _TopicOptions, MembershipOptions, total=False):
    """Options of `GroupConsumer`: fields of `ConsumerSettings`, callbacks, and those of its member."""

    on_assigned: OnPartitions | None
    on_revoked: OnPartitions | None
    on_lost: OnPartitions | None
    auto_commit: bool
    auto_commit_interval_ms: int
    max_poll_interval_ms: int


class ProducerOptions(ConnectionOptions, total=False):
    """Options of `Producer`: fields of `ProducerSettings`."""

    acks: Acks
    enable_idempotence: bool
    compression_type: CompressionType
    partitioner: PartitionerName | Partitioner
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    max_block_ms: int
    delivery_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    transactional_id: str | None
    transaction_timeout_ms: int
    key_serializer: Serializer | None
    value_serializer: Serializer | None


def check_call(
    call: str,
    bootstrap: str | Sequence[str],
    group_id: str,
    options: Mapping[str, object],
    known: type,
) -> None:
    """Check the arguments of a call that makes a member. `call` is its name, `known` the TypedDict of its
    options. Raises TypeError for an option that there is not, ValueError for values that cannot work."""
    check("group_id", group_id, str, call)
    wire_text("group_id", group_id)
    check_client(call, bootstrap, options, known)


def check_client(
    call: str, bootstrap: str | Sequence[str], options: Mapping[str, object], known: type
) -> None:
    """Check the arguments of a call that makes a client; see `check_call`."""
    check_options(call, options, known)
    wire_text("client_id", options.get("client_id", ""))
    check_bootstraps(call, bootstrap, options)


def check_bootstraps(call: str, bootstrap: str | Sequence[str], options: Mapping[str, Any]) -> None:
    """Raises ValueError for addresses that are none, and names which of the two they are."""
    check("bootstrap", bootstrap, str | Sequence[str], call)
    beside: str | Sequence[str] | None = options.get("coordinator_bootstrap")
    given = {"bootstrap": bootstrap}
    if beside is not None:
        given["coordinator_bootstrap"] = beside
    for name, servers in given.items():
        try:
            parse_bootstrap(servers)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    alone = [name for name in ("coordinator_tls", "coordinator_sasl") if name in options]
    if beside is None and alone:
        raise ValueError(f"{call}: {' and '.join(alone)} without coordinator_bootstrap: leave it out")


def cluster_of(bootstrap: str | Sequence[str], options: Mapping[str, Any], **settings: Any) -> Cluster:
    """The cluster that these options mean, and its coordinators next to it where they have an address of
    their own. `settings`: what both are made with."""
    tls, sasl, beside = options.get("tls"), options.get("sasl"), options.get("coordinator_bootstrap")
    groups = None
    if beside is not None:
        groups = Cluster(
            beside,
            name="coordinator_bootstrap",
            tls=options.get("coordinator_tls", tls),
            sasl=options.get("coordinator_sasl", sasl),
            **settings,
        )
    return Cluster(bootstrap, tls=tls, sasl=sasl, groups=groups, **settings)
