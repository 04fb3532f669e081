"""The offsets that the application has stored as processed and that are not committed yet, for
auto-commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ringleader.clients.errors import CommitFailedError
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition

Stored = dict[TopicPartition, int | OffsetAndMetadata]


class StoredOffsets:
    """Stored offsets belong to the assignment under which they were stored, and go with it. From any thread.

    `holds(generation)`: whether all of that generation's assignment is still held.
    """

    def __init__(self, group_id: str, holds: Callable[[int], bool]) -> None:
        self._group_id = group_id
        self._holds = holds
        self._lock = threading.Lock()
        self._stored: Stored = {}
        self._generation: int | None = None

    def assigned(self, generation: int) -> None:
        """There is an assignment of that generation; of a cooperative member perhaps the same as before."""
        with self._lock:
            self._generation = generation

    def forget(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """Drop the stored offsets of these partitions (None: of the whole assignment), which this member
        no longer holds. Returns the number of offsets dropped."""
        with self._lock:
            before = len(self._stored)
            if partitions is None:
                self._generation = None
                self._stored.clear()
            else:
                for partition in partitions:
                    self._stored.pop(partition, None)
            return before - len(self._stored)

    def store(self, offsets: Offsets, generation: int | None) -> None:
        """These are processed. Raises CommitFailedError if the assignment of that generation (None: any) is
        not held any more."""
        with self._lock:
            group = f"group {self._group_id!r}"
            if self._generation is None:
                raise CommitFailedError(f"{group}: this member holds no assignment: nothing is stored")
            if generation not in (None, self._generation) and not self._holds(generation):
                raise CommitFailedError(
                    f"{group}: generation {generation} is over, this is generation {self._generation}"
                )
            self._stored.update(offsets)

    def replaced(self, offsets: Offsets) -> None:
        """A commit that was asked for now says something newer about these partitions."""
        if self._stored:
            self.forget(offsets)

    def uncommitted(self) -> Stored:
        """The offsets to commit."""
        with self._lock:
            return dict(self._stored)

    def committed(self, offsets: Stored) -> None:
        """These are; what was stored after them stays."""
        with self._lock:
            for partition, value in offsets.items():
                if self._stored.get(partition) is value or self._stored.get(partition) == value:
                    self._stored.pop(partition, None)
