"""Which partitions have a reader, and how long those were without one that should have had one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ringleader.insight.model import TopicPartition


class Readers:
    """Time goes on by `go_to`; while nothing runs at all, it does not count."""

    def __init__(self) -> None:
        self.unowned_ms = 0
        """Summed over partitions."""
        self.counting = False
        self._partitions: set[TopicPartition] = set()
        self._readers: Counter[TopicPartition] = Counter()
        self._without = 0
        self._now_ms = 0

    def go_to(self, now_ms: int) -> None:
        """Until now all stayed as it is."""
        if self.counting:
            self.unowned_ms += self._without * (now_ms - self._now_ms)
        self._now_ms = now_ms

    def there_are(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions should be read."""
        self._partitions = set(partitions)
        self._without = sum(1 for one in self._partitions if not self._readers[one])

    def begins(self, partitions: Iterable[TopicPartition]) -> None:
        """Somebody reads these from now on."""
        for one in partitions:
            if not self._readers[one] and one in self._partitions:
                self._without -= 1
            self._readers[one] += 1

    def ends(self, partitions: Iterable[TopicPartition]) -> None:
        """Somebody no longer reads these."""
        for one in partitions:
            self._readers[one] -= 1
            if not self._readers[one] and one in self._partitions:
                self._without += 1
