"""Transactions of V2 (KIP-890): each end raises the epoch, and partitions come in with what is produced."""

from __future__ import annotations

import pytest

from ringleader.coordinator.transactions.machine import Finish, Producer, Result
from ringleader.coordinator.transactions.states import MAX_EPOCH, State
from ringleader.protocol.errors import ErrorCode
from tests.support.transactions import World

A0, A1 = ("a", 0), ("a", 1)
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT, TXN_STATE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_raises_the_epoch(committed: bool) -> None:
    world = World()
    producer = world.init()
    assert world.join(producer, A0) == 0
    assert world.end_raising(producer, committed) == (101, 1)
    assert world.finish() == Finish("t", 101, 1, committed, frozenset({A0})), "markers have the new epoch"
    assert world.state() == (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
    assert world.join((101, 0), A0) == FENCED, "late records of the transaction are not a part of the next"
    assert world.join((101, 1), A1) == 0
    assert world.end_raising((101, 1)) == (101, 2)
    assert world.finish().partitions == {A1}


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_whose_answer_was_lost_is_asked_for_again(committed: bool) -> None:
    world = World()
    producer = world.init()
    world.join(producer, A0)
    world.end_raising(producer, committed)
    assert world.end_raising(producer, committed) == CONCURRENT
    assert world.end_raising((101, 1), committed) == FENCED
    assert world.end_raising((99, 0), committed) == MAPPING
    world.finish()
    assert world.end_raising(producer, committed) == (101, 1)
    assert world.restarted().end_raising(producer, committed) == (101, 1)
    assert world.end_raising(producer, not committed) == TXN_STATE
    world.join((101, 1), A0)
    assert world.end_raising(producer, committed) == FENCED, "the next one has begun"


def test_an_abort_needs_no_transaction_and_a_commit_does() -> None:
    world = World()
    producer = world.init()
    assert world.end_raising(producer, True) == TXN_STATE
    assert world.end_raising(producer, False) == (101, 1)
    assert world.finish().partitions == frozenset()
    assert world.state() == State.COMPLETE_ABORT
    assert world.end_raising((101, 1), True) == TXN_STATE
    assert world.end_raising((101, 1), False) == (101, 2)
    world.finish()
    assert world.end_raising((101, 2), False, name="") == ErrorCode.INVALID_REQUEST
    assert world.end_raising((101, 2), False, name="u") == MAPPING


def test_nothing_is_said_before_the_end_is_durable() -> None:
    world = World()
    producer = world.init()
    world.join(producer, A0)
    world.held = True
    ended = world.end_raising(producer)
    assert ended == []
    assert world.machine.verify("t", Producer(*producer), A0) == 0
    world.release()
    assert ended == [Result(0, 101, 1)]
    assert world.machine.verify("t", Producer(101, 1), A0) == CONCURRENT


def test_epochs_that_run_out_lead_to_a_new_producer_id() -> None:
    world = World()
    epoch = MAX_EPOCH
    producer = world.init()
    while producer[1] < epoch:
        producer = world.init()
    assert world.join(producer, A0) == 0
    assert world.end_raising(producer) == (102, 0)
    assert world.end_raising(producer) == CONCURRENT
    world = world.restarted()
    assert world.finish() == Finish("t", 101, MAX_EPOCH + 1, True, frozenset({A0}))
    assert world.end_raising(producer) == (102, 0)
    assert world.restarted().end_raising(producer) == (102, 0)
    assert world.join((102, 0), A0) == 0
    assert world.end_raising((102, 0)) == (102, 1)


def test_a_producer_whose_epochs_ran_out_goes_on_after_an_answer_that_was_lost() -> None:
    """KIP-360: it names the id and epoch that it had, and gets those that it was not told of."""
    world = World()
    producer = world.init()
    while producer[1] < MAX_EPOCH:
        producer = world.init()
    world = world.restarted()  # which does not know who had the epoch before
    world.join(producer, A0)
    assert world.end_raising(producer) == (102, 0)
    world.finish()
    assert world.init(expected=(101, MAX_EPOCH - 1)) == FENCED
    assert world.init(expected=producer) == (102, 0)


def test_the_epoch_behind_the_last_one_is_nobodys_however_often_the_end_is_asked_for() -> None:
    world = World()
    producer = world.init(timeout_ms=1_000)
    while producer[1] < MAX_EPOCH:
        producer = world.init(timeout_ms=1_000)
    world.join(producer, A0)
    assert world.pass_ms(1_000) == ["t"]
    world.finish()
    assert world.end_raising(producer, False) == FENCED
    assert world.init() == (102, 0)


def test_what_is_forgotten_of_an_abort_is_what_the_epoch_knows() -> None:
    """A producer all of whose transactions were committed is told of, for partitions that lack the marker:
    by the epoch that the records have."""
    world = World()
    producer = world.init()
    world.join(producer, A0)
    producer = world.end_raising(producer, False)
    world.finish()
    assert list(world.machine.committed()) == []
    world.join(producer, A0)
    world.end_raising(producer)
    world.finish()
    assert list(world.machine.committed()) == [Producer(*producer)]
    assert list(world.restarted().machine.committed()) == [Producer(*producer)]


def test_a_transaction_of_v2_whose_time_is_over_fences_its_producer() -> None:
    world = World()
    producer = world.init(timeout_ms=1_000)
    world.join(producer, A0)
    assert world.pass_ms(1_000) == ["t"]
    assert world.finish() == Finish("t", 101, 1, False, frozenset({A0}))
    assert world.join(producer, A0) == FENCED
    assert world.end_raising(producer) == TXN_STATE, "as an end that is repeated, of the other kind"
    assert world.init(expected=producer) == (101, 1)


def test_an_aborted_transaction_of_v1_is_no_repeated_end() -> None:
    world = World()
    producer = world.init(timeout_ms=1_000)
    world.add(producer, A0)
    assert world.pass_ms(1_000) == ["t"]
    world.finish()
    assert world.end_raising(producer, False) == FENCED


def test_a_producer_changes_the_kind_between_transactions() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A0)
    assert world.end(producer) == 0
    world.finish()
    assert world.join(producer, A0) == 0
    assert world.end_raising(producer) == (101, 1)
    world.finish()
    assert world.add((101, 1), A0) == 0
    assert world.end((101, 1)) == 0
    world.finish()
    assert world.end((101, 1)) == 0
    assert world.machine.verify("t", Producer(101, 1), A0) == ABORTABLE
