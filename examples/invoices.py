"""Orders become invoices, each exactly once, whatever happens to the processes.

    python invoices.py 127.0.0.1:9092 1
    python invoices.py 127.0.0.1:9092 2         # a second process, with another number

The invoices and the progress in the orders are stored in one transaction. Kill a process (kill -9) and start
it again with the same number: no invoice is missing, and none is there twice for readers with
isolation_level="read_committed".
"""

import asyncio
import contextlib
import sys

from ringleader import AbortableTransactionError, GroupConsumer, Producer


async def write_invoices(producer, consumer):
    written = 0
    async with producer.transaction(consumer):
        for batch in await consumer.getmany(timeout_s=1):
            for order in batch:
                await producer.send("invoices", b"invoice: " + order.value, key=order.key)
                written += 1
    return written


async def main(bootstrap, number):
    async with (
        Producer(bootstrap, transactional_id=f"invoices-{number}") as producer,
        GroupConsumer(
            bootstrap,
            "invoices",
            ["orders"],
            auto_commit=False,  # the transaction commits
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
    ):
        while True:
            try:
                if written := await write_invoices(producer, consumer):
                    print("invoices:", written)
            except AbortableTransactionError as error:
                print("again:", error)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
