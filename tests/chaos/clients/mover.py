"""Moves records from one topic to another in transactions, with librdkafka. ``python -m
tests.chaos.clients.mover``.

Each record that it writes names its transaction, and the record that it was made of. After anything but a
clean end the mover begins again, as a fresh process would: from the offsets that are committed. A call of
librdkafka that does not come back ends the process.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition

from tests.chaos.clients.common import ASK_S, TOPIC, Place, arguments, stopped_by_signal
from tests.chaos.clients.librdkafka import generation_and_member
from tests.chaos.company import RESULTS
from tests.chaos.history import History, OpenCall

STUCK_S = 60.0
"""So long no call takes, unless it hangs."""
CALL_S = 20.0
BOUND_S = STUCK_S + 30.0
TRANSACTION_MS = 10_000
AGAIN_S = 0.5


class Watchdog:
    """Ends the process when a call takes too long."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> None:
        self._since_s = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since_s = None

    def _watch(self) -> None:
        while True:
            time.sleep(1)
            since_s = self._since_s
            if since_s is not None and time.monotonic() - since_s > STUCK_S:
                os._exit(9)


class Mover:
    """One life of it: a producer and a consumer."""

    def __init__(self, place: Place, history: History, dice: random.Random, life: int) -> None:
        self._place, self._history, self._dice = place, history, dice
        [self._group] = place.groups
        self._life, self._count = life, 0
        self._versions: dict[int, int] = {}
        """Where each of its partitions goes on."""
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": place.bootstrap,
                "transactional.id": place.identity,
                "transaction.timeout.ms": TRANSACTION_MS,
                "linger.ms": 5,
            }
        )
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": place.bootstrap,
                "group.id": self._group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "partition.assignment.strategy": "range",
            }
        )

    def start(self) -> None:
        """Raises ``KafkaException``."""
        self._producer.init_transactions(CALL_S)
        self._consumer.subscribe(
            [TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, consumer: confluent_kafka.Consumer, given: Sequence[Any]) -> None:
        places = [TopicPartition(TOPIC, one.partition) for one in given]
        committed = consumer.committed(places, CALL_S) if places else []
        for one in committed:
            one.offset = max(int(one.offset), 0)
        self._versions = {one.partition: one.offset for one in committed}
        generation, member = generation_and_member(consumer)
        self._history.saw(
            "assigned",
            group=self._group,
            generation=generation,
            member=member,
            partitions=sorted(self._versions),
        )
        consumer.assign(committed)

    def _revoked(self, _consumer: confluent_kafka.Consumer, taken: Sequence[Any]) -> None:
        self._versions = {}
        self._history.saw("revoked", group=self._group, partitions=sorted(one.partition for one in taken))

    def move(self) -> bool:
        """One transaction, if there is anything to move. False: begin again. Raises ``KafkaException``."""
        messages = self._consumer.consume(self._place.records, ASK_S)
        received: dict[int, list[Any]] = {}
        for one in messages:
            if one.error() is not None:
                continue
            partition = int(one.partition() or 0)
            due = (
                received[partition][-1].offset() + 1
                if partition in received
                else self._versions.get(partition)
            )
            if due != one.offset():
                return False  # not where it is to go on: the next life asks what is committed
            received.setdefault(partition, []).append(one)
        if not received:
            return True
        self._count += 1
        name = f"{self._place.name}/{self._life}#{self._count}"
        ends = {partition: ones[-1].offset() + 1 for partition, ones in received.items()}
        call = self._history.begin(
            "transaction",
            BOUND_S,
            name=name,
            group=self._group,
            reads={f"{TOPIC}:{partition}": self._versions[partition] for partition in received},
            writes={f"{TOPIC}:{partition}": end for partition, end in ends.items()},
            appends={
                f"{RESULTS}:{partition}": [(ones[0].offset(), ends[partition])]
                for partition, ones in received.items()
            },
        )
        return self._transact(call, name, received, ends)

    def _transact(
        self, call: OpenCall, name: str, received: dict[int, list[Any]], ends: dict[int, int]
    ) -> bool:
        committing = False
        try:
            self._producer.begin_transaction()
            for partition, ones in received.items():
                for one in ones:
                    value = json.dumps({"of": name, "source": one.offset()})
                    self._producer.produce(RESULTS, value, partition=partition)
            self._producer.send_offsets_to_transaction(
                [TopicPartition(TOPIC, partition, end) for partition, end in ends.items()],
                self._consumer.consumer_group_metadata(),
                CALL_S,
            )
            if self._dice.randrange(100) < self._place.aborts:
                self._producer.abort_transaction(CALL_S)
                call.failed("on purpose")
                return False
            committing = True
            self._producer.commit_transaction(CALL_S)
        except KafkaException as error:
            why = str(error.args[0])
            if not committing or error.args[0].txn_requires_abort():
                # Nobody else can commit it: this aborts it, or the next life, or the end of its time.
                with suppress(KafkaException):
                    self._producer.abort_transaction(CALL_S)
                call.failed(why)
            else:
                call.unknown(why)
            return False
        call.ok()
        self._versions.update(ends)
        return True

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def run(place: Place, history: History) -> None:
    """One life after the other, until stopped."""
    stop, watchdog, life = stopped_by_signal(), Watchdog(), 0
    dice = random.Random(f"{place.seed} {place.name}")
    while not stop.is_set():
        life += 1
        with watchdog:
            mover = Mover(place, history, dice, life)
        try:
            with watchdog:
                mover.start()
            going = True
            while going and not stop.is_set():
                with watchdog:
                    going = mover.move()
        except KafkaException as error:
            history.saw("error", why=str(error.args[0]))
            stop.wait(AGAIN_S)
        with watchdog:
            mover.close()


def main() -> None:
    """Be one mover."""
    place = arguments(__doc__)
    with History(place.history) as history:
        run(place, history)


if __name__ == "__main__":
    main()
