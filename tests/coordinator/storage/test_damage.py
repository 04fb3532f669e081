"""Damaged files of the SQLite store: refused with a sentence, or read as they were; never believed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from ringleader.coordinator.storage import sqlite
from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.sqlite import SqliteStorage

PARTITIONS = 3
ROUNDS = 100
WAL_HEADER_BITS = 32 * 8
WRONG = {Failure.CORRUPT, Failure.FORMAT}

State = dict[tuple[int, bytes], bytes]


async def write(store: SqliteStorage, transactions: int, draw: random.Random) -> list[State]:
    """Fill the store; what it holds after each transaction, from nothing on."""
    states: list[State] = [{}]
    for number in range(transactions):
        state = dict(states[-1])
        records: list[tuple[bytes, bytes | None]] = [
            (b"key-%d" % draw.randrange(300), draw.randbytes(draw.choice((8, 40, 400)))) for _ in range(20)
        ]
        if state and number % 3 == 0:
            records.append((draw.choice(list(state))[1], None))
        partition = draw.randrange(PARTITIONS)
        await store.append([(partition, 0, records)])
        for key, value in records:
            state.pop((partition, key), None)
            if value is not None:
                state[partition, key] = value
        states.append(state)
    return states


async def crashed(path: Path, transactions: int, draw: random.Random) -> list[State]:
    """A store at `path` whose process was killed after `transactions` transactions, all of them in its
    WAL."""
    working = path.with_name("working.db")
    store = SqliteStorage(working)
    await store.start()
    states = await write(store, transactions, draw)
    for end in ("", "-wal"):
        shutil.copy(working.with_name(working.name + end), path.with_name(path.name + end))
    await store.close()
    return states


async def read(path: Path) -> State:
    """All that a store holds. Raises StorageError."""
    store = SqliteStorage(path)
    try:
        await store.start()
        return {
            (partition, key): value or b""
            for partition in range(PARTITIONS)
            async for rows in store.replay(partition)
            for _, _, key, value in rows
        }
    finally:
        await store.close()


async def refused(path: Path) -> str | None:
    """The text of the refusal; None if the store can be read."""
    try:
        await read(path)
    except StorageError as error:
        if error.failure not in WRONG:
            raise
        return str(error)
    return None


@pytest.mark.parametrize(
    "change",
    [
        "value = x'0032'",
        "value = 'text'",
        "value = 7",
        "key = cast(x'00' || key AS BLOB)",
        "position = position + 256",
        "position = 'none'",
        "epoch = 4",
        "epoch = 2 << 40",
        "checksum = 0",
    ],
)
async def test_a_row_that_is_not_what_was_stored_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "groups.db"
    store = SqliteStorage(path)
    await store.start()
    await store.append([(2, 0, [(b"other", b"1"), (b"orders", b"2"), (b"zz", b"3")])])
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE record SET {change} WHERE key = ?", (b"orders",))
    connection.close()
    with pytest.raises(
        StorageError, match=r"partition 2, key b'.*orders' is not what was stored; put a copy"
    ):
        await read(path)


async def test_a_row_in_another_partition_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "groups.db"
    store = SqliteStorage(path)
    await store.start()
    await store.append([(2, 0, [(b"orders", b"2")])])
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE record SET partition = 1")
    connection.close()
    with pytest.raises(StorageError, match="partition 1, key b'orders' is not what was stored"):
        await read(path)


@pytest.mark.parametrize("partition", [-1, PARTITIONS])
async def test_a_row_of_no_partition_is_refused(tmp_path: Path, partition: int) -> None:
    path = tmp_path / "groups.db"
    store = SqliteStorage(path, partitions=PARTITIONS)
    await store.start()
    await store.append([(PARTITIONS - 1, 0, [(b"orders", b"2")])])
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE record SET partition = ?", (partition,))
    connection.close()
    with pytest.raises(StorageError, match="a row is of no partition; put a copy"):
        await SqliteStorage(path, partitions=PARTITIONS).start()


async def test_after_a_damaged_row_the_store_takes_nothing_more(tmp_path: Path) -> None:
    store = SqliteStorage(tmp_path / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"a", b"1")])])
    assert store._connection is not None
    store._connection.execute("UPDATE record SET value = x'32'")
    with pytest.raises(StorageError) as damaged:
        [_ async for _ in store.replay(0)]
    with pytest.raises(StorageError) as after:
        await store.append([(0, 0, [(b"b", b"1")])])
    assert damaged.value.fatal
    assert after.value.failure is Failure.CORRUPT
    await store.close()


async def test_a_flipped_bit_anywhere_is_refused_or_harmless(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "groups.db"
    store = SqliteStorage(path)
    await store.start()
    states = await write(store, 20, draw)
    await store.close()
    whole = path.read_bytes()
    refusals = 0
    for _ in range(ROUNDS):
        bit = draw.randrange(len(whole) * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        if await refused(path):
            refusals += 1
        else:
            assert await read(path) == states[-1], f"bit {bit} made another store of it"
        path.with_name("groups.db-wal").unlink(missing_ok=True)
    # More than a third of the file is room that holds nothing.
    assert refusals > ROUNDS // 4


async def test_a_file_that_was_cut_off_is_refused_or_whole(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "groups.db"
    store = SqliteStorage(path)
    await store.start()
    states = await write(store, 20, draw)
    await store.close()
    whole = path.read_bytes()
    for _ in range(ROUNDS // 4):
        size = draw.randrange(1, len(whole))
        path.write_bytes(whole[:size])
        if await refused(path) is None:
            assert await read(path) == states[-1], f"{size} of {len(whole)} bytes made another store of it"


async def test_a_torn_wal_gives_the_transactions_before_the_tear(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "groups.db"
    states = await crashed(path, 25, draw)
    log = path.with_name("groups.db-wal")
    main, whole = path.read_bytes(), log.read_bytes()
    found_before = -1
    for size in [*sorted(draw.sample(range(len(whole)), ROUNDS // 4)), len(whole)]:
        path.write_bytes(main)
        log.write_bytes(whole[:size])
        found = states.index(await read(path))
        assert found >= found_before, f"{size} bytes give less than fewer bytes"
        found_before = found
    assert found_before == len(states) - 1


async def test_a_wal_that_is_damaged_before_its_end_is_refused_each_time(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "groups.db"
    states = await crashed(path, 25, draw)
    log = path.with_name("groups.db-wal")
    main, whole = path.read_bytes(), log.read_bytes()
    refusals = 0
    header = draw.sample(range(WAL_HEADER_BITS), ROUNDS // 5)
    for bit in [*header, *(draw.randrange(len(whole) * 8) for _ in range(ROUNDS))]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(main)
        log.write_bytes(damaged)
        says = await refused(path)
        if says is None:
            # In the last transaction it cannot be distinguished from one that was cut off by a crash.
            assert await read(path) in states[-2:], f"bit {bit}: synced transactions are gone"
            continue
        refusals += 1
        assert "put a copy" in says
        assert await refused(path) == says
    assert refusals > ROUNDS // 2


async def test_what_is_left_of_an_earlier_round_of_the_wal_is_no_damage(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 60)
    draw, path = random.Random(seed), tmp_path / "groups.db"
    left_over = 0
    for transactions in range(15, 40):
        states = await crashed(path, transactions, draw)
        whole = path.with_name("groups.db-wal").read_bytes()
        salts = {whole[at + 8 : at + 16] for at in range(32, len(whole), 24 + 4096)}
        left_over += len(salts) > 1
        assert await read(path) == states[-1]
        path.with_name("working.db").unlink()
    assert left_over


# ---- format 1 ----


def write_format_1(path: Path, rows: int) -> State:
    """A file as the version before wrote it."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.executescript(
            f"""
            PRAGMA application_id = {sqlite.APPLICATION_ID};
            PRAGMA user_version = 1;
            CREATE TABLE record (
                partition INTEGER NOT NULL, key BLOB NOT NULL, position INTEGER NOT NULL,
                epoch INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (partition, key)
            ) WITHOUT ROWID;
            CREATE TABLE owner (partition INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
            CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
            INSERT INTO fact VALUES ('partitions', 50);
            INSERT INTO owner VALUES (1, 3);
            """
        )
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO record VALUES (?, ?, ?, 0, ?)",
            [(n % PARTITIONS, b"k%d" % n, n + 1, b"v%d" % n) for n in range(rows)],
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return {(n % PARTITIONS, b"k%d" % n): b"v%d" % n for n in range(rows)}


async def test_format_1_gets_its_checksums(tmp_path: Path) -> None:
    path = tmp_path / "groups.db"
    state = write_format_1(path, 500)
    assert await read(path) == state
    store = SqliteStorage(path)
    await store.start()
    with pytest.raises(StorageError) as fenced:
        await store.open(1, 2)
    assert fenced.value.failure is Failure.FENCED
    await store.append([(0, 0, [(b"k0", b"new")])])
    await store.close()
    assert await read(path) == {**state, (0, b"k0"): b"new"}
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE record SET value = x'00' WHERE key = ?", (b"k7",))
    connection.close()
    with pytest.raises(StorageError, match="is not what was stored"):
        await read(path)


async def test_a_step_up_that_is_cut_off_leaves_format_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "groups.db"
    state = write_format_1(path, 500)
    before = path.read_bytes()
    real, calls = sqlite._checksum, 0

    def fails(*arguments: object) -> int:
        nonlocal calls
        calls += 1
        if calls == 300:
            raise ValueError
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "_checksum", fails)
    with pytest.raises(StorageError):
        await read(path)
    assert path.read_bytes()[:100] == before[:100]
    monkeypatch.undo()
    assert await read(path) == state


async def test_a_newer_format_that_is_only_in_the_wal_is_refused(tmp_path: Path) -> None:
    working, path = tmp_path / "working.db", tmp_path / "groups.db"
    store = SqliteStorage(working)
    await store.start()
    await store.append([(0, 0, [(b"a", b"1")])])
    assert store._connection is not None
    store._connection.execute("PRAGMA user_version = 3")
    for end in ("", "-wal"):
        shutil.copy(working.with_name(working.name + end), path.with_name(path.name + end))
    await store.close()
    with pytest.raises(StorageError, match="format version 3"):
        await read(path)
