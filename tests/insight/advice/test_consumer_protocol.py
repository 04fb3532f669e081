"""Advice on a move to the consumer protocol: its answer is what the group machine then does; and the history
played again in that protocol."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.descriptions import (
    GroupDescription,
    MemberDescription,
    described_consumer_group,
    described_group,
)
from ringleader.clients.model import Node
from ringleader.insight.advice import Past
from ringleader.insight.advice.consumer_protocol import (
    HEARTBEAT,
    LEADER_TIMEOUT,
    POLICY,
    SESSION,
    SIZE_MAX,
    Move,
    Point,
    Server,
    Way,
    Weight,
    consumer_protocol,
    move_json,
)
from ringleader.insight.advice.replay import Policy, Replay
from ringleader.insight.advice.replay.script import script_of
from ringleader.insight.advice.replay.world import World
from ringleader.insight.model import GroupState, Kind, Member
from ringleader.insight.plain import plain
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.groups.mixed_desk import MixedDesk, with_settings
from tests.coordinator.groups.test_consumer import Ticket
from tests.insight.advice.test_patterns import (
    deploy,
    orders,
    past_of,
    scaling,
    slow_joiner,
    static_deploy,
)
from tests.insight.made import Made

NODE = Node(1, "broker", 9092)
NOTHING = Past("g", 0, 1)
KAFKA = {POLICY: "bidirectional", SESSION: "45000", HEARTBEAT: "5000", SIZE_MAX: str(2**31 - 1)}
CONSUMER = Policy("the consumer protocol", consumer=True)


def described(desk: MixedDesk) -> GroupDescription:
    """As DescribeGroups says it."""
    return described_group(desk.shard.describe("g", 5, Ticket(5)), NODE)


def about(move: Move, what: str) -> Point:
    (found,) = [one for one in move.points if one.about == what]
    return found


# ---- the machine is the judge ----


def test_drawn_groups_move_as_advised(seed: int) -> None:
    """A member of the consumer protocol joins: its group is upgraded where that is the advice, and is not
    elsewhere. Where its members have to stop first, it is one of the protocol after they have."""
    rng = random.Random(seed)
    seen: dict[Way, int] = dict.fromkeys(Way, 0)
    for _ in range(300):
        policy = rng.choice(("bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"))
        most = rng.choice((2, 2**31 - 1, 2**31 - 1))
        desk = with_settings(group_consumer_migration_policy=policy, group_consumer_max_size=most)
        names = [f"{rng.choice(('static', 'pod'))}-{number}" for number in range(rng.randrange(5))]
        name = rng.choice(("range", "cooperative-sticky", "sticky", "own"))
        data = rng.choice((None, b"", b"something"))
        more: dict[str, Any] = {"metadata": Subscription(["orders"], data).encode(), "names": (name,)}
        if rng.random() < 0.1:
            more["metadata"] = b"\0\3nonsense"
        if rng.random() < 0.1:
            more |= {"protocol_type": "connect"}
        if names:
            desk.classic_group(*names, user_data=rng.choice((None, None, b"", b"its own")), **more)
        now = described(desk)
        move = consumer_protocol("g", NOTHING, Server(True, {POLICY: policy, SIZE_MAX: str(most)}), now)
        seen[move.way] += 1
        code = desk.beat("new", 0).error_code
        if code == ErrorCode.GROUP_MAX_SIZE_REACHED and move.way is Way.ONLINE:
            assert about(move, "size").weight is Weight.HINDERS
            desk.leaves(now.members[0].member_id)
            code = desk.beat("new", 0).error_code
        accepted = code == 0
        context = f"{policy}, at most {most}, {now}: {move}"
        assert accepted is (move.way is Way.ONLINE or not names), context
        if move.way is Way.WITHOUT_MEMBERS and names:
            for one in now.members:
                desk.leaves(one.member_id)
            assert desk.beat("new", 0).error_code == 0, context
        if accepted:
            found = desk.shard.describe_consumer("g", Ticket())
            again = consumer_protocol("g", NOTHING, Server(True, {}), described_consumer_group(found, NODE))
            assert again.way is Way.SPEAKS_IT
            assert bool(again.points) is bool(names), context
    assert min(seen[way] for way in (Way.ONLINE, Way.WITHOUT_MEMBERS, Way.NO)) > 5, seen


# ---- what it says ----


def group(*members: MemberDescription, protocol: str = "range", **more: Any) -> GroupDescription:
    return replace(GroupDescription("g", "Stable", "consumer", protocol, members, NODE), **more)


def member(client_id: str, *, rack: str | None = None, data: bytes | None = None) -> MemberDescription:
    metadata = Subscription(["orders"], data).encode()
    given = Assignment({"orders": [0]}).encode()
    return MemberDescription(
        f"{client_id}-1", None, client_id, "/10.0.0.1", ("orders",), {"orders": [0]}, metadata, given, rack
    )


def advised(*members: MemberDescription, settings: dict[str, str] | None = None, **more: Any) -> Move:
    server = Server(True, KAFKA if settings is None else KAFKA | settings)
    return consumer_protocol("g", NOTHING, server, group(*members, **more))


@pytest.mark.parametrize(
    ("client_id", "weight", "says"),
    [
        ("rdkafka", Weight.CHANGES, "librdkafka, as client ids say: it speaks the protocol from 2.12 on"),
        ("consumer-billing-7", Weight.CHANGES, "Java, as client ids say: it speaks the protocol from 4.0 on"),
        ("aiokafka-0.14.0", Weight.HINDERS, "aiokafka 0.14.0, as client ids say: it speaks the classic"),
        ("kafka-python-3.0.12", Weight.HINDERS, "kafka-python 3.0.12, as client ids say: it speaks the"),
        ("billing", Weight.CHANGES, "client ids of their own (billing)"),
    ],
)
def test_the_library_by_the_client_id(client_id: str, weight: Weight, says: str) -> None:
    move = advised(member(client_id), member(f"{client_id}"))
    assert move.way is Way.ONLINE
    found = about(move, "clients")
    assert found.weight is weight
    assert says in found.text


@pytest.mark.parametrize(
    ("protocol", "settings", "weight", "value"),
    [
        ("range", {}, Weight.CHANGES, "range"),
        ("cooperative-sticky", {}, Weight.CHANGES, "remove it"),
        ("roundrobin", {}, Weight.CHANGES, "remove it"),
        ("weighted", {}, Weight.HINDERS, None),
        ("weighted", {LEADER_TIMEOUT: "5000"}, Weight.CHANGES, "client:weighted"),
    ],
)
def test_the_assignor_that_takes_its_place(
    protocol: str, settings: dict[str, str], weight: Weight, value: str | None
) -> None:
    found = about(advised(member("a"), settings=settings, protocol=protocol), "assignor")
    assert found.weight is weight
    assert [one.value for one in found.changes][:1] == ([value] if value else [])


def test_what_members_tell_an_assignor_of_their_own_is_lost_on_kafka() -> None:
    pods = member("a", data=b"weight 3"), member("b")
    on_kafka = about(advised(*pods, protocol="weighted"), "user data")
    assert (on_kafka.weight, on_kafka.members) == (Weight.HINDERS, ("a@10.0.0.1",))
    here = about(advised(*pods, protocol="weighted", settings={LEADER_TIMEOUT: "5000"}), "user data")
    assert "assignor_user_data" in here.text
    # The sticky assignor's own data is what the member had: the coordinator knows that.
    assert "user data" not in {one.about for one in advised(*pods, protocol="sticky").points}


def test_racks_a_rebalance_and_eager_members() -> None:
    move = advised(member("a", rack="east"), member("b"), state="PreparingRebalance")
    assert about(move, "racks").members == ("a@10.0.0.1",)
    assert [one.weight for one in move.points if one.about == "meanwhile"] == [Weight.HINDERS, Weight.CHANGES]
    assert about(move, "racks").changes == ()
    ours = {LEADER_TIMEOUT: "5000", "group.consumer.assignors": "uniform,range"}
    without = about(advised(member("a", rack="east"), settings=ours), "racks")
    assert (without.weight, without.changes[0].value) == (Weight.HINDERS, "uniform,range,rack")
    ours["group.consumer.assignors"] = "uniform,range,rack"
    found = about(advised(member("a", rack="east"), settings=ours), "racks")
    assert (found.weight, [one.value for one in found.changes]) == (Weight.CHANGES, ["rack"])
    quiet = advised(member("a"), protocol="cooperative-sticky")
    assert not {"racks", "meanwhile"} & {one.about for one in quiet.points}


@pytest.mark.parametrize(
    ("requested_ms", "settings", "own"),
    [
        (45_000, {}, None),
        (10_000, {}, None),
        (50_000, {}, "50000"),
        (120_000, {}, "60000"),
        (10_000, {"group.consumer.min.session.timeout.ms": "5000"}, "10000"),
    ],
)
def test_the_session_that_members_ask_for_becomes_a_setting_of_the_group(
    requested_ms: int, settings: dict[str, str], own: str | None
) -> None:
    pod = Member("a-1", "a", "/10.0.0.1", None, ("orders",), (("orders", 0),), requested_ms, 300_000)
    state = GroupState("g", Kind.CLASSIC, "Stable", 3, "consumer", "range", "a-1", (pod,), 0)
    past = replace(NOTHING, state=state)
    move = consumer_protocol("g", past, Server(True, KAFKA | settings), group(member("a")))
    changes = {one.setting: one.value for one in about(move, "timeouts").changes}
    assert changes.get("consumer.session.timeout.ms") == own
    assert ("is not to be had" in about(move, "timeouts").text) is (requested_ms == 10_000 and own is None)


def test_what_was_not_asked_is_said() -> None:
    pod = Member("a-1", "a", "/10.0.0.1", "pod-a", ("orders",), (("orders", 0),), 45_000, 300_000)
    state = GroupState("g", Kind.CLASSIC, "Stable", 3, "consumer", "range", "a-1", (pod,), 0)
    move = consumer_protocol("g", replace(NOTHING, state=state))
    assert move.way is Way.ONLINE
    assert "--bootstrap-server asks it" in about(move, "cluster").text
    assert "UNRELEASED_INSTANCE_ID" in about(move, "static members").text
    unreadable = consumer_protocol("g", NOTHING, Server(True), group(member("a")))
    assert "could not be read" in about(unreadable, "cluster").text


@pytest.mark.parametrize(
    ("move", "way", "says"),
    [
        (consumer_protocol("g", NOTHING, Server(False), group(member("a"))), Way.NO, "from 4.0 on"),
        (consumer_protocol("g", NOTHING, Server(True, KAFKA), group_type="share"), Way.NO, "a share group"),
        (advised(member("a"), protocol_type="connect"), Way.NO, "something else than partitions"),
        (advised(member("a"), protocol="stream"), Way.NO, "Kafka Streams"),
        (advised(protocol_type="", protocol="", state="Empty"), Way.WITHOUT_MEMBERS, "assign()"),
    ],
)
def test_groups_of_other_kinds(move: Move, way: Way, says: str) -> None:
    assert move.way is way
    assert says in about(move, "type" if "4.0" not in says else "cluster").text


# ---- the history in the consumer protocol ----


def test_only_what_changes_owners_stops(tmp_path: Path) -> None:
    """A member that joins 40 s late held up all of a classic group; and a static member's restart is none."""
    past = past_of(tmp_path, slow_joiner)
    move = consumer_protocol("orders", past)
    assert move.saving is not None
    assert move.saving.claimed
    assert move.saving.unowned_ms < move.saving.unowned_as_was_ms / 20
    assert move_json(move, plain)["saving"]["saved_ms"] == move.saving.saved_ms


def test_a_static_member_that_is_restarted_moves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dynamic").mkdir()
    static, dynamic = past_of(tmp_path, static_deploy), past_of(tmp_path / "dynamic", deploy)
    assert Replay(static).saving(CONSUMER).rebalances < Replay(dynamic).saving(CONSUMER).rebalances
    assert Replay(static).saving(CONSUMER).rebalances <= 2  # the first members came


def test_members_get_what_moves_at_their_next_heartbeats(tmp_path: Path) -> None:
    """Of 12 partitions of six members one moves to the seventh, and is nobody's until its next heartbeat."""

    def script(made: Made) -> None:
        group = orders(made)
        made.wait(600)
        group.join("app-6")
        made.wait(600)

    past = past_of(tmp_path, script)
    began = replace(past, rebalances=past.rebalances[-1:])
    for heartbeat_ms in (1_000, 5_000):
        policy = replace(CONSUMER, heartbeat_ms=heartbeat_ms)
        played = World(script_of(began), policy).play()
        assert played.epochs == 1
        assert heartbeat_ms / 20 < played.unowned_ms <= heartbeat_ms


def test_a_silent_member_has_its_partitions_for_the_coordinators_session(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = orders(made)
        made.wait(600)
        group.crash("app-2")
        made.wait(600)

    player = Replay(past_of(tmp_path, script))
    short, long = (
        player.saving(replace(CONSUMER, session_timeout_ms=session_ms)).unowned_ms
        for session_ms in (10_000, 45_000)
    )
    # Two partitions for so much longer, but for the heartbeat at which others get them.
    assert long - short == pytest.approx(2 * 35_000, abs=2 * 5_000)


def test_the_same_record_gives_the_same_replay_in_the_consumer_protocol(tmp_path: Path) -> None:
    past = past_of(tmp_path, scaling)
    one, other = (World(script_of(past), CONSUMER).play() for _ in range(2))
    assert one == other
    assert one.epochs
