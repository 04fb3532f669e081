"""The options as Markdown, for ``docs/spark.md``: ``python -m ringleader.spark_bridge.options_doc``."""

from __future__ import annotations

import json

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ringleader.spark_bridge.options import BatchOptions, StreamOptions

# The default is the machine's.
_SHOWN_DEFAULTS = {"parallelism": "cores of the driver's machine"}


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
        elif field.default is None or field.default is PydanticUndefined:
            default = "none"
        else:
            default = f"`{json.dumps(field.default)}`".replace('"', "")
        rows.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(f"Streams:\n\n{table(StreamOptions)}\n\nBatch reads:\n\n{table(BatchOptions)}")
