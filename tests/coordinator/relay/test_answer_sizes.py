"""Through a node, too, an answer is as long as what there is to tell, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message
from tests.coordinator.relay.test_checks import relayed
from tests.support.amplified import acls, amplified, preparations
from tests.support.principals import ADMINISTRATOR, connected_as
from tests.support.served import Client

BROKER = 4
"""The type of a resource."""
BYTES_PER_BYTE = 256
"""Of an answer, for each of its request."""


async def size_of_answer(client: Client, message: Message, version: int) -> int:
    client.send(message, version)
    try:
        return len(await client.frame())
    except asyncio.IncompleteReadError:
        return 0  # closed instead


async def test_what_is_repeated_is_answered_once(tmp_path: Path) -> None:
    async with relayed(tmp_path) as (node, _):
        async with connected_as(node, ADMINISTRATOR) as client:
            for message, version in preparations():
                await client.call(message, version)
            [broker] = (await client.call(kafka.MetadataRequest(topics=[]), 12)).brokers
        sizes = {}
        for key, case in amplified().items():
            if key not in node.server.routes:
                continue
            if isinstance(case.most, kafka.DeleteAclsRequest):
                async with connected_as(node, ADMINISTRATOR) as client:
                    await client.call(acls(), 3)
            found = []
            for message in (case.whole, case.most):
                if isinstance(message, kafka.DescribeConfigsRequest):
                    for resource in message.resources:
                        if resource.resource_type == BROKER:
                            resource.resource_name = str(broker.node_id)
                async with connected_as(node, ADMINISTRATOR) as client:
                    version = min(case.version, node.server.routes[key].high)
                    found.append(await size_of_answer(client, message, version))
            allowed = 2 * found[0] + BYTES_PER_BYTE * len(case.most.encode(case.version))
            sizes[type(case.most).__name__] = (*found, allowed)
        assert not {name: found for name, found in sizes.items() if found[1] > found[2]}
        assert sizes["OffsetFetchRequest"][1] > 400_000  # of what there is
        assert sizes["DescribeConfigsRequest"][1] > 20_000
        assert sizes["FetchRequest"][0] > 900_000
