"""The parts of a node that handlers use, and the form of a handler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.nodes import Directory, NodeAddress, Nodes, OnlyNode
from ringleader.coordinator.run_queue import RunQueue, Slices
from ringleader.coordinator.security.acls import CLUSTER_NAME, Authority, Operation, ResourceType
from ringleader.coordinator.server.audit import Audit
from ringleader.coordinator.server.call import Call, Message, NoAnswer
from ringleader.coordinator.server.gather import Part
from ringleader.protocol.errors import KafkaError

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.runtime import GroupRuntime
    from ringleader.coordinator.runtime.transactions import TransactionRuntime
    from ringleader.coordinator.security.directory import Security
    from ringleader.coordinator.telemetry import Telemetry
    from ringleader.coordinator.topics import Topics

T = TypeVar("T")

Handler = Callable[[Call, Any], Message | NoAnswer | Slices | None]
"""Takes a request. Returns its response (or NO_ANSWER), or None when `call.answer(...)` comes later. One that
may take long is a generator that yields every few milliseconds, and returns that at its end.

Synchronous, on the loop's thread; asynchronous work is started with `Services.spawn`. `call.api_version` is
within the version range of the message class. An exception is contained: logged with its traceback, and
answered by closing the connection.
"""


class KnownTopic(Protocol):
    """A topic that exists."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def partitions(self) -> int:
        """Their number."""

    @property
    def id(self) -> bytes:
        """Changes when a topic is deleted and created again under the same name."""


class TopicDirectory(Protocol):
    """The topics that exist. Answers at once, from memory."""

    def describe(self, name: str) -> KnownTopic | None:
        """The topic; None: there is none, as far as is known."""

    def describe_id(self, topic_id: bytes) -> KnownTopic | None:
        """Likewise the topic that has this id."""


FindTopics = Callable[[Sequence[str]], Coroutine[Any, Any, None]]
"""Asks the cluster whether these topics exist; afterwards the directory of topics has the answer. Raises
KafkaError while the cluster cannot be asked."""

FindTopicIds = Callable[[Sequence[bytes]], Coroutine[Any, Any, None]]
"""Likewise whether topics with these ids exist."""


@dataclass(slots=True, kw_only=True)
class Services:
    """Everything a handler may use."""

    settings: Settings
    runtime: GroupRuntime
    topics: TopicDirectory
    node_id: int
    cluster_id: str
    spawn: Callable[[Call | None, Coroutine[Any, Any, None]], None]
    """Run a coroutine in the node's task group. With a call: cancelled when the call's peer goes away, and an
    exception is logged and closes the call. Without: it lives as long as the node."""
    authorizer: Authority
    """Asked by every handler, through `may`."""
    now_ms: Clock = monotonic_ms
    wall_ms: WallClock = wall_ms
    cluster: Nodes | None = None
    """Of several nodes; None: this one is the only one."""
    find_topics: FindTopics | None = None
    """Where topics live elsewhere. None: `topics` knows all there are."""
    find_topic_ids: FindTopicIds | None = None
    """Likewise."""
    security: Security | None = None
    """Users, ACLs and quotas that clients may change; None: they are not kept, and their APIs not served."""
    telemetry: Telemetry | None = None
    """The values that clients tell of themselves; None: they are not asked to."""
    audit: Audit | None = None
    """Where refusals are noted."""
    withheld: frozenset[str] = frozenset()
    """Topics that no client may use, whatever ACLs say."""
    withheld_ids: str = ""
    """Prefix of transactional ids that no client may use either; "": there are none."""

    @property
    def run_queue(self) -> RunQueue:
        """For what is long and not in the handler itself."""
        return self.runtime.run_queue

    def may(
        self,
        call: Call | Part,
        operation: Operation,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        quietly: bool = False,
    ) -> bool:
        """Whether the caller may do that to the resource. A refusal is noted, unless `quietly`: where Kafka
        leaves out what the caller may not see, or checks another right instead."""
        if name in self.withheld and kind == ResourceType.TOPIC:
            return False
        principal, host = call.connection.principal, call.client_host[1:]
        if self.authorizer.authorize(principal, host, operation, kind, name):
            return True
        if self.audit is not None and not quietly:
            self.audit.refused(call, operation, kind, name)
        return False

    def see_through(self, call: Call, coroutine: Coroutine[Any, Any, None]) -> None:
        """`spawn`, but the work goes on when the caller is gone: a change is made, and noted."""
        self.spawn(call, coroutine)
        call.on_closed = None

    def changed(self, call: Call, event: str, subject: str, detail: str = "") -> None:
        """Note a change and its caller; see `Audit.changed`."""
        if self.audit is not None:
            self.audit.changed(call, event, subject, detail)

    def operations(self, call: Call, kind: ResourceType, name: str, everything: int) -> int:
        """The caller's rights on the resource, as bits (KIP-430); `everything` where no ACLs are kept."""
        if self.authorizer.is_open:
            return everything
        principal, host = call.connection.principal, call.client_host[1:]
        return self.authorizer.authorized_operations(principal, host, kind, name)

    def cluster_operations(self, call: Call, everything: int) -> int:
        """Likewise on the cluster; 0 for a caller that may not describe it."""
        if not self.may(call, Operation.DESCRIBE, ResourceType.CLUSTER):
            return 0
        return self.operations(call, ResourceType.CLUSTER, CLUSTER_NAME, everything)

    def may_some(self, call: Call, operation: Operation, kind: ResourceType) -> bool:
        """Whether the caller may do that to any resource of the kind."""
        principal, host = call.connection.principal, call.client_host[1:]
        return self.authorizer.authorize_by_resource_type(principal, host, operation, kind)

    @property
    def is_open(self) -> bool:
        """Whether every caller may do everything."""
        return self.authorizer.is_open

    async def mapped(self) -> None:
        """See `Nodes`."""
        if self.cluster is not None:
            await self.cluster.mapped()

    def directory_for(self, call: Call) -> Directory:
        """The nodes and the owners of partitions, as seen through the call's listener."""
        listener = call.connection.listener
        if self.cluster:
            return self.cluster.through(listener.name)
        return OnlyNode(NodeAddress(self.node_id, *listener.advertised, self.settings.broker_rack or None))


@dataclass(slots=True, kw_only=True)
class LocalServices(Services):
    """Those of a node that keeps topics and transactions itself."""

    topics: Topics
    transactions: TransactionRuntime


def once(entries: Sequence[T], key: Callable[[T], Hashable]) -> list[tuple[T, bool]]:
    """Each entry of a request once, the last of a key, and whether it was there more than once."""
    counts = Counter(map(key, entries))
    return [(entry, counts[name] > 1) for name, entry in {key(entry): entry for entry in entries}.items()]


def set_error(result: Any, error: KafkaError) -> None:
    """Put an error and its message into one result of an answer."""
    result.error_code, result.error_message = error.code, error.detail or None
