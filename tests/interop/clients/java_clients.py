"""Java consumers and producers under the control of a test: the program in ``java/``, one JVM for many.

A `JavaMember` is a member of a group as those of ``tests.support.members`` are, and stands on the same stage.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.interop.clients.watch import Event, WatchBoard
from tests.interop.kafka import command
from tests.interop.maven import cache, kept, run_maven
from tests.support.tied import tied

PROJECT = Path(__file__).with_name("java")
MAIN_CLASS = "ringleader.interop.Clients"
COMPILE = "compiler:compile"
ANSWER_S = 60.0
END_S = 30.0

QUICK = {"heartbeat.interval.ms": "100", "session.timeout.ms": "60000", "fetch.max.wait.ms": "100"}
"""A member hears of a rebalance at its next heartbeat, and of new records soon."""

Sink = Callable[[dict[str, Any]], None]


class JavaError(Exception):
    """A Java client answered a command with an exception."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{error}: {message}")
        self.error = error
        """Simple name of the exception's class."""


def classes() -> Path:
    """The compiled program, built by Maven when its sources changed. Raises `InteropError`."""
    sources = sorted(path for path in PROJECT.rglob("*") if path.suffix in {".xml", ".java"})
    content = hashlib.sha256()
    for path in sources:
        content.update(path.name.encode() + b"\0" + path.read_bytes())

    def build(fresh: Path) -> None:
        run_maven(PROJECT / "pom.xml", COMPILE, f"-Dbuild.to={fresh}")

    return kept(cache() / f"clients-{content.hexdigest()[:16]}", build) / "classes"


class LineClients:
    """A process with clients, each line of its input a command in JSON. `with ...(log) as clients:`; they all
    vanish at its end, nobody leaves."""

    def __init__(self, log_path: Path) -> None:
        self.log_path = log_path
        self.answer_s = ANSWER_S
        self._numbers = itertools.count(1)
        self._answers: dict[int, Future[Any]] = {}
        self._sinks: dict[str, Sink] = {}
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def command(self) -> list[str]:
        """The command that is run."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process. Raises `InteropError`."""
        command = self.command()
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )
        tied(self._process)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue  # a library's word on its logging
            event = json.loads(line)
            if "id" in event:
                self._answer(self._answers.pop(event["id"]), event)
            elif (sink := self._sinks.get(event["name"])) is not None:
                sink(event)
        closed = {
            "event": "failed",
            "error": "gone",
            "message": f"the process has ended; its log is {self.log_path}",
        }
        for answer in self._answers.values():
            self._answer(answer, closed)

    @staticmethod
    def _answer(answer: Future[Any], event: dict[str, Any]) -> None:
        if not answer.set_running_or_notify_cancel():
            return  # nobody waits for it any more: the next ones still come
        if event["event"] == "done":
            answer.set_result(event["result"])
        else:
            answer.set_exception(JavaError(event["error"], event["message"]))

    def name(self, wish: str, sink: Sink) -> str:
        """A name that no client of this process has had; what happens to it goes to `sink`, on a thread."""
        name = f"{wish}/{next(self._numbers)}"
        self._sinks[name] = sink
        return name

    def forget(self, name: str) -> None:
        """That client has ended: nobody wants to know of it any more."""
        self._sinks.pop(name, None)

    async def call(self, op: str, name: str, **arguments: Any) -> Any:
        """Send a command and wait for its result. Raises `JavaError`."""
        assert self._process is not None
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer = self._answers[number] = Future()
        command = {"op": op, "id": number, "name": name, **arguments}
        self._process.stdin.write(json.dumps(command) + "\n")
        async with asyncio.timeout(self.answer_s):
            return await asyncio.wrap_future(answer)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(END_S)
        assert self._reader is not None
        self._reader.join(END_S)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


class JavaClients(LineClients):
    """A JVM with clients."""

    def command(self) -> list[str]:
        """The program in ``java/``. Raises `InteropError`."""
        return command(MAIN_CLASS, classes=str(classes()))


class JavaMember:
    """A Java consumer in its group. `config`: Kafka's own names, over `QUICK`.

    An exception that poll() throws breaks the test, except the one whose class name is `ends_with`.
    """

    def __init__(
        self,
        board: WatchBoard,
        java_clients: JavaClients,
        bootstrap: str,
        group: str,
        topic: str,
        name: str,
        config: dict[str, str] | None = None,
        *,
        commit_on_revoke: bool = False,
        ends_with: str = "",
    ) -> None:
        self.name = name
        self._topic = topic
        self._board = board
        self._java = java_clients
        self._client = java_clients.name(name, self._happens)
        self._ends_with = ends_with
        self._ended = False
        self._opening = {
            "config": {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                **QUICK,
                **(config or {}),
            },
            "topics": [topic],
            "commitOnRevoke": commit_on_revoke,
        }

    @property
    def client(self) -> str:
        """Its name in the JVM."""
        return self._client

    async def join(self) -> None:
        """Start; the assignment shows on the board."""
        await self._java.call("consumer", self._client, **self._opening)

    async def call(self, op: str, **arguments: Any) -> Any:
        """A command of ``ConsumerClient.java``. Raises `JavaError`."""
        return await self._java.call(op, self._client, **arguments)

    async def commit(self, offsets: dict[int, int] | None = None) -> None:
        """Commit these, or all positions. Raises `JavaError`."""
        if offsets is None:
            await self.call("commit")
        else:
            await self.call("commit", offsets=[[self._topic, *one] for one in offsets.items()])

    async def committed(self, partitions: Sequence[int]) -> list[int | None]:
        """Committed offsets."""
        found: list[int | None] = await self.call(
            "committed", partitions=[[self._topic, partition] for partition in partitions]
        )
        return found

    async def leave(self, how: str = "DEFAULT") -> None:
        """Close it: DEFAULT (a static member stays in the group), LEAVE_GROUP or REMAIN_IN_GROUP."""
        if self._ended:
            return
        self._ended = True
        await self.call("close", how=how)
        self._java.forget(self._client)
        self._board.owns(self.name, None)

    def _happens(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "records":
            self._board.receives(self.name, [(one[1], one[2]) for one in event["records"]])
            self._board.reads(self.name, [one[3] for one in event["records"]])
            return
        happened = Event(self.name, kind)
        if kind in ("assigned", "revoked", "lost"):
            owned = tuple(partition for _, partition in event["owned"])
            happened = Event(
                self.name,
                kind,
                partitions=tuple(partition for _, partition in event["partitions"]),
                generation=event["generation"],
                member_id=event["member"],
            )
            self._board.owns(self.name, owned)
        elif "error" in event:
            happened = Event(self.name, kind, error=event["error"])
        self._board.happens(happened)
        if kind == "failed":
            self._ended = True
            if event["error"] != self._ends_with:
                self._board.fails(JavaError(event["error"], event["message"]))


class JavaProducer:
    """A Java producer; `config` in Kafka's own names."""

    def __init__(
        self, java_clients: JavaClients, bootstrap: str, config: dict[str, str] | None = None
    ) -> None:
        self._java = java_clients
        self._client = java_clients.name("producer", lambda event: None)
        self._config = {"bootstrap.servers": bootstrap, "linger.ms": "0", **(config or {})}

    async def call(self, op: str, **arguments: Any) -> Any:
        """A command of ``ProducerClient.java``. Raises `JavaError`."""
        return await self._java.call(op, self._client, **arguments)

    async def __aenter__(self) -> JavaProducer:
        await self.call("producer", config=self._config)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.call("close")

    async def send(self, topic: str, records: list[tuple[int, str]]) -> list[tuple[int, int]]:
        """Records as (partition, value); returns (partition, offset) of each once all are acknowledged."""
        sent = await self.call("send", records=[[topic, partition, value] for partition, value in records])
        return [(partition, offset) for _, partition, offset in sent]


class JavaAdmin:
    """Java's admin client."""

    def __init__(self, java_clients: JavaClients, bootstrap: str) -> None:
        self._java = java_clients
        self._client = java_clients.name("admin", lambda event: None)
        self._config = {"bootstrap.servers": bootstrap}

    async def __aenter__(self) -> JavaAdmin:
        await self._java.call("admin", self._client, config=self._config)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._java.call("close", self._client)

    async def remove(self, group: str, instance: str, reason: str) -> None:
        """Remove a static member from its group. Raises `JavaError`."""
        await self._java.call("remove", self._client, group=group, instance=instance, reason=reason)
