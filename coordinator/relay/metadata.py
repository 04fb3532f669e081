"""Metadata (3) v0-12 and DescribeCluster (60) v0-1: the topics of the cluster, with nodes as its brokers."""

from __future__ import annotations

import asyncio

from ringleader.clients.connection.requests import RawAnswer, plain
from ringleader.clients.errors import ClientError
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.relay.topology import decoded
from ringleader.coordinator.run_queue import SLICE_ELEMENTS
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call, Message
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.schema import ZERO_UUID

CLUSTER_OPERATIONS_VERSIONS = (8, 10)
"""Only these versions of Metadata have the authorized operations on the cluster."""
BROKERS = 1
"""The endpoint type of DescribeCluster that there is."""
OPERATIONS = 8
"""Lookups in the ACLs for a topic whose authorized operations are asked for."""
MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
"""A broker's errors for names without a topic."""


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Metadata(services, relay)
    return {
        3: relay.handler(services, family.metadata),
        60: relay.handler(services, family.describe_cluster),
    }


class _Metadata:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    async def metadata(self, call: Call, request: kafka.MetadataRequest) -> kafka.MetadataResponse | None:
        """A broker's answer of this moment. While no broker answers: the nodes, and errors that are worth
        another try; a client that asks for all topics is cut off, since an answer without topics would mean
        that there are none.

        Answered when the other nodes are known: librdkafka forgets nodes that it does not find here, with all
        that waits for them."""
        await self._services.mapped()
        requested = request.topics
        hidden: list[kafka.MetadataResponseTopic] = []
        if refused := checks.by_id_too_early(call.api_version, requested or ()):
            return self._with_nodes(call, kafka.MetadataResponse(topics=refused))
        if requested is not None:
            requested, hidden = await self._take_hidden(call, requested)
        if call.api_version == 0 and not request.topics:
            requested = None
        try:
            found = await self._find(call, request, requested)
        except ClientError as error:
            if requested is None:
                call.close(f"no broker answers: {error}")
                return None
            code = code_of(error, ErrorCode.LEADER_NOT_AVAILABLE)
            topics = [kafka.MetadataResponseTopic(code, one.name, one.topic_id) for one in requested]
            return self._with_nodes(call, kafka.MetadataResponse(topics=topics + hidden))
        seen = []
        work = 0
        for topic in found.topics:
            if self._may_describe(call, topic.name, quietly=requested is None):
                seen.append(topic)
                self._show_nodes(call, topic)
                if request.include_topic_authorized_operations and topic.name:
                    self._add_operations(call, topic)
                    work += OPERATIONS
            elif requested is not None:  # by its id, which reveals nothing by itself
                hidden.append(_hidden(None, topic.topic_id))
            work += 1 + len(topic.partitions)
            if work > SLICE_ELEMENTS:
                work = 0
                await asyncio.sleep(0)
        found.topics = seen + hidden
        if request.include_cluster_authorized_operations:
            found.cluster_authorized_operations = self._services.cluster_operations(
                call, found.cluster_authorized_operations
            )
        return self._with_nodes(call, found)

    # ---- authorization ----

    def _may_describe(self, call: Call, name: str | None, *, quietly: bool = False) -> bool:
        """A topic without a name reveals nothing."""
        may = self._services.may
        return name is None or may(call, Operation.DESCRIBE, ResourceType.TOPIC, name, quietly=quietly)

    async def _take_hidden(
        self, call: Call, requested: list[kafka.MetadataRequestTopic]
    ) -> tuple[list[kafka.MetadataRequestTopic], list[kafka.MetadataResponseTopic]]:
        """The topics of a request that the caller may describe, and a refusal for each of the others."""
        hidden = {
            topic.name
            async for topic in self._services.run_queue.each(requested)
            if not self._may_describe(call, topic.name)
        }
        if not hidden:
            return requested, []
        return [topic for topic in requested if topic.name not in hidden], [_hidden(name) for name in hidden]

    def _add_operations(self, call: Call, topic: kafka.MetadataResponseTopic) -> None:
        """The caller's operations in place of this node's, which the brokers answer."""
        if topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic.topic_authorized_operations = self._services.operations(
                call, ResourceType.TOPIC, topic.name or "", topic.topic_authorized_operations
            )

    # ---- brokers' answers ----

    async def _find(
        self,
        call: Call,
        request: kafka.MetadataRequest,
        requested: list[kafka.MetadataRequestTopic] | None,
    ) -> kafka.MetadataResponse:
        """Missing topics are created, if the caller may. Raises ClientError."""
        create = (
            request.allow_auto_topic_creation or call.api_version < 4
        ) and self._services.settings.auto_create_topics_enable
        found = await self._ask(call, request, requested, create and self._services.is_open)
        if not create or self._services.is_open:
            return found
        missing = {topic.name: at for at, topic in enumerate(found.topics) if topic.error_code in MISSING}
        wanted = []
        async for name in self._services.run_queue.each(filter(None, missing)):
            if checks.not_to_create(self._services, call, [name]):
                found.topics[missing[name]] = _hidden(name)
            else:
                wanted.append(kafka.MetadataRequestTopic(name=name))
        if wanted:
            for topic in (await self._ask(call, request, wanted, True)).topics:
                found.topics[missing[topic.name]] = topic
        return found

    async def _ask(
        self,
        call: Call,
        request: kafka.MetadataRequest,
        requested: list[kafka.MetadataRequestTopic] | None,
        create: bool,
    ) -> kafka.MetadataResponse:
        """Raises ClientError."""
        message = kafka.MetadataRequest(
            topics=requested,
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=request.include_cluster_authorized_operations,
            include_topic_authorized_operations=request.include_topic_authorized_operations,
        )
        # The newest: older versions have neither topic ids nor leader epochs.
        newest = message.MAX_VERSION
        if request.include_cluster_authorized_operations:
            newest = CLUSTER_OPERATIONS_VERSIONS[1]
        asking = await request_for(self._services, call, message, newest, raw=True)
        answer: RawAnswer = await self._relay.topology.ask_any(asking)
        call.takes(len(answer.frame))
        found = await decoded(answer)
        # A partition has lists of its replicas.
        call.takes(HELD_ENTRY_BYTES * sum(1 + 2 * len(topic.partitions) for topic in found.topics))
        self._relay.topology.learn(found)
        return found

    def _show_nodes(self, call: Call, topic: kafka.MetadataResponseTopic) -> None:
        """Nodes in the brokers' place."""
        stand_ins = self._relay.stand_ins(self._services, call)
        name = topic.name or ""
        if self._relay.is_own(name):
            topic.is_internal = True
        for one in topic.partitions:
            leader = one.leader_id
            shown = stand_ins.leader(leader, name, one.partition_index)
            one.leader_id = shown
            one.replica_nodes = stand_ins.replicas(one.replica_nodes, leader, shown)
            one.isr_nodes = stand_ins.replicas(one.isr_nodes, leader, shown)
            one.offline_replicas = stand_ins.replicas(one.offline_replicas, leader, shown)

    def _with_nodes(self, call: Call, response: kafka.MetadataResponse) -> kafka.MetadataResponse:
        services = self._services
        nodes = services.directory_for(call).nodes()
        response.brokers = [kafka.MetadataResponseBroker(*node) for node in nodes]
        response.cluster_id = services.cluster_id
        response.controller_id = self._controller(call)
        return response

    def _controller(self, call: Call) -> int:
        """Every node forwards requests for the controller, so each names itself."""
        nodes = [node.node_id for node in self._services.directory_for(call).nodes()]
        if self._services.node_id in nodes or not nodes:
            return self._services.node_id
        return nodes[0]

    async def describe_cluster(self, call: Call, request: kafka.DescribeClusterRequest) -> Message:
        """The nodes. The brokers answer the authorized operations on the cluster, where no node has an
        authorizer."""
        services = self._services
        await services.mapped()
        response = kafka.DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=services.cluster_id,
            controller_id=self._controller(call),
        )
        if request.endpoint_type != BROKERS:
            response.error_code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            response.error_message = "This is a broker's endpoint."
            return response
        if request.include_cluster_authorized_operations and not services.is_open:
            response.cluster_authorized_operations = services.cluster_operations(call, 0)
        elif request.include_cluster_authorized_operations:
            message = kafka.DescribeClusterRequest(include_cluster_authorized_operations=True)
            try:
                # Asked by the node for itself: the answer has its own rights.
                found = await self._relay.topology.ask_any(plain(message))
            except ClientError as error:
                response.error_code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.error_message = error_name(response.error_code)
                return response
            response.cluster_authorized_operations = found.cluster_authorized_operations
        response.brokers = [
            kafka.DescribeClusterResponseDescribeClusterBroker(*node)
            for node in services.directory_for(call).nodes()
        ]
        return response


def _hidden(name: str | None, topic_id: bytes = ZERO_UUID) -> kafka.MetadataResponseTopic:
    """A refusal that does not reveal whether the topic exists."""
    return kafka.MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, topic_id)
