"""JSON of others: files that somebody may have changed, requests, answers."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes) -> Any:
    """As `json.loads`. Raises ValueError for JSON that is nested too deep, too."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deep") from None
