"""The options as Markdown, for ``docs/spark.md``: ``python -m ringleader.spark_bridge.options.document``."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.history import HistoryOptions
from ringleader.spark_bridge.options.sink import SinkOptions


def table(model: type[BaseModel]) -> str:
    """One row for each option: name, default, meaning. Required options come first."""
    rows = ["| Option | Default | Meaning |", "|---|---|---|"]
    fields = sorted(model.model_fields.values(), key=lambda field: not field.is_required())
    for field in fields:
        shown = ", ".join(f"`{part}`" for part in (field.alias or "").split(", "))
        rows.append(f"| {shown} | {default(field)} | {cell(field.description)} |")
    return "\n".join(rows)


def default(field: FieldInfo) -> str:
    """The default of an option, as a table shows it."""
    if isinstance(field.json_schema_extra, dict) and (shown := field.json_schema_extra.get("shown")):
        return str(shown)
    if field.is_required():
        return "required"
    found: Any = field.default
    if found in (None, (), PydanticUndefined):
        return "none"
    if isinstance(found, tuple):
        found = ",".join(found)
    return f"`{found if isinstance(found, str) else json.dumps(found)}`"


def cell(text: str | None) -> str:
    """A text as the cell of a table."""
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    kinds: dict[str, type[BaseModel]] = {
        "Streams": StreamOptions,
        "Batch reads": BatchOptions,
        "Sinks": SinkOptions,
        "Histories": HistoryOptions,
    }
    for title, model in kinds.items():
        print(f"{title}:\n\n{table(model)}\n")
