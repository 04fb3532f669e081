"""Any request of these families is answered, and the answer fits its version."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.coordinator.config import Settings
from ringleader.coordinator.runtime import GroupRuntime, TransactionRuntime
from ringleader.coordinator.security.acls import Authorizer
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.principal import ANONYMOUS
from ringleader.coordinator.security.store import FileStore
from ringleader.coordinator.server.call import Answerable, Call, Message, NoAnswer
from ringleader.coordinator.server.handlers import acls, admin, data, security, topics, transactions
from ringleader.coordinator.server.services import LocalServices
from ringleader.coordinator.topics import Topics
from ringleader.protocol.frames import request_class, response_class
from tests.support.handled import handled
from tests.support.listening import listener_at
from tests.support.memory_store import MemoryStorage
from tests.support.shares import share
from tests.support.topiclog import WallClock, batch, produced
from tests.support.wire_values import values

KEYS = [0, 1, 2, 3, 17, 19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32, 33, 36, 37, 44, 60]
PAIRS = [
    (key, version)
    for key in KEYS
    if (kind := request_class(key)) is not None
    for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
]
EXAMPLES = share(8, whole=25)
CLOSED = {29, 30, 31}
"""With a 0 for a type or an operation a request about ACLs cannot be read."""
NAMES = ["a", "a", "b", "none", "ä", ""]
BATCHES = [batch(2), batch(1), produced(4, 0), produced(4, 0, transactional=True), b"", batch(1)[:-1]]
PLACES = {"index", "partition", "partition_index"}
OFFSETS = {"fetch_offset", "offset", "timestamp"}


class Outcome(Answerable):
    """The connection of one call: how it ended."""

    principal = ANONYMOUS
    listener = listener_at()

    def __init__(self) -> None:
        self.future: asyncio.Future[Message | NoAnswer | None] = asyncio.get_running_loop().create_future()

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        self.future.set_result(response)

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("no handler makes frames")

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        assert reason
        self.future.set_result(None)


@contextlib.asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Any]:
    """The handlers; failures of their coroutines fail the test."""
    config = Settings(data_dir=directory, storage_sync="off")
    log = Topics(directory, config, WallClock(), sync=False)
    await log.open()
    tasks: set[asyncio.Task[None]] = set()

    def spawn(call: Call | None, coroutine: Any) -> None:
        tasks.add(asyncio.get_running_loop().create_task(coroutine))

    groups = GroupRuntime(config, MemoryStorage())
    await groups.start()
    coordinator = TransactionRuntime(config, MemoryStorage(), log, groups)
    await coordinator.start()
    guards = Security(FileStore(directory / "security.json"), Authorizer(["User:ANONYMOUS"]))
    await guards.start()
    services = LocalServices(
        authorizer=guards.authorizer,
        settings=config,
        runtime=groups,
        topics=log,
        node_id=1,
        cluster_id="cluster",
        spawn=spawn,
        transactions=coordinator,
        security=guards,
    )
    handlers = {}
    for family in (topics, data, admin, transactions, security, acls):
        handlers.update(family.register(services))

    async def ask(request: Message, version: int) -> None:
        for name in ("a", "b"):
            if log.describe(name) is None:
                await log.create(name, 2)
        outcome = Outcome()
        call = Call(outcome, request.API_KEY, version, 1, None, "/127.0.0.1")
        response = handled(handlers[request.API_KEY], call, request)
        async with asyncio.timeout(30):
            while response is None and not outcome.future.done():
                waits: list[asyncio.Future[Any]] = [outcome.future, *tasks]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in tasks if task.done()]:
                    tasks.discard(task)
                    task.result()
        response = response or outcome.future.result()
        if response is None or isinstance(response, NoAnswer):
            assert getattr(request, "acks", None) == 0 or request.API_KEY in CLOSED
            return
        kind = response_class(request.API_KEY)
        assert kind is not None
        assert kind.decode(response.encode(version), version) is not None

    try:
        yield ask
    finally:
        await asyncio.gather(*tasks)
        await coordinator.stop()
        await groups.stop()
        await log.close()


@pytest.fixture(scope="module")
def ask() -> Iterator[Any]:
    """Sends a request and waits for its end; the same log for all, so that requests meet what others left."""
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner() as runner:
        room = serving(Path(directory))
        send = runner.run(room.__aenter__())
        yield lambda request, version: runner.run(send(request, version))
        runner.run(room.__aexit__(None, None, None))


def make_likely(value: Any, rng: random.Random) -> None:
    """Most names, partitions and offsets become such as there are; waits become short."""
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, list):
            for entry in found:
                if is_dataclass(entry):
                    make_likely(entry, rng)
        if rng.random() < 0.15:
            continue
        if field.name in ("name", "topic", "resource_name") and found is not None:
            setattr(value, field.name, rng.choice(NAMES))
        elif field.name in PLACES:
            setattr(value, field.name, rng.randint(-1, 2))
        elif field.name in OFFSETS:
            setattr(value, field.name, rng.randint(-4, 5))
        elif field.name in ("transactional_id", "v3_and_below_transactional_id"):
            setattr(value, field.name, rng.choice(NAMES))
        elif field.name in ("producer_id", "v3_and_below_producer_id"):
            setattr(value, field.name, rng.randint(-1, 9))
        elif field.name in ("producer_epoch", "v3_and_below_producer_epoch"):
            setattr(value, field.name, rng.randint(-1, 3))
        elif field.name == "records":
            setattr(value, field.name, rng.choice(BATCHES))
        elif field.name in ("num_partitions", "count"):
            setattr(value, field.name, rng.randint(-2, 5))
        elif field.name in ("resource_pattern_type", "pattern_type_filter", "permission_type", "operation"):
            setattr(value, field.name, rng.randint(1, 4))
        elif field.name in ("resource_type_filter", "resource_type") and "Acl" in type(value).__name__:
            setattr(value, field.name, rng.randint(1, 5))
        elif field.name == "current_leader_epoch":
            setattr(value, field.name, rng.randint(-1, 1))


@pytest.mark.share
@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_any_request_is_answered(ask: Any, key: int, version: int) -> None:
    kind = request_class(key)
    assert kind is not None

    @settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(values(kind, version), st.randoms(use_true_random=False))
    def any_request(request: Any, rng: random.Random) -> None:
        make_likely(request, rng)
        if hasattr(request, "max_wait_ms"):
            request.max_wait_ms = min(request.max_wait_ms, 1)
        ask(request, version)

    any_request()
