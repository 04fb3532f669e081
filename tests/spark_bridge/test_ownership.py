"""The partitions that a query holds while the group asks for them."""

from __future__ import annotations

from ringleader.spark_bridge.group.membership import Ownership

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
