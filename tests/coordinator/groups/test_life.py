"""Groups that come back from records that another version, or Kafka itself, has written."""

from __future__ import annotations

import itertools

import pytest

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import GroupState
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    GroupMetadataValue,
    GroupMetadataValueMemberMetadata,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.coordinator.groups.script import Call, Script


def _record(
    version: int, leader: str | None, *members: tuple[str, str | None], rebalance_timeout_ms: int = 20_000
) -> tuple[bytes, bytes]:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader=leader,
        current_state_timestamp=7,
        members=[
            GroupMetadataValueMemberMetadata(
                member_id=member_id,
                group_instance_id=instance,
                client_id="c",
                client_host="/h",
                rebalance_timeout=rebalance_timeout_ms,
                session_timeout=10_000,
                subscription=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff",
                assignment=member_id.encode(),
            )
            for member_id, instance in members
        ],
    )
    return records.group_key("g"), version.to_bytes(2, "big") + value.encode(version)


def _load(*log: tuple[bytes, bytes | None]) -> Script:
    script = Script()
    script.log += log
    script.do_restart()
    return script


def _back(shard: Shard, number: int) -> None:
    """A static member joins again under another member id."""
    offer = [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\1\0\5other\xff\xff\xff\xff")]
    request = JoinGroupRequest("g", 10_000, 20_000, "", f"i{number}", "consumer", offer)
    assert shard.handle(request, Call("a", "join", 5, "c"), 0) is None


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_record_version_come_back_stable(version: int) -> None:
    script = _load(_record(version, "a", ("a", None), ("b", None)))
    group = script.shard._groups["g"]
    assert (group.state, group.generation, group.leader) == (GroupState.STABLE, 5, "a")
    assert group.subscribed == frozenset({"t"})
    # A record too old to hold a rebalance timeout: it is the session timeout.
    assert group.members["b"].rebalance_timeout_ms == (10_000 if version == 0 else 20_000)
    assert script.play("heartbeat x id=b gen=5; sync x id=b gen=5") == [
        "0s  x: heartbeat ok",
        "0s  x: sync ok consumer/range assignment=b",
    ]
    # The next generation is above the one in the record, though no number was reserved.
    assert script.play("join a id=a; join b id=b")[-2:] == [
        "0s  a: join ok generation=6 type=consumer protocol=range leader=a id=a members=a,b",
        "0s  b: join ok generation=6 type=consumer protocol=range leader=a id=b",
    ]


def test_a_leader_that_is_no_member_is_replaced_by_the_first_one() -> None:
    script = _load(_record(3, None, ("a", None), ("b", None)))
    assert script.shard._groups["g"].leader == "a"


def test_static_members_that_come_back_at_once_are_stored_once() -> None:
    count = 40
    script = _load(_record(3, "a0", *((f"a{number}", f"i{number}") for number in range(count))))
    shard, core = script.shard, script.shard._core
    for number in (1, 0, *range(2, count)):  # the leader, whose id stands twice, not first
        _back(shard, number)
    outbox = shard.drain()
    [append] = outbox.appends
    assert outbox.answers == []
    [(_, raw)] = append.records
    assert raw is not None
    assert len(raw) == core.groups["g"].record_bytes
    assert records.decode_group_value(raw) == core.groups["g"].synced

    _back(shard, 0)  # what was handed over stays as it is, and one that nobody has stored yet is not replaced
    _back(shard, 0)
    assert [one.records == append.records for one in shard.drain().appends] == [False, False]
    shard.durable(append.position, 0)
    answered = [answer.response.member_id for answer in shard.drain().answers]
    assert len(answered) == count
    assert set(answered) == {one.member_id for one in records.decode_group_value(raw).members}


def test_static_member_that_comes_back_behind_another_record_is_stored_behind_it() -> None:
    script = _load(_record(3, "a0", ("a0", "i0"), ("a1", "i1")))
    shard, core = script.shard, script.shard._core
    group = core.groups["g"]
    _back(shard, 0)
    assert group.synced is not None
    core.write_group(group, group.synced, records.encode_group_value(group.synced))
    _back(shard, 1)
    [*_, (_, raw)] = (record for append in shard.drain().appends for record in append.records)
    assert raw is not None
    assert records.decode_group_value(raw) == group.synced


def test_absent_static_members_stay_through_the_join_phase() -> None:
    # They may stand in a log of Kafka's. Nobody can be them yet, but the phases treat them as Kafka does:
    # they stay
    # until their session ends, and an absent leader is replaced.
    script = _load(_record(3, "s", ("s", "instance-1"), ("d", None)))
    lines = script.play(
        "join x rebalance=20s v=3; join d id=d; heartbeat s id=s gen=5; tick 9s; heartbeat s id=s gen=5"
    )
    assert "9s  s: heartbeat REBALANCE_IN_PROGRESS" in lines
    lines = script.play("tick 9s; heartbeat s id=s gen=5; tick 2s")
    assert "20s  d: join ok generation=6 type=consumer protocol=range leader=d id=d members=s,d,x-1" in lines
    assert script.play("heartbeat s id=s gen=5") == ["20s  s: heartbeat ILLEGAL_GENERATION"]


def test_a_join_phase_that_only_absent_static_members_are_in_goes_on() -> None:
    script = _load(_record(3, "s", ("s", "instance-1"), ("d", None)))
    script.play("leave d id=d; tick 9s; heartbeat s id=s gen=5; tick 9s; heartbeat s id=s gen=5; tick 9s")
    assert script.play("state") == ["27s  state PreparingRebalance generation 5 members [s*]"]
    assert script.play("tick 1s; state")[-1] == "28s  state Empty generation 6 members []"


def test_absent_static_members_without_a_rebalance_timeout_do_not_stop_the_clock() -> None:
    script = _load(_record(3, "s", ("s", "instance-1"), ("d", None), rebalance_timeout_ms=0))
    script.play("leave d id=d; tick 10s")
    assert script.play("state") == ["10s  state Empty generation 6 members []"]


def test_a_group_of_a_floor_alone_does_not_exist_but_its_numbers_are_taken() -> None:
    script = _load((records.reserved_key("g"), records.reserved_value(40)))
    assert script.play("list; heartbeat a id=x gen=40") == [
        "0s  list nothing",
        "0s  a: heartbeat UNKNOWN_MEMBER_ID",
    ]
    assert "generation=41" in script.play("join a v=3; tick 3s")[-1]


def test_unknown_key_types_and_tombstones_of_unknown_things_are_skipped() -> None:
    script = _load(
        (b"\0\x09whatever", b"x"),
        (records.group_key("gone"), None),
        (records.offset_key("gone", "t", 0), None),
        (records.reserved_key("gone"), None),
    )
    assert not script.shard._groups


def test_a_record_that_cannot_be_read_stops_the_load() -> None:
    offset, pending = records.offset_key("grp", "foo", 0), records.pending_key("grp", "foo", 0, 7)
    group, value = _record(3, "a", ("a", None))
    floor = records.reserved_key("grp")
    good = records.offset_value(1, -1, "", 0, -1)
    for key, bad in ((offset, good[:-1]), (pending, b"\0\3\0"), (group, value[:-3]), (floor, b"\0")):
        for before in ([], [(offset, good)]):
            shard = Shard(0, GroupSettings(), lambda prefix: prefix)
            with pytest.raises(MalformedError):
                shard.replay([*before, (key, bad)])


def test_a_deleted_topic_takes_what_was_stored_for_it_and_nothing_of_the_next_one() -> None:
    deleted, new = bytes(range(16)), bytes(range(16, 32))
    script = _load(
        *(
            (records.offset_key("g", "t", number), records.offset_value(5, -1, metadata, 0, -1, topic_id))
            for number, (metadata, topic_id) in enumerate(
                [("", deleted), ("x", deleted), ("", ZERO_UUID), ("x", ZERO_UUID), ("", new), ("x", new)]
            )
        ),
        (records.pending_key("g", "t", 0, 7), records.offset_value(6, -1, "", 0, -1)),
        (records.pending_key("g", "t", 5, 7), records.offset_value(6, -1, "", 0, -1)),
    )
    group = script.shard._groups["g"]
    script.shard.topic_deleted("t", Call("", "deleted", 0, None), script.now_ms, deleted)
    assert list(group.offsets["t"]) == [4, 5]
    assert list(group.open_at) == [("t", 5)]
    script.shard.topic_deleted("t", Call("", "deleted", 0, None), script.now_ms)
    assert (group.offsets, group.open_at) == ({}, {}), "of whatever topic"


def test_a_group_that_was_deleted_further_on_in_the_log_is_forgotten() -> None:
    key, value = _record(3, "a", ("a", None))
    script = _load(
        (key, value),
        (records.reserved_key("g"), records.reserved_value(3)),
        (key, None),
        (records.reserved_key("g"), None),
    )
    assert not script.shard._groups


def test_every_group_of_a_large_shard_is_cleaned_up_in_steps() -> None:
    count = itertools.count()
    shard = Shard(
        0, GroupSettings.model_construct(offsets_retention_minutes=1), lambda prefix: f"{prefix}{next(count)}"
    )
    value = records.offset_value(1, -1, "", 0, -1)
    # Many small groups, and one that is larger than a step.
    shard.replay((records.offset_key(f"g{number}", "t", 0), value) for number in range(1_200))
    shard.replay((records.offset_key("large", "t", number), value) for number in range(5_000))
    shard.loaded(0, 0)
    now_ms, steps = 0, 0
    while shard._groups:
        due = shard.next_deadline()
        assert due is not None
        now_ms = due
        shard.tick(now_ms)
        appends = shard.drain().appends
        assert sum(len(append.records) for append in appends) <= 500
        if appends:
            shard.durable(appends[-1].position, now_ms)
            steps += 1
    assert steps == 15
    assert now_ms == 600_000
