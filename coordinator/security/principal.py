"""Principals."""

from __future__ import annotations

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """A caller in Kafka's form: a type, which is User as yet, and a name. Its text is `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""The principal of clients of a listener without authentication."""
