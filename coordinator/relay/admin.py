"""Topics and their configurations: changes go to the cluster's controller, questions to any broker.

CreateTopics (19) v2-7, DeleteTopics (20) v1-6, CreatePartitions (37) v0-3, DescribeConfigs (32) v1-4,
AlterConfigs (33) v0-2, IncrementalAlterConfigs (44) v0-1. Brokers and their settings belong to the cluster's
operator: nodes show and take the configurations of topics, and show their own settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ringleader.clients.errors import ClientError, ConnectionLostError
from ringleader.coordinator.relay.authorization import UncheckedError, request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call, Message
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.handlers.admin import ConfigOperation, changed, replaced
from ringleader.coordinator.server.handlers.checks import BROKER, GROUP, TOPIC
from ringleader.coordinator.server.handlers.configs import (
    broker_entries,
    configs_in_words,
    once_each,
    shown,
)
from ringleader.coordinator.server.handlers.group_configs import Change, alter_group, group_entries
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.server.throttle import mutations
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened
from ringleader.protocol.schema import ZERO_UUID

ADMIN = "admin"
"""The purpose of its connections: their answers may take long."""

_OWN = "This topic is where the nodes keep their groups: they alone change it."
_ASSIGNMENTS = "A replica assignment names brokers, and clients know nodes only: ask the cluster itself."
_DISABLED = "Topics cannot be deleted here (delete.topic.enable)."
_LOST = "The cluster's controller does not answer."
_TWICE = (ErrorCode.INVALID_REQUEST, "It is in the request more than once.")
"""Answered before the authorization check."""
_PARTITIONS_REFUSED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)

_SIGNS: dict[int, str] = {ConfigOperation.APPEND: "+=", ConfigOperation.SUBTRACT: "-="}


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Admin(services, relay)
    return {
        19: relay.handler(services, family.create_topics, changing=True),
        20: family.delete_topics,
        32: relay.handler(services, family.describe_configs),
        33: relay.handler(services, family.alter_configs, changing=True),
        37: relay.handler(services, family.create_partitions, changing=True),
        44: relay.handler(services, family.alter_some_configs, changing=True),
    }


class _Admin:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    # ---- topics ----

    async def create_topics(self, call: Call, request: kafka.CreateTopicsRequest) -> Message:
        """Each topic by itself; one with an assignment to brokers is refused."""
        result = kafka.CreateTopicsResponseCreatableTopicResult

        def refused(topic: kafka.CreateTopicsRequestCreatableTopic, code: int, text: str | None) -> Any:
            return result(
                name=topic.name,
                error_code=code,
                error_message=text,
                num_partitions=-1,
                replication_factor=-1,
                configs=[],
            )

        services = self._services
        counts = Counter(topic.name for topic in request.topics)
        allowed = mutations(services, call)
        refusal: tuple[int, str | None]
        wanted = []
        results = {}
        async for topic in self._services.run_queue.each(request.topics):
            if not checks.may_create(services, call, topic.name):
                refusal = _TWICE if counts[topic.name] > 1 else checks.CREATION_REFUSED
            elif topic.assignments:
                refusal = ErrorCode.INVALID_REPLICA_ASSIGNMENT, _ASSIGNMENTS
            elif not allowed.takes(max(1, topic.num_partitions)):
                refusal = ErrorCode.THROTTLING_QUOTA_EXCEEDED, None
            else:
                wanted.append(topic)
                continue
            results[topic.name] = refused(topic, *refusal)
        response = kafka.CreateTopicsResponse(topics=list(results.values()))
        if wanted:
            request.topics = wanted
            try:
                response = await self._ask_controller(call, request, request.timeout_ms)
                response.topics += results.values()
            except ClientError as error:
                code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.topics += [refused(topic, code, _LOST) for topic in request.topics]
        may = partial(services.may, call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, quietly=True)
        requested = {topic.name: topic for topic in wanted}
        for made in response.topics:
            if made.error_code:
                continue
            if not request.validate_only:
                count = max(made.num_partitions, requested[made.name].num_partitions)
                configs = {config.name: config.value for config in requested[made.name].configs}
                detail = [f"partitions={count if count > 0 else 'by default'}", *configs_in_words(configs)]
                services.changed(call, "topic created", made.name, ", ".join(detail))
            if not may(made.name):
                made.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                made.num_partitions = made.replication_factor = -1
                made.configs = []
        self._relay.topology.suspect(topic.name for topic in response.topics)
        response.throttle_time_ms = max(response.throttle_time_ms, allowed.throttle_ms)
        return response

    def delete_topics(self, call: Call, request: kafka.DeleteTopicsRequest) -> None:
        """The offsets that groups committed for them go too, and none of it stops when the client hangs
        up."""
        self._services.spawn(None, self._delete_topics(call, request))

    async def _delete_topics(self, call: Call, request: kafka.DeleteTopicsRequest) -> None:
        try:
            response = await self._deleted(call, request)
        except UncheckedError as error:
            call.close(f"not forwarded: {error}")
            return
        except Exception:
            call.close("failed")
            raise
        call.answer(response)

    async def _deleted(self, call: Call, request: kafka.DeleteTopicsRequest) -> kafka.DeleteTopicsResponse:
        result = kafka.DeleteTopicsResponseDeletableTopicResult
        refused = []
        requested = request.topics or [
            kafka.DeleteTopicsRequestDeleteTopicState(name=name) for name in request.topic_names
        ]
        wanted = []
        allowed = mutations(self._services, call)
        names = await self._looked_up(requested)
        async for topic in self._services.run_queue.each(requested):
            name = topic.name or names.get(topic.topic_id)
            try:
                self._check_deletion(call, topic, names)
                known = None if name is None else self._relay.topology.describe(name)
                allowed.take(1 if known is None else known.partitions)
            except KafkaError as error:
                if not checks.may_delete(self._services, call, Operation.DESCRIBE, name or "", quietly=True):
                    name = topic.name
                refused.append(result(name, topic.topic_id, error.code, error.detail))
            else:
                wanted.append(topic)
        response = kafka.DeleteTopicsResponse()
        if wanted:
            by_id = call.api_version >= 6
            request.topics = wanted if by_id else []
            request.topic_names = [] if by_id else [topic.name or "" for topic in wanted]
            try:
                response = await self._ask_controller(call, request, request.timeout_ms)
            except ClientError as error:
                code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.responses = [result(topic.name, topic.topic_id, code, _LOST) for topic in wanted]
        for one in response.responses:
            if not one.error_code and one.name:
                self._services.changed(call, "topic deleted", one.name)
                self._relay.topology.suspect([one.name])
                await self._services.runtime.forget_topic(one.name, one.topic_id)
        response.responses += refused
        response.throttle_time_ms = max(response.throttle_time_ms, allowed.throttle_ms)
        return response

    async def _looked_up(
        self, requested: Sequence[kafka.DeleteTopicsRequestDeleteTopicState]
    ) -> dict[bytes, str | None]:
        """The names of topics that are asked for by id, as far as brokers know; None: there is none. Topics
        that are asked for by name are in the topology afterwards."""
        topology = self._relay.topology
        ids = [topic.topic_id for topic in requested if topic.name is None and topic.topic_id != ZERO_UUID]
        try:
            if not self._services.is_open:
                await topology.ensure(topic.name for topic in requested if topic.name is not None)
            return await topology.names(ids) if ids else {}
        except ClientError:
            return {}

    def _check_deletion(
        self, call: Call, topic: kafka.DeleteTopicsRequestDeleteTopicState, names: dict[bytes, str | None]
    ) -> None:
        """Raises KafkaError for a topic that is not forwarded."""
        if not self._services.settings.delete_topic_enable:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, _DISABLED)
        name = topic.name
        if name is None:
            if topic.topic_id == ZERO_UUID:
                return  # the controller answers the error
            if topic.topic_id not in names:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, _LOST)
            name = names[topic.topic_id]
            if name is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        may = partial(checks.may_delete, self._services, call)
        if not may(Operation.DELETE, name):
            seen = may(Operation.DESCRIBE, name, quietly=True)
            if seen and self._relay.topology.describe(name) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(*checks.TOPIC_REFUSED)
        if self._relay.is_own(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, _OWN)

    async def create_partitions(self, call: Call, request: kafka.CreatePartitionsRequest) -> Message:
        """`count` is the new total; the cluster chooses the brokers."""
        result = kafka.CreatePartitionsResponseCreatePartitionsTopicResult
        refused = []
        wanted = []
        counts = Counter(topic.name for topic in request.topics)
        allowed = mutations(self._services, call)
        async for topic in self._services.run_queue.each(request.topics):
            known = self._relay.topology.describe(topic.name)
            if not self._services.may(call, Operation.ALTER, ResourceType.TOPIC, topic.name):
                twice = counts[topic.name] > 1
                refused.append(result(topic.name, *(_TWICE if twice else _PARTITIONS_REFUSED)))
            elif self._relay.is_own(topic.name):
                refused.append(result(topic.name, ErrorCode.INVALID_TOPIC_EXCEPTION, _OWN))
            elif topic.assignments:
                refused.append(result(topic.name, ErrorCode.INVALID_REPLICA_ASSIGNMENT, _ASSIGNMENTS))
            elif not allowed.takes(max(1, topic.count - (0 if known is None else known.partitions))):
                refused.append(result(topic.name, ErrorCode.THROTTLING_QUOTA_EXCEEDED, None))
            else:
                wanted.append(topic)
        response = kafka.CreatePartitionsResponse()
        if wanted:
            request.topics = wanted
            try:
                response = await self._ask_controller(call, request, request.timeout_ms)
            except ClientError as error:
                code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.results = [result(topic.name, code, _LOST) for topic in wanted]
        totals = {topic.name: topic.count for topic in wanted}
        for one in response.results:
            if not one.error_code and not request.validate_only:
                known = self._relay.topology.describe(one.name)
                before = "" if known is None else f"{known.partitions} "
                self._services.changed(call, "partitions added", one.name, f"{before}-> {totals[one.name]}")
        response.results += refused
        self._relay.topology.suspect(one.name for one in response.results)
        response.throttle_time_ms = max(response.throttle_time_ms, allowed.throttle_ms)
        return response

    async def _ask_controller(self, call: Call, message: Any, timeout_ms: int = 0) -> Any:
        """Raises ClientError."""
        topology = self._relay.topology
        allowed_ms = max(0, timeout_ms) + self._relay.cluster.request_timeout_ms
        controller = await topology.controller()
        asking = await request_for(self._services, call, message)
        try:
            return await topology.ask(controller, asking, ADMIN, request_timeout_ms=allowed_ms)
        except ConnectionLostError:
            topology.controller_id = -1
            raise

    # ---- configurations ----

    async def describe_configs(self, call: Call, request: kafka.DescribeConfigsRequest) -> Message:
        """The configurations of topics, as the cluster has them, and a node's own settings."""
        result = kafka.DescribeConfigsResponseDescribeConfigsResult
        results = []
        topics = []
        async for resource in self._services.run_queue.each(once_each(request.resources)):
            kind, name = resource.resource_type, resource.resource_name
            one = result(error_message=None, resource_type=kind, resource_name=name)
            refused = self._refused_configs(call, Operation.DESCRIBE_CONFIGS, kind, name)
            if kind == TOPIC and refused is None:
                topics.append(resource)
                continue
            if refused is not None:
                one.error_code, one.error_message = refused.code, refused.detail
            elif kind == GROUP:
                try:
                    one.configs = shown(group_entries(self._services, name), resource, request)
                except KafkaError as error:
                    one.error_code, one.error_message = error.code, error.detail
            elif kind != BROKER:
                one.error_code = ErrorCode.INVALID_REQUEST
                one.error_message = f"Resource type {kind} has no configurations here."
            elif name not in ("", str(self._services.node_id)):
                one.error_code = ErrorCode.INVALID_REQUEST
                one.error_message = shortened(f"This is broker {self._services.node_id}, not {name}.")
            elif name:
                one.configs = shown(broker_entries(self._services), resource, request)
            results.append(one)
        response = kafka.DescribeConfigsResponse(results=results)
        if topics:
            request.resources = topics
            asking = await request_for(self._services, call, request)
            try:
                found = await self._relay.topology.ask(None, asking, ADMIN)
            except ClientError as error:
                code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                found = kafka.DescribeConfigsResponse(
                    results=[result(code, _LOST, one.resource_type, one.resource_name) for one in topics]
                )
            response.throttle_time_ms = found.throttle_time_ms
            response.results += found.results
        entries = (1 + len(entry.synonyms) for one in response.results for entry in one.configs)
        call.takes(HELD_ENTRY_BYTES * sum(entries))
        return response

    async def alter_configs(self, call: Call, request: kafka.AlterConfigsRequest) -> Message:
        """A key that a topic's request does not name goes back to its default."""
        result = kafka.AlterConfigsResponseAlterConfigsResourceResponse
        return await self._alter(call, request, replaced, result, kafka.AlterConfigsResponse)

    async def alter_some_configs(self, call: Call, request: kafka.IncrementalAlterConfigsRequest) -> Message:
        """A key that is not named stays."""
        result = kafka.IncrementalAlterConfigsResponseAlterConfigsResourceResponse
        return await self._alter(call, request, changed, result, kafka.IncrementalAlterConfigsResponse)

    async def _alter(
        self,
        call: Call,
        request: kafka.AlterConfigsRequest | kafka.IncrementalAlterConfigsRequest,
        change: Change,
        result: Callable[[int, str | None, int, str], Any],
        response_class: Callable[..., Any],
    ) -> Message:
        refused = []
        wanted: list[Any] = []
        resources: Sequence[Any] = request.resources
        counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
        async for resource in self._services.run_queue.each(resources):
            kind, name = resource.resource_type, resource.resource_name
            refusal = self._refused_configs(call, Operation.ALTER_CONFIGS, kind, name)
            if refusal is not None:
                code, text = _TWICE if counts[kind, name] > 1 else (refusal.code, refusal.detail)
                refused.append(result(code, text, kind, name))
            elif kind == GROUP:
                refused.append(await self._alter_group(call, request, resource, change, result))
            elif kind != TOPIC:
                text = "Only topics' and groups' configurations can be changed at a node."
                refused.append(result(ErrorCode.INVALID_REQUEST, text, kind, name))
            elif self._relay.is_own(name):
                refused.append(result(ErrorCode.INVALID_TOPIC_EXCEPTION, _OWN, kind, name))
            else:
                wanted.append(resource)
        response = response_class()
        if wanted:
            request.resources = wanted
            try:
                response = await self._ask_controller(call, request)
            except ClientError as error:
                code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.responses = [
                    result(code, _LOST, one.resource_type, one.resource_name) for one in wanted
                ]
        words = {resource.resource_name: ", ".join(map(_in_words, resource.configs)) for resource in wanted}
        for one in response.responses:
            if not one.error_code and not request.validate_only:
                self._services.changed(
                    call,
                    "topic configuration changed",
                    one.resource_name,
                    words[one.resource_name] or "all as by default",
                )
        response.responses += refused
        return response

    async def _alter_group(
        self,
        call: Call,
        request: kafka.AlterConfigsRequest | kafka.IncrementalAlterConfigsRequest,
        resource: Any,
        change: Change,
        result: Callable[[int, str | None, int, str], Any],
    ) -> Any:
        name, only = resource.resource_name, request.validate_only
        try:
            await alter_group(self._services, call, name, resource.configs, change, validate_only=only)
        except KafkaError as error:
            return result(error.code, error.detail, GROUP, name)
        return result(ErrorCode.NONE, None, GROUP, name)

    def _refused_configs(self, call: Call, operation: Operation, kind: int, name: str) -> KafkaError | None:
        """The error for a caller that may not do that with these configurations; None: it may."""
        try:
            checks.check_configs(self._services, call, operation, kind, name)
        except KafkaError as error:
            return error
        return None


def _in_words(
    config: kafka.AlterConfigsRequestAlterableConfig | kafka.IncrementalAlterConfigsRequestAlterableConfig,
) -> str:
    """A change, for people."""
    if isinstance(config, kafka.AlterConfigsRequestAlterableConfig):
        return f"{config.name}={config.value}"
    if config.config_operation == ConfigOperation.DELETE:
        return f"{config.name} as by default"
    return f"{config.name}{_SIGNS.get(config.config_operation, '=')}{config.value}"
