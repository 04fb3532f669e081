"""The options as Markdown, for ``docs/spark.md``: ``python -m ringleader.spark_bridge.options.document``."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.sink import SinkOptions

# What is the machine's, needs a unit, or is one of two.
_SHOWN_DEFAULTS = {
    "parallelism": "cores of the driver's machine",
    "maxTriggerDelay": "`15m`",
    "subscribe": "this or a pattern",
    "kafka.enable.idempotence": "`true` with acks=all",
}


def table(model: type[BaseModel]) -> str:
    """One row for each option: name, default, meaning. Required options come first."""
    rows = ["| Option | Default | Meaning |", "|---|---|---|"]
    fields = sorted(model.model_fields.values(), key=lambda field: not field.is_required())
    for field in fields:
        name = field.alias or ""
        if name in _SHOWN_DEFAULTS:
            default = _SHOWN_DEFAULTS[name]
        elif field.is_required():
            default = "required"
        elif field.default in (None, (), PydanticUndefined):
            default = "none"
        else:
            default = _text(field.default)
        shown = ", ".join(f"`{part}`" for part in name.split(", "))
        rows.append(f"| {shown} | {default} | {_cell(field.description)} |")
    return "\n".join(rows)


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def _text(default: Any) -> str:
    if isinstance(default, tuple):
        default = ",".join(default)
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


if __name__ == "__main__":
    kinds: dict[str, type[BaseModel]] = {
        "Streams": StreamOptions,
        "Batch reads": BatchOptions,
        "Sinks": SinkOptions,
    }
    for title, model in kinds.items():
        print(f"{title}:\n\n{table(model)}\n")
