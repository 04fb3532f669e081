"""The source's decisions with several members, cooperative hand-over, and limits on batches."""

from __future__ import annotations

import logging
import os
import pickle
import threading
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.group import positions
from ringleader.spark_bridge.group.driver import SourceDriver, Timing
from ringleader.spark_bridge.group.other_members import SourceLock
from ringleader.spark_bridge.group.triggers import Threshold
from ringleader.spark_bridge.options import stream_options
from ringleader.spark_bridge.settings import StreamSettings
from tests.spark_bridge import fakes
from tests.spark_bridge.fakes import World

T0, T1, T2, T3 = (("t", p) for p in range(4))


def test_the_shares_of_all_members_are_one_batch_and_committed_by_each() -> None:
    world = World(10, 5, members="2")
    world.share([0], [1])
    assert world.plan() == {0: (0, 10), 1: (0, 5)}
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 5}
    assert world.group.commits[-2:] == [{T0: 10}, {T1: 5}]
    report = world.driver.report()
    assert report is not None
    assert report["members"] == {"member-0": ["t-0"], "member-1": ["t-1"]}


def test_auto_is_parallelism_but_never_more_members_than_partitions() -> None:
    for given, partitions, member_count in [("auto", 2, 2), ("auto", 5, 3), ("5", 2, 5)]:
        world = World(*[0] * partitions, members=given, parallelism="3")
        world.plan()
        assert world.group.ownership is not None
        assert world.group.ownership.member_count == member_count
    world = World(0, 0, 0, weight="2.5")
    world.plan()
    assert world.group.ownership is not None
    assert world.group.ownership.member_count == 1


def test_in_an_empty_group_one_member_joins_and_the_others_when_there_is_a_batch() -> None:
    world = World(10, 10, members="2")
    world.group.nobody = True
    world.share([0, 1])
    assert world.plan() == {0: (0, 10), 1: (0, 10)}
    ownership = world.group.ownership
    assert ownership is not None
    assert ownership.member_count == 1
    assert world.read() == {0: (0, 10), 1: (0, 10)}
    assert ownership.member_count == 2
    going = world.group.revoke(("t", 1))
    assert not going.done()
    assert world.plan() is None
    assert going.done()
    world.share([0], [1])
    world.log.end.update({("t", 0): 12, ("t", 1): 12})
    assert world.plan() == {0: (10, 12), 1: (10, 12)}
    assert world.plan() is None
    assert world.committed() == {0: 12, 1: 12}


def test_without_a_batch_all_members_join_as_well() -> None:
    world = World(0, 0, members="2")
    world.group.nobody = True
    world.share([0, 1])
    assert world.plan() is None
    assert world.group.ownership is not None
    assert world.group.ownership.member_count == 2


def test_what_nobody_divides_with_joins_as_one() -> None:
    for shared, available_now in [("false", False), ("true", True)]:
        world = World(10, 10, members="auto", parallelism="2", sharedGroup=shared)
        world.share([0, 1])
        if available_now:
            world.driver.prepare_available_now()
        assert world.plan() == {0: (0, 10), 1: (0, 10)}
        assert world.group.ownership is not None
        assert world.group.ownership.member_count == 1


def test_members_follow_the_partitions_when_they_come() -> None:
    world = World(members="auto", parallelism="3", waitForTopics="true")
    world.share([])
    assert world.plan() is None
    assert world.group.ownership is not None
    assert world.group.ownership.member_count == 1
    for ends, member_count in [((4, 4), 2), ((4, 4, 4, 4), 3)]:
        world.log.end.update({("t", p): end for p, end in enumerate(ends)})
        world.driver._topics._looked_s = 0.0
        world.plan()
        assert world.group.ownership.member_count == member_count
    assert world.group.rebalanced == []
    world.log.end["t", 4] = 0
    world.driver._topics._looked_s = 0.0
    world.plan()
    assert world.group.ownership.member_count == 3
    assert world.group.rebalanced == ["t-4 came into being"]
    world.share([0, 3], [1], [2])
    assert world.plan() == dict.fromkeys(range(4), (0, 4))
    assert world.plan() is None
    assert world.committed() == dict.fromkeys(range(4), 4)


def test_static_members_stay_as_many_as_they_were() -> None:
    instance: dict[str, Any] = {"kafka.group.instance.id": "i"}
    world = World(4, members="auto", parallelism="3", **instance)
    world.share([0])
    world.plan()
    world.log.end["t", 1] = 4
    world.driver._topics._looked_s = 0.0
    world.plan()
    assert world.group.ownership is not None
    assert world.group.ownership.member_count == 1
    assert world.group.rebalanced == ["t-1 came into being"]


def test_positions_of_partitions_that_are_gone_leave_the_document() -> None:
    always: dict[str, Any] = {"kafka.metadata.max.age.ms": "1"}
    world = World(10, 10, subscribe="", subscribePattern="t|u", failOnDataLoss="false", **always)
    world.log.end["u", 0] = 5
    world.assign(0, 1)
    world.plan()
    world.group.give([("t", 0), ("t", 1), ("u", 0)])
    assert world.plan() == {0: (0, 5)}
    assert OffsetDocument.from_json(world.start, "g").positions == {T0: 10, T1: 10, ("u", 0): 5}
    world.plan()
    del world.log.end["u", 0]
    world.group.give([("t", 0), ("t", 1)])
    world.produce(0, 1)
    world.driver._topics._looked_s = 0.0
    world.plan()
    assert OffsetDocument.from_json(world.start, "g").positions == {T0: 11, T1: 10}


def test_the_first_batch_waits_for_all_members_later_ones_for_any() -> None:
    world = World(10, 10, members="2")
    timing = Timing(first_assignment_wait_s=30, assignment_wait_s=0, idle_wait_s=0, idle_poll_s=0.001)
    world.driver = SourceDriver(world.options, world.group, world.log, timing)

    def join() -> None:
        assert world.group.ownership is not None
        world.group.ownership.assigned(1, 1, "member-1", [T1])

    world.group._first = [frozenset([T0])]
    timer = threading.Timer(0.05, join)
    timer.start()
    assert world.plan() == {0: (0, 10), 1: (0, 10)}
    timer.join()


def test_a_revoked_idle_partition_goes_at_once_and_the_rest_is_read_on() -> None:
    world = World(10, 10, 0)
    world.assign(0, 1, 2)
    assert world.plan() == {0: (0, 10), 1: (0, 10)}
    assert world.group.revoke(T2).done()
    busy = world.group.revoke(T1)
    assert not busy.done()
    world.produce(0, 1)
    world.produce(1, 1)
    world.produce(2, 1)
    assert world.plan() == {0: (10, 11)}
    assert busy.done()
    assert world.committed() == {0: 10, 1: 10, 2: 0}


def test_a_kept_partition_keeps_its_position_without_asking_the_group() -> None:
    world = World(10, 10)
    world.assign(0)
    world.plan()
    world.plan()
    world.offsets[T0] = 3
    world.produce(0, 2)
    world.assign(0, 1)
    assert world.plan() == {0: (10, 12), 1: (0, 10)}
    assert world.group.requested == [{T0}, {T1}]


def test_a_batch_that_began_before_a_rebalance_is_committed_in_the_generation_after_it() -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.group.generation += 1
    moving = world.group.revoke(T1)
    assert world.plan() is None
    assert moving.done()
    assert world.committed() == {0: 10, 1: 10}
    assert world.driver.refused_commits == 0


def test_the_first_position_of_a_partition_that_moves_on_meanwhile_is_not_pinned() -> None:
    world = World(10, 10, startingOffsets="latest")
    world.assign(0, 1)
    look_up = world.log.offsets

    def slowly(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        world.log.offsets = look_up  # type: ignore[method-assign]
        assert world.group.revoke(T1).done()
        world.assign(0)
        world.offsets[T1] = 3
        return look_up(wanted)

    world.log.offsets = slowly  # type: ignore[method-assign]
    assert world.plan() == {}
    assert world.committed()[1] == 3
    world.produce(0, 2)
    assert world.plan() == {0: (10, 12)}


def test_a_commit_between_two_generations_is_made_after_the_rebalance() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.group.generation += 1
    assert world.plan() is None
    assert world.committed() == {0: 0}
    world.group.generation -= 1
    world.assign(0)
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    assert world.driver.refused_commits == 0


def test_a_partition_that_was_taken_away_costs_only_its_own_commit(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.group.lose(T1)
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 0}
    assert (world.driver.refused_commits, world.driver._batch_commits.refused_rows) == (1, 10)
    assert "up to 10 rows of 1 partitions may be processed twice: t-1[0,10)" in caplog.text


def test_a_partition_that_moves_between_members_of_the_query_is_asked_for_again() -> None:
    world = World(10, 10, members="2")
    world.share([0, 1], [])
    world.plan()
    moving = world.group.revoke(T1, index=0)
    world.produce(1, 4)
    assert world.plan() is None
    assert moving.done()
    world.share([0], [1])
    assert world.plan() == {1: (10, 14)}
    world.plan()
    assert world.committed() == {0: 10, 1: 14}


def test_a_late_member_does_not_take_what_another_of_the_query_has_by_now() -> None:
    world = World(10, members="2")
    world.share([0], [])
    world.plan()
    assert world.group.ownership is not None
    # The second member was given the partition before the first heard that it was put out.
    world.group.generation += 1
    world.group.ownership.assigned(1, world.group.generation, "member-1", [T0])
    world.group.lose(index=0)
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    assert world.driver.refused_commits == 1
    world.plan()
    assert world.committed() == {0: 11}


def test_fewer_rows_than_the_least_wait_for_more_or_for_their_time() -> None:
    world = World(10, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    world.produce(0, 4)
    assert world.plan() is None
    world.produce(0, 1)
    assert world.plan() == {0: (10, 15)}
    threshold = Threshold(100, 1_000)
    assert threshold.reached(1, 0)
    threshold.planned(0)
    assert not threshold.reached(99, 999)
    assert threshold.reached(100, 999)
    assert threshold.reached(1, 1_000)


def test_a_task_has_at_most_so_many_rows() -> None:
    world = World(10, maxRecordsPerPartition="4")
    world.assign(0)
    world.plan()
    tasks = world.driver.slices(world.start)
    assert [sum(split.end - split.start for split in task) for task in tasks] == [3, 3, 4]


def test_topics_by_pattern() -> None:
    world = World(10, subscribe="", subscribePattern="t|u")
    world.assign(0)
    assert world.plan() == {0: (0, 10)}


def test_available_now_waits_for_the_rebalance_and_leaves_for_good() -> None:
    world = World(10, 10, members="2")
    world.driver.prepare_available_now()
    world.share([0], [])
    assert world.plan() == {0: (0, 10)}
    world.group.between = True

    def settle() -> None:
        world.share([0], [1])
        world.group.between = False

    timer = threading.Timer(0.05, settle)
    timer.start()
    assert world.plan() == {1: (0, 10)}
    timer.join()
    world.produce(0, 1)
    assert world.group.left == []
    assert world.plan() is None
    assert world.group.left == [("everything that was there is read", True)]
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 10}


def test_available_now_reads_what_it_is_given_while_it_asks_whether_all_is_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A killed run's member had the partition, and its session ends just then."""
    world = World(10)
    world.driver.prepare_available_now()
    world.assign()
    shares = [(0,)]

    def settles() -> bool:
        if shares:
            world.assign(*shares.pop())
        return True

    monkeypatch.setattr(world.group, "stable", settles)
    assert world.plan() == {0: (0, 10)}
    assert world.plan() is None
    assert world.committed() == {0: 10}


def test_a_deleted_topic_fails_the_query_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.plan()
    del world.log.end[T1]
    with pytest.raises(DataLossError, match="t-1 does not exist any more"):
        world.plan()
    world = World(10, 10, failOnDataLoss="false")
    world.assign(0, 1)
    world.plan()
    world.plan()
    del world.log.end[T1]
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    assert world.plan() is None
    assert caplog.text.count("t-1 does not exist any more; going on") == 1


def test_a_topic_counts_as_deleted_when_it_was_unknown_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(positions, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(fakes, "QUICK", replace(fakes.QUICK, missing_s=10.0))
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.plan()
    del world.log.end[T1]
    for _ in range(2):
        world.plan()
        clock[0] += 6.0
    with pytest.raises(DataLossError, match="t-1 does not exist any more"):
        world.plan()


def test_a_topic_deleted_before_its_commit_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(10, 10, members="2", failOnDataLoss="false")
    world.share([0], [1])
    world.plan()
    del world.log.end[T0]
    world.group.away = 1
    world.group.unknown_topic = True
    assert world.plan() is None
    assert "its topic was deleted" in caplog.text
    assert world.plan() is None
    assert world.committed() == {0: 0, 1: 10}


def test_a_topic_made_again_while_it_is_read_is_noticed() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.log.end[T0] = 4
    with pytest.raises(DataLossError, match="offset 10, but the log holds 0 to 4"):
        world.plan()
    world = World(10, failOnDataLoss="false")
    world.assign(0)
    world.plan()
    world.log.end[T0] = 4
    assert world.plan() == {0: (0, 4)}


def test_a_query_that_is_to_be_alone_fails_when_it_is_not() -> None:
    world = World(10, 10, sharedGroup="false")
    world.assign(0)
    world.group.between = True
    assert world.plan() is None
    world.group.between = False
    assert world.plan() == {0: (0, 10)}
    world.group.strangers = ["other on 10.0.0.1"]
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    world.assign(0)
    with pytest.raises(
        SourceError, match=r"other members \(other on 10\.0\.0\.1\), and sharedGroup is false"
    ):
        world.plan()


def test_a_query_with_state_in_a_shared_group_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10)
    world.assign(0)
    world.group.strangers = ["other on 10.0.0.1"]
    world.plan()
    world.driver.note_commit(world.start)
    world.plan()
    assert "state" not in caplog.text
    world.driver.note_commit(world.start)
    world.plan()
    world.plan()
    assert caplog.text.count("shares the group g with other on 10.0.0.1: state stays behind") == 1


def test_a_second_source_of_the_same_application_is_noticed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.spark_bridge.group.other_members.in_spark_worker", lambda: True)
    monkeypatch.setattr("ringleader.spark_bridge.group.other_members.SECOND_SOURCE_PATIENCE_S", 0.0)
    one, two = World(1), World(1)
    for world in (one, two):
        world.assign(0)
        world.plan()
    assert "a join of two streams, or a second query" in caplog.text
    one.driver.stop()
    caplog.clear()
    three = World(1)
    three.assign(0)
    three.plan()
    assert "second query" not in caplog.text
    two.driver.stop()
    three.driver.stop()


def test_a_dataframe_is_read_once_at_a_time_in_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.spark_bridge.group.other_members.SAME_FRAME_PATIENCE_S", 0.0)
    options = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "kafka.group.id": "alone"}
    frame, other = (StreamSettings(stream_options(options)) for _ in range(2))
    one, two, three = SourceLock(frame), SourceLock(pickle.loads(pickle.dumps(frame))), SourceLock(other)
    one.start(os.getpid())
    with pytest.raises(SourceError, match="this DataFrame is being read by another source"):
        two.start(os.getpid())
    three.start(os.getpid())
    one.close()
    two.start(os.getpid())
    two.close()


def test_stop_names_what_was_in_flight(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    with caplog.at_level(logging.WARNING):
        world.driver.stop()
    assert "up to 20 rows may be processed twice, by other members: t-0[0,10) t-1[0,10)" in caplog.text


def test_what_a_replay_wrote_of_others_partitions_is_not_read_again_when_they_come() -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.restart(0)
    assert world.read() == {0: (0, 10), 1: (0, 10)}
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 0}
    world.produce(1, 1)
    world.assign(0, 1)
    assert world.plan() == {1: (10, 11)}
    assert OffsetDocument.from_json(world.start, "g").positions == {T0: 10, T1: 11}


def test_a_batch_is_repaired_at_the_first_gain_only() -> None:
    world = World(10)
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    world.restart(0)
    world.produce(0, 2)
    assert world.plan() == {0: (10, 12)}
    world.produce(0, 3)
    assert world.plan() == {0: (12, 15)}
    assert world.plan() is None
    world.group.lose()
    del world.offsets["t", 0]  # as it expires, or as an operator deletes it
    world.produce(0, 1)
    world.assign(0)
    assert world.plan() == {0: (15, 16)}
