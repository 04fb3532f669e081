"""An idempotent confluent-kafka producer. ``python -m tests.chaos.clients.producer``.

A record counts as produced when its delivery is reported with an offset. It is reported without one when it
was sent again to a broker that had started meanwhile: that one knows each producer's last batch only, and of
those before it that it has them (DUPLICATE_SEQUENCE_NUMBER). With `--straight` it asks the brokers, else
whom the groups ask.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress
from typing import Any

import confluent_kafka

from tests.chaos.clients.common import PARTITIONS, TOPIC, Place, arguments, spans, stopped_by_signal
from tests.chaos.history import History

NOTED_EVERY_S = 0.25
FLUSH_BOUND_S = 120.0
"""The bound within which records under way at the end of the run are delivered or have failed."""


class _Delivered:
    """Offsets that came back, gathered until they are written down."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._offsets: dict[int, list[int]] = defaultdict(list)

    def report(self, error: Any, message: Any) -> None:
        """librdkafka's callback for one record."""
        if error is not None:
            self._history.saw("undelivered", why=str(error))
        elif message.offset() is not None:
            self._offsets[message.partition()].append(message.offset())

    def write(self) -> None:
        """The results that came back since the last call."""
        for partition, offsets in sorted(self._offsets.items()):
            for start, end in spans(sorted(offsets)):
                self._history.saw("produced", partition=partition, start=start, end=end)
        self._offsets.clear()


def run(place: Place, history: History) -> None:
    """Produce until stopped, then wait for the records under way."""
    stop, delivered = stopped_by_signal(), _Delivered(history)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": place.brokers if place.straight else place.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
        }
    )
    began_s, sent, written_s = time.monotonic(), 0, 0.0
    while not stop.is_set():
        early_s = began_s + sent / place.per_second - time.monotonic()
        if early_s <= 0:
            value, partition = f"{place.name} {sent}".encode(), sent % PARTITIONS
            # As many as fit may be under way while the brokers are not there.
            with suppress(BufferError):
                producer.produce(TOPIC, value, partition=partition, callback=delivered.report)
                sent += 1
        producer.poll(max(0.0, min(early_s, NOTED_EVERY_S)))
        if time.monotonic() - written_s > NOTED_EVERY_S:
            delivered.write()
            written_s = time.monotonic()
    call = history.begin("flush", FLUSH_BOUND_S)
    left = producer.flush(FLUSH_BOUND_S)
    delivered.write()
    if left:
        call.unknown(f"{left} records are still under way")
    else:
        call.ok()
    history.saw("finished", sent=sent)


def main() -> None:
    """Be one producer."""
    place = arguments(__doc__)
    with History(place.history) as history:
        run(place, history)


if __name__ == "__main__":
    main()
