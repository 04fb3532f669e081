"""The daemon of a simulated run: the real node on real files, its lives one after the other, and a disk that
is slow, full or broken when the plan says so."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.storage.base import Batch, Failure, StorageError
from ringleader.coordinator.storage.sqlite import SqliteStorage
from ringleader.coordinator.topics import appender, disk
from tests.simulation.daemon import turns as simulated
from tests.simulation.daemon.clients import BOOTSTRAP, PROGRESS, SASL_BOOTSTRAP, SHARDS, TOPIC, USER
from tests.simulation.daemon.turns import Process, Thread

if TYPE_CHECKING:
    from tests.simulation.daemon.world import DaemonWorld

SECURED = {
    "listeners": f"PLAINTEXT://{BOOTSTRAP},SASL_PLAINTEXT://{SASL_BOOTSTRAP}",
    "sasl_enabled_mechanisms": "SCRAM-SHA-256",
    "connections_max_reauth_ms": 9_000,
    "authorizer": "acl",
    "super_users": f"User:{USER};User:ANONYMOUS",
}
"""Settings with which members say who they are, again and again."""
RESTART_MS = 300
"""So long a supervisor waits before it starts a daemon that has ended."""


class Disk:
    """The disk beneath the daemon's files, and how it fails."""

    def __init__(self, world: DaemonWorld) -> None:
        self._world = world
        self._rng = random.Random(f"disk {world.seed}")
        self.full_until_us = 0
        self.slow_until_us = 0
        self.append_fails = ""
        """The next append to a store fails, "before" or "after" its records are in the file."""
        self.sync_fails = False

    def take_time(self) -> None:
        """On the thread that waits for the disk."""
        slow = self.slow_until_us > simulated.turns.now_us
        simulated.sleep(self._rng.randint(300, 2_000) / 1000 if slow else self._rng.randint(50, 4_000) / 1e6)

    def is_full(self) -> bool:
        """Whether there is no room now; that counts as a failure of the disk."""
        full = self.full_until_us > simulated.turns.now_us
        if full:
            self._world.checks.disk_failed_ms = self._world.turns.now_ms
            self._world.checks.counts["disk full"] += 1
        return full

    @contextlib.contextmanager
    def beneath(self) -> Iterator[None]:
        """The store's and the topic log's files are on this disk."""
        append, probe = SqliteStorage._append, SqliteStorage._probe
        write, sync = appender.pwrite_all, disk._sync

        def appended(store: SqliteStorage, batches: Sequence[Batch]) -> list[int]:
            self.take_time()
            if self.is_full():
                raise StorageError(Failure.DISK_FULL)
            fails, self.append_fails = self.append_fails, ""
            if not fails:
                return append(store, batches)
            self._world.checks.disk_failed_ms = self._world.turns.now_ms
            self._world.checks.counts[f"append fails {fails}"] += 1
            if fails == "after":
                append(store, batches)
            store._broken = StorageError(Failure.IO_ERROR, "simulated")
            raise store._broken

        def probed(store: SqliteStorage) -> None:
            if self.is_full():
                raise StorageError(Failure.DISK_FULL)
            probe(store)

        def written(descriptor: int, parts: list[bytes], position: int) -> None:
            self.take_time()
            if self.is_full():
                whole = self._rng.randrange(len(parts))
                write(descriptor, [*parts[:whole], parts[whole][: len(parts[whole]) // 2]], position)
                raise OSError(errno.ENOSPC, "No space left on device")
            write(descriptor, parts, position)

        def synced(descriptor: int) -> None:
            if self.sync_fails:
                self.sync_fails = False
                self._world.checks.disk_failed_ms = self._world.turns.now_ms
                self._world.checks.counts["sync fails"] += 1
                raise disk.SyncError(errno.EIO, "sync failed: Input/output error")
            sync(descriptor)

        with (
            mock.patch.object(SqliteStorage, "_append", appended),
            mock.patch.object(SqliteStorage, "_probe", probed),
            mock.patch.object(appender, "pwrite_all", written),
            mock.patch.object(disk, "_sync", synced),
        ):
            yield


class Life:
    """One process of the daemon, from its start to its end."""

    def __init__(self, world: DaemonWorld, directory: Path, number: int) -> None:
        self._world, self.directory = world, directory
        self.process = Process("daemon")
        self.ready = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.thread = Thread(target=self._run, name=f"life {number}", process=self.process)
        self.thread.start()

    def stop(self) -> None:
        """SIGTERM, or nobody cares any more."""
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)

    def _run(self) -> None:
        asyncio.run(self._main())
        self._world.turns.later(RESTART_MS, lambda: self._world.daemon.ended(self))

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        settings = Settings.model_validate(
            {
                **(SECURED if self._world.secured else {"listen": BOOTSTRAP}),
                "data_dir": self.directory,
                "offsets_topic_num_partitions": 4,
                "group_initial_rebalance_delay_ms": 300,
                "group_min_session_timeout_ms": 1_000,
                "shutdown_grace_ms": 2_000,
                "log_segment_bytes": self._world.segment_bytes,
                "topic": ((TOPIC, 3), (PROGRESS, SHARDS)),
            }
        )
        node = Node(settings)
        try:
            await node.start()
        except OSError as error:
            self._world.say("the daemon does not start", error)
            return
        self.ready = True
        stopping = asyncio.ensure_future(self._stop.wait())
        failed = asyncio.ensure_future(node.wait_failed())
        await asyncio.wait([stopping, failed], return_when=asyncio.FIRST_COMPLETED)
        self.ready = False
        if failed.done():
            self._world.checks.counts["the daemon fails"] += 1
            self._world.say("the daemon fails", node.failure)
        for one in (stopping, failed):
            one.cancel()
        await asyncio.wait([stopping, failed])
        await node.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left and not self.process.dead:
            self._world.wrong("no task is left", f"daemon: {sorted(one.get_name() for one in left)}")


class Daemon:
    """The service: when one life is over, its supervisor begins the next."""

    def __init__(self, world: DaemonWorld, root: Path) -> None:
        self._world, self._root = world, root
        self.wanted = True
        self.lives = 0
        self.life = self._begin(root / "0")

    def _begin(self, directory: Path) -> Life:
        self.lives += 1
        return Life(self._world, directory, self.lives)

    def ended(self, life: Life) -> None:
        """A life is over."""
        if life is self.life and self.wanted:
            self.life = self._begin(life.directory)

    def crash(self, down_ms: int) -> None:
        """SIGKILL. The next life has the files as they are now; what the dead one does to its own nobody
        sees."""
        dead, world = self.life, self._world
        if dead.process.dead:
            return
        dead.process.dead, dead.ready = True, False
        found = self._root / str(self.lives)
        if dead.directory.exists():
            shutil.copytree(dead.directory, found)
        world.net.listeners.clear()
        world.net.reset()
        dead.process.paused_until_us = 0
        dead.stop()

        def again() -> None:
            if self.wanted and self.life is dead:
                self.life = self._begin(found)

        world.turns.later(down_ms, again)


def is_sound(directory: Path) -> str:
    """The damage of the files of a daemon that has ended; "" if there is none."""
    for name in ("groups.db", "transactions.db"):
        with contextlib.closing(sqlite3.connect(directory / name)) as connection:
            [(verdict,)] = connection.execute("PRAGMA integrity_check(1)")
        if verdict != "ok":
            return f"{name}: {verdict}"
    return ""


def files_of(directory: Path) -> list[tuple[str, Any]]:
    """Names and contents of the topic log, in order: a part of the trace."""
    logs = sorted(directory.rglob("*.log"))
    return [(str(path.relative_to(directory)), path.read_bytes()) for path in logs]
