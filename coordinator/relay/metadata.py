"""Metadata (3) v0-12 and DescribeCluster (60) v0-1: the topics of the cluster, with nodes as its brokers."""

from __future__ import annotations

import asyncio
from functools import partial

from ringleader.clients.connection.requests import RawAnswer, Request
from ringleader.clients.errors import ClientError
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers import Handler, Services
from ringleader.coordinator.server.run_queue import SLICE_ELEMENTS
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.frames import decode_response

LONG_BYTES = 131_072
"""A longer answer is decoded beside the loop."""
CLUSTER_OPERATIONS_VERSIONS = (8, 10)
"""Only these versions of Metadata tell what may be done with the cluster."""
BROKERS = 1
"""The endpoint type of DescribeCluster that there is."""


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
        """What a broker says now. While none can be asked: the nodes, and errors that are worth another try;
        a client that asks for all topics is cut off, since an answer without topics would say something.

        Answered when the other nodes are known: librdkafka forgets whom it does not find here, with all that
        waits for them."""
        await self._services.directory.mapped()
        asked = request.topics
        if call.api_version == 0 and not asked:
            asked = None
        try:
            found = await self._ask(call, request, asked)
        except ClientError as error:
            if asked is None:
                call.close(f"no broker answers: {error}")
                return None
            code = code_of(error, ErrorCode.LEADER_NOT_AVAILABLE)
            topics = [kafka.MetadataResponseTopic(code, one.name, one.topic_id) for one in asked]
            return self._faced(kafka.MetadataResponse(topics=topics))
        self._relay.topology.learn(found)
        partitions = 0
        for topic in found.topics:
            self._face(topic)
            partitions += 1 + len(topic.partitions)
            if partitions > SLICE_ELEMENTS:
                partitions = 0
                await asyncio.sleep(0)
        return self._faced(found)

    async def _ask(
        self,
        call: Call,
        request: kafka.MetadataRequest,
        asked: list[kafka.MetadataRequestTopic] | None,
    ) -> kafka.MetadataResponse:
        message = kafka.MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=(request.allow_auto_topic_creation or call.api_version < 4)
            and self._services.settings.auto_create_topics_enable,
            include_cluster_authorized_operations=request.include_cluster_authorized_operations,
            include_topic_authorized_operations=request.include_topic_authorized_operations,
        )
        # As new as can be: older versions tell neither topic ids nor leader epochs.
        newest = message.MAX_VERSION
        if request.include_cluster_authorized_operations:
            newest = CLUSTER_OPERATIONS_VERSIONS[1]
        answer: RawAnswer = await self._relay.topology.ask_any(
            Request(type(message), lambda _version: message, newest, raw=True, client_id=call.client_id)
        )
        decode = partial(decode_response, kafka.MetadataResponse, answer.frame, answer.version)
        return (decode() if len(answer.frame) <= LONG_BYTES else await asyncio.to_thread(decode))[1]

    def _face(self, topic: kafka.MetadataResponseTopic) -> None:
        """Nodes in the brokers' place."""
        faces = self._relay.faces(self._services)
        name = topic.name or ""
        if self._relay.is_own(name):
            topic.is_internal = True
        for one in topic.partitions:
            leader = one.leader_id
            shown = faces.leader(leader, name, one.partition_index)
            one.leader_id = shown
            one.replica_nodes = faces.replicas(one.replica_nodes, leader, shown)
            one.isr_nodes = faces.replicas(one.isr_nodes, leader, shown)
            one.offline_replicas = faces.replicas(one.offline_replicas, leader, shown)

    def _faced(self, response: kafka.MetadataResponse) -> kafka.MetadataResponse:
        services = self._services
        nodes = services.directory.nodes()
        response.brokers = [kafka.MetadataResponseBroker(*node) for node in nodes]
        response.cluster_id = services.cluster_id
        response.controller_id = self._controller()
        return response

    def _controller(self) -> int:
        """Whoever is asked passes on what is for the controller."""
        nodes = [node.node_id for node in self._services.directory.nodes()]
        if self._services.node_id in nodes or not nodes:
            return self._services.node_id
        return nodes[0]

    async def describe_cluster(self, call: Call, request: kafka.DescribeClusterRequest) -> Message:
        """The nodes. What may be done with the cluster is the brokers' to say."""
        services = self._services
        await services.directory.mapped()
        response = kafka.DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=services.cluster_id,
            controller_id=self._controller(),
        )
        if request.endpoint_type != BROKERS:
            response.error_code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
            response.error_message = "This is a broker's endpoint."
            return response
        if request.include_cluster_authorized_operations:
            message = kafka.DescribeClusterRequest(include_cluster_authorized_operations=True)
            try:
                found = await self._relay.topology.ask_any(
                    Request(type(message), lambda _version: message, client_id=call.client_id)
                )
            except ClientError as error:
                response.error_code = code_of(error, ErrorCode.REQUEST_TIMED_OUT)
                response.error_message = error_name(response.error_code)
                return response
            response.cluster_authorized_operations = found.cluster_authorized_operations
        response.brokers = [
            kafka.DescribeClusterResponseDescribeClusterBroker(*node) for node in services.directory.nodes()
        ]
        return response
