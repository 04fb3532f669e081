"""The metrics of one of several nodes: the shards that it should serve and does not, and the nodes it
reaches."""

from __future__ import annotations

from ringleader.coordinator.storage.base import Failure
from ringleader.protocol.messages import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from ringleader.testing import Coordinator
from tests.coordinator.test_http import _get, _metrics
from tests.support.cluster_nodes import Nodes
from tests.support.fenced_store import FencedStorage
from tests.support.served import connected, until


async def test_a_node_tells_what_it_should_serve_and_does_not_and_whom_it_reaches(
    nodes: Nodes, kafka_cluster: Coordinator
) -> None:
    one = await nodes.start(1, http_listen="127.0.0.1:0")
    two = await nodes.start(2)
    await until(lambda: len(two.runtime.serving) == 25 and one.ownership.settled)
    found = await _metrics(one)
    names = ("nodes", "controller", "shards_wanted", "shards_unserved", "shards_late", "fences_total")
    assert [found[f"ringleader_{name}",] for name in names] == [2, 1, 25, 0, 0, 0]
    assert found["ringleader_broker_silence_seconds", "1"] < 1
    assert found["ringleader_relay_bytes_total", "from_brokers"] == 0

    store = one.runtime._storage
    assert isinstance(store, FencedStorage)
    partition = min(one.runtime.serving)
    store.fail_append[partition] = Failure.FENCED
    store.fail_open = [Failure.AWAY] * 1_000
    one.ownership.prove()
    await until(lambda: one.ownership.fences == 1)
    found = await _metrics(one)
    assert [found[f"ringleader_{name}",] for name in names] == [2, 1, 25, 1, 0, 1]
    store.fail_open.clear()

    kafka_cluster.produce("orders", b"x" * 5_000, partition=0)
    async with connected(one.host, one.port) as client:
        wanted = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100_000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=100_000,
            topics=[FetchRequestFetchTopic(topic="orders", partitions=[wanted])],
        )
        await client.call(request, 11)
    found = await _metrics(one)
    assert found["ringleader_relay_bytes_total", "from_brokers"] > 5_000
    assert 0 < found["ringleader_relay_bytes_total", "to_brokers"] < 5_000
    assert (await _get(one, "/ready"))[0] == 200
