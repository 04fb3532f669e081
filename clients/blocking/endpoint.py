"""How to reach a cluster: plain values, which pickle small and import fast.

Spark unpickles them in several kinds of process, and most of those never speak to a broker.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """How to reach a cluster. ``servers`` are (host, port) pairs to ask first.

    ``security`` holds Kafka's security properties, secrets among them; () for plain connections.
    """

    servers: tuple[tuple[str, int], ...]
    client_id: str = "ringleader"
    request_timeout_ms: int = 30_000
    security: tuple[tuple[str, str], ...] = field(default=(), repr=False)
