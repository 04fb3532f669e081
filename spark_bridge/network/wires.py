"""Connections that outlive tasks: Spark uses a Python worker again, and so its connections."""

from __future__ import annotations

import os

from ringleader.spark_bridge.network.endpoint import Endpoint
from ringleader.spark_bridge.network.wire import Wire

MAX_CLUSTERS = 8
"""So many clusters keep their connections in a worker; the one unused for longest goes first."""


class Wires:
    """One ``Wire`` for each cluster. Spark runs one task at a time in a Python worker."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Endpoint], Wire] = {}

    def get(self, endpoint: Endpoint) -> Wire:
        """This process's connections to a cluster."""
        key = (os.getpid(), endpoint)
        found = self._found.pop(key, None)
        if found is None:
            # What another process opened before this one was forked is not ours to speak on.
            strange = [other for other in self._found if other[0] != key[0]]
            for other in strange or list(self._found)[: max(0, len(self._found) + 1 - MAX_CLUSTERS)]:
                self._found.pop(other).close()
            found = Wire(endpoint)
        self._found[key] = found
        return found

    def close(self) -> None:
        """Close this process's connections."""
        for wire in self._found.values():
            wire.close()
        self._found.clear()
