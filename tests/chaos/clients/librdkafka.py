"""A confluent-kafka consumer that commits by hand. ``python -m tests.chaos.clients.librdkafka``."""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.chaos.clients.common import (
    ASK_S,
    COMMIT_BOUND_S,
    POLL_BOUND_S,
    TOPIC,
    Notes,
    Place,
    arguments,
    stopped_by_signal,
)
from tests.chaos.history import History

MESSAGES = 500
_REFUSED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
}
_MAGIC = b"CGMDv2:"
_STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}


def generation_and_member(consumer: confluent_kafka.Consumer) -> tuple[int, str]:
    """Out of the opaque bytes that librdkafka hands to a transactional producer."""
    encoded = consumer.consumer_group_metadata()
    if not encoded.startswith(_MAGIC):
        raise RuntimeError(f"this librdkafka writes its group metadata in another way: {encoded[:16]!r}")
    (generation,) = struct.unpack_from("<i", encoded, len(_MAGIC))
    _group, member, _rest = encoded[len(_MAGIC) + 4 :].split(b"\0", 2)
    return generation, member.decode()


def run(place: Place, history: History) -> None:
    """Consume until stopped."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)
    has: set[int] = set()

    def on_assign(consumer: confluent_kafka.Consumer, given: Sequence[Any]) -> None:
        generation, member = generation_and_member(consumer)
        has.update(one.partition for one in given)
        notes.assigned(generation, member, has)

    def on_revoke(_consumer: confluent_kafka.Consumer, taken: Sequence[Any]) -> None:
        has.difference_update(one.partition for one in taken)
        notes.given_up(one.partition for one in taken)

    def on_lost(_consumer: confluent_kafka.Consumer, taken: Sequence[Any]) -> None:
        has.difference_update(one.partition for one in taken)
        notes.given_up((one.partition for one in taken), lost=True)

    own: dict[str, Any] = {"group.instance.id": place.identity} if place.static else {}
    if place.protocol == "consumer":
        own["group.protocol"] = "consumer"
    elif place.protocol:
        own["partition.assignment.strategy"] = _STRATEGIES[place.protocol]
    consumer = confluent_kafka.Consumer(
        {
            **own,
            "bootstrap.servers": place.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            # It waits for a coordinator and then overtakes, and turns back, what was committed by hand since.
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
    processed: dict[int, int] = {}
    due_s = 0.0
    while not stop.is_set():
        call = history.begin("poll", POLL_BOUND_S)
        messages = consumer.consume(MESSAGES, min(ASK_S, place.every_s))
        call.ok()
        notes.generation(generation_and_member(consumer)[0])
        received: dict[int, list[int]] = defaultdict(list)
        for message in messages:
            if (error := message.error()) is not None:
                history.saw("error", why=str(error))
            else:
                received[int(message.partition() or 0)].append(int(message.offset() or 0))
        for partition, offsets in received.items():
            notes.processed(partition, offsets)
            processed[partition] = offsets[-1] + 1
        if processed and time.monotonic() >= due_s:
            if commit(consumer, history, group, processed):
                processed.clear()
            due_s = time.monotonic() + place.every_s
    consumer.close()


def commit(consumer: confluent_kafka.Consumer, history: History, group: str, offsets: dict[int, int]) -> bool:
    """Commit, and write down how it went. False: try again what is not known to be committed."""
    words = {f"{TOPIC}:{partition}": offset for partition, offset in offsets.items()}
    call = history.begin("commit", COMMIT_BOUND_S, group=group, offsets=words)
    wanted = [TopicPartition(TOPIC, partition, offset) for partition, offset in offsets.items()]
    try:
        answered = consumer.commit(offsets=wanted, asynchronous=False)
        errors = [one.error for one in answered if one.error is not None]
    except KafkaException as error:
        errors = [error.args[0]]
    if not errors:
        call.ok()
    elif all(error.code() in _REFUSED for error in errors):
        call.failed(str(errors[0]))
    else:
        call.unknown(str(errors[0]))
        return False
    return True


def main() -> None:
    """Be one member."""
    place = arguments(__doc__)
    with History(place.history) as history:
        run(place, history)


if __name__ == "__main__":
    main()
