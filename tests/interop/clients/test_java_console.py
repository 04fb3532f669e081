"""Kafka's own console tools, as they are, against Ringleader."""

from __future__ import annotations

import asyncio
import re

import pytest

from ringleader.clients.admin import Admin
from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.team import ALL, GROUP, PARTITIONS, TOPIC, MakeMember, balanced, produce
from tests.interop.clients.watch import WatchBoard, described
from tests.interop.kafka import tool
from tests.support.daemon import Daemon
from tests.support.members import Stage

TOOLS = "org.apache.kafka.tools."
MAIN_CLASSES = {
    "kafka-topics": f"{TOOLS}TopicCommand",
    "kafka-consumer-groups": f"{TOOLS}consumer.group.ConsumerGroupCommand",
    "kafka-groups": f"{TOOLS}GroupsCommand",
    "kafka-console-producer": f"{TOOLS}ConsoleProducer",
    "kafka-console-consumer": f"{TOOLS}consumer.ConsoleConsumer",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": f"{TOOLS}GetOffsetShell",
    "kafka-delete-records": f"{TOOLS}DeleteRecordsCommand",
    "kafka-acls": f"{TOOLS}AclCommand",
}
OWN = ["__consumer_offsets", "__ringleader_journal"]
EMPTY = "Consumer group '{}' has no active members."


class Console:
    """A shell with the tools on its path."""

    def __init__(self, bootstrap: str, java_clients: JavaClients) -> None:
        self._bootstrap = bootstrap
        self._java = java_clients
        self._name = java_clients.name("tools", lambda event: None)

    async def open(self) -> None:
        """Before the first command."""
        await self._java.call("tools", self._name)

    async def run(self, command: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        name, *arguments = command.split()
        arguments = ["--bootstrap-server", self._bootstrap, *arguments]
        done = await self._java.call("tool", self._name, main=MAIN_CLASSES[name], arguments=arguments)
        return done["code"], done["out"], done["err"]

    async def lines(self, command: str) -> list[str]:
        """The lines that are not empty of one that succeeds."""
        code, out, err = await self.run(command)
        assert code == 0, f"{command}:\n{out}{err}"
        return [line for line in out.splitlines() if line.strip()]

    async def table(self, command: str) -> list[dict[str, str]]:
        """The rows of the table that it writes, by the column heads."""
        head, *rows = await self.lines(command)
        columns = [(one.group(), one.start()) for one in re.finditer(r"\S+(?: \(ID\))?", head)]
        ends = [start for _, start in columns[1:]] + [None]
        return [
            {name: row[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
            for row in rows
        ]

    async def alone(self, command: str, stdin: str | None = None) -> tuple[str, str]:
        """Output and standard error of one that needs a JVM of its own."""
        name, *arguments = command.split()
        done = await asyncio.to_thread(
            tool, MAIN_CLASSES[name], "--bootstrap-server", self._bootstrap, *arguments, stdin=stdin
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr


@pytest.fixture
async def console(daemon: Daemon, java_clients: JavaClients) -> Console:
    """The tools."""
    found = Console(daemon.bootstrap, java_clients)
    await found.open()
    return found


async def test_topics(daemon: Daemon, console: Console) -> None:
    made = await console.lines(
        "kafka-topics --create --topic made --partitions 2 --config retention.ms=70000"
    )
    assert made == ["Created topic made."]
    assert await console.lines("kafka-topics --list") == [*OWN, "made", TOPIC]
    assert await console.lines("kafka-topics --list --exclude-internal") == ["made", TOPIC]
    await console.lines("kafka-topics --alter --topic made --partitions 4")
    head, *partitions = await console.lines("kafka-topics --describe --topic made")
    assert "PartitionCount: 4\tReplicationFactor: 1\tConfigs: retention.ms=70000" in head
    assert [line.strip().split("\t")[1:5] for line in partitions] == [
        [f"Partition: {number}", "Leader: 1", "Replicas: 1", "Isr: 1"] for number in range(4)
    ]
    await console.lines("kafka-topics --delete --topic made")
    async with Admin(daemon.bootstrap) as admin:
        assert [one.name for one in await admin.list_topics()] == [TOPIC]


async def test_configs_of_a_topic(console: Console) -> None:
    described_as = f"kafka-configs --describe --topic {TOPIC}"
    changed = await console.lines(f"kafka-configs --alter --topic {TOPIC} --add-config retention.ms=5000")
    assert changed == [f"Completed updating config for topic {TOPIC}."]
    head, config = await console.lines(described_as)
    assert head == f"Dynamic configs for topic {TOPIC} are:"
    assert config.split()[:2] == ["retention.ms=5000", "sensitive=false"]
    assert len(await console.lines(f"{described_as} --all")) > 10
    await console.lines(f"kafka-configs --alter --topic {TOPIC} --delete-config retention.ms")
    assert await console.lines(described_as) == [head]


async def test_what_one_console_writes_the_other_reads_in_its_group(console: Console) -> None:
    words = [f"word {number}" for number in range(20)]
    await console.alone(f"kafka-console-producer --topic {TOPIC}", stdin="\n".join(words[:15]) + "\n")
    reading = f"kafka-console-consumer --topic {TOPIC} --group console --from-beginning --max-messages"
    out, err = await console.alone(f"{reading} 15")
    assert sorted(out.splitlines()) == sorted(words[:15])
    assert "Processed a total of 15 messages" in err
    # It has committed when it ended: the next one goes on from there.
    await console.alone(f"kafka-console-producer --topic {TOPIC}", stdin="\n".join(words[15:]) + "\n")
    out, _ = await console.alone(f"{reading} 5")
    assert sorted(out.splitlines()) == sorted(words[15:])


async def test_records_are_deleted_and_the_offsets_say_so(
    daemon: Daemon, java_clients: JavaClients, console: Console
) -> None:
    await produce(java_clients, daemon, 3)
    plan = daemon.directory / "plan.json"
    plan.write_text(f'{{"version": 1, "partitions": [{{"topic": "{TOPIC}", "partition": 1, "offset": 2}}]}}')
    await console.lines(f"kafka-delete-records --offset-json-file {plan}")
    ends = await console.lines(f"kafka-get-offsets --topic {TOPIC}")
    starts = await console.lines(f"kafka-get-offsets --topic {TOPIC} --time earliest")
    assert ends == [f"{TOPIC}:{partition}:3" for partition in ALL]
    assert starts == [f"{TOPIC}:{partition}:{2 if partition == 1 else 0}" for partition in ALL]


async def test_a_group_at_work_is_listed_described_and_protected(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember, console: Console
) -> None:
    board = WatchBoard()
    produced = await produce(java_clients, daemon, 3)
    groups = "kafka-consumer-groups"
    async with Stage() as stage:
        first = member(board, "a")
        await stage.enter(first)
        await stage.enter(member(board, "b", group_instance_id="fixed"))
        await board.until(lambda now: balanced(now, 2))
        await board.until_read(len(produced))
        mine = board.owned["a"]
        assert mine is not None
        await first.commit(dict.fromkeys(mine, 2))
        group = await described(daemon.bootstrap, GROUP)
        owners = {one.client_id: one for one in group.members}

        assert await console.lines(f"{groups} --list") == [GROUP]
        assert await console.table(f"{groups} --list --state") == [{"GROUP": GROUP, "STATE": "Stable"}]
        kinds = await console.table("kafka-groups --list")
        assert kinds == [{"GROUP": GROUP, "TYPE": "Classic", "PROTOCOL": "consumer"}]
        offsets = await console.table(f"{groups} --describe --group {GROUP}")
        assert len(offsets) == PARTITIONS
        for row in offsets:
            ours = int(row["PARTITION"]) in mine
            owner = owners["a" if ours else "b"]
            figures = (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"])
            assert figures == (("2", "3", "1") if ours else ("-", "3", "-"))
            assert (row["CONSUMER-ID"], row["CLIENT-ID"]) == (owner.member_id, owner.client_id)
            assert row["HOST"] == "/127.0.0.1"
        members = await console.table(f"{groups} --describe --group {GROUP} --members --verbose")
        assert {row["CLIENT-ID"]: row["#PARTITIONS"] for row in members} == {"a": "3", "b": "3"}
        for row in members:
            assert row["GROUP-INSTANCE-ID"] == ("fixed" if row["CLIENT-ID"] == "b" else "")
            owned = ",".join(map(str, board.owned[row["CLIENT-ID"]] or ()))
            assert row["CURRENT-ASSIGNMENT"] == f"{TOPIC}:{owned}"
        (line,) = await console.table(f"{groups} --describe --group {GROUP} --state")
        assert (line["STATE"], line["#MEMBERS"], line["ASSIGNMENT-STRATEGY"]) == ("Stable", "2", "range")
        assert line["COORDINATOR (ID)"].split() == [daemon.bootstrap, "(1)"]

        # Nothing of a group that works is taken from it.
        reset, deleted, forgotten = [
            "".join(map(str, await console.run(f"{groups} --group {GROUP} {what}")))
            for what in (
                f"--reset-offsets --topic {TOPIC} --to-earliest --execute",
                "--delete",
                f"--delete-offsets --topic {TOPIC}",
            )
        ]
        assert "Assignments can only be reset if the group" in reset
        assert "GroupNotEmptyException" in deleted
        assert "GroupSubscribedToTopicException" in forgotten
        assert await first.committed(mine[:1]) == [2]
        assert not [event for event in board.events if event.kind == "lost"]


async def test_offsets_of_an_empty_group_are_reset_and_deleted_and_the_group_too(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember, console: Console
) -> None:
    board = WatchBoard()
    produced = await produce(java_clients, daemon, 3)
    reader = member(board, "a")
    await reader.join()
    await board.until_read(len(produced))
    await reader.commit()
    await reader.leave()
    group = f"kafka-consumer-groups --group {GROUP}"

    async def committed() -> dict[int, tuple[str, str, str]]:
        code, out, err = await console.run(f"{group} --describe")
        assert code == 0
        assert EMPTY.format(GROUP) in err
        rows = [line.split() for line in out.splitlines() if line.startswith(GROUP)]
        return {int(row[2]): (row[3], row[4], row[5]) for row in rows}

    assert await committed() == dict.fromkeys(ALL, ("3", "3", "0"))
    planned = await console.table(f"{group} --reset-offsets --topic {TOPIC}:0,1 --to-earliest --dry-run")
    assert {(row["PARTITION"], row["NEW-OFFSET"]) for row in planned} == {("0", "0"), ("1", "0")}
    assert await committed() == dict.fromkeys(ALL, ("3", "3", "0"))
    await console.lines(f"{group} --reset-offsets --topic {TOPIC} --to-earliest --execute")
    await console.lines(f"{group} --reset-offsets --topic {TOPIC}:0 --shift-by 2 --execute")
    assert await committed() == {**dict.fromkeys(ALL, ("0", "3", "3")), 0: ("2", "3", "1")}
    # A consumer of that group begins where the tool said.
    again = member(board, "again")
    await again.join()
    due = [place for place in produced if place[0] != 0 or place[1] >= 2]
    await board.until(lambda now: len(now.got.get("again", ())) >= len(due))
    assert sorted(board.got["again"]) == sorted(due)
    await again.leave()

    rows = await console.lines(f"{group} --delete-offsets --topic {TOPIC}:0")
    assert rows[-1].split() == [TOPIC, "0", "Successful"]
    assert sorted(await committed()) == [partition for partition in ALL if partition != 0]
    await console.lines(f"{group} --delete")
    assert await console.lines("kafka-consumer-groups --list") == []
    (line,) = await console.lines(f"{group} --describe")
    assert line.endswith(f"GroupIdNotFoundException: Group {GROUP} not found.")
