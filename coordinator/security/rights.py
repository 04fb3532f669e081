"""Which rights each API asks for, in one table: the dispatch of every node reads it, and so does the gate
before the brokers. An API that is not named here is not served.

As in Kafka a handler asks for each thing that a request names; here stands what it may ask. Of several rights
it depends on the request which ones are asked, and whether one of them is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from ringleader.coordinator.security.acls import Operation as Op
from ringleader.coordinator.security.acls import ResourceType
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message

Right = tuple[Op, ResourceType]
EVERYONE: Final = "everyone"
"""Served to clients that have not authenticated yet."""
AUTHENTICATED: Final = "authenticated"
"""Served to every client that is let in, whatever ACLs say."""
Rights = Literal["everyone", "authenticated"] | tuple[Right, ...]

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID

_RIGHTS: Mapping[type[Message], Rights] = {
    kafka.ApiVersionsRequest: EVERYONE,
    kafka.SaslHandshakeRequest: EVERYONE,
    kafka.SaslAuthenticateRequest: EVERYONE,
    # records
    kafka.ProduceRequest: ((Op.WRITE, TOPIC), (Op.WRITE, TRANSACTION)),
    kafka.FetchRequest: ((Op.READ, TOPIC), (Op.CLUSTER_ACTION, CLUSTER)),
    kafka.ListOffsetsRequest: ((Op.DESCRIBE, TOPIC),),
    kafka.OffsetForLeaderEpochRequest: ((Op.DESCRIBE, TOPIC), (Op.CLUSTER_ACTION, CLUSTER)),
    kafka.DeleteRecordsRequest: ((Op.DELETE, TOPIC),),
    # topics
    kafka.MetadataRequest: (
        (Op.DESCRIBE, TOPIC),
        (Op.CREATE, TOPIC),
        (Op.CREATE, CLUSTER),
        (Op.DESCRIBE, CLUSTER),
    ),
    kafka.CreateTopicsRequest: ((Op.CREATE, TOPIC), (Op.CREATE, CLUSTER), (Op.DESCRIBE_CONFIGS, TOPIC)),
    kafka.DeleteTopicsRequest: ((Op.DELETE, TOPIC), (Op.DELETE, CLUSTER), (Op.DESCRIBE, TOPIC)),
    kafka.CreatePartitionsRequest: ((Op.ALTER, TOPIC),),
    kafka.DescribeConfigsRequest: (
        (Op.DESCRIBE_CONFIGS, TOPIC),
        (Op.DESCRIBE_CONFIGS, GROUP),
        (Op.DESCRIBE_CONFIGS, CLUSTER),
    ),
    kafka.AlterConfigsRequest: (
        (Op.ALTER_CONFIGS, TOPIC),
        (Op.ALTER_CONFIGS, GROUP),
        (Op.ALTER_CONFIGS, CLUSTER),
    ),
    kafka.IncrementalAlterConfigsRequest: (
        (Op.ALTER_CONFIGS, TOPIC),
        (Op.ALTER_CONFIGS, GROUP),
        (Op.ALTER_CONFIGS, CLUSTER),
    ),
    # groups
    kafka.FindCoordinatorRequest: ((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TRANSACTION)),
    kafka.JoinGroupRequest: ((Op.READ, GROUP),),
    kafka.SyncGroupRequest: ((Op.READ, GROUP),),
    kafka.HeartbeatRequest: ((Op.READ, GROUP),),
    kafka.LeaveGroupRequest: ((Op.READ, GROUP),),
    kafka.ConsumerGroupHeartbeatRequest: ((Op.READ, GROUP), (Op.DESCRIBE, TOPIC)),
    kafka.ConsumerGroupDescribeRequest: ((Op.DESCRIBE, GROUP),),
    kafka.OffsetCommitRequest: ((Op.READ, GROUP), (Op.READ, TOPIC)),
    kafka.OffsetFetchRequest: ((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
    kafka.OffsetDeleteRequest: ((Op.DELETE, GROUP), (Op.READ, TOPIC)),
    kafka.ListGroupsRequest: ((Op.DESCRIBE, GROUP), (Op.DESCRIBE, CLUSTER)),
    kafka.DescribeGroupsRequest: ((Op.DESCRIBE, GROUP),),
    kafka.DeleteGroupsRequest: ((Op.DELETE, GROUP),),
    # transactions
    kafka.InitProducerIdRequest: (
        (Op.WRITE, TRANSACTION),
        (Op.WRITE, TOPIC),
        (Op.IDEMPOTENT_WRITE, CLUSTER),
    ),
    kafka.AddPartitionsToTxnRequest: ((Op.WRITE, TRANSACTION), (Op.WRITE, TOPIC)),
    kafka.AddOffsetsToTxnRequest: ((Op.WRITE, TRANSACTION), (Op.READ, GROUP)),
    kafka.TxnOffsetCommitRequest: ((Op.WRITE, TRANSACTION), (Op.READ, GROUP), (Op.READ, TOPIC)),
    kafka.EndTxnRequest: ((Op.WRITE, TRANSACTION),),
    # the cluster
    kafka.DescribeClusterRequest: ((Op.DESCRIBE, CLUSTER),),
    kafka.DescribeAclsRequest: ((Op.DESCRIBE, CLUSTER),),
    kafka.CreateAclsRequest: ((Op.ALTER, CLUSTER),),
    kafka.DeleteAclsRequest: ((Op.ALTER, CLUSTER),),
    kafka.DescribeClientQuotasRequest: ((Op.DESCRIBE_CONFIGS, CLUSTER),),
    kafka.AlterClientQuotasRequest: ((Op.ALTER_CONFIGS, CLUSTER),),
    kafka.DescribeUserScramCredentialsRequest: ((Op.DESCRIBE, CLUSTER),),
    kafka.AlterUserScramCredentialsRequest: ((Op.ALTER, CLUSTER),),
    # telemetry: the right to read a group decides whether what is told of its members is kept
    kafka.GetTelemetrySubscriptionsRequest: AUTHENTICATED,
    kafka.PushTelemetryRequest: ((Op.READ, GROUP),),
}

RIGHTS: Final[Mapping[int, Rights]] = {message.API_KEY: rights for message, rights in _RIGHTS.items()}
"""By API key."""


class UnnamedApiError(LookupError):
    """An API that the table does not name: a fault of ours, found when a node starts or asks a broker."""


def rights_of(api_key: int) -> Rights:
    """The rights that an API needs. Raises `UnnamedApiError`."""
    found = RIGHTS.get(api_key)
    if not found:
        raise UnnamedApiError(f"API {api_key} has no rights in the table, so it is not served")
    return found


def operations_on(api_key: int, kind: ResourceType) -> Iterator[Op]:
    """The operations of an API on resources of a kind. Raises `UnnamedApiError`."""
    rights = rights_of(api_key)
    if not isinstance(rights, str):
        yield from (operation for operation, one in rights if one == kind)
