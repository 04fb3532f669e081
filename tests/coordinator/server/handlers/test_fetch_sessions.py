"""Fetch sessions: what a client names once is fetched on, and only what is new is answered."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from ringleader.coordinator.security.acls import AllowAll, Operation, ResourceType
from ringleader.coordinator.server.handlers import fetch_sessions as room
from ringleader.coordinator.server.handlers.fetch_sessions import Cached, FetchSessions
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchResponsePartitionData,
)
from tests.support.topiclog import batch, forget

Ask = Any
NEVER_MS = 3_600_000
LARGEST = 2**31 - 1
Place = tuple[str, int]


def fetch(
    session: tuple[int, int],
    *places: tuple[str, int, int],
    forgets: tuple[Place, ...] = (),
    wait_ms: int = 0,
    **options: Any,
) -> FetchRequest:
    """`places`: topic, partition, offset."""
    limit = options.pop("partition_max_bytes", 1_000_000)
    return FetchRequest(
        max_wait_ms=wait_ms,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchRequestFetchTopic(
                topic, partitions=[FetchRequestFetchPartition(index, -1, offset, partition_max_bytes=limit)]
            )
            for topic, index, offset in places
        ],
        forgotten_topics_data=[
            FetchRequestForgottenTopic(topic, partitions=[index]) for topic, index in forgets
        ],
        **{"min_bytes": 1, **options},
    )


def outcomes(answer: Any) -> list[tuple[str, int, int, int, list[int]]]:
    """Topic, partition, error, high watermark and offsets of each partition of an answer."""
    return [
        (
            topic.topic,
            one.partition_index,
            one.error_code,
            one.high_watermark,
            decode_columns(one.records or b"").offsets,
        )
        for topic in answer.responses
        for one in topic.partitions
    ]


@pytest.fixture
async def filled(ask: Ask) -> Ask:
    """Topic a: 5 records in partition 0, nothing in 1 and 2."""
    await ask.topics.create("a", 3)
    await ask.topics.append("a", 0, batch(5))
    return ask


async def opened(ask: Ask, *places: tuple[str, int, int]) -> int:
    answer = await ask(fetch((0, 0), *places))
    assert answer.error_code == 0
    assert answer.session_id > 0
    assert len(outcomes(answer)) == len(places)
    return int(answer.session_id)


@pytest.mark.parametrize("version", range(7, 13))
async def test_only_what_is_new_is_answered(filled: Ask, version: int) -> None:
    answer = await filled(fetch((0, 0), ("a", 0, 5), ("a", 1, 0), ("a", 2, 0)), version)
    key = answer.session_id
    assert outcomes(answer) == [("a", 0, 0, 5, []), ("a", 1, 0, 0, []), ("a", 2, 0, 0, [])]
    again = await filled(fetch((key, 1)), version)
    assert (again.error_code, again.session_id, again.responses) == (0, key, [])
    await filled.topics.append("a", 1, batch(2))
    assert outcomes(await filled(fetch((key, 2)), version)) == [("a", 1, 0, 2, [0, 1])]
    # A client that has not read them asks again, and gets them again.
    assert outcomes(await filled(fetch((key, 3)), version)) == [("a", 1, 0, 2, [0, 1])]
    assert outcomes(await filled(fetch((key, 4), ("a", 1, 2)), version)) == []
    assert outcomes(await filled(fetch((key, 5), ("a", 0, 0)), version)) == [("a", 0, 0, 5, [0, 1, 2, 3, 4])]


@pytest.mark.parametrize("version", range(4, 7))
async def test_versions_without_sessions_get_none(filled: Ask, version: int) -> None:
    await filled(fetch((0, -1), ("a", 0, 5)), version)
    assert sessions_of(filled) == 0


async def test_a_high_watermark_or_a_start_that_moved_is_new(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 0), ("a", 1, 0))
    await filled(fetch((key, 1), ("a", 0, 5)))
    await filled.topics.append("a", 0, batch(1))
    # The records are asked for from behind the end of what is there, so only the end has moved.
    assert outcomes(await filled(fetch((key, 2), ("a", 0, 6)))) == [("a", 0, 0, 6, [])]
    await filled.topics.truncate("a", 0, 3)
    answer = await filled(fetch((key, 3)))
    assert outcomes(answer) == [("a", 0, 0, 6, [])]
    assert answer.responses[0].partitions[0].log_start_offset == 3
    assert outcomes(await filled(fetch((key, 4)))) == []


def test_an_end_that_went_back_is_new_once() -> None:
    """As after the unclean election of a leader."""
    one = Cached("a", FetchRequestFetchPartition(0))

    def new(end: int) -> bool:
        answer = FetchResponsePartitionData(0, 0, end, log_start_offset=0)
        found = one.is_new(answer)
        one.answered(answer)
        return found

    assert [new(end) for end in (6, 6, 4, 4, 6)] == [True, False, True, False, True]


async def test_an_error_is_new_every_time_and_so_is_its_end(filled: Ask) -> None:
    key = await opened(filled, ("a", 1, 0), ("b", 0, 0))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for epoch in (1, 2):
        assert outcomes(await filled(fetch((key, epoch)))) == [("b", 0, unknown, -1, [])]
    await filled.topics.create("b", 1)
    assert outcomes(await filled(fetch((key, 3)))) == [("b", 0, 0, 0, [])]
    assert outcomes(await filled(fetch((key, 4)))) == []
    await filled.topics.delete("b", forget)
    assert outcomes(await filled(fetch((key, 5)))) == [("b", 0, unknown, -1, [])]
    await filled.topics.create("b", 1)
    assert outcomes(await filled(fetch((key, 6)))) == [("b", 0, 0, 0, [])], "though its end is where it was"


async def test_partitions_are_added_and_forgotten(filled: Ask) -> None:
    key = await opened(filled, ("a", 1, 0))
    answer = await filled(fetch((key, 1), ("a", 0, 0), ("a", 2, 0)))
    assert [part[:2] for part in outcomes(answer)] == [("a", 0), ("a", 2)]
    assert outcomes(await filled(fetch((key, 2), forgets=(("a", 0), ("a", 1), ("none", 7))))) == []
    await filled.topics.append("a", 1, batch(1))
    await filled.topics.append("a", 2, batch(1))
    assert outcomes(await filled(fetch((key, 3)))) == [("a", 2, 0, 1, [0])]


async def test_one_that_forgets_all_it_has_is_over(filled: Ask) -> None:
    key = await opened(filled, ("a", 1, 0))
    answer = await filled(fetch((key, 1), ("a", 0, 0), forgets=(("a", 0), ("a", 1))))
    # As in Kafka this is then a Fetch without a session.
    assert (answer.session_id, outcomes(answer)) == (0, [("a", 0, 0, 5, [0, 1, 2, 3, 4])])
    await refused(filled, (key, 2), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert sessions_of(filled) == 0


async def refused(ask: Ask, session: tuple[int, int], code: int) -> None:
    answer = await ask(fetch(session, ("a", 0, 0), wait_ms=NEVER_MS))
    assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])


async def test_ids_and_epochs_that_are_wrong(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 5))
    for other in (0, -1, -(2**31), LARGEST if key != LARGEST else 1):
        for epoch in (1, 2, -2, LARGEST, -(2**31)):
            await refused(filled, (other, epoch), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    for epoch in (2, LARGEST, -2, -(2**31)):
        await refused(filled, (key, epoch), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert (await filled(fetch((key, 1)))).error_code == 0
    await refused(filled, (key, 1), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert (await filled(fetch((key, 2)))).error_code == 0


async def test_the_epoch_after_the_largest_is_1(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 5))
    store(filled)._sessions[key].epoch = LARGEST
    assert (await filled(fetch((key, LARGEST)))).error_code == 0
    await refused(filled, (key, 0 - 2), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert (await filled(fetch((key, 1)))).session_id == key


@pytest.mark.parametrize("epoch", [0, -1])
async def test_a_whole_request_ends_the_session_that_it_names(filled: Ask, epoch: int) -> None:
    key = await opened(filled, ("a", 0, 0))
    answer = await filled(fetch((key, epoch), ("a", 1, 0)))
    assert outcomes(answer) == [("a", 1, 0, 0, [])]
    assert bool(answer.session_id) == (epoch == 0)
    assert answer.session_id != key
    await refused(filled, (key, 1), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert sessions_of(filled) == (epoch == 0)


async def test_a_session_waits_for_records_of_all_its_partitions(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 5), ("a", 1, 0), ("a", 2, 0))
    waiting = filled.send(fetch((key, 1), wait_ms=NEVER_MS), 12)
    assert not waiting.done
    await filled.topics.append("a", 2, batch(2))
    assert outcomes(await waiting.answer()) == [("a", 2, 0, 2, [0, 1])]
    assert outcomes(await filled(fetch((key, 2), ("a", 2, 2), wait_ms=1))) == []


async def test_a_peer_that_is_gone_leaves_the_session_as_its_client_knows_it(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 5), ("a", 1, 0))
    await filled.topics.append("a", 1, batch(2))
    waiting = filled.send(fetch((key, 1), wait_ms=NEVER_MS, min_bytes=10**6), 12)
    assert not waiting.done
    waiting.call.dropped()
    assert not any(filled.topics.partition("a", index).waiters for index in range(3))
    assert outcomes(await filled(fetch((key, 2), ("a", 1, 2)))) == [("a", 1, 0, 2, [])]


async def test_one_of_two_requests_with_the_same_epoch_is_refused(filled: Ask) -> None:
    key = await opened(filled, ("a", 0, 5))
    waiting = filled.send(fetch((key, 1), wait_ms=NEVER_MS), 12)
    assert (await filled(fetch((key, 2)))).error_code == 0
    await filled.topics.append("a", 0, batch(1))
    late = await waiting.answer()
    assert (late.error_code, late.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, key)
    assert late.responses == []
    assert outcomes(await filled(fetch((key, 3)))) == [("a", 0, 0, 6, [5])]


async def test_what_a_refused_answer_would_have_said_is_said_by_the_next_one(filled: Ask) -> None:
    await filled.topics.append("a", 1, batch(5))
    key = await opened(filled, ("a", 0, 5), ("a", 1, 5))
    waiting = filled.send(fetch((key, 1), wait_ms=NEVER_MS), 12)
    assert outcomes(await filled(fetch((key, 2)))) == []
    await filled.topics.truncate("a", 1, 3)
    await filled.topics.append("a", 0, batch(1))
    assert (await waiting.answer()).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    answer = await filled(fetch((key, 3)))
    assert outcomes(answer) == [("a", 0, 0, 6, [5]), ("a", 1, 0, 5, [])]
    assert answer.responses[0].partitions[1].log_start_offset == 3


async def test_partitions_that_had_records_stand_last(filled: Ask) -> None:
    for index in (1, 2):
        await filled.topics.append("a", index, batch(5))
    key = await opened(filled, ("a", 0, 0), ("a", 1, 0), ("a", 2, 0))
    order = [
        [part[1] for part in outcomes(await filled(fetch((key, epoch), max_bytes=1)))]
        for epoch in range(1, 7)
    ]
    assert order == [[0], [1], [2], [0], [1], [2]]


class Some(AllowAll):
    """Only these topics may be read."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def authorize(
        self, principal: Any, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """See `Authority`."""
        return name in self.names


async def test_each_request_is_authorized_by_itself(filled: Ask) -> None:
    await filled.topics.create("b", 1)
    key = await opened(filled, ("a", 0, 0), ("a", 1, 0), ("b", 0, 0))
    filled.services.authorizer = Some("b")
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for epoch in (1, 2):
        assert outcomes(await filled(fetch((key, epoch)))) == [("a", n, refused, -1, []) for n in (0, 1)]
    filled.services.authorizer = AllowAll()
    assert outcomes(await filled(fetch((key, 3)))) == [("a", 0, 0, 5, [0, 1, 2, 3, 4]), ("a", 1, 0, 0, [])]


# ---- room for sessions ----


def store(ask: Ask) -> FetchSessions:
    found = ask.handlers[1].args[1]
    assert isinstance(found, FetchSessions)
    return found


def sessions_of(ask: Ask) -> int:
    assert (store(ask).held_bytes > 0) == (len(store(ask)) > 0)
    return len(store(ask))


class Kept:
    """Sessions with a clock of the test's."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.sessions = FetchSessions(lambda: self.now_ms)

    def make(self, size: int, *, privileged: bool = False, topic: str = "t") -> int:
        """A session of so many partitions."""
        part_of = FetchRequestFetchPartition
        partitions: dict[room.Key, Cached] = {
            (topic, one): Cached(topic, part_of(one)) for one in range(size)
        }
        held = sum(map(room.bytes_of, partitions))
        return self.sessions.create(partitions, held, privileged=privileged)

    def use(self, key: int) -> bool:
        """Go on with it; whether it is there."""
        try:
            session = self.sessions.proceed(key, self.sessions._sessions[key].epoch)
        except KeyError:
            return False
        return self.sessions.used(session, 0)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr(room, "SESSIONS_MAX", 3)
    return Kept()


def test_a_new_session_does_not_take_the_place_of_new_ones(kept: Kept) -> None:
    keys = [kept.make(size) for size in (1, 2, 3)]
    assert all(keys)
    assert len(set(keys)) == 3
    kept.now_ms = room.SETTLED_MS
    assert all(kept.use(key) for key in keys)
    assert kept.make(100) == 0
    assert all(kept.use(key) for key in keys)


def test_one_that_is_not_used_goes_first(kept: Kept) -> None:
    keys = [kept.make(9) for _ in range(3)]
    kept.now_ms = room.SETTLED_MS
    assert kept.use(keys[0])
    assert kept.use(keys[2])
    assert kept.make(1) == 0
    kept.now_ms += 1
    assert kept.make(1)
    assert [kept.use(key) for key in keys] == [True, False, True]


def test_a_settled_one_goes_for_one_that_is_as_large(kept: Kept) -> None:
    keys = [kept.make(size) for size in (3, 2, 4)]
    kept.now_ms = room.SETTLED_MS + 1
    assert all(kept.use(key) for key in keys)
    assert kept.make(1) == 0
    # Of equals the larger id counts for more, and a session to be has none: as in Kafka's `EvictableKey`.
    assert kept.make(2) == 0
    assert kept.make(3)
    assert [kept.use(key) for key in keys] == [True, False, True]


def test_a_follower_takes_the_place_of_a_client_and_not_the_other_way(kept: Kept) -> None:
    clients = [kept.make(9) for _ in range(2)]
    follower = kept.make(1, privileged=True)
    assert kept.make(1, privileged=True)
    assert sum(map(kept.use, clients)) == 1
    kept.now_ms = room.SETTLED_MS + 1
    assert kept.use(follower)
    assert [kept.use(key) for key in clients].count(True) == 1
    for other in list(kept.sessions._sessions):
        kept.use(other)
    assert kept.make(100)  # in place of the other client
    assert kept.use(follower)


def test_sessions_have_a_limit_of_memory(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SESSION_MAX_PARTITIONS", 12)
    assert kept.make(13) == 0
    monkeypatch.setattr(room, "SESSIONS_MAX_BYTES", 10 * room.bytes_of(("t", 0)))
    assert kept.make(11) == 0
    first = kept.make(6)
    assert first
    assert kept.make(5) == 0
    assert kept.make(4)
    kept.now_ms = room.SETTLED_MS + 1
    assert kept.make(10)  # in place of both
    assert len(kept.sessions) == 1
    kept.now_ms *= 3
    assert kept.make(3, topic="t" * 32_000) == 0
    assert kept.sessions.held_bytes <= room.SESSIONS_MAX_BYTES


@pytest.mark.parametrize("limit", ["SESSION_MAX_PARTITIONS", "SESSIONS_MAX_BYTES"])
async def test_a_session_that_grows_beyond_a_limit_ends(
    filled: Ask, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    key = await opened(filled, ("a", 0, 5), ("a", 1, 0))
    most = {"SESSION_MAX_PARTITIONS": 2, "SESSIONS_MAX_BYTES": store(filled).held_bytes + 100}
    monkeypatch.setattr(room, limit, most[limit])
    assert (await filled(fetch((key, 1), ("a", 1, 0)))).error_code == 0
    answer = await filled(fetch((key, 2), ("a", 2, 0), wait_ms=NEVER_MS))
    assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])
    assert (sessions_of(filled), store(filled).held_bytes) == (0, 0)


def test_an_id_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([4, 4, 9])
    kept = FetchSessions(lambda: 0, lambda _below: next(draws))
    assert [kept.create({}, 0, privileged=False) for _ in range(2)] == [5, 10]


def test_one_that_ended_while_its_request_was_read_is_not_found(kept: Kept) -> None:
    key = kept.make(1)
    session = kept.sessions.proceed(key, 1)
    kept.sessions.close(key)
    with pytest.raises(KafkaError) as found:
        kept.sessions.used(session, 100)
    assert found.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert kept.sessions.held_bytes == 0


# ---- drawn sequences ----


class Reader:
    """A client that knows what incremental answers say, all together."""

    def __init__(self, ask: Ask, rng: random.Random) -> None:
        self.ask, self.rng = ask, rng
        self.session = (0, 0)
        self.offsets: dict[Place, int] = {}
        self.known: dict[Place, tuple[int, int, int]] = {}

    async def fetch(self) -> None:
        """Change what is asked for, at random; then see whether what is known is what a whole Fetch says."""
        rng = self.rng
        changed = {}
        for place in [(topic, index) for topic in "ab" for index in range(3)]:
            if rng.random() < 0.2:
                changed[place] = rng.choice([0, 1, self.known.get(place, (0, 0, 0))[1], 40])
        forgets = tuple(place for place in self.offsets if place not in changed and rng.random() < 0.1)
        self.offsets |= changed
        for place in forgets:
            del self.offsets[place]
            self.known.pop(place, None)
        if self.session[1] == 0:
            changed, forgets = dict(self.offsets), ()
        answer = await self.ask(
            fetch(self.session, *((*place, offset) for place, offset in changed.items()), forgets=forgets)
        )
        assert answer.error_code == 0
        whole = await self.ask(fetch((0, -1), *((*place, offset) for place, offset in self.offsets.items())))
        records = {}
        for topic in answer.responses:
            for one in topic.partitions:
                place = topic.topic, one.partition_index
                self.known[place] = one.error_code, one.high_watermark, one.log_start_offset
                records[place] = one.records
        for topic in whole.responses:
            for one in topic.partitions:
                place = topic.topic, one.partition_index
                now = one.error_code, one.high_watermark, one.log_start_offset
                assert self.known[place] == now, place
                assert records.get(place, b"") == one.records, place
        epoch = 1 if self.session[1] == 0 else self.session[1] + 1
        self.session = (answer.session_id, epoch) if answer.session_id else (0, 0)
        if not self.session[0]:
            assert not self.offsets or epoch > 1
            self.known.clear()


async def _something_happens(ask: Ask, rng: random.Random) -> None:
    topic = rng.choice("ab")
    described = ask.topics.describe(topic)
    if described is None:
        await ask.topics.create(topic, rng.choice([2, 3]))
        return
    index = rng.randrange(described.partitions)
    match rng.choice(["append"] * 5 + ["truncate"] * 2 + ["delete", "files"]):
        case "append":
            await ask.topics.append(topic, index, batch(rng.choice([1, 3])))
        case "truncate":
            end = ask.topics.partition(topic, index).high_watermark
            await ask.topics.truncate(topic, index, rng.randint(0, end))
        case "files":
            tail = ask.topics.partition(topic, index).tail
            while len(tail):
                tail.evict()
        case "delete":
            await ask.topics.delete(topic, forget)


async def test_incremental_answers_say_together_what_whole_ones_say(filled: Ask, seed: int) -> None:
    rng = random.Random(seed)
    readers = [Reader(filled, rng) for _ in range(2)]
    async with asyncio.timeout(60):
        for _ in range(150):
            for _ in range(rng.choice([0, 1, 2])):
                await _something_happens(filled, rng)
            await rng.choice(readers).fetch()
