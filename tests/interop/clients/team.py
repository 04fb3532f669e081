"""One group on one topic, as most of these tests have it."""

from __future__ import annotations

from tests.interop.clients.java_clients import JavaClients, JavaMember, JavaProducer
from tests.interop.clients.watch import WatchBoard
from tests.support.daemon import Daemon
from tests.support.members import Board

TOPIC = "orders"
PARTITIONS = 6
GROUP = "team"
ALL = tuple(range(PARTITIONS))
EACH = 5
"""Records that `produce` puts into each partition."""

ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class MakeMember:
    """Makes members of the group; further `options` in Kafka's names with _ for the dots."""

    def __init__(self, daemon: Daemon, java_clients: JavaClients) -> None:
        self._daemon = daemon
        self._java = java_clients

    def __call__(
        self,
        board: WatchBoard,
        name: str,
        assignor: str = "range",
        *,
        java: JavaClients | None = None,
        commit_on_revoke: bool = False,
        ends_with: str = "",
        **options: object,
    ) -> JavaMember:
        config = {"partition.assignment.strategy": ",".join(ASSIGNORS[one] for one in assignor.split(","))}
        config |= {key.replace("_", "."): str(value) for key, value in options.items()}
        return JavaMember(
            board,
            java or self._java,
            self._daemon.bootstrap,
            GROUP,
            TOPIC,
            name,
            config,
            commit_on_revoke=commit_on_revoke,
            ends_with=ends_with,
        )


async def produce(java_clients: JavaClients, daemon: Daemon, each: int = EACH) -> list[tuple[int, int]]:
    """A few records into every partition; their places."""
    async with JavaProducer(java_clients, daemon.bootstrap) as producer:
        return await producer.send(TOPIC, [(n % PARTITIONS, str(n)) for n in range(each * PARTITIONS)])


def balanced(board: Board, members: int) -> bool:
    """Whether `members` members share all partitions equally."""
    owned = [set(of) for of in board.owned.values() if of is not None]
    together = set().union(*owned) if owned else set()
    return [len(of) for of in owned] == [PARTITIONS // members] * members and together == set(ALL)
