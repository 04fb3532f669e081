"""A user beyond request_percentage gets no more done by a new connection for each request."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from ringleader.protocol import messages as kafka
from tests.support.daemon import Daemon
from tests.support.quota_scripts import altering
from tests.support.registered import PASSWORD, ScramClient
from tests.support.served import Client, connected

FREE, LIMITED = "free", "limited"
PERCENT = 2.0
AT_ONCE = 4
REQUESTS = 150
"""Of the user without a quota, while the other one does what it may."""


@contextlib.asynccontextmanager
async def connected_as(port: int, user: str) -> AsyncIterator[Client]:
    async with connected("127.0.0.1", port) as client:
        scram = ScramClient(user)
        assert (await client.call(kafka.SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)).error_code == 0
        first = await client.call(kafka.SaslAuthenticateRequest(auth_bytes=scram.first), 2)
        last = kafka.SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes))
        assert (await client.call(last, 2)).error_code == 0
        yield client


async def ask_by_new_connections(port: int, user: str, answered: Counter[str]) -> None:
    while True:
        async with connected_as(port, user) as client:
            client.send(kafka.MetadataRequest(topics=None), 9)
            await client.frame()
        answered[user] += 1


async def enough(answered: Counter[str]) -> None:
    while answered[FREE] < REQUESTS:  # noqa: ASYNC110 - each turn of the loop is one of its requests
        await asyncio.sleep(0.01)


async def test_a_connection_for_each_request_gets_round_no_quota(tmp_path: Path) -> None:
    for user in (FREE, LIMITED):
        adding = [
            sys.executable,
            "-m",
            "ringleader",
            "users",
            "add",
            user,
            "--data-dir",
            str(tmp_path / "data"),
        ]
        await asyncio.to_thread(
            subprocess.run, adding, input=f"{PASSWORD}\n".encode(), check=True, stdout=subprocess.DEVNULL
        )
    daemon = Daemon(
        tmp_path, topics=["wide:2000"], options=["--quota-window-num", "4"], listener="SASL_PLAINTEXT"
    )
    await asyncio.to_thread(daemon.start)
    try:
        async with connected_as(daemon.port, FREE) as administrator:
            quota = altering(({"user": LIMITED}, {"request_percentage": PERCENT}))
            answer = await administrator.call(quota, 1)
            assert [entry.error_code for entry in answer.entries] == [0]
        answered: Counter[str] = Counter()
        async with asyncio.TaskGroup() as group:
            asking = [
                group.create_task(ask_by_new_connections(daemon.port, user, answered))
                for user in (FREE, LIMITED)
                for _ in range(AT_ONCE)
            ]
            await enough(answered)
            for task in asking:
                task.cancel()
        print(dict(answered))
        assert 0 < answered[LIMITED] < answered[FREE] / 3
    finally:
        await asyncio.to_thread(daemon.stop)
