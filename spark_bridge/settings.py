"""What a stream's options say, without the model that checked them.

Spark pickles the source once its options have been checked. The query's own worker, a new process for
each query, need not load pydantic and build the models then, which would take it longer than joining.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

_DERIVED = ("bootstrap", "endpoint", "member_count", "security", "strategy", "subscription")


class StreamSettings:
    """The values of ``StreamOptions`` under the same names, with those that are worked out from others."""

    def __init__(self, options: StreamOptions) -> None:
        names = (*type(options).model_fields, *_DERIVED)
        self.__dict__.update({name: getattr(options, name) for name in names})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
