"""Every API of a node, every version, every field at its extremes, on its way to the brokers: it answers or
closes, no handler fails, and groups go on. One of ours stands for the brokers."""

from __future__ import annotations

import random

import pytest

from ringleader.coordinator.config import Settings
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.schema import Message
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.groupclient import form
from tests.support.served import connected
from tests.support.shares import share
from tests.support.sweep import MAY_BE_REFUSED, TOPIC, Found, drawn, send_all, served_apis

COMBINED = share(200, whole=2_000)
"""Requests with several extremes each."""
REFUSED_HERE: dict[type[Message], set[ErrorCode]] = {
    kafka.CreateTopicsRequest: {ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_REPLICA_ASSIGNMENT},
    kafka.CreatePartitionsRequest: {ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_REPLICA_ASSIGNMENT},
    kafka.TxnOffsetCommitRequest: {ErrorCode.UNSUPPORTED_VERSION},
    kafka.CreateAclsRequest: {ErrorCode.SECURITY_DISABLED},
    kafka.DescribeAclsRequest: {ErrorCode.SECURITY_DISABLED},
    kafka.DeleteAclsRequest: {ErrorCode.SECURITY_DISABLED},
}
"""Nodes have other ids than brokers; everybody may do everything; these brokers do not tell how transactions
stand."""


@pytest.mark.share
@pytest.mark.timeout(600)
async def test_every_field_of_every_request_at_its_extremes_through_a_node(seed: int) -> None:
    rng = random.Random(seed)
    found, lines = Found(), Lines()
    groups_topic = Settings.model_fields["cluster_groups_topic"].default
    with Coordinator(topics={TOPIC: 2, groups_topic: 50}) as brokers:
        async with Nodes(brokers, lines) as nodes:
            node = await nodes.start(101)
            apis = await served_apis(node.host, node.port)
            requests = drawn(apis, rng, COMBINED)
            async with connected(node.host, node.port) as client:
                member = await form(client, "guarded")
                for start in range(0, len(requests), 500):
                    await send_all(node.host, node.port, requests[start : start + 500], found)
                    assert (await client.call(member.heartbeat(), 3)).error_code == 0
    failed = [line for line in lines if "exc_info" in line]
    assert failed == [], "\n".join(str(line["exc_info"]) for line in failed)
    found.check({**MAY_BE_REFUSED, **REFUSED_HERE})
    reasons = [str(line["reason"]) for line in lines.of("connection closed")]
    assert [one for one in reasons if "not forwarded" in one] == [], "everybody may do everything here"
