"""Consumers of one Python library on a line, in the words of the Java program (``Clients.java``):
``python -m tests.incidents.member LIBRARY``. It ends, and closes nobody properly, when its input ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import sys
import threading
from typing import Any

from tests.incidents.libraries import LIBRARIES, Library

Command = dict[str, Any]
_out = threading.Lock()


def emit(**event: Any) -> None:
    """One line for who gave the commands."""
    with _out:
        print(json.dumps(event), flush=True)


class Client:
    """A consumer on a thread and an event loop of its own: one that is busy holds up nobody else."""

    def __init__(self, library: type[Library], opening: Command) -> None:
        self._name = opening["name"]
        self._library = library
        self._opening = opening
        self._open = True
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        threading.Thread(target=lambda: asyncio.run(self._live()), name=self._name, daemon=True).start()

    async def _live(self) -> None:
        await self._answer(self._opening)
        while self._open:
            try:
                command = self.commands.get_nowait()
            except queue.Empty:
                try:
                    await self._consumer.poll()
                except Exception as error:
                    # Exceptions that an application sees. It would end here; so does this client.
                    with contextlib.suppress(Exception):
                        await self._consumer.close()
                    emit(event="failed", name=self._name, error=type(error).__name__, message=str(error))
                    return
                continue
            await self._answer(command)

    async def _answer(self, command: Command) -> None:
        try:
            await self._carry_out(command)
        except Exception as error:
            emit(
                event="error",
                name=self._name,
                id=command["id"],
                error=type(error).__name__,
                message=str(error),
            )
        else:
            emit(event="done", name=self._name, id=command["id"], result=None)

    async def _carry_out(self, command: Command) -> None:
        match command["op"]:
            case "consumer":
                self._consumer = self._library(command["config"])
                await self._consumer.open(command["topics"])
            case "subscribe":
                await self._consumer.subscribe(command["topics"])
            case "busy":
                await asyncio.sleep(command["seconds"])
            case "close":
                self._open = False
                await self._consumer.close()
            case other:
                raise ValueError(f"no such command: {other}")


def main() -> None:
    """Carry out commands until there are no more."""
    library = LIBRARIES[sys.argv[1]]
    clients: dict[str, Client] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if command["op"] == "consumer":
            clients[command["name"]] = Client(library, command)
        else:
            clients[command["name"]].commands.put(command)
    os._exit(0)


if __name__ == "__main__":
    main()
