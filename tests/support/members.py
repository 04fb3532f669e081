"""Members of groups that use real client libraries, and a board on which they write what they own and get.

A test waits for the board to show something; nothing sleeps. Synchronous libraries run on a thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka

POLL_S = 0.1
JOIN_THREAD_S = 30.0


class Board:
    """The partitions that every member owns (None before its first assignment and after it left), and the
    records that it has received."""

    def __init__(self) -> None:
        self.owned: dict[str, tuple[int, ...] | None] = {}
        self.got: dict[str, list[tuple[int, int]]] = {}
        self.failures: list[BaseException] = []
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def owns(self, name: str, partitions: Iterable[int] | None) -> None:
        """From any thread: `name` owns these now."""
        value = None if partitions is None else tuple(sorted(partitions))
        self._post(lambda: self.owned.__setitem__(name, value))

    def gives_up(self, name: str, partitions: Iterable[int]) -> None:
        """From any thread: a rebalance asks `name` for these."""

    def receives(self, name: str, records: list[tuple[int, int]]) -> None:
        """From any thread: `name` has received these, as (partition, offset)."""
        self._post(lambda: self.got.setdefault(name, []).extend(records))

    def fails(self, error: BaseException) -> None:
        """From any thread: a member broke, and each waiting test raises it."""
        self._post(lambda: self.failures.append(error))

    def _post(self, change: Callable[[], Any]) -> None:
        self._loop.call_soon_threadsafe(self._apply, change)

    def _apply(self, change: Callable[[], Any]) -> None:
        change()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def until(self, holds: Callable[[Board], bool], timeout_s: float = 60.0) -> None:
        """Wait until that holds. AssertionError with the board when it does not come."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.failures and not holds(self):
                    await self._changed.wait()
        except TimeoutError:
            counts = {name: len(records) for name, records in self.got.items()}
            raise AssertionError(f"does not come: owned {self.owned}, received {counts}") from None
        if self.failures:
            raise self.failures[0]

    async def until_owned(self, expected: dict[str, tuple[int, ...]]) -> None:
        """Wait until the members that own something, or idle in the group, are exactly these."""
        await self.until(lambda now: {k: v for k, v in now.owned.items() if v is not None} == expected)


class _Listening:
    """Rebalance callbacks of aiokafka and kafka-python, sync part."""

    def __init__(self, board: Board, name: str) -> None:
        self._board = board
        self._name = name

    def assigned(self, partitions: Iterable[Any]) -> None:
        self._board.owns(self._name, [tp.partition for tp in partitions])

    def revoked(self, partitions: Iterable[Any]) -> None:
        self._board.gives_up(self._name, [tp.partition for tp in partitions])


class _AiokafkaListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    def __init__(self, listening: _Listening) -> None:
        self._listening = listening

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._listening.revoked(revoked)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._listening.assigned(assigned)


class _KafkaPythonListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    def __init__(self, listening: _Listening) -> None:
        self._listening = listening

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._listening.revoked(revoked)

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._listening.assigned(assigned)


class AiokafkaMember:
    """An aiokafka consumer in its group, on the test's loop."""

    def __init__(
        self, board: Board, bootstrap: str, group: str, topic: str, name: str, **options: Any
    ) -> None:
        self.name = name
        self._board = board
        self._topic = topic
        self._options = {"auto_offset_reset": "earliest", **options}
        self._where = {"bootstrap_servers": bootstrap, "group_id": group, "client_id": name}
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    async def join(self) -> None:
        """Start; the assignment shows on the board."""
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            consumer = aiokafka.AIOKafkaConsumer(**self._where, **self._options)
            listener = _AiokafkaListener(_Listening(self._board, self.name))
            consumer.subscribe([self._topic], listener=listener)
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

    async def leave(self) -> None:
        """Stop and wait for the end."""
        self._stop.set()
        if self._task is not None:
            await self._task


class _ThreadMember:
    """A member of a synchronous library, on a thread of its own."""

    def __init__(
        self, board: Board, bootstrap: str, group: str, topic: str, name: str, **options: Any
    ) -> None:
        self.name = name
        self._board = board
        self._bootstrap = bootstrap
        self._group = group
        self._topic = topic
        self._options = options
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)

    async def join(self) -> None:
        """Start; the assignment shows on the board."""
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self._run()
            self._board.owns(self.name, None)
        except BaseException as error:
            self._board.fails(error)

    def _run(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        """Stop and wait for the end of the thread."""
        self._stop.set()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, JOIN_THREAD_S)
            assert not self._thread.is_alive(), f"{self.name} does not end"


def know_topic(consumer: Any, topic: str) -> None:
    """Let a kafka-python consumer that has subscribed learn the partitions before it joins.

    Elected without them it assigns nothing and rejoins once it knows; if that takes longer than one poll, it
    never looks at the answer, sends no heartbeats, and stands still for good (3.0.12).
    """
    assert consumer.partitions_for_topic(topic), f"there is no topic {topic}"


class KafkaPythonMember(_ThreadMember):
    """A kafka-python consumer in its group."""

    def _run(self) -> None:
        options = {"auto_offset_reset": "earliest", **self._options}
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap, group_id=self._group, client_id=self.name, **options
        )
        try:
            listener = _KafkaPythonListener(_Listening(self._board, self.name))
            consumer.subscribe([self._topic], listener=listener)
            know_topic(consumer, self._topic)
            while not self._stop.is_set():
                for tp, records in consumer.poll(timeout_ms=int(POLL_S * 1000)).items():
                    self._board.receives(self.name, [(tp.partition, one.offset) for one in records])
        finally:
            consumer.close()


class ConfluentMember(_ThreadMember):
    """A confluent-kafka (librdkafka) consumer in its group; options under librdkafka's names."""

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self._group,
                "client.id": self.name,
                "auto.offset.reset": "earliest",
                **self._options,
            }
        )
        try:
            listening = _Listening(self._board, self.name)
            consumer.subscribe(
                [self._topic],
                on_assign=lambda _, of: listening.assigned(of),
                on_revoke=lambda _, of: listening.revoked(of),
            )
            while not self._stop.is_set():
                record = consumer.poll(POLL_S)
                if record is None:
                    continue
                if record.error() is not None:
                    raise confluent_kafka.KafkaException(record.error())
                self._board.receives(self.name, [(record.partition() or 0, record.offset() or 0)])
        finally:
            consumer.close()


class Actor(Protocol):
    """A part that can be on a stage."""

    async def join(self) -> None:
        """Start to take part."""

    async def leave(self) -> None:
        """Take part no longer; may be called again."""


class Stage:
    """Members that are on; all of them leave at the end of the block."""

    def __init__(self) -> None:
        self.members: list[Actor] = []

    async def enter(self, member: Actor) -> None:
        """Let it join."""
        self.members.append(member)
        await member.join()

    async def exit(self, member: Actor) -> None:
        """Let it leave."""
        self.members.remove(member)
        await member.leave()

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(member.leave() for member in self.members))
