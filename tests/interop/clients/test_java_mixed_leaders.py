"""Mixed groups agree, on Apache Kafka and on Ringleader: with any leader every partition is owned once, the
shares are even, and the next leader moves only the partitions that have to move."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from ringleader.clients.admin import Admin
from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.mixed import KAFKA_PYTHON, LIBRARIES, OURS, Mixed, OurMember
from tests.interop.kafka import KafkaBroker
from tests.support.daemon import Daemon
from tests.support.members import Stage

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("sockets_forgotten"),
]
"""kafka-python forgets the socket of a connection that is made while its consumer is closed."""

PARTITIONS = 6
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def ringleader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = ["--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "100"]
    with Daemon(tmp_path_factory.mktemp("daemon"), options=options) as daemon:
        yield daemon.bootstrap


@pytest.fixture(params=["kafka", "ringleader"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Of Apache Kafka, and of our daemon."""
    found: str = request.getfixturevalue(request.param)
    return found


async def mixed(java_clients: JavaClients, bootstrap: str, assignor: str) -> Mixed:
    """A new group on a new topic."""
    number = next(_numbers)
    async with Admin(bootstrap) as admin:
        await admin.create_topic(f"topic-{number}", PARTITIONS)
    return Mixed(java_clients, bootstrap, f"group-{number}", f"topic-{number}", assignor)


async def leads(group: Mixed, leader: str) -> None:
    """All libraries in one group; this one came first, so it leads."""
    everybody = LIBRARIES[group.assignor]
    async with Stage() as stage:
        await stage.enter(group.member(leader))
        assert await group.until_shared(1, PARTITIONS) == {leader: set(range(PARTITIONS))}
        others = {library: group.member(library) for library in everybody if library != leader}
        for member in others.values():
            await stage.enter(member)
        shares = await group.until_shared(len(everybody), PARTITIONS)
        ours = others.get(OURS)
        if isinstance(ours, OurMember):
            held = ours.member.assigned
            assert held is not None
            assert held.leader_id == (await group.ids())[leader]
        if group.assignor in ("range", "roundrobin"):  # nothing but the members' ids decides
            assert shares == await group.computed(PARTITIONS)


@pytest.mark.parametrize("assignor", LIBRARIES)
async def test_with_any_leader_every_member_has_its_share(
    java_clients: JavaClients, bootstrap: str, assignor: str
) -> None:
    groups = [(await mixed(java_clients, bootstrap, assignor), one) for one in LIBRARIES[assignor]]
    async with asyncio.TaskGroup() as together:
        for group, leader in groups:
            together.create_task(leads(group, leader))


async def hands_over(group: Mixed, first: str, then: str) -> None:
    """A leader of one library, then two members of another; the leader leaves, so one of these leads; then a
    member of the first library comes again.

    kafka-python's own sticky assignor does not understand what other members say that they own."""
    deaf = group.assignor == "sticky" and first == KAFKA_PYTHON
    async with Stage() as stage:
        leader = group.member(first)
        await stage.enter(leader)
        before = await group.until_shared(1, PARTITIONS)
        for number in (2, 3):
            await stage.enter(group.member(then, f"{then}-{number}"))
            after = await group.until_shared(number, PARTITIONS)
            # Nobody gets anything but the newcomer.
            assert deaf or all(after[name] < share for name, share in before.items())
            before = after
        await stage.exit(leader)
        after = await group.until_shared(2, PARTITIONS)
        assert after.keys() == before.keys() - {first}
        assert all(before[name] < share for name, share in after.items())
        before = after
        await stage.enter(group.member(first, "again"))
        after = await group.until_shared(3, PARTITIONS)
        assert all(after[name] < share for name, share in before.items())
        assert after["again"] == set(range(PARTITIONS)) - set().union(*(after[name] for name in before))


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
async def test_a_leader_of_another_library_moves_no_more_than_it_must(
    java_clients: JavaClients, bootstrap: str, assignor: str
) -> None:
    foreign = [library for library in LIBRARIES[assignor] if library != OURS]
    turns = [pair for library in foreign for pair in ((library, OURS), (OURS, library))]
    groups = [(await mixed(java_clients, bootstrap, assignor), *turn) for turn in turns]
    async with asyncio.TaskGroup() as together:
        for group, first, then in groups:
            together.create_task(hands_over(group, first, then))
