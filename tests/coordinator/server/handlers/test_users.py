"""Users over the wire: AlterUserScramCredentials and DescribeUserScramCredentials as Kafka answers them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import SHA_256, SHA_512, salt_password
from ringleader.coordinator.security.store import FILE, FileStore
from ringleader.coordinator.server.handlers import users
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialDeletion,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequestUserName,
)
from tests.coordinator.server.handlers.conftest import Ask

PASSWORD = b"open sesame"
TWICE = "A user credential cannot be altered twice in the same request"


@pytest.fixture
async def keeping(ask: Ask, tmp_path: Path) -> AsyncIterator[Ask]:
    """Handlers of a node that keeps users."""
    security = Security(FileStore(tmp_path / FILE), AllowAll())
    await security.start()
    services = dataclasses.replace(ask.services, security=security)
    ask.handlers |= users.register(services)
    ask.services = services
    yield ask
    await security.store.close()


def put(user: str, mechanism: int = 2, iterations: int = 4_096) -> Any:
    kind = SHA_512 if mechanism == 2 else SHA_256
    salted = salt_password(kind, PASSWORD, b"salt", iterations) if iterations > 0 else b""
    return AlterUserScramCredentialsRequestScramCredentialUpsertion(
        user, mechanism, iterations, b"salt", salted
    )


def deletion(user: str, mechanism: int = 2) -> Any:
    return AlterUserScramCredentialsRequestScramCredentialDeletion(user, mechanism)


async def alter(ask: Ask, *put: Any, deletion: Any = ()) -> dict[str, tuple[int, str | None]]:
    answer = await ask(AlterUserScramCredentialsRequest(deletions=list(deletion), upsertions=list(put)))
    found = {one.user: (one.error_code, one.error_message) for one in answer.results}
    assert len(found) == len(answer.results)
    return found


async def described(ask: Ask, *names: str) -> dict[str, Any]:
    users = [DescribeUserScramCredentialsRequestUserName(name) for name in names]
    answer = await ask(DescribeUserScramCredentialsRequest(users=users or None))
    assert (answer.error_code, answer.error_message) == (0, None)
    return {
        one.user: (one.error_code, one.error_message)
        if one.error_code
        else [(info.mechanism, info.iterations) for info in one.credential_infos]
        for one in answer.results
    }


async def test_users_come_and_go(keeping: Ask, tmp_path: Path) -> None:
    assert await described(keeping) == {}
    assert await alter(keeping, put("alice"), put("bob", 1, 8_192)) == {"alice": (0, None), "bob": (0, None)}
    assert await alter(keeping, put("alice", 1)) == {"alice": (0, None)}
    assert await described(keeping) == {"alice": [(1, 4_096), (2, 4_096)], "bob": [(1, 8_192)]}
    security = keeping.services.security
    assert security is not None
    assert security.users.credential("alice", SHA_512).is_of(PASSWORD)
    assert not security.users.credential("alice", SHA_512).is_of(b"another")
    assert await alter(keeping, deletion=[deletion("alice"), deletion("bob", 1)]) == {
        "alice": (0, None),
        "bob": (0, None),
    }
    assert await described(keeping) == {"alice": [(1, 4_096)]}
    assert PASSWORD.decode() not in (tmp_path / FILE).read_text()


async def test_what_is_refused_is_no_matter_for_the_others(keeping: Ask) -> None:
    await alter(keeping, put("old"))
    answers = await alter(
        keeping,
        put("few", iterations=4_095),
        put("many", iterations=16_385),
        put("most", iterations=16_384),
        put("", 2),
        put("__ringleader_node", 1),
        put("other", 3),
        put("negative", -1),
        put("both", 1),
        put("both", 2),
        put("changed"),
        deletion=[
            deletion("nobody"),
            deletion("old", 1),
            deletion("changed"),
            deletion("odd", 0),
            deletion("twice"),
            deletion("twice", 1),
        ],
    )
    assert answers == {
        "few": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        "many": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        "most": (0, None),
        "": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        "__ringleader_node": (
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "__ringleader_node is what nodes call themselves: give the user another name",
        ),
        "other": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "negative": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "odd": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        "both": (ErrorCode.DUPLICATE_RESOURCE, TWICE),
        "changed": (ErrorCode.DUPLICATE_RESOURCE, TWICE),
        "twice": (ErrorCode.DUPLICATE_RESOURCE, TWICE),
        "nobody": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        "old": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    }
    assert await described(keeping) == {"most": [(2, 16_384)], "old": [(2, 4_096)]}


async def test_the_users_that_are_asked_for(keeping: Ask) -> None:
    await alter(keeping, put("alice"))
    assert await described(keeping, "alice", "bob", "bob", "nobody") == {
        "alice": [(2, 4_096)],
        "bob": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
        ),
        "nobody": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: nobody",
        ),
    }


async def test_two_at_once_lose_nothing(keeping: Ask) -> None:
    await asyncio.gather(alter(keeping, put("alice", 1)), alter(keeping, put("alice", 2)))
    assert await described(keeping) == {"alice": [(1, 4_096), (2, 4_096)]}


async def test_a_change_goes_on_when_its_asker_is_gone(keeping: Ask) -> None:
    waiting = keeping.send(AlterUserScramCredentialsRequest(upsertions=[put("alice")]), 0)
    waiting.call.dropped()
    await alter(keeping, put("bob"))
    assert set(await described(keeping)) == {"alice", "bob"}


def test_no_secret_is_shown() -> None:
    assert "sesame" not in repr(
        AlterUserScramCredentialsRequest(
            upsertions=[AlterUserScramCredentialsRequestScramCredentialUpsertion("a", 2, 1, b"", b"sesame")]
        )
    )
