"""Settings that are lists of words: separated by commas, as a file, the environment and a flag have them."""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator


def parse_words(value: Any) -> Any:
    """A comma separated text, or a sequence of these."""
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return parts
    return tuple(word.strip() for part in parts for word in str(part).split(",") if word.strip())


Words = BeforeValidator(parse_words)
