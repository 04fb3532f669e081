"""One daemon's data directory into a cluster, from the first look to the last comparison."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import TopicMetadata
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.model import TopicPartition
from ringleader.coordinator.config import Settings
from ringleader.coordinator.groups.records import Key, decode_key
from ringleader.coordinator.storage.base import Record
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage, TopicStore
from ringleader.migration import security as securing
from ringleader.migration import topics as moving
from ringleader.migration.groups import GroupReport, Groups, names
from ringleader.migration.source import Source, SourceError, opened
from ringleader.migration.state import State
from ringleader.migration.together import together
from ringleader.migration.topics import ConflictError, Copy, Progress

CALL_TIMEOUT_MS = 30_000
AT_ONCE = 8
"""Partitions of the groups' topic that are written at a time."""
ROWS_PER_APPEND = 500
SHOWN = 5
MIGRATION_NODE = -1
"""As claims in the groups' topic name us: no node has this id."""


@dataclass(slots=True)
class TopicReport:
    """The outcome of a topic. `first`: of each partition, the first offset here and there. `shifted`:
    partitions whose records have other offsets on the cluster."""

    topic: str
    partitions: int
    records: int
    offsets: list[tuple[int, int]]
    shifted: list[int]


@dataclass(slots=True)
class Report:
    """The result of a migration, or of a dry run."""

    topics: list[TopicReport] = field(default_factory=list)
    groups: list[GroupReport] = field(default_factory=list)
    records: int = 0
    """Written in this run; those of an earlier one are not counted again."""
    security: dict[str, int] = field(default_factory=dict)
    """How many users, ACLs and quotas there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The options of a migration. `settings`: the daemon's, and those of the cluster. `replicas`: of topics
    that are made; -1: as the cluster does. `into_existing`: append to topics that have records, and leave
    groups that are there as they are."""

    directory: Path
    settings: Settings
    security: ClientSecurity
    replicas: int = -1
    into_existing: bool = False
    dry_run: bool = False


async def migrate(plan: Plan, progress: Progress) -> Report:
    """Take the directory over. Raises SourceError, ConflictError, StateError, ClientError, `StorageError`,
    OSError, MalformedError, KafkaError; what was begun then is gone on with by another call."""
    async with opened(plan.directory, plan.settings) as source, _admin(plan) as admin:
        return await _Migration(plan, source, admin, State.load(plan.directory), progress).run()


class _Migration:
    def __init__(self, plan: Plan, source: Source, admin: Admin, state: State, progress: Progress) -> None:
        self._plan = plan
        self._source = source
        self._admin = admin
        self._state = state
        self._progress = progress

    async def run(self) -> Report:
        plan, source, state = self._plan, self._source, self._state
        if state.groups == "done":
            raise ConflictError(
                f"this was done before, says {state.path}: to do it again, delete that file, and the topics "
                "and groups that are on the cluster"
            )
        await self._check_nodes()
        there = {topic.name: topic for topic in await self._admin.list_topics(internal=True)}
        ends = await self._ends(there)
        full = moving.conflicts(source, there, ends, state)
        if full and not plan.into_existing:
            raise ConflictError(
                f"there are records already in {_in_words(full)}: delete them on the cluster, or append to "
                "them with --into-existing"
            )
        ours = {name for rows in source.rows.values() for name in names(rows)}
        if plan.dry_run:
            return self._planned()
        async with self._groups_store() as store:
            present = await together(range(self._partitions), partial(_rows_of, store), AT_ONCE)
            taken = {name for rows in present.values() for name in names(_keyed(rows))}
            left = sorted(taken & ours) if not state.groups else []
            if left and not plan.into_existing:
                raise ConflictError(
                    f"there are groups already of the names {_in_words(left)}: delete them on the cluster, "
                    "or leave them as they are there with --into-existing"
                )
            await self._secure()
            copy = await self._copied(there, ends)
            groups = Groups(source.rows, copy.maps)
            wanted = groups.rows(left)
            if state.groups and (changed := sorted(_changed(present, wanted, ours))):
                raise ConflictError(
                    f"groups that an earlier run wrote have changed since, {_in_words(changed)}: nodes were "
                    "started before it was done"
                )
            state.groups = "begun"
            state.save()
            await together(wanted, partial(_write, store, wanted, present), AT_ONCE)
        await self._compare(wanted)
        for info in source.infos():
            await moving.settle(self._admin, source, info, state)
        state.groups = "done"
        state.save()
        return self._report(copy, groups)

    # ---- before anything is changed ----

    async def _check_nodes(self) -> None:
        (nodes,) = await self._admin.describe_groups([self._plan.settings.cluster_group_id])
        if nodes.members:
            running = sorted(one.group_instance_id or one.client_id for one in nodes.members)
            raise ConflictError(
                f"nodes of the cluster are running, {_in_words(running)}: stop them until this is done"
            )

    async def _ends(self, there: dict[str, TopicMetadata]) -> dict[TopicPartition, int]:
        """Where partitions end on the cluster, of our topics that it has."""
        return await self._admin.end_offsets(
            (info.name, number)
            for info in self._source.infos()
            if info.name in there
            for number in range(len(there[info.name].partitions))
        )

    def _planned(self) -> Report:
        """As far as it can be said without reading all records."""
        topics = [
            TopicReport(info.name, info.partitions, sum(sizes), [(start, 0) for start in starts], [])
            for info in self._source.infos()
            for partitions in [[self._source.partition(info.name, n) for n in range(info.partitions)]]
            for starts in [[one.start_offset for one in partitions]]
            for sizes in [[one.high_watermark - one.start_offset for one in partitions]]
        ]
        groups = Groups(self._source.rows, {})
        groups.rows()
        return Report(topics, list(groups.reports.values()), security=self._source.security.counts())

    # ---- users, ACLs and quotas ----

    async def _secure(self) -> None:
        """They are on the cluster before anything that they are about."""
        settings, ours = self._plan.settings, self._source.security
        if not any(ours.counts().values()):
            return
        name = settings.cluster_security_topic
        async with _cluster(self._plan) as cluster:
            store = TopicStore(cluster, name, settings.cluster_replication_factor, secret=ours.secret)
            try:
                await store.start()
                if different := securing.others(ours, store):
                    raise ConflictError(
                        f"{name} has already, with other contents, {_in_words(different)}: remove them "
                        "there, or here"
                    )
                await securing.write(ours, store)
            finally:
                await store.close()

    # ---- topics ----

    async def _copied(self, there: dict[str, TopicMetadata], ends: dict[TopicPartition, int]) -> Copy:
        plan, source = self._plan, self._source
        await moving.make(self._admin, source, there, ends, self._state, plan.replicas)
        async with _cluster(plan) as cluster:
            copy = Copy(source, cluster, self._state, self._progress)
            await copy.run(await self._admin.end_offsets(copy.places))
        copy.check(await self._admin.end_offsets(copy.places))
        return copy

    # ---- groups ----

    @property
    def _partitions(self) -> int:
        return self._plan.settings.offsets_topic_num_partitions

    def _groups_store(self) -> _Store:
        settings, security = self._plan.settings, self._plan.security
        return _Store(
            KafkaStorage(
                _bootstrap(settings),
                Claim(MIGRATION_NODE, socket.gethostname(), 0, version("ringleader")),
                topic=settings.cluster_groups_topic,
                partitions=settings.offsets_topic_num_partitions,
                replication_factor=settings.cluster_replication_factor,
                transactional_id_prefix=settings.cluster_transactional_id_prefix,
                max_record_bytes=settings.group_max_record_bytes,
                tls=security.tls,
                sasl=security.sasl,
            )
        )

    async def _compare(self, wanted: dict[int, list[Record]]) -> None:
        """Compare the groups' topic with the records that were written."""
        async with self._groups_store() as store:
            found = await together(wanted, partial(_rows_of, store), AT_ONCE)
        for number, rows in wanted.items():
            if any(found[number].get(key) != value for key, value in rows):
                topic = self._plan.settings.cluster_groups_topic
                raise ConflictError(
                    f"partition {number} of {topic} does not hold what was written: somebody writes to it"
                )

    def _report(self, copy: Copy, groups: Groups) -> Report:
        topics = []
        for info in self._source.infos():
            numbers = range(info.partitions)
            maps = [copy.maps[info.name, number] for number in numbers]
            starts = [self._source.partition(info.name, number).start_offset for number in numbers]
            topics.append(
                TopicReport(
                    info.name,
                    info.partitions,
                    sum(one.count for one in maps),
                    [(start, one.start) for start, one in zip(starts, maps, strict=True)],
                    [number for number, one in zip(numbers, maps, strict=True) if one.shifted],
                )
            )
        return Report(topics, list(groups.reports.values()), copy.records, self._source.security.counts())


class _Store:
    """A store that is open inside of the block."""

    def __init__(self, store: KafkaStorage) -> None:
        self._store = store

    async def __aenter__(self) -> KafkaStorage:
        await self._store.start()
        return self._store

    async def __aexit__(self, *_error: object) -> None:
        await self._store.close()


async def _rows_of(store: KafkaStorage, partition: int) -> dict[bytes, bytes]:
    """The rows of the partition, which this process owns from then on."""
    await store.open(partition, 0)
    found: dict[bytes, bytes] = {}
    async for chunk in store.replay(partition):
        for _, _, key, value in chunk:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found


async def _write(
    store: KafkaStorage,
    wanted: dict[int, list[Record]],
    present: dict[int, dict[bytes, bytes]],
    partition: int,
) -> None:
    there = present[partition]
    missing = [(key, value) for key, value in wanted[partition] if there.get(key) != value]
    epoch = await store.open(partition, 0) if missing else 0
    for begin in range(0, len(missing), ROWS_PER_APPEND):
        await store.append([(partition, epoch, missing[begin : begin + ROWS_PER_APPEND])])


def _keyed(rows: dict[bytes, bytes]) -> Iterable[tuple[Key | None, Record]]:
    return ((decode_key(key), (key, value)) for key, value in rows.items())


def _changed(
    present: dict[int, dict[bytes, bytes]], wanted: dict[int, list[Record]], ours: set[str]
) -> set[str]:
    """Our groups of which the cluster has something that we do not write."""
    found = set()
    for number, rows in present.items():
        written = dict(wanted[number])
        other = {key: value for key, value in rows.items() if written.get(key) != value}
        found |= names(_keyed(other)) & ours
    return found


def _bootstrap(settings: Settings) -> list[str]:
    return [str(address) for address in settings.cluster]


def _admin(plan: Plan) -> Admin:
    security = plan.security
    return Admin(_bootstrap(plan.settings), timeout_ms=CALL_TIMEOUT_MS, tls=security.tls, sasl=security.sasl)


def _cluster(plan: Plan) -> Cluster:
    security = plan.security
    return Cluster(
        _bootstrap(plan.settings), client_id="ringleader-migrate", tls=security.tls, sasl=security.sasl
    )


def _in_words(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


__all__ = ["ConflictError", "Plan", "Report", "SourceError", "migrate"]
