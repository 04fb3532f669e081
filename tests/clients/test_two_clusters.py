"""Groups on one cluster, records on another: each is asked for what is its own, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import SaslPlain
from ringleader.clients.consumer import GroupConsumer, SyncGroupConsumer
from ringleader.clients.errors import ConnectionLostError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of, sync_consumer_member
from ringleader.clients.model import MemberProtocol, OffsetAndMetadata
from ringleader.clients.options import cluster_of
from ringleader.testing.coordinator import Coordinator
from tests.support.certificates import Certificates
from tests.support.consuming import PATIENCE_S, QUICK, Source, consumer, read_count, until
from tests.support.sasl_server import guarded, server
from tests.support.scripted_broker import ScriptedBroker

HANDSHAKE = {"ApiVersions"}
RECORDS = {"Metadata", "Fetch", "ListOffsets"}
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def log() -> Iterator[Coordinator]:
    """Where the records are."""
    with Coordinator(topics={"t": 4}) as found:
        yield found


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def requested_apis(where: Coordinator) -> set[str]:
    """The APIs that clients asked for."""
    return {one.api for one in where.faults.seen()} - HANDSHAKE


def apart(coordinator: Coordinator, log: Coordinator) -> None:
    """The records' cluster was asked for records only, the coordinators' for none."""
    assert requested_apis(log) <= RECORDS
    assert not requested_apis(coordinator) & RECORDS


async def test_a_consumer_reads_from_one_and_commits_to_the_other(
    coordinator: Coordinator, log: Coordinator
) -> None:
    source = Source(log)
    source.fill()
    async with consumer(log, coordinator_bootstrap=coordinator.bootstrap) as one:
        sink = await read_count(one, 400)
        await one.commit()
    sink.exactly(source)
    assert {"Metadata", "Fetch"} <= requested_apis(log)
    assert {"FindCoordinator", "JoinGroup", "SyncGroup", "OffsetCommit", "OffsetFetch"} <= requested_apis(
        coordinator
    )
    apart(coordinator, log)
    async with Admin(coordinator.bootstrap) as admin:
        committed = await admin.group_offsets("g")
    assert {place: one.offset for place, one in committed.items()} == source.counts
    async with Admin(log.bootstrap) as admin:
        assert await admin.list_groups() == []


async def test_a_moved_coordinator_is_found_where_the_groups_are(
    coordinator: Coordinator, log: Coordinator
) -> None:
    source = Source(log)
    async with consumer(log, coordinator_bootstrap=[coordinator.bootstrap]) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.move_coordinator()
        source.fill()
        sink = await read_count(one, 400)
        await one.commit()
    sink.exactly(source)
    apart(coordinator, log)


def test_without_an_event_loop(coordinator: Coordinator, log: Coordinator) -> None:
    log.produce("t", b"1", b"2")
    options: dict[str, Any] = {"coordinator_bootstrap": coordinator.bootstrap} | QUICK
    with SyncGroupConsumer(log.bootstrap, "g", "t", **options) as one:
        batch = one.getone(PATIENCE_S)
        assert batch is not None
        assert batch.record.value == b"1"
        one.commit()
        assert one.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(1, leader_epoch=0)}
    with sync_consumer_member(log.bootstrap, "m", ["t"], **options) as member:
        assert len(partitions_of(member.wait_assigned(PATIENCE_S))) == 4
    apart(coordinator, log)


async def test_the_leader_sees_topics_and_lags_where_the_records_are(
    coordinator: Coordinator, log: Coordinator
) -> None:
    """By pattern and by lag; the coordinators know one topic more, which is not to match."""
    coordinator.create_topic("t2", 2)
    log.produce("t", *[b"x"] * 50)
    options: dict[str, Any] = QUICK | {
        "coordinator_bootstrap": coordinator.bootstrap,
        "pattern": "t.*",
        "assignors": ["lag-aware"],
        "auto_offset_reset": "earliest",
    }
    async with (
        consumer_member(log.bootstrap, "g", **options) as one,
        consumer_member(log.bootstrap, "g", **options) as two,
    ):
        await until(lambda: shares(one, two) == [[("t", 0)], [("t", 1), ("t", 2), ("t", 3)]])
    assert "OffsetFetch" in requested_apis(coordinator)
    assert "ListOffsets" in requested_apis(log)
    apart(coordinator, log)


def shares(*members: GroupMember) -> list[list[tuple[str, int]]]:
    return sorted(partitions_of(held) for one in members if (held := one.assigned) is not None)


async def test_a_member_of_another_type_leaves_the_records_alone(
    coordinator: Coordinator, log: Coordinator
) -> None:
    def assign(_protocol: str, members: list[Any]) -> dict[str, bytes]:
        return {one.member_id: b"all" for one in members}

    options: dict[str, Any] = {"protocol_type": "jobs", "protocols": [MemberProtocol("p")], "assign": assign}
    member = GroupMember(NOWHERE, "g", coordinator_bootstrap=coordinator.bootstrap, **options)
    async with member:
        await member.ready(PATIENCE_S)
        assert (await member.wait_assigned(PATIENCE_S)).assignment == b"all"
        await member.commit({("t", 0): 5})
        assert await member.committed() == {("t", 0): OffsetAndMetadata(5)}


async def test_a_static_leader_that_comes_back_asks_for_its_group_where_it_is(
    coordinator: Coordinator, log: Coordinator
) -> None:
    options: dict[str, Any] = QUICK | {
        "coordinator_bootstrap": coordinator.bootstrap,
        "group_instance_id": "a",
        "metadata_max_age_ms": 50,
    }
    async with consumer_member(log.bootstrap, "g", ["t"], **options) as one:
        await one.wait_assigned(PATIENCE_S)
    async with consumer_member(log.bootstrap, "g", ["t"], **options) as one:
        await one.wait_assigned(PATIENCE_S)
        await until(lambda: "DescribeGroups" in requested_apis(coordinator))
        looks = len(log.faults.seen("Metadata"))
        await until(lambda: len(log.faults.seen("Metadata")) > looks)
    apart(coordinator, log)


async def test_the_admin_asks_each_for_its_own(coordinator: Coordinator, log: Coordinator) -> None:
    log.produce("t", *[b"x"] * 10, partition=2)
    async with Admin(log.bootstrap, coordinator_bootstrap=coordinator.bootstrap) as admin:
        await admin.create_topic("u", 1)
        await admin.set_group_offsets("g", {("t", 2): 4})
        (lag,) = await admin.lag("g")
        assert (lag.committed, lag.end, lag.lag) == (4, 10, 6)
        assert [one.group_id for one in await admin.list_groups()] == ["g"]
        await admin.delete_group_offsets("g", [("t", 2)])
        assert await admin.group_offsets("g") == {}
    groups = {
        "FindCoordinator",
        "OffsetCommit",
        "OffsetFetch",
        "DescribeGroups",
        "ListGroups",
        "OffsetDelete",
    }
    # Metadata tells the coordinators which nodes there are, to ask each for its groups.
    assert requested_apis(coordinator) == groups | {"Metadata"}
    assert requested_apis(log) == RECORDS - {"Fetch"} | {"CreateTopics"}


# ---- what is wrong is said with the address that it is wrong with ----


@pytest.mark.parametrize("wrong", ["bootstrap", "coordinator_bootstrap"])
async def test_the_error_names_the_cluster_that_cannot_be_reached(
    coordinator: Coordinator, wrong: str
) -> None:
    bootstrap = {"bootstrap": coordinator.bootstrap, "coordinator_bootstrap": coordinator.bootstrap}
    bootstrap[wrong] = NOWHERE
    one = consumer(bootstrap["bootstrap"], coordinator_bootstrap=bootstrap["coordinator_bootstrap"])
    with pytest.raises(
        ConnectionLostError, match=rf"^none of the {wrong} servers could .*: .*127\.0\.0\.1:1"
    ):
        await one.start(timeout_s=0.5)
    async with consumer_member(
        bootstrap["bootstrap"], "g", ["t"], coordinator_bootstrap=bootstrap["coordinator_bootstrap"]
    ) as member:
        if wrong == "coordinator_bootstrap":
            with pytest.raises(ConnectionLostError, match=r"^none of the coordinator_bootstrap servers"):
                await member.ready(0.5)
        else:
            await member.ready(PATIENCE_S)


@pytest.mark.parametrize("guarded_side", ["bootstrap", "coordinator_bootstrap"])
async def test_each_side_has_its_own_tls_and_sasl(certificates: Certificates, guarded_side: str) -> None:
    guard = server()
    async with ScriptedBroker() as plain, guarded(guard, tls=certificates.server_tls()) as behind_tls:
        tls, sasl = certificates.client_tls(), SaslPlain("ann", "s3cret")
        options: dict[str, Any]
        if guarded_side == "bootstrap":
            bootstrap = behind_tls.address
            options = {"tls": tls, "sasl": sasl, "coordinator_tls": None, "coordinator_sasl": None}
            options["coordinator_bootstrap"] = plain.address
        else:
            bootstrap = plain.address
            options = {"coordinator_tls": tls, "coordinator_sasl": sasl}
            options["coordinator_bootstrap"] = behind_tls.address
        async with cluster_of(bootstrap, options, client_id="a") as cluster:
            await cluster.ready(PATIENCE_S)
        assert (guard.logins, plain.connections) == (1, 1)


async def test_both_sides_have_the_same_tls_and_sasl_unless_told(certificates: Certificates) -> None:
    one, two = server(), server()
    tls = certificates.server_tls()
    async with guarded(one, tls=tls) as log, guarded(two, tls=tls) as coordinators:
        options = {"tls": certificates.client_tls(), "sasl": SaslPlain("ann", "s3cret")}
        options["coordinator_bootstrap"] = coordinators.address
        async with cluster_of(log.address, options) as cluster:
            await cluster.ready(PATIENCE_S)
        assert (one.logins, two.logins) == (1, 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"coordinator_bootstrap": "nowhere:x"},
            "coordinator_bootstrap: not an address of the form HOST:PORT",
        ),
        ({"coordinator_bootstrap": []}, "coordinator_bootstrap: no bootstrap address given"),
        (
            {"coordinator_bootstrap": 5},
            "coordinator_bootstrap has to be a text, a list of texts or None, not 5",
        ),
        ({"coordinator_tls": None}, "coordinator_tls without coordinator_bootstrap: leave it out"),
        (
            {"coordinator_sasl": SaslPlain("u", "p"), "coordinator_tls": None},
            "coordinator_tls and coordinator_sasl without coordinator_bootstrap: leave it out",
        ),
        (
            {"coordinator_bootstrap": "h:1", "coordinator_sasl": "u:secret"},
            "coordinator_sasl has to be a SaslPlain, a SaslScram, a SaslOAuthBearer or None, not str",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], sentence: str) -> None:
    calls: list[Any] = [
        lambda: GroupConsumer("h:1", "g", "t", **options),
        lambda: SyncGroupConsumer("h:1", "g", "t", **options),
        lambda: consumer_member("h:1", "g", ["t"], **options),
        lambda: GroupMember("h:1", "g", protocols=[MemberProtocol("p")], **options),
        lambda: Admin("h:1", **options),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            call()


def test_the_bootstrap_that_is_no_address_is_named_too() -> None:
    with pytest.raises(ValueError, match=r"^bootstrap: not an address"):
        GroupConsumer("nowhere:x", "g", "t", coordinator_bootstrap="h:1")
