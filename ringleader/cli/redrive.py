"""``ringleader groups redrive``: write dead letters back to the topics that they came from."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.asking import NOWHERE, TIMEOUT_MS, security_of, servers_of
from ringleader.cli.common import BOOTSTRAP, BootstrapOption, CommandConfigOption, JsonOption, fail, utf8

if TYPE_CHECKING:
    from ringleader.clients.fetch.model import Record
    from ringleader.clients.model import TopicPartition
    from ringleader.clients.producer import Producer

HELP = (
    "Write the records of a topic of dead letters back to the topics that they came from.\n\n"
    "A record goes back with its key, value and headers, without the headers that say why it was a dead "
    "letter. The position is committed in a group: a second call goes on with the letters that came since; "
    "a call that was ended in the middle is repeated in part. Records without these headers stay.\n\n"
    "Examples:\n\n"
    "  ringleader groups redrive orders.dead --dry-run\n\n"
    "  ringleader groups redrive orders.dead\n\n"
    "  ringleader groups redrive orders.dead --to orders.again --group second-try"
)
READ_S = 30.0
"""The end of a partition has to be reached in that time after its last record."""

TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", parser=utf8, help="Topic of dead letters.", show_default=False)
]
ToOption = Annotated[
    str | None,
    typer.Option(
        parser=utf8,
        metavar="TOPIC",
        help="Topic to write to, instead of the one that each record came from.",
        show_default=False,
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        parser=utf8,
        metavar="GROUP",
        help="Group in which the position is committed. Default: redrive-TOPIC.",
        show_default=False,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only count what would be written; nothing is written or committed.")
]


def redrive(
    topic: TopicArgument,
    to: ToOption = None,
    group: GroupOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Write dead letters back."""
    from ringleader.clients.errors import ClientError

    logging.getLogger("ringleader.clients").addHandler(NOWHERE)
    servers_of(bootstrap_server)
    work = Redrive(topic, to, group or f"redrive-{topic}", dry_run)
    try:
        asyncio.run(work.run(bootstrap_server, command_config))
    except (ClientError, OSError) as error:
        fail(f"{str(error).rstrip('.')}; {work.written.total()} records were written before.")
    print(json.dumps(work.as_json()) if as_json else work.in_words())


class Redrive:
    """One pass, up to the ends of the partitions at its beginning."""

    def __init__(self, topic: str, to: str | None, group: str, dry_run: bool) -> None:
        self._topic = topic
        self._to = to
        self._group = group
        self._dry_run = dry_run
        self.written: Counter[str] = Counter()
        """Records by the topic that they went to."""
        self.left = 0
        """Records that are no dead letters."""

    async def run(self, bootstrap: str, command_config: Path | None) -> None:
        """Raises ClientError."""
        from ringleader.clients.consumer import GroupConsumer
        from ringleader.clients.producer import Producer

        _, security = security_of(command_config)
        connection: Any = {"tls": security.tls, "sasl": security.sasl}
        consumer = GroupConsumer(
            bootstrap,
            self._group,
            [self._topic],
            auto_offset_reset="earliest",
            auto_commit=False,
            isolation_level="read_committed",
            **connection,
        )
        async with consumer, Producer(bootstrap, max_block_ms=TIMEOUT_MS, **connection) as producer:
            places = await consumer.wait_assigned(READ_S)
            if not places:
                fail(f"There is no topic {self._topic}, or another member of {self._group} has all of it.")
            ends = await consumer.end_offsets(places)
            while await self._behind(consumer, ends):
                batches = await consumer.getmany(timeout_s=READ_S)
                letters = [
                    one for batch in batches for one in batch if one.offset < ends[batch.topic_partition]
                ]
                await self._write(producer, letters)
                if not self._dry_run and batches:
                    await consumer.commit(
                        {
                            one.topic_partition: min(one.next_offset, ends[one.topic_partition])
                            for one in batches
                        }
                    )

    async def _behind(self, consumer: Any, ends: dict[TopicPartition, int]) -> bool:
        for place, end in ends.items():
            if await consumer.position(place) < end:
                return True
        return False

    async def _write(self, producer: Producer, letters: list[Record]) -> None:
        from ringleader.clients.process.dead_letters import origin_of, own_headers

        sent = []
        for letter in letters:
            origin = origin_of(letter)
            if origin is None:
                self.left += 1
                continue
            topic = self._to or origin.topic
            if self._dry_run:
                self.written[topic] += 1
                continue
            headers = own_headers(letter.headers)
            sent.append((topic, await producer.send(topic, letter.value, key=letter.key, headers=headers)))
        for topic, result in sent:
            await result
            self.written[topic] += 1

    def as_json(self) -> dict[str, Any]:
        """The outcome."""
        return {
            "topic": self._topic,
            "group": self._group,
            "dry_run": self._dry_run,
            "written": dict(sorted(self.written.items())),
            "left": self.left,
        }

    def in_words(self) -> str:
        """The outcome."""
        verb = "Would write" if self._dry_run else "Wrote"
        count = self.written.total()
        to = ", ".join(f"{number} to {topic}" for topic, number in sorted(self.written.items()))
        letters = f"{count} dead letter{'' if count == 1 else 's'} of {self._topic}"
        text = f"{verb} {letters}{': ' + to if to else ''}."
        others = f" {self.left} records there are no dead letters." if self.left else ""
        return text + others
