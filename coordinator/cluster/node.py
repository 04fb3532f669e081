"""One of several nodes: groups here, their records and all topics in a Kafka cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from importlib.metadata import version

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import find_coordinator, plain
from ringleader.clients.connection.security import security_from_properties
from ringleader.clients.connection.security.stores import properties_of
from ringleader.clients.errors import ClientError
from ringleader.coordinator.clock import monotonic_ms, wall_ms
from ringleader.coordinator.cluster.ability import LATE_S, LOST_S, SILENT_S, Ability
from ringleader.coordinator.cluster.contact import Contact, Verdict
from ringleader.coordinator.cluster.load import STANDSTILL, Load
from ringleader.coordinator.cluster.map import PLAINTEXT, ClusterMap, NodeInfo
from ringleader.coordinator.cluster.membership import Membership
from ringleader.coordinator.cluster.nodes_through import NodesThrough
from ringleader.coordinator.cluster.ownership import Ownership
from ringleader.coordinator.cluster.pings import Greeting, Pings
from ringleader.coordinator.cluster.reach import Reach
from ringleader.coordinator.cluster.state import MemberState
from ringleader.coordinator.cluster.suspicion import PING_INTERVAL_S, Suspicion
from ringleader.coordinator.config import Settings
from ringleader.coordinator.group_transactions.handlers import register as group_transactions
from ringleader.coordinator.http_nodes import NodesFigures
from ringleader.coordinator.journal.writer import JournalWriter
from ringleader.coordinator.logs import Failures, Log
from ringleader.coordinator.nodes import Directory
from ringleader.coordinator.relay.arrivals import Arrivals
from ringleader.coordinator.relay.relay import Relay
from ringleader.coordinator.relay.tables import build
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.security.among_nodes import NodeCredentials, password_of
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.listeners import Listener, NamedAddress
from ringleader.coordinator.security.store import SecurityStore
from ringleader.coordinator.server.audit import Audit
from ringleader.coordinator.server.sasl import Sasl
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.server.services import Services
from ringleader.coordinator.serving import ServingNode, StartError, authorizer_of, quotas_of
from ringleader.coordinator.storage.base import Storage, StorageError
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage, TopicStore
from ringleader.coordinator.topics import DamagedError
from ringleader.protocol.errors import KafkaError
from ringleader.protocol.messages import MetadataRequest

START_TIMEOUT_S = 30.0
"""A start fails if the cluster does not answer in this time, or the nodes do not agree on a map."""
LOADED_TIMEOUT_S = 60.0
"""How long a start waits for the first partitions to be loaded; clients may come before."""
DRAIN_TIMEOUT_S = 20.0
"""How long a node that stops hands its partitions over, one after the other; others take the rest."""
REMOVE_TIMEOUT_S = 2.0
ASK_TIMEOUT_S = 1.0
PAUSE_S = 1.0
"""A loop that was away for longer may have lost its partitions."""


class ClusterNode(ServingNode):
    """`async with ClusterNode(settings) as node:` or `start` and `stop`, in one event loop.

    It keeps nothing that would have to outlive it. Nothing is printed; see `logs` for where log lines go.
    """

    refusals = (StorageError, ClientError, DamagedError, KafkaError)

    def __init__(
        self,
        settings: Settings,
        *,
        storage: Storage | None = None,
        security_store: SecurityStore | None = None,
        log: Log | None = None,
    ) -> None:
        """`storage`, `security_store`: others than the topics on the cluster. Raises ValueError for
        `cluster_properties` that cannot be used."""
        super().__init__(settings, log)
        properties = {} if settings.cluster_properties is None else properties_of(settings.cluster_properties)
        self._access = security_from_properties(properties)
        self._storage = storage
        self._security_store = security_store
        self._node_id = settings.node_id
        self.map: ClusterMap | None = None
        self._info: NodeInfo
        self._cluster: Cluster
        self._membership: Membership
        self.runtime: GroupRuntime
        self.ownership: Ownership
        self.server: Server
        self._failures = Failures(self.log, monotonic_ms)
        self._suspicion = Suspicion(settings.node_id)
        self._pings: Pings
        self.reach: Reach
        self._ability = Ability()
        self._load = Load(PING_INTERVAL_S)
        self._contact = Contact(settings.cluster_session_timeout_ms / 1000)
        self._reported: frozenset[int] = frozenset()
        """The partitions that it served at the last join."""
        self._has_map = asyncio.Event()
        self._changed = asyncio.Event()
        """Set at every map and whenever the runtime has caught up with it."""
        self._leaving = False
        self._member = False
        self._asking = False

    def _figures(self, arrivals: Arrivals) -> NodesFigures:
        """For metrics."""
        wanted = self.ownership.wanted
        return NodesFigures(
            nodes=0 if self.map is None else len(self.map.nodes),
            controls=self.map is not None and self.map.controller == self._node_id,
            wanted=len(wanted),
            unserved=len(wanted - self.runtime.serving),
            late=len(self.runtime.late),
            fences=self.ownership.fences,
            silence_s=self.reach.silence_s(asyncio.get_running_loop().time()),
            relayed_bytes=(arrivals.sent_bytes, arrivals.received_bytes),
        )

    # ---- Nodes ----

    async def mapped(self) -> None:
        """See `Nodes`."""
        await self._has_map.wait()

    def through(self, listener: str) -> Directory:
        """See `Nodes`."""
        return NodesThrough(listener, lambda: self.map, lambda: self.staying)

    @property
    def staying(self) -> Sequence[NodeInfo]:
        """The nodes, without those that are about to leave, unless no other is there."""
        if self.map is None:
            return (self._info,)
        return [node for node in self.map.nodes if node.node_id not in self.map.leaving] or self.map.nodes

    # ---- life ----

    async def _start(self) -> None:
        """Reach the cluster, check or create the groups' topic, listen, join the nodes, await the map."""
        await self._reach_cluster()
        security = await self._read_security()
        await self._listen(security)
        await self._join_nodes()
        if self.failure is not None:
            raise StartError(str(self.failure))
        brokers = ",".join(map(str, self.settings.cluster))
        self._listening(self.server, node_id=self._node_id, cluster=brokers)

    async def _reach_cluster(self) -> None:
        settings = self.settings
        brokers = [str(address) for address in settings.cluster]
        self._cluster = Cluster(
            brokers,
            client_id=f"ringleader-node-{self._node_id}",
            tls=self._access.tls,
            sasl=self._access.sasl,
        )
        await self._cluster.ready(START_TIMEOUT_S)
        self.runtime = GroupRuntime(
            settings,
            self._storage or self._kafka(brokers),
            partitions=settings.offsets_topic_num_partitions,
            log=self.log,
            storage_timeout_ms=settings.storage_timeout_ms,
            on_failed=self._stop_serving,
            on_lost=self._lost,
        )
        self._journal = JournalWriter(wall_ms, self.log, has_topic=False)
        self.runtime.on_journal = self._journal.add
        self.ownership = Ownership(
            self._node_id,
            self.runtime,
            self.log,
            self._settled,
            lambda: self._membership.map_silence_s(),
            self._contact.doubt_s,
        )
        self.reach = Reach(self._cluster, settings.cluster_groups_topic, self.log)
        self._membership = Membership(
            settings,
            self._cluster,
            self._access,
            self._state,
            self.reach.leaders,
            on_map=self._follow,
            on_lost=self._removed,
            on_failed=self._stop_serving,
            log=self.log,
        )

    async def _read_security(self) -> Security:
        store = self._security_store or self._topic_store()
        security = Security(store, authorizer_of(self.settings), quotas_of(self.settings))
        self.security = security
        security.on_groups = self.runtime.configs.apply
        await security.start()
        if security.authorizer.is_open and (acls := len(store.entries("acls"))):
            text = "set authorizer=acl here as at the other nodes, or remove the ACLs"
            self.log.warning("this node asks no ACLs, and there are some", acls=acls, text=text)
        return security

    async def _listen(self, security: Security) -> None:
        settings, store = self.settings, security.store
        self.server = Server(
            settings, self.runtime, log=self.log, authorizer=security.authorizer, quotas=security.quotas
        )
        self._measure(self.server, self.runtime)
        about = await self._cluster.send(None, plain(MetadataRequest(topics=[])))
        relay = Relay(self._cluster, settings)
        await relay.start()
        if self.http is not None:
            self.http.side.nodes = lambda: self._figures(relay.arrivals)
        await self.runtime.start_empty()
        services = Services(
            settings=settings,
            runtime=self.runtime,
            topics=relay.topology,
            node_id=self._node_id,
            cluster_id=about.cluster_id,
            spawn=self._spawn,
            cluster=self,
            find_topics=relay.topology.find,
            find_topic_ids=relay.topology.find_ids,
            withheld_ids=relay.withheld_ids,
            authorizer=security.authorizer,
            security=security,
            withheld=frozenset((settings.cluster_security_topic,)),
            telemetry=self.telemetry,
            audit=Audit(self.log, monotonic_ms),
        )
        keys = await self._token_keys()
        self.server.sasl = Sasl(security.users, keys, nodes=NodeCredentials(lambda: store.secret))
        self._info = self._node_info(await self.server.bind())
        self._pings = Pings(self._node_id, self._suspicion, self._greeting(store), self.log)
        await self.server.start(build(services, relay, group_transactions), relay.topology)

    async def _join_nodes(self) -> None:
        """Until there is a map, and this node serves its partitions or `LOADED_TIMEOUT_S` is over."""
        self._member = True
        self.reach.start()
        await self._membership.start(START_TIMEOUT_S)
        self._contact.heard(asyncio.get_running_loop().time())
        self._spawn(None, self._watch())
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._until(lambda: self.map is not None)
        except TimeoutError:
            raise StartError(f"the nodes did not agree on a map within {START_TIMEOUT_S:g} s") from None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOADED_TIMEOUT_S):
                await self._until(lambda: self.ownership.settled)

    def _node_info(self, listeners: Sequence[Listener]) -> NodeInfo:
        """This node as the others see it; it listens there."""
        self.host, self.port = listeners[0].address
        name = self.settings.between_nodes().name
        addresses = tuple(NamedAddress(one.name, one.advertised) for one in listeners)
        is_plain = [one.name for one in listeners] == [PLAINTEXT]
        info = NodeInfo(
            self._node_id, *dict(addresses)[name], version("ringleader"), () if is_plain else addresses
        )
        return info._replace(rack=self.settings.broker_rack)

    def _greeting(self, store: SecurityStore) -> Greeting:
        """How the others are spoken to."""
        listener = self.settings.between_nodes()
        tls = None
        if listener.security_protocol.tls:
            tls = self.server.tls[listener.name].connecting
            try:
                tls()
            except ValueError as error:
                raise StartError(f"{listener}: {error}") from None
        authenticates = listener.security_protocol.sasl
        return Greeting(tls, (lambda: password_of(store.secret)) if authenticates else None)

    def _kafka(self, brokers: Sequence[str]) -> Storage:
        settings, listener = self.settings, self.settings.between_nodes()
        host = listener.advertised.host or listener.address.host
        port = listener.advertised.port or listener.address.port
        return KafkaStorage(
            brokers,
            Claim(self._node_id, host, port, version("ringleader")),
            topic=settings.cluster_groups_topic,
            partitions=settings.offsets_topic_num_partitions,
            replication_factor=settings.cluster_replication_factor,
            transactional_id_prefix=settings.cluster_transactional_id_prefix,
            max_record_bytes=settings.group_max_record_bytes,
            timeout_ms=settings.storage_timeout_ms * 5 // 6,
            tls=self._access.tls,
            sasl=self._access.sasl,
            on_failed=self._stop_serving,
            log=self.log,
        )

    def _topic_store(self) -> SecurityStore:
        settings = self.settings
        return TopicStore(
            self._cluster,
            settings.cluster_security_topic,
            settings.cluster_replication_factor,
            self._stop_serving,
            self.log,
        )

    async def _stop(self) -> None:
        """Hand over what this node owns, and leave the nodes."""
        if self._member:
            if self.failure is None and self.map is not None:
                await self._drain()
            await self._pings.stop()
            await self.reach.stop()
            await self._membership.leave("stopped")
        if hasattr(self, "server"):
            self.server.stop_accepting()
            await self.ownership.stop()
            await self.runtime.stop()
            await self._journal.stop(cleanly=True)
            await self._end_tasks()
            await self.server.close_connections(self.settings.shutdown_grace_ms / 1000)
        if self.security is not None:
            await self.security.store.close()
        await self._stop_keys()
        await self._cluster.close()

    async def _drain(self) -> None:
        """Until others have everything, or there are none."""
        self._leaving = True
        await self._membership.rejoin("it is about to stop")
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                await self._until(self._is_empty)
        except TimeoutError:
            left = len(self.runtime.serving)
            self.log.warning("leaving before all partitions were handed over", partitions=left)

    def _is_empty(self) -> bool:
        cluster = self.map
        assert cluster is not None
        alone = all(node.node_id in cluster.leaving for node in cluster.nodes)
        return alone or (not cluster.owned_by(self._node_id) and not self.runtime.serving)

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Or until it has failed."""
        while not condition() and self.failure is None:
            self._changed.clear()
            await self._changed.wait()

    def _stop_serving(self, error: Exception) -> None:
        super()._stop_serving(error)
        self._changed.set()

    # ---- what the other nodes decide ----

    def _state(self) -> MemberState:
        """This node's state, for the controller. Called in another thread."""
        serving, loads = self.runtime.serving, self._load.by_partition
        self._reported = serving
        unable, wary = self._ability.report()
        return MemberState(
            node=self._info,
            known=self.map,
            loads={partition: round(loads.get(partition, 0)) for partition in serving},
            leaving=self._leaving,
            unable=unable,
            wary=wary,
        )

    def _follow(self, cluster: ClusterMap) -> None:
        before, self.map = self.map, cluster
        self._has_map.set()
        self._load.follow(asyncio.get_running_loop().time())
        if before is None or before.controller != cluster.controller or before.nodes != cluster.nodes:
            self.log.info(
                "nodes",
                nodes=", ".join(f"{node.node_id} at {node.host}:{node.port}" for node in cluster.nodes),
                controller=cluster.controller,
                generation=cluster.generation,
            )
        self._contact.cut_off = False
        self._pings.follow(cluster)
        self.ownership.follow(cluster)
        own = cluster.node(self._node_id)
        if own is None:
            self.log.error("the controller leaves this node out", controller=cluster.controller)
        elif own not in (self._info, self._info._replace(rack=None)):
            # The group knows an earlier process of this node. An older controller reports no
            # racks, even when nodes send them.
            self._spawn(None, self._membership.rejoin("it has restarted"))
        self._changed.set()

    def _settled(self) -> None:
        """Planned moves wait for partitions that the controller does not know of yet: also when this node had
        taken one over before the map came."""
        self._changed.set()
        if self.map is not None and self.map.moving and self._reported != self.runtime.serving:
            self._spawn(None, self._membership.rejoin("it took over what it was given"))

    def _removed(self, reason: str) -> None:
        """The nodes' group goes on without this node, which joins it again. Others may have its partitions
        by now: the store shows which ones."""
        self.log.warning("removed from the nodes", reason=reason)
        self._prove()

    def _lost(self, partition: int, error: BaseException) -> None:
        self.ownership.lost(partition, error)
        self._changed.set()

    # ---- what this node sees for itself ----

    async def _watch(self) -> None:
        """Are the others there, and is this node still one of them?"""
        now_s = asyncio.get_running_loop().time
        looks = self._look_at_others, self._look_at_contact, self._look_at_ability, self._look_at_load
        while True:
            began_s = now_s()
            await asyncio.sleep(PING_INTERVAL_S)
            if now_s() - began_s > PAUSE_S:
                # It did not listen.
                self._contact.heard(now_s())
                self.reach.awoke(now_s())
                self._prove()
            for look in looks:
                try:
                    look(now_s())
                except Exception:
                    # An error of our own ends no other look, and not the next one.
                    self._failures.tell("a look at the nodes failed")

    def _look_at_others(self, now_s: float) -> None:
        for node_id, reason in self._suspicion.due(int(now_s * 1000)):
            self._spawn(None, self._remove(node_id, reason))

    async def _remove(self, node_id: int, reason: str) -> None:
        self.log.warning("node taken for dead", node=node_id, reason=reason)
        try:
            await self._membership.remove(node_id, reason, REMOVE_TIMEOUT_S)
        except ClientError as error:
            self.log.warning("node not removed", node=node_id, reason=str(error))
        else:
            await self._membership.rejoin(f"node {node_id} is gone: {reason}")

    def _look_at_contact(self, now_s: float) -> None:
        silence_ms = self._membership.silence_ms()
        verdict = self._contact.look(0.0 if silence_ms is None else silence_ms / 1000, now_s)
        if verdict is Verdict.WELL:
            return
        if verdict is Verdict.BACK:
            if self.map is not None:
                self.ownership.follow(self.map)
            return
        if not self._asking:
            self._asking = True
            self._spawn(None, self._ask_any_broker())
        if verdict is Verdict.CUT_OFF:
            silence_s = self._contact.silence_s(now_s)
            self.ownership.give_up(f"no broker of the cluster answered for {silence_s:.1f} s")
        elif verdict is Verdict.PROVE:
            self._prove()

    async def _ask_any_broker(self) -> None:
        now_s = asyncio.get_running_loop().time
        try:
            deadline_s = now_s() + ASK_TIMEOUT_S
            request = find_coordinator(self._membership.group_id)
            await self._cluster.send(None, request, deadline_s=deadline_s, request_timeout_ms=1_000)
            self._contact.heard(now_s())
        except ClientError:
            pass  # `_look_at_contact` draws the conclusion
        finally:
            self._asking = False

    def _prove(self) -> None:
        self._contact.proved(asyncio.get_running_loop().time())
        self.ownership.prove()

    def _look_at_ability(self, now_s: float) -> None:
        """Have other nodes serve the partitions that this one cannot."""
        silent, lost = self.reach.silent(now_s, SILENT_S), self.reach.silent(now_s, LOST_S)
        late = self.ownership.late(now_s, LATE_S)
        wanted = self.ownership.wanted
        reason = self._ability.look(now_s, wanted, self.runtime.serving, silent, lost, late)
        if not reason:
            return
        brokers = [broker for broker, silence_s in self.reach.silence_s(now_s).items() if silence_s >= LOST_S]
        partitions = sorted((lost | late) & wanted)
        say = self.log.warning if partitions else self.log.info
        say("state reported to the controller", reason=reason, partitions=partitions, silent_brokers=brokers)
        self._spawn(None, self._membership.rejoin(reason))

    def _look_at_load(self, now_s: float) -> None:
        shards = self.runtime.shards
        self._load.measure({partition: shards[partition].activity for partition in self.runtime.serving})
        if self.map is None or self.map.controller != self._node_id:
            return
        reason = self._load.look(self.map, now_s)
        if reason == STANDSTILL:
            self.log.warning(STANDSTILL, partitions=len(self.map.moving))
        if reason:
            self._spawn(None, self._membership.rejoin(reason))
