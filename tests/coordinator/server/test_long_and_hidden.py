"""A client that asks about many topics that are hidden from it holds up no other: the ACLs are asked in
slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator import run_queue
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.acls import Operation, PatternType, Permission, ResourceType
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.test_long_requests import long_call
from tests.protocol.test_refusals import codes
from tests.support.groupclient import form
from tests.support.principals import ADMINISTRATOR, connected_as, guarded

NAMES = [f"hidden-{number}" for number in range(8_000)]
REQUESTS = [
    (
        kafka.OffsetCommitRequest(
            group_id="work",
            topics=[
                kafka.OffsetCommitRequestTopic(
                    name=name, partitions=[kafka.OffsetCommitRequestPartition(0, 1)]
                )
                for name in NAMES
            ],
        ),
        8,
    ),
    (
        kafka.TxnOffsetCommitRequest(
            transactional_id="work",
            group_id="work",
            topics=[
                kafka.TxnOffsetCommitRequestTopic(name, [kafka.TxnOffsetCommitRequestPartition(0, 1)])
                for name in NAMES
            ],
        ),
        3,
    ),
    (
        kafka.OffsetFetchRequest(
            groups=[
                kafka.OffsetFetchRequestGroup(
                    "work",
                    topics=[
                        kafka.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in NAMES
                    ],
                )
            ]
        ),
        8,
    ),
    (kafka.MetadataRequest(topics=[kafka.MetadataRequestTopic(name=name) for name in NAMES]), 9),
    (kafka.CreateTopicsRequest([kafka.CreateTopicsRequestCreatableTopic(name, 1, 1) for name in NAMES]), 7),
    (kafka.DeleteTopicsRequest(topic_names=NAMES), 5),
    (
        kafka.ListOffsetsRequest(
            topics=[
                kafka.ListOffsetsRequestListOffsetsTopic(
                    name, [kafka.ListOffsetsRequestListOffsetsPartition(0)]
                )
                for name in NAMES
            ]
        ),
        6,
    ),
    (
        kafka.FetchRequest(
            topics=[
                kafka.FetchRequestFetchTopic(name, partitions=[kafka.FetchRequestFetchPartition(0)])
                for name in NAMES
            ]
        ),
        11,
    ),
    (
        kafka.DescribeConfigsRequest(
            [kafka.DescribeConfigsRequestDescribeConfigsResource(2, name) for name in NAMES]
        ),
        4,
    ),
]
GROUP_AND_ID = [(ResourceType.GROUP, Operation.ALL), (ResourceType.TRANSACTIONAL_ID, Operation.ALL)]


@pytest.mark.parametrize(("request_", "version"), REQUESTS, ids=lambda of: getattr(of, "NAME", ""))
async def test_the_acls_are_asked_in_slices(
    tmp_path: Path, request_: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_queue, "TURN_S", 0.0005)
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as bystander:
        creations = [
            kafka.CreateAclsRequestAclCreation(
                kind, "work", PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW
            )
            for kind, operation in GROUP_AND_ID
        ]
        made = await bystander.call(kafka.CreateAclsRequest(creations=creations), 3)
        assert {one.error_code for one in made.results} == {0}
        member = await form(bystander, "bystanders")
        async with connected_as(node, "alice") as alice:
            answer = await long_call(alice, request_, version, bystander, member)
        assert codes(answer).count(ErrorCode.TOPIC_AUTHORIZATION_FAILED) == len(NAMES)
