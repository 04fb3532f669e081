"""The conclusions of a partition's heir about transactions, from whatever its owner left behind.

A log is drawn: offsets of several producers over the same partitions, commits outside of transactions, the
cluster's markers, and between them what owners write, one after the other. Wherever it is cut, and however it
was compacted by then, the heir must come to what the log's own order says: an offset counts if the marker of
its transaction commits, and of those that count the last one in the log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from ringleader.coordinator.group_transactions.markers import Endings
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.machine import Answer, Records
from ringleader.coordinator.storage.kafka.writer import RECORD_BYTES
from ringleader.coordinator.topics.transactional import marker
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ringleader.protocol.records import build_pairs, iter_batches
from tests.coordinator.groups.script import Call
from tests.support.shares import share

PRODUCERS = (1, 2, 3)
GROUPS = ("g", "h")
PARTITIONS = (0, 1)
OWNER = 1_000
SMALL_BYTES = 400
"""Appends that are larger are cut, as the store does it above `group.max.record.bytes`: some ends of
transactions are larger, and nothing else is."""

Place = tuple[str, int]


class Marker(NamedTuple):
    """The cluster ends a transaction."""

    producer: int
    committed: bool


Entry = Records | Marker


@dataclass
class Truth:
    """The outcome by the log's order alone."""

    committed: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """Position and offset."""
    open: dict[int, dict[Place, tuple[int, int]]] = field(default_factory=dict)

    def take(self, position: int, event: Any) -> None:
        """The events of a client, or of the cluster: (producer or None, place, offset or None), or a
        marker."""
        if isinstance(event, Marker):
            for place, found in self.open.pop(event.producer, {}).items():
                if event.committed and found[0] > self.committed.get(place, (-1, 0))[0]:
                    self.committed[place] = found
            return
        producer, place, offset = event
        if offset is None:
            self.committed.pop(place, None)
            for table in self.open.values():
                table.pop(place, None)
        elif producer is None:
            self.committed[place] = (position, offset)
        else:
            self.open.setdefault(producer, {})[place] = (position, offset)

    def contents(self) -> tuple[Any, Any]:
        """As `Owner.contents`."""
        return (
            {place: offset for place, (_, offset) in self.committed.items()},
            {
                (producer, place): offset
                for producer, table in self.open.items()
                for place, (_, offset) in table.items()
            },
        )


class Owner:
    """A real shard."""

    def __init__(self, log: list[Entry]) -> None:
        settings = GroupSettings().model_copy(update={"group_max_record_bytes": SMALL_BYTES})
        self.shard = Shard(0, settings, lambda prefix: prefix)
        self.shard.replay(record for entry in log if not isinstance(entry, Marker) for record in entry)
        self.shard.loaded(0, 1_700_000_000_000)
        self.log = log
        """Where it writes."""
        self.read_to = len(log)
        """Markers before this are ended."""
        past = Endings()
        for entry in log:
            for batch in iter_batches(_batch(entry)):
                past.read(batch)
        for producer in self.shard.open_producers():
            if producer in past.committed:
                self.end(Marker(producer, past.committed[producer]))

    def handle(self, request: Any) -> Any:
        """Ask, and have what it writes in the log; the answer."""
        call = Call("", "", 8, None)
        response = self.shard.handle(request, call, 0)
        answers = self.land()
        return response or next(answer.response for answer in answers if answer.ticket is call)

    def end(self, one: Marker) -> None:
        """A transaction has ended."""
        for _ in self.steps(one):
            pass

    def steps(self, one: Marker) -> Iterator[None]:
        """Likewise, step by step."""
        call = Call("", "", 0, None)
        code = self.shard.end_transaction(one.producer, one.committed, call, 0)
        answers = self.land()
        yield
        while code is None and not answers:
            self.shard.tick(0)
            answers = self.land()
            yield
        assert (code if code is not None else answers[0].response) == 0

    def end_all(self) -> None:
        """The transactions that have ended since the last time."""
        while self.read_to < len(self.log):
            entry = self.log[self.read_to]
            self.read_to += 1
            if isinstance(entry, Marker):
                self.end(entry)

    def land(self) -> list[Answer]:
        """In the log, as it is cut there; the answers that were free to go then."""
        outbox = self.shard.drain()
        for append in outbox.appends:
            self.log.extend(_cut(append.records))
            self.shard.durable(append.position, 0)
        return [*outbox.answers, *self.shard.drain().answers]

    def contents(self) -> tuple[Any, Any]:
        """The committed offsets, and the open transactions."""
        groups = self.shard._groups
        committed = {
            (group_id, partition): records.decode_offset_value(value).offset
            for group_id, group in groups.items()
            for partition, value in group.offsets.get("t", {}).items()
        }
        pending = {
            (producer, (group_id, partition)): records.decode_offset_value(one.value).offset
            for group_id, group in groups.items()
            for producer, table in group.uncommitted.items()
            for (_, partition), one in table.items()
        }
        return committed, pending


def _cut(content: Records) -> Iterator[Records]:
    """As the store does it with an append that is larger than any batch may be."""
    size = sum(len(key) + len(value or b"") + RECORD_BYTES for key, value in content)
    if size <= SMALL_BYTES:
        yield content
    else:
        yield from ([record] for record in content)


def _batch(entry: Entry) -> bytes:
    if isinstance(entry, Marker):
        return marker(entry.producer, 0, 0, committed=entry.committed)
    return build_pairs(entry, 0, producer_id=OWNER, producer_epoch=0, base_sequence=0) if entry else b""


def _request(producer: int | None, group: str, offsets: dict[int, int]) -> Any:
    if producer is None:
        plain = [OffsetCommitRequestPartition(number, offset) for number, offset in offsets.items()]
        return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic("t", partitions=plain)])
    own = [TxnOffsetCommitRequestPartition(number, offset) for number, offset in offsets.items()]
    return TxnOffsetCommitRequest("id", group, producer, 0, topics=[TxnOffsetCommitRequestTopic("t", own)])


class Run:
    """One log, and the truth of each of its prefixes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log: list[Entry] = []
        self.events: list[tuple[int, Any]] = []
        """Length of the log with which it counts, what."""
        self.owner = Owner(self.log)
        self.may_commit = set(PRODUCERS)
        """The others have offsets from before the owner: see `group_transactions`."""
        self.cleaned_to = 0
        """The log before this number of entries cannot be known any more."""
        self._offset = 0

    def play(self, steps: int) -> None:
        """Any events, `steps` of them."""
        for _ in range(steps):
            fate = self.rng.random()
            if fate < 0.4:
                self._commit(self.rng.choice(PRODUCERS))
            elif fate < 0.5:
                self._commit(None)
            elif fate < 0.53:
                self._delete()
            elif fate < 0.75:
                self._end(self.rng.choice(PRODUCERS))
            elif fate < 0.93:
                self.owner.end_all()
            else:
                self._die()

    def _commit(self, producer: int | None) -> None:
        if producer is not None:
            self.owner.end_all()  # such a commit waits for it
            if producer not in self.may_commit:
                return
        group = self.rng.choice(GROUPS)
        offsets = {}
        for number in self.rng.sample(PARTITIONS, self.rng.randint(1, 2)):
            self._offset += 1
            offsets[number] = self._offset
        self.owner.handle(_request(producer, group, offsets))
        for number, offset in offsets.items():
            self.events.append((len(self.log), (producer, (group, number), offset)))

    def _delete(self) -> None:
        group, number = self.rng.choice(GROUPS), self.rng.choice(PARTITIONS)
        topics = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(number)])]
        self.owner.handle(OffsetDeleteRequest(group, topics))
        self.events.append((len(self.log), (None, (group, number), None)))

    def _end(self, producer: int) -> None:
        one = Marker(producer, self.rng.random() < 0.7)
        self.log.append(one)
        self.events.append((len(self.log), one))
        self.may_commit.add(producer)

    def _die(self) -> None:
        self.check()
        self.log = self.compacted(len(self.log))
        self.cleaned_to = len(self.log)
        self.owner = Owner(self.log)
        self.may_commit = set(PRODUCERS) - set(self.owner.shard.open_producers())

    def compacted(self, length: int) -> list[Entry]:
        """A prefix, as the log's cleaner may have left it: up to one place it is done, by what it knew of the
        log up to another one."""
        known = self.rng.randint(0, length)
        done = self.rng.randint(0, known)
        last: dict[bytes, int] = {}
        for index, entry in enumerate(self.log[:known]):
            for key, _ in () if isinstance(entry, Marker) else entry:
                last[key] = index
        found: list[Entry] = []
        forgets = self.rng.random() < 0.5
        for index, entry in enumerate(self.log[:length]):
            if isinstance(entry, Marker) or index >= done:
                found.append(entry)
                continue
            lasting = [record for record in entry if last[record[0]] == index]
            found.append([record for record in lasting if record[1] is not None or not forgets])
        return found

    def check(self) -> None:
        """An heir of each prefix."""
        for length in range(self.cleaned_to, len(self.log) + 1):
            truth = self.truth(length)
            heir = Owner(self.compacted(length))
            assert heir.contents() == truth.contents(), f"of {length} entries"
            # An open transaction still has its place in the order.
            still = list(truth.open)
            self.rng.shuffle(still)
            for position, producer in enumerate(still):
                one = Marker(producer, self.rng.random() < 0.7)
                truth.take(length + position, one)
                heir.end(one)
            assert heir.contents() == truth.contents(), f"at the end of all, from {length} entries"
            assert not [group_id for group_id, group in heir.shard._groups.items() if group.later]

    def truth(self, length: int) -> Truth:
        """Of a prefix."""
        found = Truth()
        for end, event in self.events:
            if end <= length:
                found.take(end, event)
        return found


@pytest.mark.share
@pytest.mark.parametrize("seed", range(share(15, whole=60)), indirect=True)
def test_an_heir_comes_to_what_the_log_says_wherever_it_ends(seed: int) -> None:
    run = Run(seed)
    run.play(40)
    run.check()


def test_an_offset_survives_an_owner_that_dies_between_the_effects_of_two_markers() -> None:
    log: list[Entry] = []
    owner = Owner(log)
    for producer, offset in ((1, 100), (2, 200)):
        owner.handle(_request(producer, "g", {0: offset}))
    log += [Marker(1, True), Marker(2, True)]
    owner.end(Marker(1, True))
    assert owner.contents() == ({("g", 0): 100}, {(2, ("g", 0)): 200})
    assert Owner([*log]).contents() == ({("g", 0): 200}, {})


def test_an_offset_survives_an_owner_that_dies_between_two_groups_of_one_transaction() -> None:
    log: list[Entry] = []
    owner = Owner(log)
    owner.handle(_request(1, "g", {0: 1}))
    owner.handle(_request(1, "h", {0: 2}))
    log.append(Marker(1, True))
    before = len(log)
    owner.end(Marker(1, True))
    of_first = next(length for length in range(before, len(log)) if Owner(log[:length]).contents()[1] == {})
    assert {Owner(log[:length]).contents()[0].get(("h", 0)) for length in range(of_first, len(log))} == {2}


def test_an_offset_survives_that_the_next_transaction_of_its_producer_was_aborted() -> None:
    log: list[Entry] = []
    Owner(log).handle(_request(1, "g", {0: 100}))
    log += [Marker(1, True), Marker(1, False)]
    assert Owner(log).contents() == ({("g", 0): 100}, {})


def test_a_producer_begins_nothing_new_before_the_last_step_of_an_end() -> None:
    def code(producer: int) -> int:
        answer = owner.handle(_request(producer, "g", {20: 200}))
        return int(answer.topics[0].partitions[0].error_code)

    log: list[Entry] = []
    owner = Owner(log)
    for number in range(20):
        owner.handle(_request(1, "g", {number: 100}))
    ended = []
    for _ in owner.steps(Marker(1, True)):
        ended.append(len(owner.contents()[0]))
        if ended[-1] < 20:
            assert (code(1), code(2)) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
    assert len(ended) > 2
    assert ended[-1] == 20
    assert code(1) == ErrorCode.NONE
    assert owner.contents()[0] == {("g", number): 100 for number in range(20)}


def test_an_end_that_is_larger_than_an_append_may_be_is_cut_where_it_does_no_harm() -> None:
    log: list[Entry] = []
    owner = Owner(log)
    for producer in PRODUCERS:
        owner.handle(_request(producer, "g", {0: producer * 100, 1: producer * 100}))
    log.append(Marker(1, True))
    before = len(log)
    owner.end_all()
    assert len(log) > before + 1
    for length in range(before, len(log) + 1):
        heir = Owner(log[:length])
        heir.end(Marker(2, True))
        assert heir.contents()[0] == {("g", 0): 200, ("g", 1): 200}
