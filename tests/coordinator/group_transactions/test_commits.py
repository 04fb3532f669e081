"""Offsets in a transaction count for that transaction alone: the cluster is asked before they are written and
once more behind them. The brokers of a test do not tell how transactions stand: a script does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from ringleader.clients.errors import RetriableError
from ringleader.coordinator.config import Settings
from ringleader.coordinator.group_transactions import handlers
from ringleader.coordinator.group_transactions.handlers import ONGOING
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.relay.transactions import Coordinated
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.testing import Coordinator
from tests.support.cluster_nodes import Lines, Nodes
from tests.support.served import Client, connected, until

GROUPS = Settings.model_fields["cluster_groups_topic"].default
PRODUCER = 7
State = kafka.DescribeTransactionsResponseTransactionState


def state(start_ms: int, epoch: int = 0, producer_id: int = PRODUCER, name: str = ONGOING) -> State:
    """How the transaction stands, with every partition of the groups in it."""
    topic = kafka.DescribeTransactionsResponseTopicData(GROUPS, list(range(50)))
    return State(
        transaction_state=name,
        transaction_start_time_ms=start_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[topic],
    )


Script = list[State | Exception]
"""The answers of the transaction's coordinator, one after the other."""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """In the place of the cluster."""
    answers: Script = []

    async def describe(_coordinated: Coordinated, _transactional_id: str) -> State:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Coordinated, "describe", describe)
    monkeypatch.setattr(handlers, "AGAIN_S", 0.001)
    return answers


@pytest.fixture
def brokers() -> Iterator[Coordinator]:
    """One of ours stands for them."""
    with Coordinator(topics={"orders": 3, GROUPS: 50}) as made:
        yield made


@pytest.fixture
async def client(brokers: Coordinator, script: Script) -> AsyncIterator[Client]:
    """Of a node before them."""
    async with Nodes(brokers, Lines()) as nodes:
        node = await nodes.start(101)
        async with connected(node.host, node.port) as made:
            yield made


async def commit(client: Client, offset: int, epoch: int = 0, partition: int = 0) -> int:
    """The error code of an offset of orders, committed in the transaction."""
    part = kafka.TxnOffsetCommitRequestPartition(partition, offset)
    topic = kafka.TxnOffsetCommitRequestTopic("orders", [part])
    request = kafka.TxnOffsetCommitRequest("mover", "g", PRODUCER, epoch, topics=[topic])
    answer = await client.call(request, 3)
    return int(answer.topics[0].partitions[0].error_code)


async def is_pending(client: Client) -> bool:
    """Whether a transaction has an offset of the group."""
    topic = kafka.OffsetFetchRequestTopic("orders", [0])
    request = kafka.OffsetFetchRequest("g", [topic], require_stable=True)
    answer = await client.call(request, 7)
    [part] = answer.topics[0].partitions
    assert part.committed_offset == -1
    return bool(part.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT)


async def test_offset_waits_for_the_end_of_its_transaction(client: Client, script: Script) -> None:
    script += [state(100), state(100)]
    assert await commit(client, 5) == 0
    assert await is_pending(client)


@pytest.mark.parametrize(
    ("behind", "code"),
    [
        (state(200), ErrorCode.INVALID_TXN_STATE),
        (state(100, name="PrepareCommit"), ErrorCode.INVALID_TXN_STATE),
        (state(100, epoch=1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (state(100, producer_id=8), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
    ids=["next transaction", "ends", "fenced", "another producer"],
)
async def test_offset_written_when_its_transaction_was_over_does_not_count_for_the_next(
    behind: State, code: ErrorCode, client: Client, script: Script
) -> None:
    script += [state(100), behind]
    assert await commit(client, 5) == code
    assert not await is_pending(client)


async def test_doubt_is_asked_again(client: Client, script: Script) -> None:
    script += [state(100), *[RetriableError("away")] * 3, state(100)]
    assert await commit(client, 5) == 0
    assert await is_pending(client)


async def test_what_may_have_come_too_late_is_settled_by_the_next_commit(
    client: Client, script: Script
) -> None:
    """Else it would count in the transaction of a commit of another offset."""
    script += [state(100), *[RetriableError("away")] * handlers.ATTEMPTS]
    assert await commit(client, 5) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    script += [state(200)]
    assert await commit(client, 6, partition=1) == ErrorCode.ILLEGAL_GENERATION
    script += [state(200)] * 4
    assert await commit(client, 7) == 0
    assert await commit(client, 8, partition=1) == 0


async def test_what_a_late_log_may_take_later_is_settled_by_the_next_commit(
    brokers: Coordinator, script: Script
) -> None:
    """It comes when its transaction may be over."""
    async with Nodes(brokers, Lines()) as nodes:
        node = await nodes.start(101, storage_timeout_ms=1_000)
        store, held = nodes.stores[101], partition_for("g")
        async with connected(node.host, node.port) as client:
            store.hold(held)
            script += [state(100)]
            assert await commit(client, 5) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            store.resume(held)
            await until(lambda: bool(nodes.shared.rows[held]))
            script += [state(200)]
            assert await commit(client, 6, partition=1) == ErrorCode.ILLEGAL_GENERATION
            script += [state(200)] * 2
            assert await commit(client, 7) == 0


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (state(100, name="CompleteAbort"), ErrorCode.INVALID_TXN_STATE),
        (state(100, epoch=3), ErrorCode.INVALID_PRODUCER_EPOCH),
        (RetriableError("away"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
    ids=["over", "fenced", "away"],
)
async def test_without_an_open_transaction_nothing_is_written(
    before: State | Exception, code: ErrorCode, client: Client, script: Script
) -> None:
    script += [before]
    assert await commit(client, 5) == code
    assert not await is_pending(client)


@pytest.mark.parametrize("version", range(4))
async def test_a_client_is_told_an_error_that_its_version_knows(
    version: int, client: Client, script: Script
) -> None:
    script += [KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    part = kafka.TxnOffsetCommitRequestPartition(0, 5)
    topic = kafka.TxnOffsetCommitRequestTopic("orders", [part])
    answer = await client.call(kafka.TxnOffsetCommitRequest("mover", "g", PRODUCER, topics=[topic]), version)
    known = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    expected = known if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.topics[0].partitions[0].error_code == expected


@pytest.mark.leaves("a fault of ours")
async def test_a_commit_that_raises_closes_its_connection(client: Client, script: Script) -> None:
    script += [RuntimeError("a fault of ours")]
    part = kafka.TxnOffsetCommitRequestPartition(0, 5)
    topic = kafka.TxnOffsetCommitRequestTopic("orders", [part])
    client.send(kafka.TxnOffsetCommitRequest("mover", "g", PRODUCER, topics=[topic]), 3)
    assert await client.rest() == b""


@pytest.fixture
async def heir(brokers: Coordinator, script: Script) -> AsyncIterator[Client]:
    """Of a node that has found an offset of orders-0 that an owner before it wrote for the producer."""
    async with Nodes(brokers, Lines()) as nodes:
        key = records.pending_key("g", "orders", 0, PRODUCER)
        row = (0, 0, key, records.offset_value(3, -1, "", 0, -1))
        nodes.shared.rows[partition_for("g")].append(row)
        node = await nodes.start(101)
        async with connected(node.host, node.port) as made:
            yield made


async def write(client: Client, script: Script, *parts: tuple[int, str], group_id: str = "g") -> list[int]:
    """Commit these partitions, with metadata, in an open transaction; the error codes."""
    script[:] = [state(100), state(100)]
    entries = [
        kafka.TxnOffsetCommitRequestPartition(number, 5, committed_metadata=text) for number, text in parts
    ]
    topic = kafka.TxnOffsetCommitRequestTopic("orders", entries)
    request = kafka.TxnOffsetCommitRequest("mover", group_id, PRODUCER, 0, topics=[topic])
    answer = await client.call(request, 3)
    return [one.error_code for one in answer.topics[0].partitions]


async def test_what_an_owner_before_wrote_has_to_be_written_again_first(heir: Client, script: Script) -> None:
    assert await write(heir, script, (1, "")) == [ErrorCode.ILLEGAL_GENERATION]
    assert await write(heir, script, (0, ""), (1, "")) == [0, 0]
    assert await write(heir, script, (2, "")) == [0]


async def test_a_commit_that_is_refused_in_part_settles_nothing_that_was_there(
    heir: Client, script: Script
) -> None:
    too_long = "x" * 5_000
    codes = await write(heir, script, (0, ""), (1, too_long))
    assert codes == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert await write(heir, script, (1, "")) == [ErrorCode.ILLEGAL_GENERATION]


async def test_the_same_partition_of_another_group_is_not_what_was_there(
    heir: Client, script: Script
) -> None:
    other = next(name for n in count() if partition_for(name := f"g{n}") == partition_for("g"))
    assert await write(heir, script, (0, ""), group_id=other) == [ErrorCode.ILLEGAL_GENERATION]
