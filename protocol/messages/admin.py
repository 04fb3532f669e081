"""Configuration and the cluster."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@struct
class DescribeConfigsRequestDescribeConfigsResource:
    """One of `DescribeConfigsRequest.resources`."""

    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    configuration_keys: list[str] | None = array("string", nullable=(1, LAST), factory=list)


@message(key=32, versions=(1, 4), flexible=4, kind="request")
class DescribeConfigsRequest(Message):
    """Ask for settings of topics, nodes or groups.

    `configuration_keys` null asks for all settings of the resource. Resource types: 2 topic, 4 node, 8
    logger of the node, 32 group.

    DescribeConfigs, API 32, v1-4; KIP-133, KIP-569.
    """

    resources: list[DescribeConfigsRequestDescribeConfigsResource] = array(
        DescribeConfigsRequestDescribeConfigsResource, factory=list
    )
    include_synonyms: bool = field("bool", default=False)
    include_documentation: bool = field("bool", versions=(3, LAST), default=False)


@struct
class DescribeConfigsResponseDescribeConfigsSynonym:
    """One of `DescribeConfigsResponseDescribeConfigsResourceResult.synonyms`."""

    name: str = field("string", default="")
    value: str | None = field("string", nullable=(1, LAST), default="")
    source: int = field("int8", default=0)


@struct
class DescribeConfigsResponseDescribeConfigsResourceResult:
    """One of `DescribeConfigsResponseDescribeConfigsResult.configs`."""

    name: str = field("string", default="")
    value: str | None = field("string", nullable=(1, LAST), default="")
    read_only: bool = field("bool", default=False)
    config_source: int = field("int8", default=-1, ignorable=True)
    is_sensitive: bool = field("bool", default=False)
    synonyms: list[DescribeConfigsResponseDescribeConfigsSynonym] = array(
        DescribeConfigsResponseDescribeConfigsSynonym, factory=list, ignorable=True
    )
    config_type: int = field("int8", versions=(3, LAST), default=0, ignorable=True)
    documentation: str | None = field(
        "string", versions=(3, LAST), nullable=(1, LAST), default="", ignorable=True
    )


@struct
class DescribeConfigsResponseDescribeConfigsResult:
    """One of `DescribeConfigsResponse.results`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(1, LAST), default="")
    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    configs: list[DescribeConfigsResponseDescribeConfigsResourceResult] = array(
        DescribeConfigsResponseDescribeConfigsResourceResult, factory=list
    )


@message(key=32, versions=(1, 4), flexible=4, kind="response")
class DescribeConfigsResponse(Message):
    """The settings of each resource, with where each value comes from.

    Values of settings that are secrets are null.

    DescribeConfigs, API 32, v1-4; KIP-133, KIP-569.
    """

    throttle_time_ms: int = field("int32", default=0)
    results: list[DescribeConfigsResponseDescribeConfigsResult] = array(
        DescribeConfigsResponseDescribeConfigsResult, factory=list
    )


@struct
class IncrementalAlterConfigsRequestAlterableConfig:
    """One of `IncrementalAlterConfigsRequestAlterConfigsResource.configs`."""

    name: str = field("string", default="")
    config_operation: int = field("int8", default=0)
    value: str | None = field("string", nullable=(0, LAST), default="")


@struct
class IncrementalAlterConfigsRequestAlterConfigsResource:
    """One of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    configs: list[IncrementalAlterConfigsRequestAlterableConfig] = array(
        IncrementalAlterConfigsRequestAlterableConfig, factory=list
    )


@message(key=44, versions=(0, 1), flexible=1, kind="request")
class IncrementalAlterConfigsRequest(Message):
    """Change single settings of resources.

    Operations: 0 set, 1 delete, 2 append to a list, 3 take out of a list.

    IncrementalAlterConfigs, API 44, v0-1; KIP-339.
    """

    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource] = array(
        IncrementalAlterConfigsRequestAlterConfigsResource, factory=list
    )
    validate_only: bool = field("bool", default=False)


@struct
class IncrementalAlterConfigsResponseAlterConfigsResourceResponse:
    """One of `IncrementalAlterConfigsResponse.responses`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")


@message(key=44, versions=(0, 1), flexible=1, kind="response")
class IncrementalAlterConfigsResponse(Message):
    """The result for each resource (IncrementalAlterConfigs, API 44, v0-1; KIP-339)."""

    throttle_time_ms: int = field("int32", default=0)
    responses: list[IncrementalAlterConfigsResponseAlterConfigsResourceResponse] = array(
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse, factory=list
    )


@struct
class AlterConfigsRequestAlterableConfig:
    """One of `AlterConfigsRequestAlterConfigsResource.configs`."""

    name: str = field("string", default="")
    value: str | None = field("string", nullable=(0, LAST), default="")


@struct
class AlterConfigsRequestAlterConfigsResource:
    """One of `AlterConfigsRequest.resources`."""

    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")
    configs: list[AlterConfigsRequestAlterableConfig] = array(
        AlterConfigsRequestAlterableConfig, factory=list
    )


@message(key=33, versions=(0, 2), flexible=2, kind="request")
class AlterConfigsRequest(Message):
    """Replace all settings of resources; what is not named falls back to its default.

    AlterConfigs, API 33, v0-2; KIP-133.
    """

    resources: list[AlterConfigsRequestAlterConfigsResource] = array(
        AlterConfigsRequestAlterConfigsResource, factory=list
    )
    validate_only: bool = field("bool", default=False)


@struct
class AlterConfigsResponseAlterConfigsResourceResponse:
    """One of `AlterConfigsResponse.responses`."""

    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    resource_type: int = field("int8", default=0)
    resource_name: str = field("string", default="")


@message(key=33, versions=(0, 2), flexible=2, kind="response")
class AlterConfigsResponse(Message):
    """The result for each resource (AlterConfigs, API 33, v0-2; KIP-133)."""

    throttle_time_ms: int = field("int32", default=0)
    responses: list[AlterConfigsResponseAlterConfigsResourceResponse] = array(
        AlterConfigsResponseAlterConfigsResourceResponse, factory=list
    )


@message(key=60, versions=(0, 1), flexible=0, kind="request")
class DescribeClusterRequest(Message):
    """Ask for the nodes, the controller and the id of the cluster.

    DescribeCluster, API 60, v0-1; KIP-700.
    """

    include_cluster_authorized_operations: bool = field("bool", default=False)
    endpoint_type: int = field("int8", versions=(1, LAST), default=1)


@struct
class DescribeClusterResponseDescribeClusterBroker:
    """One of `DescribeClusterResponse.brokers`."""

    broker_id: int = field("int32", default=0)
    host: str = field("string", default="")
    port: int = field("int32", default=0)
    rack: str | None = field("string", nullable=(0, LAST), default=None)


@message(key=60, versions=(0, 1), flexible=0, kind="response")
class DescribeClusterResponse(Message):
    """The nodes of the cluster, as this listener advertises them.

    `cluster_authorized_operations` is a set of bits; -2147483648 means that it was not asked for.

    DescribeCluster, API 60, v0-1; KIP-700.
    """

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)
    endpoint_type: int = field("int8", versions=(1, LAST), default=1)
    cluster_id: str = field("string", default="")
    controller_id: int = field("int32", default=-1)
    brokers: list[DescribeClusterResponseDescribeClusterBroker] = array(
        DescribeClusterResponseDescribeClusterBroker, factory=list
    )
    cluster_authorized_operations: int = field("int32", default=-2147483648)
