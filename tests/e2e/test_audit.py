"""The accesses and refusals of a daemon whose clients log in: in its log, its journal and its metrics, which
only a client with the token can read."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringleader import Admin, GroupConsumer, PartitionConsumer, SaslScram
from ringleader.cli import run
from tests.support.daemon import Daemon

PASSWORD = "the password of both"
TOKEN = "correct-horse-battery"
JOURNAL = "__ringleader_journal"
WAIT_S = 60.0


def _user(name: str) -> SaslScram:
    return SaslScram(name, PASSWORD)


async def _journal(daemon: Daemon, last: str) -> list[dict[str, Any]]:
    """All of it up to the first record of that event."""
    values: list[dict[str, Any]] = []
    reading = PartitionConsumer(
        daemon.bootstrap, [(JOURNAL, 0)], sasl=_user("admin"), auto_offset_reset="earliest"
    )
    async with reading as consumer, asyncio.timeout(WAIT_S):
        while not any(value.get("event") == last for value in values):
            for batch in await consumer.getmany(timeout_s=5):
                values += [json.loads(record.value or b"") for record in batch.records]
    return values


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Of the password of two users that there are, and of a token."""
    made = {"password": PASSWORD, "token": TOKEN}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    for name in ("admin", "mallory"):
        where = ["--password-file", str(tmp_path / "password"), "--data-dir", str(tmp_path / "data")]
        assert run(["users", "add", name, *where]) == 0
    return {name: tmp_path / name for name in made}


async def test_it_is_known_who_did_what_and_who_was_refused_what(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    options = ["--authorizer", "acl", "--super-users", "User:admin"]
    options += ["--group-initial-rebalance-delay-ms", "0"]
    options += ["--http-listen", "127.0.0.1:0", "--http-token-file", str(files["token"])]
    with Daemon(tmp_path, options=options, listener="SASL_PLAINTEXT") as daemon:
        async with Admin(daemon.bootstrap, sasl=_user("admin")) as admin:
            await admin.create_topic("orders", 2)
            taking = GroupConsumer(
                daemon.bootstrap, "billing", ["orders"], sasl=_user("admin"), auto_offset_reset="earliest"
            )
            async with taking as consumer:
                await consumer.getmany(timeout_s=1)
            refused = GroupConsumer(daemon.bootstrap, "billing", ["orders"], sasl=_user("mallory"))
            with pytest.raises(Exception, match="AUTHORIZATION_FAILED"):
                async with refused as consumer:
                    await consumer.getmany(timeout_s=WAIT_S)
            await admin.delete_topics(["orders"])
        values = await _journal(daemon, "topic deleted")
        log = daemon.log()
        [address] = re.findall(r"health and metrics.*?address=(\S+)", log)
        statuses = [_status(address, given) for given in (None, "not the token at all", TOKEN)]
    assert statuses == [401, 401, 200]
    events = {value["event"]: value for value in values if value["kind"] == "event"}
    assert events["topic created"]["principal"] == events["topic deleted"]["principal"] == "User:admin"
    refusals = [value for value in values if value.get("principal") == "User:mallory"]
    assert refusals
    assert {value["event"] for value in refusals} <= {"refused", "join refused"}
    formed = next(value for value in values if value["kind"] == "rebalance")
    assert {member["principal"] for member in formed["members"]} == {"User:admin"}
    assert re.search(r"\brefused\b.*principal=User:mallory", log)
    assert re.search(r"topic created.*principal=User:admin.*subject=orders", log)
    assert not any(text in log or text in json.dumps(values) for text in (PASSWORD, TOKEN))


def _status(address: str, token: str | None) -> int:
    connection = http.client.HTTPConnection(address, timeout=WAIT_S)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request("GET", "/metrics", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--http-listen", "0.0.0.0:0"],
            "every caller that reaches http.listen 0.0.0.0:0 could read the metrics",
        ),
        (["--http-listen", "127.0.0.1:0", "--http-token-file", "nothing"], "nothing cannot be read"),
    ],
)
def test_an_endpoint_that_would_be_open_is_refused_with_a_sentence(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    command = [sys.executable, "-m", "ringleader", "serve", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
