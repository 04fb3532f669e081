"""Quotas over the wire: how they are kept, and how they are described (compared with Kafka in
tests/interop)."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.security import quotas as limits
from ringleader.coordinator.security.acls import AllowAll, Authorizer
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.store import FILE, FileStore
from ringleader.coordinator.server.handlers import quotas
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.handlers.conftest import Ask
from tests.support.quota_scripts import ALICE, BOTH, SCRIPT, altering, describing


async def keep(ask: Ask, directory: Path, authorizer: Authorizer | None = None) -> Security:
    security = Security(FileStore(directory / FILE), AllowAll() if authorizer is None else authorizer)
    await security.start()
    ask.services = dataclasses.replace(ask.services, security=security, authorizer=security.authorizer)
    ask.handlers |= quotas.register(ask.services)
    return security


@pytest.fixture
async def keeping(ask: Ask, tmp_path: Path) -> AsyncIterator[Ask]:
    """Handlers of a node that keeps quotas."""
    security = await keep(ask, tmp_path)
    yield ask
    await security.store.close()


async def described(ask: Ask) -> dict[str, dict[str, float]]:
    answer = await ask(describing())
    return {
        limits.to_key({one.entity_type: one.entity_name for one in entry.entity}): {
            one.key: one.value for one in entry.values
        }
        for entry in answer.entries
    }


async def codes(ask: Ask, request: Any) -> list[int]:
    return [entry.error_code for entry in (await ask(request)).entries]


async def test_quotas_come_and_go_and_are_there_after_a_start(keeping: Ask, tmp_path: Path) -> None:
    assert await described(keeping) == {}
    both, alice = limits.to_key(BOTH), limits.to_key(ALICE)
    rates: dict[str, float | None] = {"producer_byte_rate": 5.0, "request_percentage": 0.5}
    made = altering((ALICE, rates), (BOTH, {"consumer_byte_rate": 7.0}))
    assert await codes(keeping, made) == [0, 0]
    assert await described(keeping) == {
        alice: {"producer_byte_rate": 5.0, "request_percentage": 0.5},
        both: {"consumer_byte_rate": 7.0},
    }
    dry = altering((ALICE, {"producer_byte_rate": None}), validate_only=True)
    assert await codes(keeping, dry) == [0]
    removal = altering((ALICE, {"request_percentage": None}), (BOTH, {"consumer_byte_rate": None}))
    assert await codes(keeping, removal) == [0, 0]
    assert await described(keeping) == {alice: {"producer_byte_rate": 5.0}}
    await keep(keeping, tmp_path)
    assert await described(keeping) == {alice: {"producer_byte_rate": 5.0}}


async def test_everything_is_answered(keeping: Ask) -> None:
    for request in SCRIPT:
        answer = await keeping(request)
        assert answer.throttle_time_ms == 0
    assert len(await described(keeping)) == 10


async def test_changes_at_one_time_lose_nothing(keeping: Ask) -> None:
    names = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    await asyncio.gather(*(keeping(altering((ALICE, {name: 1.0}))) for name in names))
    assert await described(keeping) == {limits.to_key(ALICE): dict.fromkeys(names, 1.0)}


async def test_there_is_an_end_to_it(keeping: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_ENTITIES", 2)
    rate: dict[str, float | None] = {"producer_byte_rate": 5.0}
    assert await codes(keeping, altering((ALICE, rate), (BOTH, rate))) == [0, 0]
    assert await codes(keeping, altering(({"user": "bob"}, rate))) == [ErrorCode.POLICY_VIOLATION]
    assert await codes(keeping, altering((ALICE, {"producer_byte_rate": None}))) == [0]
    assert await codes(keeping, altering(({"user": "b" * 1_025}, rate))) == [ErrorCode.INVALID_REQUEST]
    assert await codes(keeping, altering(({"user": "bob"}, {"request_percentage": float("nan")}))) == [
        ErrorCode.INVALID_REQUEST
    ]
    assert await codes(keeping, altering(({"user": "bob"}, {"request_percentage": float("inf")}))) == [
        ErrorCode.INVALID_REQUEST
    ]


async def test_a_client_without_the_right_is_refused(ask: Ask, tmp_path: Path) -> None:
    await keep(ask, tmp_path, Authorizer(["User:admin"], allow_everyone_if_no_acl_found=False))
    refused = await ask(altering((ALICE, {"producer_byte_rate": 5.0}), (ALICE, {"producer_byte_rate": 5.0})))
    assert [entry.error_code for entry in refused.entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    answer = await ask(describing())
    assert (answer.error_code, answer.entries) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)


async def test_a_file_whose_quotas_cannot_be_read_is_refused(ask: Ask, tmp_path: Path) -> None:
    security = await keep(ask, tmp_path)
    await ask(altering((ALICE, {"producer_byte_rate": 5.0})))
    await security.store.close()
    path = tmp_path / FILE
    document = json.loads(path.read_text())
    for damaged in ({"nothing": {"producer_byte_rate": 1}}, {limits.to_key(ALICE): 5}):
        path.write_text(json.dumps(document | {"quotas": damaged}))
        with pytest.raises(DamagedError, match="a quota"):
            await Security(FileStore(path), AllowAll()).start()
