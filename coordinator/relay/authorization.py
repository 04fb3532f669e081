"""The authorization check of requests that are forwarded: the only way from a client to a broker.

The brokers know the nodes alone, and would do for a client whatever the nodes may. Handlers take out of a
request what the client may not, with an error for it. This is the second check, of the rest, just before it
is forwarded: it finds nothing, unless an ACL has changed meanwhile. The table of rights, which the daemon's
dispatch reads, too, has the operations of each API; here are the resources in its requests. An API that is in
only one of the two is not forwarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ringleader.clients.connection.requests import Request
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.security.rights import EVERYONE, operations_on, rights_of
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message

Check = Callable[[Services, Call, Any], Iterable[bool]]
"""Whether the caller may, for each resource of a request."""


class UncheckedError(Exception):
    """A request was about to be forwarded with something that its caller may not do."""


async def request_for(
    services: Services, call: Call, message: Any, newest: int | None = None, *, raw: bool = False
) -> Request:
    """To a broker, in the name of the client; in the version that the client speaks, or up to `newest`.
    `raw`: the answer is wanted as it comes. Raises `UncheckedError`."""
    check = FORWARDED.get(type(message))
    if check is None or rights_of(message.API_KEY) == EVERYONE:
        raise UncheckedError(f"{message.NAME}, which is never forwarded")
    if not services.is_open:
        async for allowed in services.run_queue.each(check(services, call, message)):
            if not allowed:
                caller = call.connection.principal
                raise UncheckedError(
                    f"{message.NAME} of {caller}, which may not do all of it, or not any more"
                )
    version = call.api_version if newest is None else newest
    return Request(type(message), lambda _version: message, version, raw=raw, client_id=call.client_id)


def _names(message: Any) -> Iterable[str]:
    return (topic.name for topic in message.topics)


def _topics(services: Services, call: Call, message: Any) -> Iterable[bool]:
    """For an API that needs one operation on each topic."""
    [operation] = operations_on(message.API_KEY, ResourceType.TOPIC)
    return map(partial(services.may, call, operation, ResourceType.TOPIC, quietly=True), _names(message))


def _produce(services: Services, call: Call, message: kafka.ProduceRequest) -> Iterable[bool]:
    yield checks.may_be_transactional(services, call, message)
    for topic in message.topic_data:
        yield services.may(call, Operation.WRITE, ResourceType.TOPIC, topic.name, quietly=True)


def _fetch(services: Services, call: Call, message: kafka.FetchRequest) -> Iterable[bool]:
    for topic in message.topics:
        yield services.may(
            call, Operation.READ, ResourceType.TOPIC, topic.topic, quietly=True
        ) or services.may(call, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quietly=True)


def _metadata(services: Services, call: Call, message: kafka.MetadataRequest) -> Iterable[bool]:
    """Topics that are found by id, or among all topics, are checked in the answer."""
    names = (topic.name for topic in message.topics or () if topic.name is not None)
    if message.allow_auto_topic_creation:
        return (not checks.not_to_create(services, call, [name]) for name in names)
    return map(partial(services.may, call, Operation.DESCRIBE, ResourceType.TOPIC, quietly=True), names)


def _create(services: Services, call: Call, message: kafka.CreateTopicsRequest) -> Iterable[bool]:
    return map(partial(checks.may_create, services, call), _names(message))


def _delete(services: Services, call: Call, message: kafka.DeleteTopicsRequest) -> Iterable[bool]:
    """The handler looked up those that are asked for by id."""
    names = [*message.topic_names, *(topic.name for topic in message.topics if topic.name is not None)]
    return map(partial(checks.may_delete, services, call, Operation.DELETE, quietly=True), names)


def _epochs(services: Services, call: Call, message: kafka.OffsetForLeaderEpochRequest) -> Iterable[bool]:
    return (checks.may_ask_epochs(services, call, topic.topic) for topic in message.topics)


def _configs(services: Services, call: Call, message: Any) -> Iterable[bool]:
    [operation] = operations_on(message.API_KEY, ResourceType.TOPIC)
    may = partial(services.may, call, operation, ResourceType.TOPIC, quietly=True)
    return (one.resource_type == checks.TOPIC and may(one.resource_name) for one in message.resources)


def _init_producer(services: Services, call: Call, message: kafka.InitProducerIdRequest) -> Iterable[bool]:
    yield not checks.producer_refusal(services, call, message)


def _add_partitions(
    services: Services, call: Call, message: kafka.AddPartitionsToTxnRequest
) -> Iterable[bool]:
    """The groups' topic comes from AddOffsetsToTxn alone, whose group was checked."""
    yield not checks.transaction_refusal(services, call, message.v3_and_below_transactional_id)
    for topic in message.v3_and_below_topics:
        if topic.name != services.settings.cluster_groups_topic:
            yield services.may(call, Operation.WRITE, ResourceType.TOPIC, topic.name, quietly=True)


def _end(services: Services, call: Call, message: kafka.EndTxnRequest) -> Iterable[bool]:
    yield not checks.transaction_refusal(services, call, message.transactional_id)


FORWARDED: dict[type[Message], Check] = {
    kafka.ProduceRequest: _produce,
    kafka.FetchRequest: _fetch,
    kafka.ListOffsetsRequest: _topics,
    kafka.MetadataRequest: _metadata,
    kafka.CreateTopicsRequest: _create,
    kafka.DeleteTopicsRequest: _delete,
    kafka.DeleteRecordsRequest: _topics,
    kafka.InitProducerIdRequest: _init_producer,
    kafka.OffsetForLeaderEpochRequest: _epochs,
    kafka.AddPartitionsToTxnRequest: _add_partitions,
    kafka.EndTxnRequest: _end,
    kafka.DescribeConfigsRequest: _configs,
    kafka.AlterConfigsRequest: _configs,
    kafka.CreatePartitionsRequest: _topics,
    kafka.IncrementalAlterConfigsRequest: _configs,
}
"""The check of each API that is forwarded. Not here: requests that nodes answer themselves (groups, offsets,
the cluster's nodes), and their own requests to brokers."""
