"""Format ``ringleader-history``: what happened to groups, from a watcher's file or from exported files.

A plain batch read; no cluster is asked. ``insight.columns`` has the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ringleader.spark_bridge.errors import OptionsError, sentence_only

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from ringleader.insight.columns.model import Column
    from ringleader.spark_bridge.options.history import HistoryOptions

TASKS_MAX = 8
"""Tasks that share the groups of a history file."""
_BY_DAY = ("costs", "findings")
"""Their rows tell of a day: another beginning makes other rows."""


class HistoryDataSource(DataSource):
    """The tables of ``ringleader history --export``."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "ringleader-history"

    @sentence_only
    def schema(self) -> StructType:
        """The columns of the table, as in the exported files. Raises OptionsError, also for a path or a group
        that is not there."""
        from ringleader.insight.columns.model import TABLES

        options = self._options()
        _parts(options)
        return _structure(TABLES[options.table].columns)

    @sentence_only
    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        if schema.simpleString() != self.schema().simpleString():
            raise OptionsError(
                f"format ringleader-history takes no schema; its rows are {self.schema().simpleString()}."
            )
        options = self._options()
        return (PushingReader if options.push_filters else HistoryReader)(options)

    def _options(self) -> HistoryOptions:
        from ringleader.spark_bridge.options.history import history_options

        found = history_options(dict(self.options))
        if found.push_filters and not hasattr(DataSourceReader, "pushFilters"):
            raise OptionsError("The option 'pushFilters' needs PySpark 4.1 or newer.")
        return found


@dataclass(frozen=True)
class Part(InputPartition):
    """The share of one task: some groups of a history file, or one exported file."""

    path: str
    stored: bool
    """A history file."""
    groups: tuple[str, ...]
    cluster: bool
    """With what concerns the whole cluster."""


class HistoryReader(DataSourceReader):
    """Reads what the options say."""

    def __init__(self, options: HistoryOptions) -> None:
        self._options = options
        self._only: set[str] | None = None
        """Groups that the query's filters leave; None: all."""

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks; at least one, as Spark reads without one when it is given none."""
        found = _parts(self._options)
        if self._only is None:
            return found
        only = self._only
        return [
            replace(
                part,
                groups=tuple(one for one in part.groups if one in only),
                cluster=part.cluster and "" in only,
            )
            for part in found
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a task as Arrow batches."""
        from ringleader.insight.columns.arrow import batches
        from ringleader.insight.columns.files import read
        from ringleader.insight.columns.rows import Selection, rows
        from ringleader.insight.history import History

        assert isinstance(partition, Part)
        options = self._options
        selection = Selection(partition.groups, options.since, options.until)
        if not partition.stored:
            yield from read(Path(partition.path), options.table, selection)
            return
        with History.open(partition.path, read_only=True) as history, history.snapshot():
            found = rows(options.table, history, selection, cluster=partition.cluster)
            yield from batches(options.table, found)


class PushingReader(HistoryReader):
    """Takes the query's filters, too."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802
        """They narrow what is read; Spark applies all of them to the rows all the same."""
        from ringleader.insight.columns.model import TABLES

        table = TABLES[self._options.table]
        for one in filters:
            self._narrow(one, table.ends, table.begins)
        return filters

    def _narrow(self, one: Any, ends: str, begins: str) -> None:
        from pyspark.sql.datasource import (
            EqualTo,
            GreaterThan,
            GreaterThanOrEqual,
            In,
            LessThan,
            LessThanOrEqual,
        )

        column, value = getattr(one, "attribute", None), getattr(one, "value", None)
        if column == ("group",) and isinstance(one, EqualTo | In):
            wanted: set[Any] = {value} if isinstance(one, EqualTo) else set(one.value)
            self._only = wanted if self._only is None else self._only & wanted
        if not isinstance(value, datetime) or value.tzinfo is None or self._options.table in _BY_DAY:
            return
        at_ms = int(value.timestamp() * 1000)
        since, until = self._options.since, self._options.until
        if column == (ends,) and isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual):
            since = at_ms if since is None else max(since, at_ms)
        if column == (begins,) and isinstance(one, EqualTo | LessThan | LessThanOrEqual):
            # The value may lie within the millisecond.
            until = at_ms + 1 if until is None else min(until, at_ms + 1)
        self._options = self._options.model_copy(update={"since": since, "until": until})


def _parts(options: HistoryOptions) -> list[Part]:
    """Raises OptionsError for a path or a group that is not there."""
    try:
        from ringleader.insight.columns.files import FilesError, files_of, groups_of
        from ringleader.insight.columns.rows import groups_in
        from ringleader.insight.history import History, HistoryError
        from ringleader.insight.names import no_group
    except ModuleNotFoundError as error:
        raise OptionsError(
            f"format ringleader-history needs {error.name}: pip install 'ringleader[spark]' has it."
        ) from None

    path = Path(options.path)
    try:
        if not path.is_dir():
            with History.open(path, read_only=True) as history:
                known = groups_in(history)
                unknown = [one for one in options.groups if not history.knows(one)]
            if unknown:
                raise OptionsError(no_group(unknown[0], known))
            groups = options.groups or known
            shares = [groups[number::TASKS_MAX] for number in range(min(TASKS_MAX, max(len(groups), 1)))]
            return [Part(str(path), True, share, not number) for number, share in enumerate(shares)]
        files = {file: groups_of(file) for file in files_of(path, options.table)}
    except (HistoryError, FilesError) as error:
        raise OptionsError(f"{str(error).rstrip('.')}.") from None
    known = tuple(sorted({group for groups in files.values() for group in groups}))
    for group in options.groups:
        if group not in known:
            raise OptionsError(no_group(group, known))
    wanted = options.groups or known
    return [Part(str(file), False, wanted, True) for file in files]


# ---- types, by hand: parsing DDL needs a JVM, and planner workers have none ----


def _structure(columns: Sequence[Column]) -> StructType:
    from pyspark.sql import types as t

    return t.StructType([t.StructField(one.name, _type(one)) for one in columns])


def _type(column: Column) -> DataType:
    from pyspark.sql import types as t

    if column.many:
        return t.ArrayType(_type(column._replace(many=False)))
    if isinstance(column.type, tuple):
        return _structure(column.type)
    found: DataType = {
        "string": t.StringType,
        "int": t.IntegerType,
        "bigint": t.LongType,
        "timestamp": t.TimestampType,
        "date": t.DateType,
    }[column.type]()
    return found
