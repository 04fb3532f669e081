"""Members of all libraries for one mixed group: ours, Java's, librdkafka's, kafka-python's, aiokafka's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from ringleader.clients.assignors import ASSIGNORS, AssignorMember
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.kafka_python import CooperativeSticky, Sticky
from ringleader.clients.model import Assigned, Lost, Revoked
from ringleader.protocol.embedded import Assignment
from tests.interop.clients.java_clients import JavaClients, JavaMember
from tests.interop.clients.python_members import (
    HEARTBEAT_MS,
    SESSION_MS,
    WatchedAiokafka,
    WatchedConfluent,
    WatchedKafkaPython,
)
from tests.interop.clients.watch import WatchBoard, described
from tests.support.members import Actor

OURS, JAVA, CONFLUENT, KAFKA_PYTHON, AIOKAFKA = "ours", "java", "confluent", "kafka-python", "aiokafka"
PLUGGED = "kafka-python with ours"
"""A member of kafka-python with our assignor."""

LIBRARIES = {
    "range": (OURS, JAVA, CONFLUENT, KAFKA_PYTHON, AIOKAFKA),
    "roundrobin": (OURS, JAVA, CONFLUENT, KAFKA_PYTHON, AIOKAFKA),
    "sticky": (OURS, JAVA, KAFKA_PYTHON, PLUGGED, AIOKAFKA),
    "cooperative-sticky": (OURS, JAVA, CONFLUENT, KAFKA_PYTHON, PLUGGED),
}
"""The libraries that have an assignor of this name."""

_JAVA = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
_KAFKA_PYTHON = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
_PLUGS = {"sticky": Sticky, "cooperative-sticky": CooperativeSticky}
_AIOKAFKA = {"range": AiokafkaRange, "roundrobin": AiokafkaRoundRobin, "sticky": AiokafkaSticky}


class OurMember:
    """One of our members, for the stage."""

    def __init__(
        self, board: WatchBoard, bootstrap: str, group: str, topic: str, name: str, assignor: str
    ) -> None:
        self.name = name
        self._board = board
        self._owned: set[int] = set()
        self.member: GroupMember = consumer_member(
            bootstrap,
            group,
            [topic],
            assignors=[assignor],
            client_id=name,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            on_assigned=self._assigned,
            on_revoked=self._taken,
            on_lost=self._taken,
        )

    async def join(self) -> None:
        """Start; the assignment shows on the board."""
        await self.member.start()

    async def leave(self) -> None:
        """Leave the group."""
        await self.member.stop()
        self._board.owns(self.name, None)

    def _assigned(self, share: Assigned) -> None:
        self._owned = {partition for _, partition in partitions_of(share)}
        self._board.owns(self.name, self._owned)

    def _taken(self, share: Revoked | Lost) -> None:
        moving = Assignment.decode(share.assignment).partitions if share.assignment else {}
        self._owned -= {partition for partitions in moving.values() for partition in partitions}
        self._board.owns(self.name, self._owned)


class Mixed:
    """Makes the members of one group on one topic."""

    def __init__(
        self, java_clients: JavaClients, bootstrap: str, group: str, topic: str, assignor: str
    ) -> None:
        self.board = WatchBoard()
        self.group = group
        self.topic = topic
        self.assignor = assignor
        self.bootstrap = bootstrap
        self._java = java_clients

    def member(self, library: str, name: str = "") -> Actor:
        """A member; its name is that of its library unless another is given."""
        name = name or library
        where = (self.board, self.bootstrap, self.group, self.topic, name)
        confluent: dict[str, Any] = {"partition.assignment.strategy": self.assignor}
        makers: dict[str, Callable[[], Actor]] = {
            OURS: lambda: OurMember(*where, self.assignor),
            JAVA: lambda: JavaMember(self.board, self._java, *where[1:], {
                "partition.assignment.strategy": f"org.apache.kafka.clients.consumer.{_JAVA[self.assignor]}",
            }),
            CONFLUENT: lambda: WatchedConfluent(*where, **confluent),
            KAFKA_PYTHON: lambda: WatchedKafkaPython(
                *where, partition_assignment_strategy=(_KAFKA_PYTHON[self.assignor],)
            ),
            PLUGGED: lambda: WatchedKafkaPython(
                *where, partition_assignment_strategy=(_PLUGS[self.assignor],)
            ),
            AIOKAFKA: lambda: WatchedAiokafka(*where, partition_assignment_strategy=(self._aiokafka(),)),
        }  # fmt: skip
        return makers[library]()

    def _aiokafka(self) -> Any:
        """Its sticky assignor keeps its state in the class: a class for each member, or they mix it up."""
        return type("Own", (_AIOKAFKA[self.assignor],), {"member_assignment": None})

    def owned(self) -> dict[str, set[int]]:
        """The partitions that the members own now."""
        return {name: set(ps) for name, ps in self.board.owned.items() if ps is not None}

    async def until_shared(self, members: int, partitions: int) -> dict[str, set[int]]:
        """Wait until `members` members own every partition once, as evenly as can be; returns the owners."""
        sizes = sorted(len(range(number, partitions, members)) for number in range(members))

        def holds(_: object) -> bool:
            shares = list(self.owned().values())
            every = sorted(partition for share in shares for partition in share)
            return sorted(map(len, shares)) == sizes and every == list(range(partitions))

        await self.board.until(holds)
        return self.owned()

    async def ids(self) -> dict[str, str]:
        """Member id by the member's name."""
        return {one.client_id: one.member_id for one in (await described(self.bootstrap, self.group)).members}

    async def computed(self, partitions: int) -> dict[str, set[int]]:
        """The partitions that our assignor of this name gives members with these ids."""
        ids = await self.ids()
        members = [AssignorMember(member_id, topics=[self.topic]) for member_id in ids.values()]
        shares = ASSIGNORS[self.assignor].assign(members, {self.topic: partitions})
        return {name: set(shares[member_id].get(self.topic, ())) for name, member_id in ids.items()}
