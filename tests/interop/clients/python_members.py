"""Members of the three Python libraries which a test can ask to commit and seek, and which tell what happens.

They stand on the stage of ``tests.support.members`` and write on a `WatchBoard`.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from tests.interop.clients.watch import Event, WatchBoard
from tests.support.members import POLL_S, AiokafkaMember, _ThreadMember, know_topic

ANSWER_S = 30.0
HEARTBEAT_MS = 100
SESSION_MS = 10_000
PATIENT_MS = 60_000
"""Session for a test in which the daemon is away, on a machine with other things to do."""
KAFKA_PYTHON_POLL_MS = 500
"""A join that outlasts one poll is where this library loses its way; longer polls make that rare."""


class _Noted:
    """Keeps what a member owns, and tells the board of each change."""

    def __init__(self, board: WatchBoard, name: str) -> None:
        self._board = board
        self._name = name
        self.owned: set[int] = set()

    def assigned(self, partitions: Iterable[Any]) -> None:
        numbers = [one.partition for one in partitions]
        self.owned |= set(numbers)
        self._tell("assigned", numbers)

    def given_up(self, kind: str, partitions: Iterable[Any]) -> None:
        numbers = [one.partition for one in partitions]
        self.owned -= set(numbers)
        self._tell(kind, numbers)

    def committed(self, error: BaseException | None) -> None:
        name = "" if error is None else type(error).__name__
        self._board.happens(Event(self._name, "committed", error=name))

    def _tell(self, kind: str, numbers: list[int]) -> None:
        self._board.owns(self._name, self.owned)
        self._board.happens(Event(self._name, kind, partitions=tuple(sorted(numbers))))


class _AiokafkaListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    def __init__(self, noted: _Noted, consumer: Any, commits: bool) -> None:
        self._noted, self._consumer, self._commits = noted, consumer, commits

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        if self._commits and revoked:
            try:
                await self._consumer.commit()
                self._noted.committed(None)
            except Exception as error:
                self._noted.committed(error)
        self._noted.given_up("revoked", revoked)

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._noted.assigned(assigned)


class WatchedAiokafka(AiokafkaMember):
    """aiokafka, with the range assignor. Options under its names."""

    library: ClassVar[str] = "aiokafka"
    static_option: ClassVar[str] = "group_instance_id"

    def __init__(
        self,
        board: WatchBoard,
        bootstrap: str,
        group: str,
        topic: str,
        name: str,
        *,
        session_ms: int = SESSION_MS,
        commits: bool = False,
        **options: Any,
    ) -> None:
        timing = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": HEARTBEAT_MS}
        usual = {"enable_auto_commit": False, "partition_assignment_strategy": (AiokafkaRange,)}
        super().__init__(board, bootstrap, group, topic, name, **timing, **{**usual, **options})
        self._noted = _Noted(board, name)
        self._commits = commits
        self._consumer: Any = None

    async def _run(self) -> None:
        try:
            self._consumer = consumer = aiokafka.AIOKafkaConsumer(
                **self._where, retry_backoff_ms=50, **self._options
            )
            consumer.subscribe(
                [self._topic], listener=_AiokafkaListener(self._noted, consumer, self._commits)
            )
            await consumer.start()
            try:
                while not self._stop.is_set():
                    batches = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
                    for tp, records in batches.items():
                        self._board.receives(self.name, [(tp.partition, one.offset) for one in records])
            finally:
                await consumer.stop()
            self._board.owns(self.name, None)
        except Exception as error:
            self._board.fails(error)

    def _place(self, partition: int) -> Any:
        return aiokafka.TopicPartition(self._topic, partition)

    async def commit(self, offsets: dict[int, int] | None = None) -> None:
        """Commit these, or all positions."""
        what = None if offsets is None else {self._place(one): offset for one, offset in offsets.items()}
        await self._consumer.commit(what)

    async def committed(self, partitions: Sequence[int]) -> list[int | None]:
        """Committed offsets."""
        return [await self._consumer.committed(self._place(one)) for one in partitions]

    async def seek(self, partition: int, offset: int) -> None:
        """Go on from there."""
        self._consumer.seek(self._place(partition), offset)

    async def member_id(self) -> str:
        """Its member id."""
        return str(self._consumer._coordinator.member_id)


class _Watched(_ThreadMember):
    """One on a thread: what is to be done with its consumer is done between two polls."""

    library: ClassVar[str]
    static_option: ClassVar[str]

    def __init__(
        self,
        board: WatchBoard,
        bootstrap: str,
        group: str,
        topic: str,
        name: str,
        *,
        session_ms: int = SESSION_MS,
        commits: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(board, bootstrap, group, topic, name, **options)
        self._noted = _Noted(board, name)
        self._session_ms = session_ms
        self._commits = commits
        self._todo: queue.SimpleQueue[tuple[Callable[[Any], Any], Future[Any]]] = queue.SimpleQueue()

    def _work(self, consumer: Any) -> None:
        while not self._todo.empty():
            todo, done = self._todo.get()
            try:
                done.set_result(todo(consumer))
            except Exception as error:
                done.set_exception(error)

    async def _do(self, todo: Callable[[Any], Any]) -> Any:
        done: Future[Any] = Future()
        self._todo.put((todo, done))
        async with asyncio.timeout(ANSWER_S):
            return await asyncio.wrap_future(done)


class _KafkaPythonListener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    def __init__(self, noted: _Noted, consumer: Any, commits: bool) -> None:
        self._noted, self._consumer, self._commits = noted, consumer, commits

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        if self._commits and revoked:
            try:
                await self._consumer.commit_async()
                self._noted.committed(None)
            except Exception as error:
                self._noted.committed(error)
        self._noted.given_up("revoked", revoked)

    async def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self._noted.given_up("lost", lost)

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._noted.assigned(assigned)


class WatchedKafkaPython(_Watched):
    """kafka-python, with the range assignor. Options under its names."""

    library = "kafka-python"
    static_option = "group_instance_id"
    cooperative: ClassVar[dict[str, Any]] = {"partition_assignment_strategy": (CooperativeStickyAssignor,)}

    def _run(self) -> None:
        usual = {"auto_offset_reset": "earliest", "partition_assignment_strategy": (KafkaPythonRange,)}
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=self._group,
            client_id=self.name,
            enable_auto_commit=False,
            session_timeout_ms=self._session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            **{**usual, **self._options},
        )
        try:
            listener = _KafkaPythonListener(self._noted, consumer, self._commits)
            consumer.subscribe([self._topic], listener=listener)
            know_topic(consumer, self._topic)
            while not self._stop.is_set():
                try:
                    polled = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)
                except kafka.errors.KafkaError as error:
                    if not error.retriable:
                        raise
                    continue  # this library tells the application, too, of a broker that is away
                for tp, records in polled.items():
                    self._board.receives(self.name, [(tp.partition, one.offset) for one in records])
                self._work(consumer)
        finally:
            consumer.close(autocommit=False)

    def _place(self, partition: int) -> Any:
        return kafka.TopicPartition(self._topic, partition)

    async def commit(self, offsets: dict[int, int] | None = None) -> None:
        """Commit these, or all positions."""
        what = None
        if offsets is not None:
            what = {self._place(one): kafka.OffsetAndMetadata(at, "", -1) for one, at in offsets.items()}
        await self._do(lambda consumer: consumer.commit(what))

    async def committed(self, partitions: Sequence[int]) -> list[int | None]:
        """Committed offsets."""
        return list(
            await self._do(lambda consumer: [consumer.committed(self._place(one)) for one in partitions])
        )

    async def seek(self, partition: int, offset: int) -> None:
        """Go on from there."""
        await self._do(lambda consumer: consumer.seek(self._place(partition), offset))

    async def member_id(self) -> str:
        """Its member id."""
        return str(await self._do(lambda consumer: consumer.group_metadata().member_id))


class WatchedConfluent(_Watched):
    """confluent-kafka (librdkafka), with the range assignor. Options under its names."""

    library = "confluent-kafka"
    static_option = "group.instance.id"
    cooperative: ClassVar[dict[str, Any]] = {"partition.assignment.strategy": "cooperative-sticky"}

    def _revoked(self, consumer: Any, revoked: list[Any]) -> None:
        if self._commits:
            try:
                positions = [one for one in consumer.position(revoked) if one.offset >= 0]
                consumer.commit(offsets=positions, asynchronous=False)
                self._noted.committed(None)
            except confluent_kafka.KafkaException as error:
                self._noted.committed(error)
        self._noted.given_up("revoked", revoked)

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self._group,
                "client.id": self.name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": self._session_ms,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 500,
                "partition.assignment.strategy": "range",
                **self._options,
            }
        )
        try:
            consumer.subscribe(
                [self._topic],
                on_assign=lambda _, partitions: self._noted.assigned(partitions),
                on_revoke=self._revoked,
                on_lost=lambda _, partitions: self._noted.given_up("lost", partitions),
            )
            while not self._stop.is_set():
                record: Any = consumer.poll(POLL_S / 2)
                self._work(consumer)
                if record is None:
                    continue
                if record.error() is not None:
                    raise confluent_kafka.KafkaException(record.error())
                self._board.receives(self.name, [(record.partition(), record.offset())])
        finally:
            consumer.close()

    def _place(self, partition: int, offset: int = confluent_kafka.OFFSET_INVALID) -> Any:
        return confluent_kafka.TopicPartition(self._topic, partition, offset)

    async def commit(self, offsets: dict[int, int] | None = None) -> None:
        """Commit these, or all positions."""
        arguments: dict[str, Any] = {"asynchronous": False}
        if offsets is not None:
            arguments["offsets"] = [self._place(one, at) for one, at in offsets.items()]
        await self._do(lambda consumer: consumer.commit(**arguments))

    async def committed(self, partitions: Sequence[int]) -> list[int | None]:
        """Committed offsets."""
        places = [self._place(one) for one in partitions]
        found = await self._do(lambda consumer: consumer.committed(places, timeout=ANSWER_S))
        return [one.offset if one.offset >= 0 else None for one in found]

    async def seek(self, partition: int, offset: int) -> None:
        """Go on from there."""
        await self._do(lambda consumer: consumer.seek(self._place(partition, offset)))

    async def member_id(self) -> str:
        """Its member id."""
        return str(await self._do(lambda consumer: consumer.memberid()))


WatchedMember = WatchedAiokafka | WatchedKafkaPython | WatchedConfluent
LIBRARIES: tuple[type[WatchedMember], ...] = (WatchedAiokafka, WatchedKafkaPython, WatchedConfluent)
BY_NAME = {one.library: one for one in LIBRARIES}
