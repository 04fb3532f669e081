"""Requests that a node forwards to brokers after it has checked the ACLs: they know the node alone, and would
do it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.relay import authorization
from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.security.acls import (
    AclBinding,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.store import FileStore
from ringleader.coordinator.server.audit import Audit
from ringleader.coordinator.server.call import Call
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import decode_response, response_class
from tests.coordinator.security.test_checks import CLUSTER, GROUP, HIDDEN, ID, OPEN, REFUSED, TOPIC
from tests.protocol.test_refusals import codes
from tests.support import comparable
from tests.support.cluster_nodes import Lines
from tests.support.comparable import plain
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, make_topics, prepare
from tests.support.relayed import RelayNode, relaying
from tests.support.requests_of_all import ACLS, ALICE, MALLORY, PRINCIPALS, all_requests
from tests.support.served import WAIT_S, connected
from tests.support.two_brokers import fetched, two_brokers

HERE = {8, 9, *range(10, 17), 25, 28, 29, 30, 31, 42, 47, 48, 49, 50, 51, 60, 68, 69, 71, 72} | OPEN
"""The APIs that a node answers itself: groups and their offsets, the nodes, and the ACLs. The marker that
AddOffsetsToTxn asks for is an AddPartitionsToTxn."""
LOOKS = {3, 10, 18}
"""The APIs that a node asks brokers for itself: where topics and coordinators are."""
SECRET = "__secrets"
OWN = comparable.OWN | {SECRET}


@contextlib.asynccontextmanager
async def relayed(directory: Path, **more: Any) -> AsyncIterator[tuple[RelayNode, Node]]:
    """A node that asks the ACLs of `requests_of_all`, before a broker that asks nobody anything."""
    authorizer = Authorizer([f"User:{ADMINISTRATOR}"])
    security = Security(FileStore(directory / "security.json"), authorizer)
    await security.start()
    authorizer.apply(ACLS)
    settings = Settings(data_dir=directory / "broker", listen="127.0.0.1:0")
    async with Node(settings) as broker, connected(broker.host, broker.port) as client:
        await make_topics(client)
        groups = kafka.CreateTopicsRequestCreatableTopic("__ringleader_groups", 50, 1)
        secret = kafka.CreateTopicsRequestCreatableTopic(SECRET, 1, 1)
        made = await client.call(kafka.CreateTopicsRequest([groups, secret]), 7)
        assert {one.error_code for one in made.topics} == {0}
        async with relaying(broker.bootstrap, security=security, **more) as [node]:
            yield node, broker


def requests_by_api(broker: Node) -> dict[int, int]:
    """How many requests of each API came to it."""
    return {key: route.requests for key, route in broker.server.routes.items()}


async def test_every_api_that_is_forwarded_has_an_authorization_check(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _):
        assert node.server.routes.keys() - HERE == {kind.API_KEY for kind in authorization.FORWARDED}


async def test_of_who_may_nothing_nothing_is_passed_on(tmp_path: Path) -> None:
    wrong = []
    codes_by_api: dict[int, set[int]] = {}
    async with relayed(tmp_path) as (node, broker), connected_as(node, MALLORY) as mallory:
        before = requests_by_api(broker)
        for case in all_requests():
            key = case.request.API_KEY
            if key in node.server.routes and key not in HIDDEN | OPEN:
                answer = await mallory.call(case.request, case.version)
                codes_by_api.setdefault(key, set()).update(codes(answer))
        wrong = [
            key for key, count in requests_by_api(broker).items() if count > before[key] and key not in LOOKS
        ]
    assert wrong == []
    assert {key: found & {TOPIC, GROUP, CLUSTER, ID} for key, found in codes_by_api.items()} == {
        key: REFUSED[key] for key in codes_by_api
    }


async def test_each_principal_is_answered_as_by_a_daemon(tmp_path: Path) -> None:
    """Which is compared with Apache Kafka."""
    differ = []
    async with relayed(tmp_path) as (node, _), Node(guarded(tmp_path / "daemon")) as daemon:
        async with connected(daemon.host, daemon.port) as administrator:
            await prepare(administrator)
        for principal in (*PRINCIPALS, ADMINISTRATOR):
            async with connected_as(node, principal) as there, connected_as(daemon, principal) as here:
                for case in all_requests():
                    if case.request.API_KEY not in node.server.routes:
                        continue
                    found = plain(await there.call(case.request, case.version), OWN)
                    expected = plain(await here.call(case.request, case.version), OWN)
                    if found != expected and not _unlike(case.name, found):
                        differ.append(f"{principal}: {case.name}\n node   {found}\n daemon {expected}")
    assert not differ, "\n".join(differ)


def _unlike(name: str, found: Any) -> bool:
    """The broker of these tests does not tell how a transaction stands, and a node has an id of its own."""
    undescribed = "TxnOffsetCommit" in name and f"'error_code': {ErrorCode.UNSUPPORTED_VERSION}" in str(found)
    return undescribed or (name.startswith("DescribeConfigs") and name.endswith("of a broker"))


async def test_neither_ids_nor_the_oldest_version_show_what_is_hidden(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _), connected_as(node, ADMINISTRATOR) as root:
        everything = (await root.call(kafka.MetadataRequest(topics=None), 12)).topics
        ids = {topic.name: topic.topic_id for topic in everything}
        topics = [kafka.MetadataRequestTopic(topic_id=ids[name], name=None) for name in ("mine", "other")]
        named = [kafka.MetadataRequestTopic(name="other")]
        async with connected_as(node, ALICE) as alice:
            answer = await alice.call(kafka.MetadataRequest(topics=topics), 12)
            found = {one.topic_id: (one.name, one.error_code) for one in answer.topics}
            assert found == {ids["mine"]: ("mine", 0), ids["other"]: (None, TOPIC)}
            # No names at v0 asks for all topics: that none is left of those asked for must not.
            [topic] = (await alice.call(kafka.MetadataRequest(topics=named), 0)).topics
            assert (topic.name, topic.error_code) == ("other", TOPIC)
            state = kafka.DeleteTopicsRequestDeleteTopicState
            states = [state(topic_id=ids[name], name=None) for name in ("mine", "other")]
            states.append(state(topic_id=b"\7" * 16, name=None))
            answer = await alice.call(kafka.DeleteTopicsRequest(topics=states), 6)
            by_id = {one.topic_id: (one.name, one.error_code) for one in answer.responses}
            assert by_id == {
                ids["mine"]: ("mine", TOPIC),
                ids["other"]: (None, TOPIC),
                b"\7" * 16: (None, ErrorCode.UNKNOWN_TOPIC_ID),
            }


async def test_leaders_are_asked_about_what_may_be_read_alone(tmp_path: Path) -> None:
    security = allowing(tmp_path, Operation.READ, "orders")
    both = [
        kafka.FetchRequestFetchTopic(
            name, partitions=[kafka.FetchRequestFetchPartition(one) for one in range(2)]
        )
        for name in ("orders", "hidden")
    ]
    for topics in (both, both[::-1], both[1:]):
        async with two_brokers() as cluster, relaying(cluster.bootstrap, security=security) as [node]:
            cluster.leaders["hidden"] = [1, 2]
            cluster.on(1, lambda request, *_: fetched(request, b"records"))
            async with connected("127.0.0.1", node.port) as client:
                request = kafka.FetchRequest(max_wait_ms=60_000, min_bytes=1_000, topics=topics)
                answer = await client.call(request, 12)
            assert [one.topic for one in answer.responses] == [one.topic for one in topics]
            for topic in answer.responses:
                answers = {(one.error_code, bytes(one.records or b"")) for one in topic.partitions}
                assert answers == ({(TOPIC, b"")} if topic.topic == "hidden" else {(0, b"records")})
            assert {
                topic.topic
                for broker in cluster.brokers.values()
                for sent, _ in broker.requests
                if isinstance(sent, kafka.FetchRequest)
                for topic in sent.topics
            } <= {"orders"}


def allowing(directory: Path, operation: Operation, topic: str) -> Security:
    """An anonymous client may do that with the topic, and nothing else."""
    authorizer = Authorizer([])
    authorizer.apply([acl_for(operation, topic)])
    return Security(FileStore(directory / "security.json"), authorizer)


def acl_for(operation: Operation, topic: str) -> AclBinding:
    """As `allowing`."""
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        PatternType.LITERAL,
        f"User:{ADMINISTRATOR}",
        "*",
        operation,
        Permission.ALLOW,
    )


async def test_what_is_forbidden_while_a_coordinator_is_looked_for_is_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    security = allowing(tmp_path, Operation.WRITE, "orders")
    acl = acl_for(Operation.WRITE, "mover")._replace(resource_type=ResourceType.TRANSACTIONAL_ID)
    assert isinstance(security.authorizer, Authorizer)
    security.authorizer.apply([acl])
    take_back = partial(security.authorizer.apply, (), [acl])

    async def coordinator(topology: Topology, _transactional_id: str) -> object:
        take_back()
        return topology.brokers[1]

    monkeypatch.setattr(Topology, "coordinator", coordinator)
    async with two_brokers() as cluster, relaying(cluster.bootstrap, security=security) as [node]:
        async with connected("127.0.0.1", node.port) as client:
            client.send(kafka.InitProducerIdRequest("mover", 1_000), 4)
            async with asyncio.timeout(WAIT_S):
                assert await client.reader.read() == b""
        sent = {type(request) for broker in cluster.brokers.values() for request, _ in broker.requests}
        assert kafka.InitProducerIdRequest not in sent


LONG = [f"hidden-{number}" for number in range(8_000)]
LONG_REQUESTS = [
    (kafka.MetadataRequest(topics=[kafka.MetadataRequestTopic(name=name) for name in LONG]), 12),
    (
        kafka.FetchRequest(
            topics=[
                kafka.FetchRequestFetchTopic(name, partitions=[kafka.FetchRequestFetchPartition(0)])
                for name in LONG
            ]
        ),
        12,
    ),
    (kafka.CreateTopicsRequest([kafka.CreateTopicsRequestCreatableTopic(name, 1, 1) for name in LONG]), 7),
    (
        kafka.DescribeConfigsRequest(
            [kafka.DescribeConfigsRequestDescribeConfigsResource(2, name) for name in LONG]
        ),
        4,
    ),
]


@pytest.mark.parametrize(("request_", "version"), LONG_REQUESTS, ids=lambda of: getattr(of, "NAME", ""))
async def test_a_client_that_asks_about_much_that_is_hidden_holds_up_no_other(
    tmp_path: Path, request_: Any, version: int
) -> None:
    security = allowing(tmp_path, Operation.READ, "orders")
    async with two_brokers() as cluster, relaying(cluster.bootstrap, security=security) as [node]:
        host, port = node.host, node.port
        async with connected(host, port) as client, connected(host, port) as bystander:
            client.send(request_, version)
            head = asyncio.ensure_future(client.reader.readexactly(4))
            answered = 0
            while not head.done():
                await bystander.call(kafka.ApiVersionsRequest(), 0)
                answered += 1
            assert answered > 3  # a loop that is held answers one before, and one after it
            body = await client.reader.readexactly(int.from_bytes(head.result(), "big"))
            response = response_class(request_.API_KEY)
            assert response is not None
            found = codes(decode_response(response, body, version)[1])
            assert found.count(TOPIC) == len(LONG)


async def test_topics_of_the_nodes_are_withheld_from_everybody(tmp_path: Path) -> None:
    """A super user, and one who says to be a broker that follows, and by the topic's id."""
    async with relayed(tmp_path, withheld=[SECRET]) as (node, broker):
        async with connected(broker.host, broker.port) as client:
            metadata = kafka.MetadataRequest(topics=[kafka.MetadataRequestTopic(name=SECRET)])
            [known] = (await client.call(metadata, 12)).topics
            assert (known.name, known.error_code) == (SECRET, 0)
        async with connected_as(node, ADMINISTRATOR) as root:
            before = requests_by_api(broker)
            for request, version in of_topic(SECRET) + by_id(known.topic_id):
                assert set(codes(await root.call(request, version))) - {0} == {TOPIC}, request
            listed = {one.name for one in (await root.call(kafka.MetadataRequest(topics=None), 12)).topics}
            assert SECRET not in listed
            assert {"mine", "__ringleader_groups"} <= listed
            passed = {key for key, count in requests_by_api(broker).items() if count > before[key]}
            assert passed <= LOOKS


def by_id(topic_id: bytes) -> list[tuple[Any, int]]:
    """The operations on a topic that need no name."""
    topic = kafka.MetadataRequestTopic(topic_id=topic_id, name=None)
    state = kafka.DeleteTopicsRequestDeleteTopicState(topic_id=topic_id, name=None)
    return [(kafka.MetadataRequest(topics=[topic]), 12), (kafka.DeleteTopicsRequest(topics=[state]), 6)]


def of_topic(name: str) -> list[tuple[Any, int]]:
    """Everything that can be done with a topic by its name."""
    state = kafka.DeleteTopicsRequestDeleteTopicState(name=name)
    resource = kafka.DescribeConfigsRequestDescribeConfigsResource(2, name)
    replaced = kafka.AlterConfigsRequestAlterConfigsResource(2, name)
    changed = kafka.IncrementalAlterConfigsRequestAlterConfigsResource(2, name)
    batches = [kafka.ProduceRequestPartitionProduceData(0, bytes(70))]
    fetched = [kafka.FetchRequestFetchTopic(name, partitions=[kafka.FetchRequestFetchPartition(0)])]
    epochs = kafka.OffsetForLeaderEpochRequestOffsetForLeaderTopic(
        name, [kafka.OffsetForLeaderEpochRequestOffsetForLeaderPartition(0)]
    )
    listed = kafka.ListOffsetsRequestListOffsetsTopic(name, [kafka.ListOffsetsRequestListOffsetsPartition(0)])
    deleted = kafka.DeleteRecordsRequestDeleteRecordsTopic(
        name, [kafka.DeleteRecordsRequestDeleteRecordsPartition(0, -1)]
    )
    added = kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name, [0])
    return [
        (
            kafka.ProduceRequest(
                None, -1, 1_000, [kafka.ProduceRequestTopicProduceData(name, partition_data=batches)]
            ),
            9,
        ),
        (kafka.FetchRequest(topics=fetched), 12),
        (kafka.FetchRequest(replica_id=1, topics=fetched), 12),
        (kafka.ListOffsetsRequest(topics=[listed]), 7),
        (kafka.MetadataRequest(topics=[kafka.MetadataRequestTopic(name=name)]), 12),
        (kafka.CreateTopicsRequest([kafka.CreateTopicsRequestCreatableTopic(name, 1, 1)]), 7),
        (kafka.DeleteTopicsRequest(topics=[state]), 6),
        (kafka.DeleteRecordsRequest(topics=[deleted]), 2),
        (kafka.OffsetForLeaderEpochRequest(topics=[epochs]), 4),
        (kafka.AddPartitionsToTxnRequest("t", 1, 0, [added]), 3),
        (kafka.DescribeConfigsRequest([resource]), 4),
        (kafka.AlterConfigsRequest([replaced]), 2),
        (kafka.IncrementalAlterConfigsRequest([changed]), 1),
        (kafka.CreatePartitionsRequest([kafka.CreatePartitionsRequestCreatePartitionsTopic(name, 9)]), 3),
    ]


async def test_a_name_of_nothing_is_refused_like_any_other(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, broker), connected_as(node, ALICE) as alice:
        before = requests_by_api(broker)
        for name in ("", "no/topic", "x" * 30_000):
            for request, version in of_topic(name):
                expected = {TOPIC, ID} if request.API_KEY == 24 else {TOPIC}
                assert set(codes(await alice.call(request, version))) & expected, request
        passed = {key for key, count in requests_by_api(broker).items() if count > before[key]}
        assert passed <= LOOKS


async def test_what_a_handler_forgot_to_check_is_not_forwarded(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _), connected_as(node, ALICE):
        [connection] = [one for one in node.server.connections if one.session.principal.name == ALICE]
        call = Call(connection.session, 0, 9, 1, "client", f"/{node.host}")
        stopped = set()
        for request, version in of_topic("other"):
            call.api_version = version
            stopped.add(request.API_KEY)
            with pytest.raises(authorization.UncheckedError, match="User:alice"):
                await authorization.request_for(node.services, call, request)
        assert stopped == {kind.API_KEY for kind in authorization.FORWARDED} - {22, 26}
        others = (kafka.InitProducerIdRequest("t-other"), kafka.EndTxnRequest("t-other", 1, 0, True))
        for other in others:
            with pytest.raises(authorization.UncheckedError):
                await authorization.request_for(node.services, call, other)
        with pytest.raises(authorization.UncheckedError, match="which is never forwarded"):
            await authorization.request_for(
                node.services, call, kafka.DescribeTransactionsRequest(["t-other"])
            )


async def test_nobody_writes_in_the_transactions_of_nodes(tmp_path: Path) -> None:
    own = "__ringleader-7"
    kind = kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic
    commit = kafka.TxnOffsetCommitRequestTopic("mine", [kafka.TxnOffsetCommitRequestPartition(0, 1)])
    data = [kafka.ProduceRequestPartitionProduceData(0, bytes(22) + b"\x10" + bytes(47))]
    requests = [
        (
            kafka.ProduceRequest(
                own, -1, 1_000, [kafka.ProduceRequestTopicProduceData("mine", partition_data=data)]
            ),
            9,
        ),
        (kafka.InitProducerIdRequest(own), 4),
        (kafka.AddPartitionsToTxnRequest(own, 1, 0, [kind("mine", [0])]), 3),
        (kafka.AddOffsetsToTxnRequest(own, 1, 0, "g"), 3),
        (kafka.EndTxnRequest(own, 1, 0, True), 3),
        (kafka.TxnOffsetCommitRequest(own, "g", 1, 0, topics=[commit]), 3),
    ]
    async with relayed(tmp_path) as (node, broker), connected_as(node, ADMINISTRATOR) as root:
        before = requests_by_api(broker)
        for request, version in requests:
            assert set(codes(await root.call(request, version))) == {ID}
        assert requests_by_api(broker) == before
        answer = await root.call(kafka.InitProducerIdRequest("__ringleader", 10_000), 4)
        assert answer.error_code == 0


async def test_an_acl_that_goes_while_a_leader_is_looked_up_counts(tmp_path: Path) -> None:
    """A request that has been checked, and was not forwarded yet, is not sent: the client is cut off, and
    refused when it asks again."""
    security = allowing(tmp_path, Operation.WRITE, "late")
    assert isinstance(security.authorizer, Authorizer)
    revoke = partial(security.authorizer.apply, [], [acl_for(Operation.WRITE, "late")])
    data = [kafka.ProduceRequestPartitionProduceData(0, bytes(70))]
    produce = kafka.ProduceRequest(
        None, -1, 1_000, [kafka.ProduceRequestTopicProduceData("late", partition_data=data)]
    )
    async with two_brokers() as cluster, relaying(cluster.bootstrap, security=security) as [node]:
        cluster.leaders["late"] = [1]

        def revoked(request: Any, version: int, correlation_id: int) -> Any:
            if any(topic.name == "late" for topic in request.topics or ()):
                revoke()
            return cluster.metadata(request, version, correlation_id)

        cluster.on(3, revoked)
        async with connected("127.0.0.1", node.port) as client:
            client.send(produce, 9)
            assert await client.rest() == b""
        async with connected("127.0.0.1", node.port) as client:
            assert set(codes(await client.call(produce, 9))) == {TOPIC}
        assert not any("Produce" in broker.names() for broker in cluster.brokers.values())


async def test_changes_through_a_node_are_noted_there(tmp_path: Path) -> None:
    """The brokers see the node alone."""
    lines = Lines()
    config = kafka.IncrementalAlterConfigsRequestAlterableConfig
    changes = [
        config("retention.ms", 0, "5000"),
        config("cleanup.policy", 2, "compact"),
        config("segment.ms", 1),
    ]
    records = kafka.DeleteRecordsRequestDeleteRecordsPartition(0, -1)
    topic = kafka.CreateTopicsRequestCreatableTopic("new", 2, 1)
    grown = kafka.CreatePartitionsRequestCreatePartitionsTopic("new", 5, None)
    topic.configs = [kafka.CreateTopicsRequestCreatableTopicConfig("retention.ms", "1000")]
    requests = [
        (kafka.CreateTopicsRequest([topic], validate_only=True), 7),
        (kafka.CreateTopicsRequest([topic]), 7),
        (kafka.CreatePartitionsRequest([grown]), 3),
        (
            kafka.IncrementalAlterConfigsRequest(
                [kafka.IncrementalAlterConfigsRequestAlterConfigsResource(2, "new", changes)]
            ),
            1,
        ),
        (kafka.AlterConfigsRequest([kafka.AlterConfigsRequestAlterConfigsResource(2, "new")]), 2),
        (kafka.DeleteRecordsRequest([kafka.DeleteRecordsRequestDeleteRecordsTopic("new", [records])]), 2),
        (kafka.DeleteTopicsRequest(topics=[kafka.DeleteTopicsRequestDeleteTopicState("new")]), 6),
    ]
    async with relayed(tmp_path) as (node, _), connected_as(node, ADMINISTRATOR) as root:
        node.services.audit = Audit(lines.log, node.services.now_ms)
        for request, version in requests:
            assert set(codes(await root.call(request, version))) == {0}, request
        async with connected_as(node, MALLORY) as mallory:
            assert TOPIC in codes(await mallory.call(*requests[1]))
    assert {line["principal"] for line in lines[:-1]} == {f"User:{ADMINISTRATOR}"}
    assert [(line["event"], line["subject"], line.get("detail")) for line in lines[:-1]] == [
        ("topic created", "new", "partitions=2, retention.ms=1000"),
        ("partitions added", "new", "-> 5"),
        (
            "topic configuration changed",
            "new",
            "retention.ms=5000, cleanup.policy+=compact, segment.ms as by default",
        ),
        ("topic configuration changed", "new", "all as by default"),
        ("records deleted", "new", "0 before 0"),
        ("topic deleted", "new", None),
    ]
    assert (lines[-1]["event"], lines[-1]["principal"]) == ("refused", f"User:{MALLORY}")
