"""GroupConsumer(group_protocol="consumer") on Apache Kafka: every record, none twice without reason."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.errors import (
    InconsistentGroupProtocolError,
    MembershipUnsupportedError,
    UnreleasedInstanceIdError,
)
from ringleader.clients.model import TopicPartition
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.interop.clients.test_group_consumer_on_kafka import PARTITIONS, Log
from tests.interop.kafka import TOOL_JVM, KafkaBroker, command
from tests.support.consuming import PATIENCE_S, Sink, read_count, until
from tests.support.daemon import Daemon
from tests.support.sharding import member

PROPERTIES = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
OPTIONS = [
    *("--group-consumer-session-timeout-ms", "3000"),
    *("--group-consumer-heartbeat-interval-ms", "100"),
    *("--group-consumer-assignment-interval-ms", "0"),
]
PAGE = Path(__file__).parents[3] / "docs" / "consumer-protocol.md"

pytestmark = pytest.mark.xdist_group("kafka-consumer-protocol")


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker | Daemon]:
    """Its sessions are short, and it assigns at once."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == "kafka":
        with KafkaBroker(directory / "broker", properties=PROPERTIES) as broker:
            yield broker
    else:
        with Daemon(directory, options=OPTIONS) as daemon:
            yield daemon


@pytest.fixture
async def log(kafka: KafkaBroker | Daemon, group: str) -> AsyncIterator[Log]:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS)
        yield Log(kafka.bootstrap, topic)
        await admin.delete_topics([topic])


class Story:
    """The callbacks of a consumer, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    @property
    def callbacks(self) -> dict[str, Any]:
        """As a consumer takes them."""

        def noting(kind: str) -> Any:
            return lambda partitions: self.events.append((kind, [number for _, number in partitions]))

        return {f"on_{kind}": noting(kind) for kind in ("assigned", "revoked", "lost")}

    def of(self, kind: str) -> list[list[int]]:
        """The partitions of each callback of that kind that had any."""
        return [partitions for what, partitions in self.events if what == kind and partitions]


def at(log: Log, group: str, name: str = "a", story: Story | None = None, **options: Any) -> GroupConsumer:
    given: dict[str, Any] = {"group_protocol": "consumer", "auto_offset_reset": "earliest", "client_id": name}
    given |= (Story() if story is None else story).callbacks
    topics = None if "pattern" in options else [log.topic]
    return GroupConsumer(log.bootstrap, group, topics, **(given | options))


async def shared(*consumers: GroupConsumer, total: int = PARTITIONS) -> None:
    """Until they have all partitions, about as many each."""

    def even() -> bool:
        counts = [len(one.assignment()) for one in consumers]
        places = {place for one in consumers for place in one.assignment()}
        return len(places) == sum(counts) == total and max(counts) - min(counts) <= 1

    await until(even)


def has(one: GroupConsumer, places: list[TopicPartition]) -> bool:
    """Whether these are its partitions."""
    return one.assignment() == places


def has_read(sink: Sink, total: int) -> bool:
    """Whether there are `total` records."""
    return sink.total >= total


@contextlib.asynccontextmanager
async def reading(one: GroupConsumer, sink: Sink, *, commits: bool = False) -> AsyncIterator[None]:
    """A task that reads into the sink meanwhile, batch by batch to the end of each."""
    ended = False

    async def read_on() -> None:
        while not ended:
            for batch in await one.getmany(timeout_s=0.05):
                sink.add(batch)
                await asyncio.sleep(0.002)
            if commits and not ended:
                await one.commit()
        await one.commit()

    task = asyncio.create_task(read_on())
    try:
        yield
    finally:
        ended = True
        await task


async def test_alone_it_reads_everything_in_order_and_goes_on_where_it_was(log: Log, group: str) -> None:
    await log.write(400)
    story = Story()
    async with at(log, group, story=story) as one:
        sink = await read_count(one, 400)
        await one.commit()
        assert one.assignment() == log.places()
        assert one.member.generation > 0
    assert story.of("assigned") == story.of("revoked") == [list(range(PARTITIONS))]
    assert story.of("lost") == []
    await log.write(40)
    async with at(log, group) as one:
        await read_count(one, 440, sink)
    assert sink.values == log.written


async def test_the_example_of_the_page(
    kafka: KafkaBroker | Daemon, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    text = text.replace("localhost:9092", kafka.bootstrap).replace("orders", log.topic)
    names: dict[str, Any] = {}
    exec(compile(text.replace("asyncio.run(main())", ""), str(PAGE), "exec"), names)
    task = asyncio.create_task(names["main"]())
    printed = ""
    async with asyncio.timeout(PATIENCE_S):
        while not printed:  # it begins at the end of the log, wherever that is by then
            await log.write(PARTITIONS)
            await asyncio.sleep(0.05)
            printed += capsys.readouterr().out
    task.cancel()
    await asyncio.wait([task])
    assert re.match(rf"[0-{PARTITIONS - 1}] \d+ None b'\d+'\n", printed)


async def test_what_moves_is_committed_first_and_what_stays_is_read_on(log: Log, group: str) -> None:
    await log.write(400)
    sink, stories = Sink(), [Story(), Story()]
    async with at(log, group, "a", stories[0], max_poll_records=10) as one, reading(one, sink):
        await until(lambda: sink.total >= 100)
        before = one.assignment()
        async with at(log, group, "b", stories[1], max_poll_records=10) as two, reading(two, sink):
            await shared(one, two)
            assert set(one.assignment()) < set(before)
            await log.write(40)
            await until(lambda: sink.total >= 440)
            metrics = one.metrics().member
            assert (metrics.times_lost, metrics.revocations) == (0, 1)
        await shared(one)
        await log.write(40)
        await until(lambda: sink.total >= 480)
    assert sink.values == log.written
    assert len(stories[0].of("revoked")[0]) == PARTITIONS // 2
    assert stories[0].of("lost") == stories[1].of("lost") == []


async def test_commits_go_through_while_members_come_and_go(log: Log, group: str) -> None:
    """Each batch is committed, whatever epoch the group is in by then: nothing is read twice."""
    await log.write(4_000)
    sink, story = Sink(), Story()
    options: dict[str, Any] = {"auto_commit": False, "max_poll_records": 10}
    async with at(log, group, "a", story, **options) as one:
        async with reading(one, sink, commits=True):
            for name in ("b", "c", "d", "e"):
                await until(lambda: len(one.assignment()) == PARTITIONS)
                async with at(log, group, name, **options) as two, reading(two, sink, commits=True):
                    await shared(one, two)
                    await until(partial(has_read, sink, min(sink.total + 100, 4_000)))
            await until(lambda: sink.total >= 4_000)
        committed = await one.committed()
    assert sink.values == log.written
    assert sink.total == 4_000
    assert {place: value.offset for place, value in committed.items()} == dict.fromkeys(log.places(), 1_000)
    assert story.of("lost") == []


async def test_a_growing_topic(log: Log, group: str) -> None:
    await log.write(40)
    async with at(log, group) as one, at(log, group, "b") as two:
        await shared(one, two)
        async with Admin(log.bootstrap) as admin:
            await admin.create_partitions(log.topic, PARTITIONS + 2)
        await shared(one, two, total=PARTITIONS + 2)


async def test_topics_that_match_a_pattern_later(log: Log, group: str) -> None:
    await log.write(40)
    other = f"{log.topic}-later"
    async with at(log, group, pattern=f"{log.topic}.*", metadata_max_age_ms=200) as one:
        await read_count(one, 40)
        async with Admin(log.bootstrap) as admin:
            await admin.create_topic(other, 1)
            await until(lambda: (other, 0) in one.assignment())
            await admin.delete_topics([other])
            await until(lambda: one.assignment() == log.places())


async def test_a_topic_created_after_the_join(kafka: KafkaBroker | Daemon, group: str) -> None:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", f"{group}-late")
    async with (
        Admin(kafka.bootstrap) as admin,
        GroupConsumer(kafka.bootstrap, group, topic, group_protocol="consumer") as one,
    ):
        assert await one.wait_assigned(PATIENCE_S) == []
        await admin.create_topic(topic, 2)
        await until(lambda: one.assignment() == [(topic, 0), (topic, 1)])


async def test_the_assignor_of_the_coordinator(log: Log, group: str) -> None:
    async with (
        at(log, group, "a", group_remote_assignor="range") as one,
        at(log, group, "b", group_remote_assignor="range") as two,
    ):
        await shared(one, two)
        numbers = sorted([number for _, number in each.assignment()] for each in (one, two))
        assert numbers == [[0, 1], [2, 3]]
    async with at(log, group, group_remote_assignor="fair") as one:
        with pytest.raises(MembershipUnsupportedError, match=r"no assignor 'fair'.*uniform"):
            await one.wait_assigned(PATIENCE_S)


# ---- members that vanish ----


class Process:
    """A consumer process, and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: dict[TopicPartition, list[int]] = {}
        self.lost: list[list[int]] = []

    async def line(self, topic: str) -> bool:
        """Take in one more; False at the end."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        if not line.endswith(b"\n"):
            return False
        word, *numbers = line.decode().split()
        if word == "lost":
            self.lost.append(list(map(int, numbers)))
        else:
            first, last = map(int, numbers)
            self.seen.setdefault((topic, int(word)), []).extend(range(first, last + 1))
        return True


@contextlib.asynccontextmanager
async def process(log: Log, group: str) -> AsyncIterator[Process]:
    command = [sys.executable, "-m", "tests.interop.clients.consumer_protocol_script"]
    found = await asyncio.create_subprocess_exec(
        *command, log.bootstrap, group, log.topic, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Process(found)
    finally:
        if found.returncode is None:
            found.kill()
        await found.communicate()


async def test_a_killed_member_is_missed_after_its_session(log: Log, group: str) -> None:
    await log.write(4_000)
    sink = Sink()
    async with process(log, group) as victim, at(log, group, max_poll_records=10) as one:
        async with asyncio.timeout(PATIENCE_S):
            while len(victim.seen) < PARTITIONS // 2 or not one.assignment():
                await victim.line(log.topic)
        async with reading(one, sink):
            await shared(one, total=len(one.assignment()))
            victim.process.kill()
            while await victim.line(log.topic):
                pass
            await shared(one)

            # From where its last commit was: what it has processed since comes again.
            def all_seen() -> bool:
                return all(
                    set(range(1_000)) == {*victim.seen.get(place, []), *sink.offsets.get(place, [])}
                    for place in log.places()
                )

            await until(all_seen)
    for place in log.places():
        offsets = sink.offsets[place]
        assert offsets == list(range(offsets[0], 1_000))


async def test_a_member_that_was_asleep_hears_that_it_lost_its_partitions(log: Log, group: str) -> None:
    await log.write(4_000)
    async with process(log, group) as sleeper, at(log, group) as one:
        async with asyncio.timeout(PATIENCE_S):
            while not sleeper.seen:
                await sleeper.line(log.topic)
        await until(lambda: len(one.assignment()) == PARTITIONS // 2)
        sleeper.process.send_signal(signal.SIGSTOP)
        await shared(one)
        sleeper.process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE_S):
            while not sleeper.lost:
                assert await sleeper.line(log.topic)
        await until(lambda: len(one.assignment()) == PARTITIONS // 2)


async def test_a_member_that_somebody_removed_joins_again(log: Log, group: str) -> None:
    await log.write(400)
    sink, story = Sink(), Story()
    async with at(log, group, story=story, max_poll_records=10) as one, reading(one, sink):
        await until(lambda: sink.total >= 100)
        leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id=one.member.member_id, member_epoch=-1)
        async with Cluster(log.bootstrap) as cluster:
            answer = await cluster.send(await cluster.coordinator(group), plain(leave))
        assert answer.error_code == 0
        assert (await one.committed()).keys() <= set(log.places())  # asks again as who it is by then
        await until(lambda: len(story.of("assigned")) == 2)
        await log.write(40)
        await until(
            lambda: (
                {place: len(set(of)) for place, of in sink.offsets.items()}
                == dict.fromkeys(log.places(), 110)
            )
        )
    assert story.of("lost") == [list(range(PARTITIONS))]


async def test_no_progress_leaves_the_group_until_there_is_some(log: Log, group: str) -> None:
    await log.write(40)
    story = Story()
    async with at(log, group, story=story, max_poll_interval_ms=1_000) as one:
        assert await one.getone(PATIENCE_S)
        async with at(log, group, "b") as two:
            await until(lambda: len(two.assignment()) == PARTITIONS)
            # Partitions of which it had no record in hand may have been given up before.
            revoked = story.of("lost") + story.of("revoked")
            assert sorted(number for some in revoked for number in some) == list(range(PARTITIONS))
            assert story.of("lost")
            assert one.member.metrics().poll_expirations == 1
            while len(two.assignment()) == PARTITIONS:
                await one.getmany(timeout_s=0.05)


async def test_reading_goes_on_after_a_restart_of_the_broker(
    kafka: KafkaBroker | Daemon, log: Log, group: str
) -> None:
    await log.write(400)
    async with at(log, group, max_poll_records=10) as one:
        sink = await read_count(one, 100)
        await asyncio.to_thread(kafka.stop)
        await asyncio.to_thread(kafka.start)
        await read_count(one, 400, sink)
        assert sink.values == log.written
        assert one.metrics().member.times_lost == 0


# ---- static members ----


async def test_static_members_restart_one_by_one_and_keep_their_partitions(log: Log, group: str) -> None:
    await log.write(400)
    sink = Sink()
    names = ("i", "j")
    consumers = {name: at(log, group, name, group_instance_id=name) for name in names}
    stories = {name: Story() for name in names}
    async with contextlib.AsyncExitStack() as stack:
        for one in consumers.values():
            await one.start()
            stack.push_async_callback(one.stop)
        await shared(*consumers.values())
        before = {name: one.assignment() for name, one in consumers.items()}
        for name in names:
            await consumers[name].stop()
            again = consumers[name] = at(log, group, name, stories[name], group_instance_id=name)
            await again.start()
            stack.push_async_callback(again.stop)
            await until(partial(has, again, before[name]))
        for one in consumers.values():
            await read_count(one, 200, part := Sink())
            sink.values |= part.values
        assert sink.values == log.written
        assert [story.events for story in stories.values()] == [
            [("assigned", [number for _, number in before[name]])] for name in names
        ]


async def test_a_second_member_with_the_same_instance_id_is_refused(log: Log, group: str) -> None:
    async with at(log, group, group_instance_id="i") as one:
        await one.wait_assigned(PATIENCE_S)
        async with at(log, group, group_instance_id="i") as usurper:
            with pytest.raises(UnreleasedInstanceIdError, match="group instance id 'i'"):
                await usurper.wait_assigned(PATIENCE_S)
        assert one.assignment() == log.places()
        assert one.member.error is None


# ---- others in the group ----


@contextlib.asynccontextmanager
async def console_consumer(log: Log, group: str) -> AsyncIterator[list[tuple[int, int]]]:
    """Kafka's own, under group.protocol=consumer: (partition, offset) of what it reads."""
    words = ["--bootstrap-server", log.bootstrap, "--topic", log.topic, "--group", group]
    words += ["--command-property", "group.protocol=consumer", "--from-beginning"]
    words += ["--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true"]
    consumer = command("org.apache.kafka.tools.consumer.ConsoleConsumer", *words, jvm=TOOL_JVM)
    found = await asyncio.create_subprocess_exec(
        *consumer, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    lines: list[tuple[int, int]] = []

    async def listen() -> None:
        assert found.stdout is not None
        async for line in found.stdout:
            found_here = re.findall(rb"Partition:(\d+)\tOffset:(\d+)", line)
            lines.extend((int(partition), int(offset)) for partition, offset in found_here)

    listening = asyncio.create_task(listen())
    try:
        yield lines
    finally:
        if found.returncode is None:
            found.terminate()
        await found.wait()
        await listening


async def test_a_group_with_the_java_console_consumer(log: Log, group: str) -> None:
    await log.write(40)
    sink, story = Sink(), Story()
    async with at(log, group, story=story) as one, reading(one, sink, commits=True):
        await until(lambda: sink.total == 40)
        async with console_consumer(log, group) as lines:
            await until(lambda: len(one.assignment()) == PARTITIONS // 2)
            await log.write(400)
            await until(lambda: sink.total + len(lines) >= 440)
        await shared(one)
        await log.write(40)
        await until(lambda: sink.total + len(lines) >= 480)
    ours = [(place[1], offset) for place, offsets in sink.offsets.items() for offset in offsets]
    assert sorted(ours + lines) == [(number, offset) for number in range(PARTITIONS) for offset in range(120)]
    assert len(lines) == 200
    assert story.of("lost") == []


async def test_a_classic_group_is_taken_over_member_by_member(log: Log, group: str) -> None:
    await log.write(400)
    sink = Sink()
    classic: dict[str, Any] = {"group_protocol": "classic", "heartbeat_interval_ms": 100}
    async with contextlib.AsyncExitStack() as stack:
        async with at(log, group, "old", max_poll_records=10, **classic) as old, reading(old, sink):
            await until(lambda: sink.total >= 100)
            new = await stack.enter_async_context(at(log, group, "new", max_poll_records=10))
            await stack.enter_async_context(reading(new, sink))
            await shared(old, new)
            await until(lambda: sink.total >= 200)
        await shared(new)
        await until(lambda: sink.total >= 400)
    assert sink.values == log.written


async def test_a_group_that_is_no_consumers_group_is_refused(log: Log, group: str) -> None:
    async with member(log.bootstrap, group=group) as sharder:
        await sharder.wait_assigned(PATIENCE_S)
        async with at(log, group) as one:
            with pytest.raises(InconsistentGroupProtocolError, match='use group_protocol="classic"'):
                await one.wait_assigned(PATIENCE_S)
