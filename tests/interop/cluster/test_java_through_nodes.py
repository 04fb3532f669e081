"""Java clients and Kafka's console tools through nodes. Where the daemon's own tests restart it, here the
node that has the group ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.interop.clients import test_java_groups as groups
from tests.interop.clients import test_java_static as static
from tests.interop.clients import test_java_transactions as transactions
from tests.interop.clients.java_clients import JavaClients, JavaError
from tests.interop.clients.team import ALL, EACH, GROUP, PARTITIONS, TOPIC, MakeMember, balanced, produce
from tests.interop.clients.test_java_console import EMPTY, Console
from tests.interop.clients.test_java_transactions import Works
from tests.interop.clients.watch import WatchBoard
from tests.interop.cluster.nodes_as_one import NodesAsOne
from tests.interop.cluster.test_relay_transactions import until_committed
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.members import Stage


@pytest.fixture(scope="module")
def java_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    """One JVM for all."""
    with JavaClients(tmp_path_factory.mktemp("java") / "java.log") as running:
        yield running


@pytest.fixture(scope="module")
def _nodes(tmp_path_factory: pytest.TempPathFactory, _one_broker: KafkaCluster) -> Iterator[NodesAsOne]:
    nodes = NodesAsOne(tmp_path_factory.mktemp("nodes"), _one_broker.bootstrap, "java", GROUP)
    try:
        yield nodes
    finally:
        nodes.end()


@pytest.fixture
async def daemon(_nodes: NodesAsOne, one_broker: KafkaCluster) -> AsyncIterator[NodesAsOne]:
    """Both nodes, in the place of the daemon of the tests below."""
    await asyncio.to_thread(_nodes.start)
    await _nodes.begin_anew({TOPIC: PARTITIONS})
    yield _nodes
    _nodes.check()


@pytest.fixture
def member(daemon: NodesAsOne, java_clients: JavaClients) -> MakeMember:
    """Makes Java members."""
    return MakeMember(daemon, java_clients)


test_eager_members_come_and_go = groups.test_eager_members_come_and_go
test_cooperative_members_keep_what_stays = groups.test_cooperative_members_keep_what_stays
test_a_move_to_another_node_goes_unnoticed = groups.test_a_restart_of_the_daemon_goes_unnoticed
test_a_static_member_comes_back_to_another_node = (
    static.test_a_restart_finds_its_place_after_a_crash_of_the_daemon_and_keeps_it
)

topics, works = transactions.topics, transactions.works
test_output_and_offsets_appear_together = transactions.test_output_and_offsets_appear_together_at_the_commit
test_nothing_is_left_of_an_aborted_transaction = (
    transactions.test_nothing_is_left_of_an_aborted_transaction_but_what_comes_after_it
)
test_the_next_producer_of_an_id_fences_the_one_before = (
    transactions.test_the_next_producer_of_the_same_id_fences_the_one_before_it
)
test_a_member_that_lost_its_partitions_cannot_commit_their_offsets = (
    transactions.test_a_member_that_lost_its_partitions_cannot_commit_their_offsets
)
test_transactions_of_two_workers_outlive_the_owner = (
    transactions.test_transactions_of_two_workers_outlive_a_crash_of_the_daemon
)


@pytest.mark.usefixtures("topics")
async def test_offsets_are_sent_to_the_heir_of_an_owner_that_died(daemon: NodesAsOne, works: Works) -> None:
    """In the middle of a transaction, before its offsets are sent."""
    board = WatchBoard()
    async with (
        works.worker(board, "mover", metadata_recovery_strategy="none") as worker,
        works.reader(board, "careful", "read_committed"),
    ):
        await board.until(lambda now: now.owned.get("mover") == ALL)
        await worker.begin(1)
        await worker.producer.call("commit")
        await worker.producer.call("begin")
        await worker.producer.send(transactions.OUT, [(0, "alone")])
        await asyncio.to_thread(daemon.kill)
        await worker.send_offsets(ALL, EACH)
        await worker.producer.call("commit")
        assert await worker.reader.committed(ALL) == [EACH] * PARTITIONS
        await board.until(lambda _: len(board.values.get("careful", ())) == PARTITIONS + 1)


@pytest.mark.usefixtures("topics")
async def test_offsets_that_an_owner_left_count_only_when_they_are_sent_again(
    daemon: NodesAsOne, works: Works
) -> None:
    """Its heir cannot tell whether they are of the transaction that is open, or of one that was aborted."""
    board = WatchBoard()
    async with works.worker(
        board, "mover", metadata_recovery_strategy="none", metadata_max_age_ms=500
    ) as worker:
        await board.until(lambda now: now.owned.get("mover") == ALL)
        await worker.begin(1)
        await asyncio.to_thread(daemon.kill)
        with pytest.raises(JavaError) as error:
            await worker.send_offsets(ALL[1:], 2)
        assert error.value.error == "CommitFailedException"
        await worker.producer.call("abort")
        assert await worker.reader.committed(ALL) == [None] * PARTITIONS
        await worker.begin(3)
        await asyncio.to_thread(daemon.start)
        await asyncio.to_thread(daemon.kill)
        await worker.send_offsets(ALL, 3)
        await worker.producer.call("commit")
        # The reader may know none but the node that died: it is not asked.
        await until_committed(daemon.bootstrap, GROUP, 3 * PARTITIONS)


@pytest.fixture
async def console(daemon: NodesAsOne, java_clients: JavaClients) -> Console:
    """The tools."""
    found = Console(daemon.bootstrap, java_clients)
    await found.open()
    return found


async def test_topics_and_their_configs(console: Console) -> None:
    made = await console.lines(
        "kafka-topics --create --topic made --partitions 2 --replication-factor 1 --config retention.ms=70000"
    )
    assert made == ["Created topic made."]
    assert {"made", TOPIC} <= set(await console.lines("kafka-topics --list"))
    await console.lines("kafka-topics --alter --topic made --partitions 4")
    head, *partitions = await console.lines("kafka-topics --describe --topic made")
    assert "PartitionCount: 4\tReplicationFactor: 1" in head
    assert "retention.ms=70000" in head.split("Configs: ")[1].split(",")
    shown = [line.strip().split("\t")[1:5] for line in partitions]
    assert [line[0] for line in shown] == [f"Partition: {number}" for number in range(4)]
    for _, leader, replicas, in_sync in shown:  # nodes, in the place of the broker
        node = leader.removeprefix("Leader: ")
        assert node in ("1", "2")
        assert (replicas, in_sync) == (f"Replicas: {node}", f"Isr: {node}")
    await console.lines("kafka-configs --alter --topic made --add-config retention.ms=5000")
    _, *configs = await console.lines("kafka-configs --describe --topic made")
    assert "retention.ms=5000" in [line.split()[0] for line in configs]
    await console.lines("kafka-topics --delete --topic made")
    assert "made" not in await console.lines("kafka-topics --list")


async def test_what_one_console_writes_the_other_reads_in_its_group(
    daemon: NodesAsOne, console: Console
) -> None:
    words = [f"word {number}" for number in range(20)]
    await console.alone(f"kafka-console-producer --topic {TOPIC}", stdin="\n".join(words[:15]) + "\n")
    reading = f"kafka-console-consumer --topic {TOPIC} --group {GROUP} --from-beginning --max-messages"
    out, err = await console.alone(f"{reading} 15")
    assert sorted(out.splitlines()) == sorted(words[:15])
    assert "Processed a total of 15 messages" in err
    # It has committed when it ended: the next one goes on from there, at another node.
    await asyncio.to_thread(daemon.kill)
    await console.alone(f"kafka-console-producer --topic {TOPIC}", stdin="\n".join(words[15:]) + "\n")
    out, _ = await console.alone(f"{reading} 5")
    assert sorted(out.splitlines()) == sorted(words[15:])


async def test_groups_are_listed_described_reset_and_deleted(
    daemon: NodesAsOne, java_clients: JavaClients, member: MakeMember, console: Console
) -> None:
    board = WatchBoard()
    group = f"kafka-consumer-groups --group {GROUP}"
    async with Stage() as stage:
        first = member(board, "a")
        await stage.enter(first)
        await stage.enter(member(board, "b", group_instance_id="fixed"))
        await board.until(lambda now: balanced(now, 2))
        # Not before: what the first one reads while it is alone, it reads again.
        await board.until_read(len(await produce(java_clients, daemon, 3)))
        await first.commit()
        mine = board.owned["a"] or ()
        rows = await console.table("kafka-consumer-groups --list --state")
        assert rows == [{"GROUP": GROUP, "STATE": "Stable"}]
        offsets = await console.table(f"{group} --describe")
        assert {int(row["PARTITION"]): row["CURRENT-OFFSET"] for row in offsets} == {
            partition: "3" if partition in mine else "-" for partition in ALL
        }
        (line,) = await console.table(f"{group} --describe --state")
        assert (line["STATE"], line["#MEMBERS"], line["ASSIGNMENT-STRATEGY"]) == ("Stable", "2", "range")
        owner = daemon.owner
        assert line["COORDINATOR (ID)"].split() == [daemon.nodes[owner].bootstrap, f"({owner})"]
        _, out, err = await console.run(f"{group} --delete")
        assert "GroupNotEmptyException" in out + err
    await java_clients.call("admin", "remover", config={"bootstrap.servers": daemon.bootstrap})
    await java_clients.call("remove", "remover", group=GROUP, instance="fixed", reason="it is over")
    await java_clients.call("close", "remover")
    await console.lines(f"{group} --reset-offsets --topic {TOPIC} --to-earliest --execute")
    await console.lines(f"{group} --reset-offsets --topic {TOPIC}:0 --shift-by 2 --execute")
    deleted = await console.lines(f"{group} --delete-offsets --topic {TOPIC}:1")
    assert deleted[-1].split() == [TOPIC, "1", "Successful"]
    code, out, err = await console.run(f"{group} --describe")
    assert (code, EMPTY.format(GROUP) in err) == (0, True)
    found = [line.split() for line in out.splitlines() if line.startswith(GROUP)]
    expected = {0: "2"} | dict.fromkeys(ALL[2:], "0")
    assert {int(row[2]): row[3] for row in found} == expected
    await console.lines(f"{group} --delete")
    assert await console.lines("kafka-consumer-groups --list") == []
