"""The command line as users run it: a process, its input, its output, its exit code."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

import confluent_kafka

from ringleader.cli import run

PATIENCE_S = 60.0


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(bootstrap: str) -> dict[str, str]:
    """The environment of a command that asks this server."""
    return {**os.environ, "RINGLEADER_BOOTSTRAP_SERVER": bootstrap, "COLUMNS": "200"}


def command_line(*arguments: str) -> list[str]:
    """The arguments that start a command."""
    return [sys.executable, "-m", "ringleader", *arguments]


def run_command(bootstrap: str, *arguments: str, stdin: bytes | str = b"") -> Done:
    """Run a command to its end."""
    done = subprocess.run(
        command_line(*arguments),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        env=environment(bootstrap),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    # A command that could not do something says so in a sentence.
    assert "Traceback (most recent call last)" not in err, err
    return Done(done.returncode, out, err)


def run_here(bootstrap: str | None, *arguments: str, stdin: bytes | str = b"") -> Done:
    """Run a command without the processor time that a process takes to start, a quarter of a second: for all
    but signals, terminals, pipes and what stands in the environment. None: its arguments say what to ask."""
    server = (
        () if bootstrap is None or "--bootstrap-server" in arguments else ("--bootstrap-server", bootstrap)
    )
    with contextlib.ExitStack() as stack:
        # Files, since records are read and written past the text streams.
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        stack.callback(setattr, sys, "stdin", sys.stdin)
        sys.stdin, *texts = (
            stack.enter_context(io.TextIOWrapper(one, newline="")) for one in (given, out, err)
        )
        with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
            code = run([*arguments, *server])
        for text in texts:
            text.flush()
        outputs = []
        for file in (out, err):
            file.seek(0)
            outputs.append(file.read().decode())
    return Done(code, *outputs)


class Found(NamedTuple):
    """A record as another client reads it."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp_ms: int


def records(bootstrap: str, topic: str, count: int) -> list[Found]:
    """The first `count` records of a topic, by librdkafka; by partition and offset."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    found: dict[tuple[int, int], Found] = {}
    try:
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        beginning = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(topic, number, beginning) for number in partitions])
        while len(found) < count:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{len(found)} records instead of {count}"
            assert message.error() is None, message.error()
            partition, offset, headers = message.partition(), message.offset(), message.headers() or []
            assert partition is not None
            assert offset is not None
            found[partition, offset] = Found(
                partition,
                message.key(),
                message.value(),
                list(headers.items() if isinstance(headers, dict) else headers),
                message.timestamp()[1],
            )
    finally:
        consumer.close()
    return [found[place] for place in sorted(found)]
