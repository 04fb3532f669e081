"""The options of ``spark.read.format("ringleader-history")``."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ringleader.clients.times import moment_ms
from ringleader.protocol import json_text
from ringleader.spark_bridge.options.build import build

_ELSEWHERE = {
    "paths": "one path is read at a time: union the frames of several, or put the exports into one directory."
}


def _path(value: Any) -> Any:
    scheme, colon, rest = str(value).partition(":")
    if colon and scheme == "file":
        return "/" + rest.lstrip("/")
    if colon and rest.startswith("//"):
        raise ValueError(
            "is no path of a file system: mount it, or read exported files with spark.read.parquet"
        )
    return value


def _groups(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        found = json_text.loads(value)
        if not all(isinstance(one, str) for one in found):
            raise ValueError("is no JSON array of names")
    else:
        found = [part.strip() for part in value.split(",")]
    if not all(found) or not found:
        raise ValueError("names no group")
    return tuple(dict.fromkeys(found))


def _moment(value: Any) -> Any:
    return moment_ms(value, time.time_ns() // 1_000_000) if isinstance(value, str) else value


Moment = Annotated[int | None, BeforeValidator(_moment)]


class HistoryOptions(BaseModel):
    """Options of ``spark.read.format("ringleader-history")``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Annotated[str, BeforeValidator(_path)] = Field(
        alias="path",
        min_length=1,
        description="The history file of `ringleader watch`; or a directory that `ringleader history "
        "--export parquet` has written, or that has such directories in it. `load(PATH)` says the same.",
    )
    table: Literal["rebalances", "moves", "members", "costs", "findings", "events"] = Field(
        "rebalances",
        alias="table",
        description="rebalances, moves, members, costs, findings or events.",
    )
    groups: Annotated[tuple[str, ...], BeforeValidator(_groups)] = Field(
        (),
        alias="groups",
        json_schema_extra={"shown": "all"},
        description="Groups, comma separated, or a JSON array of names.",
    )
    since: Moment = Field(
        None,
        alias="since",
        description="Start time: 2h, 7d, or a time such as 2026-01-31T12:00Z (UTC).",
    )
    until: Moment = Field(None, alias="until", description="End time, in the same format; not included.")
    push_filters: bool = Field(
        False,
        alias="pushFilters",
        description="Whether filters of the query on `group` and on the times narrow what is read, as "
        "`groups`, `since` and `until` do. Needs PySpark 4.1 or newer and "
        "`spark.sql.python.filterPushdown.enabled=true`.",
    )


def history_options(options: dict[str, str]) -> HistoryOptions:
    """Raises OptionsError with one sentence for each reason."""
    return build(HistoryOptions, options, _ELSEWHERE, form="ringleader-history")
