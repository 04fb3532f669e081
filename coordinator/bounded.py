"""A cache that is bounded in bytes, not in entries: what is remembered may be as long as a peer likes."""

from __future__ import annotations

from collections.abc import Hashable
from sys import getsizeof
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")

ENTRY_BYTES = 128
"""The memory of an entry in the dictionary itself, when that has just grown."""

LARGEST_SHARE = 1_024
"""An entry larger than the bound divided by this is not remembered: a few entries cannot empty the cache."""


class BoundedCache(dict[_Key, _Value]):
    """Look up as in any dictionary; write with `remember` only. When it is full, everything is forgotten and
    learnt again: what is in use comes back at once, and a hit costs nothing for the bookkeeping."""

    __slots__ = ("_bytes", "_max_bytes")

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._bytes = 0

    def forget(self) -> None:
        """Everything."""
        self.clear()
        self._bytes = 0

    def remember(self, key: _Key, value: _Value, *parts: object) -> None:
        """`parts`: objects that the entry keeps alive, besides key and value; each is counted once, by
        itself."""
        taken = ENTRY_BYTES + getsizeof(key) + getsizeof(value) + sum(map(getsizeof, parts))
        if taken > self._max_bytes // LARGEST_SHARE:
            return
        if self._bytes + taken > self._max_bytes:
            self.forget()
        if key not in self:
            self._bytes += taken
        self[key] = value
