"""Connections that outlive tasks: Spark uses a Python worker again, and so its connections."""

from __future__ import annotations

import os

from ringleader.clients.blocking.cluster import BlockingCluster
from ringleader.clients.blocking.connection import BlockingConnection
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.errors import AuthenticationError
from ringleader.spark_bridge.errors import SourceError

MAX_CLUSTERS = 8
"""Clusters that keep their connections in a worker; the one unused for longest goes first."""


class SourceCluster(BlockingCluster):
    """One that does not let this client in is a SourceError, as all else that ends a query."""

    def open(self, host: str, port: int) -> BlockingConnection:
        """As ``BlockingCluster``; raises SourceError in place of AuthenticationError."""
        try:
            return super().open(host, port)
        except AuthenticationError as error:
            raise SourceError(str(error)) from None


class Clusters:
    """One ``BlockingCluster`` for each endpoint. Spark runs one task at a time in a Python worker."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Endpoint], BlockingCluster] = {}

    def get(self, endpoint: Endpoint) -> BlockingCluster:
        """This process's connections to a cluster."""
        key = (os.getpid(), endpoint)
        found = self._found.pop(key, None)
        if found is None:
            # Connections that another process opened before this one was forked are not ours to speak on.
            strange = [other for other in self._found if other[0] != key[0]]
            for other in strange or list(self._found)[: max(0, len(self._found) + 1 - MAX_CLUSTERS)]:
                self._found.pop(other).close()
            found = SourceCluster(endpoint)
        self._found[key] = found
        return found

    def close(self) -> None:
        """Close this process's connections."""
        for cluster in self._found.values():
            cluster.close()
        self._found.clear()
