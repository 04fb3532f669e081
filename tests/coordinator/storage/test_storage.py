"""The promises of both stores, and those that only the SQLite one has to keep."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ringleader.coordinator.storage import sqlite
from ringleader.coordinator.storage.base import Failure, Storage, StorageError
from ringleader.coordinator.storage.sqlite import REPLAY_CHUNK_ROWS, ROWS_PER_STATEMENT, SqliteStorage
from tests.support.memory_store import MemoryStorage

Make = Callable[[], Storage]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    store: Storage = MemoryStorage() if request.param == "memory" else SqliteStorage(tmp_path / "groups.db")
    await store.start()
    yield store
    await store.close()


async def held(store: Storage, partition: int) -> dict[bytes, bytes | None]:
    """The last record of each key, tombstones left out; checks that positions increase."""
    before, found = -1, {}
    async for rows in store.replay(partition):
        for position, _, key, value in rows:
            assert position > before
            before, found[key] = position, value
    return {key: value for key, value in found.items() if value is not None}


async def test_last_record_of_a_key_is_replayed_in_the_order_of_the_log(store: Storage) -> None:
    await store.append([(3, 0, [(b"a", b"1"), (b"b", b"2")]), (4, 0, [(b"a", b"other")])])
    await store.append([(3, 0, [(b"a", b"3"), (b"c", b"4"), (b"c", None)])])
    assert await held(store, 3) == {b"b": b"2", b"a": b"3"}
    assert list(await held(store, 3))[-1] in (b"a", b"b")
    assert await held(store, 4) == {b"a": b"other"}
    assert await held(store, 5) == {}


async def test_positions_grow_within_a_partition(store: Storage) -> None:
    [first] = await store.append([(1, 0, [(b"a", b"1")])])
    second, third = await store.append([(1, 0, [(b"a", b"2")]), (1, 0, [(b"b", b"1"), (b"c", b"1")])])
    assert first < second < third


async def test_an_older_owner_is_refused_and_nothing_of_its_transaction_is_kept(store: Storage) -> None:
    await store.open(1, 5)
    await store.append([(1, 5, [(b"a", b"1")])])
    with pytest.raises(StorageError) as refused:
        await store.append([(2, 0, [(b"x", b"1")]), (1, 4, [(b"a", b"2")])])
    assert refused.value.failure is Failure.FENCED
    assert not refused.value.fatal
    assert await held(store, 1) == {b"a": b"1"}
    assert await held(store, 2) == {}
    await store.append([(1, 5, [(b"a", b"3")])])
    assert await held(store, 1) == {b"a": b"3"}


async def test_a_transaction_larger_than_a_statement_is_kept_whole(store: Storage) -> None:
    records = [(n.to_bytes(4, "big"), b"v%d" % n) for n in range(ROWS_PER_STATEMENT * 2 + 7)]
    await store.append([(0, 0, records)])
    assert await held(store, 0) == dict(records)


async def test_closed_store_refuses(store: Storage) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StorageError) as refused:
        await store.append([(0, 0, [(b"a", b"1")])])
    assert refused.value.failure is Failure.CLOSED


async def test_memory_loses_what_was_not_synced() -> None:
    store = MemoryStorage(synchronous=False)
    await store.start()
    await store.append([(0, 0, [(b"a", b"1")])])
    after = store.power_loss()
    await after.start()
    assert await held(after, 0) == {}


async def test_memory_fails_the_chosen_append_only() -> None:
    store = MemoryStorage()
    await store.start()
    store.fail_append(2, Failure.BUSY)
    await store.append([(0, 0, [(b"a", b"1")])])
    with pytest.raises(StorageError) as failed:
        await store.append([(0, 0, [(b"a", b"2")])])
    assert failed.value.failure is Failure.BUSY
    await store.append([(0, 0, [(b"b", b"3")])])
    assert await held(store, 0) == {b"a": b"1", b"b": b"3"}


async def test_memory_keeps_order_when_appends_overlap_and_fails_what_was_called_before_a_failure() -> None:
    store = MemoryStorage(pipeline=4)
    await store.start()
    store.hold()
    store.fail_append(2, Failure.BUSY)
    calls = [asyncio.ensure_future(store.append([(0, 0, [(key, b"1")])])) for key in (b"a", b"b", b"c")]
    await asyncio.sleep(0)
    store.resume()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [list, StorageError, StorageError]
    await store.append([(0, 0, [(b"d", b"1")])])
    assert list(await held(store, 0)) == [b"a", b"d"]


async def test_memory_may_be_full_for_a_while() -> None:
    store = MemoryStorage()
    await store.start()
    store.full = True
    for ask in (store.probe(), store.append([(0, 0, [(b"a", b"1")])])):
        with pytest.raises(StorageError) as refused:
            await ask
        assert refused.value.failure is Failure.DISK_FULL
    store.full = False
    await store.probe()
    assert await held(store, 0) == {}


# ---- SQLite ----


async def test_file_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "groups.db"
    store = SqliteStorage(path)
    await store.start()
    await store.open(7, 2)
    [before] = await store.append([(7, 2, [(b"k", b"v"), (b"gone", b"x"), (b"gone", None)])])
    await store.close()
    assert os.listdir(tmp_path) == ["groups.db"]
    store = SqliteStorage(path)
    await store.start()
    assert await held(store, 7) == {b"k": b"v"}
    [after] = await store.append([(7, 2, [(b"k", b"w")])])
    assert after <= before + 1
    for ask in (store.append([(7, 1, [(b"k", b"old owner")])]), store.open(7, 1)):
        with pytest.raises(StorageError) as older:
            await ask
        assert older.value.failure is Failure.FENCED
    await store.close()


async def test_positions_go_on_after_a_restart(tmp_path: Path) -> None:
    before = 0
    for key in (b"z", b"y", b"x"):
        store = SqliteStorage(tmp_path / "groups.db")
        await store.start()
        [position] = await store.append([(4, 0, [(key, b"1"), (key, b"2")])])
        assert position > before
        before = position
        assert list(await held(store, 4))[-1] == key
        await store.close()


async def test_two_daemons_cannot_share_a_file(tmp_path: Path) -> None:
    first, second = SqliteStorage(tmp_path / "groups.db"), SqliteStorage(tmp_path / "groups.db")
    await first.start()
    with pytest.raises(StorageError) as refused:
        await second.start()
    assert refused.value.failure is Failure.LOCKED
    await first.append([(0, 0, [(b"a", b"1")])])
    await first.close()
    await second.start()
    assert await held(second, 0) == {b"a": b"1"}
    await second.close()


def _foreign_text(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


def _foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()


def _newer_format(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(f"PRAGMA application_id = {0x524C4452}; PRAGMA user_version = 99;")
        connection.execute("CREATE TABLE record (future)")
    connection.close()


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (_foreign_text, "not a database"),
        (_foreign_database, "another program"),
        (_newer_format, "format version 99"),
    ],
)
async def test_unknown_file_is_refused_and_not_touched(
    tmp_path: Path, write: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "groups.db"
    write(path)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=says) as refused:
        await SqliteStorage(path).start()
    assert refused.value.failure is Failure.FORMAT
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["groups.db"]


async def test_other_number_of_partitions_is_refused(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db", partitions=50)
    await store.start()
    await store.close()
    with pytest.raises(StorageError, match=r"offsets\.topic\.num\.partitions 50, not 10"):
        await SqliteStorage(tmp_path / "groups.db", partitions=10).start()


async def test_full_disk_fails_that_append_only(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"small", b"1")])])
    connection = store._connection
    assert connection is not None
    # SQLite's own ceiling on the file gives the error code that a full disk gives.
    [(pages,)] = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError) as failed:
        await store.append([(0, 0, [(b"large", b"x" * 100_000)])])
    assert failed.value.failure is Failure.DISK_FULL
    assert not failed.value.fatal
    await store.append([(0, 0, [(b"small", b"2")])])
    assert await held(store, 0) == {b"small": b"2"}
    await store.close()


async def test_an_owner_that_a_full_disk_did_not_take_is_none(tmp_path: Path) -> None:
    path, partitions = tmp_path / "groups.db", 1_000
    store = SqliteStorage(path, partitions=partitions)
    await store.start()
    connection = store._connection
    assert connection is not None
    [(pages,)] = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    partition = 0
    with suppress(StorageError):
        for partition in range(partitions):  # until the owners need another page
            await store.open(partition, 7)
    with pytest.raises(StorageError) as again:
        await store.open(partition, 7)
    assert again.value.failure is Failure.DISK_FULL
    connection.execute("PRAGMA max_page_count = 1000000")
    assert await store.open(partition, 7) == 7
    await store.close()
    store = SqliteStorage(path, partitions=partitions)
    await store.start()
    with pytest.raises(StorageError) as older:
        await store.append([(partition, 6, [(b"a", b"1")])])
    assert older.value.failure is Failure.FENCED
    await store.close()


async def test_a_transaction_that_fails_in_its_middle_is_rolled_back(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"gone", b"1"), (b"kept", b"1")])])
    connection = store._connection
    assert connection is not None
    # More than one statement's rows, so that the last one fails when others have been written.
    rows = [(b"%d" % number, b"2") for number in range(ROWS_PER_STATEMENT)]
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    with pytest.raises(StorageError) as failed:
        await store.append([(0, 0, [(b"gone", None), *rows, (b"large", b"x" * 20_000)])])
    assert failed.value.failure is Failure.TOO_LARGE
    assert not failed.value.fatal
    await store.append([(0, 0, [(b"gone", None), (b"kept", b"3")])])
    assert await held(store, 0) == {b"kept": b"3"}
    await store.close()


async def test_a_probe_says_whether_there_is_room_again(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"small", b"1")])])
    connection = store._connection
    assert connection is not None
    [(pages,)] = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError) as full:
        await store.probe()
    assert full.value.failure is Failure.DISK_FULL
    connection.execute("PRAGMA max_page_count = 1000000")
    await store.probe()
    await store.append([(0, 0, [(b"large", b"x" * 100_000)])])
    assert await held(store, 0) == {b"small": b"1", b"large": b"x" * 100_000}
    await store.close()


async def test_replay_goes_on_when_another_append_is_rolled_back(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    records = [(n.to_bytes(4, "big"), b"v" * 100) for n in range(REPLAY_CHUNK_ROWS * 3)]
    await store.append([(0, 0, records)])
    connection = store._connection
    assert connection is not None
    [(pages,)] = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    found, full = 0, 0
    async for rows in store.replay(0):
        found += len(rows)
        for big in ([(b"x", b"x" * 100_000)], [(b"x", b"x" * 100_000), (b"y", None)]):
            with pytest.raises(StorageError) as failed:
                await store.append([(1, 0, big)])
            full += failed.value.failure is Failure.DISK_FULL
    assert (found, full) == (len(records), 6)
    await store.close()


async def test_a_thread_that_ended_is_fatal_and_nobody_waits_for_it(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    thread = store._thread
    assert thread is not None
    ending, waiting = thread.run(sys.exit), thread.run(lambda: None)
    for future in (ending, waiting, asyncio.ensure_future(store.append([(0, 0, [(b"a", b"1")])]))):
        with pytest.raises(StorageError) as dead:
            await asyncio.wait_for(future, 20)
        assert dead.value.failure is Failure.DEAD
        assert dead.value.fatal
    await store.close()


async def test_closing_does_not_wait_for_ever_for_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CLOSE_TIMEOUT_S", 0.1)
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    thread, hangs = store._thread, threading.Event()
    assert thread is not None
    slow = thread.run(hangs.wait)
    async with asyncio.timeout(20):
        await store.close()
    assert not slow.done()
    hangs.set()
    await slow
    thread.join()


async def test_after_an_io_error_the_store_refuses_until_it_is_opened_again(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"a", b"1")])])
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    assert store._connection is not None
    assert store._failed(store._connection, error).fatal
    with pytest.raises(StorageError) as refused:
        await store.append([(0, 0, [(b"a", b"2")])])
    assert refused.value.failure is Failure.IO_ERROR
    await store.close()
    await store.start()
    assert await held(store, 0) == {b"a": b"1"}
    await store.close()
