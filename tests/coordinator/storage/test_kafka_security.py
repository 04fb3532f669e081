"""Users, ACLs and quotas of several nodes, on a topic of a coordinator that stands for the cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.records import SECRET_KEY, secret_record
from ringleader.coordinator.security.scram import SHA_512
from ringleader.coordinator.security.store import SECRET_BYTES
from ringleader.coordinator.storage.base import StorageError
from ringleader.coordinator.storage.kafka import TopicStore
from ringleader.coordinator.storage.kafka import security as module
from ringleader.coordinator.storage.kafka.writer import uptime_s
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.testing import Coordinator
from tests.coordinator.storage.conftest import CONFIGS
from tests.support.cluster_nodes import Lines
from tests.support.registered import ALICE, credential
from tests.support.served import until

TOPIC = "__ringleader_security"
FOLLOWED = "users, ACLs and quotas cannot be followed any more"


class Stores:
    """Of several nodes, each with its own way to the cluster."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stack = contextlib.AsyncExitStack()
        self.failures: list[Exception] = []
        self.lines = Lines()

    async def made(self) -> TopicStore:
        """One that is not started."""
        cluster = await self._stack.enter_async_context(Cluster(self._bootstrap))
        store = TopicStore(cluster, TOPIC, 1, self.failures.append, self.lines.log)
        self._stack.push_async_callback(store.close)
        return store

    async def started(self) -> TopicStore:
        """One more."""
        store = await self.made()
        await store.start()
        return store

    async def close(self) -> None:
        """All of them."""
        await self._stack.aclose()


@pytest.fixture
async def stores(kafka_cluster: Coordinator) -> AsyncIterator[Stores]:
    made = Stores(kafka_cluster.bootstrap)
    yield made
    await made.close()


async def test_a_change_at_one_node_counts_at_all_and_after_a_start(stores: Stores) -> None:
    one, other = await stores.started(), await stores.started()
    seen: list[Mapping[str, Any]] = []
    one.observe("users", seen.append)
    await one.change("users", {"alice": {"iterations": 1}, "bob": 1})
    assert one.entries("users") == {"alice": {"iterations": 1}, "bob": 1}, "at once where it was made"
    assert seen == [{"alice": {"iterations": 1}, "bob": 1}]
    await until(lambda: other.entries("users") == one.entries("users"))
    await other.change("users", {"bob": None, "nobody": None})
    await other.change("acls", {"a/b": {}})
    await until(lambda: one.entries("acls") == {"a/b": {}})
    assert one.entries("users") == other.entries("users") == {"alice": {"iterations": 1}}
    third = await stores.started()
    assert [third.entries("users"), third.entries("acls"), third.entries("quotas")] == [
        {"alice": {"iterations": 1}},
        {"a/b": {}},
        {},
    ]
    assert third.secret == one.secret
    assert third._bytes == one._bytes
    assert not stores.failures


async def test_nodes_that_start_at_once_agree_on_the_secret(stores: Stores) -> None:
    found = await asyncio.gather(*(stores.started() for _ in range(4)))
    await found[0].change("users", {"last": 1})
    await until(lambda: all(one.entries("users") for one in found))
    [secret] = {one.secret for one in found}
    assert len(secret) == SECRET_BYTES
    assert all(secret.hex() not in repr(one) + str(one) for one in found)
    assert secret.hex() not in str(stores.lines)


async def test_of_several_secrets_the_last_one_counts(kafka_cluster: Coordinator, stores: Stores) -> None:
    """The topic forgets the others when it is compacted."""
    one, last = await stores.started(), bytes(range(SECRET_BYTES))
    kafka_cluster.produce(TOPIC, secret_record(last)[1], key=SECRET_KEY)
    await until(lambda: one.secret == last)
    kafka_cluster.produce(TOPIC, None, key=SECRET_KEY)
    await one.change("users", {"alice": 1})
    assert one.secret == (await stores.started()).secret == last


async def test_a_change_is_answered_when_it_was_read_back(kafka_cluster: Coordinator, stores: Stores) -> None:
    one = await stores.started()
    kafka_cluster.faults.delay("Fetch", 0.2)
    # A request that waits at the broker already may read the first change back. The second one finds none.
    for version in (1, 2):
        await one.change("users", {"alice": version})
        assert one.entries("users") == {"alice": version}


async def test_nodes_that_change_the_same_entry_at_once_agree(stores: Stores) -> None:
    one, other = await stores.started(), await stores.started()
    both = one, other
    await asyncio.gather(
        *(both[n % 2].change("users", {"alice": n, f"user-{n}": n}) for n in range(20)),
        *(both[n % 2].change("acls", {"all": None if n % 3 else {}}) for n in range(20)),
    )
    await one.change("quotas", {"last": 1})
    await until(lambda: "last" in other.entries("quotas"))
    assert one.entries("users") == other.entries("users")
    assert one.entries("acls") == other.entries("acls")
    assert len(one.entries("users")) == 21
    again = await stores.started()
    assert again.entries("users") == one.entries("users")


async def test_a_change_goes_on_without_who_asked(stores: Stores) -> None:
    one = await stores.started()
    changing = asyncio.create_task(one.change("users", {"alice": 1}))
    await asyncio.sleep(0)
    changing.cancel()
    await until(lambda: one.entries("users") == {"alice": 1})


async def test_while_the_cluster_is_away_the_last_state_counts_and_nothing_is_changed(
    kafka_cluster: Coordinator, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHANGE_TIMEOUT_S", 0.5)
    monkeypatch.setattr(module, "TAIL_TIMEOUT_S", 0.2)
    one, other = await stores.started(), await stores.started()
    await one.change("users", {"alice": 1})
    kafka_cluster.faults.drop("Fetch", times=-1)
    kafka_cluster.faults.drop("Produce", times=-1)
    with pytest.raises(KafkaError) as refused:
        await one.change("users", {"alice": 2})
    assert refused.value.retriable
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    await until(lambda: bool(stores.lines.of("users, ACLs and quotas are not current")))
    assert one.entries("users") == {"alice": 1}
    kafka_cluster.faults.clear()
    monkeypatch.setattr(module, "CHANGE_TIMEOUT_S", 20.0)
    await other.change("users", {"bob": 2})
    await until(lambda: "bob" in one.entries("users"))
    await until(lambda: bool(stores.lines.of("users, ACLs and quotas are current")))
    assert not stores.failures


async def test_a_node_that_was_away_for_long_reads_all_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REREAD_S", -1.0)
    one, other = await stores.started(), await stores.started()
    seen: list[Mapping[str, Any]] = []
    other.observe("users", seen.append)
    await one.change("users", {"alice": 1, "bob": 1})
    await one.change("users", {"alice": None, "bob": 2})
    await until(lambda: other.entries("users") == {"bob": 2})
    after: dict[str, Any] = {}
    for changed in seen:
        after |= changed
    assert {key: value for key, value in after.items() if value is not None} == {"bob": 2}


async def test_a_node_that_slept_while_the_cluster_was_asked_reads_all_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is always being asked: a machine that is suspended for days is, too."""
    slept_s = 0.0
    monkeypatch.setattr(module, "uptime_s", lambda: uptime_s() + slept_s)
    one = await stores.started()
    read: list[Any] = []
    monkeypatch.setattr(one, "_read_all", partial(_noted, read, one._read_all))
    slept_s = 2 * module.REREAD_S
    await until(lambda: bool(read))
    await one.change("users", {"alice": 1})
    assert not stores.failures


async def _noted(read: list[Any], read_all: Callable[[], Awaitable[Any]]) -> Any:
    read.append(read_all)
    return await read_all()


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"users/x", b"{"), (b"users/x", b'{"format": 2}'), (b"tokens/x", None), (b"secret", b'{"format": 1}')],
)
async def test_a_record_that_cannot_be_read_ends_nodes_and_lets_none_start(
    kafka_cluster: Coordinator, stores: Stores, key: bytes, value: bytes | None
) -> None:
    one = await stores.started()
    await one.change("users", {"alice": 1})
    kafka_cluster.produce(TOPIC, value, key=key)
    await until(lambda: bool(stores.failures))
    [failure] = stores.failures
    assert isinstance(failure, DamagedError)
    [line] = stores.lines.of(FOLLOWED)
    assert line["level"] == "error"
    assert one.entries("users") == {"alice": 1}
    with pytest.raises(KafkaError) as refused:
        await one.change("users", {"bob": 1})
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(DamagedError, match=f"topic {TOPIC}: .*; overwrite or remove its record"):
        await stores.started()
    assert len(stores.failures) == 1


async def test_an_entry_that_is_no_user_ends_nodes_and_lets_none_start(stores: Stores) -> None:
    follower = Security(await stores.made(), AllowAll())
    await follower.start()
    writer = await stores.started()
    good = Security(await stores.made(), AllowAll())
    await good.start()
    await good.users.change({ALICE: {SHA_512.name: credential(SHA_512)}})
    await until(lambda: set(follower.users.known()) == {ALICE})
    await writer.change("users", {"bob": {"SCRAM-MD5": {}}})
    await until(lambda: len(stores.failures) == 2)
    assert all("user 'bob' cannot be read" in str(one) for one in stores.failures)
    assert set(follower.users.known()) == {ALICE}
    with pytest.raises(DamagedError, match="user 'bob' cannot be read"):
        await Security(await stores.made(), AllowAll()).start()


async def test_a_topic_that_lost_its_records_ends_nodes(
    kafka_cluster: Coordinator, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL_TIMEOUT_S", 0.2)
    one = await stores.started()
    await one.change("users", {"alice": 1})
    async with Admin(kafka_cluster.bootstrap) as admin:
        await admin.delete_topics([TOPIC])
    kafka_cluster.create_topic(TOPIC, 1, CONFIGS)
    await until(lambda: bool(stores.failures))
    assert "lost records" in str(stores.failures[0])
    assert one.entries("users") == {"alice": 1}


async def test_a_topic_made_again_with_as_many_records_ends_nodes(
    kafka_cluster: Coordinator, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found out when the cluster is asked who leads it."""
    monkeypatch.setattr(module, "LOOK_S", 0.1)
    one = await stores.started()
    await one.change("users", {"alice": 1})
    async with Admin(kafka_cluster.bootstrap) as admin:
        await admin.delete_topics([TOPIC])
    kafka_cluster.create_topic(TOPIC, 1, CONFIGS)
    for number in range(5):
        kafka_cluster.produce(TOPIC, b'{"format": 1, "value": 1}', key=f"users/{number}".encode())
    await until(lambda: bool(stores.failures))
    assert "lost records" in str(stores.failures[0])


async def test_too_much_is_refused(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await stores.started()
    large = {f"{number}": "x" * 1_000_000 for number in range(17)}
    with pytest.raises(KafkaError, match="16,777,216 bytes at most") as refused:
        await one.change("users", large)
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    await one.change("users", {"large": "x" * 3_000_000})
    assert (await stores.started()).entries("users") == one.entries("users")
    monkeypatch.setattr(module, "MOST_BYTES", 2_000_000)
    with pytest.raises(DamagedError, match="has more than 2,000,000 bytes"):
        await stores.started()


@pytest.mark.parametrize(
    ("partitions", "configs", "says"),
    [
        (2, {}, "has 2 partitions, and needs one: name another cluster.security.topic"),
        (1, {"cleanup.policy": "delete"}, "set it to compact"),
        (1, {"unclean.leader.election.enable": "true"}, "may lose acknowledged records"),
        (1, {"max.message.bytes": "1000000"}, "less than the largest change of users and ACLs"),
        (1, {"message.timestamp.type": "CreateTime"}, "clock is wrong: set it to LogAppendTime"),
        (1, {"delete.retention.ms": "1000"}, "might miss that a user was removed: set it to 86400000"),
    ],
)
async def test_a_topic_that_might_lose_something_is_refused(
    kafka_cluster: Coordinator, stores: Stores, partitions: int, configs: dict[str, str], says: str
) -> None:
    kafka_cluster.create_topic(TOPIC, partitions, CONFIGS | configs)
    with pytest.raises(StorageError, match=says):
        await stores.started()
