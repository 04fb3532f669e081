"""Reads, in no group, the committed records that movers wrote. ``python -m tests.chaos.clients.auditor``."""

from __future__ import annotations

import json
from collections import defaultdict

import confluent_kafka
from confluent_kafka import TopicPartition

from tests.chaos.clients.common import ASK_S, PARTITIONS, Notes, Place, arguments, stopped_by_signal
from tests.chaos.company import RESULTS
from tests.chaos.history import History

MESSAGES = 500


def run(place: Place, history: History) -> None:
    """Read until stopped."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": place.bootstrap,
            "group.id": "auditor",  # librdkafka wants one; nothing is committed
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(RESULTS, partition, 0) for partition in range(PARTITIONS)])
    while not stop.is_set():
        seen: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
        for one in consumer.consume(MESSAGES, ASK_S):
            if (error := one.error()) is not None:
                history.saw("error", why=str(error))
                continue
            content = json.loads(one.value() or b"")
            seen[int(one.partition() or 0)].append((int(one.offset() or 0), content["of"], content["source"]))
        for partition, records in seen.items():
            history.saw("seen", log=f"{RESULTS}:{partition}", records=records)
            notes.processed(partition, [source for _, _, source in records])
    consumer.close()


def main() -> None:
    """Be the auditor."""
    place = arguments(__doc__)
    with History(place.history) as history:
        run(place, history)


if __name__ == "__main__":
    main()
