"""The source's decisions, called in the order in which Spark calls."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest

from ringleader.spark_bridge.batch.document import OffsetDocument, OffsetDocumentError
from ringleader.spark_bridge.errors import DataLossError, SourceError
from tests.spark_bridge.fakes import World


def test_a_batch_is_committed_when_spark_asks_for_the_next_one() -> None:
    world = World(10, 5)
    world.assign(0, 1)
    assert world.plan() == {0: (0, 10), 1: (0, 5)}
    assert world.read() == {0: (0, 10), 1: (0, 5)}
    assert world.committed() == {0: 0, 1: 0}
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 5}
    world.produce(1, 3)
    assert world.plan() == {1: (5, 8)}


def test_start_comes_back_unchanged_when_there_is_nothing_to_read() -> None:
    world = World(4, offsets={0: 4})
    world.assign(0)
    start = json.loads(json.dumps(world.start))
    assert world.driver.latest(start, None) is start
    # The offset that somebody else committed has our token from now on.
    assert world.group.commits == [{("t", 0): 4}]
    assert world.driver.latest(start, None) is start
    assert len(world.group.commits) == 1


def test_no_batch_before_the_group_gave_an_assignment() -> None:
    world = World(4)
    assert world.plan() is None
    world.assign(0)
    assert world.plan() == {0: (0, 4)}


def test_an_idle_member_reads_nothing() -> None:
    world = World(4)
    world.assign()
    assert world.plan() is None


def test_the_limit_holds() -> None:
    world = World(100, 300)
    world.assign(0, 1)
    assert world.plan(40) == {0: (0, 10), 1: (0, 30)}


def test_latest_is_resolved_once_and_pinned_in_the_group() -> None:
    world = World(10, startingOffsets="latest")
    world.assign(0)
    assert world.plan() == {}
    assert world.committed() == {0: 10}
    world.produce(0, 5)
    world.restart(0)
    assert world.plan() == {0: (10, 15)}


def test_starting_offsets_of_each_partition_count_only_where_the_group_has_none() -> None:
    world = World(10, 10, 10, 10, offsets={3: 7}, startingOffsets='{"t":{"0":4,"1":-1,"2":-2,"3":1}}')
    world.assign(0, 1, 2, 3)
    assert world.plan() == {0: (4, 10), 2: (0, 10), 3: (7, 10)}
    assert world.committed() == {0: 4, 1: 10, 2: 0, 3: 7}


def test_starting_offsets_must_name_what_has_no_offset() -> None:
    world = World(10, 10, startingOffsets='{"t":{"0":4}}')
    world.assign(0, 1)
    with pytest.raises(SourceError, match="t-1"):
        world.plan()


def test_a_lost_group_commit_is_repaired_after_a_restart() -> None:
    world = World(10)
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    world.produce(0, 2)
    world.restart(0)
    assert world.plan() == {0: (10, 12)}
    assert world.committed() == {0: 10}


def test_a_repair_does_not_undo_what_others_did_meanwhile() -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.offsets.update({("t", 0): 10, ("t", 1): 14})
    world.produce(0, 1)
    world.produce(1, 5)
    world.restart(0, 1)
    assert world.plan() == {0: (10, 11), 1: (14, 15)}


def test_an_offset_that_was_set_back_is_respected() -> None:
    world = World(10, offsets={0: 5})
    world.assign(0)
    assert world.plan() == {0: (5, 10)}
    world.plan()
    world.offsets["t", 0] = 2
    world.restart(0)
    assert world.plan() == {0: (2, 10)}


@pytest.mark.parametrize("back_to", [0, 4, 9])
def test_a_reset_into_the_last_batch_is_respected_at_every_run_after_it(back_to: int) -> None:
    world = World(10)
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    assert world.plan() is None
    world.reset(0, back_to)
    # The first run after it is cut off before Spark has logged a batch.
    before = world.start
    for _ in range(2):
        world.restart(0)
        world.start = before
        assert world.plan() == {0: (back_to, 10)}
    assert world.read() == {0: (back_to, 10)}
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    # And a commit that is lost after it is a lost commit.
    world.restart(0)
    assert world.plan() is None
    assert world.committed() == {0: 11}


def test_a_lost_commit_of_a_batch_that_began_where_another_member_ended_is_repaired() -> None:
    world = World(10, offsets={0: 4})
    world.assign(0)
    assert world.plan() == {0: (4, 10)}
    world.restart(0)
    assert world.plan() is None
    assert world.committed() == {0: 10}


def test_commits_of_batches_that_the_checkpoint_does_not_know_are_followed_by_higher_numbers() -> None:
    """As asynchronous progress tracking may leave it: Spark's logs are behind what the group has."""
    world = World(10)
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    behind = world.start
    for _ in range(3):
        world.produce(0, 1)
        assert world.plan() is not None
    assert world.plan() is None
    world.start = behind
    world.restart(0)
    world.produce(0, 1)
    assert world.plan() == {0: (13, 14)}
    assert world.start["n"] == 5
    world.restart(0)
    assert world.plan() is None
    assert world.committed() == {0: 14}


def test_the_checkpoint_remembers_when_the_groups_offsets_expired() -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.produce(0, 4)
    world.plan()
    world.offsets.clear()
    world.produce(1, 1)
    world.restart(0, 1)
    assert world.plan() == {1: (10, 11)}
    assert world.committed() == {0: 14, 1: 10}


def test_a_gained_partition_starts_at_the_groups_offset() -> None:
    world = World(10, 10, offsets={1: 6})
    world.assign(0)
    world.plan()
    world.plan()
    world.group.revoke()
    world.assign(0, 1)
    assert world.plan() == {1: (6, 10)}


def test_a_replayed_batch_reads_what_is_ours_and_not_yet_committed() -> None:
    world = World(10, 10, 10)
    world.assign(0, 1, 2)
    world.plan()
    world.offsets.update({("t", 1): 4, ("t", 2): 10})
    world.restart(0, 1)
    assert world.read() == {0: (0, 10), 1: (4, 10)}
    assert world.committed() == {0: 0, 1: 4, 2: 10}
    world.produce(0, 1)
    assert world.plan() == {0: (10, 11)}
    assert world.committed() == {0: 10, 1: 10, 2: 10}


def test_an_exact_replay_reads_the_same_ranges_again() -> None:
    world = World(10, 10, 10, replayPolicy="exact")
    world.assign(0, 1, 2)
    world.plan()
    world.offsets.update({("t", 1): 10, ("t", 2): 12})
    world.restart(0, 1)
    assert world.read() == {0: (0, 10), 1: (0, 10), 2: (0, 10)}
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 10, 2: 12}


def test_a_replay_of_the_first_batch_needs_no_initial_offset() -> None:
    world = World(10, startingOffsets="latest")
    world.assign(0)
    world.plan()
    world.produce(0, 6)
    assert world.plan() == {0: (10, 16)}
    world.produce(0, 6)
    world.restart(0)
    assert world.read() == {0: (10, 16)}
    assert world.plan() == {0: (16, 22)}


def test_an_empty_document_has_no_slices() -> None:
    world = World(10)
    assert world.read() == {}


def test_a_busy_share_is_held_until_its_batch_is_committed() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    given_up = world.group.revoke()
    assert not given_up.done()
    assert world.read() == {0: (0, 10)}
    world.produce(0, 1)
    assert world.plan() is None
    assert given_up.done()
    assert world.committed() == {0: 10}


def test_an_idle_share_is_given_up_at_once() -> None:
    world = World(0)
    world.assign(0)
    assert world.plan() is None
    assert world.group.revoke().done()
    world.produce(0, 1)
    assert world.plan() is None


def test_a_batch_that_outlives_its_generation_is_not_committed_over_others_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(10, 10)
    world.assign(0, 1)
    world.plan()
    world.group.lose()
    world.offsets["t", 0] = 12
    world.produce(0, 5)
    world.produce(1, 1)
    world.assign(0)
    with caplog.at_level(logging.WARNING, "ringleader.spark"):
        assert world.plan() == {0: (12, 15)}
    assert world.committed() == {0: 12, 1: 0}
    assert world.driver.refused_commits == 1
    assert "up to 20 rows of 2 partitions may be processed twice" in caplog.text
    world.plan()
    world.group.revoke()
    world.assign(0, 1)
    assert world.plan() == {1: (10, 11)}
    assert world.committed() == {0: 15, 1: 10}


def test_a_refused_commit_is_repaired_when_the_partition_is_still_ours() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.group.fenced = True
    assert world.plan() is None
    world.group.lose()
    assert world.plan() is None
    world.group.fenced = False
    world.produce(0, 1)
    world.assign(0)
    assert world.plan() == {0: (10, 11)}
    assert world.committed() == {0: 10}


def test_no_new_batch_before_the_last_one_is_committed(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.produce(0, 1)
    world.group.away = 2
    assert world.plan() is None
    assert world.plan() is None
    assert caplog.text.count("waits for the coordinator") == 1
    assert world.plan() == {0: (10, 11)}


def test_a_plan_that_spark_dropped_is_made_again() -> None:
    world = World(10)
    world.assign(0)
    before = world.start
    world.plan()
    world.start = before
    world.produce(0, 1)
    assert world.plan() == {0: (0, 11)}
    assert world.committed() == {0: 0}


def test_available_now_reads_up_to_the_ends_at_its_start() -> None:
    world = World(10, 10)
    world.driver.prepare_available_now()
    world.assign(0)
    world.produce(0, 90)
    assert world.plan(6) == {0: (0, 6)}
    assert world.plan(6) == {0: (6, 10)}
    world.group.revoke()
    world.produce(1, 5)
    timer = threading.Timer(0.01, world.assign, (0, 1))
    timer.start()
    assert world.plan() == {1: (0, 10)}
    timer.join()
    assert world.plan() is None
    assert world.committed() == {0: 10, 1: 10}


def test_available_now_waits_for_its_assignment_and_its_coordinator() -> None:
    world = World(10)
    world.driver.prepare_available_now()
    world.group.away = 2
    timer = threading.Timer(0.01, world.assign, (0,))
    timer.start()
    assert world.plan() == {0: (0, 10)}
    timer.join()
    world.group.away = 2
    assert world.plan() is None
    assert world.committed() == {0: 10}


def test_data_loss_fails_the_query_unless_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, offsets={0: 3})
    world.log.start["t", 0] = 5
    world.assign(0)
    with pytest.raises(DataLossError, match=r"t-0 .* offset 3, .* 5 to 10"):
        world.plan()
    world = World(10, offsets={0: 3}, failOnDataLoss="false")
    world.log.start["t", 0] = 5
    world.assign(0)
    assert world.plan() == {0: (5, 10)}
    assert "failOnDataLoss=false" in caplog.text


def test_a_topic_made_again_is_read_from_its_start() -> None:
    world = World(10, offsets={0: 300}, failOnDataLoss="false")
    world.assign(0)
    assert world.plan() == {0: (0, 10)}


def test_a_log_that_was_made_again_and_is_empty_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, failOnDataLoss="false")
    world.assign(0)
    world.plan()
    assert world.plan() is None
    world.log.end["t", 0] = 0
    assert [world.plan() for _ in range(3)] == [None] * 3
    assert caplog.text.count("should go on at offset 10, but the log holds 0 to 0") == 1
    world.produce(0, 4)
    assert world.plan() == {0: (0, 4)}
    world.plan()
    assert world.committed() == {0: 4}


def test_a_topic_made_again_with_the_same_offsets_is_a_batch_that_spark_can_tell_from_the_last() -> None:
    world = World(10, failOnDataLoss="false")
    world.assign(0)
    ends = []
    for _ in range(3):
        assert world.plan() == {0: (0, 10)}
        assert world.read() == {0: (0, 10)}
        ends.append(json.dumps(world.start))
        assert world.plan() is None
        world.log.end["t", 0] = 0
        assert world.plan() is None
        world.log.end["t", 0] = 10
    assert ends[0] != ends[1] != ends[2]
    world.log.end["t", 0] = 11
    assert world.plan() == {0: (0, 11)}


def test_a_slow_batch_is_warned_of_with_numbers(caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"kafka.max.poll.interval.ms": "1", "kafka.session.timeout.ms": "9000"}
    world = World(10, **options)
    world.assign(0)
    world.plan()
    threading.Event().wait(0.002)
    world.plan()
    assert "kafka.max.poll.interval.ms is 1" in caplog.text


def test_the_report_has_ends_and_lag() -> None:
    world = World(10, 10)
    assert world.driver.report() is None
    world.assign(0, 1)
    world.plan(10)
    assert world.driver.report() == {
        "avgOffsetsBehindLatest": 5.0,
        "ends": {"t": {"0": 10, "1": 10}},
        "generation": 1,
        "lag": 10,
        "lagByPartition": {"t": {"0": 5, "1": 5}},
        "maxOffsetsBehindLatest": 5,
        "members": {"member-0": ["t-0", "t-1"]},
        "minOffsetsBehindLatest": 5,
        "refusedCommits": 0,
        "refusedRows": 0,
        "source": "ringleader[t, group g]",
    }
    world.plan(10)
    report = world.driver.report()
    assert report is not None
    assert (report["lag"], report["maxOffsetsBehindLatest"]) == (0, 0)
    world.plan(10)
    world.produce(1, 3)
    world.plan(2)
    report = world.driver.report()
    assert report is not None
    assert report["lagByPartition"] == {"t": {"0": 0, "1": 1}}


def test_stop_leaves_and_frees_a_waiting_revocation() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    given_up = world.group.revoke()
    world.driver.stop()
    assert world.group.left == [("the query stopped", False)]
    assert world.log.closed
    assert given_up.done()
    assert world.committed() == {0: 0}


def test_a_topic_that_does_not_exist_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SourceError, match=r"no such topic: t\. Create it, .* waitForTopics=true"):
        World().plan()
    waiting = World(waitForTopics="true")
    assert waiting.plan() is None
    assert "no such topic (yet): t; the query waits for it" in caplog.text
    by_pattern = World(subscribe="", subscribePattern="t.*")
    assert by_pattern.plan() is None
    assert "no topic matches 't.*' (yet)" in caplog.text


def test_available_now_reads_what_there_is_of_topics_that_are_waited_for() -> None:
    world = World(10, subscribe="t,later", waitForTopics="true")
    world.driver.prepare_available_now()
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    assert world.plan() is None
    assert world.group.left == [("everything that was there is read", True)]


def test_a_topic_that_was_deleted_between_two_runs_is_data_loss() -> None:
    for fails in (True, False):
        world = World(10, failOnDataLoss=str(fails).lower())
        world.assign(0)
        world.plan()
        world.log.end.clear()
        world.restart()
        if fails:
            with pytest.raises(SourceError, match="no such topic: t"):
                world.plan()
        else:
            assert world.plan() is None


def test_a_membership_that_failed_fails_the_query() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.plan()
    assert world.group.ownership is not None
    world.group.ownership.failed(SourceError("GROUP_AUTHORIZATION_FAILED"))
    with pytest.raises(SourceError, match="GROUP_AUTHORIZATION_FAILED"):
        world.plan()


def test_a_checkpoint_of_another_group_is_refused() -> None:
    world = World(10)
    with pytest.raises(OffsetDocumentError, match="belongs to the group 'other'"):
        world.driver.latest(OffsetDocument("other").to_json(), None)
