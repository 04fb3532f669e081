"""The journal's topic on a node: what is in it, that it lasts, that nobody else writes to it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.journal import writer as writing
from ringleader.coordinator.journal.entries import ChangeKind, ChangeRecord, Incident, IncidentKind
from ringleader.coordinator.journal.record import TOPIC, Message
from ringleader.coordinator.journal.writer import JournalWriter
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.node import Node
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import Record, build_batch, iter_batches
from tests.coordinator.test_node import connected, settings
from tests.support.groupclient import form, join_request
from tests.support.principals import ADMINISTRATOR, connected_as, guarded
from tests.support.served import Client


async def _read(
    client: Client, offset: int, wait_ms: int = 0
) -> tuple[int, list[tuple[bytes, dict[str, Any]]]]:
    """The next offset, and keys and values from this one on."""
    topic = kafka.FetchRequestFetchTopic(
        TOPIC, partitions=[kafka.FetchRequestFetchPartition(0, fetch_offset=offset)]
    )
    topic.partitions[0].partition_max_bytes = 10_000_000
    answer = await client.call(
        kafka.FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=10_000_000, topics=[topic]), 12
    )
    data = answer.responses[0].partitions[0]
    assert data.error_code == 0
    found = [record for batch in iter_batches(data.records or b"") for record in batch.records()]
    values = []
    for record in found:
        value = json.loads(record.value or b"")
        assert record.timestamp_ms == value["at_ms"]
        assert (record.key or b"").decode() == value["group"]
        values.append((record.key or b"", value))
    return (found[-1].offset + 1 if found else offset), values


async def _until(client: Client, kind: str, offset: int = 0) -> list[dict[str, Any]]:
    """All records up to the first one of this kind or event, waiting for it on the broker."""
    values: list[dict[str, Any]] = []
    while not any(kind in (value["kind"], value.get("event")) for value in values):
        offset, some = await _read(client, offset, 10_000)
        values += [value for _, value in some]
    return values


async def test_a_rebalance_is_told_and_lasts(tmp_path: Path) -> None:
    chosen = settings(tmp_path, topic="orders:2")
    async with Node(chosen) as node, connected(node) as client:
        member = await form(client, "g")
        values = await _until(client, "rebalance")
        assert [value.get("event", value["kind"]) for value in values] == ["started", "rebalance"]
        entry = values[1]
        assert (entry["group"], entry["generation"], entry["cause"]) == ("g", 1, "member joined")
        assert entry["joined"] == [member.member_id]
        assert entry["members"][0]["client_host"] == "/127.0.0.1"
        assert entry["members"][0]["joined_ms"] <= entry["members"][0]["synced_ms"] <= entry["at_ms"]
        await client.call(member.commit(5), 8)
        values = await _until(client, "first-commit")
        assert (values[2]["generation"], values[2]["member_id"]) == (1, member.member_id)
    async with Node(chosen) as node, connected(node) as client:
        again = (await _read(client, 0))[1]
        while len(again) < 5:
            again = (await _read(client, 0, 1_000))[1]
        assert [value for _, value in again[:3]] == values
        assert [value["event"] for _, value in again[3:5]] == ["stopped", "started"]


async def test_what_operators_do_and_what_is_refused_is_reported(tmp_path: Path) -> None:
    async with Node(settings(tmp_path, topic="orders:2")) as node, connected(node) as client:
        refused = await client.call(join_request("g", session_timeout_ms=1), 3)
        assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        member = await form(client, "g")
        await client.call(member.commit(5), 8)
        leave = kafka.LeaveGroupRequest(group_id="g", member_id=member.member_id)
        assert (await client.call(leave, 0)).error_code == 0
        reset = member.commit(2)
        reset.generation_id_or_member_epoch, reset.member_id = -1, ""
        answer = await client.call(reset, 8)
        assert answer.topics[0].partitions[0].error_code == 0
        delete = kafka.OffsetDeleteRequest(
            group_id="g",
            topics=[
                kafka.OffsetDeleteRequestTopic("orders", [kafka.OffsetDeleteRequestPartition(0)]),
            ],
        )
        assert (await client.call(delete, 0)).error_code == 0
        deleted = await client.call(kafka.DeleteGroupsRequest(["g"]), 2)
        assert deleted.results[0].error_code == 0
        by_event = {
            value.get("event", value["kind"]): value for value in await _until(client, "group deleted")
        }
    assert by_event["join refused"]["error"] == "INVALID_SESSION_TIMEOUT"
    assert by_event["offsets reset"]["partitions"] == [["orders", 0, 5, 2]]
    assert by_event["offsets reset"]["client_host"] == "/127.0.0.1"
    assert by_event["offsets deleted"]["partitions"] == [["orders", 0, 2, None]]
    assert by_event["group deleted"]["group"] == "g"


async def test_it_says_who_did_what(tmp_path: Path) -> None:
    everything = [
        kafka.CreateAclsRequestAclCreation(kind, "*", 3, f"User:{name}", "*", operation, 3)
        for name, kind, operation in (("ann", 2, 2), ("ann", 3, 2), ("bob", 3, 3))
    ]
    chosen = guarded(tmp_path)
    async with Node(chosen) as node, connected_as(node, ADMINISTRATOR) as client:
        orders = kafka.CreateTopicsRequestCreatableTopic("orders", 2, 1)
        assert (await client.call(kafka.CreateTopicsRequest([orders], 20_000), 7)).topics[0].error_code == 0
        more = kafka.CreatePartitionsRequestCreatePartitionsTopic("orders", 4, None)
        await client.call(kafka.CreatePartitionsRequest([more], 20_000), 3)
        config = kafka.IncrementalAlterConfigsRequestAlterableConfig("retention.ms", 0, "1000")
        resource = kafka.IncrementalAlterConfigsRequestAlterConfigsResource(2, "orders", [config])
        await client.call(kafka.IncrementalAlterConfigsRequest([resource]), 1)
        assert {one.error_code for one in (await client.call(_acls(everything), 3)).results} == {0}
        async with connected_as(node, "ann") as ann:
            member = await form(ann, "billing")
            leave = kafka.LeaveGroupRequest(group_id="billing", member_id=member.member_id)
            assert (await ann.call(leave, 0)).error_code == 0
        async with connected_as(node, "mallory") as mallory:
            for _ in range(3):
                refused = await mallory.call(join_request("billing"), 3)
                assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
            hidden = await mallory.call(kafka.DeleteGroupsRequest(["billing"]), 2)
            assert hidden.results[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert (await client.call(kafka.DeleteGroupsRequest(["billing"]), 2)).results[0].error_code == 0
        salted = kafka.AlterUserScramCredentialsRequestScramCredentialUpsertion(
            "ann", 1, 4_096, b"salt", b"p" * 32
        )
        await client.call(kafka.AlterUserScramCredentialsRequest([], [salted]), 0)
        removed = kafka.AlterUserScramCredentialsRequestScramCredentialDeletion("ann", 1)
        await client.call(kafka.AlterUserScramCredentialsRequest([removed], []), 0)
        deleted = kafka.DeleteTopicsRequestDeleteTopicState("orders")
        await client.call(kafka.DeleteTopicsRequest([deleted], timeout_ms=20_000), 6)
        values = await _until(client, "topic deleted")
    did = [
        (value["event"], value["principal"].removeprefix("User:"), value["subject"], value["detail"])
        for value in values
        if value["kind"] == "event" and value["event"] != "started"
    ]
    assert did == [
        ("topic created", ADMINISTRATOR, "orders", "partitions=2"),
        ("partitions added", ADMINISTRATOR, "orders", "2 -> 4"),
        ("topic configuration changed", ADMINISTRATOR, "orders", "retention.ms=1000"),
        *(
            ("ACL created", ADMINISTRATOR, f"ALLOW User:{name} {operation} from * on {kind} LITERAL *", "")
            for name, kind, operation in (
                ("ann", "TOPIC", "ALL"),
                ("ann", "GROUP", "ALL"),
                ("bob", "GROUP", "READ"),
            )
        ),
        ("join refused", "mallory", "GROUP billing", "READ"),
        ("refused", "mallory", "GROUP billing", "DELETE"),
        ("group deleted", ADMINISTRATOR, "", ""),
        ("user altered", ADMINISTRATOR, "ann", "SCRAM-SHA-256"),
        ("user removed", ADMINISTRATOR, "ann", ""),
        ("topic deleted", ADMINISTRATOR, "orders", ""),
    ]
    [refused_join] = [value for value in values if value.get("event") == "join refused"]
    assert (refused_join["group"], refused_join["error"]) == ("billing", "GROUP_AUTHORIZATION_FAILED")
    formed, empty = [value for value in values if value["kind"] == "rebalance"]
    assert [one["principal"] for one in formed["members"]] == ["User:ann"]
    assert [one["principal"] for one in empty["before"]] == ["User:ann"]
    assert [one["principal"] for one in empty["left"].values()] == ["User:ann"]


def _acls(creations: list[kafka.CreateAclsRequestAclCreation]) -> kafka.CreateAclsRequest:
    return kafka.CreateAclsRequest(creations=creations)


async def test_a_members_client_is_unknown_from_a_restart_until_it_joins_again(tmp_path: Path) -> None:
    chosen = guarded(tmp_path, topic="orders:2", allow_everyone_if_no_acl_found=True)
    async with Node(chosen) as node, connected_as(node, "ann") as ann:
        member = await form(ann, "billing")
    async with Node(chosen) as node, connected_as(node, "bob") as bob:
        again = await bob.call(join_request("billing", member.member_id), 3)
        sync = kafka.SyncGroupRequest("billing", again.generation_id, member.member_id)
        assert (await bob.call(sync, 3)).error_code == 0
        first, second = await _rebalances(bob, 2)
    assert [one["principal"] for one in first["members"]] == ["User:ann"]
    assert [one["principal"] for one in second["members"]] == ["User:bob"]
    async with Node(chosen) as node, connected_as(node, "bob") as bob:
        leave = kafka.LeaveGroupRequest(group_id="billing", member_id=member.member_id)
        assert (await bob.call(leave, 0)).error_code == 0
        *_, third = await _rebalances(bob, 3)
    assert [one["principal"] for one in (*third["before"], *third["left"].values())] == [None, None]


async def _rebalances(client: Client, count: int) -> list[dict[str, Any]]:
    """`count` rebalances, waiting for them on the broker."""
    found: list[dict[str, Any]] = []
    offset = 0
    while len(found) < count:
        offset, some = await _read(client, offset, 10_000)
        found += [value for _, value in some if value["kind"] == "rebalance"]
    return found


class _Lines(list[dict[str, Any]]):
    """A log."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    def info(self, event: str, **fields: Any) -> None:
        self.append({"event": event, **fields})
        self.changed.set()


async def test_what_is_done_to_a_group_is_a_line_where_there_is_no_journal() -> None:
    lines = _Lines()
    writer = JournalWriter(lambda: 1, lines, has_topic=False)  # type: ignore[arg-type]
    caller: dict[str, Any] = {"client_id": "c", "client_host": "/127.0.0.1", "principal": "User:ann"}
    writer.add(Incident("g", IncidentKind.GROUP_DELETED, 5, **caller))
    refused = Incident("g", IncidentKind.JOIN_REFUSED, 5, error=ErrorCode.UNKNOWN_MEMBER_ID, **caller)
    for _ in range(5):
        writer.add(refused)
    writer.add(Incident("g", IncidentKind.GROUP_EXPIRED, 5))
    about = {"group_id": "g", "principal": "User:ann", "host": "127.0.0.1", "client_id": "c", "count": 1}
    assert lines == [
        {"event": "group deleted", **about},
        {"event": "join refused", **about, "error": "UNKNOWN_MEMBER_ID"},
    ]
    for number in range(100):
        writer.add(Incident(f"g{number}", IncidentKind.GROUP_DELETED, 2_000, **caller))
    assert len(lines) == 2 + writing.LINES_PER_SECOND
    writer.add(Incident("g", IncidentKind.GROUP_DELETED, 3_000, **caller))
    assert lines[-1]["left_out_before"] == 100 - writing.LINES_PER_SECOND
    assert writer.lost == 0
    await writer.stop(cleanly=True)
    assert (lines[-1]["event"], lines[-1]["count"]) == ("join refused", 4)


async def test_what_happens_over_and_over_is_told_again_and_again_where_there_is_no_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "FOLD_S", 0.01)
    lines = _Lines()
    writer = JournalWriter(lambda: 1, lines, has_topic=False)  # type: ignore[arg-type]
    reported = 0
    async with asyncio.timeout(20):
        while len(lines) < 4:
            reported += 1
            writer.add(Incident("g", IncidentKind.JOIN_REFUSED, reported, client_host="/127.0.0.1"))
            await asyncio.sleep(0)
    await writer.stop(cleanly=True)
    assert sum(line["count"] for line in lines) == reported, "none is left out"


async def test_what_goes_on_in_the_next_time_is_one_line_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FOLD_S", 0.01)
    lines = _Lines()
    writer = JournalWriter(lambda: 1, lines, has_topic=False)  # type: ignore[arg-type]
    for count in (2, 3):
        for _ in range(count):
            writer.add(Incident("g", IncidentKind.JOIN_REFUSED, 1, client_host="/127.0.0.1"))
        while len(lines) < count:
            lines.changed.clear()
            await lines.changed.wait()
    await writer.stop(cleanly=True)
    assert [line["count"] for line in lines] == [1, 1, 3]


async def test_it_is_for_reading(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node, connected(node) as client:
        found = await client.call(kafka.MetadataRequest(topics=None), 9)
        assert {topic.name: topic.is_internal for topic in found.topics}[TOPIC] is True
        batch = build_batch([Record(value=b"x")])
        produce = kafka.ProduceRequest(
            acks=-1,
            timeout_ms=1_000,
            topic_data=[
                kafka.ProduceRequestTopicProduceData(
                    TOPIC, partition_data=[kafka.ProduceRequestPartitionProduceData(0, batch)]
                )
            ],
        )
        refused = await client.call(produce, 8)
        assert refused.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        deleted = await client.call(kafka.DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1_000), 4)
        assert deleted.responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        topic = kafka.DeleteRecordsRequestDeleteRecordsTopic(
            TOPIC, [kafka.DeleteRecordsRequestDeleteRecordsPartition(0, -1)]
        )
        cut = await client.call(kafka.DeleteRecordsRequest([topic], 1_000), 1)
        assert cut.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        grown = await client.call(
            kafka.CreatePartitionsRequest(
                [kafka.CreatePartitionsRequestCreatePartitionsTopic(TOPIC, 2, None)], 1_000
            ),
            1,
        )
        assert grown.results[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert (await _read(client, 0, 5_000))[1][0][1]["event"] == "started"


class _Slow:
    """A topic log whose disk fails at first."""

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.failures = 1
        self.tries = 0

    async def append_durably(self, topic: str, partition: int, batch: bytes) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
        for found in iter_batches(batch):
            self.values += [json.loads(record.value or b"") for record in found.records()]


async def _written(topics: _Slow, *messages: Message) -> list[dict[str, Any]]:
    writer = JournalWriter(lambda: 1, get_log())
    writer.start(topics)
    for one in messages:
        writer.add(one)
    await writer.stop(cleanly=True)
    return topics.values


async def test_what_is_tried_again_and_again_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "RETRY_S", 0.001)
    refused = Incident("g", IncidentKind.JOIN_REFUSED, 5, client_id="c", error=ErrorCode.UNKNOWN_MEMBER_ID)
    topics = _Slow()
    values = await asyncio.wait_for(_written(topics, *[refused] * 40), 20)
    assert [(value["event"], value["count"]) for value in values] == [
        ("started", 1),
        ("join refused", 1),
        ("join refused", 39),
        ("stopped", 1),
    ]
    assert topics.tries > 1


async def test_each_refusal_counts_once_whatever_was_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FOLD_S", 0.02)
    topics, counted = _Slow(), asyncio.Event()
    topics.failures = 0

    def total() -> int:
        return sum(value["count"] for value in topics.values if value["event"] == "join refused")

    append = topics.append_durably

    async def counting_append(topic: str, partition: int, batch: bytes) -> None:
        await append(topic, partition, batch)
        if total() >= 3:
            counted.set()

    topics.append_durably = counting_append  # type: ignore[method-assign]
    refused = Incident("g", IncidentKind.JOIN_REFUSED, 5, client_id="c", error=ErrorCode.UNKNOWN_MEMBER_ID)
    writer = JournalWriter(lambda: 1, get_log())
    writer.start(topics)
    for _ in range(3):
        writer.add(refused)
    await asyncio.wait_for(counted.wait(), 20)
    for _ in range(3):
        writer.add(refused)
    await writer.stop(cleanly=True)
    assert total() == 6


async def test_what_comes_during_the_last_write_is_written_too() -> None:
    topics, begun, goes_on = _Slow(), asyncio.Event(), asyncio.Event()
    topics.failures = 0
    append = topics.append_durably

    async def slow(topic: str, partition: int, batch: bytes) -> None:
        begun.set()
        await goes_on.wait()
        await append(topic, partition, batch)

    topics.append_durably = slow  # type: ignore[method-assign]
    writer = JournalWriter(lambda: 1, get_log())
    writer.start(topics)
    await asyncio.wait_for(begun.wait(), 20)
    stopping = asyncio.ensure_future(writer.stop(cleanly=True))
    await asyncio.sleep(0)  # until it waits for the write
    writer.add(Incident("g", IncidentKind.GROUP_EXPIRED, 5))
    goes_on.set()
    await stopping
    assert [value["event"] for value in topics.values] == ["started", "stopped", "group expired"]


def _refused(subject: str, at_ms: int = 5) -> ChangeRecord:
    return ChangeRecord(
        ChangeKind.REFUSED, "refused", at_ms, "User:mallory", "c", "/127.0.0.1", subject, "READ"
    )


async def test_what_somebody_is_refused_again_and_again_is_one_record() -> None:
    topics = _Slow()
    topics.failures = 0
    values = await _written(topics, *[_refused("TOPIC orders")] * 40, _refused("TOPIC bills"))
    assert [(value["event"], value["subject"], value["count"]) for value in values[1:-1]] == [
        ("refused", "TOPIC orders", 1),
        ("refused", "TOPIC bills", 1),
        ("refused", "TOPIC orders", 39),
    ]
    assert (values[1]["principal"], values[1]["detail"], values[1]["group"]) == ("User:mallory", "READ", "")


async def test_refusals_and_changes_do_not_fill_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHANGES_PER_HOUR", 3)
    changed = ChangeRecord(ChangeKind.CHANGED, "topic created", 5, "User:ann", "c", "/127.0.0.1", "orders")
    refused = [_refused(f"TOPIC {number}") for number in range(100)]
    topics = _Slow()
    topics.failures = 0
    values = await _written(topics, *refused, changed, _refused("TOPIC later", writing.HOUR_MS + 5))
    assert [value["subject"] for value in values[1:-1]] == [
        *(f"TOPIC {number}" for number in range(3)),
        "orders",
        "TOPIC later",
    ]


async def test_what_waits_for_a_disk_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WAITING_MAX", 10)
    monkeypatch.setattr(writing, "RETRY_S", 0.001)
    deleted = [Incident(f"g{number}", IncidentKind.GROUP_DELETED, 5) for number in range(100)]
    values = await asyncio.wait_for(_written(_Slow(), *deleted), 20)
    assert [value["group"] for value in values] == ["", *(f"g{number}" for number in range(9))]
