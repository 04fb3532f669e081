"""The options of a stream, without the model that checked them.

Spark pickles the source once its options have been checked. The query's own worker, a new process for
each query, need not load pydantic and build the models then, which would take it longer than joining.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions


_OWN = "ringleader.spark_bridge."
"""Modules whose properties belong to the options; those of pydantic do not."""


class StreamSettings:
    """The values of ``StreamOptions`` under the same names, with those that are worked out from others."""

    def __init__(self, options: StreamOptions) -> None:
        kinds = [kind for kind in type(options).__mro__ if kind.__module__.startswith(_OWN)]
        derived = [
            name for kind in kinds for name, found in vars(kind).items() if isinstance(found, property)
        ]
        names = (*type(options).model_fields, *derived)
        self.__dict__.update({name: getattr(options, name) for name in names})
        # Spark pickles it for every source of one DataFrame.
        self.load_id = secrets.token_hex(8)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
