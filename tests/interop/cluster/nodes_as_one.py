"""Two nodes where a test expects a daemon: what it does to that happens to the node that has the group."""

from __future__ import annotations

from pathlib import Path

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.descriptions import GroupDescription
from ringleader.protocol.messages import LeaveGroupRequest
from ringleader.protocol.messages import LeaveGroupRequestMemberIdentity as MemberIdentity
from tests.chaos import asking
from tests.chaos.targets import Node
from tests.support.daemon import TRACEBACK, Daemon, DaemonError

OPTIONS = (
    *("--cluster-replication-factor", "1", "--offsets-topic-num-partitions", "4"),
    *("--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "100"),
)


class NodesAsOne(Daemon):
    """Before one broker, with a groups' topic named after `name`. `group`: whose owner is killed, stopped and
    started again."""

    def __init__(self, directory: Path, brokers: str, name: str, group: str) -> None:
        flags = ("--cluster-groups-topic", "--cluster-group-id", "--cluster-transactional-id-prefix")
        options = [*OPTIONS, *(word for flag in flags for word in (flag, f"__{name}"))]
        self.nodes = {
            node_id: Node(directory / f"{name}-{node_id}", brokers, node_id, options) for node_id in (1, 2)
        }
        self._group = group
        self._log_from = dict.fromkeys(self.nodes, 0)
        super().__init__(directory)

    @property
    def bootstrap(self) -> str:
        """Of both."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def owner(self) -> int:
        """The node that has the group."""
        found: list[int] = []

        def known() -> bool:
            owner = asking.coordinator(self.bootstrap, self._group)
            found.extend([] if owner is None else [owner])
            return bool(found)

        asking.until(known, f"the owner of {self._group}")
        return found[0]

    def log(self) -> str:
        """Of both since `begin_anew`, by time."""
        lines = [
            line
            for node_id, node in self.nodes.items()
            for line in node.log()[self._log_from[node_id] :].splitlines()
        ]
        return "\n".join(sorted(lines))

    def start(self, **_options: object) -> Daemon:
        """Start the processes that do not run."""
        for node in self.nodes.values():
            if not node.running:
                node.start()
        return self

    def kill(self) -> None:
        """SIGKILL to the owner."""
        self.nodes[self.owner].kill()

    def stop(self) -> None:
        """SIGTERM to the owner, and wait for its clean stop."""
        self.nodes[self.owner].stop()

    def end(self) -> None:
        """SIGKILL to both."""
        for node in self.nodes.values():
            node.kill()

    def check(self) -> None:
        """Raises `DaemonError` for a node that logged a traceback."""
        if TRACEBACK in (log := self.log()):
            raise DaemonError(f"logged a traceback:\n{log}")

    async def begin_anew(self, topics: dict[str, int]) -> None:
        """Without groups, topics and log lines of the test before; these topics are there, empty."""
        async with Admin(self.bootstrap) as admin:
            names = [group.group_id for group in await admin.list_groups()]
            for group in await admin.describe_groups(names):
                await self._leave(group)
            await admin.delete_groups(names)
            there = {topic.name for topic in await admin.list_topics() if not topic.internal}
            await admin.delete_topics([name for name in there if not name.startswith("__")])
            for name, partitions in topics.items():
                await admin.create_topic(name, partitions)
        self._log_from = {node_id: len(node.log()) for node_id, node in self.nodes.items()}

    async def _leave(self, group: GroupDescription) -> None:
        """For its static members, who stay when they are closed."""
        members = [MemberIdentity(one.member_id, one.group_instance_id) for one in group.members]
        if members:
            async with Cluster(self.bootstrap) as cluster:
                coordinator = await cluster.coordinator(group.group_id)
                await cluster.send(coordinator, plain(LeaveGroupRequest(group.group_id, members=members)))
