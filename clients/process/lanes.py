"""Which record may be begun next: those of one lane one after the other, lanes side by side. No I/O here."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.fetch.model import Record
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.progress import Progress
from ringleader.clients.model import TopicPartition


@dataclass(eq=False, slots=True)
class Work:
    """One record that is to be processed."""

    record: Record
    state: PartitionState
    progress: Progress
    """That of its partition's position when it was handed out."""
    lane: Hashable
    """Records of the same one are processed in their order; None: whenever it may be."""
    size_bytes: int
    raw: tuple[bytes | None, bytes | None] = None, None
    """Key and value as they came."""
    tries: int = 0
    pauses: Backoff | None = None
    """Of a record that is tried again."""
    began: bool = False
    """A handler has it; not before it is begun, and not while it waits to be tried again."""


class Lanes:
    """Records in the order in which they were added, each in the lane that it names."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[TopicPartition, Hashable], deque[Work]] = {}
        self._ready: deque[Work] = deque()

    def add(self, work: Work) -> None:
        """It waits for its turn."""
        if work.lane is None:
            self._ready.append(work)
            return
        lane = self._lanes.setdefault((work.state.topic_partition, work.lane), deque())
        lane.append(work)
        if len(lane) == 1:
            self._ready.append(work)

    def next(self) -> Work | None:
        """The next one to begin."""
        if not self._ready:
            return None
        work = self._ready.popleft()
        work.began = True
        return work

    def rest(self, work: Work) -> None:
        """It will be tried again; its lane waits for it."""
        work.began = False

    def again(self, work: Work) -> None:
        """It has waited."""
        self._ready.appendleft(work)

    def end(self, work: Work) -> None:
        """It is over, and the next of its lane may begin."""
        name = work.state.topic_partition, work.lane
        lane = self._lanes.get(name)
        if work.lane is None or lane is None or lane[0] is not work:
            return
        lane.popleft()
        if lane:
            self._ready.append(lane[0])
        else:
            del self._lanes[name]

    def drop(self, partitions: set[TopicPartition]) -> set[Work]:
        """Nothing of these is begun any more; what no handler has."""
        dropped = {work for work in self._ready if work.state.topic_partition in partitions}
        self._ready = deque(work for work in self._ready if work not in dropped)
        for name, lane in list(self._lanes.items()):
            if name[0] in partitions:
                dropped |= {work for work in lane if not work.began}
                if lane[0].began:
                    self._lanes[name] = deque([lane[0]])
                else:
                    del self._lanes[name]
        return dropped
