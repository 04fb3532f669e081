"""Producers in copies of their process: each use of them there is one clear error, and the parent goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ringleader import SyncPartitionConsumer
from tests.support.daemon import Daemon

PATIENCE_S = 100

HEAD = """
import asyncio, multiprocessing, os, sys, threading, time
from ringleader import ClientError, Producer, SyncProducer
from ringleader.clients.model import GroupMetadata

where, count = sys.argv[1], 400
tid = {"transactional_id": "a"}
fork = multiprocessing.get_context("fork")
GROUP = GroupMetadata("g", 1, "m", None)

def calls(producer):
    # `Producer` says first that it has no transactions.
    ending = {
        "begin": producer.begin_transaction,
        "commit": producer.commit_transaction,
        "abort": producer.abort_transaction,
        "offsets": lambda: producer.send_offsets_to_transaction({("t", 0): 1}, GROUP),
    }
    transactions = isinstance(producer, SyncProducer) or producer.settings.transactional_id
    return {
        "send": lambda: producer.send("t", b"child"),
        "send_and_wait": lambda: producer.send_and_wait("t", b"child"),
        "flush": producer.flush,
        "partitions": lambda: producer.partitions("t"),
        "start": producer.start,
        "stop": producer.stop,
    } | (ending if transactions else {})

def tell(name, error):
    os.write(1, f"{name}: {type(error).__name__}: {error}\\n".encode())

def ask(found):
    for name, call in found.items():
        try:
            result = call()
            if asyncio.iscoroutine(result):
                asyncio.run(result)
            os.write(1, f"{name} went through\\n".encode())
        except ClientError as error:
            tell(name, error)

def copies(child):
    if (pid := os.fork()) == 0:
        child()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    process = fork.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0

def said(sent):
    for found in sent:
        os.write(1, b"at %d %d\\n" % (found.partition, found.offset))

def own(kind):
    if kind is SyncProducer:
        with kind(where) as new:
            new.send_and_wait("t", b"own")
    else:
        async def write():
            async with kind(where) as new:
                await new.send_and_wait("t", b"own")
        asyncio.run(write())
"""

THREADS = """
with SyncProducer(where, linger_ms=1) as producer:
    sent, forked = [], threading.Event()

    def write():
        number = 0
        while number < count or not forked.is_set():
            sent.append(producer.send("t", b"%d" % number))
            number += 1

    writing = threading.Thread(target=write)
    writing.start()

    def child():
        ask(calls(producer) | {"result": sent[-1].result, "exception": sent[-1].exception})
        own(SyncProducer)

    while not sent:
        pass
    for _ in range(3):
        copies(child)
    if (pid := os.fork()) == 0:
        sys.exit()  # the whole end of an interpreter, and of the block
    assert os.waitpid(pid, 0)[1] == 0
    forked.set()
    writing.join()
    said(found.result() for found in sent)
"""

LOOP = """
async def main():
    async with Producer(where, linger_ms=1) as producer:
        sent = []
        for number in range(count):
            sent.append(await producer.send("t", b"%d" % number))
            if number % 150 == 100:
                def child():
                    ask(calls(producer))
                    own(Producer)
                copies(child)
        said(await asyncio.gather(*sent))
asyncio.run(main())
"""

THREADS_TRANSACTION = """
def child(how):
    try:
        with producer.transaction():
            pass
    except ClientError as error:
        tell("transaction", error)
    ask(calls(producer))
    how()

def leaves():
    raise SystemExit(0)

with SyncProducer(where, **tid) as producer:
    sent = []
    for part in range(2):
        try:
            with producer.transaction():
                for number in range(count // 2):
                    sent.append(producer.send("t", b"%d" % (part * count // 2 + number)))
                if (pid := os.fork()) == 0:
                    child(leaves if part else lambda: None)
                else:
                    assert os.waitpid(pid, 0)[1] == 0
        except ClientError as error:
            if pid:
                raise
            tell("block", error)
            os._exit(0)
    said(found.result() for found in sent)
"""

LOOP_TRANSACTION = """
async def main():
    async with Producer(where, **tid) as producer:
        sent = []
        for part in range(2):
            try:
                async with producer.transaction():
                    for number in range(count // 2):
                        sent.append(await producer.send("t", b"%d" % (part * count // 2 + number)))
                    if (pid := os.fork()) == 0:
                        ask(calls(producer))
                        if part:
                            raise LookupError
                    else:
                        assert os.waitpid(pid, 0)[1] == 0
            except (ClientError, LookupError) as error:
                if pid:
                    raise
                tell("block", error) if isinstance(error, ClientError) else None
                os._exit(0)
        said(await asyncio.gather(*sent))
asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize(
    ("script", "errors", "own"),
    [
        (THREADS, 6 * 12, 6),
        (LOOP, 4 * 6, 4),
        (THREADS_TRANSACTION, 2 * 11 + 1, 0),
        (LOOP_TRANSACTION, 2 * 10 + 1, 0),
    ],
    ids=["threads", "loop", "threads-transaction", "loop-transaction"],
)
def test_in_a_copy_of_the_process_each_call_says_so_and_the_parent_goes_on(
    tmp_path: Path, script: str, errors: int, own: int
) -> None:
    """Each record of the parent is there once, at the offset that its result says."""
    with Daemon(tmp_path, options=("--topic", "t:1")) as daemon:
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(HEAD) + script, daemon.bootstrap],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr, ended.stderr
        lines = ended.stdout.splitlines()
        found = [line.split() for line in lines if line.startswith("at ")]
        places = [(int(partition), int(offset)) for _, partition, offset in found]
        reported = [line for line in lines if not line.startswith("at ")]
        assert all("a copy of it (fork): make a new producer here" in line for line in reported), reported
        assert len(reported) == errors
        values: dict[tuple[int, int], bytes | None] = {}
        options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        with SyncPartitionConsumer(daemon.bootstrap, ["t"], **options) as consumer:  # type: ignore[arg-type]
            while any((consumer.lag()).values()) or not values:
                for batch in consumer.getmany(timeout_s=PATIENCE_S):
                    values |= {(one.partition, one.offset): one.value for one in batch}
    assert [values[place] for place in places] == [b"%d" % number for number in range(len(places))]
    assert len(places) >= 400
    assert sorted(values.values()).count(b"own") == own  # type: ignore[type-var]
    assert len(values) == len(places) + own
