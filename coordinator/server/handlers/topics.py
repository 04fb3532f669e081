"""Topics and partitions.

Metadata (3) v0-12: v1 null asks for all and controller id, v4 whether to create, v8 authorized operations, v9
flexible, v10 topic ids, v12 ask by id. CreateTopics (19) v2-7: v4 default partitions, v5 flexible and configs
in the answer, v7 topic id. DeleteTopics (20) v1-6: v4 flexible, v6 by id. CreatePartitions (37) v0-3.

There is one node, which leads every partition at epoch 0, so a replication factor is 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.handlers.configs import configs_in_words, topic_entries
from ringleader.coordinator.server.services import Handler, LocalServices, once, set_error
from ringleader.coordinator.server.throttle import Mutations, mutations
from ringleader.coordinator.topics.catalog import TopicInfo, check_name, refuse_internal
from ringleader.coordinator.topics.partition import LEADER_EPOCH
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.schema import ZERO_UUID

REPLICATION_FACTOR = 1
TOPIC_OPERATIONS = 0b1101_1111_1000
"""The rights of every caller on a topic without an authorizer, as bits: read, write, create, delete, alter,
describe and both of its configurations (KIP-430)."""
CLUSTER_OPERATIONS = 0b1_1111_1010_0000
"""Likewise for the cluster: create, alter, describe, cluster action, configurations, idempotent write."""


def register(services: LocalServices) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Topics(services)
    return {3: family.metadata, 19: family.create, 20: family.delete, 37: family.create_partitions}


class _Topics:
    def __init__(self, services: LocalServices) -> None:
        self._services = services
        self._topics = services.topics

    # ---- Metadata ----

    def metadata(self, call: Call, request: kafka.MetadataRequest) -> Slices:
        """Topics that are asked for by name are created first, if that is allowed and they are missing."""
        requested = request.topics
        if requested is None or (not requested and call.api_version == 0):
            seen = [info for info in self._topics.all() if self._may_describe(call, info.name, quietly=True)]
            return (
                yield from self._metadata(call, request, (self._found(call, info, request) for info in seen))
            )
        if refused := checks.by_id_too_early(call.api_version, requested):
            return (yield from self._metadata(call, request, iter(refused)))
        requested = _once(requested)
        create = request.allow_auto_topic_creation or call.api_version < 4
        missing = (
            self._missing(requested) if create and self._services.settings.auto_create_topics_enable else []
        )
        forbidden = checks.not_to_create(self._services, call, missing)
        failed: dict[str, int] = dict.fromkeys(forbidden, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        missing = [name for name in missing if name not in failed]
        if missing:
            self._services.see_through(call, self._create_missing(call, request, requested, missing, failed))
            return None
        return (
            yield from self._metadata(call, request, self._metadata_topics(call, requested, request, failed))
        )

    def _may_describe(self, call: Call, name: str, *, quietly: bool = False) -> bool:
        return self._services.may(call, Operation.DESCRIBE, ResourceType.TOPIC, name, quietly=quietly)

    def _missing(self, requested: list[kafka.MetadataRequestTopic]) -> list[str]:
        names = dict.fromkeys(topic.name for topic in requested if topic.name is not None)
        return [name for name in names if self._topics.describe(name) is None]

    async def _create_missing(
        self,
        call: Call,
        request: kafka.MetadataRequest,
        requested: list[kafka.MetadataRequestTopic],
        missing: list[str],
        failed: dict[str, int],
    ) -> None:
        async def create(name: str) -> None:
            try:
                self._note_created(call, await self._topics.create(name))
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    failed[name] = error.code

        await self._services.run_queue.gather(map(create, missing))

        def finish() -> Slices:
            call.answer(
                (
                    yield from self._metadata(
                        call, request, self._metadata_topics(call, requested, request, failed)
                    )
                )
            )

        for _ in finish():
            await asyncio.sleep(0)

    def _metadata_topics(
        self,
        call: Call,
        requested: list[kafka.MetadataRequestTopic],
        request: kafka.MetadataRequest,
        failed: dict[str, int],
    ) -> Iterator[kafka.MetadataResponseTopic]:
        for topic in requested:
            name = topic.name
            info = self._described(topic)
            hidden = name if info is None else info.name
            if hidden is not None and not self._may_describe(call, hidden):
                # Whether it exists is not revealed; an id alone reveals nothing.
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                yield kafka.MetadataResponseTopic(error_code=code, name=name, topic_id=topic.topic_id)
            elif info is not None:
                yield self._found(call, info, request)
            elif name is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                yield kafka.MetadataResponseTopic(error_code=code, name=None, topic_id=topic.topic_id)
            else:
                yield self._not_found(call, name, request, failed.get(name, ErrorCode.NONE))

    def _not_found(
        self, call: Call, name: str, request: kafka.MetadataRequest, failed: int
    ) -> kafka.MetadataResponseTopic:
        topic = kafka.MetadataResponseTopic(error_code=failed or _missing(name), name=name)
        if request.include_topic_authorized_operations and failed != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topic.topic_authorized_operations = self._services.operations(
                call, ResourceType.TOPIC, name, topic.topic_authorized_operations
            )
        return topic

    def _described(
        self, topic: kafka.MetadataRequestTopic | kafka.DeleteTopicsRequestDeleteTopicState
    ) -> TopicInfo | None:
        if topic.name is None:
            return self._topics.describe_id(topic.topic_id)
        return self._topics.describe(topic.name)

    def _found(
        self, call: Call, info: TopicInfo, request: kafka.MetadataRequest
    ) -> kafka.MetadataResponseTopic:
        node = [self._services.node_id]
        topic = kafka.MetadataResponseTopic(
            name=info.name,
            topic_id=info.id,
            is_internal=info.is_internal,
            partitions=[
                kafka.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=node[0],
                    leader_epoch=LEADER_EPOCH,
                    replica_nodes=node,
                    isr_nodes=node,
                )
                for index in range(info.partitions)
            ],
        )
        if request.include_topic_authorized_operations:
            topic.topic_authorized_operations = self._services.operations(
                call, ResourceType.TOPIC, info.name, TOPIC_OPERATIONS
            )
        return topic

    def _metadata(
        self, call: Call, request: kafka.MetadataRequest, topics: Iterable[kafka.MetadataResponseTopic]
    ) -> Slices:
        services = self._services
        response = kafka.MetadataResponse(
            brokers=[kafka.MetadataResponseBroker(*node) for node in services.directory_for(call).nodes()],
            cluster_id=services.cluster_id,
            controller_id=services.node_id,
        )
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = services.cluster_operations(call, CLUSTER_OPERATIONS)
        partitions = 0
        for topic in topics:
            response.topics.append(topic)
            partitions += 1 + len(topic.partitions)
            if partitions > SLICE_ELEMENTS:
                call.takes(HELD_ENTRY_BYTES * partitions)
                partitions = 0
                yield
        return response

    # ---- CreateTopics ----

    def create(self, call: Call, request: kafka.CreateTopicsRequest) -> None:
        """Each topic for itself; all that come in one request are one write."""
        self._services.see_through(call, self._create(call, request))

    async def _create(self, call: Call, request: kafka.CreateTopicsRequest) -> None:
        allowed = mutations(self._services, call)
        results = await self._services.run_queue.gather(
            self._create_one(call, topic, twice, request.validate_only, allowed)
            for topic, twice in once(request.topics, lambda topic: topic.name)
        )
        call.answer(kafka.CreateTopicsResponse(allowed.throttle_ms, results))

    async def _create_one(
        self,
        call: Call,
        topic: kafka.CreateTopicsRequestCreatableTopic,
        twice: bool,
        validate_only: bool,
        allowed: Mutations,
    ) -> kafka.CreateTopicsResponseCreatableTopicResult:
        result = kafka.CreateTopicsResponseCreatableTopicResult(name=topic.name, error_message=None)
        configs = {config.name: config.value for config in topic.configs}
        try:
            if twice:
                raise _duplicate(topic.name)
            if not checks.may_create(self._services, call, topic.name):
                raise KafkaError(*checks.CREATION_REFUSED)
            partitions = self._partition_count(topic, call.api_version)
            if len(configs) < len(topic.configs):
                raise KafkaError(ErrorCode.INVALID_CONFIG, "A config is given twice.")
            if allowed.limited:
                info = await self._topics.create(topic.name, partitions, configs, validate_only=True)
                allowed.take(info.partitions)
            info = await self._topics.create(topic.name, partitions, configs, validate_only=validate_only)
        except KafkaError as error:
            set_error(result, error)
            return result
        result.topic_id = ZERO_UUID if validate_only else info.id
        if not validate_only:
            self._note_created(call, info)
        may = self._services.may
        if not may(call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name, quietly=True):
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return result
        result.num_partitions = info.partitions
        result.replication_factor = REPLICATION_FACTOR
        result.configs = [
            kafka.CreateTopicsResponseCreatableTopicConfigs(
                name=entry.name, value=entry.value, config_source=entry.config_source
            )
            for entry in topic_entries(info.configs, self._services)
        ]
        call.takes(HELD_ENTRY_BYTES * len(result.configs))
        return result

    def _note_created(self, call: Call, info: TopicInfo) -> None:
        detail = ", ".join([f"partitions={info.partitions}", *configs_in_words(info.configs)])
        self._services.changed(call, "topic created", info.name, detail)

    def _partition_count(self, topic: kafka.CreateTopicsRequestCreatableTopic, version: int) -> int:
        """How many partitions, -1 for the default. Raises KafkaError."""
        count, factor = topic.num_partitions, topic.replication_factor
        if topic.assignments:
            if count != -1 or factor != -1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set.",
                )
            indexes = sorted(assignment.partition_index for assignment in topic.assignments)
            brokers = [assignment.broker_ids for assignment in topic.assignments]
            self._check_assignment(brokers)
            if indexes != list(range(len(indexes))):
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Partitions are numbered from 0 without gaps."
                )
            return len(indexes)
        if factor != REPLICATION_FACTOR and (factor != -1 or version < 4):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"Replication factor is {factor}; there is one node."
            )
        if count == 0 or count < -1 or (count == -1 and version < 4):
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Number of partitions was {count}.")
        return count

    def _check_assignment(self, brokers: list[list[int]]) -> None:
        if any(found != [self._services.node_id] for found in brokers):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"There is one node, {self._services.node_id}; every partition has it alone.",
            )

    # ---- DeleteTopics ----

    def delete(self, call: Call, request: kafka.DeleteTopicsRequest) -> None:
        """By name, from v6 on also by id. The offsets that groups committed for it go too, and none of it
        stops when the client hangs up."""
        self._services.spawn(None, self._delete(call, request))

    async def _delete(self, call: Call, request: kafka.DeleteTopicsRequest) -> None:
        requested = request.topics or [
            kafka.DeleteTopicsRequestDeleteTopicState(name=name) for name in request.topic_names
        ]
        once = list({(topic.name, topic.topic_id): topic for topic in requested}.values())
        try:
            allowed = mutations(self._services, call)
            results = await asyncio.gather(*(self._delete_one(call, topic, allowed) for topic in once))
        except Exception:
            call.close("failed")
            raise
        call.answer(kafka.DeleteTopicsResponse(allowed.throttle_ms, list(results)))

    async def _delete_one(
        self, call: Call, topic: kafka.DeleteTopicsRequestDeleteTopicState, allowed: Mutations
    ) -> kafka.DeleteTopicsResponseDeletableTopicResult:
        result = kafka.DeleteTopicsResponseDeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        try:
            info = self._to_delete(call, topic)
            if checks.may_delete(self._services, call, Operation.DESCRIBE, info.name, quietly=True):
                result.name = info.name
            if not checks.may_delete(self._services, call, Operation.DELETE, info.name):
                raise KafkaError(*checks.TOPIC_REFUSED)
            result.name, result.topic_id = info.name, info.id
            refuse_internal(info.name, "delete")
            allowed.take(info.partitions)
            await self._topics.delete(info.name, self._services.runtime.forget_topic)
            self._services.changed(call, "topic deleted", info.name)
        except KafkaError as error:
            set_error(result, error)
        return result

    def _to_delete(self, call: Call, topic: kafka.DeleteTopicsRequestDeleteTopicState) -> TopicInfo:
        if not self._services.settings.delete_topic_enable:
            code = ErrorCode.TOPIC_DELETION_DISABLED if call.api_version >= 3 else ErrorCode.INVALID_REQUEST
            raise KafkaError(code, "Topics cannot be deleted here (delete.topic.enable).")
        if (topic.name is None) == (topic.topic_id == ZERO_UUID):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Give a name or an id, and not both.")
        info = self._described(topic)
        if info is None:
            by_id = topic.name is None
            if topic.name is not None and not checks.may_delete(
                self._services, call, Operation.DESCRIBE, topic.name
            ):
                raise KafkaError(*checks.TOPIC_REFUSED)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return info

    # ---- CreatePartitions ----

    def create_partitions(self, call: Call, request: kafka.CreatePartitionsRequest) -> None:
        """`count` is the new total."""
        self._services.see_through(call, self._create_partitions(call, request))

    async def _create_partitions(self, call: Call, request: kafka.CreatePartitionsRequest) -> None:
        allowed = mutations(self._services, call)
        results = await self._services.run_queue.gather(
            self._grow(call, topic, twice, request.validate_only, allowed)
            for topic, twice in once(request.topics, lambda topic: topic.name)
        )
        call.answer(kafka.CreatePartitionsResponse(allowed.throttle_ms, results))

    async def _grow(
        self,
        call: Call,
        topic: kafka.CreatePartitionsRequestCreatePartitionsTopic,
        twice: bool,
        validate_only: bool,
        allowed: Mutations,
    ) -> kafka.CreatePartitionsResponseCreatePartitionsTopicResult:
        result = kafka.CreatePartitionsResponseCreatePartitionsTopicResult(name=topic.name)
        try:
            if twice:
                raise _duplicate(topic.name)
            if not self._services.may(call, Operation.ALTER, ResourceType.TOPIC, topic.name):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            info = self._topics.describe(topic.name)
            if info is not None:
                refuse_internal(info.name, "add partitions to")
            if topic.assignments is not None and info is not None:
                self._check_assignment([assignment.broker_ids for assignment in topic.assignments])
                if info.partitions + len(topic.assignments) != topic.count and topic.count > info.partitions:
                    raise KafkaError(
                        ErrorCode.INVALID_REPLICA_ASSIGNMENT, "One assignment is due for each new partition."
                    )
            before = 0 if info is None else info.partitions
            if allowed.limited and info is not None:
                await self._topics.grow(topic.name, topic.count, validate_only=True)
                allowed.take(topic.count - info.partitions)
            await self._topics.grow(topic.name, topic.count, validate_only=validate_only)
            if not validate_only:
                self._services.changed(call, "partitions added", topic.name, f"{before} -> {topic.count}")
        except KafkaError as error:
            set_error(result, error)
        return result


def _once(requested: list[kafka.MetadataRequestTopic]) -> list[kafka.MetadataRequestTopic]:
    """Each topic once. As in Kafka, where one is asked for by id, names count for nothing."""
    ids = dict.fromkeys(topic.topic_id for topic in requested if topic.topic_id != ZERO_UUID)
    if ids:
        return [kafka.MetadataRequestTopic(topic_id=one, name=None) for one in ids]
    return list({topic.name: topic for topic in requested}.values())


def _missing(name: str) -> int:
    """The reason why there is no topic of this name."""
    try:
        check_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _duplicate(name: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"The topic '{name}' is in the request more than once.")
