"""What the source asks of the topics, as a protocol: the tests have logs of their own."""

from __future__ import annotations

from typing import Protocol

from ringleader.spark_bridge.sharing.starting import Lookup


class Log(Lookup, Protocol):
    """Partitions that do not exist are left out of answers."""

    def close(self) -> None:
        """Close connections."""
