"""``ringleader produce``: records into a topic, from options, a file, or a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.asking import connect
from ringleader.cli.common import (
    BOOTSTRAP,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    fail,
    pair,
    utf8,
)

HELP = (
    "Write records to a topic, of Ringleader or of any Kafka: one from the options, or one for each line of "
    "a file or of standard input.\n\n"
    "A record with a key goes to the partition that Kafka's own producer would choose; records without one "
    "fill one partition's batch after the other's. Nothing is written twice, even if a connection breaks "
    "(idempotent, acks=all). Ends with a sentence that says what went where; exit code 1 if a broker "
    "refused, 2 if the input was wrong.\n\n"
    "With --format json a line is an object with a value and, if wanted, key, headers, partition and "
    "timestamp_ms. A value or key that is not text is written as compact JSON; null is none.\n\n"
    "Examples:\n\n"
    "  ringleader produce orders --key 7 --value '{\"total\": 12}' --header source=web\n\n"
    "  printf '7:first\\n8:second\\n' | ringleader produce orders --key-separator :\n\n"
    "  ringleader produce orders --file orders.jsonl --format json --compression zstd"
)


class InputFormat(StrEnum):
    """The form of a line."""

    lines = "lines"
    json = "json"


class Codec(StrEnum):
    """How batches are compressed."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Acks(StrEnum):
    """The replicas that have to have a record."""

    all = "all"
    leader = "1"


TopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", parser=utf8, help="Topic.", show_default=False)
]
ValueOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Value of a single record to write.", show_default=False),
]
NullValueOption = Annotated[
    bool,
    typer.Option(
        "--null-value",
        help="Write a single record without a value (a tombstone): compaction deletes its key.",
    ),
]
KeyOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Key of every record.", show_default=False)
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Header of every record; may be repeated.", show_default=False),
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File to read records from. Default: standard input.", show_default=False
    ),
]
FormOption = Annotated[
    InputFormat, typer.Option("--format", help="Format of a line: a value, or a JSON object.")
]
KeySeparatorOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Separator between key and value in a line; \\t is a tab.",
        show_default=False,
    ),
]
PartitionOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", min=0, help="Partition for records that do not name one.", show_default=False
    ),
]
CompressionOption = Annotated[Codec, typer.Option(help="Compression of batches.")]
AcksOption = Annotated[
    Acks,
    typer.Option(
        help="Acknowledgements to wait for. all: every in-sync replica. 1: the leader only; a "
        "record can be lost when it crashes."
    ),
]
IdempotentOption = Annotated[
    bool,
    typer.Option(
        help="Whether brokers discard duplicates that are sent after a broken connection "
        "(enable.idempotence). Not possible with --acks 1."
    ),
]
MaxRequestSizeOption = Annotated[
    int,
    typer.Option(
        metavar="BYTES",
        min=1,
        max=256 * 1024 * 1024,
        help="Largest request and record. The topic's max.message.bytes is a limit, too.",
    ),
]
DeliveryTimeoutMsOption = Annotated[
    int, typer.Option(metavar="MS", min=1, help="Time limit for writing a record, including retries.")
]
MaxBlockMsOption = Annotated[
    int, typer.Option(metavar="MS", min=1, help="Time limit for the topic to exist.")
]


def produce(
    topic: TopicArgument,
    value: ValueOption = None,
    null_value: NullValueOption = False,
    key: KeyOption = None,
    header: HeaderOption = None,
    file: FileOption = None,
    form: FormOption = InputFormat.lines,
    key_separator: KeySeparatorOption = None,
    partition: PartitionOption = None,
    compression: CompressionOption = Codec.none,
    acks: AcksOption = Acks.all,
    idempotent: IdempotentOption = True,
    max_request_size: MaxRequestSizeOption = 1_048_576,
    delivery_timeout_ms: DeliveryTimeoutMsOption = 120_000,
    max_block_ms: MaxBlockMsOption = 5_000,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Write records to a topic."""
    one = value is not None or null_value
    _check(one, value, null_value, key, file, form, key_separator)

    from ringleader.cli.records_in import json_reader, line_reader
    from ringleader.cli.writing import Writing
    from ringleader.clients.produce.producer import Producer, ProduceSettings
    from ringleader.clients.produce.rows import Row
    from ringleader.protocol.compression import Compression

    its_key = None if key is None else os.fsencode(key)
    headers = tuple((name, os.fsencode(text)) for name, text in map(_header, header or []))
    if form is InputFormat.json:
        reader = json_reader(headers, partition)
    else:
        separator = None if key_separator is None else os.fsencode(key_separator.replace("\\t", "\t"))
        reader = line_reader(its_key, separator, headers, partition)
    settings = ProduceSettings(
        acks=-1 if acks is Acks.all else 1,
        idempotent=idempotent and acks is Acks.all,
        codec=Compression[compression.upper()],
        max_request_bytes=max_request_size,
        delivery_timeout_s=delivery_timeout_ms / 1000,
        max_block_s=max_block_ms / 1000,
    )
    with connect(bootstrap_server, command_config) as cluster:
        run = Writing(topic, Producer(cluster, settings))
        if one:
            record = Row(
                key=its_key,
                value=None if value is None else os.fsencode(value),
                headers=headers,
                partition=partition,
            )
            run.written_to_the_end(iter([[record]]))
        else:
            with _input(file) as descriptor:
                run.written_to_the_end(run.rows(descriptor, reader, max_request_size))


def _check(
    one: bool,
    value: str | None,
    null_value: bool,
    key: str | None,
    file: Path | None,
    form: InputFormat,
    key_separator: str | None,
) -> None:
    """Options that contradict each other."""
    if value is not None and null_value:
        fail("--value and --null-value: a record has one or the other.", WRONG_INPUT)
    if one and (file is not None or key_separator is not None or form is InputFormat.json):
        fail("--value writes one record; leave out --file, --format and --key-separator.", WRONG_INPUT)
    if key_separator == "":
        fail("--key-separator: give at least one character.", WRONG_INPUT)
    if key is not None and key_separator is not None:
        fail("--key and --key-separator: the key is given, or it is in the line.", WRONG_INPUT)
    if form is InputFormat.json and (key is not None or key_separator is not None):
        fail("--format json: the key is in the object; leave out --key and --key-separator.", WRONG_INPUT)


def _header(text: str) -> tuple[str, str]:
    name, value = pair("--header", text, "source=web")
    if not name.isprintable():
        fail(f"--header: a name is text, not {name!r}.", WRONG_INPUT)
    return name, value


@contextlib.contextmanager
def _input(file: Path | None) -> Iterator[int]:
    """The descriptor to read from."""
    from ringleader.cli.writing import typed

    if file is None:
        if sys.stdin is None:
            fail("Standard input is closed; give --value or --file.", WRONG_INPUT)
        if typed():
            print("One record a line; Ctrl-D ends.", file=sys.stderr)
        yield sys.stdin.fileno()
        return
    try:
        opened = os.open(file, os.O_RDONLY)
    except OSError as error:
        fail(f"--file: {error.strerror}: {file}.", WRONG_INPUT)
    try:
        yield opened
    finally:
        os.close(opened)
