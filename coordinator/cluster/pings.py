"""Pings between nodes, in Kafka's own protocol: ApiVersions on a connection that is kept; on one for each
where whoever asks more has to say who they are."""

from __future__ import annotations

import asyncio
import contextlib

from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.suspicion import PING_INTERVAL_S, Suspicion
from ringleader.protocol.frames import encode_request
from ringleader.protocol.messages import ApiVersionsRequest

MAX_ANSWER_BYTES = 65_536
RECONNECT_S = 0.05


class Pings:
    """Pings all other nodes of the map, and tells `suspicion` what came of it."""

    def __init__(self, node_id: int, suspicion: Suspicion, *, sasl: bool = False) -> None:
        """`sasl`: who connects to nodes has to authenticate."""
        self._sasl = sasl
        self._suspicion = suspicion
        self._node_id = node_id
        self._client_id = f"ringleader-node-{node_id}"
        self._peers: dict[NodeInfo, asyncio.Task[None]] = {}

    def follow(self, cluster: ClusterMap) -> None:
        """Another map."""
        self._suspicion.follow(cluster)
        others = {node for node in cluster.nodes if node.node_id != self._node_id}
        for node in self._peers.keys() - others:
            self._peers.pop(node).cancel()
        for node in others - self._peers.keys():
            self._peers[node] = asyncio.create_task(self._peer(node), name=f"ping node {node.node_id}")

    async def stop(self) -> None:
        """No more pings."""
        tasks = list(self._peers.values())
        self._peers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _peer(self, node: NodeInfo) -> None:
        while True:
            writer = None
            try:
                async with asyncio.timeout(PING_INTERVAL_S):
                    reader, writer = await asyncio.open_connection(node.host, node.port)
                await self._connected(node, reader, writer)
            except ConnectionRefusedError:
                self._suspicion.refused(node.node_id)
                await asyncio.sleep(PING_INTERVAL_S)
            except TimeoutError:
                self._suspicion.missed(node.node_id)
            except (OSError, EOFError, ValueError):
                if writer is None:
                    self._suspicion.missed(node.node_id)
                    await asyncio.sleep(PING_INTERVAL_S)
                else:  # a reset: whether anybody still listens shows soon
                    await asyncio.sleep(RECONNECT_S)
            finally:
                if writer is not None:
                    writer.close()

    async def _connected(
        self, node: NodeInfo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number = 0
        while True:
            number = (number + 1) % 2**31
            writer.write(encode_request(ApiVersionsRequest(), 0, number, self._client_id))
            answer = asyncio.create_task(_answer(reader))
            try:
                # As long as it takes: who wakes after a pause answers what was asked before it.
                while not (await asyncio.wait([answer], timeout=PING_INTERVAL_S))[0]:
                    self._suspicion.missed(node.node_id)
                if answer.result() != number:
                    raise ValueError("an answer to something else")
            finally:
                answer.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError, EOFError, ValueError):
                    await answer
            self._suspicion.heard(node.node_id)
            if self._sasl:
                writer.close()
            await asyncio.sleep(PING_INTERVAL_S)
            if self._sasl:
                return


async def _answer(reader: asyncio.StreamReader) -> int:
    """The correlation id of the next answer."""
    size = int.from_bytes(await reader.readexactly(4))
    if not 4 <= size <= MAX_ANSWER_BYTES:
        raise ValueError(f"an answer of {size} bytes")
    return int.from_bytes((await reader.readexactly(size))[:4])
