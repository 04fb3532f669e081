"""An application and its tests: a coordinator in the test process, as a fixture that pytest finds by itself.

pip install ringleader pytest
pytest test_orders.py
"""

from ringleader import SyncGroupConsumer
from ringleader.testing import ErrorCode


def books_ordered(bootstrap):
    """The application: how many books were ordered since it was last asked."""
    with SyncGroupConsumer(
        bootstrap, "stock", ["orders"], auto_offset_reset="earliest", auto_commit=False
    ) as consumer:
        consumer.wait_assigned(timeout_s=10)
        ends = consumer.end_offsets(consumer.assignment())
        books = 0
        while any(consumer.position(one) < end for one, end in ends.items()):
            for batch in consumer.getmany(timeout_s=1):
                books += sum(int(value.split()[0]) for value in batch.values if value.endswith(b"books"))
        consumer.commit()
    return books


def test_books_are_counted_once(ringleader_coordinator):
    ringleader_coordinator.create_topic("orders", 3)
    ringleader_coordinator.produce("orders", b"10 books", b"2 pens", key=b"ada")
    ringleader_coordinator.produce("orders", b"4 books", partition=2)
    assert books_ordered(ringleader_coordinator.bootstrap) == 14
    assert books_ordered(ringleader_coordinator.bootstrap) == 0


def test_nothing_ordered(ringleader_coordinator):
    ringleader_coordinator.create_topic("orders", 3)
    assert books_ordered(ringleader_coordinator.bootstrap) == 0


def test_a_coordinator_that_moves_loses_no_commit(ringleader_coordinator):
    ringleader_coordinator.create_topic("orders", 1)
    ringleader_coordinator.produce("orders", b"10 books")
    ringleader_coordinator.faults.error("OffsetCommit", ErrorCode.NOT_COORDINATOR)
    assert books_ordered(ringleader_coordinator.bootstrap) == 10
    assert len(ringleader_coordinator.faults.seen("OffsetCommit")) == 2
    assert books_ordered(ringleader_coordinator.bootstrap) == 0
