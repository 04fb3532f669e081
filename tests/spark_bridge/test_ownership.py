"""The partitions that a query holds while the group asks for them."""

from __future__ import annotations

from ringleader.spark_bridge.group.membership import MemberCommit, Ownership
from ringleader.spark_bridge.values import CommitToken

FIRST, SECOND = ("t", 0), ("t", 1)


def test_no_batch_begins_over_a_partition_that_is_being_given_up() -> None:
    ownership = Ownership()
    ownership.assigned(0, 1, "m", [FIRST, SECOND])
    owned = ownership.owned()
    assert ownership.begin([owned[FIRST]]) == {owned[FIRST]}
    given_up = ownership.revoke(0, 1, [FIRST])
    assert ownership.begin(owned.values()) == {owned[SECOND]}
    assert not given_up.done()
    ownership.end([owned[FIRST]])
    assert given_up.done()
    assert ownership.owned() == {SECOND: owned[SECOND]}


def test_a_partition_that_moved_within_the_query_is_not_committed_for_its_former_member() -> None:
    ownership, token = Ownership(2), CommitToken("q", 1)
    ownership.assigned(0, 1, "m-0", [FIRST, SECOND])
    before = ownership.owned()
    ownership.lost(0, [FIRST])
    ownership.assigned(0, 2, "m-0", [SECOND])
    ownership.assigned(1, 2, "m-1", [FIRST])
    commits = {before[FIRST]: 5, before[SECOND]: 7}
    assert ownership.commits_of(commits, token) == [MemberCommit(0, 2, {SECOND: 7}, token)]
    commits = {ownership.owned()[FIRST]: 6}
    assert ownership.commits_of(commits, token) == [MemberCommit(1, 2, {FIRST: 6}, token)]


def test_a_partition_that_comes_back_before_it_was_given_up_may_be_read_again() -> None:
    ownership = Ownership()
    ownership.assigned(0, 1, "m", [FIRST, SECOND])
    before = ownership.owned()
    ownership.begin([before[FIRST]])
    given_up = ownership.revoke(0, 1, [FIRST])
    ownership.assigned(0, 2, "m", [FIRST, SECOND])
    now = ownership.owned()
    assert now.keys() == {FIRST, SECOND}
    assert now[FIRST] != before[FIRST], "in between somebody else may have gone on"
    assert not ownership.holds(before[FIRST])
    ownership.end([before[FIRST]])
    assert given_up.done()
    assert ownership.owned() == now
    assert ownership.begin([now[FIRST]]) == {now[FIRST]}


def test_nobody_waits_for_a_batch_over_a_partition_that_is_lost() -> None:
    ownership = Ownership()
    ownership.assigned(0, 1, "m", [FIRST, SECOND])
    ownership.begin(ownership.owned().values())
    given_up = ownership.revoke(0, 1, [FIRST])
    ownership.lost(0, [SECOND])
    assert not given_up.done()
    ownership.lost(0, [FIRST])
    assert given_up.done()
    assert ownership.owned() == {}
