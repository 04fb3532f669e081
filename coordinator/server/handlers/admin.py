"""The administrator's requests that are neither about topics' existence nor about groups.

DescribeConfigs (32) v1-4: v3 types and documentation. AlterConfigs (33) v0-2: replaces all keys.
IncrementalAlterConfigs (44) v0-1. DeleteRecords (21) v0-2. DescribeCluster (60) v0-1: v1 endpoint type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.handlers.checks import BROKER, GROUP, TOPIC
from ringleader.coordinator.server.handlers.configs import (
    broker_entries,
    configs_in_words,
    once_each,
    shown,
    topic_entries,
)
from ringleader.coordinator.server.handlers.group_configs import alter_group, group_entries
from ringleader.coordinator.server.handlers.topics import CLUSTER_OPERATIONS
from ringleader.coordinator.server.services import Handler, LocalServices, set_error
from ringleader.coordinator.topics.catalog import refuse_internal
from ringleader.coordinator.topics.configs import KEYS, ConfigType
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError

BROKERS, CONTROLLERS = 1, 2
"""Endpoint types."""

DESCRIBED_RESOURCES = 10
"""How many resources, with all their configurations, are described in one go."""


class ConfigOperation(IntEnum):
    """The operations of IncrementalAlterConfigs on a key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def register(services: LocalServices) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Admin(services)
    return {
        21: family.delete_records,
        32: family.describe_configs,
        33: family.alter_configs,
        44: family.alter_some_configs,
        60: family.describe_cluster,
    }


class _Admin:
    def __init__(self, services: LocalServices) -> None:
        self._services = services
        self._topics = services.topics

    # ---- DescribeConfigs ----

    def describe_configs(self, call: Call, request: kafka.DescribeConfigsRequest) -> Slices:
        """Topics, and the node's own settings. A resource that is given twice counts once."""
        results = []
        for resource in once_each(request.resources):
            result = self._describe(call, resource, request)
            call.takes(HELD_ENTRY_BYTES * sum(2 + len(entry.synonyms) for entry in result.configs))
            results.append(result)
            if not len(results) % DESCRIBED_RESOURCES:
                yield
        return kafka.DescribeConfigsResponse(results=results)

    def _describe(
        self,
        call: Call,
        resource: kafka.DescribeConfigsRequestDescribeConfigsResource,
        request: kafka.DescribeConfigsRequest,
    ) -> kafka.DescribeConfigsResponseDescribeConfigsResult:
        result = kafka.DescribeConfigsResponseDescribeConfigsResult(
            error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            kind, name = resource.resource_type, resource.resource_name
            checks.check_configs(self._services, call, Operation.DESCRIBE_CONFIGS, kind, name)
            entries = self._entries(kind, name)
        except KafkaError as error:
            set_error(result, error)
            return result
        result.configs = shown(entries, resource, request)
        return result

    def _entries(
        self, resource_type: int, name: str
    ) -> list[kafka.DescribeConfigsResponseDescribeConfigsResourceResult]:
        if resource_type == TOPIC:
            info = self._topics.describe(name)
            if info is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic_entries(info.configs, self._services)
        if resource_type == BROKER:
            if name not in ("", str(self._services.node_id)):
                raise _refused(f"This is broker {self._services.node_id}, not {name}.")
            return [] if name == "" else broker_entries(self._services)
        if resource_type == GROUP:
            return group_entries(self._services, name)
        raise _refused(f"Resource type {resource_type} has no configurations here.")

    # ---- AlterConfigs, IncrementalAlterConfigs ----

    def alter_configs(self, call: Call, request: kafka.AlterConfigsRequest) -> None:
        """A key that a topic's request does not name goes back to its default."""
        result = kafka.AlterConfigsResponseAlterConfigsResourceResponse
        response = kafka.AlterConfigsResponse
        self._services.see_through(call, self._alter(call, request, replaced, result, response))

    def alter_some_configs(self, call: Call, request: kafka.IncrementalAlterConfigsRequest) -> None:
        """Sets, unsets, and adds to or takes from lists; a key that is not named stays."""
        result = kafka.IncrementalAlterConfigsResponseAlterConfigsResourceResponse
        response = kafka.IncrementalAlterConfigsResponse
        self._services.see_through(call, self._alter(call, request, changed, result, response))

    async def _alter(
        self,
        call: Call,
        request: kafka.AlterConfigsRequest | kafka.IncrementalAlterConfigsRequest,
        change: Callable[[dict[str, str], Sequence[Any]], Mapping[str, str | None]],
        result_class: Callable[[int, None, int, str], Any],
        response_class: Callable[..., Any],
    ) -> None:
        counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

        async def alter(resource: Any) -> Any:
            kind, name, configs = resource.resource_type, resource.resource_name, resource.configs
            result = result_class(ErrorCode.NONE, None, kind, name)
            try:
                if counts[kind, name] > 1:
                    raise _refused("The resource is in the request more than once.")
                checks.check_configs(self._services, call, Operation.ALTER_CONFIGS, kind, name)
                if kind not in (TOPIC, GROUP):
                    raise _refused("Only topics' and groups' configurations can be changed at run time.")
                if len({config.name for config in configs}) < len(configs):
                    raise _refused("A config is in the request more than once.")
                if kind == GROUP:
                    only = request.validate_only
                    await alter_group(self._services, call, name, configs, change, validate_only=only)
                    return result
                refuse_internal(name, "change the configuration of")
                await self._topics.configure(
                    name,
                    lambda present: change(present, _known(configs)),
                    validate_only=request.validate_only,
                )
                info = self._topics.describe(name)
                if info is not None and not request.validate_only:
                    detail = ", ".join(configs_in_words(info.configs)) or "all as by default"
                    self._services.changed(call, "topic configuration changed", name, detail)
            except KafkaError as error:
                set_error(result, error)
            return result

        call.answer(
            response_class(responses=await self._services.run_queue.gather(map(alter, request.resources)))
        )

    # ---- DeleteRecords ----

    def delete_records(self, call: Call, request: kafka.DeleteRecordsRequest) -> None:
        """Offset -1 stands for all records there are."""
        self._services.see_through(call, self._delete_records(call, request))

    async def _delete_records(self, call: Call, request: kafka.DeleteRecordsRequest) -> None:
        topics = []
        for topic in request.topics:
            may = self._services.may(call, Operation.DELETE, ResourceType.TOPIC, topic.name)
            results = await self._services.run_queue.gather(
                self._truncate(topic.name, partition, may) for partition in topic.partitions
            )
            done = [one for one in results if not one.error_code]
            if done:
                detail = ", ".join(f"{one.partition_index} before {one.low_watermark}" for one in done)
                self._services.changed(call, "records deleted", topic.name, detail)
            topics.append(kafka.DeleteRecordsResponseDeleteRecordsTopicResult(topic.name, results))
        call.answer(kafka.DeleteRecordsResponse(topics=topics))

    async def _truncate(
        self, topic: str, partition: kafka.DeleteRecordsRequestDeleteRecordsPartition, may: bool
    ) -> kafka.DeleteRecordsResponseDeleteRecordsPartitionResult:
        result = kafka.DeleteRecordsResponseDeleteRecordsPartitionResult(partition.partition_index, -1)
        try:
            if not may:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refuse_internal(topic, "delete records of")
            result.low_watermark = await self._topics.truncate(
                topic, partition.partition_index, partition.offset
            )
        except KafkaError as error:
            result.error_code = error.code
        return result

    # ---- DescribeCluster ----

    def describe_cluster(
        self, call: Call, request: kafka.DescribeClusterRequest
    ) -> kafka.DescribeClusterResponse:
        """One node, which is the controller too."""
        services = self._services
        response = kafka.DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=services.cluster_id,
            controller_id=services.node_id,
        )
        if request.endpoint_type != BROKERS:
            controllers = request.endpoint_type == CONTROLLERS
            response.error_code = (
                ErrorCode.MISMATCHED_ENDPOINT_TYPE if controllers else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            )
            response.error_message = "This is a broker's endpoint."
            return response
        response.brokers = [
            kafka.DescribeClusterResponseDescribeClusterBroker(*node)
            for node in services.directory_for(call).nodes()
        ]
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = services.cluster_operations(call, CLUSTER_OPERATIONS)
        return response


def _refused(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


def _known(configs: Sequence[Any]) -> Sequence[Any]:
    """Those of a topic. Raises KafkaError if there is no such one."""
    for config in configs:
        if config.name not in KEYS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {config.name}")
    return configs


def replaced(
    present: dict[str, str], configs: Sequence[kafka.AlterConfigsRequestAlterableConfig]
) -> Mapping[str, str | None]:
    """The configurations as AlterConfigs names them."""
    return {config.name: config.value for config in configs}


def changed(
    present: dict[str, str], changes: Sequence[kafka.IncrementalAlterConfigsRequestAlterableConfig]
) -> Mapping[str, str | None]:
    """The configurations after these changes. Raises KafkaError."""
    after: dict[str, str | None] = dict(present)
    for change in changes:
        is_list = change.name in KEYS and KEYS[change.name].type == ConfigType.LIST
        if change.config_operation == ConfigOperation.SET:
            after[change.name] = change.value
        elif change.config_operation == ConfigOperation.DELETE:
            after.pop(change.name, None)
        elif change.config_operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            raise _refused(f"There is no config operation {change.config_operation}.")
        elif not is_list or change.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{change.name} is no list.")
        else:
            # Appending to a default makes it explicit, as in Kafka.
            entries = [entry for entry in (present.get(change.name) or "").split(",") if entry]
            if change.name == "cleanup.policy" and change.name not in present:
                entries = ["delete"]
            given = [entry.strip() for entry in change.value.split(",")]
            if change.config_operation == ConfigOperation.APPEND:
                entries += [entry for entry in given if entry not in entries]
            else:
                entries = [entry for entry in entries if entry not in given]
            after[change.name] = ",".join(entries)
    return after
