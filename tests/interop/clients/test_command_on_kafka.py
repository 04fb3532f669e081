"""The command line beside Kafka's own tools, on a broker of Apache Kafka: the same offsets and records."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.consumer import GroupConsumer
from ringleader.insight.web import page, resets
from ringleader.insight.web.sources import Source
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.insight.web.asking import Answer, ask
from tests.interop.kafka import KafkaBroker, tool
from tests.support.command import run_command
from tests.support.consuming import PATIENCE_S

pytestmark = pytest.mark.xdist_group("kafka-command")  # one broker for all
TOOLS = "org.apache.kafka.tools."
T0_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
KEPT = ("--config", "retention.ms=-1")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    properties = {"auto.create.topics.enable": "false"}
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker", properties=properties) as running:
        yield running


@pytest.fixture(scope="module")
def orders(broker: KafkaBroker) -> str:
    """Partition 0 has ten records, partition 1 four, partition 2 none; a group has committed 5 and 2."""
    ok(broker, "topics", "create", "orders", "--partitions", "3", *KEPT)
    lines = [
        {"value": at, "partition": partition, "timestamp_ms": T0_MS + at * 1_000}
        for partition, count in ((0, 10), (1, 4))
        for at in range(count)
    ]
    ok(broker, "produce", "orders", "--format", "json", stdin="\n".join(map(json.dumps, lines)))
    asyncio.run(commit(broker, "billing", {("orders", 0): 5, ("orders", 1): 2}))
    return "orders"


async def commit(broker: KafkaBroker, group: str, offsets: dict[tuple[str, int], int]) -> None:
    async with Admin(broker.bootstrap, timeout_ms=60_000) as admin:
        await admin.set_group_offsets(group, offsets)


def ok(broker: KafkaBroker, *arguments: str, stdin: str = "") -> str:
    done = run_command(broker.bootstrap, *arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    "case",
    [
        ("--topic", "orders", "--to-earliest"),
        ("--all-topics", "--to-latest"),
        ("--topic", "orders", "--to-current"),
        ("--topic", "orders:0,1", "--to-offset", "7"),
        ("--all-topics", "--shift-by", "-3"),
        ("--all-topics", "--shift-by", "6"),
        ("--topic", "orders", "--to-datetime", "2026-01-31T12:00:03.000"),
        ("--topic", "orders", "--by-duration", "PT1M"),
        ("--topic", "orders", "--by-duration", "P3650D"),
    ],
    ids=" ".join,
)
def test_the_plan_is_that_of_kafkas_tool(broker: KafkaBroker, orders: str, case: tuple[str, ...]) -> None:
    ours = ok(broker, "groups", "reset", "billing", *case, "--csv")
    options = ("--bootstrap-server", broker.bootstrap, "--group", "billing", "--reset-offsets", "--dry-run")
    theirs = tool(f"{TOOLS}consumer.group.ConsumerGroupCommand", *options, "--export", *case)
    lines = [
        line.replace('"', "") for line in theirs.stdout.splitlines() if line.startswith(('"orders', "orders"))
    ]
    assert lines, theirs.stdout + theirs.stderr
    assert sorted(ours.splitlines()) == sorted(lines)


def test_a_plan_of_kafkas_tool_is_done(broker: KafkaBroker, orders: str, tmp_path: Path) -> None:
    options = ("--bootstrap-server", broker.bootstrap, "--group", "elsewhere", "--reset-offsets", "--dry-run")
    case = ("--topic", orders, "--to-offset", "3")
    theirs = tool(f"{TOOLS}consumer.group.ConsumerGroupCommand", *options, "--export", *case)
    plan = tmp_path / "plan.csv"
    plan.write_text("".join(f"{line}\n" for line in theirs.stdout.splitlines() if "orders" in line))
    ok(broker, "groups", "reset", "elsewhere", "--from-file", str(plan), "--execute")
    described = json.loads(ok(broker, "groups", "describe", "elsewhere", "--json"))
    assert [one["committed"] for one in described["offsets"]] == [3, 3, 0]
    assert ok(broker, "groups", "delete-offsets", "elsewhere", "--topic", "orders:0,2")
    described = json.loads(ok(broker, "groups", "describe", "elsewhere", "--json"))
    assert [one["partition"] for one in described["offsets"]] == [1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_left_alone(broker: KafkaBroker, orders: str, protocol: str) -> None:
    """Those of the newer protocol (KIP-848), which cannot be described in the old way, too."""
    group = f"busy-{protocol}"
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "client.id": "reader",
        }
    )
    consumer.subscribe([orders])
    try:
        assert consumer.poll(60) is not None
        done = run_command(
            broker.bootstrap, "groups", "reset", group, "--topic", orders, "--to-latest", "--execute"
        )
    finally:
        consumer.close()
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"ringleader: Group {group} has 1 member (reader on 127.0.0.1); stop them, then reset its offsets.\n"
    )


class Quiet:
    """A member of the consumer protocol that says only what the test has it say."""

    def __init__(self, broker: KafkaBroker, group: str, **says: Any) -> None:
        self.id = str(uuid.uuid4())
        self.owns: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        self._group, self._says, self._epoch = group, says, 0
        self._cluster = Cluster(broker.bootstrap, client_id="quiet")

    async def __aenter__(self) -> Quiet:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.heartbeat(-1)
        await self._cluster.close()

    async def heartbeat(self, epoch: int | None = None) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self.id,
            member_epoch=self._epoch if epoch is None else epoch,
            rebalance_timeout_ms=300_000,
            topic_partitions=self.owns,
            **self._says,
        )
        answer = await self._cluster.send(await self._cluster.coordinator(self._group), plain(request))
        assert answer.error_code == 0, answer
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owns = [
                ConsumerGroupHeartbeatRequestTopicPartitions(one.topic_id, one.partitions)
                for one in answer.assignment.topic_partitions
            ]


async def described(broker: KafkaBroker, group: str, **wanted: str | None) -> dict[str, dict[str, Any]]:
    """The group's members by client id, as soon as it has these clients, of these types."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            shown = json.loads(await asyncio.to_thread(ok, broker, "groups", "describe", group, "--json"))
            members = {one["client"]: one for one in shown["members"]}
            if {name: one["member_type"] for name, one in members.items()} == wanted:
                assert shown["group_type"] == "consumer"
                return members


async def test_a_group_of_the_consumer_protocol_is_described(broker: KafkaBroker, orders: str) -> None:
    """One member has all partitions and gives none up, another waits for its share of them."""
    everything = {"subscribed_topic_names": [orders], "rack_id": "r1"}
    options: dict[str, Any] = {"client_id": "waits", "group_instance_id": "i", "group_protocol": "consumer"}
    async with Quiet(broker, "newer", **everything) as quiet:
        async with asyncio.timeout(PATIENCE_S):
            while sum(len(one.partitions) for one in quiet.owns) < 3:
                await quiet.heartbeat()
        await quiet.heartbeat()
        async with GroupConsumer(broker.bootstrap, "newer", [orders], **options):
            members = await described(broker, "newer", quiet="consumer", waits="consumer")
            while members["waits"]["target"] == {}:
                members = await described(broker, "newer", quiet="consumer", waits="consumer")
            one, two = members["quiet"], members["waits"]
            assert (one["member"], one["rack"], one["instance"], one["regex"]) == (quiet.id, "r1", None, None)
            assert (two["rack"], two["instance"], two["topics"]) == (None, "i", [orders])
            assert (one["partitions"], two["partitions"]) == ({orders: [0, 1, 2]}, {})
            assert sorted(one["target"][orders] + two["target"][orders]) == [0, 1, 2]
            assert 1 <= one["epoch"] < two["epoch"]
            shown = await asyncio.to_thread(ok, broker, "groups", "describe", "newer")
            head, _, columns, *_ = shown.splitlines()
            assert head.startswith(
                "Group newer: Reconciling, assigned by uniform, consumer protocol, group epoch"
            )
            titles = "MEMBER CLIENT HOST INSTANCE RACK EPOCH PROTOCOL TOPICS PARTITIONS TARGET"
            assert columns.split() == titles.split()
            listed = json.loads(await asyncio.to_thread(ok, broker, "groups", "list", "--json"))
            assert {
                "group": "newer",
                "state": "Reconciling",
                "type": "consumer",
                "group_type": "consumer",
            } in listed
            reset = ("groups", "reset", "newer", "--topic", orders, "--to-latest", "--execute")
            done = await asyncio.to_thread(run_command, broker.bootstrap, *reset)
            assert (done.code, done.out) == (1, "")
            assert "has 2 members (quiet on 127.0.0.1, waits on 127.0.0.1); stop them" in done.err
            async with Admin(broker.bootstrap) as admin:
                for types, there in ((["consumer"], True), (["classic"], False)):
                    found = await admin.list_groups(types=types)
                    assert ("newer" in [one.group_id for one in found]) == there
                (again,) = await admin.list_groups(["reconciling"])
                assert again.group_id == "newer"


async def test_a_regex_and_a_classic_member_are_reported(broker: KafkaBroker, orders: str) -> None:
    async with (
        Quiet(broker, "mixed", subscribed_topic_regex="ord.*") as quiet,
        GroupConsumer(broker.bootstrap, "mixed", [orders], client_id="old") as old,
    ):
        await quiet.heartbeat()
        members = await described(broker, "mixed", quiet="consumer", old="classic")
        assert (members["quiet"]["regex"], members["quiet"]["topics"]) == ("ord.*", [])
        assert (members["old"]["regex"], members["old"]["topics"]) == (None, [orders])
        assert old.assignment() is not None
        done = await asyncio.to_thread(run_command, broker.bootstrap, "plan", "mixed")
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "regex" in done.err


def test_a_share_group_is_said_to_be_one(broker: KafkaBroker, orders: str) -> None:
    options = ("--bootstrap-server", broker.bootstrap, "--topic", orders, "--group", "shared")
    tool(f"{TOOLS}consumer.ConsoleShareConsumer", *options, "--timeout-ms", "1000")
    assert ok(broker, "groups", "describe", "shared").splitlines()[0] == "Share group shared: Empty"
    done = run_command(
        broker.bootstrap, "groups", "reset", "shared", "--topic", orders, "--to-earliest", "--execute"
    )
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "ringleader: Group shared is of type share; here are classic and consumer groups only.\n"
    )


async def test_offsets_are_reset_from_the_page(
    broker: KafkaBroker, orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without members as it was shown; with members not, by our look nor by Kafka's."""
    token = "correct-horse-battery"
    bearer = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    await commit(broker, "paged", {(orders, 0): 5, (orders, 1): 2})
    source = Source("", tmp_path / "none", admin=lambda: Admin(broker.bootstrap))
    async with page([source], reset_token=token) as url, Admin(broker.bootstrap) as admin:

        async def plan(to: str, value: str) -> Any:
            parameters: dict[str, Any] = {"group": "paged", "topic": orders, "to": to, "value": value}
            parameters["partitions"] = "0,1"
            return (await ask(url, "/api/reset", headers=bearer, **parameters)).json

        async def carry_out(name: str) -> Answer:
            body = json.dumps({"plan": name}).encode()
            return await ask(url, "/api/reset", method="POST", headers=bearer, body=body)

        made = await plan("shift-by", "-1")
        assert (await carry_out(made["plan"])).status == 200
        now = {number: one.offset for (_, number), one in (await admin.group_offsets("paged")).items()}
        assert now == {0: 4, 1: 1}
        made = [await plan("to-offset", "0") for _ in range(2)]
        async with GroupConsumer(broker.bootstrap, "paged", [orders], client_id="biller") as consumer:
            await consumer.wait_assigned(PATIENCE_S)
            looked = await carry_out(made[0]["plan"])

            async def passes(*_: object) -> None:
                pass

            monkeypatch.setattr(resets, "check_fresh", passes)
            refused = await carry_out(made[1]["plan"])
        error = looked.json["error"]
        assert error == "Group paged has 1 member (biller on 127.0.0.1); stop them, then reset its offsets."
        assert refused.json["error"] == "Group paged has members; stop them, then reset its offsets."
        assert (looked.status, refused.status) == (409, 409)


async def test_a_broker_whose_settings_leave_the_consumer_protocol_out(tmp_path: Path) -> None:
    """It serves ConsumerGroupDescribe, and answers UNSUPPORTED_VERSION."""
    properties = {"group.coordinator.rebalance.protocols": "classic"}
    with KafkaBroker(tmp_path / "broker", properties=properties) as classic:
        async with Admin(classic.bootstrap, timeout_ms=60_000) as admin:
            await admin.create_topic("orders", 1)
            await admin.set_group_offsets("billing", {("orders", 0): 0})
            billing, nobody = await admin.describe_groups(["billing", "nobody"])
    assert (billing.state, billing.group_type) == ("Empty", "classic")
    assert (nobody.state, nobody.group_type, nobody.members) == ("Dead", "", ())


def test_settings_of_a_topic(broker: KafkaBroker) -> None:
    ok(broker, "topics", "create", "altered", "--partitions", "2", "--config", "retention.ms=5000")
    assert ok(broker, "topics", "alter", "altered", "--config", "cleanup.policy=compact", "--partitions", "3")
    described = json.loads(ok(broker, "topics", "describe", "altered", "--json"))
    assert len(described["partitions"]) == 3
    ours = {name: one["value"] for name, one in described["configs"].items() if one["set_by"] == "topic"}
    assert ours == {"cleanup.policy": "compact", "retention.ms": "5000"}
    ok(broker, "topics", "alter", "altered", "--delete-config", "retention.ms")
    described = json.loads(ok(broker, "topics", "describe", "altered", "--json"))
    assert "retention.ms" not in described["configs"]
    for options, says in (
        (("--config", "retention=1"), "Unknown topic config name: retention"),
        (("--config", "retention.ms=x"), "Invalid value x"),
    ):
        done = run_command(broker.bootstrap, "topics", "alter", "altered", *options)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert says in done.err


def test_records_go_in_and_out_unchanged(broker: KafkaBroker) -> None:
    lines = "".join(
        json.dumps(
            {
                "key": f"k{at % 7}",
                "value": "." * (at % 300),
                "headers": {"n": str(at)},
                "timestamp_ms": T0_MS + at,
            }
        )
        + "\n"
        for at in range(3_000)
    )
    for topic in ("first", "second"):
        ok(broker, "topics", "create", topic, "--partitions", "3", *KEPT)
    ok(broker, "produce", "first", "--format", "json", "--compression", "zstd", stdin=lines)
    printed = ok(broker, "consume", "first", "--exit-when-caught-up", "--format", "json")
    ok(broker, "produce", "second", "--format", "json", stdin=printed)
    newer = ("--group", "newer", "--group-protocol", "consumer")
    for group in ((), ("--group", "audit"), newer):
        again = ok(broker, "consume", "second", "--exit-when-caught-up", "--format", "json", *group)
        assert sorted(again.splitlines()) == sorted(
            printed.replace('"topic": "first"', '"topic": "second"').splitlines()
        )
    assert ok(broker, "consume", "second", "--exit-when-caught-up", "--group", "audit") == ""
    assert ok(broker, "consume", "second", "--exit-when-caught-up", *newer) == ""
    wanted = {(one["key"], one["value"]) for one in map(json.loads, lines.splitlines())}
    assert {(one["key"], one["value"]) for one in map(json.loads, printed.splitlines())} == wanted
