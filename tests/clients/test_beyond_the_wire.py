"""Texts and numbers that no request has room for are refused where they are given, and the client goes on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from ringleader import Admin, GroupConsumer, MemberProtocol, OffsetAndMetadata, PartitionConsumer
from ringleader.clients.acls import Acl
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.group.settings import MemberSettings, SubscriptionSettings
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Source, consumer, read_count

Text = str
TEXTS = {"half a pair": "a\ud800", "too long": "é" * 20_000}

CONSUMER_CALLS: dict[str, Callable[[GroupConsumer, Text], Any]] = {
    "commit a topic": lambda one, text: one.commit({(text, 0): 1}),
    "commit metadata": lambda one, text: one.commit({("t", 0): OffsetAndMetadata(1, text)}),
    "commit_nowait": lambda one, text: one.commit_nowait({("t", 0): OffsetAndMetadata(1, text)}),
    "committed": lambda one, text: one.committed([(text, 0)]),
    "subscribe": lambda one, text: one.subscribe([text]),
    "beginning_offsets": lambda one, text: one.beginning_offsets([(text, 0)]),
    "end_offsets": lambda one, text: one.end_offsets([(text, 0)]),
    "offsets_for_times": lambda one, text: one.offsets_for_times({(text, 0): 0}),
    "member.store": lambda one, text: one.member.store({(text, 0): 1}),
    "member.rejoin": lambda one, text: one.member.rejoin(text),
    "member.leave": lambda one, text: one.member.leave(text),
}

ADMIN_CALLS: dict[str, Callable[[Admin, Text], Any]] = {
    "create_topic": lambda admin, text: admin.create_topic(text),
    "create_topic setting": lambda admin, text: admin.create_topic("x", configs={text: "1"}),
    "create_topic value": lambda admin, text: admin.create_topic("x", configs={"a": text}),
    "create_partitions": lambda admin, text: admin.create_partitions(text, 9),
    "delete_topics": lambda admin, text: admin.delete_topics([text]),
    "describe_topics": lambda admin, text: admin.describe_topics([text]),
    "topic_configs": lambda admin, text: admin.topic_configs(text),
    "alter_topic_configs": lambda admin, text: admin.alter_topic_configs(text, {}),
    "alter_topic_configs setting": lambda admin, text: admin.alter_topic_configs("t", {}, delete=[text]),
    "start_offsets": lambda admin, text: admin.start_offsets([(text, 0)]),
    "list_groups": lambda admin, text: admin.list_groups([text]),
    "describe_groups": lambda admin, text: admin.describe_groups([text]),
    "delete_groups": lambda admin, text: admin.delete_groups([text]),
    "group_offsets": lambda admin, text: admin.group_offsets(text),
    "group_offsets topic": lambda admin, text: admin.group_offsets("g", [(text, 0)]),
    "set_group_offsets": lambda admin, text: admin.set_group_offsets(text, {("t", 0): 1}),
    "set_group_offsets topic": lambda admin, text: admin.set_group_offsets("g", {(text, 0): 1}),
    "delete_group_offsets": lambda admin, text: admin.delete_group_offsets("g", [(text, 0)]),
    "lag": lambda admin, text: admin.lag(text),
    "set_scram_user": lambda admin, text: admin.set_scram_user(text, "a password"),
    "delete_scram_user": lambda admin, text: admin.delete_scram_user(text),
    "acls": lambda admin, text: admin.acls(principal=text),
    "create_acls": lambda admin, text: admin.create_acls([Acl(f"User:{text}", "READ", "TOPIC", "t")]),
}

MADE: dict[str, Callable[[Text], Any]] = {
    "group id": lambda text: GroupConsumer("h:1", text, "t"),
    "topic": lambda text: GroupConsumer("h:1", "g", text),
    "client id": lambda text: GroupConsumer("h:1", "g", "t", client_id=text),
    "instance id": lambda text: GroupConsumer("h:1", "g", "t", group_instance_id=text),
    "rack": lambda text: GroupConsumer("h:1", "g", "t", client_rack=text),
    "remote assignor": lambda text: SubscriptionSettings(
        group_protocol="consumer", group_remote_assignor=text
    ),
    "protocol type": lambda text: MemberSettings(group_id="g", protocol_type=text),
    "protocol": MemberProtocol,
    "partitions": lambda text: PartitionConsumer("h:1", [text]),
    "admin": lambda text: Admin("h:1", client_id=text),
}

REFUSED = r"cannot be sent as UTF-8|at most 32767 bytes of UTF-8, not 4000|needs 1 to 249 characters"


async def ended(call: Any) -> None:
    if inspect.isawaitable(call):
        await call


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_text_beyond_the_wire_is_refused_where_something_is_made(
    made: Callable[[Text], Any], text: Text
) -> None:
    with pytest.raises(ValueError, match=REFUSED) as found:
        made(text)
    str(found.value).encode()


async def test_a_text_beyond_the_wire_hurts_no_consumer(coordinator: Coordinator) -> None:
    Source(coordinator).put(("t", 0), 10)
    async with consumer(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        for call in CONSUMER_CALLS.values():
            for text in TEXTS.values():
                with pytest.raises(ValueError, match=REFUSED) as found:
                    await ended(call(one, text))
                str(found.value).encode()
        await read_count(one, 10)
        await one.commit()
        assert (await one.committed())[("t", 0)].offset == 10
        assert one.member.error is None


async def test_a_text_beyond_the_wire_hurts_no_admin(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        for call in ADMIN_CALLS.values():
            for text in TEXTS.values():
                with pytest.raises(ValueError, match=REFUSED) as found:
                    await call(admin, text)
                str(found.value).encode()
        assert [topic.name for topic in await admin.list_topics()] == ["t"]


@pytest.mark.parametrize("offset", [-1, 2**63])
async def test_no_log_has_such_an_offset(coordinator: Coordinator, offset: int) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.set_group_offsets("g", {("t", 0): 5})
        with pytest.raises(ValueError, match=r"the offset of t-0 has to be 0 to"):
            await admin.set_group_offsets("g", {("t", 0): offset})
        assert (await admin.group_offsets("g"))[("t", 0)].offset == 5


NUMBERS: dict[str, Callable[[Admin], Any]] = {
    "partitions": lambda admin: admin.create_topic("x", 2**31),
    "replication_factor": lambda admin: admin.create_topic("x", 1, replication_factor=2**15),
    "total": lambda admin: admin.create_partitions("t", 2**31),
    "a partition": lambda admin: admin.end_offsets([("t", 2**31)]),
    "a time in ms": lambda admin: admin.offsets_at({("t", 0): 2**63}),
    "a partition of a group": lambda admin: admin.group_offsets("g", [("t", -1)]),
    "the leader epoch": lambda admin: admin.set_group_offsets(
        "g", {("t", 0): OffsetAndMetadata(1, "", 2**31)}
    ),
}


@pytest.mark.parametrize("call", NUMBERS.values(), ids=NUMBERS)
async def test_a_number_beyond_the_wire_is_refused(
    coordinator: Coordinator, call: Callable[[Admin], Any]
) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        with pytest.raises(ValueError, match=r"has to be -?[0-9]+ to "):
            await call(admin)


LONG = ("buffer_max_bytes", "metadata_max_age_ms")
"""Nothing of these is sent."""


@pytest.mark.parametrize(
    "name",
    sorted(name for name, kind in ConsumerSettings.__annotations__.items() if kind == "int"),
)
def test_every_number_of_a_consumers_settings_has_an_end(name: str) -> None:
    beyond: dict[str, Any] = {name: 2**63}
    most: dict[str, Any] = {name: 2**63 - 1 if name in LONG else 2**31 - 1}
    with pytest.raises(ValueError, match=f"{name} has to be at most {most[name]}, not {2**63}"):
        ConsumerSettings(**beyond)
    ConsumerSettings(**most)
