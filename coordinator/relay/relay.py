"""The common part of the handlers that forward requests to the brokers of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import GREETING, plain
from ringleader.clients.errors import ClientError, UnsupportedVersionError
from ringleader.clients.model import Node
from ringleader.coordinator.config import Settings
from ringleader.coordinator.relay.arrivals import Arrivals
from ringleader.coordinator.relay.authorization import UncheckedError
from ringleader.coordinator.relay.nearby import Nearby
from ringleader.coordinator.relay.stand_ins import StandIns
from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.relay.upstream import Upstreams
from ringleader.coordinator.run_queue import SLICE_ELEMENTS
from ringleader.coordinator.server.call import Call, Message, NoAnswer
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol.errors import LEADER_MOVED, ErrorCode, KafkaError
from ringleader.protocol.fields import LAST
from ringleader.protocol.messages import ApiVersionsResponse

NEWEST = {22: 4, 24: 3, 25: 3, 26: 3, 28: 3}
"""By API: the newest version that nodes forward. Nodes offer transactions of V1 alone (KIP-890): they
coordinate the groups, the brokers the transactions. Clients write in those by Produce up to v11."""
ARRIVALS_MAX_BYTES = 128 * 1024 * 1024
"""Brokers' answers to Fetch that are on their way through this node at a time."""

Entry = TypeVar("Entry")

Work = Callable[[Call, Any], Awaitable["Message | NoAnswer | None"]]
"""Handles a request: its response, or None if it has answered the call itself."""


class Refused(NamedTuple, Generic[Entry]):
    """An entry that is not forwarded to any broker."""

    topic: str
    entry: Entry
    error_code: int


class Relay:
    """Shared by the handlers of topics, records and transactions. `start` it before the server."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        """`cluster`: the brokers, asked in the name of this node; the caller closes it."""
        self.cluster = cluster
        self.settings = settings
        self.topology = Topology(cluster)
        self.nearby = Nearby(self.topology, settings.broker_rack)
        self.arrivals = Arrivals(ARRIVALS_MAX_BYTES)
        self.withheld_ids = f"{settings.cluster_transactional_id_prefix}-"
        """See `Services`: the owner of a partition of groups writes under one of these."""
        self.versions: dict[int, tuple[int, int]] = {}
        """By API: the lowest and highest version that the brokers serve."""
        self._stand_ins: dict[str, tuple[object, StandIns]] = {}
        """By listener, with the nodes and brokers that they are of."""

    async def start(self) -> None:
        """Look up the brokers and the versions that they serve. Raises ClientError."""
        await self.topology.refresh()
        calls = [self.topology.ask(broker, plain(GREETING), "") for broker in self.topology.brokers.values()]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        found = [answer for answer in answers if isinstance(answer, ApiVersionsResponse)]
        if not found:
            raise next(answer for answer in answers if isinstance(answer, BaseException))
        served = [
            {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys} for answer in found
        ]
        self.versions = {
            key: (
                max(one[key][0] for one in served),
                min(*(one[key][1] for one in served), NEWEST.get(key, LAST)),
            )
            for key in set.intersection(*map(set, served))
        }

    # ---- what the handlers share ----

    def handler(self, services: Services, work: Work, *, changing: bool = False) -> Handler:
        """Run `work` for each request, until the client hangs up; `changing`: to its end. A request that
        fails the authorization check closes the connection: the client asks again, and gets the error."""

        async def answer(call: Call, request: Any) -> None:
            try:
                response = await work(call, request)
            except UncheckedError as error:
                call.close(f"not forwarded: {error}")
                return
            if response is not None:
                call.answer(response)

        run = services.see_through if changing else services.spawn

        def handle(call: Call, request: Any) -> None:
            run(call, answer(call, request))

        return handle

    def upstreams(self, call: Call) -> Upstreams:
        """The brokers' connections that belong to the connection of this call."""
        connection = call.connection
        found = connection.companion
        if found is None:
            found = connection.companion = Upstreams(self.cluster, self.arrivals)
        assert isinstance(found, Upstreams)
        return found

    def stand_ins(self, services: Services, call: Call) -> StandIns:
        """The nodes that stand for the brokers now, for clients of the call's listener."""
        name = call.connection.listener.name
        nodes = {node.node_id: node.rack or "" for node in services.directory_for(call).nodes()}
        of = (nodes, self.topology.seen)
        known, stand_ins = self._stand_ins.get(name, (None, None))
        if stand_ins is None or known != of:
            stand_ins = StandIns(self.topology.seen, nodes)
            self._stand_ins[name] = of, stand_ins
        return stand_ins

    def is_own(self, topic: str) -> bool:
        """Whether it is the topic in which the nodes keep the groups: no client may change it."""
        return topic == self.settings.cluster_groups_topic

    async def by_leader(
        self,
        requested: Sequence[tuple[str, Sequence[Entry]]],
        index: Callable[[Entry], int],
        may: Callable[[str], bool],
        *,
        changing: bool = False,
    ) -> tuple[dict[Node, dict[str, list[Entry]]], list[Refused[Entry]]]:
        """Entries of topics by the broker that leads their partition, and those without a leader, or of a
        topic with which the caller may not do it. `changing`: no client may in the groups' topic."""
        allowed, refused = [], []
        for number, (topic, entries) in enumerate(requested, 1):
            if not number % SLICE_ELEMENTS:
                await asyncio.sleep(0)
            if not may(topic):
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif changing and self.is_own(topic):
                code = ErrorCode.INVALID_TOPIC_EXCEPTION
            else:
                allowed.append((topic, entries))
                continue
            refused += [Refused(topic, entry, code) for entry in entries]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            await self.topology.ensure(topic for topic, _ in allowed)
        except ClientError:
            unknown = ErrorCode.LEADER_NOT_AVAILABLE
        parts: dict[Node, dict[str, list[Entry]]] = {}
        for topic, entries in allowed:
            for entry in entries:
                leader = self.topology.leader(topic, index(entry))
                if isinstance(leader, Node):
                    parts.setdefault(leader, {}).setdefault(topic, []).append(entry)
                    continue
                self.topology.suspect([topic])
                refused.append(Refused(topic, entry, leader if self.topology.describe(topic) else unknown))
        return parts, refused

    def look_at(self, topic: str, error_code: int) -> None:
        """An error code of a partition in an answer: its leader may have to be looked up again."""
        if error_code and error_code in LEADER_MOVED:
            self.topology.suspect([topic])


def code_of(error: ClientError | KafkaError, lost: int) -> int:
    """The error code for the client; `lost`: when the broker could not be reached, or did not answer."""
    if isinstance(error, KafkaError):
        return error.code
    return ErrorCode.UNSUPPORTED_VERSION if isinstance(error, UnsupportedVersionError) else lost
