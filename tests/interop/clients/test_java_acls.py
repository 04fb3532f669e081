"""Kafka's own kafka-acls, as it is, against a daemon that asks ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.team import PARTITIONS, TOPIC
from tests.interop.clients.test_java_console import Console
from tests.support.daemon import Daemon

HEAD = "Current ACLs for resource `ResourcePattern"
REMOVE = "kafka-acls --remove --force"
ADD = "kafka-acls --add --allow-principal User:bob"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon whose super user is who says nothing."""
    options = ["--authorizer", "acl", "--super-users", "User:ANONYMOUS"]
    with Daemon(tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"], options=options) as running:
        yield running


@pytest.fixture
async def console(guarded: Daemon, java_clients: JavaClients) -> Console:
    """The tools."""
    found = Console(guarded.bootstrap, java_clients)
    await found.open()
    return found


async def listed(console: Console, more: str = "") -> list[str]:
    """The lines of its list."""
    lines = await console.lines(f"kafka-acls --list {more}")
    return sorted(line.strip() for line in lines)


async def test_acls_are_made_listed_and_removed(console: Console) -> None:
    assert await listed(console) == []
    await console.lines(f"{ADD} --operation Read --operation Describe --topic {TOPIC} --allow-host 10.0.0.1")
    await console.lines("kafka-acls --add --deny-principal User:eve --operation All --group *")
    assert await listed(console) == [
        "(principal=User:bob, host=10.0.0.1, operation=DESCRIBE, permissionType=ALLOW)",
        "(principal=User:bob, host=10.0.0.1, operation=READ, permissionType=ALLOW)",
        "(principal=User:eve, host=*, operation=ALL, permissionType=DENY)",
        f"{HEAD}(resourceType=GROUP, name=*, patternType=LITERAL)`:",
        f"{HEAD}(resourceType=TOPIC, name={TOPIC}, patternType=LITERAL)`:",
    ]
    matching = await listed(console, "--group anything --resource-pattern-type match")
    assert [line for line in matching if line.startswith("(")] == [
        "(principal=User:eve, host=*, operation=ALL, permissionType=DENY)"
    ]
    await console.lines(f"{REMOVE} --group *")
    of_bob = f"--topic {TOPIC} --allow-principal User:bob --allow-host 10.0.0.1"
    await console.lines(f"{REMOVE} {of_bob} --operation Read")
    assert [line for line in await listed(console) if line.startswith("(")] == [
        "(principal=User:bob, host=10.0.0.1, operation=DESCRIBE, permissionType=ALLOW)"
    ]


async def test_its_short_cuts_for_producers_and_consumers(console: Console) -> None:
    await console.lines(f"{ADD} --producer --idempotent --topic made- --resource-pattern-type prefixed")
    await console.lines(f"{ADD} --consumer --topic {TOPIC} --group team")
    found = [line.split("operation=")[1] for line in await listed(console) if line.startswith("(")]
    assert sorted(found) == sorted(
        f"{operation}, permissionType=ALLOW)"
        for operation in ("WRITE", "DESCRIBE", "CREATE", "IDEMPOTENT_WRITE", "READ", "DESCRIBE", "READ")
    )


async def test_what_cannot_be_an_acl_is_refused_by_the_daemon(console: Console) -> None:
    code, out, err = await console.run("kafka-acls --add --allow-principal bob --operation Read --topic x")
    assert code != 0
    assert "principal" in out + err
    assert await listed(console) == []
