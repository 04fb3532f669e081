"""Format `ringleader`, and a line in a file for each of Spark's calls: by whom, and what was durable."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from ringleader.clients.admin import Admin
from ringleader.spark_bridge.reader import RingleaderStreamReader
from ringleader.spark_bridge.source import RingleaderDataSource


@dataclass(frozen=True)
class Trace:
    """Where the lines go. Its three options are not for the source itself."""

    file: str
    checkpoint: str
    bootstrap: str
    group: str

    def line(self, call: str) -> None:
        """Which batches Spark's two logs hold now, and what the group has committed."""
        logs = {
            name: sorted(int(one.name) for one in Path(self.checkpoint, name).glob("[0-9]*"))
            for name in ("offsets", "commits")
        }
        module = getattr(sys.modules["__main__"].__spec__, "name", "").rpartition(".")[2]
        entry = {"call": call, "pid": os.getpid(), "module": module, **logs, "group": self._committed()}
        with open(self.file, "a") as out:
            out.write(json.dumps(entry) + "\n")

    def _committed(self) -> int | None:
        async def ask() -> int | None:
            async with Admin(self.bootstrap) as admin:
                found = [one.committed for one in await admin.lag(self.group)]
            return found[0] if found else None

        return asyncio.run(ask())


class TracedReader(RingleaderStreamReader):
    """Each line says what was durable when the call came; `latestOffset` has another for what it left."""

    def __init__(self, options: dict[str, str], trace: Trace) -> None:
        super().__init__(options)
        self._trace = trace

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._trace.line("prepareForTriggerAvailableNow")
        super().prepareForTriggerAvailableNow()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        self._trace.line("getDefaultReadLimit")
        return super().getDefaultReadLimit()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        self._trace.line("initialOffset")
        return super().initialOffset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._trace.line("latestOffset")
        end = super().latestOffset(start, limit)
        self._trace.line("latestOffset returns " + ("start" if end is start else "a new end"))
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        self._trace.line("reportLatestOffset")
        return super().reportLatestOffset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._trace.line("partitions")
        return super().partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        self._trace.line("commit")
        super().commit(end)

    def stop(self) -> None:
        self._trace.line("stop")
        super().stop()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        self._trace.line("read")
        return super().read(partition)


class TracedSource(RingleaderDataSource):
    """Format `traced`."""

    def __init__(self, options: Any) -> None:
        given = dict(options)
        self._trace = Trace(
            given.pop("trace"),
            given.pop("checkpoint"),
            given["kafka.bootstrap.servers"],
            given["kafka.group.id"],
        )
        super().__init__(given)
        self._trace.line("__init__")

    @classmethod
    def name(cls) -> str:
        return "traced"

    def schema(self) -> Any:
        self._trace.line("schema")
        return super().schema()

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        self._trace.line("streamReader")
        return TracedReader(self._given, self._trace)
