"""A client beyond a quota learns so at once and is not read from for a while; nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.quotas import ClientQuotas, Quota, TokenBucket, Windows, to_key
from ringleader.coordinator.server.connection import Connection
from ringleader.coordinator.server.throttle import Account, Mutations, Throttle
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.support.principals import connected_as
from tests.support.quota_scripts import Named, altering
from tests.support.registered import ALICE, PASSWORD, registered
from tests.support.served import Client, connected, until
from tests.support.sessions import session_of
from tests.support.topiclog import batch

Values = dict[str, float | None]
CLIENT: Named = {"client-id": "client"}
FOR_LONG = 100.0
"""Bytes per second, of which a test's records are enough that no test sees the end of the throttle."""


@contextlib.asynccontextmanager
async def limited(directory: Path, *entries: tuple[Named, Values], **settings: Any) -> AsyncIterator[Node]:
    """A node with a topic `orders` and these quotas."""
    options = {
        "listen": "127.0.0.1:0",
        "topic": "orders:1",
        "group_initial_rebalance_delay_ms": 0,
        **settings,
    }
    async with Node(Settings(data_dir=directory, **options)) as node:
        await alter(node, *entries)
        yield node


async def alter(node: Node, *entries: tuple[Named, Values]) -> None:
    async with connected(node.host, node.port) as administrator:
        answer = await administrator.call(altering(*entries), 1, "administrator")
        assert {entry.error_code for entry in answer.entries} <= {0}


def of(node: Node, client: Client) -> Connection:
    """The node's side of a connection."""
    host, port = client.writer.get_extra_info("sockname")
    [found] = [one for one in node.server.connections if one.peer == f"{host}:{port}"]
    return found


def produce(count: int = 100, acks: int = -1) -> kafka.ProduceRequest:
    partition = kafka.ProduceRequestPartitionProduceData(index=0, records=batch(count, size=100))
    topic = kafka.ProduceRequestTopicProduceData(name="orders", partition_data=[partition])
    return kafka.ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=[topic])


def fetch(replica_id: int = -1) -> kafka.FetchRequest:
    partition = kafka.FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topic = kafka.FetchRequestFetchTopic(topic="orders", partitions=[partition])
    return kafka.FetchRequest(
        replica_id=replica_id, max_wait_ms=0, max_bytes=1_000_000, topics=[topic], session_epoch=-1
    )


async def test_beyond_produced_bytes_a_connection_is_answered_and_muted(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, (CLIENT, {"producer_byte_rate": FOR_LONG})) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as other,
    ):
        answer = await client.call(produce(), 9)
        [[result]] = [topic.partition_responses for topic in answer.responses]
        assert (result.error_code, result.base_offset) == (0, 0)
        assert answer.throttle_time_ms > 60_000
        assert of(node, client).is_muted
        assert node.server.throttles == 1
        client.send(kafka.MetadataRequest(topics=[]), 9)
        for _ in range(20):
            assert (await other.call(kafka.MetadataRequest(topics=[]), 9, "other")).throttle_time_ms == 0
        answered = await other.call(produce(), 9, "other")
        assert answered.throttle_time_ms == 0
        assert of(node, client).is_muted
        assert of(node, other).account is None
        assert client.reader._buffer == b""  # type: ignore[attr-defined]


async def test_when_it_is_over_what_came_meanwhile_is_answered_in_order(tmp_path: Path) -> None:
    size = len(produce().encode(9))
    async with (
        limited(tmp_path, (CLIENT, {"producer_byte_rate": float(size * 98 // 1000)})) as node,
        connected(node.host, node.port) as client,
    ):
        numbers = [client.send(produce(), 9), client.send(kafka.MetadataRequest(topics=[]), 9)]
        numbers.append(client.send(kafka.ApiVersionsRequest("test", "1"), 3))
        number, answer = await client.receive(kafka.ProduceRequest, 9)
        assert answer.throttle_time_ms > 0
        order = [number]
        for kind, version in ((kafka.MetadataRequest, 9), (kafka.ApiVersionsRequest, 3)):
            number, answer = await client.receive(kind, version)
            order.append(number)
            assert answer.throttle_time_ms == 0
        assert order == numbers
        assert not of(node, client).is_muted


async def test_without_an_answer_the_connection_is_muted_all_the_same(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, (CLIENT, {"producer_byte_rate": FOR_LONG})) as node,
        connected(node.host, node.port) as client,
    ):
        client.send(produce(acks=0), 9)
        await until(lambda: any(connection.is_muted for connection in node.server.connections))
        async with connected(node.host, node.port) as other:
            fetched = await other.call(fetch(), 12, "other")
        assert fetched.responses[0].partitions[0].high_watermark == 100


async def test_a_client_that_hangs_up_while_muted_is_forgotten_at_its_end(tmp_path: Path) -> None:
    size = len(produce().encode(9))
    async with limited(tmp_path, (CLIENT, {"producer_byte_rate": float(size * 98 // 1000)})) as node:
        async with connected(node.host, node.port) as client:
            assert (await client.call(produce(), 9)).throttle_time_ms > 0
        await until(lambda: not node.server.connections)
        async with connected(node.host, node.port) as client:
            assert (await client.call(produce(), 9)).throttle_time_ms > 0
    # Stopping does not wait for it either.


async def test_a_client_muted_for_longer_than_the_idle_limit_is_closed(tmp_path: Path) -> None:
    """A client that hung up would else be kept for as long as the throttle, which may be days."""
    quota: tuple[Named, Values] = (CLIENT, {"producer_byte_rate": 1.0})
    async with limited(tmp_path, quota, connections_max_idle_ms=1_000) as node:
        async with connected(node.host, node.port) as client:
            assert (await client.call(produce(), 9)).throttle_time_ms > 10_000_000
        await until(lambda: not node.server.connections)


async def test_beyond_fetched_bytes_the_answer_is_empty(tmp_path: Path) -> None:
    async with limited(tmp_path) as node, connected(node.host, node.port) as client:
        for _ in range(4):
            assert (await client.call(produce(), 9)).throttle_time_ms == 0
        size = len(produce().encode(9))
        await alter(node, (CLIENT, {"consumer_byte_rate": float(size // 4)}))
        first = await client.call(fetch(), 12)
        assert first.throttle_time_ms == 0
        [[data]] = [topic.partitions for topic in first.responses]
        assert size <= len(data.records) <= size * 2.5  # no more than the quota has for all windows
        follower = await client.call(fetch(replica_id=1), 12)
        assert follower.throttle_time_ms == 0
        second = await client.call(fetch(), 12)
        assert (second.error_code, second.responses, second.session_id) == (0, [], 0)
        assert second.throttle_time_ms > 0
        assert second.throttle_time_ms < 30_000
        assert of(node, client).is_muted
        account = of(node, client).account
        assert account is not None
        assert account.sensors.fetch is not None
        assert account.sensors.fetch.throttle_ms(account._throttle.now_ms()) == 0, (
            "what was not sent does not count"
        )


async def test_a_session_learns_later_what_was_withheld(tmp_path: Path) -> None:
    async with limited(tmp_path) as node, connected(node.host, node.port) as client:
        assert (await client.call(produce(), 9)).throttle_time_ms == 0
        whole = fetch()
        whole.session_epoch = 0
        session_id = (await client.call(whole, 12)).session_id
        await client.call(produce(), 9)
        size = len(produce().encode(9))
        await alter(node, (CLIENT, {"consumer_byte_rate": float(size // 40)}))
        end = fetch()
        end.session_id, end.session_epoch = session_id, 1
        while not (answer := await client.call(end, 12)).throttle_time_ms:
            end.session_epoch += 1
        assert (answer.error_code, answer.responses, answer.session_id) == (0, [], session_id)
        none = fetch()
        none.session_epoch = 0
        async with connected(node.host, node.port) as other:
            withheld = await other.call(none, 12)
        assert withheld.throttle_time_ms > 0
        assert (withheld.responses, withheld.session_id) == ([], 0)
        await alter(node, (CLIENT, {"consumer_byte_rate": None}))
        end.session_epoch += 1
        end.topics[0].partitions[0].fetch_offset = 200
        async with connected(node.host, node.port) as other:
            [topic] = (await other.call(end, 12)).responses
        assert [one.high_watermark for one in topic.partitions] == [200]


async def test_request_percentage_throttles_every_api_for_a_window_at_most(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, (CLIENT, {"request_percentage": 1e-6}), quota_window_num=2) as node,
        connected(node.host, node.port) as client,
    ):
        first = await client.call(kafka.MetadataRequest(topics=[]), 9)
        assert first.throttle_time_ms == 1_000
        second = await client.call(kafka.FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        assert second.throttle_time_ms == 1_000


async def test_a_connection_rests_while_its_user_is_beyond_request_percentage(tmp_path: Path) -> None:
    """Else a user has a request of each of its connections in every window."""
    async with (
        limited(tmp_path, (CLIENT, {"request_percentage": 1e-6}), quota_window_num=1_000) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as second,
    ):
        for one in (client, second):
            assert (await one.call(kafka.ApiVersionsRequest("test", "1"), 3)).throttle_time_ms == 1_000

        def timer(one: Client) -> asyncio.TimerHandle | None:
            return session_of(of(node, one)).pace._timer

        timers = {one: timer(one) for one in (client, second)}
        before = node.server.routes[kafka.MetadataRequest.API_KEY].requests
        for one in (client, second):
            one.send(kafka.MetadataRequest(topics=[]), 9)
        # The throttle that they were given is over, and they rest on.
        await until(lambda: all(timer(one) is not first for one, first in timers.items()))
        assert node.server.routes[kafka.MetadataRequest.API_KEY].requests == before
        assert all(of(node, one).is_muted for one in timers)
        # Without the quota they are answered.
        await alter(node, (CLIENT, {"request_percentage": None}))
        for one in (client, second):
            assert (await one.receive(kafka.MetadataRequest, 9))[1].throttle_time_ms == 0


async def test_a_new_connection_rests_first_while_its_user_is_beyond_request_percentage(
    tmp_path: Path,
) -> None:
    """Else a user that connects for each request has them all answered."""
    requested = kafka.MetadataRequest(topics=[])
    async with limited(tmp_path, (CLIENT, {"request_percentage": 1e-6}), quota_window_num=1_000) as node:
        async with connected(node.host, node.port) as client:
            assert (await client.call(requested, 9)).throttle_time_ms == 1_000
        before = node.server.routes[kafka.MetadataRequest.API_KEY].requests
        async with connected(node.host, node.port) as second, connected(node.host, node.port) as other:
            # The answer to the first question of most clients says that there is a throttle.
            assert (await other.call(kafka.ApiVersionsRequest("test", "1"), 3)).throttle_time_ms == 1_000
            for _ in range(2):
                second.send(requested, 9)
            await until(lambda: of(node, second).is_muted)
            first_timer = session_of(of(node, second)).pace._timer
            await until(lambda: session_of(of(node, second)).pace._timer is not first_timer)
            assert node.server.routes[kafka.MetadataRequest.API_KEY].requests == before
            async with connected(node.host, node.port) as free:
                assert (await free.call(requested, 9, "other")).throttle_time_ms == 0
            await alter(node, (CLIENT, {"request_percentage": None}))
            for _ in range(2):
                assert (await second.receive(kafka.MetadataRequest, 9))[1].throttle_time_ms == 0


async def test_a_new_connection_is_answered_after_all_windows_at_the_latest(tmp_path: Path) -> None:
    async with limited(tmp_path, (CLIENT, {"request_percentage": 1e-6}), quota_window_num=2) as node:
        async with connected(node.host, node.port) as client:
            assert (await client.call(kafka.MetadataRequest(topics=[]), 9)).throttle_time_ms == 1_000
        async with connected(node.host, node.port) as second:
            assert (await second.call(kafka.MetadataRequest(topics=[]), 9)).throttle_time_ms == 1_000


def test_a_connection_rests_for_all_windows_at_most() -> None:
    """Others of its user may go on for ever."""
    account, other = account_of(2.0), account_of(2.0)
    other.sensors = account.sensors
    assert account.sensors.request is not None
    now_ms = 0
    account._throttle.now_ms = lambda: now_ms
    account.sensors.request.record(90.0, now_ms)
    rested_ms = 0
    while more_ms := account.rests_ms():
        assert more_ms <= 1_000
        now_ms += more_ms
        rested_ms += more_ms
        account.sensors.request.record(90.0, now_ms)
    assert rested_ms == 11_000
    assert account.rests_ms() > 0, "from the next throttle on it rests as long again"


async def joined(client: Client, group: str, client_id: str = "client") -> kafka.HeartbeatRequest:
    join = kafka.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[kafka.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    member = await client.call(join, 3, client_id)
    assert member.error_code == 0
    sync = kafka.SyncGroupRequest(group_id=group, generation_id=1, member_id=member.member_id)
    assert (await client.call(sync, 3, client_id)).error_code == 0
    return kafka.HeartbeatRequest(group_id=group, generation_id=1, member_id=member.member_id)


async def test_known_heartbeats_and_commits_are_on_the_account_too(tmp_path: Path) -> None:
    commit = kafka.OffsetCommitRequest(
        group_id="g",
        topics=[
            kafka.OffsetCommitRequestTopic(
                name="orders",
                partitions=[kafka.OffsetCommitRequestPartition(0, 5, committed_metadata="")],
            )
        ],
    )
    async with (
        limited(tmp_path, quota_window_num=2) as node,
        connected(node.host, node.port) as client,
    ):
        heartbeat = await joined(client, "g")
        commit.generation_id_or_member_epoch, commit.member_id = 1, heartbeat.member_id
        for request, version in ((heartbeat, 3), (commit, 7), (heartbeat, 3), (commit, 7)):
            assert (await client.call(request, version)).throttle_time_ms == 0
        assert of(node, client).account is None
        await alter(node, (CLIENT, {"request_percentage": 90.0}))
        for request, version in ((heartbeat, 3), (commit, 7)) * 3:
            assert (await client.call(request, version)).throttle_time_ms == 0
        account = of(node, client).account
        assert account is not None
        assert account.sensors.request is not None
        assert not account.over
        before = account.sensors.request.last_ms
        used = sum(sample.amount for sample in account.sensors.request._samples)
        assert used > 0
        for _ in range(50):
            client.send(heartbeat, 3)
        for _ in range(50):
            assert (await client.receive(kafka.HeartbeatRequest, 3))[1].error_code == 0
        assert account.sensors.request.last_ms >= before
        assert sum(sample.amount for sample in account.sensors.request._samples) > used
        await alter(node, (CLIENT, {"request_percentage": 1e-6}))
        throttled = await client.call(heartbeat, 3)
        assert (throttled.error_code, throttled.throttle_time_ms) == (0, 1_000)
        throttled = await client.call(commit, 7)
        assert throttled.throttle_time_ms == 1_000
        assert throttled.topics[0].partitions[0].error_code == 0
        await alter(node, (CLIENT, {"request_percentage": None}))
        assert (await client.call(heartbeat, 3)).throttle_time_ms == 0
        assert of(node, client).account is None


async def test_the_heartbeats_of_others_live_on_beside_a_throttled_flood(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, ({"user": "mallory"}, {"request_percentage": 0.01})) as node,
        connected_as(node, "mallory") as mallory,
        connected_as(node, "alice") as alice,
    ):
        heartbeat = await joined(alice, "alices")
        for _ in range(2_000):
            mallory.send(kafka.MetadataRequest(topics=[]), 9)
        await mallory.writer.drain()
        await until(lambda: of(node, mallory).is_muted)
        before = node.server.routes[3].requests
        for _ in range(200):
            answer = await alice.call(heartbeat, 3)
            assert (answer.error_code, answer.throttle_time_ms) == (0, 0)
        assert of(node, alice).account is None
        assert node.server.routes[3].requests < before + 1_000


async def test_the_principal_counts_not_only_the_client_id(tmp_path: Path) -> None:
    async with limited(tmp_path, ({"user": None}, {"producer_byte_rate": FOR_LONG})) as node:
        await alter(node, ({"user": "bob"}, {"producer_byte_rate": 1e9}))
        async with connected_as(node, "alice") as alice, connected_as(node, "bob") as bob:
            assert (await bob.call(produce(), 9)).throttle_time_ms == 0
            assert (await alice.call(produce(), 9)).throttle_time_ms > 0
            assert (await bob.call(produce(), 9)).throttle_time_ms == 0
        # All connections of a user share its quota.
        async with connected_as(node, "alice") as alice:
            assert (await alice.call(produce(1), 9)).throttle_time_ms > 0


async def logged_in(client: Client) -> None:
    assert (await client.call(kafka.SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == 0
    token = f"\0{ALICE}\0{PASSWORD}".encode()
    assert (await client.call(kafka.SaslAuthenticateRequest(auth_bytes=token), 2)).error_code == 0


async def test_a_client_logs_in_again_between_throttles(tmp_path: Path) -> None:
    security = await registered(tmp_path)
    await security.store.change("quotas", {to_key({"user": ALICE}): {"request_percentage": 1e-6}})
    await security.store.close()
    settings: dict[str, Any] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl_enabled_mechanisms": "PLAIN",
        "sasl_cleartext_without_tls": True,
        "connections_max_reauth_ms": 60_000,
    }
    async with (
        Node(Settings(data_dir=tmp_path, **settings)) as node,
        connected(node.host, node.port) as client,
    ):
        assert (await client.call(kafka.ApiVersionsRequest("test", "1"), 3)).throttle_time_ms == 0
        await logged_in(client)
        assert not of(node, client).is_muted
        assert (await client.call(kafka.MetadataRequest(topics=[]), 9)).throttle_time_ms == 1_000
        assert of(node, client).is_muted
        await logged_in(client)
        assert not of(node, client).is_muted
        assert (await client.call(kafka.MetadataRequest(topics=[]), 9)).throttle_time_ms == 1_000


def created(number: int, partitions: int = 10) -> kafka.CreateTopicsRequest:
    topic = kafka.CreateTopicsRequestCreatableTopic(f"new-{number}", partitions, 1)
    return kafka.CreateTopicsRequest(topics=[topic], timeout_ms=5_000)


async def test_changes_of_topics_are_refused_when_the_bucket_is_empty(tmp_path: Path) -> None:
    async with (
        limited(
            tmp_path, (CLIENT, {"controller_mutation_rate": 0.001}), controller_quota_window_num=2
        ) as node,
        connected(node.host, node.port) as client,
        connected(node.host, node.port) as again,
        connected(node.host, node.port) as older,
    ):
        first = await client.call(created(1), 7)
        assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
        assert not of(node, client).is_muted
        second = await client.call(created(2), 7)
        assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert second.topics[0].error_message is None
        assert second.throttle_time_ms > 60_000
        assert of(node, client).is_muted
        assert node.topics.describe("new-2") is None
        deletion = kafka.DeleteTopicsRequest(topic_names=["new-1"], timeout_ms=5_000)
        refused = await again.call(deletion, 5)
        assert refused.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        # Before KIP-599: done, and throttled.
        done = await older.call(created(3), 5)
        assert done.topics[0].error_code == 0
        assert done.throttle_time_ms > 60_000
        assert of(node, older).is_muted
        assert node.topics.describe("new-3") is not None


def test_a_request_that_was_refused_a_change_is_refused_all_that_follow() -> None:
    now_ms = 0
    bucket = TokenBucket(1.0, Windows(2, 1_000), now_ms)
    found = Mutations(bucket, strict=True, now_ms=lambda: now_ms)
    assert found.takes(12)
    assert not found.takes(1)
    now_ms = 60_000
    assert not found.takes(1), "though there is room by now"
    assert found.throttle_ms == 10_000


async def test_partitions_are_changes_too_and_what_fails_anyhow_costs_nothing(tmp_path: Path) -> None:
    topic = kafka.CreatePartitionsRequestCreatePartitionsTopic
    async with (
        limited(tmp_path, (CLIENT, {"controller_mutation_rate": 1e-6})) as node,
        connected(node.host, node.port) as client,
    ):
        for _ in range(3):
            exists = kafka.CreateTopicsRequestCreatableTopic("orders", 10, 1)
            answer = await client.call(kafka.CreateTopicsRequest(topics=[exists], timeout_ms=5_000), 7)
            assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
            fewer = kafka.CreatePartitionsRequest(topics=[topic("orders", 1, None)], timeout_ms=5_000)
            assert (await client.call(fewer, 3)).results[0].error_code == ErrorCode.INVALID_PARTITIONS
        more = kafka.CreatePartitionsRequest(topics=[topic("orders", 5, None)], timeout_ms=5_000)
        assert (await client.call(more, 3)).results[0].error_code == 0
        more = kafka.CreatePartitionsRequest(topics=[topic("orders", 6, None)], timeout_ms=5_000)
        refused = await client.call(more, 3)
        assert refused.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.throttle_time_ms > 0


async def test_quotas_are_there_after_a_start(tmp_path: Path) -> None:
    async with limited(tmp_path, (CLIENT, {"producer_byte_rate": FOR_LONG})):
        pass
    async with limited(tmp_path) as node, connected(node.host, node.port) as client:
        assert (await client.call(produce(), 9)).throttle_time_ms > 0


async def test_without_quotas_nothing_is_on_an_account(tmp_path: Path) -> None:
    entry: tuple[Named, Values] = ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0})
    async with limited(tmp_path, entry) as node, connected(node.host, node.port) as client:
        await client.call(produce(), 9)
        assert node.server.throttle is None
        assert of(node, client).account is None


# ---- time of what goes on in later turns ----


class Connected:
    """Of a connection: what an account asks of it here."""

    account = None
    moved_ms = 0


def account_of(percentage: float) -> Account:
    quotas = ClientQuotas()
    quotas.apply({to_key(CLIENT): {Quota.REQUEST_PERCENTAGE: percentage}})
    account = Account(Throttle(quotas, lambda: 0), Connected())  # type: ignore[arg-type]
    sensors = quotas.sensors("u", "client", 0)
    assert sensors is not None
    account.sensors = sensors
    return account


def test_a_fetch_waits_for_no_more_than_its_quota_may_give() -> None:
    quotas = ClientQuotas()
    quotas.apply({to_key({"user": None}): {"consumer_byte_rate": 100.0}})
    account = Account(Throttle(quotas, lambda: 0), Connected())  # type: ignore[arg-type]
    found = quotas.sensors("ann", "", 0)
    assert found is not None
    account.sensors = found
    request = kafka.FetchRequest(min_bytes=5_000, max_bytes=10_000)
    account.begin(request, 100)
    assert (request.min_bytes, request.max_bytes) == (1_000, 1_000)
    small = kafka.FetchRequest(min_bytes=1, max_bytes=500)
    account.begin(small, 100)
    assert (small.min_bytes, small.max_bytes) == (1, 500)


async def test_a_timed_coroutine_does_what_it_did_before() -> None:
    account, event, ended = account_of(50.0), asyncio.Event(), []

    async def work() -> int:
        try:
            await event.wait()
            return 5
        finally:
            ended.append("ended")

    waiting = asyncio.ensure_future(_awaited(account.timed(work())))
    await asyncio.sleep(0)
    event.set()
    assert await waiting == 5
    event.clear()
    cancelled = asyncio.ensure_future(_awaited(account.timed(work())))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert ended == ["ended", "ended"]

    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError("what")

    with pytest.raises(KeyError, match="what"):
        await account.timed(failing())
    assert account.sensors.request is not None
    assert sum(sample.amount for sample in account.sensors.request._samples) > 0


async def _awaited(work: Any) -> Any:
    return await work


def test_timed_slices_do_what_they_did_before() -> None:
    account = account_of(1e-6)

    def slices() -> Generator[None, None, str]:
        yield
        yield
        return "done"

    timed = account.timed(slices())
    next(timed)
    next(timed)
    with pytest.raises(StopIteration) as stop:
        next(timed)
    assert stop.value.value == "done"
    assert account.over
