"""The transaction coordinator by itself, on a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.transactions.machine import Finish, Producer, Result, TransactionShard
from ringleader.coordinator.transactions.records import encode_key, encode_value
from ringleader.coordinator.transactions.states import (
    COMPLETE,
    IDLE,
    MAX_EPOCH,
    NEXT,
    PREPARED,
    State,
    Transaction,
)
from ringleader.protocol.errors import ErrorCode
from tests.support.transactions import WALL_MS, World

A0, A1, OFFSETS = ("a", 0), ("a", 1), ("__consumer_offsets", 7)
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT, TXN_STATE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE
DAY_MS = 86_400_000


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_from_its_begin_to_its_end(committed: bool) -> None:
    world = World()
    producer = world.init()
    assert producer == (101, 0)
    assert world.state() == State.EMPTY
    assert world.add(producer, A0) == 0
    assert world.add(producer, A0, A1) == 0
    assert world.add(producer, OFFSETS) == 0
    assert world.state() == State.ONGOING
    assert world.end(producer, committed) == 0
    assert world.state() == (State.PREPARE_COMMIT if committed else State.PREPARE_ABORT)
    assert world.end(producer, committed) == CONCURRENT
    assert world.add(producer, A0) == CONCURRENT
    assert world.init() == CONCURRENT
    assert world.finish() == Finish("t", 101, 0, committed, frozenset({A0, A1, OFFSETS}))
    assert world.state() == (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT)
    assert world.end(producer, committed) == 0, "the answer was lost, and asked for again"
    assert world.end(producer, not committed) == TXN_STATE
    assert world.add(producer, A0) == 0
    found = world.machine.find("t")
    assert found is not None
    assert found.partitions == {A0}


def test_a_known_partition_is_not_written_again() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A0, A1)
    world.held = True
    assert world.add(producer, A1) == 0
    assert world.add(producer, A1, ("b", 0)) == []


def test_each_begin_raises_the_epoch_and_fences_who_was_before() -> None:
    world = World()
    first = world.init()
    second = world.init()
    assert (first, second) == ((101, 0), (101, 1))
    assert world.add(first, A0) == FENCED
    assert world.end(first) == FENCED
    assert world.add((99, 1), A0) == MAPPING
    assert world.end((99, 1)) == MAPPING
    assert world.add(second, A0) == 0
    assert world.end(first) == FENCED
    assert world.end((101, 2)) == FENCED, "nobody may end it with a later epoch either"


def test_a_producer_that_asks_with_its_epoch_goes_on(tmp_path: Any) -> None:
    world = World()
    assert world.init() == (101, 0)
    assert world.init(expected=(101, 0)) == (101, 1)
    assert world.init(expected=(101, 0)) == (101, 1), "the answer was lost"
    assert world.init(expected=(101, 1)) == (101, 2)
    assert world.init(expected=(101, 0)) == FENCED
    assert world.init(expected=(100, 2)) == FENCED
    assert world.init() == (101, 3)
    assert world.init(expected=(101, 2)) == FENCED, "somebody else began meanwhile"


def test_a_begin_aborts_what_is_open() -> None:
    world = World()
    zombie = world.init()
    world.add(zombie, A0)
    assert world.init() == CONCURRENT
    assert world.finish() == Finish("t", 101, 1, False, frozenset({A0}))
    assert world.state() == State.COMPLETE_ABORT
    assert world.end(zombie) == FENCED
    assert world.init() == (101, 2)
    assert world.init(expected=zombie) == FENCED


def test_epochs_that_run_out_lead_to_a_new_producer_id() -> None:
    world = World()
    last = Transaction(7, MAX_EPOCH, 60_000, State.COMPLETE_COMMIT, updated_ms=WALL_MS)

    def again(world: World) -> World:
        world.store = {encode_key("t"): encode_value(last)}
        return world.restarted()

    world = again(world)
    assert world.init() == (101, 0)
    world = again(world)
    assert world.init(expected=(7, MAX_EPOCH)) == (102, 0)
    assert world.init(expected=(7, MAX_EPOCH)) == (102, 0), "the answer was lost"
    world = again(world)
    assert world.add((7, MAX_EPOCH), A0) == 0
    assert world.init() == CONCURRENT
    assert world.finish().epoch == MAX_EPOCH + 1
    assert world.init(expected=(7, MAX_EPOCH)) == FENCED, "the epoch after the last one is nobody's"
    assert world.init() == (103, 0)


@pytest.mark.parametrize(
    ("name", "timeout_ms", "code"),
    [
        ("", 1, ErrorCode.INVALID_REQUEST),
        ("x" * 4097, 1, ErrorCode.INVALID_REQUEST),
        ("é" * 2049, 1, ErrorCode.INVALID_REQUEST),  # 4098 bytes
        ("t", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", -1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_producers_that_may_not_begin(name: str, timeout_ms: int, code: int) -> None:
    world = World()
    assert world.init(name, timeout_ms=timeout_ms) == code
    assert len(world.machine) == 0
    assert world.init(timeout_ms=900_000) == (101, 0)


def test_checks_come_in_kafkas_order() -> None:
    world = World()
    assert world.add((1, 0), A0, name="") == ErrorCode.INVALID_REQUEST
    assert world.end((1, 0), name="") == ErrorCode.INVALID_REQUEST
    assert world.add((1, 0), A0) == MAPPING
    assert world.end((1, 0)) == MAPPING
    producer = world.init()
    assert world.end(producer, True) == TXN_STATE
    assert world.end(producer, False) == TXN_STATE
    assert world.add(producer, A0) == 0
    assert world.end(producer) == 0
    # A transaction that is being finished comes first for AddPartitionsToTxn, after the producer for EndTxn.
    assert world.add((99, 7), A1) == CONCURRENT
    assert world.end((99, 7)) == MAPPING
    assert world.end((101, 7)) == FENCED
    assert world.end(producer) == CONCURRENT
    assert world.init() == CONCURRENT
    assert world.init(expected=(99, 7)) == CONCURRENT


def test_what_a_change_on_its_way_decides_is_told_with_it_in_order() -> None:
    world = World()
    producer = world.init()
    world.held = True
    outcomes = [
        world.add(producer, A0),
        world.add((99, 7), A1),
        world.add(producer, A0),
        world.end(producer),
        world.end(producer),
        world.add(producer, A1),
        world.init(),
    ]
    assert outcomes == [[]] * 7, "all of it could still be lost"
    world.release()
    errors = [answers[0].error for answers in outcomes]
    assert errors == [0, MAPPING, 0, 0, CONCURRENT, CONCURRENT, CONCURRENT]
    assert world.finish().partitions == {A0}


def test_limits() -> None:
    world = World(transaction_max_ids=1, transaction_max_partitions=2)
    producer = world.init()
    assert world.init("another") == ErrorCode.POLICY_VIOLATION
    assert world.add(producer, A0, A1, OFFSETS) == ErrorCode.POLICY_VIOLATION
    assert world.add(producer, A0, A1) == 0
    assert world.add(producer, OFFSETS) == ErrorCode.POLICY_VIOLATION


def test_nothing_is_said_before_it_is_durable() -> None:
    world = World()
    world.held = True
    first, ended = world.init(), world.end((101, 0))
    assert first == ended == []
    assert world.machine.verify("t", Producer(101, 0), A0) == MAPPING
    world.release()
    assert first == [Result(0, 101, 0)]
    assert ended == [Result(TXN_STATE)]
    world.held = True
    assert world.add((101, 0), A0) == []
    assert world.machine.verify("t", Producer(101, 0), A0) == ABORTABLE
    world.release()
    world.held = True
    assert world.end((101, 0)) == []
    assert world.machine.verify("t", Producer(101, 0), A0) == 0
    assert world.finishes == []
    world.release()
    assert len(world.finishes) == 1


def test_what_is_verified_is_what_is_durable_of_several_changes_on_their_way() -> None:
    world = World()
    producer = Producer(*world.init())
    world.held = True
    world.add(producer, A0)
    world.end(producer)
    added, _ = world.written
    assert world.machine.verify("t", producer, A0) == ABORTABLE
    world.machine.durable(added.position, world.now_ms)
    assert world.machine.verify("t", producer, A0) == 0
    world.release()
    assert world.machine.verify("t", producer, A0) == CONCURRENT


def test_an_id_that_comes_back_while_it_is_being_forgotten_stays() -> None:
    world = World(transaction_remove_expired_transaction_cleanup_interval_ms=8 * DAY_MS)
    world.init()
    world.held = True
    world.pass_ms(8 * DAY_MS)
    ended, begun = world.end((101, 0)), world.init()
    world.release()
    assert ended == [Result(MAPPING)]
    assert begun == [Result(0, 102, 0)]
    assert world.state() == State.EMPTY
    assert world.add((102, 0), A0) == 0


def test_a_change_that_could_not_be_stored_has_not_happened() -> None:
    world = World()
    world.held = True
    answers = world.ask("init_producer_id", "t", 1, None, 101)
    world.fail()
    assert answers == [Result(ErrorCode.NOT_COORDINATOR)]
    assert len(world.machine) == 0
    producer = world.init()
    world.held = True
    answers = world.ask("add_partitions", "t", Producer(*producer), [A0])
    world.fail()
    assert answers == [Result(ErrorCode.NOT_COORDINATOR)]
    assert world.state() == State.EMPTY
    world.add(producer, A0)
    world.held = True
    answers = world.ask("end", "t", Producer(*producer), True)
    world.fail()
    assert answers == [Result(ErrorCode.NOT_COORDINATOR)]
    assert world.state() == State.ONGOING
    assert world.end(producer, False) == 0, "it may still go either way"


def test_an_end_that_could_not_be_stored_is_told_again() -> None:
    world = World()
    producer = world.init()
    world.add(producer, A0)
    world.end(producer)
    world.held = True
    before = world.finish()
    world.fail()
    assert world.state() == State.PREPARE_COMMIT
    assert world.finish() == before
    assert world.state() == State.COMPLETE_COMMIT
    assert (
        world.machine.next_deadline()
        == world.settings.transaction_remove_expired_transaction_cleanup_interval_ms
    )


def test_an_end_that_is_told_twice_ends_one_transaction() -> None:
    world = World()
    world.add(first := world.init(), A0)
    world.end(first)
    finish = world.finish()
    world.finished(finish)
    assert world.state() == State.COMPLETE_COMMIT
    world.add(second := world.init(), A0)
    world.end(second, False)
    world.finished(finish)
    assert world.state() == State.PREPARE_ABORT, "the other one's markers are not written"
    world.finished(finish._replace(transactional_id="unknown"))
    world.finish()
    assert world.state() == State.COMPLETE_ABORT


def test_a_transaction_whose_time_is_over_is_aborted_and_its_producer_fenced() -> None:
    world = World()
    producer = world.init(timeout_ms=5_000)
    world.pass_ms(100_000)
    assert world.add(producer, A0) == 0
    world.pass_ms(3_000)
    assert world.add(producer, A1) == 0, "the time counts from the first partition"
    assert world.pass_ms(1_999) == []
    assert world.pass_ms(1) == ["t"]
    assert world.finish() == Finish("t", 101, 1, False, frozenset({A0, A1}))
    assert world.end(producer) == FENCED
    assert world.add(producer, A0) == FENCED
    assert world.init(expected=producer) == (101, 1), "if nobody else began, it may go on (KIP-588)"
    assert world.pass_ms(100_000) == []


def test_a_timeout_waits_for_a_change_that_is_on_its_way() -> None:
    world = World()
    producer = world.init(timeout_ms=5_000)
    world.add(producer, A0)
    world.held = True
    assert world.end(producer) == []
    assert world.pass_ms(5_000) == []
    world.release()
    assert world.pass_ms(60_000) == []
    assert world.finish().committed


def test_a_timeout_that_could_not_be_stored_comes_again() -> None:
    world = World()
    world.add(world.init(timeout_ms=5_000), A0)
    world.held = True
    assert world.pass_ms(5_000) == [], "not yet"
    world.fail()
    assert world.state() == State.ONGOING
    assert world.pass_ms(0) == ["t"]
    assert world.finish().epoch == 1


def test_ids_that_nobody_uses_are_forgotten() -> None:
    world = World(transaction_remove_expired_transaction_cleanup_interval_ms=DAY_MS)
    world.init("idle")
    world.add(world.init("open", timeout_ms=900_000), A0, name="open")
    world.pass_ms(DAY_MS)
    world.finish()
    assert len(world.store) == 2
    for _ in range(5):
        world.pass_ms(DAY_MS)
    world.init("busy")
    world.pass_ms(DAY_MS)
    assert [world.state(name) for name in ("idle", "open", "busy")] == [
        None,
        State.COMPLETE_ABORT,
        State.EMPTY,
    ]
    world.pass_ms(DAY_MS)
    assert [world.state(name) for name in ("idle", "open", "busy")] == [None, None, State.EMPTY]
    assert list(world.store) == [encode_key("busy")]
    assert world.init("idle") == (104, 0)


def test_an_id_is_not_forgotten_before_all_its_markers_are_written() -> None:
    world = World(transaction_remove_expired_transaction_cleanup_interval_ms=DAY_MS)
    producer = world.init()
    world.add(producer, A0)
    world.end(producer)
    for _ in range(9):
        world.pass_ms(DAY_MS)
    assert world.state() == State.PREPARE_COMMIT
    world.finish()
    assert world.state() == State.COMPLETE_COMMIT


def test_while_the_store_is_full_nothing_changes_and_what_changes_nothing_goes_on() -> None:
    world = World()
    late = world.init("late", timeout_ms=1_000)
    world.add(late, A0, name="late")
    producer = world.init()
    world.add(producer, A0)
    decided = world.init("decided")
    world.add(decided, A0, name="decided")
    world.end(decided, name="decided")
    before = dict(world.store)
    world.machine.set_full(True, world.now_ms)
    full = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.init("new") == full
    assert world.init() == full, "it would abort"
    assert world.add(producer, A1) == full
    assert world.end(producer) == full
    assert world.add(producer, A0) == 0, "it is in already"
    assert world.end((99, 0)) == MAPPING
    assert world.machine.verify("t", Producer(*producer), A0) == 0
    assert world.finish().transactional_id == "decided"
    assert world.machine.next_deadline() is None
    world.machine.tick(world.now_ms + DAY_MS)
    world.settle()
    assert world.store == before
    world.machine.set_full(False, world.now_ms)
    world.settle()
    assert world.state("decided") == State.COMPLETE_COMMIT, "it is completed without being asked again"
    assert world.pass_ms(1_000) == ["late"]
    assert world.end(producer) == 0


def test_requests_before_the_load_or_after_the_end() -> None:
    world = World()
    producer = Producer(*world.init())
    loading, ended = TransactionShard(world.settings), world.restarted().machine
    ended.unload()
    codes = {loading: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ended: ErrorCode.NOT_COORDINATOR}
    for machine, code in codes.items():
        machine.init_producer_id("t", 1_000, None, 7, "init", 0)
        machine.add_partitions("t", producer, [A0], "add", 0)
        machine.end("t", producer, True, "end", 0)
        machine.finished("t", *producer, 0)
        box = machine.drain()
        assert [(answer.ticket, answer.response.error) for answer in box.answers] == [
            ("init", code),
            ("add", code),
            ("end", code),
        ]
        assert not box.appends
        assert machine.verify("t", producer, A0) == code
        assert machine.next_deadline() is None


def test_producers_that_may_write_in_a_transaction() -> None:
    world = World()
    producer = Producer(*world.init())
    verify = world.machine.verify
    assert verify("", producer, A0) == ErrorCode.INVALID_REQUEST
    assert verify("none", producer, A0) == MAPPING
    assert verify("t", producer, A0) == ABORTABLE
    world.add(producer, A0)
    assert verify("t", producer, A0) == 0
    assert verify("t", producer, A1) == ABORTABLE
    assert verify("t", Producer(99, 0), A0) == MAPPING
    assert verify("t", Producer(101, 1), A0) == FENCED
    world.end(producer)
    assert verify("t", producer, A0) == CONCURRENT
    world.finish()
    assert verify("t", producer, A0) == ABORTABLE


def test_the_table_of_states_has_no_way_out_of_a_decision() -> None:
    assert set(NEXT) == set(State)
    assert IDLE | PREPARED | {State.ONGOING} == set(State)
    for state in PREPARED:
        assert NEXT[state] == {COMPLETE[state]}
    for state in set(State) - PREPARED:
        assert not NEXT[state] & set(COMPLETE.values())


def test_deadlines_of_transactions_that_are_over_do_not_pile_up() -> None:
    world = World()
    producer = world.init()
    for _ in range(3_000):
        world.add(producer, A0)
        world.end(producer)
        world.finish()
    assert len(world.machine._deadlines) < 100
