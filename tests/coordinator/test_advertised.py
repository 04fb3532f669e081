"""The APIs that are advertised: every API in the versions whose whole behaviour there is.

Clients take the highest version that both sides know, so a range that is too wide breaks them, and one that
is too narrow takes features away.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.frames import request_class
from ringleader.protocol.messages import ApiVersionsRequest
from tests.support.served import Client

ADVERTISED = {
    # Topic ids in Produce and Fetch are left out: names go there. Produce 0-2 is said and
    # refused, as by Kafka 4 (KAFKA-18659).
    "Produce": (0, 0, 13),
    "Fetch": (1, 4, 18),
    "ListOffsets": (2, 1, 7),
    "Metadata": (3, 0, 12),
    "OffsetCommit": (8, 2, 10),
    "OffsetFetch": (9, 1, 10),
    "FindCoordinator": (10, 0, 4),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "ListGroups": (16, 0, 5),
    "SaslHandshake": (17, 0, 1),
    "ApiVersions": (18, 0, 3),
    "CreateTopics": (19, 2, 7),
    "DeleteTopics": (20, 1, 6),
    "DeleteRecords": (21, 0, 2),
    "InitProducerId": (22, 0, 5),
    "OffsetForLeaderEpoch": (23, 2, 4),
    # From 4 on between brokers only; transactions of the second kind (KIP-890) are not offered.
    "AddPartitionsToTxn": (24, 0, 3),
    "AddOffsetsToTxn": (25, 0, 4),
    "EndTxn": (26, 0, 5),
    "TxnOffsetCommit": (28, 0, 5),
    "DescribeAcls": (29, 1, 3),
    "CreateAcls": (30, 1, 3),
    "DeleteAcls": (31, 1, 3),
    "DescribeConfigs": (32, 1, 4),
    "AlterConfigs": (33, 0, 2),
    "SaslAuthenticate": (36, 0, 2),
    "CreatePartitions": (37, 0, 3),
    "DeleteGroups": (42, 0, 2),
    "IncrementalAlterConfigs": (44, 0, 1),
    "OffsetDelete": (47, 0, 0),
    "DescribeClientQuotas": (48, 0, 1),
    "AlterClientQuotas": (49, 0, 1),
    "DescribeUserScramCredentials": (50, 0, 0),
    "AlterUserScramCredentials": (51, 0, 0),
    "DescribeCluster": (60, 0, 1),
    "ConsumerGroupHeartbeat": (68, 0, 1),
    "ConsumerGroupDescribe": (69, 0, 1),
    "GetTelemetrySubscriptions": (71, 0, 0),
    "PushTelemetry": (72, 0, 0),
}


@pytest.mark.parametrize("version", range(4))
async def test_every_api_is_told_with_its_versions(tmp_path: Path, version: int) -> None:
    settings = Settings(listen="127.0.0.1:0", data_dir=tmp_path, telemetry_enable=True)
    async with Node(settings) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        answer = await client.call(ApiVersionsRequest("client", "1"), version)
        await client.close()
    spans = {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}
    assert spans == {key: (low, high) for key, low, high in ADVERTISED.values()}
    assert [entry.api_key for entry in answer.api_keys] == sorted(spans)


async def test_the_consumer_protocol_is_not_told_where_it_is_switched_off(tmp_path: Path) -> None:
    settings = Settings(
        listen="127.0.0.1:0", data_dir=tmp_path, group_coordinator_rebalance_protocols=("classic",)
    )
    async with Node(settings) as node:
        assert not {68, 69} & node.server.routes.keys()


async def test_telemetry_is_not_told_where_it_is_not_asked_for(tmp_path: Path) -> None:
    settings = Settings(listen="127.0.0.1:0", data_dir=tmp_path)
    async with Node(settings) as node:
        assert not {71, 72} & node.server.routes.keys()


def test_the_table_names_the_apis() -> None:
    for name, (key, _, _) in ADVERTISED.items():
        request = request_class(key)
        assert request is not None
        assert request.__name__ == f"{name}Request"
