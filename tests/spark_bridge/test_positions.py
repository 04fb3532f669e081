"""Where a partition goes on, whatever happened while it was with others: drawn histories of one query."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch import topics
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.values import CommitToken, OffsetRange
from tests.spark_bridge.fakes import World

T, U = ("t", 0), ("u", 0)
"""The partition whose history is drawn, and one that the query always has."""
HISTORIES, STEPS = 40, 25


class History:
    """A query from its beginning. `at`: the first row of T that no batch has and that is to be read next."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn
        starting = drawn.choice(("earliest", "latest"))
        self._world = World(
            drawn.randrange(9), subscribe="t,u", startingOffsets=starting, failOnDataLoss="false"
        )
        self._world.log.end[U] = 0
        self.at = 0 if starting == "earliest" else self._world.log.end[T]
        self._kept: list[tuple[int, tuple[int, CommitToken | None]]] = []
        """Commits of T, each with its metadata, as a backup of the group has them."""
        self._is_restored = False
        self._gain()
        self._idle()

    def step(self) -> None:
        """Something happens."""
        self._drawn.choice((self._batch, self._idle, self._away, self._lost_commit, self._restart))()

    # -- what Spark does

    def _trigger(self) -> dict[TopicPartition, OffsetRange]:
        """One call of Spark's: the ranges of the batch, if there is one."""
        before = self._world.start
        self._world.start = self._world.driver.latest(before, None)
        if self._world.start is before:
            return {}
        return dict(OffsetDocument.from_json(self._world.start, "g").ranges)

    def _produce(self, tp: TopicPartition, rows: int) -> None:
        self._world.log.end[tp] += rows

    def _planned(self) -> None:
        """A batch of T, which starts where it is to."""
        self._produce(T, self._drawn.randrange(1, 9))
        self._produce(U, self._drawn.randrange(3))
        end = self._world.log.end[T]
        assert self._trigger()[T] == (self.at, end)
        self.at, self._is_restored = end, False

    def _batch(self) -> None:
        self._planned()
        self._idle()
        assert self._world.offsets[T] == self.at
        self._kept.append((self.at, self._world.tokens[T]))

    def _idle(self) -> None:
        for _ in range(self._drawn.randrange(1, 4)):
            assert T not in self._trigger() or self.at < self._world.log.end[T]
        self.at = self._world.log.end[T]

    def _restart(self) -> None:
        if self._is_restored:
            return  # from outside that is no other than a commit that was lost
        if self._drawn.randrange(2):
            self._planned()
        self._world.restart()
        self._gain()
        self._idle()

    # -- what the group does

    def _gain(self) -> None:
        self._world.group.give([T, U])

    def _lost_commit(self) -> None:
        """A finished batch whose commit the group did not take."""
        self._planned()
        self._world.group.fenced = True
        assert not self._trigger()
        self._world.group.lose(T)
        self._world.group.fenced = False
        self._others()
        if self._drawn.randrange(3) == 0:
            self._make_again()
        self._come_back()

    def _others(self) -> None:
        """Batches without T."""
        for _ in range(self._drawn.randrange(1, 3)):
            self._produce(U, 1)
            assert self._trigger().keys() == {U}
            assert not self._trigger()

    def _away(self) -> None:
        """T goes to others and comes back; meanwhile something happens to the group's offset."""
        self._world.group.give([U])
        meanwhile: list[Callable[[], None]] = [self._others, self._reset, self._read_on, self._expire]
        meanwhile += [self._make_again, *[self._restore] * bool(self._kept)]
        self._others()
        self._drawn.choice(meanwhile)()
        self._come_back()

    def _come_back(self) -> None:
        self._gain()
        if self._drawn.randrange(2):
            self._batch()
        elif self.at < self._world.log.end[T]:
            assert self._trigger()[T] == (self.at, self._world.log.end[T])
            self._is_restored = False
            self._idle()
        else:
            self._idle()

    def _reset(self) -> None:
        """As Kafka's tools do it."""
        self.at = self._drawn.randint(0, self._world.log.end[T])
        self._world.reset(0, self.at)

    def _read_on(self) -> None:
        self._produce(T, self._drawn.randrange(9))
        self.at = self._drawn.randint(self.at, self._world.log.end[T])
        self._world.reset(0, self.at)

    def _restore(self) -> None:
        """From a backup of everything that the group had."""
        self.at, self._world.tokens[T] = self._drawn.choice(self._kept)
        self._world.offsets[T] = self.at
        self._is_restored = True

    def _expire(self) -> None:
        """The checkpoint remembers; a partition that it does not know is newer than the query."""
        del self._world.offsets[T]
        self._world.tokens.pop(T, None)
        self.at = OffsetDocument.from_json(self._world.start, "g").positions.get(T, 0)

    def _make_again(self) -> None:
        """Another topic of that name, which has nothing to do with the first one."""
        del self._world.log.end[T], self._world.offsets[T]
        self._world.tokens.pop(T, None)
        self._kept.clear()
        self._others()
        self._world.log.end[T], self.at = self._drawn.randrange(200), 0


def test_a_partition_goes_on_where_the_group_or_the_checkpoint_has_it_whatever_happened_meanwhile(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is passed over, and none is read again that nobody asked for."""
    monkeypatch.setattr(topics, "LOOK_S", 0.0)
    for number in range(HISTORIES):
        history = History(random.Random(seed + number))
        for _ in range(STEPS):
            history.step()
