"""Authorization of requests that need more than one operation on one resource.

As Kafka's broker decides it. Shared by a node that keeps topics itself and one that forwards requests.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    FetchRequest,
    InitProducerIdRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
    ProduceRequest,
)
from ringleader.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from ringleader.coordinator.server.services import Services

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Types of resources that have configurations."""

_ATTRIBUTES_LOW = 22
_TRANSACTIONAL = 16

METADATA_BY_ID_VERSION = 12
"""The first version of Metadata that asks for topics by id."""

CREATION_REFUSED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
TOPIC_REFUSED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
_CONFIGS = {
    TOPIC: (ResourceType.TOPIC, TOPIC_REFUSED),
    GROUP: (ResourceType.GROUP, (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")),
}
CLUSTER_REFUSED = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


# ---- topics ----


def by_id_too_early(version: int, topics: Sequence[MetadataRequestTopic]) -> list[MetadataResponseTopic]:
    """A refusal of each topic when one of them is asked for by id, or without a name, in a version of
    Metadata that has the fields and not the meaning; else nothing."""
    if version >= METADATA_BY_ID_VERSION:
        return []
    if all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in topics):
        return []
    return [MetadataResponseTopic(ErrorCode.INVALID_REQUEST, topic.name or "") for topic in topics]


def may_create(services: Services, call: Call, topic: str) -> bool:
    """A principal that may create in the cluster may create every topic."""
    if topic in services.withheld:
        return False
    may = services.may
    return may(call, Operation.CREATE, ResourceType.CLUSTER, quietly=True) or may(
        call, Operation.CREATE, ResourceType.TOPIC, topic
    )


def may_delete(
    services: Services, call: Call, operation: Operation, topic: str, *, quietly: bool = False
) -> bool:
    """For DeleteTopics, DELETE or DESCRIBE: a principal that may delete in the cluster may delete every
    topic, and describe it."""
    if topic in services.withheld:
        return False
    may = services.may
    return may(call, Operation.DELETE, ResourceType.CLUSTER, quietly=True) or may(
        call, operation, ResourceType.TOPIC, topic, quietly=quietly
    )


def not_to_create(services: Services, call: Call, missing: Collection[str]) -> set[str]:
    """Missing topics that a request for their metadata does not create, as the caller may not."""
    hidden = {
        name
        for name in missing
        if not services.may(call, Operation.DESCRIBE, ResourceType.TOPIC, name, quietly=True)
    }
    seen = set(missing) - hidden
    if not seen or services.may(call, Operation.CREATE, ResourceType.CLUSTER, quietly=True):
        return hidden
    return hidden | {
        name for name in seen if not services.may(call, Operation.CREATE, ResourceType.TOPIC, name)
    }


def check_configs(
    services: Services, call: Call, operation: Operation, resource_type: int, name: str
) -> None:
    """Raises KafkaError if the caller may not do that with the configurations of the resource."""
    if resource_type in _CONFIGS:
        kind, refused = _CONFIGS[resource_type]
        if not services.may(call, operation, kind, name):
            raise KafkaError(*refused)
    of_cluster = resource_type in (BROKER, BROKER_LOGGER, CLIENT_METRICS)
    if of_cluster and not services.may(call, operation, ResourceType.CLUSTER):
        raise KafkaError(*CLUSTER_REFUSED)


# ---- the cluster ----


def check_cluster(services: Services, call: Call, operation: Operation) -> None:
    """Raises KafkaError, in Kafka's words, if the caller may not do that with users, ACLs and the like."""
    if not services.may(call, operation, ResourceType.CLUSTER):
        text = f"The request needs {operation.name} permission."
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text)


# ---- records ----


def may_read(services: Services, call: Call, request: FetchRequest, topic: str) -> bool:
    """A caller that claims to be a broker that follows needs CLUSTER_ACTION instead."""
    if request.follower >= 0 and topic not in services.withheld:
        return services.may(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    return services.may(call, Operation.READ, ResourceType.TOPIC, topic)


def may_ask_epochs(services: Services, call: Call, topic: str) -> bool:
    """For OffsetForLeaderEpoch: brokers that follow ask, too, and CLUSTER_ACTION is enough for them."""
    if topic in services.withheld:
        return False
    may = services.may
    return may(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quietly=True) or may(
        call, Operation.DESCRIBE, ResourceType.TOPIC, topic
    )


def may_be_transactional(services: Services, call: Call, request: ProduceRequest) -> bool:
    """Records of a transaction need its id, and WRITE on it. As in Kafka the first batch of each partition
    decides."""
    found = request.transactional_id
    if found is not None and _is_withheld(services, found):
        return False
    if found is not None and services.is_open:
        return True
    if not any(
        _is_transactional(partition.records or b"")
        for topic in request.topic_data
        for partition in topic.partition_data
    ):
        return True
    return found is not None and services.may(call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, found)


def _is_transactional(batch: bytes) -> bool:
    return len(batch) > _ATTRIBUTES_LOW and bool(batch[_ATTRIBUTES_LOW] & _TRANSACTIONAL)


# ---- transactions ----


def producer_refusal(services: Services, call: Call, request: InitProducerIdRequest) -> int:
    """The error for a caller that gets no producer id; 0: it gets one. A principal that may write to any
    topic may do so idempotently (KIP-679)."""
    if request.transactional_id is not None:
        return transaction_refusal(services, call, request.transactional_id)
    if services.may_some(call, Operation.WRITE, ResourceType.TOPIC):
        return ErrorCode.NONE
    if services.may(call, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER):
        return ErrorCode.NONE
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def transaction_refusal(
    services: Services, call: Call, transactional_id: str, group_id: str | None = None
) -> int:
    """The error for a caller that may not write in that transaction, with the offsets of that group; 0: it
    may."""
    if _is_withheld(services, transactional_id) or not services.may(
        call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if group_id is not None and not services.may(call, Operation.READ, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _is_withheld(services: Services, transactional_id: str) -> bool:
    return bool(services.withheld_ids) and transactional_id.startswith(services.withheld_ids)
