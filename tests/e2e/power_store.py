"""The promises of the SQLite store, cut at every moment: see `tests.support.cut_lab`."""

from __future__ import annotations

from random import Random
from typing import Any

from ringleader.coordinator.identity import make_directory
from ringleader.coordinator.storage import sqlite
from ringleader.coordinator.storage.base import Record
from ringleader.coordinator.storage.sqlite import ROWS_PER_STATEMENT, SqliteStorage
from tests.support.cut_lab import Scenario, Tell

PARTITIONS = 3
TRANSACTIONS = 8

State = dict[tuple[int, bytes], bytes]


def transactions(draw: Random) -> tuple[list[list[tuple[int, int, list[Record]]]], list[State]]:
    """The records of each append, and the records that the store holds after it."""
    appends, states = [], [State()]
    for number in range(TRANSACTIONS):
        state = dict(states[-1])
        batches = []
        for _ in range(draw.randint(1, 3)):
            partition = draw.randrange(PARTITIONS)
            count = ROWS_PER_STATEMENT + 9 if number == 3 else draw.randint(1, 4)
            records: list[Record] = [
                (b"key-%d" % draw.randrange(200), draw.randbytes(draw.choice((9, 900)))) for _ in range(count)
            ]
            mine = [key for owner, key in state if owner == partition]
            if mine:
                records.append((draw.choice(mine), None))
            for key, value in records:
                state.pop((partition, key), None)
                if value is not None:
                    state[partition, key] = value
            batches.append((partition, 1, records))
        appends.append(batches)
        states.append(state)
    return appends, states


class Store(Scenario):
    """Transactions with deletions among them, over checkpoints, closings and new starts."""

    count = TRANSACTIONS

    async def live(self, tell: Tell) -> None:
        """Each append is reported when it has returned."""
        sqlite.CHECKPOINT_PAGES = 6
        appends, _ = transactions(self.draw)
        path = self.directory / "groups.db"
        make_directory(self.directory)
        store = SqliteStorage(path)
        await store.start()
        tell(0)
        for partition in range(PARTITIONS):
            await store.open(partition, 1)
        for number, batches in enumerate(appends[: self.count], 1):
            await store.append(batches)
            tell(number)
            if number == TRANSACTIONS // 2:
                await store.close()
                store = SqliteStorage(path)
                await store.start()
        await store.close()

    async def check(self, promised: list[Any], tell: Tell) -> None:
        """All that was reported is there, whole; at most one transaction more."""
        make_directory(self.directory)
        path = self.directory / "groups.db"
        assert path.exists() or not promised, "the file is gone"
        _, states = transactions(self.draw)
        store = SqliteStorage(path)
        await store.start()
        found = {
            (partition, key): value
            for partition in range(PARTITIONS)
            async for rows in store.replay(partition)
            for _, _, key, value in rows
        }
        await store.close()
        last = max(promised, default=0)
        assert found in states[last : last + 2], f"{last} transactions were acknowledged"


class Beginning(Store):
    """The first transaction of a new store."""

    count = 1


class WithoutSync(Store):
    """The same with syncing switched off: it must lose something, or the cut cuts nothing."""

    async def live(self, tell: Tell) -> None:
        """See `Store.live`."""
        SqliteStorage.__init__.__defaults__ = ("off",)
        await super().live(tell)
