"""Requests with offsets of topics: entries of topics and partitions that do not exist are refused here, for
the group machine knows groups, not topics."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices, whole
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.gather import Gather, Part
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import OffsetCommitRequest
from ringleader.protocol.refusals import refusal
from ringleader.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from ringleader.coordinator.server.services import KnownTopic, Services, TopicDirectory

ANY_PARTITION = 2**31
"""Of names that are no topics: one more than the largest number that the wire can carry."""
NAME_MAX_CHARACTERS = 249
"""As long as a topic's name may be."""

Refused = dict[str, list[Any]]
"""Answers of refused entries, by topic."""


def allowed_first(
    services: Services,
    call: Call,
    request: Any,
    refused_class: type[Any],
    then: Callable[[Refused], Message | Slices | None],
) -> Message | Slices | None:
    """`then(refused)`, after the topics that the caller may not read were taken out of the request: a refusal
    for each of their partitions."""
    if services.is_open:
        return then({})
    work = _allowed_first(services, call, request, refused_class, then)
    return work if is_long(request.topics) else whole(work)


def _allowed_first(
    services: Services,
    call: Call,
    request: Any,
    refused_class: type[Any],
    then: Callable[[Refused], Message | Slices | None],
) -> Slices:
    refused: Refused = {}
    for number, topic in enumerate(request.topics, 1):
        if not services.may(call, Operation.READ, ResourceType.TOPIC, topic.name):
            refused.setdefault(topic.name, []).extend(
                refused_class(entry.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                for entry in topic.partitions
            )
        if not number % SLICE_ELEMENTS:
            yield
    if refused:
        request.topics = [topic for topic in request.topics if topic.name not in refused]
    return (yield from _finished(then(refused)))


def named_first(
    services: Services, call: Call, topics: Sequence[Any], then: Callable[[], Message | Slices | None]
) -> Message | Slices | None:
    """`then()`, after these topics of a request, which have ids, have got their names; "" where no topic has
    the id."""
    work = _named_first(services, call, topics, then)
    return work if len(topics) > SLICE_ELEMENTS else whole(work)


def _named_first(
    services: Services, call: Call, topics: Sequence[Any], then: Callable[[], Message | Slices | None]
) -> Slices:
    unknown = yield from _give_names(services.topics, topics)
    if not unknown or services.find_topic_ids is None:
        return (yield from _finished(then()))

    def again() -> Slices:
        yield from _give_names(services.topics, topics)
        return (yield from _finished(then()))

    after(services, call, services.find_topic_ids(unknown), again)
    return None


def _finished(answer: Message | Slices | None) -> Slices:
    """Its slices, if it comes in slices, as a part of other ones."""
    return (yield from answer) if isinstance(answer, Generator) else answer


def _give_names(directory: TopicDirectory, topics: Sequence[Any]) -> Slices:
    """The ids that no topic has, as far as is known here."""
    unknown: dict[bytes, None] = {}
    for number, topic in enumerate(topics, 1):
        info = directory.describe_id(topic.topic_id)
        topic.name = "" if info is None else info.name
        if info is None and topic.topic_id != ZERO_UUID:
            unknown[topic.topic_id] = None
        if not number % SLICE_ELEMENTS:
            yield
    return list(unknown)


def found_first(
    services: Services, call: Call, request: Any, then: Callable[[], Message | Slices | None]
) -> Message | Slices | None:
    """`then()`, after those who know were asked about topics and partitions of the request that do not exist
    as far as is known here."""
    find = services.find_topics
    missing = [] if find is None else missing_topics(services.topics, request)
    if find is None or not missing:
        return then()
    after(services, call, find(missing), then)
    return None


def after(
    services: Services,
    call: Call,
    first: Coroutine[Any, Any, None],
    then: Callable[[], Message | Slices | None],
) -> None:
    """Answer the call with `then()` when `first` is done, or with its KafkaError."""

    async def go_on() -> None:
        try:
            await first
        except KafkaError as error:
            call.refuse(error.code)
            return
        response = then()
        if isinstance(response, Generator):
            response = await services.run_queue.run(response)
        if response is not None:
            call.answer(response)

    services.spawn(call, go_on())


def missing_topics(topics: TopicDirectory, request: Any) -> list[str]:
    """Topics of a request that do not exist, or not with all the partitions that it names."""
    missing = []
    for topic in request.topics:
        info = topics.describe(topic.name)
        count = 0 if info is None else info.partitions
        if not all(0 <= entry.partition_index < count for entry in topic.partitions):
            missing.append(topic.name)
    return missing


def split(
    topics: TopicDirectory,
    request: Any,
    refused_class: type[Any],
    unknown: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
) -> tuple[list[Any], Refused]:
    """Topics of a request with the partitions that exist, and a refusal for each of the others. `unknown`:
    the code for topics that do not exist; with NONE they have all partitions."""
    accepted: list[Any] = []
    refused: Refused = {}
    for topic in request.topics:
        info = topics.describe(topic.name)
        is_name = info is None and len(topic.name) <= NAME_MAX_CHARACTERS
        code = unknown if is_name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        count = info.partitions if info is not None else 0 if code else ANY_PARTITION
        good = []
        for entry in topic.partitions:
            if 0 <= entry.partition_index < count:
                good.append(entry)
                continue
            refused.setdefault(topic.name, []).append(
                refused_class(
                    partition_index=entry.partition_index,
                    error_code=code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
            )
        if good:
            accepted.append(type(topic)(name=topic.name, partitions=good))
    return accepted, refused


def merge(topics: list[Any], refused: Refused, topic_class: type[Any]) -> None:
    """Add the refusals to the topics of an answer."""
    for topic in topics:
        topic.partitions.extend(refused.pop(topic.name, ()))
    topics += [topic_class(name=name, partitions=partitions) for name, partitions in refused.items()]


def handle(
    runtime: GroupRuntime,
    call: Call,
    request: Any,
    ask: Callable[[Part], Any | None],
    finish: Callable[[Any], Any],
) -> Any | None:
    """The group machine's answer to a request, which it is asked for by `ask`, after `finish`; None when it
    comes later."""
    gather = Gather(call, lambda results: finish(results[0]))
    gather.add(
        ask,
        partial(refusal, request, call.api_version),
        partial(runtime.ticket_closed, request.group_id),
    )
    return gather.answer()


def commit(
    services: Services,
    call: Call,
    request: Any,
    finish: Callable[[Any], Any] = lambda response: response,
    verify: Callable[[], int] = lambda: ErrorCode.NONE,
) -> Slices:
    """The group machine's answer to a commit, after `finish`. A long one is made ready in slices; `verify`
    (an error code) is asked, and all of it is written, in one turn at the end of that: it is in the log whole
    or not at all. UNKNOWN_TOPIC_OR_PARTITION for all of it when a topic was deleted meanwhile: no offset of a
    topic is written once its deletion has begun, nor for the next one of its name."""
    describe = services.topics.describe
    found = {topic.name: describe(topic.name) for topic in request.topics}
    give_ids(found.get, request)
    # Now, and not when the first slice is asked for.
    there = {name: info.id for name, info in found.items() if info is not None}
    return _commit(services, call, request, finish, verify, there)


def _commit(
    services: Services,
    call: Call,
    request: Any,
    finish: Callable[[Any], Any],
    verify: Callable[[], int],
    there: Mapping[str, bytes],
) -> Slices:
    runtime, describe = services.runtime, services.topics.describe
    prepared = yield from runtime.prepare(request)
    error = verify()
    now = ((topic_id, describe(name)) for name, topic_id in there.items())
    if not error and any(info is None or info.id != topic_id for topic_id, info in now):
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if error:
        return finish(prepared.refused(error))
    gather = Gather(call, lambda results: finish(results[0]))
    gather.add(
        partial(runtime.commit, prepared),
        prepared.refused,
        partial(runtime.ticket_closed, request.group_id),
    )
    return gather.answer()


def give_ids(describe: Callable[[str], KnownTopic | None], request: Any) -> None:
    """Set the ids of the topics of an OffsetCommit: they are stored with the offsets. In transactions they
    are not, as in Kafka 4.3. `describe`: see `TopicDirectory`."""
    if isinstance(request, OffsetCommitRequest):
        for topic in request.topics:
            info = describe(topic.name)
            topic.topic_id = ZERO_UUID if info is None else info.id


def is_long(topics: list[Any]) -> bool:
    """Whether topics with partitions are too many for one turn of the loop."""
    return len(topics) + sum(len(topic.partitions) for topic in topics) > SLICE_ELEMENTS


class Slice(list[tuple[str, Sequence[Any]]]):
    """Topics with partitions. `goes_on`: the first one began in the slice before."""

    goes_on = False


def slices(topics: Iterable[tuple[str, Sequence[Any]]]) -> Iterator[Slice]:
    """Topics with partitions in the order given, some at a time; at least one slice."""
    whole = Slice(topics)
    if sum(1 + len(partitions) for _, partitions in whole) <= SLICE_ELEMENTS:
        yield whole
        return
    some = Slice()
    count = 0
    for name, partitions in whole:
        for start in range(0, len(partitions) or 1, SLICE_ELEMENTS):
            if count >= SLICE_ELEMENTS:
                yield some
                some, count = Slice(), 0
                some.goes_on = start > 0
            some.append((name, partitions[start : start + SLICE_ELEMENTS]))
            count += 1 + len(some[-1][1])
    yield some


def join_topics(slices: Sequence[Slice | None], answers: Sequence[Any]) -> list[Any]:
    """The topics of the answers to these slices."""
    whole: list[Any] = answers[0].topics
    if len(answers) == 1:
        return whole
    for some, answer in zip(slices[1:], answers[1:], strict=True):
        topics = answer.topics
        if some is not None and some.goes_on:
            whole[-1].partitions += topics[0].partitions
            topics = topics[1:]
        whole += topics
    return whole
