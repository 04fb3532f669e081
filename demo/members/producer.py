"""The producer: every departure as JSON, keyed by carrier. ``python -m demo.members.producer``.

Idempotent, so that a retry makes no doubles. Its ledger says which offsets the daemon gave it back.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from demo import flights, plan
from demo.ledger import Ledger, ranges

# Records between two looks at the clock.
CHUNK = 250


def chunks(rows: Iterable[flights.Row]) -> Iterator[list[flights.Row]]:
    """The rows in lists of CHUNK."""
    source = iter(rows)
    while chunk := list(islice(source, CHUNK)):
        yield chunk


class Acknowledged:
    """Offsets that came back, gathered per partition until they are written down."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._offsets: dict[int, list[int]] = defaultdict(list)

    def add(self, sent: asyncio.Future[Any]) -> None:
        """Take the answer for one record; a failed send surfaces in `write`."""
        metadata = sent.result()
        self._offsets[metadata.partition].append(metadata.offset)

    def write(self) -> None:
        """Write down what came back since the last call."""
        for partition, offsets in sorted(self._offsets.items()):
            for start, end in ranges(sorted(offsets)):
                self._ledger.note("produced", **{"partition": partition, "from": start, "to": end})
        self._offsets.clear()


async def produce(bootstrap: str, rows: Iterable[flights.Row], per_second: float, ledger: Ledger) -> int:
    """Send all rows, `per_second` of them; returns how many. Raises what a send raised."""
    loop = asyncio.get_running_loop()
    acknowledged = Acknowledged(ledger)
    count = 0
    waiting: list[asyncio.Future[Any]] = []
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, client_id=plan.PRODUCER, enable_idempotence=True, linger_ms=20
    )
    async with producer:
        began = loop.time()
        for chunk in chunks(rows):
            for row in chunk:
                value = json.dumps(row, separators=(",", ":")).encode()
                sent = await producer.send(plan.TOPIC, value, key=str(row["carrier"]).encode())
                waiting.append(sent)
            count += len(chunk)
            while waiting and waiting[0].done():
                acknowledged.add(waiting.pop(0))
            acknowledged.write()
            await asyncio.sleep(max(0.0, began + count / per_second - loop.time()))
        for sent in waiting:
            await sent
            acknowledged.add(sent)
        acknowledged.write()
    ledger.note("finished", records=count)
    return count


def main() -> None:
    """Produce the whole data set once."""
    parser = plan.arguments(__doc__)
    parser.add_argument("--per-second", type=float, required=True, help="records per second")
    parser.add_argument("--csv", type=Path, help="other departures in the same form")
    args = parser.parse_args()
    places = plan.Places(args.out)
    with Ledger(places.ledger(plan.PRODUCER)) as ledger:
        rows = flights.rows(args.csv or flights.csv_path())
        asyncio.run(produce(args.bootstrap, rows, args.per_second, ledger))


if __name__ == "__main__":
    main()
