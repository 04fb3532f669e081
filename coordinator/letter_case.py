"""Settings whose words Kafka accepts in any letter case."""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


ANY_CASE = BeforeValidator(_lower)
"""Of a word that is kept in lower case."""
